# SPDX-License-Identifier: Apache-2.0
"""The `starling` command of a wheel: the program that lies beside this file."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "starling")
    try:
        os.execv(program, ["starling", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"starling: {program}: {error.strerror}; this installation has the Python client alone")
