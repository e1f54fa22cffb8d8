# SPDX-License-Identifier: Apache-2.0
"""What a request may hold, and the words for what it may not. Both forms of the client work by it: call.py always, and the extension for
whatever is no array of the right type that lies where it should.
"""

import ctypes
import errno
import math
from collections import namedtuple

import numpy as np

from . import arena
from .errors import InvalidRequest

#: Nanoseconds: waiting in queues, waiting for a batch, computing, combining the members' predictions.
Times = namedtuple("Times", "queued_ns batched_ns computing_ns combining_ns")

_FOREVER_NS = 2**62


def _listed(names):
    return ", ".join(f'"{name}"' for name in names) or "none"


def _dims(shape):
    """[5,3], as libstarling writes it."""
    return f"[{','.join(map(str, shape))}]"


def _wanted(port):
    """float32 [N,3]: N samples, ? where the size is free otherwise."""
    if port.shape is None:
        return f"{port.dtype} [...]"
    free = ("N" if axis == port.batch_axis else "?" for axis in range(len(port.shape)))
    return f"{port.dtype} {_dims(any_ if size is None else size for size, any_ in zip(port.shape, free))}"


def arrange(values, ports, what, model):
    """Arrays in the order of `ports`, from one array, a sequence, or a mapping by name."""
    if isinstance(values, dict):
        unknown = set(values) - {port.name for port in ports}
        missing = [port.name for port in ports if port.name not in values and not port.optional]
        if unknown or missing:
            raise InvalidRequest(
                -errno.EINVAL,
                f'model "{model}": {what}s are {_listed(p.name for p in ports)}, got {_listed(sorted(map(str, values)))}',
            )
        return [values.get(port.name) for port in ports]
    n_required = sum(not port.optional for port in ports)
    if isinstance(values, (list, tuple)) and (len(ports) > 1 or what == "output"):  # one input may be given as numbers in lists
        if n_required <= len(values) < len(ports):
            values = [*values, *[None] * (len(ports) - len(values))]
        if len(values) != len(ports):
            raise InvalidRequest(-errno.EINVAL, f'model "{model}": wants {len(ports)} {what}s, got {len(values)}')
        return list(values)
    if n_required == 1 < len(ports) and values is not None:
        return [values, *[None] * (len(ports) - 1)]
    if len(ports) != 1:
        raise InvalidRequest(-errno.EINVAL, f'model "{model}": wants {len(ports)} {what}s by name, got {"None" if values is None else "one array"}')
    return [values]


def _is_tensor_shape(shape):
    return len(shape) <= 8 and all(n < 2**32 for n in shape)


def as_input(model, port, value):
    """`value` as an array for `port`: converted when it is none, refused when its type or size is wrong. None for an input that is left
    out."""
    if value is None and port.optional:
        return None
    if value is None:
        raise InvalidRequest(-errno.EINVAL, f'model "{model}": input "{port.name}" wants {_wanted(port)}, got None')
    array = np.asarray(value)
    if isinstance(value, np.ndarray):
        if not arena.suits(array.dtype, port.number):
            raise InvalidRequest(-errno.EINVAL, f'model "{model}": input "{port.name}" wants {port.dtype}, got {array.dtype}')
    else:
        array = array.astype(port.dtype)
    if array.size == 0 or not _is_tensor_shape(array.shape):
        raise InvalidRequest(-errno.EINVAL, f'model "{model}": input "{port.name}" wants {_wanted(port)}, got {_dims(array.shape)}')
    return array


def placed(core, array):
    """`array` where the runtime can read it: itself, or its copy in the arena."""
    if array is None:
        return None
    if arena.lies_in(core, array):
        return array
    copy = arena.empty(core, array.shape, array.dtype)
    copy[...] = array
    return copy


def as_output(core, port, array):
    """`array`, or refuses it as one that the runtime could not write to."""
    if not isinstance(array, np.ndarray):
        raise InvalidRequest(
            -errno.EINVAL, f'output "{port.name}" wants an array of this client\'s arena, see empty(), got {type(array).__name__}'
        )
    if not arena.lies_in(core, array):
        raise InvalidRequest(-errno.EINVAL, f'output "{port.name}" is no dense, aligned array of this client\'s arena')
    if not arena.suits(array.dtype, port.number):
        raise InvalidRequest(-errno.EINVAL, f'output "{port.name}" wants {port.dtype}, got {array.dtype}')
    if not array.flags.writeable:
        raise InvalidRequest(-errno.EINVAL, f'output "{port.name}" is read-only')
    if not _is_tensor_shape(array.shape):
        raise InvalidRequest(-errno.EINVAL, f'output "{port.name}" wants {_wanted(port)}, got {_dims(array.shape)}')
    return array


def _shown(array):
    """The same memory as a type that the buffer protocol has."""
    return array if array.dtype != arena.BFLOAT16 else array.view(np.uint16)


def placed_input(core, model, port, value):
    return _shown(placed(core, as_input(model, port, value)))


def shown_output(core, port, array):
    return _shown(as_output(core, port, array))


def shaped(array, dims, n_bytes):
    """An output's array with the shape that the model gave it."""
    if array.shape == dims:
        return array
    return array.reshape(-1)[: n_bytes // array.itemsize].reshape(dims)


def nanoseconds(seconds):
    """Of a time-out: at least one, and less than a clock has."""
    if not math.isfinite(seconds):
        raise ValueError(f"timeout is {seconds}, wants a number of seconds, or None")
    return min(max(1, int(seconds * 1e9)), _FOREVER_NS)


def number(value):
    """As a C field takes it, or TypeError."""
    return ctypes.c_uint64(value).value


def field(name, value, bits):
    """C would read another number, without what is beyond its bits."""
    whole = value if isinstance(value, int) else number(value)
    if not 0 <= whole < 1 << bits:
        raise ValueError(f"{name} is {whole:d}, wants 0 to {(1 << bits) - 1}")
    return whole
