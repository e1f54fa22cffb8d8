#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# notebook.sh NOTEBOOK STARLING: the notebook runs from its first cell to its last, with this command, and shows what it says that it shows.
# Exit status 77, with the reason, where the packages of notebook.txt cannot be had.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python=$(timeout 400 "$here/../../../tools/venv.sh" notebook "$here/notebook.txt" 2>"$folder/log") || {
        printf '[SKIP] client-notebook: its packages cannot be had: %s\n' "$(tail -n 1 "$folder/log")"
        exit 77
}
export PATH=$(dirname "$2"):$PATH STARLING_SOCKET_DIR=$folder IPYTHONDIR=$folder JUPYTER_RUNTIME_DIR=$folder
"$python" -B "$here/run_notebook.py" "$1" 2>"$folder/log" || {
        cat "$folder/log"
        exit 1
}
