# SPDX-License-Identifier: Apache-2.0
"""What a user's models take and give, through `starling serve` and the Python client. Skipped where `starling` is not built."""

import asyncio
import os
import signal
import tempfile
import time
import unittest

import numpy as np
import onnx_file as onnx
import starling
from starling import arena, form
from world import LIMIT, RealRuntime

F32, I64, BOOL = 1, 7, 9
LONGEST = 1024  # bytes of a name
WIDE = ("caches31", "caches66")  # with 125 and 265 tensors
LENGTHS = (63, 64, 65, 127, 128, 129, LONGEST - 1, LONGEST)


def turning(number):
    """y [N, 3, 2] = x [N, 2, 3] turned over, of any type."""
    return onnx.model(
        [onnx.node("Transpose", ["x"], ["y"], perm=[0, 2, 1])],
        [onnx.port("x", number, ("N", 2, 3))],
        [onnx.port("y", number, ("N", 3, 2))],
    )


def finding():
    """The places of what is not 0, the place of the largest, and the sum of all, in which samples meet."""
    return onnx.model(
        [
            onnx.node("NonZero", ["x"], ["places"]),
            onnx.node("ArgMax", ["x"], ["largest"], axis=1, keepdims=0),
            onnx.node("ReduceSum", ["x"], ["sum"], keepdims=0),
        ],
        [onnx.port("x", F32, ("N", 4))],
        [onnx.port("places", I64, (2, "K")), onnx.port("largest", I64, ("N",)), onnx.port("sum", F32, ())],
    )


def meeting():
    """y = the running sum of x [N, 3] along N, which is therefore no batch."""
    return onnx.model(
        [onnx.node("CumSum", ["x", "axis"], ["y"])],
        [onnx.port("x", F32, ("N", 3))],
        [onnx.port("y", F32, ("N", 3))],
        [onnx.constant("axis", I64, np.array(0, np.int64))],
    )


def sequence_major():
    """y [T, N, 3] = the running sum of x [T, N, 3] along T: the batch is on axis 1."""
    return onnx.model(
        [onnx.node("CumSum", ["x", "axis"], ["y"])],
        [onnx.port("x", F32, ("T", "N", 3))],
        [onnx.port("y", F32, ("T", "N", 3))],
        [onnx.constant("axis", I64, np.array(0, np.int64))],
    )


def stateful():
    """As recurrent networks are exported: x [N, T, 3], a state [2, N, 3], a rate without dimensions; y = x + rate, next = 2 state."""
    return onnx.model(
        [onnx.node("Add", ["x", "rate"], ["y"]), onnx.node("Add", ["state", "state"], ["next"])],
        [onnx.port("x", F32, ("N", "T", 3)), onnx.port("state", F32, (2, "N", 3)), onnx.port("rate", F32, ())],
        [onnx.port("y", F32, ("N", "T", 3)), onnx.port("next", F32, (2, "N", 3))],
    )


