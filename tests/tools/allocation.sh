#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# allocation.sh STARLING MODELS: an ensemble's folder is optimized with what is measured here; the answer is kept, the next start of a
# runtime uses it, and another one takes its place while it serves; what is damaged, or for other models, keeps nobody from serving.
set -euo pipefail
starling=$1
models=$2
. "$(dirname "$0")/serving.sh"
mkdir "$folder/models/pair"
cp -r "$models/mlp" "$models/lenet" "$folder/models"
printf 'threads: {inline_us: 0}\n' >"$folder/config.yaml"
printf 'ensemble: {members: [mlp, lenet], rule: mean}\nsamples_max: 200\n' >"$folder/models/pair/config.yaml"
mkdir "$folder/models/versions"
printf 'ensemble: {members: [mlp, "lenet:1"], rule: mean}\n' >"$folder/models/versions/config.yaml"

# workers MODEL: the batch sizes of its workers, ascending
workers() {
        "$starling" stats "$name" --json | tr -d ' \n' | grep -o '"model":"'"$1"'"[^}]*"batch_max":[0-9]*' |
                sed 's/.*://' | sort -n | tr '\n' ' '
}

# has MODEL WORKERS: sooner or later; those that a change replaced are listed until what they had is done
has() {
        local i
        for ((i = 0; i < 1200; i++)); do
                [ "$(workers "$1")" = "$2" ] && return
                sleep 0.05
        done
        return 1
}

core=cpu:$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
one="taskset -c ${core#cpu:}" # where there is no floor, which takes most of the time where other tests have the cores
quick=(--seconds 0.02 --batches 2,4 --devices "$core" --benches 100)
"$starling" optimize "$folder/models/pair" "${quick[@]}" -o "$folder/best.yaml" >"$folder/out" 2>"$folder/err" ||
        wrong "optimize: $(<"$folder/err")"
for row in configured '1\(, [A-Z, ]*\)\?' '\([0-9A-Z, ]*, \)\?WFD\(, [A-Z, ]*\)\?' '\([0-9A-Z, ]*, \)\?BGO'; do
        grep -q "^$row  *[0-9.-]*  *[0-9.]* " "$folder/out" || wrong "no candidate \"$row\": $(<"$folder/out")"
done
grep -q '^BBS  *allocation: .*GPU' "$folder/out" && grep -q '^measured .* 95 % interval .* turns;.*apart' "$folder/out" ||
        wrong "nothing was measured: $(<"$folder/out")"
# What is measured to be the best need not be the best by the costs: the gap says so.
best=$(grep -m 1 '^1' "$folder/out" | grep -o '[0-9]*\.[0-9]' | head -n 1)
awk -v best="$best" '$1 == "throughput" { got = $2 } $1 == "gap" { gap = $2; tried = /all matrices were tried/ }
        END { wanted = got < best ? (1 - got / best) * 100 : 0; exit !(tried && gap - wanted < 0.02 && wanted - gap < 0.02) }' "$folder/out" ||
        wrong "a gap to $best by the costs: $(<"$folder/out")"
grep -q "models: \['mlp', 'lenet'\]" "$folder/best.yaml" || wrong "no allocation: $(<"$folder/best.yaml")"
[ -z "$(ls "$folder/tmp")" ] || wrong "it leaves files behind: $(ls -R "$folder/tmp")"

# A member may be a version, and TMPDIR have a long name.
long=$folder/tmp/$(printf 'l%.0s' {1..60})
mkdir "$long"
TMPDIR=$long "$starling" optimize "$folder/models/versions" "${quick[@]}" --confirm 1 >"$folder/out" 2>"$folder/err" ||
        wrong "versions, long TMPDIR: $(<"$folder/err")"
grep -q '^measured ' "$folder/out" || wrong "versions are not measured: $(<"$folder/out") $(<"$folder/err")"
rmdir "$long" || wrong "it leaves files behind: $(ls "$long")"
rm -f "$folder/cache/starling/"*.allocation

# Devices that are not the first of the store, and are called otherwise there.
"$starling" optimize "$folder/models/pair" "${quick[@]}" --devices cpu --confirm 0 >"$folder/out" 2>"$folder/err" ||
        wrong "on cpu: $(<"$folder/err")"

