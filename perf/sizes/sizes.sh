#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs sizes.py with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/sizes/sizes.sh --out build/sizes.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" sizes "$here/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" -B "$here/sizes.py" "$@"
