# SPDX-License-Identifier: Apache-2.0
"""Rules of the ensemble paper's tables: which optimizer is never below which, and what of a row counts as missed."""

import argparse
import contextlib
import io
import os
import subprocess
import unittest

import tables

COSTS = tables.COSTS
PROGRAM = os.environ["BENCH_ALLOCATION"]


def options(**more):
    return argparse.Namespace(program=PROGRAM, costs=COSTS, seeds=1, **more)


def cell(ensemble, gpus, seeds=1):
    with contextlib.redirect_stdout(io.StringIO()):
        return tables.cell(argparse.Namespace(program=PROGRAM, costs=COSTS, seeds=seeds), ensemble, gpus)


def missed(*cells):
    with contextlib.redirect_stdout(io.StringIO()):
        return [goal["missed"] for goal in tables.goals(cells)]


def made(**more):
    fields = {"ensemble": "IMN4", "gpus": 4, "worst_fit": 100, "greedy": 200, "starling": 230, "bound": 240, "exhaustive": None, "never_below": True,
              "seconds": 1, "paper": {"worst_fit": 160, "greedy": 251}}  # fmt: skip
    return {**fields, **more}


class Optimizers(unittest.TestCase):
    def test_a2_is_never_below_a1_nor_ours_below_a2(self):
        for ensemble, gpus in (("IMN1", 1), ("IMN1", 3), ("IMN4", 2), ("IMN12", 2)):
            row = cell(ensemble, gpus)
            self.assertGreaterEqual(row["greedy"], row["worst_fit"])
            self.assertGreaterEqual(row["starling"], row["greedy"])
            self.assertLessEqual(row["starling"], row["bound"] * 1.001)

    def test_one_network_is_as_fast_as_the_best_of_all_matrices(self):
        row = cell("IMN1", 2)
        self.assertAlmostEqual(row["starling"] / row["exhaustive"], 1, 6)

    def test_what_fits_nowhere_is_out_of_memory_with_its_reason(self):
        row = cell("IMN12", 1)
        self.assertIsNone(row["worst_fit"])
        self.assertIn("no device has enough memory", row["error"])

    def test_best_batch_needs_a_gpu_for_each_model(self):
        run = tables.bench(options(), "IMN4", 3, 1, 1, 1, 10)
        self.assertIsNone(run["best_batch"])
        self.assertEqual(tables.bench(options(), "IMN4", 4, 1, 1, 1, 10)["best_batch"]["benches"], 20)

    def test_bad_arguments_end_in_one_line(self):
        for arguments in (["nowhere.yaml", "a", "1", "1"], [COSTS, "NoSuchNet", "1", "1"], [COSTS, "ResNet152", "many", "1"], []):
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr.count("\n"), run.stdout), (1, 1, ""), arguments)


class Goals(unittest.TestCase):
    def test_a_row_that_reaches_all_misses_nothing(self):
        self.assertEqual(missed(made()), [[], [], [], [], []])

    def test_each_goal_names_the_row_that_misses_it(self):
        rows = [{"never_below": False}, {"starling": 210}, {"exhaustive": 250}, {"seconds": 61}, {"worst_fit": None}]
        for i, change in enumerate(rows):
            self.assertEqual([bool(names) for names in missed(made(**change))], [k == i for k in range(5)], change)

    def test_ten_per_cent_are_not_asked_for_where_the_bound_is_nearer(self):
        self.assertEqual(missed(made(starling=210, bound=215))[1], [])


if __name__ == "__main__":
    unittest.main()
