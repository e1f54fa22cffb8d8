# SPDX-License-Identifier: Apache-2.0
"""Core and Block over ctypes: the client's handle, and memory of its arena."""

from __future__ import annotations

import ctypes
import errno
import functools
import math
from typing import TYPE_CHECKING, Any, Dict, NoReturn, Optional, Tuple

import numpy as np

from .errors import error_of
from .library import Error, Library

if TYPE_CHECKING:
    from .annotations import Array, DType


class Core:
    """The C handle. Lives as long as the client or any of its arrays: the last of them closes it."""

    handle: Optional[int] = None  # until it is made

    def __init__(self, library: Library, handle: Optional[int]) -> None:
        self.library = library
        self.handle = handle

    def __del__(self) -> None:
        if self.handle:
            self.library.close(self.handle)
            self.handle = None

    def refuse(self, n_bytes: int) -> NoReturn:
        """Right behind an alloc() of the library that has found no memory."""
        status = -(ctypes.get_errno() or errno.ENOMEM)
        error = Error()
        self.library.alloc_error(self.handle, n_bytes, status, ctypes.byref(error))
        raise error_of(status, error.text.decode(errors="replace"))


class Block(functools.partial[int]):
    """Memory of the arena, as NumPy's array interface; freed with the last array over it.

    It is the call that frees it: __del__ takes no step in Python, where a handler of a signal could raise what nobody would hear of."""

    __slots__ = ("core", "address", "__array_interface__")

    core: Core
    address: int

    def __new__(cls, core: Core, n_bytes: int) -> Block:
        library, handle = core.library, core.handle
        address: int = library.alloc(handle, n_bytes or 1) or core.refuse(n_bytes or 1)
        block = super().__new__(cls, library.free, handle, address)
        block.core = core
        block.address = address
        return block

    def array(self, dtype: DType, shape: Tuple[int, ...]) -> Array:
        """The array that this memory is. NumPy shares no memory of size 0, so that the block has at least one element."""
        if 0 in shape or dtype.kind == "V":  # of types with fields, and of other packages, the interface knows the size alone
            n_bytes = dtype.itemsize * math.prod(shape)
            return self._array("|u1", (n_bytes or 1,))[:n_bytes].view(dtype).reshape(shape)
        return self._array(dtype.str, shape)

    def _array(self, typestr: str, shape: Tuple[int, ...]) -> Array:
        self.__array_interface__: Dict[str, Any] = {"version": 3, "shape": shape, "typestr": typestr, "data": (self.address, False)}
        array = np.asarray(self)
        del self.__array_interface__
        return array

    __del__ = functools.partial.__call__
