# SPDX-License-Identifier: Apache-2.0
"""Labels: words in the place of integers, of outputs and of inputs. Skipped where `starling` is not built."""

import asyncio
import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import RealRuntime

F32, I64, STRING = 1, 7, 8
CLASSES = ["setosa", "versicolor", "ein Veilchen \u2740"]


def classifier(rows):
    """Which column of x [rows, 3] is the largest: its word, and the columns by their words."""
    return onnx.model(
        [
            onnx.node("ArgMax", ["x"], ["place"], axis=1),
            onnx.ml_node("ArrayFeatureExtractor", ["classes", "place"], ["row"]),
            onnx.node("Reshape", ["row", "flat"], ["y"]),
            onnx.ml_node("ZipMap", ["x"], ["p"], classlabels_strings=CLASSES),
        ],
        [onnx.port("x", F32, (rows, 3))],
        [onnx.port("y", STRING, (rows,)), onnx.port("p", F32, (rows, 3))],
        [onnx.words("classes", CLASSES), onnx.constant("flat", I64, np.array([-1], np.int64))],
    )


def encoder(zeros):
    """sex and port [N, 1] of words as rows of 0 and 1."""
    return onnx.model(
        [
            onnx.ml_node("OneHotEncoder", ["sex"], ["a"], cats_strings=["female", "male"], zeros=zeros),
            onnx.ml_node("OneHotEncoder", ["port"], ["b"], cats_strings=["C", "Q", "S"], zeros=zeros),
            onnx.node("Concat", ["a", "b"], ["y"], axis=2),
        ],
        [onnx.port("sex", STRING, ("N", 1)), onnx.port("port", STRING, ("N", 1))],
        [onnx.port("y", F32, ("N", 1, 5))],
    )


def filled():
    """sex [N, 1] with "male" in the place of "", as rows of 0 and 1; and what it is then called."""
    return onnx.model(
        [
            onnx.node("Equal", ["sex", "nothing"], ["missing"]),
            onnx.node("Where", ["missing", "often", "sex"], ["full"]),
            onnx.ml_node("OneHotEncoder", ["full"], ["y"], cats_strings=["female", "male"], zeros=1),
            onnx.node("Equal", ["full", "often"], ["is_male"]),
            onnx.node("Where", ["is_male", "mr", "ms"], ["title"]),
        ],
        [onnx.port("sex", STRING, ("N", 1))],
        [onnx.port("y", F32, ("N", 1, 2)), onnx.port("title", STRING, ("N", 1))],
        [onnx.words(name, [word]) for name, word in (("nothing", ""), ("often", "male"), ("mr", "Mr"), ("ms", "Ms"))],
    )


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Labels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = RealRuntime(
            {
                "iris": classifier("N"),
                "open": classifier("?"),
                "one": classifier(1),
                "passengers": encoder(1),
                "strict": encoder(0),
                "filled": filled(),
                "other": encoder(1).replace(b"female", b"frauen"),
                "mixed": {"config.yaml": b"ensemble: {members: [passengers, other], rule: none}\n"},
            }
        )
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)

    x = np.array([[0, 2, 1], [1, 0, 5], [7, 0, 0], [0, 3, 1]], np.float32)
    wanted = [CLASSES[1], CLASSES[2], CLASSES[0], CLASSES[1]]

    def test_an_output_has_the_words_of_its_integers_and_one_for_each_column(self):
        for name in "iris", "open", "one":
            with self.subTest(name):
                model = self.client.model(name)
                self.assertEqual(model.outputs[0].labels, tuple(CLASSES))
                self.assertEqual(model.outputs[1].labels, tuple(CLASSES))
                self.assertEqual(model.inputs[0].labels, ())

    def test_numbers_come_as_they_are_where_nobody_asks_for_words(self):
        result = self.client.infer("iris", self.x)
        self.assertEqual(result["y"].dtype, np.int64)
        self.assertEqual(result["y"].tolist(), [1, 2, 0, 1])

    def test_words_come_in_every_way_of_asking(self):
        async def asked():
            return await self.client.infer_async("iris", self.x, labels=True)

        for result in (
            self.client.infer("iris", self.x, labels=True),
            self.client.submit("iris", self.x, labels=True).result(60),
            asyncio.run(asked()),
        ):
            self.assertEqual(result["y"].dtype.type, np.str_)
            self.assertEqual(result["y"].tolist(), self.wanted)
            np.testing.assert_array_equal(result["p"], self.x)
        only = self.client.infer("iris", self.x, outputs=["y"], labels=True)
        self.assertEqual(only.tolist(), self.wanted)
        self.assertEqual(self.client.infer("iris", self.x[:0], labels=True)["y"].shape, (0,))

    def test_an_input_takes_words_in_any_form(self):
        model = self.client.model("passengers")
        self.assertEqual([port.labels for port in model.inputs], [("female", "male"), ("C", "Q", "S")])
        rows = [[[1, 0, 0, 0, 1]], [[0, 1, 1, 0, 0]]]
        sex, port = ["female", "male"], ["S", "C"]
        column = np.array(sex)[:, None]
        for words in sex, tuple(sex), np.array(sex), np.array(sex, object), np.array(sex, np.bytes_), column, np.array([[0], [1]]):
            self.assertEqual(self.client.infer("passengers", {"sex": words, "port": port}).tolist(), rows)
        self.assertEqual(self.client.infer("passengers", [sex, port]).tolist(), rows)

    def test_an_unknown_word_is_what_its_encoder_says(self):
        words = {"sex": ["other", "male"], "port": ["S", ""]}
        self.assertEqual(self.client.infer("passengers", words).tolist(), [[[0, 0, 0, 0, 1]], [[0, 1, 0, 0, 0]]])
        with self.assertRaises(starling.StarlingError):
            self.client.infer("strict", words)
        with self.assertRaisesRegex(starling.InvalidRequest, "wants words, or places in its labels"):
            self.client.infer("passengers", {"sex": np.array([["male"], [{}]], object), "port": ["S", "C"]})

    def test_words_are_compared_and_chosen_by_what_they_say(self):
        result = self.client.infer("filled", {"sex": ["male", "", "female", "other"]}, labels=True)
        self.assertEqual(result["y"].tolist(), [[[0, 1]], [[0, 1]], [[1, 0]], [[0, 0]]])
        self.assertEqual(result["title"].tolist(), [["Mr"], ["Mr"], ["Ms"], ["Ms"]])

    def test_an_ensemble_has_one_meaning_of_an_input(self):
        with self.assertRaisesRegex(starling.StarlingError, "has other labels"):
            self.client.model("mixed")


if __name__ == "__main__":
    unittest.main()
