#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs engine.py with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/engine/engine.sh --zoo build/zoo --batches 1,8 --out build/engine.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../build/engine-venv

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
        python3 -m venv --clear "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
        cp "$here/requirements.txt" "$venv/installed.txt"
fi
exec "$venv/bin/python" "$here/engine.py" "$@"
