# SPDX-License-Identifier: Apache-2.0
"""Values as arrays of the type that an input wants: what converts without a change of kind is converted, as NumPy's "same_kind" says,
and what does not fit is refused with the call that would do it. Python's own numbers, and lists of them, have no width."""

from __future__ import annotations

import errno
import sys
import warnings
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

import numpy as np

from . import arena
from .errors import InvalidRequest

if TYPE_CHECKING:
    from .annotations import Array, DType
    from .client import Port

_HOSTS = (1, 3, 11, 13)  # DLPack devices whose memory the host reads: CPU, and what CUDA and ROCm call pinned or managed
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm"}
_BFLOAT16 = 16  # by the number in starling.h
_INT64 = 7


class _Bits:
    """bfloat16 of a package that NumPy does not know, as the uint16 of its bits."""

    def __init__(self, bits: Array) -> None:
        self.bits = bits


def _refuse(where: str, text: str) -> NoReturn:
    raise InvalidRequest(-errno.EINVAL, f"{where} {text}")


def _torch_bfloat16(value: Any) -> Optional[_Bits]:
    """The bits of a tensor, without torch where it is not loaded already."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(value, "dtype", None) is not getattr(torch, "bfloat16", ()):
        return None
    if value.requires_grad:
        raise BufferError("it requires gradients")  # which its integers would not
    return _Bits(np.from_dlpack(value.view(torch.int16)).view(np.uint16))


def _check_device(value: Any, where: str) -> None:
    try:
        device, number = map(int, value.__dlpack_device__())
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # of no device that DLPack has
        words = str(error)
    else:
        if device in _HOSTS:
            return
        words = f"{_DEVICES.get(device, f'DLPack device {device}')}:{number}"
    _refuse(where, f"lies on {words}, wants memory of the host: x.cpu()")


def _from_dlpack(value: Any, where: str) -> Union[Array, _Bits]:
    """Shares the memory of what is not NumPy's, which may know more of NumPy than of DLPack."""
    _check_device(value, where)
    try:
        if "torch" in sys.modules and getattr(value, "is_neg", bool)():
            value = value.resolve_neg()  # torch hands the memory out without the sign that it keeps apart
        bits = _torch_bfloat16(value)
        return bits if bits is not None else np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        words = str(error).rstrip(".")
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except (BufferError, RuntimeError, TypeError, ValueError):
            pass
    _refuse(where, f"cannot be read through DLPack: {words}; x.detach() of what needs gradients, x.float() of a type that NumPy lacks")


def array_of(value: Any) -> Any:
    """What NumPy makes an array of, and tensors of bfloat16, of which it makes none."""
    bits = _torch_bfloat16(value)
    return value if bits is None else bits.bits.view(arena.BFLOAT16)


def _is_weak(value: object) -> bool:
    return isinstance(value, (int, float, list, tuple)) and not isinstance(value, np.generic)


def _array_of(value: Any, where: str) -> Union[Array, _Bits]:
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value, where)
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        words = str(error)
    _refuse(where, f"is no array: {words}")


def _as_bfloat16(array: Array) -> Array:
    """Rounded to the nearest, ties to even; NaN stays one."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).reshape(array.shape)
    with np.errstate(over="ignore"):
        rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype(np.uint16).view(arena.BFLOAT16)


def _of_bits(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _name(port: Port) -> str:
    return "bfloat16" if port.number == _BFLOAT16 else str(port.dtype)


def _call_for(port: Port) -> str:
    return "x.astype(np.float32)" if port.number == _BFLOAT16 else f"x.astype(np.{np.dtype(port.dtype).name.replace('bool', 'bool_')})"


def _may(array: Array, dtype: DType, weak: bool) -> bool:
    if array.size == 0 and weak:
        return True
    if weak and array.dtype.kind in "iu" and dtype.kind in "iuf":
        return True
    return np.can_cast(array.dtype, dtype, "same_kind")


def _check_range(array: Array, dtype: DType, where: str) -> None:
    """Integers that another width would make other numbers."""
    if array.dtype.kind not in "iu" or dtype.kind not in "iu" or array.size == 0:
        return
    limits = np.iinfo(dtype)
    for value in (int(array.min()), int(array.max())):
        if not limits.min <= value <= limits.max:
            _refuse(where, f"has the value {value}, {dtype} goes from {limits.min} to {limits.max}")


def _places(port: Port, words: Array, where: str) -> Array:
    """Words as places in the labels, -1 of a word that is none: what becomes of it the model says. A list of words is a column."""
    table = port.table
    try:
        texts = [word.decode() if isinstance(word, bytes) else word for word in words.reshape(-1).tolist()]
        places = np.array([table.get(text, -1) for text in texts], np.int64).reshape(words.shape)
    except (TypeError, UnicodeDecodeError) as error:
        _refuse(where, f"wants words, or places in its labels: {error}")
    if port.shape is not None and len(port.shape) == places.ndim + 1 and port.shape[-1] == 1:
        places = places[..., np.newaxis]
    return places if port.number == _INT64 else places.astype(port.dtype)


def as_type(port: Port, value: Any, where: str) -> Array:
    """`value` as an array of the type of `port`; the same one where it is one already."""
    array = _array_of(value, where)
    if isinstance(array, _Bits):
        array = array.bits.view(arena.BFLOAT16) if port.number == _BFLOAT16 else _of_bits(array.bits)
    if port.labels and array.dtype.kind in "USOT":
        return _places(port, array, where)
    if arena.suits(array.dtype, port.number):
        return array
    wanted = np.dtype(np.float32) if port.number == _BFLOAT16 else port.dtype
    if not _may(array, wanted, _is_weak(value)):
        _refuse(where, f"wants {_name(port)}, got {array.dtype}: {_call_for(port)} makes it one")
    _check_range(array, wanted, where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # beyond float32 is infinity, as in any cast
        array = array.astype(wanted)
    return _as_bfloat16(array) if port.number == _BFLOAT16 else array
