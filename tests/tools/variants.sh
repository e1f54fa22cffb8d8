#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# variants.sh STARLING DIGITS: where a variant should be slower than float32, by the figures of the core that are given, quantize,
# inspect and compile say one line with both figures, and a runtime logs one, also when the plan comes from the cache; where it
# should be faster they say nothing.
set -euo pipefail
starling=$1
digits=$2
folder=$(mktemp -d)
runtime=
trap '[ -z "$runtime" ] || kill "$runtime"; wait; rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache XDG_DATA_HOME=$folder/data STARLING_SOCKET_DIR=$folder/run TMPDIR=$folder/tmp
mkdir "$folder/cache" "$folder/tmp" "$folder/models" "$folder/models/lenet" "$folder/models/lenet/1"
slow=flops=4e11,bytes=1e10
fast=flops=1e10,bytes=4e11
said='in int8 should take .* in fp32 .*slower than fp32 here (int8 10, fp32 400 GFLOP/s)$'
status=0

wrong() {
        printf 'starling: %s\n' "$*"
        status=1
}

# check COMMAND ARGUMENT...: with figures by which bytes are slow it says so, with others nothing
check() {
        "$starling" "$@" -O core=$slow >"$folder/out" 2>"$folder/err" || wrong "$1: $(<"$folder/err")"
        [ "$(grep -c "$said" "$folder/err")" = 1 ] || wrong "$1 does not say that int8 is slower: $(<"$folder/err")"
        "$starling" "$@" -O core=$fast >"$folder/out" 2>"$folder/err" || wrong "$1: $(<"$folder/err")"
        [ ! -s "$folder/err" ] || wrong "$1 where int8 is faster: $(<"$folder/err")"
}

# logged CORE: how often a runtime says it, with the plan from wherever it is
logged() {
        printf 'core: "%s"\n' "$1" >"$folder/models/lenet/config.yaml"
        "$starling" serve --name tested "$folder/models" 2>"$folder/log" &
        runtime=$!
        for ((i = 0; i < 200; i++)); do
                grep -q event=ready "$folder/log" && break
                sleep 0.05
        done
        kill "$runtime"
        wait "$runtime" || wrong "serve ended with status $?: $(<"$folder/log")"
        runtime=
        grep -c 'event=variant-slower model=lenet .*slower than fp32 here' "$folder/log" || true
}

model=$folder/models/lenet/1/model.onnx
check quantize "$digits/models/lenet/1/model.onnx" --calibration "$digits/test-images.f32" --samples 16 -o "$model"
check inspect "$model"
check compile "$model" -o "$folder/plan"
[ "$(logged $slow)" = 1 ] || wrong "serve does not say it: $(<"$folder/log")"
[ "$(logged $slow)" = 1 ] || wrong "serve does not say it of a plan from the cache: $(<"$folder/log")"
[ "$(logged $fast)" = 0 ] || wrong "serve says it where int8 is faster: $(<"$folder/log")"
exit $status
