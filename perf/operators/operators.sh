#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs operators.py with the packages of the engines, in the virtual environment that engine.sh makes.
#     perf/operators/operators.sh --out build/operators.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" engine "$here/../engine/requirements.txt")
exec "$python" "$here/operators.py" "$@"
