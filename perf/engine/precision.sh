#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs precision.py with the packages of requirements.txt, in the virtual environment of engine.sh.
#     perf/engine/precision.sh --zoo build/zoo --variants build/int8 --out build/precision.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" engine "$here/requirements.txt")
exec "$python" "$here/precision.py" "$@"
