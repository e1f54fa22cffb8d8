#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains and exports forests into build/forests, once, then runs trees.py, with the packages of tests/exports/requirements.txt.
#     perf/trees/trees.sh --out build/trees.json --cpu 1
set -eu
here=$(cd "$(dirname "$0")" && pwd)
forests=$here/../../build/forests
python=$("$here/../../tools/venv.sh" exports "$here/../../tests/exports/requirements.txt")

OMP_NUM_THREADS=1 "$python" "$here/forests.py" "$forests"
exec "$python" "$here/trees.py" --forests "$forests" "$@"
