#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes and checks the zoo with the packages of requirements.txt, in a virtual environment of its own under the build folder.
#     perf/zoo/zoo.sh --out build/zoo
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../build/zoo-venv

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
        python3 -m venv --clear "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
        cp "$here/requirements.txt" "$venv/installed.txt"
fi
exec "$venv/bin/python" "$here/zoo.py" "$@"
