# SPDX-License-Identifier: Apache-2.0
"""One request over ctypes: its arrays, its C structs, and what its completion means.

A call keeps its arrays alive until its completion has come, whatever becomes of the caller: until then their memory is the runtime's.
"""

from __future__ import annotations

import ctypes
import errno
from typing import TYPE_CHECKING, Any, List, Optional

from . import arena, request
from .errors import TooSmall, error_of, status_of
from .library import Completion, Request, Tensor

if TYPE_CHECKING:
    from .annotations import Array, Result
    from .block import Core
    from .client import Model, Port

_GUESS_BYTES = 65536  # for outputs whose size only the model knows


class Handle:
    """What requests need of a Model, which has it all."""

    stale = False  # the runtime has said so of a request

    def bind(self, core: Core, handle: Optional[int], name: str, inputs: List[Port], outputs: List[Port]) -> None:
        """Said once, before the first request."""


class Call:
    def __init__(
        self, core: Core, model: Model, inputs: Any, outputs: Any, timeout: Optional[float], priority: int, session: int
    ) -> None:
        self._core = core
        self.model = model
        self.id = ctypes.c_uint64()
        self.times: Optional[request.Times] = None
        self._inputs = [
            request.placed(core, request.as_input(model.name, port, value))
            for port, value in zip(model.inputs, request.arrange(inputs, model.inputs, "input", model.name))
        ]
        self._given = outputs is not None
        self._outputs = self._place_outputs(outputs)
        self._fill(timeout, priority, session)

    def _samples(self) -> int:
        for port, array in zip(self.model.inputs, self._inputs):
            if array is not None and port.batch_axis is not None and port.batch_axis < array.ndim:
                samples: int = array.shape[port.batch_axis]
                return samples
        return 1

    def _room_for(self, port: Port, samples: int) -> Array:
        """A flat array with room for what the model says, or a guess where it does not say."""
        shape: List[Any] = [samples if axis == port.batch_axis else n for axis, n in enumerate(port.shape or ())]
        if port.shape is None or None in shape:
            guess = max([_GUESS_BYTES] + [array.nbytes for array in self._inputs if array is not None])
            return arena.empty(self._core, guess // port.dtype.itemsize, port.dtype)
        return arena.empty(self._core, shape, port.dtype)

    def _place_outputs(self, outputs: Any) -> List[Array]:
        ports = self.model.outputs
        if outputs is None:
            samples = self._samples()
            return [self._room_for(port, samples) for port in ports]
        arrays = request.arrange(outputs, ports, "output", self.model.name)
        return [request.as_output(self._core, port, array) for port, array in zip(ports, arrays)]

    def _tensor(self, port: Port, array: Optional[Array]) -> Tensor:
        if array is None:
            return Tensor()
        tensor = Tensor(arena.address_of(array), array.nbytes, port.number, array.ndim)
        tensor.dims[: array.ndim] = array.shape
        return tensor

    def _fill(self, timeout: Optional[float], priority: int, session: int) -> None:
        model = self.model
        deadline = 0 if timeout is None else self._core.library.clock_ns() + request.nanoseconds(timeout)
        self._c_inputs = (Tensor * len(self._inputs))(*map(self._tensor, model.inputs, self._inputs))
        self._c_outputs = (Tensor * len(self._outputs))(*map(self._tensor, model.outputs, self._outputs))
        self.request = Request(
            model=model._handle,
            inputs=self._c_inputs,
            outputs=self._c_outputs,
            n_inputs=len(self._inputs),
            n_outputs=len(self._outputs),
            priority=request.field("priority", priority, 32),
            deadline_ns=deadline,
            session=request.field("session", session, 64),
        )

    def grow(self, error: TooSmall) -> bool:
        """After TooSmall, gives the first output that lacks room what it needs. False when the caller chose the outputs."""
        if self._given:
            return False
        for i, (port, array) in enumerate(zip(self.model.outputs, self._outputs)):
            if array.nbytes < error.bytes_needed:
                items = -(-error.bytes_needed // port.dtype.itemsize)
                self._outputs[i] = arena.empty(self._core, items, port.dtype)
                self._c_outputs[i] = self._tensor(port, self._outputs[i])
                return True
        return False

    def result(self, completion: Completion) -> Result:
        """The outputs, or raises what the status says. While the completion's shapes are valid."""
        self.times = request.Times(completion.queued_ns, completion.batched_ns, completion.computing_ns, completion.combining_ns)
        if completion.status < 0:
            self.model.stale |= completion.status == -errno.ESTALE
            words = self._core.library.reason(completion)
            status = status_of(completion.status, completion.reason.code)
            raise error_of(status, f'model "{self.model.name}": {words}', completion.bytes_needed)
        arrays = self._outputs
        if completion.n_outputs == len(arrays):
            shapes = completion.outputs[: len(arrays)]
            arrays = [request.shaped(array, tuple(s.dims[: s.rank]), s.bytes) for array, s in zip(arrays, shapes)]
        if len(arrays) == 1:
            return arrays[0]
        return {port.name: array for port, array in zip(self.model.outputs, arrays)}
