# SPDX-License-Identifier: Apache-2.0
"""A page of results is one whole file that shows what the results say, and says what is wrong with them."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import plots
import report

NAMES = ["offered_per_second", "requests_per_second", "latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "latency_p999_ns"]


def figure(value, unit="ns"):
    return {"unit": unit, "better": "less", "value": value, "low": value and value * 0.9, "high": value and value * 1.1, "repeats": [value]}


def latencies(mean):
    return {"mean_ns": mean, "p50_ns": mean, "p90_ns": mean, "p99_ns": None, "p999_ns": None, "p9999_ns": None, "max_ns": mean}


def point(label, rate, latency):
    figures = {name: figure(rate, "1/s") if name.endswith("second") else figure(latency * (i + 1)) for i, name in enumerate(NAMES)}
    figures["latency_p999_ns"] = figure(None)
    return {
        "label": label, "rate": rate, "in_flight": None, "valid": True, "repeats": 1, "reasons": [],
        "figures": figures, "stages": {stage: latencies(latency / 6) for stage in report.STAGES},
        "distribution": [[latency, 500], [2 * latency, 990], [9 * latency, 1000]],
        "timeline": [[i / 10, 10, 10, latency, 2 * latency, 9 * latency] for i in range(10)],
    }  # fmt: skip


RESULT = {
    "schema": "starling-load/1", "command": ["load", "<digits>"], "valid": True, "search": None, "scenario": None,
    "machine": {"cpu": "a & b", "cpus": 2, "kernel": "Linux", "governor": "unknown", "date": "2026-11-23", "starling": "0.1.0"},
    "noise": {"floor_before_ns": 60, "floor_after_ns": 61, "quiet": True},
    "load": {"models": [{"name": "digits", "weight": 1, "samples": 1}], "threads": 1, "waiting": "sleep", "cpus": [], "duration_s": 5,
             "warm_up_s": 1, "seed": 1, "objective_ns": 5000000, "percentile": 0.99},
    "points": [point("poisson, 100/s", 100, 1e6), point("poisson, 200/s", 200, 3e6)],
}  # fmt: skip


def drawings(page):
    """The SVG parts, each of which must be whole XML."""
    parts = page.split("<svg")[1:]
    return [xml.etree.ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>") for part in parts]


class Report(unittest.TestCase):
    def test_a_page_needs_nothing_from_elsewhere(self):
        page = report.page([("a", RESULT)])
        for word in ("http:", "https:", "src=", "<script", "@import", "url("):
            self.assertNotIn(word, page)

    def test_every_part_is_drawn(self):
        page = report.page([("a", RESULT)])
        self.assertEqual(len(drawings(page)), 3 + len(RESULT["points"]))
        for title in ("Latency over load", "Distribution", "Stages, means", "Course of time", "objective 5 ms"):
            self.assertIn(title, page)

    def test_text_of_others_is_escaped(self):
        page = report.page([("a", RESULT)])
        self.assertIn("a &amp; b", page)
        self.assertIn("&lt;digits&gt;", page)
        self.assertNotIn("<digits>", page)

    def test_what_is_not_valid_is_said_with_its_reason(self):
        result = copy.deepcopy(RESULT)
        result["points"][1]["reasons"] = ["the generator was late: by 5 us"]
        result["noise"]["quiet"] = False
        page = report.page([("a", result)])
        self.assertIn("not valid", page)
        self.assertIn("the generator was late: by 5 us", page)
        self.assertIn("the machine was not the same", page)
        self.assertNotIn("not valid", report.page([("a", RESULT)]))

    def test_several_results_stand_side_by_side(self):
        page = report.page([("a", RESULT), ("b", RESULT)])
        self.assertIn("a: poisson, 100/s", page)
        self.assertIn("b: poisson, 200/s", page)

    def test_a_figure_that_was_not_measured_is_no_number(self):
        self.assertNotIn("None", report.page([("a", RESULT)]))
        self.assertNotIn("nan", report.page([("a", RESULT)]).replace("governor", ""))

    def test_the_command_refuses_what_is_no_result(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"schema": "other"}, file)
            ended = subprocess.run([sys.executable, report.__file__, path, "-o", path + ".html"], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("schema 'other', wants 'starling-load/1'", ended.stderr)
            self.assertEqual(os.listdir(folder), ["x.json"])


class Plots(unittest.TestCase):
    def test_axes_hold_their_values_and_are_in_order(self):
        axes = [plots.Linear([3, 977]), plots.Logarithmic([3, 977], str), plots.Tail(4), plots.Linear([0]), plots.Logarithmic([0], str)]
        for axis in axes:
            ticks = [value for value, _ in axis.ticks()]
            places = [axis.place(value) for value in ticks]
            self.assertEqual(places, sorted(places))
            self.assertTrue(all(0 <= place <= 1 for place in places), places)
            self.assertLessEqual(len(ticks), 14)
        self.assertGreaterEqual(axes[0].high, 977)

    def test_each_nine_has_the_same_room(self):
        tail = plots.Tail(4)
        steps = [tail.place(1 - 10.0 ** -(i + 1)) - tail.place(1 - 10.0**-i) for i in range(4)]
        for step in steps:
            self.assertAlmostEqual(step, 0.25)

    def test_units_are_chosen_by_size(self):
        self.assertEqual([plots.text_of_ns(ns) for ns in (90, 1500, 2.5e6, 3e9)], ["90 ns", "1.5 us", "2.5 ms", "3 s"])
        self.assertEqual([plots.text_of_rate(rate) for rate in (90, 1500, 2.5e6)], ["90/s", "1.5 k/s", "2.5 M/s"])


if __name__ == "__main__":
    unittest.main()
