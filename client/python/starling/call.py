# SPDX-License-Identifier: Apache-2.0
"""One request on the Python side: its arrays, its C structs, and what its completion means.

A call keeps its arrays alive until its completion has come, whatever becomes of the caller: until then their memory is the runtime's.
"""

import ctypes
import errno
from collections import namedtuple

import numpy as np

from . import arena
from .errors import InvalidRequest, error_of
from .library import Request, Tensor

#: Nanoseconds: waiting in queues, waiting for a batch, computing, combining the members' predictions.
Times = namedtuple("Times", "queued_ns batched_ns computing_ns combining_ns")

_GUESS_BYTES = 65536  # for outputs whose size only the model knows


def _by_port(values, ports, what, model):
    """Arrays in the order of `ports`, from one array, a sequence, or a mapping by name."""
    if isinstance(values, dict):
        unknown = set(values) - {port.name for port in ports}
        missing = [port.name for port in ports if port.name not in values]
        if unknown or missing:
            raise InvalidRequest(
                -errno.EINVAL, f'model "{model}": {what}s are {[p.name for p in ports]}, got {sorted(map(str, values))}'
            )
        return [values[port.name] for port in ports]
    if isinstance(values, (list, tuple)) and len(ports) > 1:
        if len(values) != len(ports):
            raise InvalidRequest(-errno.EINVAL, f'model "{model}": wants {len(ports)} {what}s, got {len(values)}')
        return list(values)
    if len(ports) != 1:
        raise InvalidRequest(-errno.EINVAL, f'model "{model}": wants {len(ports)} {what}s by name, got one array')
    return [values]


class Call:
    def __init__(self, core, model, inputs, outputs, timeout, priority, session):
        self._core = core
        self.model = model
        self.id = ctypes.c_uint64()
        self.times = None
        self._inputs = [
            self._place_input(port, value)
            for port, value in zip(model.inputs, _by_port(inputs, model.inputs, "input", model.name))
        ]
        self._given = outputs is not None
        self._outputs = self._place_outputs(outputs)
        self._fill(timeout, priority, session)

    def _place_input(self, port, value):
        array = np.asarray(value)
        if isinstance(value, np.ndarray):
            if not arena.suits(array.dtype, port.number):
                raise InvalidRequest(
                    -errno.EINVAL, f'model "{self.model.name}": input "{port.name}" wants {port.dtype}, got {array.dtype}'
                )
        else:
            array = array.astype(port.dtype)
        if array.size == 0 or array.ndim > 8:
            raise InvalidRequest(
                -errno.EINVAL, f'model "{self.model.name}": input "{port.name}" wants shape {port.shape}, got {array.shape}'
            )
        if arena.lies_in(self._core, array):
            return array
        placed = arena.empty(self._core, array.shape, array.dtype)
        placed[...] = array
        return placed

    def _samples(self):
        for port, array in zip(self.model.inputs, self._inputs):
            if port.batch_axis is not None and port.batch_axis < array.ndim:
                return array.shape[port.batch_axis]
        return 1

    def _room_for(self, port, samples):
        """A flat array with room for what the model says, or a guess where it does not say."""
        shape = [samples if axis == port.batch_axis else n for axis, n in enumerate(port.shape or ())]
        if port.shape is None or None in shape:
            guess = max([_GUESS_BYTES] + [array.nbytes for array in self._inputs])
            return arena.empty(self._core, guess // port.dtype.itemsize, port.dtype)
        return arena.empty(self._core, shape, port.dtype)

    def _place_outputs(self, outputs):
        ports = self.model.outputs
        if outputs is None:
            samples = self._samples()
            return [self._room_for(port, samples) for port in ports]
        arrays = _by_port(outputs, ports, "output", self.model.name)
        for port, array in zip(ports, arrays):
            if not isinstance(array, np.ndarray) or not arena.lies_in(self._core, array):
                raise InvalidRequest(-errno.EINVAL, f'output "{port.name}" is no dense, aligned array of this client\'s arena')
            if not arena.suits(array.dtype, port.number):
                raise InvalidRequest(-errno.EINVAL, f'output "{port.name}" wants {port.dtype}, got {array.dtype}')
        return arrays

    def _tensor(self, port, array):
        tensor = Tensor(arena.address_of(array), array.nbytes, port.number, array.ndim)
        tensor.dims[: array.ndim] = array.shape
        return tensor

    def _fill(self, timeout, priority, session):
        model = self.model
        deadline = 0 if timeout is None else self._core.library.clock_ns() + max(1, int(timeout * 1e9))
        self._c_inputs = (Tensor * len(self._inputs))(*map(self._tensor, model.inputs, self._inputs))
        self._c_outputs = (Tensor * len(self._outputs))(*map(self._tensor, model.outputs, self._outputs))
        self.request = Request(
            model=model._handle,
            inputs=self._c_inputs,
            outputs=self._c_outputs,
            n_inputs=len(self._inputs),
            n_outputs=len(self._outputs),
            priority=priority,
            deadline_ns=deadline,
            session=session,
        )

    def grow(self, error):
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

    def _shaped(self, array, shape):
        dims = tuple(shape.dims[: shape.rank])
        if array.shape == dims:
            return array
        return array.reshape(-1)[: shape.bytes // array.itemsize].reshape(dims)

    def result(self, completion):
        """The outputs, or raises what the status says. While the completion's shapes are valid."""
        self.times = Times(completion.queued_ns, completion.batched_ns, completion.computing_ns, completion.combining_ns)
        if completion.status < 0:
            self.model.stale |= completion.status == -errno.ESTALE
            words = self._core.library.reason(completion)
            raise error_of(completion.status, f'model "{self.model.name}": {words}', completion.bytes_needed)
        arrays = self._outputs
        if completion.n_outputs == len(arrays):
            arrays = [self._shaped(array, completion.outputs[i]) for i, array in enumerate(arrays)]
        if len(arrays) == 1:
            return arrays[0]
        return {port.name: array for port, array in zip(self.model.outputs, arrays)}
