#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh FOLDER: cases of operators beyond ONNX's own, in FOLDER/cases, laid out as ONNX lays out its own. Each family is a Python
# file here; what ONNX Runtime computes is what is expected, but for byte_range.py. A family is made again when its file, case.py or
# requirements.txt has changed. FOLDER/node gets the cases that the onnx package has as code (collect.py). Exit status 77, with the
# reason, when the Python packages cannot be had.
set -eu

here=$(dirname "$(realpath "$0")")
folder=$1

give_up() {
        printf 'no cases of other domains and of new opsets: %s\n' "$1"
        exit 77
}

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
python=$(timeout 400 "$here/../../../tools/venv.sh" made "$here/requirements.txt" 2>"$folder/log") || give_up "$(tail -n 1 "$folder/log")"
"$python" "$here/make.py" "$folder/cases"
exec "$python" "$here/../collect.py" "$folder/node"
