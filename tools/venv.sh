#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# venv.sh NAME REQUIREMENTS: makes the virtual environment build/NAME-venv of a requirements file, again when that has changed, and prints
# where its Python is. Wheels alone and without their dependencies: the file names every package.
set -eu
build=$(cd "$(dirname "$0")/.." && pwd)/build
venv=$build/$1-venv

mkdir -p "$build"
exec 9>"$venv.lock"
flock 9
if ! cmp -s "$2" "$venv/installed.txt"; then
        python3 -m venv --clear "$venv" >&2
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: -r "$2" >&2
        cp "$2" "$venv/installed.txt"
fi
printf '%s\n' "$venv/bin/python"
