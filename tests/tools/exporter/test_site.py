# SPDX-License-Identifier: Apache-2.0
"""What the exporter answers beside metrics, of a runtime that serves: statistics, health, and a page that is whole by itself."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import unittest

from exporter_world import Exporter, wait_for

try:
    import numpy as np
except ImportError:
    print("[SKIP] exporter-site: python3-numpy is not installed")
    sys.exit(77)

sys.path.insert(0, os.environ["STARLING_CLIENT_TESTS"])
from world import RealRuntime  # noqa: E402

MODELS = os.environ["STARLING_MODELS"]
RESTLESS = {"passes", "sleeps", "wakes", "doorbells", "late_ns", "crowded", "saturated", "waiting_clients"}  # of a dispatcher at rest


def still(stats):
    """What does not change while nobody asks."""
    stats = dict(stats)
    stats.pop("taken_ns")
    stats["dispatchers"] = [{key: value for key, value in one.items() if key not in RESTLESS} for one in stats["dispatchers"]]
    return stats


def sha256_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


class SiteTest(unittest.TestCase):
    def serve(self, models):
        runtime = RealRuntime(models)
        self.addCleanup(runtime.stop)
        exporter = Exporter(runtime)
        self.addCleanup(exporter.stop)
        return runtime, exporter

    def test_statistics_are_those_of_the_command(self):
        runtime, exporter = self.serve(MODELS)
        with runtime.connect() as client:
            for n in (1, 3):
                client.infer("digits", np.zeros((n, 1, 8, 8), np.float32))

        def both():
            status, headers, body = exporter.ask("/api/stats")
            self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
            (one,) = json.loads(body)["runtimes"]
            self.assertEqual((one["name"], one["up"], one["cause"], one["gone_unix_ns"]), (runtime.name, True, "", 0))
            return still(one["stats"]), still(json.loads(runtime.stats("--json")))

        wait_for("the client has left", lambda: not both()[1]["clients"])
        here, there = both()
        self.assertEqual(here, there)
        self.assertEqual({model["name"]: model["completed"] for model in here["models"]}["digits"], 2)

    def test_ready_is_when_no_model_failed(self):
        with open(os.path.join(MODELS, "mlp", "1", "model.onnx"), "rb") as file:
            mlp = file.read()
        runtime, exporter = self.serve({"good": mlp, "broken": b"nothing"})
        runtime.connect().close()
        status, _, body = exporter.ask("/readyz")
        self.assertEqual(status, 503)
        self.assertRegex(body, rf"^{runtime.name}: model broken has failed: .+\n$")
        self.assertEqual(exporter.ask("/readyz", "HEAD")[::2], (503, ""))
        self.assertEqual(exporter.ask("/healthz")[::2], (200, f"{runtime.name}: lives\n"))
        with open(os.path.join(runtime.folder, "models", "broken", "1", "model.onnx"), "wb") as file:
            file.write(mlp)
        loading = [os.environ["STARLING_COMMAND"], "load", "--name", os.path.join(runtime.folder, runtime.name + ".sock"), "broken"]
        subprocess.run(loading, check=True, stdout=subprocess.DEVNULL)
        wait_for("ready", lambda: exporter.ask("/readyz")[::2] == (200, f"{runtime.name}: ready\n"))
        self.assertEqual(exporter.ask("/readyz", "HEAD")[::2], (200, ""))
        runtime.process.kill()
        runtime.process.wait()
        for path in ("/healthz", "/readyz"):
            self.assertEqual(exporter.ask(path)[::2], (503, f"{runtime.name}: it crashed or was killed\n"))

    def test_the_page_is_whole_and_its_policy_allows_that_alone(self):
        _, exporter = self.serve(MODELS)
        status, headers, body = exporter.ask("/")
        self.assertEqual(status, 200)
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        (style,), (script,) = (re.findall(rf"<{tag}>(.*?)</{tag}>", body, re.DOTALL) for tag in ("style", "script"))
        self.assertEqual(policy["default-src"], "'none'")
        self.assertEqual(policy["script-src"], sha256_of(script))
        self.assertEqual(policy["style-src"], sha256_of(style))
        self.assertEqual((policy["connect-src"], policy["img-src"], policy["frame-ancestors"]), ("'self'", "data:", "'none'"))
        self.assertEqual(policy.keys() - {"default-src", "script-src", "style-src", "connect-src", "img-src"}, {"base-uri", "form-action", "frame-ancestors"})
        elsewhere = [url for url in re.findall(r"https?://[^\s\"')]+", body) if not url.startswith("http://www.w3.org/2000/svg")]
        self.assertEqual(elsewhere, [])
        for way_in in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=", "@import"):
            self.assertNotIn(way_in, body)
        self.assertLess(len(body), 64 << 10)


if __name__ == "__main__":
    unittest.main()
