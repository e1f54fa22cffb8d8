#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the simulator with the runtime on five workloads, and prints the table; fidelity.py has the options.
#     perf/fidelity/fidelity.sh --zoo build/zoo --out build/fidelity.json
#     perf/fidelity/fidelity.sh --table build/fidelity.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
cmake --build "$root/build/release" --target starling-tool bench-fidelity > /dev/null
python=$("$root/tools/venv.sh" zoo "$here/../zoo/requirements.txt")
exec env PYTHONPATH="$root/client/python:$here/../serving" "$python" -B "$here/fidelity.py" --digits "$root/client/examples/digits/models" "$@"
