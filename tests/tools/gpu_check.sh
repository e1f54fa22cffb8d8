#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu_check.sh TREE BUILD FAKE: tools/gpu-check.sh without a GPU says so in one line; against libraries in the place of NVIDIA's (the
# folder FAKE) its parts run, out of the tree and out of an archive, and one that fails keeps none from running.
set -euo pipefail
tree=$1 build=$2 fake=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STARLING_BUILD=$build

fail() {
        printf 'gpu_check: %s\n' "$*" >&2
        exit 1
}

# expect STATUS COMMAND...: what it says is in $work/said.
expect() {
        local wanted=$1 status=0
        shift
        "$@" >"$work/said" 2>&1 || status=$?
        [ "$status" -eq "$wanted" ] || { cat "$work/said" >&2; fail "status $status, $wanted is right: $*"; }
}

# Of a file of results: verdict PART.
verdict() {
        python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["results"][sys.argv[2]]["verdict"])' "$work"/out/gpu-fake-*.json "$1"
}

without_gpu() {
        ! ldconfig -p | grep -q libcuda.so.1 || { printf '[SKIP] there is an NVIDIA driver\n'; return; }
        expect 3 env LD_LIBRARY_PATH= "$tree/tools/gpu-check.sh" --out "$work/none"
        [ "$(wc -l <"$work/said")" -eq 1 ] || fail "more than one line without a GPU: $(cat "$work/said")"
        grep -q '^gpu-check: no GPU: ' "$work/said" || fail "without a GPU: $(cat "$work/said")"
        [ ! -e "$work/none" ] || fail "results of no GPU"
        expect 2 "$tree/tools/gpu-check.sh" --only abacus
        expect 2 "$tree/tools/gpu-check.sh" --abacus
}

# On the stand-in all multiprocessors run any let, which is found out, and what comes behind it runs.
on_stand_in() {
        expect 1 env LD_LIBRARY_PATH="$fake" "$tree/tools/gpu-check.sh" --quick --out "$work/out" \
                --only device,zoo,launch,lets,latency,completions,memory
        [ "$(verdict device)" = passed ] && [ "$(verdict zoo)" = passed ] && [ "$(verdict memory)" = passed ] || fail "$(cat "$work/said")"
        case $(verdict lets) in failed:*"ran on 132"*) ;; *) fail "lets: $(verdict lets)" ;; esac
        grep -q '^| lenet | fp32 | 1 |' "$work"/out/gpu-fake-*.md || fail "no latency in $(cat "$work"/out/*.md)"
}

from_archive() {
        expect 0 "$tree/tools/gpu-check.sh" pack "$work/check.tar.xz" "$build"
        mkdir "$work/there" && tar -xJf "$work/check.tar.xz" -C "$work/there"
        rm -rf "$work/out"
        expect 0 env -u STARLING_BUILD LD_LIBRARY_PATH="$fake" "$work/there/tools/gpu-check.sh" --quick --out "$work/out" \
                --only device,zoo,serve,conformance
        [ "$(verdict serve)" = passed ] || fail "serve: $(verdict serve)"
}

case ${4:-all} in
archive) from_archive ;;
*) without_gpu; on_stand_in ;;
esac
