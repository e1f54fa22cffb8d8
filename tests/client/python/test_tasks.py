# SPDX-License-Identifier: Apache-2.0
"""Tasks at `starling serve`: a query says what is needed, and the answer is that of the variant which is told. In both forms."""

import asyncio
import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from test_models import F32
from world import RealRuntime

TASK = """task:
  variants: [rough, fine, finest]
  accuracy: [0.5, 0.8, 0.9]
  cost: [1, 2, 4]
  load: all
"""
ADDS = {"rough": 1, "fine": 2, "finest": 3}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def adding(number, input_name="x", columns=3):
    """y = x + @number."""
    return onnx.model(
        [onnx.node("Add", [input_name, "c"], ["y"])],
        [onnx.port(input_name, F32, ("N", columns))],
        [onnx.port("y", F32, ("N", columns))],
        [onnx.constant("c", F32, np.array([number], np.float32))],
    )


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Tasks(unittest.TestCase):
    def serve(self, task=TASK, **others):
        nets = {name: adding(number) for name, number in ADDS.items()}
        runtime = RealRuntime({**nets, **others, "guess": {"config.yaml": task.encode()}})
        self.addCleanup(runtime.stop)
        client = runtime.connect()
        self.addCleanup(client.close)
        return client

    def expect(self, client, variant, **needs):
        """Of a future, which says the variant, and of infer()."""
        query = client.query("guess", **needs)
        future = client.submit(query, X)
        np.testing.assert_array_equal(future.result(20), X + ADDS[variant])
        self.assertEqual(future.answer.variant, variant)
        np.testing.assert_array_equal(client.infer(query, {"x": X}), X + ADDS[variant])
        np.testing.assert_array_equal(asyncio.run(client.infer_async(query, X)), X + ADDS[variant])
        return future.answer

    def test_a_variant_that_meets_the_needs_answers_and_is_told(self):
        client = self.serve()
        answer = self.expect(client, "rough", accuracy=0.4)
        self.assertEqual((answer.accuracy, answer.met, answer.tries), (0.5, "all", 1))
        self.assertGreater(answer.expected, 0)
        self.expect(client, "fine", accuracy=0.6)
        self.expect(client, "finest")
        self.expect(client, "fine", cost=3)
        self.expect(client, "fine", accuracy=0.75, latency=10, deadline=True)
        self.assertEqual(self.expect(client, "fine", accuracy=0.85, accuracy_least=0.2, cost=3).met, "least")
        self.assertEqual(self.expect(client, "finest", accuracy=0.95, closest=True).met, "closest")
        np.testing.assert_array_equal(client.infer("guess", X), X + 3)
        future = client.submit("fine", X)
        np.testing.assert_array_equal(future.result(20), X + 2)
        self.assertIsNone(future.answer)
        self.assertIs(client.query("guess", accuracy=0.6), client.query("guess", accuracy=0.6))

    def test_the_most_accurate_alone_is_loaded_and_another_when_it_is_chosen(self):
        client = self.serve(TASK.replace("  load: all\n", ""))
        states = {variant.name: variant.state for variant in client.tasks()["guess"]}
        self.assertEqual(states, {"rough": "available", "fine": "available", "finest": "serves"})
        self.expect(client, "finest", accuracy=0.4)
        self.expect(client, "rough", accuracy=0.4, cost=1)

    def test_what_cannot_be_met_raises_unmet_with_the_best(self):
        client = self.serve()
        with self.assertRaisesRegex(starling.Unmet, r'"guess": accuracy of at least 0.95.*"finest", with 0.9'):
            client.query("guess", accuracy=0.95)
        with self.assertRaisesRegex(starling.Unmet, r"cost of at most 1.5.*\"fine\", for 2"):
            client.query("guess", accuracy=0.7, cost=1.5)
        with self.assertRaisesRegex(starling.Unmet, r"latency of at most 0.0 us.*takes"):
            client.query("guess", latency=1e-9)
        with self.assertRaisesRegex(starling.InvalidRequest, r"accuracy 95 is not a share"):
            client.query("guess", accuracy=95)
        with self.assertRaisesRegex(starling.NotFound, r'"fine": it is a model'):
            client.query("fine")
        with self.assertRaises(starling.InvalidRequest):
            client.infer(client.query("guess"), np.zeros((2, 4), np.float32))

    def test_variants_are_listed_and_one_that_differs_is_left_out(self):
        task = "task: {variants: [fine, wide, other], accuracy: [0.8, 0.99, 0.1], load: all}\n"
        client = self.serve(task, wide=adding(9, columns=4), other=adding(4, "z"))
        fine, wide, other = client.tasks()["guess"]
        self.assertEqual((fine.name, fine.state, fine.accuracy), ("fine", "serves", 0.8))
        self.assertGreater(fine.latency, 0)
        self.assertGreater(fine.memory_bytes, 0)
        self.assertEqual(wide.state, "differs")
        self.assertRegex(wide.reason, r'input "x" is float32 \[N,4\].*"fine" is float32 \[N,3\]')
        self.assertEqual(other.state, "serves", "names may differ")
        np.testing.assert_array_equal(client.infer("guess", X), X + 2)


if __name__ == "__main__":
    unittest.main()
