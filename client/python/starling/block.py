# SPDX-License-Identifier: Apache-2.0
"""Core and Block over ctypes: the client's handle, and memory of its arena."""

from __future__ import annotations

import ctypes
import errno
import functools
import operator
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from .errors import error_of
from .library import Error, Library

if TYPE_CHECKING:
    from .annotations import Array, DType


class Core:
    """The C handle. Lives as long as the client or any of its arrays: whoever goes last closes it."""

    def __init__(self, library: Library, handle: Optional[int]) -> None:
        self.library = library
        self.handle = handle

    def __del__(self) -> None:
        if self.handle:
            self.library.close(self.handle)
            self.handle = None

    def alloc(self, n_bytes: int) -> int:
        address: int = self.library.alloc(self.handle, n_bytes)
        if not address:
            status = -(ctypes.get_errno() or errno.ENOMEM)
            error = Error()
            self.library.alloc_error(self.handle, n_bytes, status, ctypes.byref(error))
            raise error_of(status, error.text.decode(errors="replace"))
        return address


class Block:
    """Memory of the arena, as NumPy's array interface; freed with the last array over it."""

    def __init__(self, core: Core, n_bytes: int) -> None:
        self.core = core
        self.n_bytes = n_bytes
        self.address = core.alloc(max(n_bytes, 1))
        self._free = functools.partial(core.library.free, core.handle, self.address)

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        return {"version": 3, "shape": (self.n_bytes,), "typestr": "|u1", "data": (self.address, False)}

    def array(self, dtype: DType, shape: Tuple[int, ...]) -> Array:
        """The array that this memory is. NumPy shares no memory of size 0, so that the block has at least one element."""
        n_bytes = dtype.itemsize
        for n in shape:
            n_bytes *= n
        return np.asarray(self)[:n_bytes].view(dtype).reshape(shape)

    #: Called without a step in Python, where a handler of a signal could raise what nobody would hear of.
    __del__ = property(operator.attrgetter("_free"))
