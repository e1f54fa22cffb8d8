#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# types.sh PACKAGE: mypy --strict and pyright find nothing in the Python client nor in programs that use it well, and each mistake of those that
# use it badly.
# Exit status 77, with the reason, where the packages of types.txt cannot be had.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
log=$(mktemp)
trap 'rm -f "$log"' EXIT

python=$(timeout 400 "$here/../../../tools/venv.sh" types "$here/types.txt" 2>"$log") || {
        printf '[SKIP] client-python-types: its packages cannot be had: %s\n' "$(tail -n 1 "$log")"
        exit 77
}
"$python" -B "$here/check_types.py" "$1" "$here/typed"
