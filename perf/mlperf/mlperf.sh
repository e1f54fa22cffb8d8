#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs mlperf.py with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/zoo/zoo.sh --out build/zoo --only resnet50,minilm-trained
#     perf/mlperf/mlperf.sh --zoo build/zoo --out build/mlperf.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" mlperf "$here/requirements.txt")
exec env PYTHONPATH="$here/../../client/python:$here/../serving" "$python" -B "$here/mlperf.py" "$@"
