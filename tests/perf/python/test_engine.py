# SPDX-License-Identifier: Apache-2.0
"""Rules of the comparison's table: what counts, what is said of a row that does not, and when two answers agree."""

import tempfile
import unittest

import cell
import numpy as np
import table


def row(model="a", ratio=2.0, agrees=True, **more):
    fields = {
        "model": model, "precision": "fp32", "batch": 1, "cores": 1, "ratio": ratio, "agrees": agrees,
        "gflops": 1.0, "share_of_peak": 0.5, "relative_error": 1e-6, "disagrees": None, "starling": {"ms": 1.0},
    }  # fmt: skip
    return {**fields, **more}


REFUSED = {"model": "r", "precision": "fp32", "batch": 1, "cores": 1, "starling": {"error": "operator X | not supported"}}


class Summary(unittest.TestCase):
    def test_the_mean_is_geometric_over_rows_that_agree(self):
        figures = table.summary([row(ratio=2.0), row("b", 0.5), row("c", 8.0), row("d", 100.0, agrees=False)])
        self.assertAlmostEqual(figures["geomean_ratio"], 2.0)
        self.assertEqual(figures["min_ratio"], 0.5)
        self.assertEqual(([r["model"] for r in figures["slower"]], figures["disagreeing"]), (["b"], ["d"]))

    def test_other_precisions_cores_and_batches_do_not_count(self):
        others = [row("b", 9.0, precision="bf16"), row("c", 9.0, cores=2), row("d", 9.0, batch=32)]
        self.assertEqual(table.summary([row(), *others])["rows_counted"], 1)

    def test_a_refused_model_is_named_and_not_counted(self):
        figures = table.summary([row(), REFUSED])
        self.assertEqual((figures["refused"], figures["rows_counted"], figures["models"]), (["r"], 1, 2))

    def test_a_run_without_rows_has_no_mean(self):
        self.assertIsNone(table.summary([REFUSED])["geomean_ratio"])


class Markdown(unittest.TestCase):
    def lines(self, rows):
        machine = {"cpu": "x", "cpus": 2, "kernel": "y"}
        header = {"machine": machine, "versions": {"onnxruntime": "1", "openvino": "2"}, "date": "d", "command": "c", "workers": []}
        return table.markdown({**table.summary(rows), **header, "rows": rows})

    def test_every_line_of_the_table_has_its_columns(self):
        text = self.lines([row()])
        counts = {line.count("|") for line in text.splitlines() if line.startswith("|")}
        self.assertEqual(len(counts), 1)

    def test_a_refusal_says_its_reason_without_breaking_the_table(self):
        self.assertIn("| refused: operator X / not supported |", self.lines([REFUSED]))

    def test_an_answer_that_disagrees_stands_out(self):
        self.assertIn("**2e-03**", self.lines([row(agrees=False, relative_error=2e-3)]))


class Agreement(unittest.TestCase):
    def compare(self, ours, theirs):
        return cell.disagreement([("y", np.asarray(ours))], [("y", np.asarray(theirs))])

    def test_the_error_is_relative_to_the_largest_value(self):
        self.assertAlmostEqual(self.compare([1.0, 9.9], [1.0, 10.0])[0], 0.01)

    def test_other_shapes_missing_outputs_and_infinities_are_no_agreement(self):
        self.assertIn("shape [1], not [2]", self.compare([1.0], [1.0, 2.0])[1])
        self.assertIn("not any", cell.disagreement([("y", np.ones(1))], [])[1])
        self.assertIn("not finite", self.compare([np.inf], [1.0])[1])

    def test_integers_must_be_equal(self):
        self.assertEqual(self.compare([1, 2, 3], [1, 2, 3]), (0.0, None))
        self.assertIn("1 of 3 integers differ", self.compare([1, 2, 3], [1, 2, 4])[1])

    def test_answers_of_samples_that_ran_alone_stay_apart(self):
        with tempfile.NamedTemporaryFile() as file:
            np.arange(2, dtype=np.float32).tofile(file.name)
            output = {"name": "y", "dtype": "float32", "shape": [2], "file": file.name}
            answers = cell._answers([{**output, "sample": 0}, {**output, "sample": 3, "shape": [1, 2]}])
        self.assertEqual(list(answers), [0, 3])
        self.assertEqual(answers[3][0][1].shape, (1, 2))


if __name__ == "__main__":
    unittest.main()