def declared_wrongly(dimensions):
    """y [2] = the sums of the rows of x, and declared as [1, 2]."""
    return onnx.model(
        [onnx.node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        [onnx.port("x", F32, dimensions)],
        [onnx.port("y", F32, (1, 2))],
        [onnx.constant("axes", I64, np.array([1], np.int64))],
    )


def long_name(length, end):
    """A name of so many bytes, the last of which is `end`: names of one length differ nowhere else."""
    return "StatefulPartitionedCall/é" + "x" * (length - 26 - len(end.encode())) + end


def subtracting(length):
    """difference = first - second, reversed = second - first, all under names of so many bytes, the dimension too."""
    first, second, one, other, size = (long_name(length, end) for end in ("1", "2", "3", "4", "ü"))
    return onnx.model(
        [onnx.node("Sub", [first, second], [one]), onnx.node("Sub", [second, first], [other])],
        [onnx.port(first, F32, ("N", size)), onnx.port(second, F32, ("N", size))],
        [onnx.port(one, F32, ("N", size)), onnx.port(other, F32, ("N", size))],
    )


def measuring(length):
    """The sizes of a dimension that has a name of so many bytes and of one that only ends otherwise, and of one without a name."""
    x, y, a, b = "x" * length, "x" * (length - 1) + "y", long_name(length, "a"), long_name(length, "b")
    return onnx.model(
        [onnx.node("ReduceSum", [x, "axes"], ["sum_x"], keepdims=0), onnx.node("ReduceSum", [y, "axes"], ["sum_y"], keepdims=0)],
        [onnx.port(x, F32, ("N", a, b)), onnx.port(y, F32, ("N", a, b))],
        [onnx.port("sum_x", F32, ("N", a)), onnx.port("sum_y", F32, ("N", a))],
        [onnx.constant("axes", I64, np.array([2], np.int64))],
    )


def wide():
    """y [N, 100000] = the running sum along N of each x [N, 1], which is as wide as no input."""
    return onnx.model(
        [onnx.node("CumSum", ["x", "axis"], ["sum"]), onnx.node("Expand", ["sum", "shape"], ["y"])],
        [onnx.port("x", F32, ("N", 1))],
        [onnx.port("y", F32, ("N", 100000))],
        [
            onnx.constant("axis", I64, np.array(0, np.int64)),
            onnx.constant("shape", I64, np.array([1, 100000], np.int64)),
        ],
    )


def squeezing():
    """y = the sums of the rows of x [N, 3] without any dimension of 1: [N], but of one row a scalar."""
    return onnx.model(
        [onnx.node("ReduceSum", ["x", "axes"], ["sums"]), onnx.node("Squeeze", ["sums"], ["y"])],
        [onnx.port("x", F32, ("N", 3))],
        [onnx.port("y", F32, ("N",))],
        [onnx.constant("axes", I64, np.array([1], np.int64))],
    )


def caches(layers):
    """As decoders are exported: x [N, 4] and two caches a layer [N, P, 4] come, and each goes out with x behind it."""
    names = [f"{kind}{i}" for i in range(layers) for kind in ("key", "value")]
    nodes = [onnx.node("Unsqueeze", ["x", "axis"], ["row"])]
    nodes += [onnx.node("Concat", [name, "row"], [name + "_out"], axis=1) for name in names]
    return onnx.model(
        nodes,
        [onnx.port("x", F32, ("N", 4))] + [onnx.port(name, F32, ("N", "P", 4)) for name in names],
        [onnx.port(name + "_out", F32, ("N", "P1", 4)) for name in names],
        [onnx.constant("axis", I64, np.array([1], np.int64))],
    )


def fixed():
    """y = -x of just [1, 2, 3]."""
    return onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.port("x", F32, (1, 2, 3))], [onnx.port("y", F32, (1, 2, 3))])


WEIGHTS = np.random.default_rng(7).standard_normal((3, 3)).astype(np.float32)


def branch(operator):
    """r = what @operator makes of the h around it."""
    return onnx.graph([onnx.node(operator, ["next"], ["r"])], [], [onnx.port("r", F32, (2, 3))])


def recurrent():
    """h' = relu(h w + x) of each x [5, 2, 3]; rows of h', or -h' where their sum is below 4: a Scan around an If."""
    body = onnx.graph(
        [
            onnx.node("MatMul", ["h", "w"], ["product"]),
            onnx.node("Add", ["product", "step"], ["sum"]),
            onnx.node("Relu", ["sum"], ["next"]),
            onnx.node("ReduceSum", ["next"], ["all"], keepdims=0),
            onnx.node("Less", ["all", "four"], ["small"]),
            onnx.node("If", ["small"], ["row"], then_branch=branch("Neg"), else_branch=branch("Identity")),
        ],
        [onnx.port("h", F32, (2, 3)), onnx.port("step", F32, (2, 3))],
        [onnx.port("next", F32, (2, 3)), onnx.port("row", F32, (2, 3))],
        [onnx.constant("w", F32, WEIGHTS), onnx.constant("four", F32, np.array(4, np.float32))],
    )
    return onnx.model(
        [onnx.node("Scan", ["h0", "x"], ["last", "rows"], body=body, num_scan_inputs=1)],
        [onnx.port("h0", F32, (2, 3)), onnx.port("x", F32, (5, 2, 3))],
        [onnx.port("last", F32, (2, 3)), onnx.port("rows", F32, (5, 2, 3))],
    )


def repeated():
    """y = x w w ... w, as often as a request says: a Loop."""
    body = onnx.graph(
        [onnx.node("MatMul", ["h", "w"], ["next"]), onnx.node("Identity", ["go"], ["on"])],
        [onnx.port("i", I64, ()), onnx.port("go", BOOL, ()), onnx.port("h", F32, (2, 3))],
        [onnx.port("on", BOOL, ()), onnx.port("next", F32, (2, 3))],
        [onnx.constant("w", F32, WEIGHTS)],
    )
    return onnx.model(
        [onnx.node("Loop", ["times", "", "x"], ["y"], body=body)],
        [onnx.port("times", I64, ()), onnx.port("x", F32, (2, 3))],
        [onnx.port("y", F32, (2, 3))],
    )


