# SPDX-License-Identifier: Apache-2.0
"""What a request may hold, and the words for what it may not. Both forms of the client work by it: call.py always, and the extension for
whatever is no array of the right type that lies where it should.
"""

from __future__ import annotations

import ctypes
import errno
import math
from typing import TYPE_CHECKING, Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import arena, convert
from .errors import InvalidRequest

if TYPE_CHECKING:
    from .annotations import Array, Result
    from .block import Core
    from .client import Model, Port


class Times(NamedTuple):
    """Nanoseconds: waiting in queues, waiting for a batch, computing, combining the members' predictions."""

    queued_ns: int
    batched_ns: int
    computing_ns: int
    combining_ns: int


class Answer(NamedTuple):
    """Which variant of a task had a request: `met` is "all", "least" (of accuracy_least) or "closest"; `tries` is 2 where another one
    refused it first; `expected` are the seconds that it was expected to take, None where that was not known."""

    variant: str
    accuracy: float
    met: str
    tries: int
    expected: Optional[float]


class Members(NamedTuple):
    """Which members of an ensemble a result is made of, by their places in its configuration: `any` are in the result of at least one
    sample, `all` in that of every sample."""

    any: Tuple[int, ...]
    all: Tuple[int, ...]


def members_of(any_bits: int, all_bits: int) -> Members:
    """As the library says it."""
    return Members(*(tuple(m for m in range(64) if bits >> m & 1) for bits in (any_bits, all_bits)))


_METS = ("all", "least", "closest")


def answer_of(variant: Union[str, bytes], accuracy: float, met: int, tries: int, expected_ns: int) -> Answer:
    """As the library says it."""
    name = variant.decode() if isinstance(variant, bytes) else variant
    return Answer(name, accuracy, _METS[met] if met < len(_METS) else "unknown", tries, expected_ns / 1e9 if expected_ns else None)


_FOREVER_NS = 2**62


_NAMES_SHOWN = 16  # of a list of names in an error


