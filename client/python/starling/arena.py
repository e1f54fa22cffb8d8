# SPDX-License-Identifier: Apache-2.0
"""Arrays that are the arena.

Every array that Client.empty() makes has a Block at the end of its chain of bases. The block gives its memory back when the last
array, view or DLPack capsule over it is gone, and keeps the mapping alive until then, whether the client was closed meanwhile or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Tuple

import numpy as np

from . import form
from .library import ALIGNMENT

if TYPE_CHECKING:
    import numpy.typing as npt

    from .annotations import Array, DType, Shape

BFLOAT16: DType
_TYPES: Any = None

try:
    import ml_dtypes  # type: ignore[import-not-found, unused-ignore]

    _TYPES = ml_dtypes
    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:  # bfloat16 then appears as the uint16 of its bits
    BFLOAT16 = np.dtype(np.uint16)

# Types of 8 bits and fewer by the number in starling.h; an element takes a byte, and without ml_dtypes appears as that.
_SMALL = {
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}

# By the number in starling.h.
DTYPES: Dict[int, DType] = {
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
    **{number: np.dtype(getattr(_TYPES, name, np.uint8)) for number, name in _SMALL.items()},
}


def suits(dtype: DType, number: int) -> bool:
    """True when an array of `dtype` holds elements of type `number`: bfloat16 may come as uint16, a smaller one as uint8."""
    return dtype == DTYPES[number] or (number == 16 and dtype == np.uint16) or (number in _SMALL and dtype == np.uint8)


def empty(core: form.Core, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """An array in the arena, its contents undefined."""
    dtype = np.dtype(dtype)
    dims: Tuple[Any, ...] = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if dtype.hasobject or any(n < 0 for n in dims):
        raise ValueError(f"an array of shape {dims} and type {dtype} cannot lie in the arena")
    n_bytes = dtype.itemsize
    for n in dims:
        n_bytes *= n
    return form.Block(core, max(n_bytes, dtype.itemsize)).array(dtype, dims)


def address_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def lies_in(core: form.Core, array: Array) -> bool:
    """True when the runtime can use `array` where it is: in this client's arena, dense and aligned."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, form.Block) and base.core is core and array.flags.c_contiguous and not address_of(array) % ALIGNMENT
