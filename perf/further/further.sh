#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exports and checks the further set with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/further/further.sh --out build/further
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" further "$here/requirements.txt")
exec "$python" "$here/further.py" "$@"
