# SPDX-License-Identifier: Apache-2.0
"""Rules of the comparison of precisions: which peer counts, which goals are missed, and that a missing figure is said."""

import unittest

import precision_table


def row(model="a", batch=1, **more):
    names = ("starling_fp32", "starling_int8", "starling_bf16", "onnxruntime_int8", "openvino_int8", "openvino_bf16")
    times = dict(zip(names, (40.0, 10.0, 20.0, 15.0, 13.0, 22.0)))
    fields = {name: {"ms": more.get(name, ms)} if more.get(name, ms) else {"error": "no kernel"} for name, ms in times.items()}
    fields.update(model=model, batch=batch, cores=1, variant={"cosine": "0.9999"})
    return {**fields, **precision_table.judged(fields)}


class Ratios(unittest.TestCase):
    def test_int8_is_compared_with_the_faster_peer(self):
        self.assertEqual((row()["int8_ratio"], row()["int8_faster_peer"]), (1.3, "openvino"))
        self.assertEqual(row(onnxruntime_int8=12.0)["int8_ratio"], 1.2)

    def test_a_variant_is_compared_with_own_float32(self):
        self.assertEqual((row()["int8_over_fp32"], row()["bf16_over_fp32"], row()["bf16_ratio"]), (4.0, 2.0, 1.1))

    def test_without_a_peer_there_is_no_ratio(self):
        alone = row(onnxruntime_int8=None, openvino_int8=None)
        self.assertIsNone(alone["int8_ratio"])
        self.assertIsNone(row(starling_bf16=None)["bf16_over_fp32"])


class Goals(unittest.TestCase):
    def said(self, rows):
        return precision_table.goals_said(precision_table.summary(rows))

    def test_goals_that_are_met_are_said_to_be(self):
        self.assertEqual([line.split(":")[0] for line in self.said([row()])], ["met", "met", "met"])

    def test_one_row_below_one_misses_and_is_named(self):
        lines = self.said([row(), row("b", 8, openvino_int8=9.0)])
        self.assertIn("MISSED: int8 against the faster peer's int8, least: 0.90", lines[1])
        self.assertIn("b 8/1 0.90", lines[1])

    def test_the_mean_is_geometric(self):
        figures = precision_table.summary([row(openvino_int8=5.0), row("b", openvino_int8=20.0, onnxruntime_int8=20.0)])
        self.assertAlmostEqual(figures["by_cores"]["1"]["int8_to_faster_peer"]["geomean"], 1.0)

    def test_rows_on_more_cores_are_judged_apart(self):
        lines = self.said([row(), {**row("b", openvino_int8=5.0), "cores": 2}])
        self.assertEqual([line.split(":")[0] for line in lines], ["met", "met", "met", "MISSED", "MISSED", "met"])

    def test_no_rows_meet_nothing(self):
        self.assertEqual({line.split(":")[0] for line in self.said([])}, {"MISSED"})

    def test_an_engine_that_did_not_run_is_said(self):
        self.assertIn("no figure: a openvino_bf16: no kernel", self.said([row(openvino_bf16=None)]))


class Markdown(unittest.TestCase):
    def test_every_line_of_the_table_has_its_columns(self):
        header = {"machine": {"cpu": "x", "cpus": 2, "kernel": "y"}, "versions": {"onnxruntime": "1"}, "date": "d", "command": "c"}
        rows = [row(), row("b", openvino_bf16=None, openvino_int8=None)]
        text = precision_table.markdown({**precision_table.summary(rows), **header, "rows": rows})
        self.assertEqual(len({line.count("|") for line in text.splitlines() if line.startswith("|")}), 1)


if __name__ == "__main__":
    unittest.main()