# ended SIGNAL WORD: interrupted as soon as it says WORD, it ends with one answer or error, and leaves neither a child nor a file.
ended() {
        local said=$folder/said-$1-${2%/*} search line
        mkfifo "$said"
        $one "$starling" optimize "$folder/models/pair" "${slow[@]}" >"$folder/out" 2>"$said" &
        search=$!
        exec 3<"$said"
        while read -r line <&3 && [[ $line != *"$2"* ]]; do :; done
        kill -"$1" "$search"
        cat <&3 >"$folder/err" # until nobody has it open: children, too
        exec 3<&-
        code=0
        wait "$search" || code=$?
        [ -z "$(ls "$folder/tmp")" ] || wrong "$1 at $2: it leaves files behind: $(ls -R "$folder/tmp")"
}
for signal in INT TERM; do
        slow=(--seconds 2 --batches 8,16,32 --devices "$core")
        [ $signal = INT ] || slow=(--seconds 2 --batches 1,64,128 --devices "$core")
        ended $signal 1/6
        [ $code = 1 ] && grep -q 'starling optimize: interrupted while it was measured what its members cost' "$folder/err" ||
                wrong "$signal while costs are measured: status $code, $(<"$folder/err")"
done
slow=("${quick[@]}" --benches 1000000000 --again)
ended TERM best
[ $code = 0 ] && grep -q 'interrupted: the best so far' "$folder/out" || wrong "TERM in the search: status $code, $(<"$folder/out")"

# Interrupted while candidates are measured: the answer stands, and is kept for nobody.
rm -f "$folder/cache/starling/"*.allocation
mkfifo "$folder/says"
"$starling" optimize "$folder/models/pair" "${quick[@]}" --seconds 20 --again >"$folder/out" 2>"$folder/says" &
search=$!
exec 3<"$folder/says"
while read -r line <&3 && [[ $line != 'measuring '* ]]; do :; done
kill -INT "$search"
cat <&3 >/dev/null
exec 3<&-
wait "$search" || wrong "interrupted: status $?"
grep -q 'interrupted before all were measured: nothing is kept' "$folder/out" || wrong "interrupted: $(<"$folder/out")"
compgen -G "$folder/cache/starling/*.allocation" && wrong "what was not confirmed is kept"

# Whether it was better than what is configured is up to the machine; without measuring it is kept.
$one "$starling" optimize "$folder/models/pair" "${quick[@]}" --confirm 0 --again >"$folder/out" 2>/dev/null
grep -q "^kept .*in $folder/cache/starling\$" "$folder/out" || wrong "it is not kept: $(<"$folder/out")"
$one "$starling" optimize "$folder/models/pair" "${quick[@]}" --confirm 0 >"$folder/out" 2>/dev/null
grep -q -- '--again searches again' "$folder/out" || wrong "the same question is searched again: $(<"$folder/out")"
$one "$starling" optimize "$folder/models/pair" "${quick[@]}" --confirm 0 --objective latency --load 1 >"$folder/out" 2>/dev/null
grep -q '^benches ' "$folder/out" || wrong "another question has the answer to the first: $(<"$folder/out")"
$one "$starling" optimize "$folder/models/pair" "${quick[@]}" --confirm 0 --objective devices --load 1e9 >"$folder/out" 2>"$folder/err" &&
        wrong "what carries no such load is an answer: $(<"$folder/out")"
grep -q 'no allocation was found that carries 1e+09 samples a second: at most [0-9.]*$' "$folder/err" || wrong "too much load: $(<"$folder/err")"
"$starling" cache list | grep -q 'allocation' || wrong "the cache does not list it: $("$starling" cache list)"

# Also when the repository is named from where the runtime is.
cd "$folder"
repository=models
start --config "$folder/config.yaml"
grep -q 'event=allocation-used served=pair' "$folder/said" || wrong "the next start does not use it: $(<"$folder/said")"
[[ $(workers mlp) =~ ^[24]\ $ ]] || wrong "workers of mlp: $(workers mlp)"
printf 'models: [mlp]\nrows: [{device: "%s", batches: [1+8]}]\n' "$core" >"$folder/other.yaml"
"$starling" apply --name "$name" "$folder/other.yaml" || wrong "apply: status $?"
has mlp '1 8 ' || wrong "workers of mlp after apply: $(workers mlp)"
said=$("$starling" models --name "$name" --verbose)
[[ $said == *"worker on core ${core#cpu:}: batch_max 8 ("* ]] || wrong "no worker of mlp is said to be on $core: $said"
"$starling" apply --name "$name" --configured || wrong "apply --configured: status $?"
code=0
said=$("$starling" apply --name nobody "$folder/other.yaml" 2>&1) || code=$?
[ "$code" -eq 3 ] || wrong "apply to nobody: status $code: $said"
stop

start --config "$folder/config.yaml" --allocation none
grep -q allocation-used "$folder/said" && wrong "none is not none"
stop
kept=$(ls "$folder/cache/starling/"*.allocation)
cp "$kept" "$folder/kept"
printf 'models: [mlp, lenet]\nrows: [{device: "%s", batches: [64, 2]}]\n' "$core" >"$kept"
start --config "$folder/config.yaml"
grep -q 'event=allocation-not-used served=pair cause="model \\"mlp\\" does not load under it"' "$folder/said" &&
        grep -q 'event=ready failed_models=0' "$folder/said" || wrong "no model without an allocation that fails: $(<"$folder/said")"
has mlp '32 ' && has lenet '32 ' || wrong "workers of the second try: $(workers mlp), $(workers lenet)"
"$starling" reload --name "$name" mlp || wrong "reload: status $?"
has mlp '32 ' || wrong "what was given up is used again: $(workers mlp)"
stop

printf 'models: [\n' >"$kept"
start --config "$folder/config.yaml"
grep -q 'event=allocation-not-used served=pair' "$folder/said" || wrong "nothing is said of a damaged one: $(<"$folder/said")"
has mlp '32 ' || wrong "workers of mlp without it: $(workers mlp)"
stop

# refused WORDS ARGUMENT...: one line with these words
refused() {
        local words=$1 code=0 said
        shift
        said=$("$starling" "$@" 2>&1 >/dev/null) || code=$?
        [[ $code -ne 0 && $(grep -c . <<<"$said") -eq 1 && $said == *"$words"* ]] || wrong "$*: status $code: $said"
}
refused 'missing/: No such file' optimize "$folder/models/missing/" "${quick[@]}"
mkdir "$folder/models/empty"
refused 'no VERSION/model.onnx' optimize "$folder/models/empty" "${quick[@]}"
refused "--devices: \"$core\" has core ${core#cpu:}, and so has a device before it" optimize "$folder/models/pair" --devices "cpu,$core"
refused 'not cpu, cpu:CORE' optimize "$folder/models/pair" --devices gpu:0
printf 'models: [mlp]\nrows: [{device: "cpu:1023", batches: [1]}]\n' >"$folder/wrong.yaml"
last() {
        "$starling" serve --name "$name" --allocation "$1" "$folder/models" 2>&1 >/dev/null | tail -n 1
}
[[ $(last "$folder/wrong.yaml") == *'device "cpu:1023": core 1023 is not among'* ]] || wrong "$(last "$folder/wrong.yaml")"
printf 'models: [what]\nrows: [{device: cpu, batches: [1]}]\n' >"$folder/wrong.yaml"
[[ $(last "$folder/wrong.yaml") == *'model "what" is in no repository'* ]] || wrong "$(last "$folder/wrong.yaml")"

# What was computed is measured for whoever wants that; what turns out to be worse than nothing waits for no start.
rm -f "$folder/cache/starling/"*.allocation
$one "$starling" optimize "$folder/models/pair" "${quick[@]}" --confirm 0 >"$folder/out" 2>/dev/null
"$starling" optimize "$folder/models/pair" "${quick[@]}" --confirm 1 >"$folder/out" 2>/dev/null
grep -q '^measured ' "$folder/out" || wrong "what was computed is an answer: $(<"$folder/out")"
if grep -q 'it is not better' "$folder/out"; then
        grep -q 'what was kept before is removed' "$folder/out" || wrong "what is worse is kept: $(<"$folder/out")"
        compgen -G "$folder/cache/starling/*.allocation" && wrong "what is worse than nothing is kept"
fi
exit "$status"
