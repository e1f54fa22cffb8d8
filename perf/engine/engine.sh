#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs engine.py with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/engine/engine.sh --zoo build/zoo --batches 1,8 --out build/engine.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" engine "$here/requirements.txt")
exec "$python" "$here/engine.py" "$@"
