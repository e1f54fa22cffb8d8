#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an experiment of a paper, NAME.py, with the packages of the zoo, in a virtual environment of its own under the build folder.
#     perf/papers/papers.sh overhead --out build/overhead.json
#     perf/papers/papers.sh memory --zoo build/zoo --out build/memory.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=${1:?which experiment}
shift
python=$("$here/../../tools/venv.sh" zoo "$here/../zoo/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" -B "$here/$name.py" "$@"
