#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs overhead.py with the packages of the zoo, in a virtual environment of its own under the build folder.
#     perf/papers/overhead.sh --out build/overhead.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" zoo "$here/../zoo/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" -B "$here/overhead.py" "$@"
