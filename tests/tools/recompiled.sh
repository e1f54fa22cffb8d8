#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# recompiled.sh STARLING DIGITS: a model whose config.yaml asks for another plan gets one when it is reloaded, and answers from it:
# with a team where it had one thread, then with weights in halves, which takes about half the bytes; then the first one again.
set -euo pipefail
starling=$1
digits=$2
. "$(dirname "$0")/serving.sh"
mkdir -p "$folder/models/mlp/1"
cp "$digits/models/mlp/1/model.onnx" "$folder/models/mlp/1"

# plans: the sizes of those in the cache, the last one first
plans() {
        stat -c %s $(ls -t "$folder"/cache/starling/*.plan)
}

# asked SECONDS: a busy machine may have no time for any request in few of them
asked() {
        "$starling" bench model mlp --runtime "$name" --seconds "$1" --warmup 0 >"$folder/out" 2>&1
}

# reloaded LINE: with this config.yaml
reloaded() {
        printf '%s\n' "$1" >"$folder/models/mlp/config.yaml"
        "$starling" reload mlp --name "$name" >"$folder/out" 2>&1 || wrong "reload with $1: $(<"$folder/out")"
        asked 0.5 || { grep -q 'no request was answered' "$folder/out" && asked 30; } || wrong "requests with $1: $(<"$folder/out")"
}

# kept NUMBER: so many plans are in the cache, once the last one has been copied there
kept() {
        for ((i = 0; i < 1200; i++)); do
                [ "$(plans | wc -l)" -ge "$1" ] && break
                sleep 0.05
        done
        [ "$(plans | wc -l)" = "$1" ] || wrong "$2: $(plans | wc -l) plans, not $1"
}

printf 'threads: 1\n' >"$folder/models/mlp/config.yaml"
start
kept 1 "one thread"
reloaded 'threads: 2'
kept 2 "a team of two has the plan that was made for one thread"
whole=$(plans | head -n 1)
reloaded 'weights: f16'
kept 3 "weights in halves"
halves=$(plans | head -n 1)
((halves < whole * 2 / 3)) || wrong "weights in halves take $halves bytes, whole ones $whole"
reloaded 'threads: 1'
kept 3 "one thread again"
stop
exit $status
