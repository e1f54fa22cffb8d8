#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lets.sh STARLING COSTS: `starling lets` plans what fits, says what is lacking where it does not, and refuses in one line what cannot be.
# COSTS is the table of four RTX 2080 Ti.
set -euo pipefail
starling=$1 costs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
status=0

wrong() {
        printf 'lets: %s\n' "$*"
        status=1
}

# refused STATUS TEXT ARGUMENT...: one line on standard error with TEXT in it, and nothing else.
refused() {
        local wanted=$1 text=$2 code=0 said
        shift 2
        said=$(timeout 60 "$starling" lets "$@" 2>&1) || code=$?
        [[ $code -eq $wanted && $said == *"$text"* && $said != *$'\n'* ]] || wrong "$*: status $code: ${said:0:300}"
}

# rates ROW...
rates() {
        echo 'models:'
        printf '  - {%s}\n' "$@"
}

rates 'name: LeNet, rate: 500, objective_ms: 5' 'name: VGG16, rate: 300, objective_ms: 130' >rates.yaml
for scheduler in starling ideal elastic self_tuning sbp_halves sbp; do
        "$starling" lets "$costs" rates.yaml --scheduler "$scheduler" --simulate 2 >said || wrong "$scheduler: $(<said)"
        grep -Eq '^gpu[1-4] +[0-9]+ of 68 ' said && grep -q 'LeNet' said && grep -q 'VGG16' said || wrong "$scheduler plans no let: $(<said)"
        grep -q 'GoogLeNet' said && wrong "$scheduler plans what nobody wants: $(<said)"
        grep -Eq '^simulated: VGG16: [0-9]+ requests, [0-9.]+ % late, the longest [0-9.]+ ms of 130.000$' said || wrong "$scheduler: $(<said)"
        awk '/ of 68 / { units[$1] += $2 } END { for (device in units) if (units[device] > 68) exit 1 }' said || wrong "$scheduler: lets overlap"
done
"$starling" lets "$costs" rates.yaml >first && "$starling" lets "$costs" rates.yaml >again && cmp -s first again || wrong "the plan differs from run to run"
"$starling" lets --json "$costs" rates.yaml >said
for text in '"schedulable": true' '"model": "LeNet"' '"lacking_per_second": 0.0' '"bound": '; do
        grep -qF "$text" said || wrong "JSON has no $text: $(<said)"
done

code=0
rates 'name: VGG16, rate: 1e7, objective_ms: 130' >much.yaml
"$starling" lets --scheduler sbp "$costs" much.yaml >said 2>err || code=$?
[[ $code -eq 1 && $(wc -l <err) -eq 1 ]] && grep -Eq '"VGG16" lacks [0-9.e+]+ of 1e\+07 requests a second$' err || wrong "what is too much: $code, $(<err)"
grep -q '^gpu4 ' said || wrong "it does not bear what it can: $(<said)"

# bad STATUS TEXT ROW...
bad() {
        local code=$1 text=$2
        shift 2
        rates "$@" >bad.yaml
        refused "$code" "$text" "$costs" bad.yaml
}
bad 1 'models.0.name: no model of the costs is called "nonesuch"' 'name: nonesuch, rate: 1, objective_ms: 1'
bad 1 'models.1.name: "LeNet" is given twice' 'name: LeNet, rate: 1, objective_ms: 1' 'name: LeNet, rate: 1, objective_ms: 1'
bad 1 'models.0.rate: "1e12" is not a number from 0 to 1e+09' 'name: LeNet, rate: 1e12, objective_ms: 1'
bad 1 'models.0.objective_ms: "0" is not' 'name: LeNet, rate: 1, objective_ms: 0'
bad 1 'models.0.objective_ms: is missing' 'name: LeNet, rate: 1'
bad 1 'no model has a rate above 0' 'name: LeNet, rate: 0, objective_ms: 1'
sed 's/sizes: \[14,/sizes: [99,/' "$costs" >sizes.yaml
refused 1 'size' sizes.yaml rates.yaml
refused 2 '--scheduler: there is no "best"' --scheduler best "$costs" rates.yaml
refused 2 '--latency-factor: "0.5" is not a number from 1 to 10' --latency-factor 0.5 "$costs" rates.yaml
refused 2 '--worst: "mine" is not own or all' --worst mine "$costs" rates.yaml
refused 1 'nothing.yaml' "$costs" nothing.yaml
exit $status
