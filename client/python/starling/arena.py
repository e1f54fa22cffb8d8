# SPDX-License-Identifier: Apache-2.0
"""Arrays that are the arena.

Every array that Client.empty() makes has a Block at the end of its chain of bases. The block gives its memory back when the last
array, view or DLPack capsule over it is gone, and keeps the mapping alive until then, whether the client was closed meanwhile or not.
"""

import numpy as np

from . import form
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


def empty(core, shape, dtype):
    """An array in the arena, its contents undefined."""
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if dtype.hasobject or any(n < 0 for n in shape):
        raise ValueError(f"an array of shape {shape} and type {dtype} cannot lie in the arena")
    n_bytes = dtype.itemsize
    for n in shape:
        n_bytes *= n
    return form.Block(core, max(n_bytes, dtype.itemsize)).array(dtype, shape)


def address_of(array):
    return array.__array_interface__["data"][0]


def lies_in(core, array):
    """True when the runtime can use `array` where it is: in this client's arena, dense and aligned."""
    if not array.flags.c_contiguous or address_of(array) % ALIGNMENT:
        return False
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, form.Block) and base.core is core
