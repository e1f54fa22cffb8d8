#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs control.py with the packages of ../engine/requirements.txt, in the same virtual environment under the build folder.
#     perf/starts/control.sh --trees ../before,. --out build/control.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" engine "$here/../engine/requirements.txt")
exec env PYTHONPATH="$here:$here/../serving" "$python" "$here/control.py" "$@"
