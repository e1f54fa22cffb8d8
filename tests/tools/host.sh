#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# host.sh STARLING: `starling version --host` measures once, says the same from then on, and what it prints is a value of option `core`.
set -euo pipefail
starling=$1
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export XDG_CACHE_HOME=$cache
status=0

wrong() {
        printf 'starling version: %s\n' "$*"
        status=1
}

[[ $("$starling" version) == "$("$starling" --version)" ]] || wrong "version and --version differ"
[ -z "$(ls "$cache")" ] || wrong "without --host something is measured"
first=$("$starling" version --host)
[[ $first == *"processor  "* && $first == *"backend    cpu: "* ]] || wrong "processor or backend is missing: $first"
if [[ $first == *"nothing is measured"* ]]; then
        exit "$status"
fi
ls "$cache"/starling/*.core >/dev/null || wrong "nothing is kept"
[ "$first" = "$("$starling" version --host)" ] || wrong "a second time it says something else"
core=$(sed -n 's/^    \(core=.*\)/\1/p' <<<"$first")
for figure in flops weights stream far near store winograd_4 onednn_product; do
        [[ ,${core#core=} == *,"$figure"=* ]] || wrong "no $figure in $core"
done
# The option is taken, and the file is what is missing.
said=$("$starling" compile -O "$core" "$cache/none.onnx" -o "$cache/plan" 2>&1) && wrong "a file that is not there is compiled"
[[ $said == *none.onnx* ]] || wrong "the option is not taken: $said"
said=$("$starling" compile -O core=speed=1 "$cache/none.onnx" -o "$cache/plan" 2>&1) && wrong "speed=1 is a figure"
[[ $said == *"speed=1"* ]] || wrong "speed=1 is refused without a word: $said"
exit "$status"
