#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# served.sh STARLING FOLDER: ONNX's cases of operators, which made/make.sh has written below FOLDER, through `starling serve` and
# Python. Exit status 77, with the reason, when the Python packages cannot be had.
set -eu

here=$(dirname "$(realpath "$0")")
python=$(timeout 400 "$here/../../tools/venv.sh" made "$here/made/requirements.txt" 2>/dev/null) || {
        printf 'no Python packages: see conformance-make\n'
        exit 77
}
exec "$python" "$here/served.py" "$1" "$2/node" "$here/served_exceptions.txt"
