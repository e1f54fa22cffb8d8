#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs starts.py with the packages of ../engine/requirements.txt, in the same virtual environment under the build folder.
#     perf/starts/starts.sh --zoo build/zoo --out build/starts.json
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../build/engine-venv

if ! cmp -s "$here/../engine/requirements.txt" "$venv/installed.txt"; then
        python3 -m venv --clear "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/../engine/requirements.txt"
        cp "$here/../engine/requirements.txt" "$venv/installed.txt"
fi
exec env PYTHONPATH="$here/../../client/python" "$venv/bin/python" "$here/starts.py" "$@"