def drawing(**attributes):
    """a, b [N, 64]: normal numbers that two nodes draw for x."""
    return onnx.model(
        [onnx.node("RandomNormalLike", ["x"], [name], **attributes) for name in ("a", "b")],
        [onnx.port("x", F32, ("N", 64))],
        [onnx.port(name, F32, ("N", 64)) for name in ("a", "b")],
    )


def drawing_once():
    """y = x [N, 64] plus one row of numbers for all of a request."""
    return onnx.model(
        [onnx.node("RandomUniform", [], ["noise"], shape=[1, 64]), onnx.node("Add", ["x", "noise"], ["y"])],
        [onnx.port("x", F32, ("N", 64))],
        [onnx.port("y", F32, ("N", 64))],
    )


def drawing_for_found(**attributes):
    """Normal numbers [2, K] for the places of what is not 0 in x [N, 8]."""
    return onnx.model(
        [
            onnx.node("NonZero", ["x"], ["places"]),
            onnx.node("Cast", ["places"], ["like"], to=F32),
            onnx.node("RandomNormalLike", ["like"], ["y"], **attributes),
        ],
        [onnx.port("x", F32, ("N", 8))],
        [onnx.port("y", F32, (2, "K"))],
    )


def drawing_in_rounds():
    """Rows [times, 64], each drawn in a round of a Loop, within the branch of an If."""
    branch = onnx.graph([onnx.node("RandomNormalLike", ["x"], ["r"])], [], [onnx.port("r", F32, (64,))])
    other = onnx.graph([onnx.node("Neg", ["x"], ["r"])], [], [onnx.port("r", F32, (64,))])
    body = onnx.graph(
        [onnx.node("If", ["go"], ["row"], then_branch=branch, else_branch=other), onnx.node("Identity", ["go"], ["on"])],
        [onnx.port("i", I64, ()), onnx.port("go", BOOL, ())],
        [onnx.port("on", BOOL, ()), onnx.port("row", F32, (64,))],
    )
    return onnx.model(
        [onnx.node("Loop", ["times", ""], ["rows"], body=body)],
        [onnx.port("times", I64, ()), onnx.port("x", F32, (64,))],
        [onnx.port("rows", F32, ("times", 64))],
    )


def drawing_truths():
    """truths [N, 4] with the probabilities x, and 1,000 classes of each row by their logarithms."""
    return onnx.model(
        [
            onnx.node("Bernoulli", ["x"], ["truths"], seed=3.0, dtype=BOOL),
            onnx.node("Log", ["x"], ["logits"]),
            onnx.node("Multinomial", ["logits"], ["classes"], sample_size=1000, seed=4.0, dtype=I64),
        ],
        [onnx.port("x", F32, ("N", 4))],
        [onnx.port("truths", BOOL, ("N", 4)), onnx.port("classes", I64, ("N", 1000))],
    )


BIAS = np.array([1, 2, 3], np.float32)


def adaptable(samples, ir=8):
    """y = s x w + b of x [N, 3], with initializers for w, s and b, which are inputs too, two of them before x."""
    return onnx.model(
        [
            onnx.node("MatMul", ["x", "w"], ["product"]),
            onnx.node("Mul", ["product", "s"], ["scaled"]),
            onnx.node("Add", ["scaled", "b"], ["y"]),
        ],
        [onnx.port("w", F32, (3, 3)), onnx.port("s", F32, ()), onnx.port("x", F32, (samples, 3)), onnx.port("b", F32, ("M",))],
        [onnx.port("y", F32, (samples, 3))],
        [onnx.constant("w", F32, WEIGHTS), onnx.constant("b", F32, BIAS), onnx.constant("s", F32, np.array(2, np.float32))],
        ir=ir,
    )


def optional(model):
    return {"1/model.onnx": model, "config.yaml": b"optional_inputs: true\n"}


