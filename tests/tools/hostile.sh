#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hostile.sh STARLING MODELS: fleets and configurations that cannot be (a million devices, no memory, batch sizes that overflow, ensembles
# in a circle, lists without end) are refused by each command in one line that names them; `starling serve` serves the rest.
set -euo pipefail
starling=$1 models=$2
folder=$(mktemp -d)
name=hostile-$$
status=0 runtime=

finish() {
        [ -z "$runtime" ] || kill -KILL "$runtime" 2>/dev/null || true
        rm -rf "$folder" "/dev/shm/starling.$name"
}
trap finish EXIT
cd "$folder"
export XDG_RUNTIME_DIR=$folder/run XDG_CACHE_HOME=$folder/cache
mkdir -m 700 "$XDG_RUNTIME_DIR"

wrong() {
        printf 'hostile: %s\n' "$*"
        status=1
}

# refused TEXT COMMAND...: one line, with TEXT in it, within seconds. What serve logs before does not count.
refused() {
        local text=$1 code=0 said
        shift
        said=$(timeout 120 "$starling" "$@" 2>&1 >/dev/null) || code=$?
        said=$(grep -v ' info event=' <<<"$said")
        [[ $code -gt 0 && $code -lt 124 && $said == *"$text"* && $said != *$'\n'* ]] || wrong "$*: status $code: ${said:0:300}"
}

# repeated N TEXT, whose %d is the number
repeated() {
        awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) printf text, i }'
}

cat >costs.yaml <<'EOF'
batches: [8, 16]
classes: [{name: V100, kind: gpu}]
devices: [{name: gpu, class: V100, memory: 4GiB, count: 2}]
models: [{name: small, weights: 100MiB}]
costs: [{model: small, class: V100, source: derived, latency_ns: [20000000, 32000000], workspace: [500MiB, 1GiB]}]
EOF
repeated 200000 '[' >deep.yaml
repeated 60000 '- &a%d x\n' >anchors.yaml
{ echo 'models: [small]' && echo 'rows:' && repeated 1000000 '  - {device: gpu%d, batches: [8]}\n'; } >million.yaml
{ echo 'models: [small]' && echo 'rows:' && repeated 4097 '  - {device: gpu%d, batches: [8]}\n'; } >rows.yaml

# allocation ROW
allocation() {
        printf 'models: [small]\nrows:\n  - %s\n' "$1" >allocation.yaml
}

for file in deep:'nested deeper than 32' anchors:'more than 256 anchors' million:'the limit is 1048576'; do
        refused "${file#*:}" optimize "${file%%:*}.yaml"
        refused "${file#*:}" allocation check "${file%%:*}.yaml" --costs costs.yaml
        refused "${file#*:}" serve --name "$name" --config "${file%%:*}.yaml"
done
refused '4096' allocation check rows.yaml --costs costs.yaml
for batch in 4294967304 18446744073709551624 -8; do
        sed "s/\[8, 16\]/[8, $batch]/" costs.yaml >batches.yaml
        refused "\"$batch\" is not a number from 1 to 65536" optimize batches.yaml
        allocation "{device: gpu1, batches: [$batch]}"
        refused "\"$batch\" is not a number from 0 to 65536" allocation check allocation.yaml --costs costs.yaml
done
sed 's/\[8, 16\]/[16, 8]/' costs.yaml >order.yaml
refused 'order.yaml: costs: batch size 8 behind 16: they ascend' optimize order.yaml
sed 's/memory: 4GiB/memory: 0/' costs.yaml >none.yaml
allocation '{device: gpu1, batches: [8]}'
refused 'runs on none of 2 devices' optimize none.yaml
refused 'the limit is 0 of 0' allocation check allocation.yaml --costs none.yaml
sed 's/memory: 4GiB/memory: 16777216TiB/' costs.yaml >huge.yaml
refused 'is not from 0 to 1125899906842624 bytes' optimize huge.yaml

# What one folder of a repository says costs it its place, and nobody else.
mkdir -p repository/{a,b,c,self,wide,deep}
cp -r "$models/mlp" repository/mlp
cp -r "$models/mlp" repository/overflow
for pair in a:b b:c c:a self:self; do
        printf 'ensemble: {members: [%s, mlp], rule: mean}\n' "${pair#*:}" >"repository/${pair%:*}/config.yaml"
done
printf 'ensemble: {members: [%s mlp], rule: mean}\n' "$(repeated 2000 'mlp,')" >repository/wide/config.yaml
cp deep.yaml repository/deep/config.yaml
echo 'batch_sizes: [4294967304]' >repository/overflow/config.yaml
: >log
"$starling" serve --name "$name" repository 2>>log &
runtime=$!
until grep -q event=ready log; do
        kill -0 "$runtime" || { cat log; exit 1; }
        sleep 0.02
done
for left in 'ensemble \"b\": member' 'ensemble \"c\": member' 'ensemble \"a\": member' 'ensemble \"self\": member \"self\" is an ensemble' wide/config.yaml \
        'deep/config.yaml:1: nested deeper' 'overflow/config.yaml:1: batch_sizes: \"4294967304\"'; do
        [ "$(grep 'event=model-left-out' log | grep -cF -- "$left")" -eq 1 ] || wrong "not one line of $left: $(grep left-out log)"
done
[[ $("$starling" models --name "$name") == *mlp* ]] || wrong "mlp is not served"
[[ $("$starling" models --name "$name" | grep overflow) == *failed* && $("$starling" models --name "$name" | grep overflow) != *ensemble* ]] ||
        wrong "a model that is left out: $("$starling" models --name "$name" | grep overflow)"

# apply, to the runtime that serves.
for row in '{device: "cpu:1000000", batches: [8]}' '{device: "cpu:0-4294967295", batches: [8]}' '{device: cpu, batches: [4294967304]}' '{device: gpu, batches: [8]}'; do
        allocation "$row"
        sed -i 's/small/mlp/' allocation.yaml
        refused mlp apply --name "$name" allocation.yaml
done
refused 'the limit is 1048576' apply --name "$name" million.yaml
refused 'nested deeper than 32' apply --name "$name" deep.yaml
kill -TERM "$runtime"
wait "$runtime" || wrong "status $? at the end: $(<log)"
runtime=

# A file that lies where the socket would.
echo precious >"$XDG_RUNTIME_DIR/starling/$name.sock"
refused 'is no socket, and stays' serve --name "$name" "$models"
[ "$(<"$XDG_RUNTIME_DIR/starling/$name.sock")" = precious ] || wrong "the file is gone"
exit "$status"