def _listed(names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    more = [f"and {len(quoted) - _NAMES_SHOWN} more"] if len(quoted) > _NAMES_SHOWN else []
    return ", ".join(quoted[:_NAMES_SHOWN] + more) or "none"


def _dims(shape: Iterable[object]) -> str:
    """[5,3], as libstarling writes it."""
    return f"[{','.join(map(str, shape))}]"


def _wanted(port: Port) -> str:
    """float32 [N,3]: N samples, ? where the size is free otherwise."""
    if port.shape is None:
        return f"{port.dtype} [...]"
    free = ("N" if axis == port.batch_axis else "?" for axis in range(len(port.shape)))
    return f"{port.dtype} {_dims(any_ if size is None else size for size, any_ in zip(port.shape, free))}"


def _with_version(model: Model) -> str:
    """Who names what another version had is to see which one answers. Ensembles have none."""
    return f'model "{model.name}", version {model.version}' if model.version else f'model "{model.name}"'


def arrange(values: Any, ports: Sequence[Port], what: str, model: Model) -> List[Any]:
    """Arrays in the order of `ports`, from one array, a sequence, or a mapping by name."""
    if isinstance(values, dict):
        unknown = set(values) - {port.name for port in ports}
        missing = [port.name for port in ports if port.name not in values and not port.optional]
        if unknown or missing:
            raise InvalidRequest(
                -errno.EINVAL,
                f'{_with_version(model)}: {what}s are {_listed(p.name for p in ports)}, got {_listed(sorted(map(str, values)))}',
            )
        return [values.get(port.name) for port in ports]
    n_required = sum(not port.optional for port in ports)
    if isinstance(values, (list, tuple)) and (len(ports) > 1 or what == "output"):  # one input may be given as numbers in lists
        if n_required <= len(values) < len(ports):
            values = [*values, *[None] * (len(ports) - len(values))]
        if len(values) != len(ports):
            raise InvalidRequest(-errno.EINVAL, f'model "{model.name}": wants {len(ports)} {what}s, got {len(values)}')
        return list(values)
    if n_required == 1 < len(ports) and values is not None:
        return [values, *[None] * (len(ports) - 1)]
    if len(ports) != 1:
        raise InvalidRequest(-errno.EINVAL, f'model "{model.name}": wants {len(ports)} {what}s by name, got {"None" if values is None else "one array"}')
    return [values]


def _is_tensor_shape(shape: Sequence[int]) -> bool:
    return len(shape) <= 8 and max(shape, default=0) < 2**32


class Changed(Exception):
    """Of a model whose inputs or outputs are others by now. Client looks it up again."""


class NoSamples(Exception):
    """Of a request whose batch is empty: there is nothing to compute. Client gives its outputs, of which each has no rows."""


def _is_empty_batch(port: Port, shape: Sequence[int]) -> bool:
    """True of the shape that the port wants, but for 0 samples."""
    axis = port.batch_axis
    if port.shape is None or axis is None or len(shape) != len(port.shape) or shape[axis] != 0:
        return False
    return all(size is None or n == size for i, (n, size) in enumerate(zip(shape, port.shape)) if i != axis)


def _empty_batch(port: Port, array: Array) -> Optional[Array]:
    """The array when it is an empty batch; an empty list is one of any shape."""
    if array.shape == (0,) and port.shape is not None and port.batch_axis is not None:
        return array.reshape([0 if i == port.batch_axis else size or 1 for i, size in enumerate(port.shape)])
    return array if _is_empty_batch(port, array.shape) else None


def checked(model: str, port: Port, value: Any) -> Optional[Array]:
    """`value` as an array for `port`: converted where that changes no kind, refused when its type or size is wrong. May be empty. None for an
    input that is left out."""
    if value is None and port.optional:
        return None
    where = f'model "{model}": input "{port.name}"'
    if value is None:
        raise InvalidRequest(-errno.EINVAL, f"{where} wants {_wanted(port)}, got None")
    array = convert.as_type(port, value, where)
    if array.size == 0 and isinstance(value, (list, tuple, np.ndarray)):
        empty = _empty_batch(port, array)
        array = array if empty is None else empty
    if not _is_tensor_shape(array.shape):
        raise InvalidRequest(-errno.EINVAL, f"{where} wants {_wanted(port)}, got {_dims(array.shape)}")
    return array


def as_input(model: str, port: Port, value: Any) -> Optional[Array]:
    """As checked(); raises NoSamples of an empty batch where it is known how large an output of no rows is."""
    if type(value) is np.ndarray and value.dtype is port.dtype and 0 < value.size < 2**32 and value.ndim <= 8:
        return value  # as nearly all are
    array = checked(model, port, value)
    if array is not None and array.size == 0 and port.knows_outputs and _is_empty_batch(port, array.shape):
        raise NoSamples
    return array


def without_samples(core: Core, model: Model, inputs: Any, outputs: Any) -> Result:
    """The outputs of a request of 0 samples, as Client.infer() returns them. Every input that has a batch is empty."""
    values = arrange(inputs, model.inputs, "input", model)
    arrays = [checked(model.name, port, value) for port, value in zip(model.inputs, values)]
    for port, array in zip(model.inputs, arrays):
        if array is not None and port.batch_axis is not None and not _is_empty_batch(port, array.shape):
            n = array.shape[port.batch_axis]
            raise InvalidRequest(-errno.EINVAL, f'model "{model.name}": input "{port.name}" has {n} samples, others have 0')
    shapes = [tuple(0 if axis == port.batch_axis else size or 0 for axis, size in enumerate(port.shape or (0,))) for port in model.outputs]
    if outputs is None:
        results = [arena.empty(core, shape, port.dtype) for port, shape in zip(model.outputs, shapes)]
    else:
        given = arrange(outputs, model.outputs, "output", model)
        results = [shaped(as_output(core, port, array), shape, 0) for port, array, shape in zip(model.outputs, given, shapes)]
    return results[0] if len(results) == 1 else {port.name: array for port, array in zip(model.outputs, results)}


def has_size(port: Port) -> bool:
    return port.shape is not None and all(size is not None or axis == port.batch_axis for axis, size in enumerate(port.shape))


class Selection:
    """Of the outputs, by their names: outputs=["d"]."""

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        known = [port.name for port in model.outputs]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InvalidRequest(-errno.EINVAL, f'{_with_version(model)}: there is no output {_listed(unknown)}: outputs are {_listed(known)}')
        self._names = list(dict.fromkeys(names))
        self._all = known
        self.only = self._names[0]
        #: For each output whether it gets memory, as a Call takes it; None where the runtime cannot do without the others.
        self.rooms: Optional[bytes] = bytes(name in names for name in known) if all(map(has_size, model.outputs)) else None

    @staticmethod
    def is_one(outputs: Any) -> bool:
        return isinstance(outputs, (list, tuple)) and len(outputs) > 0 and all(isinstance(name, str) for name in outputs)

    def of(self, result: Result) -> Result:
        """What infer() returns, without the others, which have no memory, or whose memory goes back: one array, or a dict of several."""
        if len(self._all) > 1:
            result = {name: result[name] for name in self._names}
            return result if len(result) > 1 else result[self._names[0]]
        return result


class Labelled:
    """Results with the labels of integers in their place: labels=True."""

    def __init__(self, model: Model, selection: Optional[Selection]) -> None:
        self._ports = {port.name: port for port in model.outputs}
        self._selection = selection
        self._only = selection.only if selection is not None else next(iter(self._ports), "")

    def of(self, result: Result) -> Result:
        """What infer() returns: arrays of numpy.str_ where an output has labels and integers, else as it is."""
        if self._selection is not None:
            result = self._selection.of(result)
        if isinstance(result, dict):
            return {name: words_of(self._ports[name], array) for name, array in result.items()}
        return words_of(self._ports[self._only], result)


def words_of(port: Port, array: Array) -> Array:
    """The labels of the elements; "" of what has none."""
    if not port.labels or port.dtype.kind not in "iu":
        return array
    places = np.asarray(array)
    places = np.where((places >= 0) & (places < len(port.labels)), places, len(port.labels))
    words: Array = np.array([*port.labels, ""], np.str_)[places]
    return words


def placed(core: Core, array: Optional[Array]) -> Optional[Array]:
    """`array` where the runtime can read it: itself, or its copy in the arena."""
    if array is None:
        return None
    if arena.lies_in(core, array):
        return array
    copy = arena.empty(core, array.shape, array.dtype)
    copy[...] = array
    return copy


def as_output(core: Core, port: Port, array: Any) -> Array:
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


def _shown(array: Array) -> Array:
    """The same memory as a type that the buffer protocol has."""
    return array if array.dtype != arena.BFLOAT16 else array.view(np.uint16)


def placed_input(core: Core, model: str, port: Port, value: Any) -> Array:
    array: Any = placed(core, as_input(model, port, value))
    return _shown(array)


def shown_output(core: Core, port: Port, array: Any) -> Array:
    return _shown(as_output(core, port, array))


def shaped(array: Array, dims: Tuple[int, ...], n_bytes: int) -> Array:
    """An output's array with the shape that the model gave it."""
    if array.shape == dims:
        return array
    return array.reshape(-1)[: n_bytes // array.itemsize].reshape(dims)


def nanoseconds(seconds: float) -> int:
    """Of a time-out: at least one, and less than a clock has."""
    if not math.isfinite(seconds):
        raise ValueError(f"timeout is {seconds}, wants a number of seconds, or None")
    return min(max(1, int(seconds * 1e9)), _FOREVER_NS)


def number(value: Any) -> int:
    """As a C field takes it, or TypeError."""
    return ctypes.c_uint64(value).value


def field(name: str, value: Any, bits: int) -> int:
    """C would read another number, without what is beyond its bits."""
    whole = value if isinstance(value, int) else number(value)
    if not 0 <= whole < 1 << bits:
        raise ValueError(f"{name} is {whole:d}, wants 0 to {(1 << bits) - 1}")
    return whole
