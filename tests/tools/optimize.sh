#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# optimize.sh STARLING: `starling optimize` on a file of costs: its answer fits, is the same for a seed, keeps pins and forbidden
# devices, outlives SIGINT, and explains itself; hostile fleets end in one line.
set -euo pipefail
starling=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
status=0

wrong() {
        printf 'starling optimize: %s\n' "$*"
        status=1
}

cat >costs.yaml <<'EOF'
batches: [8, 16, 32]
classes: [{name: V100, kind: gpu}, {name: host, kind: cpu}]
devices:
  - {name: gpu, class: V100, memory: 4GiB, count: 3}
  - {name: cpu, class: host, memory: 64GiB}
models: [{name: small, weights: 100MiB}, {name: middle, weights: 200MiB}, {name: large, weights: 500MiB}]
costs:
  - {model: small, class: V100, source: derived, latency_ns: [20000000, 32000000, 60000000], workspace: [500MiB, 1GiB, 2GiB]}
  - {model: middle, class: V100, source: derived, latency_ns: [40000000, 70000000, 130000000], workspace: [600MiB, 1GiB, 2GiB]}
  - {model: large, class: V100, source: derived, latency_ns: [50000000, 90000000, 170000000], workspace: [900MiB, 2GiB, 3GiB]}
  - {model: small, class: host, source: derived, latency_ns: [400000000, 800000000, 1600000000]}
  - {model: large, class: host, source: derived, latency_ns: [900000000, 1800000000, 3600000000]}
EOF

run() {
        "$starling" optimize costs.yaml "$@" 2>err || wrong "$*: status $?: $(<err)"
}

figure() {
        sed -n "s/^$1 *\([0-9.]*\).*/\1/p" "$2"
}

run --benches 2000 -o first.yaml >first
run --benches 2000 -o second.yaml >second
cmp -s first.yaml second.yaml || wrong "the same seed finds another allocation"
run --benches 2000 -o - >third.yaml
cmp -s first.yaml third.yaml && [ ! -e ./- ] || wrong "-o - is not standard output: $(<third.yaml)"
grep -q '^throughput' err || wrong "-o -: what is said of the answer is not on standard error: $(<err)"
"$starling" optimize costs.yaml --benches 500 -o - >/dev/full 2>err && wrong "-o - to a full device ends well"
grep -q '^starling optimize: standard output: ' err || wrong "-o - to a full device: $(<err)"
"$starling" allocation check first.yaml --costs costs.yaml || wrong "the answer does not pass the check"
"$starling" allocation show first.yaml --costs costs.yaml >shown
[ "$(figure throughput first)" = "$(figure throughput shown)" ] || wrong "allocation show computes another throughput"
awk -v got="$(figure throughput first)" -v bound="$(figure bound first)" 'BEGIN { exit !(got > 0 && got <= bound) }' ||
        wrong "throughput $(figure throughput first), bound $(figure bound first)"
awk -v got="$(figure throughput first)" -F '[ ,]+' '/^WFD/ { exit !(got >= $3 && got >= $4) }' first || wrong "below WFD or BGO: $(<first)"

run --benches 500 --pin large@gpu1=8 --forbid gpu3 -o pinned.yaml >/dev/null
grep -q "device: 'gpu1', batches: \[.*, 8\]" pinned.yaml || wrong "the pin is not kept: $(<pinned.yaml)"
grep -q gpu3 pinned.yaml && wrong "a forbidden device is used: $(<pinned.yaml)"

run --benches 500 --devices 'gpu1*2,cpu' --models small,large --explain -o some.yaml >explained
grep -q "device: 'gpu1.2'" some.yaml || wrong "two devices alike, and one is not used: $(<some.yaml)"
"$starling" allocation check some.yaml --costs costs.yaml || wrong "an answer for other devices and fewer models does not pass the check"
"$starling" allocation show some.yaml --costs costs.yaml >shown
[ "$(figure throughput explained)" = "$(figure throughput shown)" ] || wrong "allocation show computes another throughput of it"
grep -q 'busy all the time' explained && grep -q 'one more "gpu1" would bring +' explained && grep -q ' binds' explained ||
        wrong "no explanation: $(<explained)"
run --benches 500 --objective devices --load 20 >few
[[ $(figure devices few) == 1 ]] || wrong "20 samples a second need one device: $(<few)"

# Interrupted as soon as it tells of its first benches: it ends, with an answer.
mkfifo told
"$starling" optimize costs.yaml --benches 1000000000 -o interrupted.yaml >stopped 2>told &
search=$!
{
        read -r _
        kill -INT "$search"
        cat >/dev/null
} <told
wait "$search" || wrong "status $? after SIGINT"
grep -q 'interrupted: the best so far' stopped || wrong "nothing said of the interruption: $(<stopped)"
"$starling" allocation check interrupted.yaml --costs costs.yaml || wrong "what was kept does not pass the check"

code=0
said=$("$starling" allocation chekc first.yaml --costs costs.yaml 2>&1) || code=$?
[[ $code -eq 2 && $said == *'"chekc" is not show or check' ]] || wrong "an action that is none: $code, $said"

# refused TEXT OPTION...: one line, with TEXT in it.
refused() {
        local text=$1 said
        code=0
        shift
        said=$("$starling" optimize "$@" 2>&1 >/dev/null) || code=$?
        [ "$code" -ne 0 ] && [[ $said == *"$text"* && $said != *$'\n'* ]] || wrong "$*: status $code: $said"
}
refused 'more than 4096' costs.yaml --devices 'gpu1*1000000'
refused 'the costs have no "gpu9"' costs.yaml --devices gpu9
refused 'batch 12: no cost is known' costs.yaml --pin small@gpu1=12
for case in '--headroom 1' '--starts 0' '--benches 0' '--seconds 0' '--confirm x'; do
        read -r option value <<<"$case"
        refused "$option: \"$value\" is not a number from" costs.yaml "$option" "$value"
        [ "$code" = 2 ] || wrong "$case: status $code"
done
mkdir folder
refused '--batches: "0" is not' folder --batches 2,0
[ "$code" = 2 ] || wrong "batches: status $code"
refused 'device "gpu": not cpu' folder --devices cpu,gpu
[ "$code" = 2 ] || wrong "devices: status $code"
refused 'needs --load' costs.yaml --objective memory
refused '"small"' costs.yaml --forbid gpu1,gpu2,gpu3,cpu
sed 's/memory: [0-9]*GiB/memory: 0/' costs.yaml >none.yaml
refused 'allocation: ' none.yaml
sed 's/count: 3/count: 1000000/' costs.yaml >many.yaml
refused 'many.yaml:4: devices.0.count: "1000000" is not a number from 1 to 4096' many.yaml
sed 's/\[8, 16, 32\]/[8, 16, 4294967296]/' costs.yaml >batch.yaml
refused 'batch.yaml:1: batches.2: "4294967296" is not a number from 1 to 65536' batch.yaml
exit "$status"
