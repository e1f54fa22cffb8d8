# SPDX-License-Identifier: Apache-2.0
"""What a cell is to ask, as a file in its folder: written by preparing.py, read by servers and clients in whatever process."""

import json
import os


def plan_of(folder):
    """What run.py has written for this workload: models with names, files and ports, the shape of a sample, the outputs of one."""
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
        return json.load(file)
