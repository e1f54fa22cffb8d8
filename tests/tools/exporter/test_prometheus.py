# SPDX-License-Identifier: Apache-2.0
"""The exporter and Prometheus itself: what a runtime counts arrives there, in whatever order runtimes start and are killed."""

import os
import subprocess
import sys
import unittest

from exporter_world import Exporter, Prometheus, find_prometheus, wait_for

try:
    import numpy as np
except ImportError:
    print("[SKIP] exporter-prometheus: python3-numpy is not installed")
    sys.exit(77)

sys.path.insert(0, os.environ["STARLING_CLIENT_TESTS"])
from world import RealRuntime  # noqa: E402

PROGRAMS = find_prometheus()
MODELS = os.environ["STARLING_MODELS"]
DONE = 'sum(starling_inference_completions_total{model="lenet",outcome="done"})'


def infer(runtime, n):
    with runtime.connect() as client:
        images = client.empty((2, 1, 8, 8), np.float32)
        images[:] = 0
        for _ in range(n):
            client.infer("lenet", images)


class PrometheusTest(unittest.TestCase):
    def setUp(self):
        self.runtime = RealRuntime(MODELS)
        self.addCleanup(self.runtime.stop)
        self.exporter = Exporter(self.runtime)
        self.addCleanup(self.exporter.stop)

    def watch(self):
        prometheus = Prometheus(PROGRAMS, self.exporter)
        self.addCleanup(prometheus.stop)
        return prometheus

    def wait_for_value(self, prometheus, expression, value):
        wait_for(f"{expression} is {value}", lambda: prometheus.value(expression) == value)

    def wait_for_any(self, prometheus, expression):
        return wait_for(expression, lambda: prometheus.value(expression))

    # A scrape that a busy machine is late for leaves nothing for a moment: each value is waited for.
    def test_what_is_counted_arrives(self):
        infer(self.runtime, 20)
        prometheus = self.watch()
        self.wait_for_value(prometheus, DONE, 20)
        self.wait_for_value(prometheus, 'sum(starling_inference_samples_total{model="lenet"})', 40)
        self.wait_for_value(prometheus, 'sum(starling_inference_duration_seconds_count{model="lenet"})', 20)
        p99 = self.wait_for_any(
            prometheus, 'histogram_quantile(0.99, sum by (le) (starling_inference_duration_seconds_bucket{model="lenet"}))'
        )
        mean = self.wait_for_any(
            prometheus,
            'sum(starling_inference_duration_seconds_sum{model="lenet"}) / sum(starling_inference_duration_seconds_count{model="lenet"})',
        )
        self.assertTrue(0 < p99 < 70 and 0 < mean < 70, (p99, mean))

        def has_scraped():
            target = prometheus.get("targets")["activeTargets"][0]
            return (target["health"], target["lastError"]) == ("up", "")

        wait_for("the target is up", has_scraped)
        types = prometheus.get("metadata")
        self.assertEqual(types["starling_inference_duration_seconds"][0]["type"], "histogram")
        self.assertEqual(types["starling_inference_completions"][0]["type"], "counter", "it is scraped as OpenMetrics")

    def test_a_runtime_that_is_killed_is_down_and_the_next_one_is_found(self):
        infer(self.runtime, 5)
        prometheus = self.watch()
        self.wait_for_value(prometheus, DONE, 5)
        self.wait_for_value(prometheus, "starling_up", 1)
        self.runtime.process.kill()
        self.runtime.process.wait()
        self.wait_for_value(prometheus, "starling_up", 0)
        self.wait_for_value(prometheus, 'starling_runtime_state{state="dead"}', 1)
        self.wait_for_value(prometheus, DONE, 5)
        self.wait_for_value(prometheus, "up", 1)
        self.runtime.start()
        infer(self.runtime, 3)
        self.wait_for_value(prometheus, "starling_up", 1)
        self.wait_for_value(prometheus, DONE, 3)
        self.wait_for_value(prometheus, "changes(starling_start_time_seconds[5m])", 1)

    def test_promtool_has_nothing_to_say(self):
        infer(self.runtime, 1)
        said = subprocess.run(
            [os.path.join(PROGRAMS, "promtool"), "check", "metrics"],
            input=self.exporter.scrape(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.assertEqual((said.returncode, said.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
