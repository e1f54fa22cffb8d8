# SPDX-License-Identifier: Apache-2.0
"""Arrays that are the arena.

Every array that Client.empty() makes has a Block at the end of its chain of bases. The block gives its memory back when the last
array, view or DLPack capsule over it is gone, and keeps the mapping alive until then, whether the client was closed meanwhile or not.
"""

import ctypes
import errno

import numpy as np

from .errors import error_of
from .library import ALIGNMENT

try:
    import ml_dtypes

    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:  # bfloat16 then appears as the uint16 of its bits
    BFLOAT16 = np.dtype(np.uint16)

# By the number in starling.h.
DTYPES = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
    16: BFLOAT16,
}


def suits(dtype, number):
    """True when an array of `dtype` holds elements of type `number`: bfloat16 may come as uint16."""
    return dtype == DTYPES[number] or (number == 16 and dtype == np.uint16)


class Core:
    """The C handle. Lives as long as the client or any of its arrays: whoever goes last closes it."""

    def __init__(self, library, handle):
        self.library = library
        self.handle = handle

    def __del__(self):
        if self.handle:
            self.library.close(self.handle)
            self.handle = None

    def alloc(self, n_bytes):
        address = self.library.alloc(self.handle, n_bytes)
        if not address:
            status = -(ctypes.get_errno() or errno.ENOMEM)
            raise error_of(status, f"{n_bytes} bytes of arena: {self.library.words(status)}")
        return address


class Block:
    """Memory of the arena, as NumPy's array interface; freed with the last array over it."""

    def __init__(self, core, n_bytes):
        self.core = core
        self.n_bytes = n_bytes
        self.address = core.alloc(max(n_bytes, 1))

    @property
    def __array_interface__(self):
        return {"version": 3, "shape": (self.n_bytes,), "typestr": "|u1", "data": (self.address, False)}

    def __del__(self):
        if getattr(self, "address", None):
            self.core.library.free(self.core.handle, self.address)
            self.address = None


def empty(core, shape, dtype):
    """An array in the arena, its contents undefined."""
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if dtype.hasobject or any(n < 0 for n in shape):
        raise ValueError(f"an array of shape {shape} and type {dtype} cannot lie in the arena")
    n_bytes = dtype.itemsize
    for n in shape:
        n_bytes *= n
    # A block of at least one element: NumPy shares no memory of size 0.
    flat = np.asarray(Block(core, max(n_bytes, dtype.itemsize)))
    return flat[:n_bytes].view(dtype).reshape(shape)


def address_of(array):
    return array.__array_interface__["data"][0]


def lies_in(core, array):
    """True when the runtime can use `array` where it is: in this client's arena, dense and aligned."""
    if not array.flags.c_contiguous or address_of(array) % ALIGNMENT:
        return False
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, Block) and base.core is core