def doubling(given, made):
    """`made` [N, 4] = twice `given`."""
    return onnx.model(
        [onnx.node("Add", [given, given], [made])],
        [onnx.port(given, F32, ("N", 4))],
        [onnx.port(made, F32, ("N", 4))],
    )


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Reloads(unittest.TestCase):
    """What the newest version has other names for is taken by the next call, by name and by a Model that was looked up before."""

    NAMES = (("a", "y"), ("b", "y"), ("b", "z"), ("a", "y"))

    @classmethod
    def setUpClass(cls):
        cls.runtime = RealRuntime({name: {"1/model.onnx": doubling("a", "y")} for name in ("renamed", "seen")})

    @classmethod
    def tearDownClass(cls):
        cls.runtime.stop()

    def bring(self, admin, model, version, given, made):
        path = os.path.join(self.runtime.folder, "models", model, str(version))
        os.makedirs(path)
        with open(os.path.join(path, "model.onnx"), "wb") as file:
            file.write(doubling(given, made))
        admin.reload(model)

    @staticmethod
    def ways_of(client):
        return (
            client.infer,
            lambda *request, **options: client.submit(*request, **options).result(60),
            lambda *request, **options: asyncio.run(client.infer_async(*request, **options)),
        )

    def test_the_next_call_takes_what_the_newest_version_names(self):
        x = np.ones((2, 4), np.float32)
        with self.runtime.connect() as client, self.runtime.connect(role="admin") as admin:
            held = client.model("renamed")
            for version, (given, made) in enumerate(self.NAMES, 1):
                if version > 1:
                    self.bring(admin, "renamed", version, given, made)
                for way in self.ways_of(client):
                    for model in ("renamed", held):
                        np.testing.assert_array_equal(way(model, {given: x}), 2 * x)
                        np.testing.assert_array_equal(way(model, {given: x}, outputs=[made]), 2 * x)
                        np.testing.assert_array_equal(way(model, {given: x[:0]}), x[:0])
                        for other in {"a", "b"} - {given}:
                            wrong = f'model "renamed", version {version}: inputs are "{given}", got "{other}"'
                            with self.assertRaisesRegex(starling.InvalidRequest, wrong):
                                way(model, {other: x})
                        for other in {"y", "z"} - {made}:
                            with self.assertRaisesRegex(starling.InvalidRequest, f"version {version}: there is no output"):
                                way(model, {given: x}, outputs=[other])
                self.assertEqual([port.name for port in client.model("renamed").inputs], [given])
                self.assertEqual([port.name for port in held.inputs], ["a"])

    def test_the_first_call_after_a_reload_may_be_any(self):
        """Each with a client of its own, whose first sight of the new version it is."""
        x = np.ones((2, 4), np.float32)
        version = 1
        with self.runtime.connect(role="admin") as admin:
            for i in range(3):
                for requests in ("inputs", "outputs", "nothing"):
                    for by_model in (False, True):
                        with self.runtime.connect() as client:
                            held = client.model("seen")
                            version += 1
                            name = f"i{version}"
                            self.bring(admin, "seen", version, name, name + "_made")
                            way, model = self.ways_of(client)[i], held if by_model else "seen"
                            options = {"outputs": [name + "_made"]} if requests == "outputs" else {}
                            given = x[:0] if requests == "nothing" else x
                            np.testing.assert_array_equal(way(model, {name: given}, **options), 2 * given)


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Models(unittest.TestCase):
    @classmethod
    def arguments(cls):
        """Of the runtime."""
        return ()

    @classmethod
    def setUpClass(cls):
        models = {str(number): turning(number) for number in arena.DTYPES}
        models.update(
            finding=finding(),
            meeting=meeting(),
            major=sequence_major(),
            stateful=stateful(),
            wrong=declared_wrongly((2, 5)),
            wrong_open=declared_wrongly((2, "M")),
            wide=wide(),
            squeezing=squeezing(),
            caches=caches(12),
            **{name: caches(int(name.removeprefix("caches"))) for name in WIDE},
            fixed=fixed(),
            recurrent=recurrent(),
            repeated=repeated(),
            drawing=drawing(),
            drawing_of_file=drawing(seed=5.0, mean=3.0, scale=2.0),
            drawing_of_model={"1/model.onnx": drawing(), "config.yaml": b"random_seed: 7\n"},
            drawing_twin={"1/model.onnx": drawing(), "config.yaml": b"random_seed: 8\n"},
            drawing_by_both={"config.yaml": b"ensemble: {members: [drawing, drawing_copy], rule: none}\n"},
            drawing_copy=drawing(),
            drawing_once=drawing_once(),
            drawing_in_rounds=drawing_in_rounds(),
            drawing_in_rounds_again={"1/model.onnx": drawing_in_rounds(), "config.yaml": b"random_seed: 7\n"},
            drawing_truths=drawing_truths(),
            drawing_for_found=drawing_for_found(),
            drawing_for_found_again=drawing_for_found(seed=3.0),
            adaptable=optional(adaptable("N")),
            adaptable_fixed=optional(adaptable(1)),
            adaptable_too=optional(adaptable(1)),
            adaptable_mean={"config.yaml": b"ensemble: {members: [adaptable_fixed, adaptable_too], rule: mean}\n"},
            adaptable_old=optional(adaptable("N", ir=3)),
            adapted={"1/model.onnx": adaptable("N"), "config.yaml": b"optional_inputs: false\n"},
        )
        models.update((f"named{length}", subtracting(length)) for length in (*LENGTHS, LONGEST + 1))
        models.update((f"measured{length}", measuring(length)) for length in (64, 1000, LONGEST, LONGEST + 1))
        cls.runtime = RealRuntime(models, *cls.arguments())
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)

    def test_every_element_type_goes_in_and_out(self):
        random = np.random.default_rng(1)
        for number, dtype in arena.DTYPES.items():
            for samples in (1, 3, 200):
                shape = (samples, 2, 3)
                x = random.integers(0, 2, shape).astype(dtype) if number == 9 else random.integers(0, 100, shape).astype(dtype)
                y = self.client.infer(str(number), x)
                with self.subTest(dtype=dtype, number=number, samples=samples):
                    self.assertEqual(y.dtype, dtype)
                    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))

    def test_outputs_of_several_types_and_sizes_that_the_data_decide(self):
        for samples in (1, 3, 5):
            x = np.random.default_rng(samples).integers(-1, 3, (samples, 4)).astype(np.float32)
            answer = self.client.infer("finding", x)
            np.testing.assert_array_equal(answer["places"], np.array(np.nonzero(x)))
            np.testing.assert_array_equal(answer["largest"], x.argmax(axis=1))
            self.assertEqual(answer["sum"].shape, ())
            self.assertEqual(answer["sum"], x.sum())

    def test_what_leads_and_is_no_batch_may_have_any_size(self):
        model = self.client.model("meeting")
        self.assertEqual((model.inputs[0].shape, model.inputs[0].batch_axis), ((None, 3), None))
        for rows in (1, 3, 7, 1):
            x = np.random.default_rng(rows).integers(-9, 9, (rows, 3)).astype(np.float32)
            np.testing.assert_array_equal(self.client.infer(model, x), x.cumsum(axis=0))

    def test_a_batch_that_is_not_on_axis_0(self):
        for steps, samples in ((1, 1), (5, 1), (1, 4), (5, 3)):
            x = np.random.default_rng(steps).integers(-9, 9, (steps, samples, 3)).astype(np.float32)
            np.testing.assert_array_equal(self.client.infer("major", x), x.cumsum(axis=0))

    def test_a_batch_that_lies_along_another_axis_of_a_state(self):
        for samples, steps in ((1, 4), (3, 4), (3, 9)):
            random = np.random.default_rng(samples)
            x = random.standard_normal((samples, steps, 3), np.float32)
            state = random.standard_normal((2, samples, 3), np.float32)
            answer = self.client.infer("stateful", {"x": x, "state": state, "rate": np.float32(0.5)})
            np.testing.assert_array_equal(answer["y"], x + np.float32(0.5))
            np.testing.assert_array_equal(answer["next"], state * 2)
        with self.assertRaises(starling.InvalidRequest):  # the state of another number of samples
            self.client.infer("stateful", {"x": x, "state": state[:, :2], "rate": np.float32(0.5)})

    def test_outputs_have_the_rank_that_is_computed(self):
        for name in ("wrong", "wrong_open"):
            x = np.arange(10, dtype=np.float32).reshape(2, 5)
            y = self.client.infer(name, x)
            self.assertEqual(y.shape, (2,))
            np.testing.assert_array_equal(y, x.sum(axis=1))
            self.assertEqual(len(self.client.model(name).outputs[0].shape), 1)

    def test_a_rank_that_follows_the_size_is_not_known_before(self):
        self.assertIsNone(self.client.model("squeezing").outputs[0].shape)
        for rows in (1, 4, 1, 2):
            x = np.random.default_rng(rows).integers(-9, 9, (rows, 3)).astype(np.float32)
            y = self.client.infer("squeezing", x)
            self.assertEqual(y.shape, (rows,) if rows > 1 else ())
            np.testing.assert_array_equal(y, x.sum(axis=1).reshape(y.shape))

    def check_caches(self, answer, inputs):
        self.assertEqual(len(answer), len(inputs) - 1)
        for name, array in answer.items():
            expected = np.concatenate([inputs[name.removesuffix("_out")], inputs["x"][:, None]], axis=1)
            np.testing.assert_array_equal(array, expected)

    def caches_of(self, client, model, samples, steps):
        random = np.random.default_rng(samples)
        inputs = {p.name: random.standard_normal((samples, steps, 4), np.float32) for p in client.model(model).inputs[1:]}
        return dict(inputs, x=random.standard_normal((samples, 4), np.float32))

    def test_a_decoder_brings_and_gets_two_caches_a_layer(self):
        for options in ({}, {"tensors_per_request": 64, "queue_depth": 4}):
            with self.runtime.connect(**options) as client:
                for model in ("caches", *WIDE):
                    for samples, steps in ((1, 3), (2, 5)):
                        inputs = self.caches_of(client, model, samples, steps)
                        self.check_caches(client.infer(model, inputs), inputs)

    def test_requests_with_many_tensors_wait_for_each_other(self):
        with self.runtime.connect() as client:
            given = [self.caches_of(client, WIDE[-1], samples, 3) for samples in range(1, 9)]
            futures = [client.submit(WIDE[-1], inputs) for inputs in given]
            for inputs, future in zip(given, futures):
                self.check_caches(future.result(60), inputs)

    def test_names_of_any_length_are_whole_and_none_stands_for_another(self):
        a, b = np.float32([[1, 2], [3, 4]]), np.float32([[10, 20], [30, 50]])
        for length in LENGTHS:
            first, second, one, other = (long_name(length, end) for end in "1234")
            result = self.client.infer(f"named{length}", {second: b, first: a})
            self.assertEqual(list(result), [one, other])
            np.testing.assert_array_equal(result[one], a - b)
            np.testing.assert_array_equal(result[other], b - a)
            self.assertEqual([len(name.encode()) for name in result], [length, length])
            for cut in (first[:-1], first[:60]):
                with self.assertRaises(starling.InvalidRequest):
                    self.client.infer(f"named{length}", {cut: a, second: b})

    def test_dimensions_with_names_of_any_length_are_told_apart(self):
        for length in (64, 1000, LONGEST):
            x, y = np.ones((2, 3, 4), np.float32), np.ones((2, 3, 4), np.float32)
            result = self.client.infer(f"measured{length}", {"x" * length: x, "x" * (length - 1) + "y": 2 * y})
            np.testing.assert_array_equal(result["sum_x"], np.full((2, 3), 4))
            np.testing.assert_array_equal(result["sum_y"], np.full((2, 3), 8))

    def test_a_longer_name_is_refused_when_the_model_is_loaded(self):
        for model in (f"named{LONGEST + 1}", f"measured{LONGEST + 1}"):
            with self.assertRaisesRegex(starling.ModelFailed, r'input 0, "\S+\.\.\.": its name has 1025 bytes, the limit is 1024'):
                self.client.model(model)

    def test_a_fixed_batch_is_fixed(self):
        x = np.random.default_rng(1).standard_normal((3, 2, 3), np.float32)
        np.testing.assert_array_equal(self.client.infer("fixed", x[:1]), -x[:1])
        with self.assertRaisesRegex(starling.InvalidRequest, r"wants float32 \[1,2,3\], got float32 \[3,2,3\]"):
            self.client.infer("fixed", x)

    def test_a_scan_around_an_if(self):
        for seed in range(4):
            random = np.random.default_rng(seed)
            h, x = random.standard_normal((2, 3), np.float32), random.standard_normal((5, 2, 3), np.float32)
            answer = self.client.infer("recurrent", {"h0": h, "x": x})
            for step, row in zip(x, answer["rows"]):
                h = np.maximum(h @ WEIGHTS + step, 0)
                np.testing.assert_allclose(row, h if h.sum() >= 4 else -h, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(answer["last"], h, rtol=1e-5, atol=1e-5)

    def test_a_loop_whose_rounds_a_request_counts(self):
        x = np.random.default_rng(1).standard_normal((2, 3), np.float32)
        for times in (0, 1, 2, 7):
            y = self.client.infer("repeated", {"times": np.int64(times), "x": x})
            np.testing.assert_allclose(y, x @ np.linalg.matrix_power(WEIGHTS, times), rtol=1e-4, atol=1e-5)
        with self.assertRaises(starling.StarlingError):  # more rounds than a run may take
            self.client.infer("repeated", {"times": np.int64(1 << 40), "x": x})

    def test_outputs_that_are_larger_than_any_guess_come_all_the_same(self):
        x = np.ones((5, 1), np.float32)
        for future in [self.client.submit("wide", x[:rows]) for rows in (5, 1, 2)]:
            self.assertEqual(future.result(60).shape[1], 100000)
        self.assertEqual(self.client.infer("wide", x).shape, (5, 100000))

    def adapt(self, model, x, **given):
        y = self.client.infer(model, {"x": x, **given})
        w, s, b = (given.get(name, fallback) for name, fallback in (("w", WEIGHTS), ("s", np.float32(2)), ("b", BIAS)))
        np.testing.assert_allclose(y, s * (x @ w) + b, rtol=1e-5, atol=1e-5, err_msg=f"{model}: {sorted(given)}")

    def test_an_input_with_an_initializer_may_be_given_or_left_out(self):
        random = np.random.default_rng(3)
        w, b = random.standard_normal((3, 3), np.float32), random.standard_normal(3, np.float32)
        for model, sizes in (("adaptable", (1, 4, 1, 2)), ("adaptable_fixed", (1,)), ("adaptable_mean", (1,))):
            for samples in sizes:
                x = random.standard_normal((samples, 3), np.float32)
                for given in ({}, {"w": w}, {"b": b}, {"w": w, "s": np.float32(-1), "b": b}, {}):
                    self.adapt(model, x, **given)
                np.testing.assert_array_equal(self.client.infer(model, x), self.client.infer(model, {"x": x}))
                np.testing.assert_array_equal(self.client.infer(model, [x, w]), self.client.infer(model, {"x": x, "w": w}))

    def test_optional_inputs_are_the_last_and_say_so(self):
        for model in ("adaptable", "adaptable_fixed", "adaptable_mean"):
            ports = self.client.model(model).inputs
            self.assertEqual([(p.name, p.optional) for p in ports], [("x", False), ("w", True), ("s", True), ("b", True)])
            self.assertEqual(ports[3].shape, (3,))

    def test_what_no_input_may_be_left_out_and_what_has_another_shape_is_refused(self):
        x = np.zeros((1, 3), np.float32)
        with self.assertRaisesRegex(starling.InvalidRequest, 'inputs are "x", "w", "s", "b", got "w"'):
            self.client.infer("adaptable", {"w": WEIGHTS})
        with self.assertRaisesRegex(starling.InvalidRequest, r'input "w": wants float32 \[3,3\], got float32 \[1,3\]'):
            self.client.infer("adaptable", {"x": x, "w": x})

    def test_initializers_are_constants_where_the_option_says_so_and_in_files_that_had_to_list_them(self):
        x = np.random.default_rng(5).standard_normal((4, 3), np.float32)
        for model in ("adapted", "adaptable_old"):
            self.assertEqual([(p.name, p.batch_axis) for p in self.client.model(model).inputs], [("x", 0)])
            self.adapt(model, x)
            with self.assertRaises(starling.InvalidRequest):
                self.client.infer(model, {"x": x, "w": WEIGHTS})

    def draw(self, model, samples=1):
        return self.client.infer(model, np.zeros((samples, 64), np.float32))

    def test_each_request_sample_and_node_draws_anew(self):
        answers = [self.draw("drawing", samples) for samples in (1, 1, 40, 40)]
        rows = np.concatenate([answer[name] for answer in answers for name in ("a", "b")])
        self.assertEqual(len(np.unique(rows[:, 0])), len(rows))
        self.assertLess(abs(rows.mean()), 5 / np.sqrt(rows.size))
        self.assertLess(abs(rows.std() - 1), 5 / np.sqrt(2 * rows.size))
        self.assertLess(abs(np.corrcoef(rows) - np.eye(len(rows))).max(), 6 / np.sqrt(64))

    def test_by_a_seed_a_sample_draws_the_same_with_whomever_it_is_batched(self):
        for model in ("drawing_of_file", "drawing_of_model", "drawing_truths"):
            width = 4 if model == "drawing_truths" else 64
            x = np.full((150, width), 0.4, np.float32)
            wanted = self.client.infer(model, x)
            futures = [(n, self.client.submit(model, x[:n])) for n in [1, 2, 3, 1, 5, 70, 1, 9, 2, 1, 33] * 3]
            for n, future in futures:
                answer = future.result(60)
                for name in answer:
                    np.testing.assert_array_equal(answer[name], wanted[name][:n], f"{model}: {name} of {n} samples")
            for name in wanted:
                rows = {row.tobytes() for row in wanted[name]}
                self.assertGreater(len(rows), 10, f"{model}: {name}")

    def test_nodes_of_one_seed_draw_alike_and_those_of_a_models_seed_do_not(self):
        of_file, of_model, twin = (self.draw(f"drawing_{name}", 3) for name in ("of_file", "of_model", "twin"))
        np.testing.assert_array_equal(of_file["a"], of_file["b"])
        self.assertFalse((of_model["a"] == of_model["b"]).any())
        self.assertFalse((of_model["a"] == twin["a"]).any())

    def test_members_of_an_ensemble_draw_apart(self):
        answer = self.draw("drawing_by_both", 2)
        columns = {array[0, :64].tobytes() for array in answer.values()}
        self.assertEqual(len(columns), len(answer))

    def test_numbers_that_belong_to_no_sample_are_drawn_once_a_request(self):
        seen = [self.client.infer("drawing_once", np.zeros((n, 64), np.float32)) for n in (1, 3, 3)]
        for rows in seen:
            np.testing.assert_array_equal(rows, np.broadcast_to(rows[:1], rows.shape))
        self.assertFalse((seen[0][0] == seen[1][0]).any() or (seen[1][0] == seen[2][0]).any())

    def test_rounds_of_a_loop_draw_anew(self):
        inputs = {"times": np.int64(20), "x": np.zeros(64, np.float32)}
        rows = self.client.infer("drawing_in_rounds", inputs)
        self.assertEqual(len(np.unique(rows[:, 0])), 20)
        self.assertFalse((rows == self.client.infer("drawing_in_rounds", inputs)).any())
        again = self.client.infer("drawing_in_rounds_again", inputs)
        self.assertEqual(len(np.unique(again[:, 0])), 20)
        np.testing.assert_array_equal(again, self.client.infer("drawing_in_rounds_again", inputs))

    def test_numbers_for_a_shape_that_the_data_decide_are_drawn_as_others_are(self):
        x = np.ones((3, 8), np.float32)
        anew = [self.client.infer("drawing_for_found", x) for _ in range(2)]
        again = [self.client.infer("drawing_for_found_again", x) for _ in range(2)]
        self.assertEqual(anew[0].shape, (2, 24))
        self.assertFalse((anew[0] == anew[1]).any())
        np.testing.assert_array_equal(again[0], again[1])

    def test_truths_and_classes_come_as_often_as_their_shares(self):
        shares = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
        answer = self.client.infer("drawing_truths", np.tile(shares, (500, 1)))
        self.assertLess(abs(answer["truths"].mean(axis=0) - shares).max(), 5 * np.sqrt(0.25 / 500))
        counts = np.bincount(answer["classes"].ravel(), minlength=4) / answer["classes"].size
        self.assertLess(abs(counts - shares).max(), 5 * np.sqrt(0.25 / answer["classes"].size))

    def test_an_administrator_moves_their_workers(self):
        with self.runtime.connect(role="admin") as admin:
            admin.apply([("1", "cpu", 4), ("1", "cpu", 1), ("squeezing", "cpu", 1)])
            for rows in (1, 2, 9):
                x = np.random.default_rng(rows).standard_normal((rows, 2, 3), np.float32)
                np.testing.assert_array_equal(self.client.infer("1", x), x.transpose(0, 2, 1))
            with self.assertRaisesRegex(starling.StarlingError, "a worker of batch 3: its plan has powers of two"):
                admin.apply([("1", "cpu", 3)])
            admin.apply(None)


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
@unittest.skipIf(form.NAME == "native", "the runtime's processes do not know the client's form: they are tried with the other one")
class IsolatedModels(Models):
    """The same, each computed in a process of its own."""

    @classmethod
    def arguments(cls):
        cls.config = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        cls.config.write("model_defaults: {isolation: process}\n")
        cls.config.flush()
        return ("--config", cls.config.name)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.config.close()

    def workers(self):
        """The processes of the models' workers; those that compile are children of the runtime as well."""
        with open(f"/proc/{self.runtime.process.pid}/task/{self.runtime.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split() if self.command_of(pid) == b"worker"]

    def command_of(self, pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return (file.read().split(b"\0") + [b""])[1]

    def test_they_are_computed_there(self):
        x = np.ones((1, 2, 3), np.float32)
        before = self.runtime.batches("fixed", "process")
        self.client.infer("fixed", x)
        self.assertEqual(self.runtime.batches("fixed", "process"), before + 1)

    def test_what_a_process_has_not_begun_when_it_is_killed_is_computed_by_the_next(self):
        x = np.ones((1, 2, 3), np.float32)
        workers = self.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        future = self.client.submit("fixed", x)
        time.sleep(0.05)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        np.testing.assert_array_equal(future.result(LIMIT), -x)


if __name__ == "__main__":
    unittest.main()
