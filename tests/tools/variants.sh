#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# variants.sh STARLING DIGITS: where a variant should be slower than float32, by the figures of the core that are given, quantize,
# inspect and compile say one line with both figures, and a runtime logs one, also when the plan comes from the cache; where it
# should be faster they say nothing.
set -euo pipefail
starling=$1
digits=$2
. "$(dirname "$0")/serving.sh"
mkdir -p "$folder/models/lenet/1"
slow=flops=4e11,bytes=1e10
fast=flops=1e10,bytes=4e11
said='in int8 should take .* in fp32 .*slower than fp32 here (int8 10, fp32 400 GFLOP/s)$'

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
        start
        stop
        grep -c 'event=variant-slower model=lenet .*slower than fp32 here' "$folder/said" || true
}

model=$folder/models/lenet/1/model.onnx
check quantize "$digits/models/lenet/1/model.onnx" --calibration "$digits/test-images.f32" --samples 16 -o "$model"
check inspect "$model"
check compile "$model" -o "$folder/plan"
[ "$(logged $slow)" = 1 ] || wrong "serve does not say it: $(<"$folder/said")"
[ "$(logged $slow)" = 1 ] || wrong "serve does not say it of a plan from the cache: $(<"$folder/said")"
[ "$(logged $fast)" = 0 ] || wrong "serve says it where int8 is faster: $(<"$folder/said")"
exit $status
