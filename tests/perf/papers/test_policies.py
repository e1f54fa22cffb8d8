# SPDX-License-Identifier: Apache-2.0
"""Rules of the policies' comparison: nobody beats the bound, what E-Ebird has fits its loads, and what of a row counts as missed."""

import argparse
import contextlib
import io
import os
import subprocess
import unittest

import derive
import networks
import policies

PROGRAM = os.environ["BENCH_POLICIES"]
COSTS = os.path.join(derive.HERE, "elastic-titan-rtx.yaml")


def bench(gpu="titan-rtx"):
    return policies.Bench(argparse.Namespace(program=PROGRAM, seeds=1, gpu=gpu))


def quietly(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        return function(*arguments)


def made(**more):
    figures = {"mean_ms": 10, "p99_ms": 20}
    row = {"load": 0.7, **{name: dict(figures) for name in (*policies.POLICIES, "bound")}}
    phases = {"opt_wait": [{"mean_ms": 40}, {"mean_ms": 40}], "n_ebird": [{"mean_ms": 10}, {"mean_ms": 20}], "e_ebird": [{"mean_ms": 10}, {"mean_ms": 18}]}
    rates = {**dict.fromkeys(policies.POLICIES, 90), "n_ebird": 100, "e_ebird": 110, "starling": 120}
    return {"network": "x", "stable": [row], "diurnal": {"phases": phases}, "rates": rates, **more}


class Simulated(unittest.TestCase):
    def test_nobody_is_faster_than_the_bound(self):
        run = bench().run(networks.RESNET152, 1, "50:150", "300:250")
        for name, policy in run["policies"].items():
            self.assertEqual(len(policy["latencies_ms"]), 400)
            for phase, bound in zip(policy["phases"], run["bound"]):
                for figure in ("p50_ms", "p99_ms", "max_ms"):
                    self.assertGreaterEqual(phase[figure] + 0.001, bound[figure], (name, figure))

    def test_the_engine_has_what_equation_6_asks_for(self):
        engine = bench().run(networks.RESNET152, 1, "50:10")["engine"]
        for load, row in zip((4, 8, 16, 32), engine["rows"]):
            self.assertEqual(sum(n << i for i, n in enumerate(row)), load)
        for i, workers in enumerate(engine["workers"]):
            self.assertGreaterEqual(workers, max(1 if i < 2 else 0, *(row[i] for row in engine["rows"])))

    def test_every_table_runs(self):
        for gpu in ("titan-rtx", "v100", "a100", "h100", "t4"):
            for network in networks.E2BIRD:
                self.assertGreater(bench(gpu).run(network, 1, "qos", 200, 50)["rates"]["starling"], 0)

    def test_starling_is_behind_none_at_nine_tenths_of_the_capacity(self):
        for network in networks.E2BIRD:
            capacity = bench().run(network, 1, "1:1")["capacity"]
            run = bench().run(network, 1, f"{0.9 * capacity:.3f}:4000")["policies"]
            p99 = {name: policy["phases"][0]["p99_ms"] for name, policy in run.items()}
            self.assertLessEqual(p99["starling"], min(p99.values()), network.name)

    def test_bad_arguments_end_in_one_line(self):
        good = [COSTS, "ResNet152", "0.05", "0", "1"]
        for arguments in ([], good, [*good, "fast:10"], [*good, "10:0"], [*good, "10"], [*good, "qos", "200"], [*good, "qos", "no", "10"],
                          ["nowhere.yaml", *good[1:], "1:1"], [COSTS, "NoSuchNet", *good[2:], "1:1"], [*good[:2], "2", *good[3:], "1:1"]):  # fmt: skip
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr.count("\n"), run.stdout), (1, 1, ""), arguments)


class Goals(unittest.TestCase):
    def missed(self, row):
        return [bool(goal["missed"]) for goal in quietly(policies.goals, [row])]

    def test_a_row_that_reaches_all_misses_nothing(self):
        self.assertEqual(self.missed(made()), [False] * 5)

    def test_each_goal_names_the_row_that_misses_it(self):
        def worse(policy, figure, by):
            row = made()
            row["stable"][0][policy][figure] *= by
            return row

        self.assertEqual(self.missed(made(rates={**made()["rates"], "e_ebird": 95})), [True, False, False, False, False])
        self.assertEqual(self.missed(worse("starling", "mean_ms", 1.01)), [False, True, False, False, False])
        self.assertEqual(self.missed(worse("starling", "p99_ms", 1.01)), [False, False, True, False, False])
        self.assertEqual(self.missed(made(rates={**made()["rates"], "triton": 130})), [False, False, False, True, False])
        self.assertEqual(self.missed(worse("bound", "p99_ms", 0.8)), [False, False, False, False, True])


if __name__ == "__main__":
    unittest.main()
