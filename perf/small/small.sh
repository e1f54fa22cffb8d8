#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs small.py with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/small/small.sh --out build/small.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" small "$here/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" -B "$here/small.py" "$@"
