#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs cold.py with the packages of ../engine/requirements.txt, in the same virtual environment under the build folder.
#     perf/cold/cold.sh --models build/zoo build/further --out build/cold.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" engine "$here/../engine/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" "$here/cold.py" "$@"
