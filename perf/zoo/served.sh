#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every network of the zoo through the daemon and from Python, beside ONNX Runtime, with the packages of perf/engine.
#     perf/zoo/served.sh --zoo build/zoo
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" engine "$here/../engine/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" -B "$here/served.py" "$@"
