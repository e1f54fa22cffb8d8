# SPDX-License-Identifier: Apache-2.0
"""scenes.py SOCKET: what requests of all kinds come to, one line of JSON each. test_forms.py compares what both forms of the client say."""

import asyncio
import json
import sys

import numpy as np
import starling
from starling import form


def counting(rows, columns=4):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def read_only(array):
    array.flags.writeable = False
    return array


class Mapping(dict):
    """A dict that is not just a dict."""


class Floats(np.ndarray):
    """An array that is not just an array."""


def told(value):
    """What can be compared of a result."""
    if isinstance(value, dict):
        return {name: told(item) for name, item in value.items()}
    flags = [value.flags.c_contiguous, value.flags.writeable, value.flags.owndata]
    return [type(value).__name__, value.dtype.str, value.shape, flags, value.tolist()]


def told_of(error):
    return [type(error).__name__, getattr(error, "status", None), getattr(error, "bytes_needed", None), str(error)]


def by_infer(client, *request, **options):
    return client.infer(*request, **options)


def by_future(client, *request, **options):
    return client.submit(*request, **options).result(30)


def by_loop(client, *request, **options):
    return asyncio.run(client.infer_async(*request, **options))


class Scenes:
    def __init__(self, socket):
        self.client = starling.Client(socket, timeout=60)
        self.other = starling.Client(socket, timeout=60)
        self.closed = starling.Client(socket, timeout=60)
        self.model_of_closed = self.closed.model("echo")
        self.closed.close()

    def inputs(self):
        arena = self.client.array(counting(300))
        x, ids = counting(5, 2), np.arange(15).reshape(5, 3)
        return {
            "plain": ("echo", counting(5)),
            "arena": ("echo", arena),
            "aligned slice": ("echo", arena[4:12]),
            "slice": ("echo", arena[1:3]),
            "steps": ("echo", arena[::7]),
            "backwards": ("echo", counting(5)[::-1]),
            "columns": ("echo", np.asfortranarray(counting(5))),
            "transposed": ("echo", counting(4, 5).T),
            "broadcast": ("echo", np.broadcast_to(np.float32(3), (5, 4))),
            "read-only": ("echo", read_only(counting(5))),
            "unaligned": ("echo", np.frombuffer(b"x" + counting(2).tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 4)),
            "of another client": ("echo", self.other.array(counting(5))),
            "subclass": ("echo", counting(5).view(Floats)),
            "masked": ("echo", np.ma.masked_array(counting(2), counting(2) > 3)),
            "list": ("echo", [[1, 2, 3, 4]]),
            "memoryview": ("echo", memoryview(counting(5))),
            "scalar": ("vector", 3),
            "vector": ("vector", [1, 2, 3]),
            "by name": ("echo", {"x": counting(5)}),
            "two by name": ("pair", {"ids": ids, "x": x}),
            "two in order": ("pair", [x, ids]),
            "two in a tuple": ("pair", (x, ids)),
            "two in a mapping": ("pair", Mapping(ids=ids, x=x)),
            "two, one a list": ("pair", {"ids": ids.tolist(), "x": x}),
            "unknown size": ("first3", counting(9, 2)),
            "model": (self.client.model("echo"), counting(5)),
            "float64": ("echo", counting(5).astype(np.float64)),
            "other byte order": ("echo", counting(5).astype(">f4")),
            "integers": ("echo", np.ones((5, 4), np.int32)),
            "objects": ("echo", np.ones((5, 4), object)),
            "words": ("echo", "a text"),
            "None": ("echo", None),
            "shape": ("echo", counting(5, 3)),
            "rank": ("echo", np.zeros(4, np.float32)),
            "rank 9": ("echo", np.zeros((1,) * 8 + (4,), np.float32)),
            "no samples": ("echo", counting(0)),
            "a list of none": ("echo", []),
            "too many samples": ("echo", counting(1025)),
            "wrong name": ("echo", {"y": counting(5)}),
            "one of two": ("pair", {"x": x}),
            "one in order": ("pair", [x]),
            "an array for two": ("pair", x),
            "three for two": ("pair", {"x": x, "ids": ids, "more": x}),
            "samples differ": ("pair", [x, ids[:2]]),
            "no such model": ("resnet", counting(5)),
            "loading": ("loading", counting(5)),
            "failed": ("failed", counting(5)),
            "broken": ("broken", [[1.0]]),
            "a number for a model": (3, counting(5)),
            "a list for a model": ([], counting(5)),
            "another client's model": (self.other.model("echo"), counting(5)),
        }

    def outputs(self):
        client = self.client
        return {
            "given": client.empty((5, 4)),
            "larger": client.empty((9, 4)),
            "flat": client.empty(20),
            "of bytes": client.empty(80, np.uint8),
            "by name": {"y": client.empty((5, 4))},
            "in a list": [client.empty((5, 4))],
            "too small": client.empty((2, 4)),
            "empty": client.empty((0, 4)),
            "plain": counting(5),
            "of another client": self.other.empty((5, 4)),
            "slice": client.empty((9, 4))[1:6],
            "steps": client.empty((10, 4))[::2],
            "columns": client.empty((4, 5)).T,
            "read-only": read_only(client.empty((5, 4))),
            "read-only, wrong type": read_only(client.empty((5, 4), np.int32)),
            "rank 9": client.empty((1,) * 7 + (5, 4)),
            "float64": client.empty((5, 4), np.float64),
            "a number": 3,
            "wrong name": {"z": client.empty((5, 4))},
        }

    def options(self):
        for timeout in (5, 5.0, 1e30, np.float32(5), True, float("nan"), float("inf"), "soon"):
            yield {"timeout": timeout}
        for priority in (0, 3, True, 9, -1, 2**32, 1.5, None, "high", np.int64(1)):
            yield {"priority": priority}
        for session in (1, 2**64, "x", 0.5):
            yield {"session": session}

    def play(self, way, name, client, *request, **options):
        try:
            outcome = told(way(client, *request, **options))
        except Exception as error:
            outcome = told_of(error)
        print(json.dumps([way.__name__, name, outcome]))

    def play_all(self, way):
        for name, request in self.inputs().items():
            self.play(way, name, self.client, *request)
        for name, array in self.outputs().items():
            self.play(way, "outputs " + name, self.client, "echo", counting(5), outputs=array)
        for options in self.options():
            self.play(way, repr(options), self.client, "echo", counting(5), **options)
        for model in ("echo", self.model_of_closed, "resnet"):
            self.play(way, "closed", self.closed, model, counting(5))
        y = self.client.empty((5, 4))
        print(json.dumps([way.__name__, "outputs are the result", way(self.client, "echo", counting(5), outputs=y) is y]))


def main(socket):
    scenes = Scenes(socket)
    for way in (by_infer, by_future, by_loop):
        scenes.play_all(way)
    print(json.dumps(["form", form.NAME]))


main(sys.argv[1])
