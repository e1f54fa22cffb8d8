#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs weights.py with the packages of the zoo, in its virtual environment.
#     perf/weights/weights.sh --zoo build/zoo --starling build/release/bin/starling --out build/weights.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" zoo "$here/../zoo/requirements.txt")
exec "$python" "$here/weights.py" "$@"
