# SPDX-License-Identifier: Apache-2.0
"""What a model's own config.yaml says, as it shows at `starling serve`. Skipped where `starling` is not built."""

import json
import os
import subprocess
import unittest

import test_models as models
from world import RealRuntime


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Configured(unittest.TestCase):
    def serve(self, nets, configuration="", *arguments):
        """A runtime whose own file says @configuration."""
        runtime = RealRuntime(nets, *arguments, configuration=configuration)
        self.addCleanup(runtime.stop)
        return runtime

    def models(self, runtime):
        """What `starling models --verbose` says, by name."""
        said = subprocess.run(
            [os.environ["STARLING_COMMAND"], "models", "--name", runtime.name, "--verbose", "--json"],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            stdout=subprocess.PIPE,
            check=True,
        )
        return {model["name"]: model for model in json.loads(said.stdout)}

    def test_an_empty_list_overrides_the_defaults(self):
        defaults = "threads: {inline_us: 0}\nmodel_defaults: {batch_sizes: [1, 4], fuse: auto, prepared_shapes: ['T=2', 'T=4'], shapes_max: 2}"
        own = b"batch_sizes: []\nfuse: []\nprepared_shapes: []\nshapes_max: 1\n"
        runtime = self.serve(
            {
                "defaults": models.turning(models.F32),
                "own": {"1/model.onnx": models.turning(models.F32), "config.yaml": own},
                "many": {"1/model.onnx": models.turning(models.F32), "config.yaml": own + b"instances: 3\n"},
            },
            defaults,
        )
        runtime.connect().close()
        served = self.models(runtime)
        self.assertEqual([worker["batch_max"] for worker in served["defaults"]["workers"]], [4, 1])
        self.assertEqual([worker["batch_max"] for worker in served["own"]["workers"]], [32])
        self.assertEqual([worker["batch_max"] for worker in served["many"]["workers"]], [32] * 3)
