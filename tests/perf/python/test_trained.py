# SPDX-License-Identifier: Apache-2.0
"""Rules of reading trained weights: tensors come out as they went in, and a pickle that names more than tensors is refused."""

import collections
import io
import json
import os
import pickle
import tempfile
import unittest

import numpy as np
import trained


class Named:
    """Pickles as the name of a module's member that is not there."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Pickler(pickle._Pickler):
    """Writes what the framework writes, without it."""

    def persistent_id(self, value):
        return value if isinstance(value, tuple) and value and value[0] == "storage" else None

    def save_named(self, value):
        self.write(pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode())

    dispatch = {**pickle._Pickler.dispatch, Named: save_named}


class Tensor:
    def __init__(self, *arguments, function=("torch._utils", "_rebuild_tensor_v2")):
        self.arguments, self.function = arguments, function


def save_tensor(pickler, tensor):
    pickler.save(Named(*tensor.function))
    pickler.save(tensor.arguments)
    pickler.write(pickle.REDUCE)


Pickler.dispatch[Tensor] = save_tensor


def written(tensors, elements):
    """The path of a file of five pickles and one storage called "0"."""
    stream = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, {}, tensors, ["0"]):
        Pickler(stream, 2).dump(part)
    stream.write(len(elements).to_bytes(8, "little") + np.asarray(elements, "<f4").tobytes())
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(stream.getvalue())
    return file.name


STORAGE = ("storage", Named("torch", "FloatStorage"), "0", "cpu", 6, None)


class StateDict(unittest.TestCase):
    def read(self, tensors, elements):
        path = written(tensors, elements)
        self.addCleanup(os.remove, path)
        return trained.read_state_dict(path)

    def test_a_tensor_is_a_view_of_its_storage(self):
        turned = Tensor(STORAGE, 1, (2, 2), (1, 2), False, collections.OrderedDict())
        tensors = self.read(collections.OrderedDict(w=turned), range(6))
        np.testing.assert_array_equal(tensors["w"], [[1, 3], [2, 4]])

    def test_a_view_beyond_its_storage_is_refused(self):
        with self.assertRaisesRegex(ValueError, "reaches past its storage of 6 elements"):
            self.read({"w": Tensor(STORAGE, 3, (2, 2), (2, 1), False, None)}, range(6))

    def test_any_other_function_is_refused(self):
        with self.assertRaisesRegex(pickle.UnpicklingError, "names os.system"):
            self.read({"w": Tensor("true", function=("os", "system"))}, range(6))


class SafeTensors(unittest.TestCase):
    def test_tensors_come_by_name_type_and_shape(self):
        data = np.arange(6, dtype="<f4")
        header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
        with tempfile.NamedTemporaryFile() as file:
            file.write(len(header).to_bytes(8, "little") + header + data.tobytes())
            file.flush()
            np.testing.assert_array_equal(trained.read_safetensors(file.name)["w"], data.reshape(2, 3))


if __name__ == "__main__":
    unittest.main()
