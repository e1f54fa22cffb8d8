#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes and checks the zoo with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/zoo/zoo.sh --out build/zoo
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../tools/venv.sh" zoo "$here/requirements.txt")
exec "$python" "$here/zoo.py" "$@"
