# SPDX-License-Identifier: Apache-2.0
"""Rules of the comparison with peers, as far as they need no peer: who is asked, what the figures are, and what the table and the goals say."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import clients
import goals
import peer_triton
import registry
import result
import sandbox
import stamps
import table
import workloads


def found(cells=(), native=()):
    machine = {"cpu": "x", "cpus": 2, "family": "1", "model": "2", "kernel": "k"}
    part = {"floor_before_ns": 60.0, "floor_after_ns": None}
    whole = {"machine": machine, "versions": {"ray": "1", "aeron": None}, "parts": [part], "cells": list(cells), "native": list(native)}
    return {**whole, "goals": goals.of(whole)}


def closed(n, p50, per_second, p99=None):
    return {"mode": "closed", "clients": n, "n": 1000, "p50_us": p50, "p99_us": p99 or 2 * p50, "per_second": per_second, "cpu_us_per_request": 5.0}


def cell(peer, *points, workload="digits", samples=1):
    return {"workload": workload, "samples": samples, "peer": peer, "points": list(points)}


def native(peer, p50, workload="noop"):
    return {"workload": workload, "peer": peer, "samples": 1, "p50_us": p50, "p99_us": None}


def goal(whole, beginning):
    return next(entry for entry in goals.of(whole) if entry["goal"].startswith(beginning))


class Registry(unittest.TestCase):
    def test_a_word_means_every_way_to_a_peer(self):
        self.assertEqual(registry.chosen("triton"), [name for name in registry.PEERS if name.startswith("triton-")])
        self.assertEqual(registry.chosen("onnxruntime,starling")[-1], "starling")
        self.assertEqual(registry.chosen(None), list(registry.PEERS))

    def test_an_unknown_peer_is_refused_with_the_names_that_there_are(self):
        with self.assertRaisesRegex(ValueError, "tritn: wants some of starling"):
            registry.chosen("tritn")

    def test_who_cannot_do_a_workload_has_a_reason(self):
        for name, peer in registry.PEERS.items():
            for workload in workloads.WORKLOADS:
                self.assertEqual(registry.why_not(name, workload) is None, workload in peer.workloads)
                self.assertNotEqual(registry.why_not(name, workload), "")

    def test_every_peer_has_its_packages_pinned(self):
        folder = os.path.join(os.path.dirname(registry.__file__), "requirements")
        self.assertEqual({peer.packages for peer in registry.PEERS.values()} - {name[:-4] for name in os.listdir(folder)}, set())
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                loose = [line for line in file if not line.startswith("#") and not re.fullmatch(r"[\w.\-]+==[\w.]+\n", line)]
            self.assertEqual(loose, [], name)


class Points(unittest.TestCase):
    def test_a_quantile_is_the_smallest_that_the_share_does_not_exceed(self):
        values = list(range(1, 101))
        self.assertEqual((clients.quantile(values, 0.5), clients.quantile(values, 0.99), clients.quantile([7], 0.99)), (50, 99, 7))

    def test_rates_and_processor_time_are_of_what_was_answered_in_the_window(self):
        point = clients.summary([{"latencies": [1.0, 2.0, 3.0], "done": 3}, {"latencies": [4.0], "done": 1}], 2.0, 0.8)
        self.assertEqual((point["n"], point["per_second"], point["cpu_us_per_request"]), (4, 2.0, 200000.0))

    def test_a_point_without_answers_has_a_reason(self):
        self.assertIn("why", clients.summary([{"latencies": [], "done": 0}], 1.0, 0.1))

    def test_arrivals_are_poisson_and_the_same_for_a_seed(self):
        times = clients.arrivals(1000, 20, 1)
        self.assertEqual(times, clients.arrivals(1000, 20, 1))
        self.assertNotEqual(times, clients.arrivals(1000, 20, 2))
        self.assertAlmostEqual(len(times) / 20, 1000, delta=40)
        gaps = [b - a for a, b in zip(times, times[1:])]
        self.assertAlmostEqual(sum(gap * gap for gap in gaps) / len(gaps), 2e-6, delta=2e-7)  # of an exponential: twice the mean's square

    def test_the_span_is_from_the_first_beginning_to_the_last_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stamps")
            writer, reader = stamps.Stamps(path, 2), stamps.Stamps(path, 2)
            writer.put(0, 1000, 5000)
            writer.put(1, 3000, 9000)
            self.assertEqual(reader.span_ns(), 8000)


class Sandbox(unittest.TestCase):
    def test_nothing_stays_of_what_a_cell_leaves_behind(self):
        seconds, left = f"86399.{os.getpid()}", f"/dev/shm/peers-left-{os.getpid()}"  # no other run's
        program = [sys.executable, "-c", f"import sandbox, subprocess; sandbox.settle(); open('{left}', 'w').close();"
                   f"subprocess.Popen(['sleep', '{seconds}'], stdout=subprocess.DEVNULL, start_new_session=True); print('left')"]  # fmt: skip
        done = subprocess.run(sandbox.command(program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.stdout, "left\n")
        self.assertFalse(os.path.exists(left))
        running = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertNotIn(f"sleep {seconds}\n", running)


class Result(unittest.TestCase):
    def test_a_part_replaces_its_own_pass_alone(self):
        whole = found()
        result.put(whole, "digits", 1, "starling", "closed", [closed(1, 10.0, 100)])
        result.put(whole, "digits", 1, "starling", "open", [{"mode": "open", "clients": 4, "rate": 5, "p99_us": 1.0, "n": 9}])
        result.put(whole, "digits", 1, "starling", "closed", [closed(1, 20.0, 50), {"mode": "beside", "clients": 1, "beside_us": 3.0}])
        self.assertEqual([point["mode"] for point in whole["cells"][0]["points"]], ["open", "closed", "beside"])
        self.assertEqual(len(whole["cells"]), 1)

    def test_open_load_goes_by_the_slowest_server(self):
        whole = found([cell("starling", closed(4, 1.0, 900)), cell("litserve", closed(1, 1.0, 40), closed(4, 1.0, 70)),
                       cell("onnxruntime", closed(4, 1.0, 20)), cell("queues", {"mode": "closed", "why": "died"})])  # fmt: skip
        self.assertEqual(result.slowest_capacity(whole, "digits", 1), 70)
        self.assertIsNone(result.slowest_capacity(whole, "digits", 8))

    def test_what_was_saved_is_loaded_with_its_goals(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "peers.json")
            whole = result.load(path)
            result.put_native(whole, "noop", {"peer": "starling", "samples": 1, "p50_us": 0.1, "p99_us": 0.2})
            result.put_native(whole, "noop", {"peer": "Triton, C backend, http", "samples": 1, "p50_us": 50.0, "p99_us": 60.0})
            result.finish(whole, path)
            again = result.load(path)
            self.assertEqual(again["triton_over_starling_noop"], 500.0)
            self.assertTrue(again["goals"] and os.path.exists(os.path.join(folder, "peers.md")))


class Goals(unittest.TestCase):
    def test_the_fastest_way_through_triton_decides(self):
        rows = [native("starling", 0.2), native("Triton, a", 90.0), native("Triton, b", 70.0), {**native("Triton, c", 1.0), "why": "died"}]
        entry = goal(found(native=rows), "no-op, C: Triton's best way")
        self.assertEqual((entry["figure"], entry["met"], entry["rival"]), (350.0, False, "Triton, b: 70.0 us"))

    def test_what_was_not_measured_is_neither_met_nor_missed(self):
        rows = [native("starling", 0.2), {"workload": "noop", "peer": "Aeron IPC", "samples": 1, "why": "set AERON_BUILD"}]
        entry = goal(found(native=rows), "no-op, C: Starling over Aeron")
        self.assertEqual((entry["figure"], entry["met"], entry["rival"]), (None, None, "Aeron IPC: set AERON_BUILD"))

    def test_aeron_is_compared_by_the_rings_of_both_runs(self):
        rows = [native("starling", 0.2), native("bare ring", 0.2), native("Aeron IPC", 0.6), native("bare ring beside Aeron", 0.5)]
        self.assertEqual(goal(found(native=rows), "no-op, C: Starling over Aeron")["figure"], 0.8333)

    def test_throughput_counts_within_the_objective_only(self):
        late = 1e3 * workloads.WORKLOADS["digits"].objective_ms + 1
        cells = [cell("starling", closed(1, 1.0, 300), closed(4, 1.0, 900, p99=late)), cell("queues", closed(4, 1.0, 100)),
                 cell("triton-grpc", closed(4, 1.0, 150)), cell("onnxruntime", closed(4, 1.0, 5000))]  # fmt: skip
        entry = goal(found(cells), "digits, 1 samples: throughput")
        self.assertEqual((entry["figure"], entry["met"], entry["rival"]), (2.0, True, "Triton, gRPC: 150/s"))

    def test_the_time_beside_the_models_is_compared_with_servers(self):
        points = [{"mode": "beside", "clients": 1, "n": 5, "beside_us": us} for us in (100.0, 450.0, 3.0)]
        cells = [cell(peer, point, workload="ensemble") for peer, point in zip(("starling", "queues", "onnxruntime"), points)]
        self.assertEqual(goal(found(cells), "ensemble of four")["figure"], 4.5)


class Table(unittest.TestCase):
    def test_every_line_of_a_table_has_its_columns(self):
        cells = [cell("starling", closed(1, 10.0, 100), closed(4, 12.0, 300)), cell("iceoryx2", {"mode": "closed", "why": "a | b"})]
        text = table.markdown(found(cells, [native("starling", 0.1), {**native("Aeron IPC", 0), "why": "no | build"}]))
        for block in text.split("\n\n"):
            counts = {line.count("|") for line in block.splitlines() if line.startswith("|")}
            self.assertLessEqual(len(counts), 1, block)

    def test_a_cell_that_cannot_be_says_why(self):
        text = table.markdown(found([cell("iceoryx2", {"mode": "closed", "why": registry.CARRIES})]))
        self.assertIn(f"| {registry.CARRIES} |", text)

    def test_a_goal_that_is_missed_stands_out(self):
        text = table.markdown(found(native=[native("starling", 1.0), native("bare ring", 0.5)]))
        self.assertIn("| 2 | at most 1.25 | **no** |", text)

    def test_times_have_the_unit_that_fits(self):
        self.assertEqual([table.duration(us) for us in (None, 0.18, 12.3, 4560, 2.5e6)], ["", "180 ns", "12.3 us", "4.56 ms", "2.5 s"])

    def test_the_environment_says_floors_and_versions_that_there_are(self):
        text = table.markdown(found())
        self.assertIn("60 to 60 ns", text)
        self.assertIn("ray 1", text)
        self.assertNotIn("aeron", text)


class TritonConfig(unittest.TestCase):
    def test_an_ensemble_brings_every_answer_to_the_mean(self):
        text = peer_triton.ensemble_config(["a", "b"], [4], [2])
        self.assertEqual(text.count("model_name"), 3)
        for i, name in enumerate("ab"):
            self.assertIn(f'model_name: "{name}" model_version: -1 input_map {{key: "x" value: "x"}} output_map {{key: "y" value: "p{i}"}}', text)
            self.assertIn(f'input_map {{key: "p{i}" value: "p{i}"}}', text)
        self.assertEqual(text.count("{"), text.count("}"))


if __name__ == "__main__":
    unittest.main()
