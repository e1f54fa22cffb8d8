# SPDX-License-Identifier: Apache-2.0
"""Models with `load: on_request` at `starling serve`: loaded when somebody asks, unloaded when nobody does, or to make room."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx_file as onnx
import starling
from test_models import F32
from world import LIMIT, RealRuntime

ON_REQUEST = "model_defaults: {load: on_request"


def adding(number):
    """y = x + @number."""
    return onnx.model(
        [onnx.node("Add", ["x", "c"], ["y"])],
        [onnx.port("x", F32, ("N", 3))],
        [onnx.port("y", F32, ("N", 3))],
        [onnx.constant("c", F32, np.array([number], np.float32))],
    )


def scaling(size="M"):
    """y = -x of any size."""
    return onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.port("x", F32, ("N", size))], [onnx.port("y", F32, ("N", size))])


def heavy(number):
    """y = x times a matrix of 24 MiB, all @number."""
    return onnx.model(
        [onnx.node("MatMul", ["x", "w"], ["y"])],
        [onnx.port("x", F32, ("N", 1024))],
        [onnx.port("y", F32, ("N", 6144))],
        [onnx.constant("w", F32, np.full((1024, 6144), number, np.float32))],
    )


X = np.ones((2, 3), np.float32)


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class OnRequest(unittest.TestCase):
    def serve(self, nets, configuration):
        runtime = RealRuntime(nets, configuration=configuration)
        self.addCleanup(runtime.stop)
        self.runtime = runtime
        client = runtime.connect()
        self.addCleanup(client.close)
        self.wait_until(lambda: "event=ready" in runtime.said())
        return client

    def wait_until(self, holds):
        for _ in range(50 * LIMIT):
            if holds():
                return
            time.sleep(0.02)
        self.fail(f"it does not come: {self.runtime.said()}")

    def states(self, client):
        return {entry.name: entry.state for entry in client.models()}

    def comes_to(self, client, name, state):
        """An answer may come before the catalogue says that its model serves."""
        self.wait_until(lambda: self.states(client)[name] == state)

    def rests(self, client, name, times):
        """It has been unloaded so often, as the log says: how long it serves in between is not to be seen."""
        self.wait_until(lambda: self.runtime.said().count(f"event=model-unloaded-idle model={name}") == times)
        self.comes_to(client, name, "available")

    def stands_by(self, client, name, times):
        """It has served so often, and is on standby again: once more than it began to be. The log says so, and keeps it."""
        self.wait_until(lambda: self.runtime.said().count(f"event=model-standby model={name} ") == times + 1)
        self.comes_to(client, name, "standby")
        self.assertEqual(self.loads_of(name), times)

    def shown(self):
        """States as `starling stats` and `starling models` say."""
        stats = {model["name"]: model["state"] for model in json.loads(self.runtime.stats("--json"))["models"]}
        del stats["(others)"]
        said = subprocess.run(
            [os.environ["STARLING_COMMAND"], "models", "--name", self.runtime.name, "--json"],
            env=dict(os.environ, STARLING_SOCKET_DIR=self.runtime.folder),
            stdout=subprocess.PIPE,
            check=True,
        )
        return stats, {model["name"]: model["state"] for model in json.loads(said.stdout)}

    def loads_of(self, model):
        return sum(f"model={model} " in line and "event=model-ready" in line for line in self.runtime.said().splitlines())

    def test_a_model_is_loaded_when_it_is_opened(self):
        client = self.serve({"a": adding(1), "b": adding(2)}, ON_REQUEST + "}")
        self.assertEqual(self.states(client), {"a": "available", "b": "available"})
        self.assertEqual(self.shown(), ({"a": "available", "b": "available"}, {"a": "available", "b": "available"}))
        np.testing.assert_array_equal(client.infer("b", X), X + 2)
        self.comes_to(client, "b", "ready")
        self.assertEqual(self.states(client), {"a": "available", "b": "ready"})
        self.wait_until(lambda: self.shown()[0] == {"a": "available", "b": "ready"})

    def test_a_handle_outlives_an_unload_and_its_request_waits_for_the_load(self):
        client = self.serve({"a": adding(1)}, ON_REQUEST + ", idle_unload_s: 1}")
        for times in range(1, 4):
            np.testing.assert_array_equal(client.infer("a", X), X + 1)
            self.rests(client, "a", times)
        self.wait_until(lambda: self.loads_of("a") == 3)

    def ask_at_once(self, others):
        """Each client asks for its own size while the runtime stands."""
        answers = {}

        def ask(size, other):
            answers[size] = other.infer("a", np.full((1, size), size, np.float32))

        self.runtime.process.send_signal(signal.SIGSTOP)
        threads = [threading.Thread(target=ask, args=item) for item in others.items()]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        self.runtime.process.send_signal(signal.SIGCONT)
        for thread in threads:
            thread.join()
        for size in others:
            np.testing.assert_array_equal(answers[size], np.full((1, size), -size, np.float32))

    def test_open_sizes_and_requests_of_many_clients_wait_for_one_load(self):
        client = self.serve({"a": scaling()}, ON_REQUEST + ", idle_unload_s: 1}")
        np.testing.assert_array_equal(client.infer("a", X), -X)
        self.rests(client, "a", 1)
        others = {size: self.runtime.connect() for size in range(1, 6)}
        for other in others.values():
            self.addCleanup(other.close)
        for _ in range(20):
            before = self.loads_of("a")
            self.ask_at_once(others)
            self.wait_until(lambda: self.loads_of("a") > before)
            self.wait_until(lambda: self.runtime.said().count("event=model-unloaded-idle model=a") == self.loads_of("a"))
            if self.loads_of("a") == before + 1:
                return
            # On a busy machine one came a second after the others, and found it unloaded: once more.
        self.fail(f"they never wait for one load: {self.runtime.said()}")

    def test_what_cannot_be_loaded_says_why_to_each_who_asks(self):
        client = self.serve({"a": b"no model"}, ON_REQUEST + "}")
        for _ in range(2):
            with self.assertRaisesRegex(starling.StarlingError, 'model "a" cannot be served'):
                client.infer("a", X)
        self.comes_to(client, "a", "failed")

    def test_the_one_used_longest_ago_makes_room(self):
        nets = {name: adding(i) for i, name in enumerate("abcd")}
        client = self.serve(nets, ON_REQUEST + "}\nlimits: {models_max_loaded: 2}")
        for name in "abacadcb":
            np.testing.assert_array_equal(client.infer(name, X), X + "abcd".index(name))
            self.comes_to(client, name, "ready")
            self.assertLessEqual(sum(state == "ready" for state in self.states(client).values()), 2)
        self.wait_until(lambda: [self.loads_of(name) for name in "abcd"] == [1, 2, 2, 1])

    def test_what_does_not_fit_gets_the_memory_of_others(self):
        nets = {name: heavy(i) for i, name in enumerate("abcd")}
        before = RealRuntime(nets)  # which compiles them: for that there will be no room
        before.connect().close()
        self.runtime = before
        self.wait_until(lambda: "event=ready" in before.said())
        before.stop()
        client = self.serve(nets, ON_REQUEST + "}\nlimits: {memory_max: 104 MiB, stats_bytes: 4 MiB}")
        for name in "abcdabcd":
            answer = client.infer(name, np.ones((1, 1024), np.float32))
            self.assertEqual(answer[0, 0], 1024 * "abcd".index(name))
        self.wait_until(lambda: "event=model-unloaded-idle model=a" in self.runtime.said())

    def test_where_none_can_go_the_refusal_names_the_limit(self):
        nets = {"a": {"1/model.onnx": adding(1), "config.yaml": b"load: at_start\n"}, "b": adding(2)}
        client = self.serve(nets, ON_REQUEST + "}\nlimits: {models_max_loaded: 1}")
        with self.assertRaisesRegex(starling.StarlingError, 'model "b" is not loaded: limits.models_max_loaded is 1'):
            client.infer("b", X)
        self.assertEqual(self.states(client), {"a": "ready", "b": "available"})
        np.testing.assert_array_equal(client.infer("a", X), X + 1)

    def memory_of_plans(self):
        return next(row["bytes"] for row in json.loads(self.runtime.stats("--json"))["memory"] if row["name"] == "plans")

    def test_standby_holds_the_plan_in_the_ledger_and_workers_come_and_go(self):
        client = self.serve({"a": heavy(1), "b": adding(2)}, "model_defaults: {load: standby, idle_standby_s: 1}")
        self.assertEqual(self.states(client), {"a": "standby", "b": "standby"})
        self.assertEqual(self.shown(), ({"a": "standby", "b": "standby"}, {"a": "standby", "b": "standby"}))
        plans = self.memory_of_plans()
        self.assertGreater(plans, 24 << 20)
        for times in range(1, 3):
            self.assertEqual(client.infer("a", np.ones((1, 1024), np.float32))[0, 0], 1024)
            self.assertEqual(self.memory_of_plans(), plans)
            self.stands_by(client, "a", times)
        self.assertEqual(self.loads_of("a"), 2)
        self.assertEqual(self.memory_of_plans(), plans)

    def test_a_standby_that_served_goes_back_to_standby_after_idle_unload_s(self):
        client = self.serve({"a": heavy(1)}, "model_defaults: {load: standby, idle_unload_s: 1}")
        self.assertEqual(self.states(client), {"a": "standby"})
        plans = self.memory_of_plans()
        for times in range(1, 3):
            self.assertEqual(client.infer("a", np.ones((1, 1024), np.float32))[0, 0], 1024)
            self.stands_by(client, "a", times)
            self.assertEqual(self.memory_of_plans(), plans)  # which is not unloaded
        self.assertNotIn("event=standby-ended", self.runtime.said())

    def test_names_of_one_file_share_a_plan_on_standby(self):
        client = self.serve({"a": heavy(1)}, "model_defaults: {load: standby, version_policy: {all: true}}")
        self.wait_until(lambda: set(self.states(client).values()) == {"standby"})
        self.assertLess(self.memory_of_plans(), 40 << 20)

    def test_thousands_of_models_are_listed_and_those_are_loaded_that_are_asked(self):
        """A folder of 2,000 files, of which 5 fit."""
        folder = tempfile.mkdtemp(prefix="starling-python-")
        self.addCleanup(shutil.rmtree, folder)
        for i in range(2000):
            with open(os.path.join(folder, f"m{i:04}.onnx"), "wb") as file:
                file.write(adding(i))
        client = self.serve(folder, "model_defaults: {load: on_request}\nlimits: {models_max_loaded: 5}")
        self.assertEqual(sorted(self.states(client)), [f"m{i:04}" for i in range(2000)])
        self.assertEqual(set(self.states(client).values()), {"available"})
        for i in (1999, 0, 1000, 255, 256, 1999, 1024, 513, 0):
            np.testing.assert_array_equal(client.infer(f"m{i:04}", X), X + np.float32(i))
            loaded = [name for name, state in self.states(client).items() if state == "ready"]
            self.assertLessEqual(len(loaded), 5)
        stats, states = self.shown()
        self.assertEqual(len(states), 2000)
        self.assertEqual(len(stats), 2000)

    def start_tight(self, configuration):
        """Three of four plans of 24 MiB have memory."""
        nets = {name: heavy(i) for i, name in enumerate("abcd")}
        before = RealRuntime(nets)  # which compiles them: for that there will be no room
        before.connect().close()
        self.runtime = before
        self.wait_until(lambda: "event=ready" in before.said())
        before.stop()
        self.runtime = RealRuntime(nets, configuration=configuration + "\nlimits: {memory_max: 116 MiB, stats_bytes: 4 MiB}")
        self.addCleanup(self.runtime.stop)

    def test_a_model_whose_plan_has_no_memory_is_available(self):
        self.start_tight("model_defaults: {load: standby}")
        self.wait_until(lambda: "event=ready" in self.runtime.said())
        stats, states = self.shown()
        self.assertEqual(stats, states)
        self.assertEqual(sorted(states.values()), ["available", "standby", "standby", "standby"])
        late = next(name for name in "abcd" if states[name] == "available")
        self.assertIn(f"event=model-not-on-standby model={late} ", self.runtime.said())

    def test_plans_on_standby_make_room_the_one_used_longest_ago_first(self):
        self.start_tight(ON_REQUEST + ", idle_standby_s: 1}")
        client = self.runtime.connect()
        self.addCleanup(client.close)
        for name in "abcd":
            answer = client.infer(name, np.ones((1, 1024), np.float32))
            self.assertEqual(answer[0, 0], 1024 * "abcd".index(name))
            self.comes_to(client, name, "standby")
        self.assertEqual(self.states(client), {"a": "available", "b": "standby", "c": "standby", "d": "standby"})

    def test_who_has_to_make_room_goes_on_standby(self):
        nets = {name: adding(i) for i, name in enumerate("abc")}
        client = self.serve(nets, "model_defaults: {load: standby}\nlimits: {models_max_loaded: 1}")
        self.assertEqual(set(self.states(client).values()), {"standby"})
        for name in "abcab":
            np.testing.assert_array_equal(client.infer(name, X), X + "abc".index(name))
            self.comes_to(client, name, "ready")
            self.assertEqual(sorted(self.states(client).values()), ["ready", "standby", "standby"])

    def test_another_file_takes_the_place_of_the_plan_on_standby(self):
        client = self.serve({"a": adding(1)}, "model_defaults: {load: standby}")
        path = os.path.join(self.runtime.folder, "models", "a", "1", "model.onnx")
        with open(path + ".new", "wb") as file:
            file.write(adding(5))
        os.rename(path + ".new", path)
        self.runtime.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: self.runtime.said().count("event=model-standby model=a") == 2)
        np.testing.assert_array_equal(client.infer("a", X), X + 5)

    def test_a_member_is_loaded_with_its_ensemble(self):
        nets = {"a": adding(1), "b": adding(3), "both": {"config.yaml": b"ensemble: {members: [a, b], rule: mean}\n"}}
        client = self.serve(nets, ON_REQUEST + ", idle_unload_s: 1}")
        np.testing.assert_array_equal(client.infer("both", X), X + 2)
        self.comes_to(client, "both", "ready")
        time.sleep(1.5)
        self.assertEqual(self.states(client), {"a": "ready", "b": "ready", "both": "ready"})


if __name__ == "__main__":
    unittest.main()
