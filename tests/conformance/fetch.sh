#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh FOLDER: unpacks ONNX's own test cases of opsets up to 23 into FOLDER/node, and its networks whose weights are constants
# into FOLDER/light, once. They come out of the wheel of the release whose newest opset is 23 (later wheels leave them out). Exit status 77, with the reason, when that cannot be done.
set -eu

version=1.18.0
wheel=onnx-$version-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl
sum=6acafb3823238bbe8f4340c7ac32fb218689442e074d797bee1c5c9a02fdae75

folder=$1
[ -e "$folder/node/complete" ] && [ -e "$folder/light" ] && exit 0

give_up() {
        printf 'no cases of opsets 18 to 23: %s\n' "$1"
        exit 77
}

mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
pip=$("$(dirname "$0")/../../tools/venv.sh" pip 2>"$work/log") || give_up "python3 -m venv: $(tail -n 1 "$work/log")"
timeout 300 "$pip" download -q --no-deps --only-binary=:all: --python-version 3.11 --platform manylinux2014_x86_64 \
        --disable-pip-version-check -d "$work" "onnx==$version" >"$work/log" 2>&1 || give_up "pip download: $(tail -n 1 "$work/log")"
printf '%s  %s\n' "$sum" "$work/$wheel" | sha256sum -c --quiet - >"$work/log" 2>&1 || give_up "the wheel is another: $(cat "$work/log")"
python3 - "$work/$wheel" "$work" <<'EOF'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    folders = tuple("onnx/backend/test/data/" + name for name in ("node/", "light/"))
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(folders)])
EOF
touch "$work/onnx/backend/test/data/node/complete"
# Whoever comes second finds the folders in place.
mv -T "$work/onnx/backend/test/data/light" "$folder/light" 2>/dev/null || [ -e "$folder/light" ]
mv -T "$work/onnx/backend/test/data/node" "$folder/node" 2>/dev/null || [ -e "$folder/node/complete" ]
