# SPDX-License-Identifier: Apache-2.0
"""One request over ctypes: its arrays, its C structs, and what its completion means.

A call keeps its arrays alive until its completion has come, whatever becomes of the caller: until then their memory is the runtime's.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import math
import struct
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import arena, request
from .block import Block
from .errors import TooSmall, error_of, status_of
from .library import RANK_MAX, Completion, Request, Shape, Tensor, frame_type

if TYPE_CHECKING:
    from .annotations import Array, DType, Result
    from .block import Core
    from .client import Model, Port

    # An array or a Block, None when it is left out; where it is, its shape and its bytes.
    Placed = Tuple[Union[Array, Block, None], int, Tuple[int, ...], int]
    Room = Tuple[DType, Tuple[int, ...], int]  # and its bytes

_GUESS_BYTES = 65536  # for outputs whose size only the model knows

# Structs of library.py, written and read whole: one step for each instead of one for each field.
_HEAD = "=3Q4I3QQ"  # a Request, and the id behind it
_HEAD_BYTES = struct.calcsize(_HEAD)
_VECTOR = struct.Struct("=2Q3I")  # a Tensor of one dimension
_TENSOR_BYTES = ctypes.sizeof(Tensor)
_SHAPE = struct.Struct(f"=Q{RANK_MAX}I2I")
_COMPLETION = struct.Struct("=2QiIQ4Q")  # up to its times
assert _HEAD_BYTES == ctypes.sizeof(Request) + 8 and _TENSOR_BYTES == struct.calcsize(f"=2Q2I{RANK_MAX}I")
assert _SHAPE.size == ctypes.sizeof(Shape) and _COMPLETION.size == Completion.bytes_needed.offset

_ABSENT: Placed = (None, 0, (), 0)
_SMALL_BYTES = 4096
_NONE = 0  # what most give for a priority and a session

_ROOMS_MAX = 64  # numbers of samples of which a model knows the sizes of its outputs by heart


@functools.lru_cache(maxsize=256)
def _frame_of(ranks: Tuple[int, ...]) -> struct.Struct:
    """A whole frame, whose tensors have these ranks."""
    return struct.Struct(_HEAD + "".join(f"2Q2I{rank}I{4 * (RANK_MAX - rank)}x" for rank in ranks))


class Handle:
    """What requests need of a Model, which has it all."""

    stale = False  # its inputs or outputs are others by now
    asks = False  # it is a task: each request has its variant
    combines = False  # it is an ensemble: each result has its members

    def bind(self, core: Core, handle: Optional[int], name: str, inputs: List[Port], outputs: List[Port]) -> None:
        """Said once, before the first request."""
        self.frame_type = frame_type(len(inputs) + len(outputs))
        self.required = [port for port in inputs if not port.optional]  # the others are the last
        self._required_names = {port.name for port in self.required}
        self._rooms: Dict[int, List[Optional[Room]]] = {}

    def listed(self, inputs: Any, all_of_them: List[Port]) -> List[Port]:
        """The inputs that are looked for in what a request gives: the others are left out, however many there are."""
        if isinstance(inputs, dict):
            suits = inputs.keys() == self._required_names
        else:
            suits = len(self.required) == 1 and inputs is not None and not isinstance(inputs, (list, tuple))
        return self.required if suits else all_of_them


    def rooms(self, outputs: List[Port], samples: int) -> List[Optional[Room]]:
        """What each output of so many samples takes, None where the model does not say."""
        rooms = self._rooms.get(samples)
        if rooms is None:
            if len(self._rooms) >= _ROOMS_MAX:
                self._rooms.clear()
            rooms = self._rooms[samples] = [_room_of(port, samples) for port in outputs]
        return rooms


def _room_of(port: Port, samples: int) -> Optional[Room]:
    shape: Any = port.shape
    if shape is not None and port.batch_axis is not None:
        shape = (*shape[: port.batch_axis], samples, *shape[port.batch_axis + 1 :])
    if shape is None or None in shape:
        return None
    return port.dtype, shape, port.dtype.itemsize * max(math.prod(shape), 1)


class Call:
    """What the runtime reads and writes is kept until the completion has come, in tuples, which the collector of garbage leaves alone:
    with thousands of requests at once it is what takes the time."""

    __slots__ = ("_core", "model", "frame", "answer", "members", "_times", "_given", "_inputs", "_input_bytes", "_outputs")

    def __init__(
        self, core: Core, model: Model, inputs: Any, outputs: Any, timeout: Optional[float], priority: int, session: int
    ) -> None:
        if core.library.model_changed(model._handle):
            model.stale = True
            raise request.Changed
        self._core = core
        self.model = model
        self._times: Optional[Tuple[int, ...]] = None
        self.answer: Optional[request.Answer] = None
        self.members: Optional[request.Members] = None
        ports = model.listed(inputs, model.inputs)
        placed = [self._place_input(port, value) for port, value in zip(ports, request.arrange(inputs, ports, "input", model))]
        self._given = outputs is not None and not isinstance(outputs, bytes)
        rooms = self._place_outputs(outputs, placed)
        self._inputs = tuple([memory for memory, _, _, _ in placed])
        self._input_bytes = sum([n_bytes for _, _, _, n_bytes in placed])
        self._outputs: Tuple[Any, ...] = tuple([array for array, _, _, _ in rooms])
        self._fill(placed, rooms, timeout, priority, session)

    @property
    def times(self) -> Optional[request.Times]:
        return None if self._times is None else request.Times(*self._times)

    def _room(self, dtype: DType, shape: Tuple[int, ...], n_bytes: int) -> Placed:
        block = Block(self._core, n_bytes)
        return block.array(dtype, shape), block.address, shape, n_bytes

    def _place_input(self, port: Port, value: Any) -> Placed:
        """Where the runtime can read it: itself, or its copy in the arena. None when it is left out."""
        array = request.as_input(self.model.name, port, value)
        if array is None:
            return _ABSENT
        shape, n_bytes = array.shape, array.nbytes
        if arena.lies_in(self._core, array):
            return array, arena.address_of(array), shape, n_bytes
        block = Block(self._core, n_bytes)
        if n_bytes <= _SMALL_BYTES:  # two copies cost less than an array to copy to
            ctypes.memmove(block.address, np.ndarray.tobytes(array), n_bytes)  # not a subclass's, which may leave values out
        else:
            block.array(array.dtype, shape)[...] = array
        return block, block.address, shape, n_bytes

    def _samples(self, inputs: List[Placed]) -> int:
        for port, (memory, _, shape, _) in zip(self.model.inputs, inputs):
            if memory is not None and port.batch_axis is not None and port.batch_axis < len(shape):
                return shape[port.batch_axis]
        return 1

    def _guess(self, port: Port, inputs: List[Placed]) -> Placed:
        """A flat array for what the model does not say: as the output has wanted in proportion to the inputs, and a quarter more than ever
        at most, so that few requests are computed twice where it grows."""
        sizes = [n_bytes for _, _, _, n_bytes in inputs]
        wanted, per_kib = port.lacked
        guess = max([_GUESS_BYTES, min(wanted + wanted // 4, per_kib * sum(sizes) // 1024 + 1)] + sizes)
        items = guess // port.dtype.itemsize
        return self._room(port.dtype, (items,), items * port.dtype.itemsize)

    def _place_outputs(self, outputs: Any, inputs: List[Placed]) -> List[Placed]:
        ports = self.model.outputs
        if not self._given:
            rooms = self.model.rooms(ports, self._samples(inputs))
            wanted = outputs or bytes([1]) * len(ports)
            return [
                _ABSENT if not is_wanted else self._guess(port, inputs) if room is None else self._room(*room)
                for port, room, is_wanted in zip(ports, rooms, wanted)
            ]
        arrays = request.arrange(outputs, ports, "output", self.model)
        arrays = [request.as_output(self._core, port, array) for port, array in zip(ports, arrays)]
        return [(array, arena.address_of(array), array.shape, array.nbytes) for array in arrays]

    def _fill(self, inputs: List[Placed], outputs: List[Placed], timeout: Optional[float], priority: int, session: int) -> None:
        model = self.model
        deadline = 0 if timeout is None else self._core.library.clock_ns() + request.nanoseconds(timeout)
        if priority is not _NONE or session is not _NONE:
            priority, session = request.field("priority", priority, 32), request.field("session", session, 64)
        self.frame = frame = model.frame_type()
        first = ctypes.addressof(frame) + _HEAD_BYTES
        second = first + len(inputs) * _TENSOR_BYTES
        fields = [model._handle, first, second, len(inputs), len(outputs), 0, priority, deadline, 0, session, 0]
        ranks = []
        for ports, placed in ((model.inputs, inputs), (model.outputs, outputs)):
            for port, (memory, address, shape, n_bytes) in zip(ports, placed):
                fields += (address, n_bytes, port.number if memory is not None else 0, len(shape), *shape)
                ranks.append(len(shape))
        _frame_of(tuple(ranks)).pack_into(frame, 0, *fields)

    def grow(self, error: TooSmall) -> bool:
        """After TooSmall, gives the first output that lacks room what it needs. False when the caller chose the outputs."""
        if self._given:
            return False
        for i, (port, array) in enumerate(zip(self.model.outputs, self._outputs)):
            if array is not None and array.nbytes < error.bytes_needed:
                wanted, per_kib = port.lacked
                inputs = max(1, self._input_bytes)
                port.lacked = (max(wanted, error.bytes_needed), max(per_kib, error.bytes_needed * 1024 // inputs + 1))
                items = -(-error.bytes_needed // port.dtype.itemsize)
                room, address, _, n_bytes = self._room(port.dtype, (items,), items * port.dtype.itemsize)
                self._outputs = (*self._outputs[:i], room, *self._outputs[i + 1 :])
                _VECTOR.pack_into(
                    self.frame, _HEAD_BYTES + (len(self._inputs) + i) * _TENSOR_BYTES, address, n_bytes, port.number, 1, items
                )
                return True
        return False

    def result(self, completion: Completion) -> Result:
        """The outputs, or raises what the status says. While the completion's shapes are valid."""
        fields = _COMPLETION.unpack_from(completion)
        status, n_outputs, outputs, self._times = fields[2], fields[3], fields[4], fields[5:]
        if status < 0:
            self.model.stale |= status == -errno.ESTALE
            words = self._core.library.reason(completion)
            status = status_of(status, completion.reason.code)
            raise error_of(status, f'model "{self.model.name}": {words}', completion.bytes_needed)
        arrays: Sequence[Any] = self._outputs
        if n_outputs == len(arrays):
            shapes = _SHAPE.iter_unpack(ctypes.string_at(outputs, n_outputs * _SHAPE.size))
            arrays = [array if array is None else request.shaped(array, s[1 : 1 + s[1 + RANK_MAX]], s[0]) for array, s in zip(arrays, shapes)]
        if len(arrays) == 1:
            return arrays[0]
        return {port.name: array for port, array in zip(self.model.outputs, arrays)}
