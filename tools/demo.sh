#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on real input: serves the digits ensemble and sends it the test split from a separate client process.
# Leaves nothing behind: the runtime is stopped by its own pid, its socket lies in a folder of this run.
set -euo pipefail
cd "$(dirname "$0")/.."

digits=client/examples/digits
bin=build/release/bin

tools/setup.sh
printf 'demo: building\n'
mkdir -p build
if ! { cmake --preset release && cmake --build --preset release --target starling-tool digits-demo; } >build/demo.log 2>&1; then
        tail -n 60 build/demo.log >&2
        exit 1
fi

STARLING_SOCKET_DIR=$(mktemp -d)
export STARLING_SOCKET_DIR
name=demo-$$
runtime=

finish() {
        if [ -n "$runtime" ]; then
                kill -TERM "$runtime" 2>/dev/null || true
                wait "$runtime" || true
        fi
        rm -rf "$STARLING_SOCKET_DIR"
}
trap finish EXIT
trap 'exit 130' INT TERM

printf 'demo: starting the runtime\n'
"$bin/starling" serve --name "$name" --log-level warning "$digits/models" &
runtime=$!

# Ready means ready: whoever can attach can infer.
until "$bin/starling" models --name "$name" >/dev/null 2>&1; do
        kill -0 "$runtime" 2>/dev/null || { printf 'demo: the runtime did not start\n' >&2; exit 1; }
        sleep 0.1
done
"$bin/starling" models --name "$name"

printf 'demo: sending the test split\n'
"$bin/digits-demo" --name "$name" "$digits"
