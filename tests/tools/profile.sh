#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# profile.sh STARLING MODELS: workers are profiled, listed, exported, imported and compared; a changed model is stale; what was
# interrupted goes on; broken stores, a full disk and two at once are no harm.
set -euo pipefail
starling=$1
models=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache XDG_DATA_HOME=$folder/data
mkdir "$folder/cache" "$folder/models"
cp -r "$models/mlp" "$models/lenet" "$folder/models"
store=$folder/data/starling/profiles.db
status=0

wrong() {
        printf 'starling profile: %s\n' "$*"
        status=1
}

# run ARGUMENT...: sets said and code. On one core there is no floor, which takes most of the time where other tests have the cores.
on=
run() {
        code=0
        said=$($on "$starling" profile "$@" 2>&1) || code=$?
}

core=cpu:$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
one="taskset -c ${core#cpu:}"
quick=(--seconds 0.01 --devices "$core")

run list
[[ $code -eq 0 && $said == *"0 profiles, 0 stale"* ]] || wrong "list of nothing: $code, $said"
[ ! -e "$store" ] || wrong "list makes a store"

run list --store "$folder/missing.db"
[[ $code -eq 1 && $said == "starling profile: --store: \"$folder/missing.db\": No such file or directory" ]] ||
        wrong "list of a store that is not there: $code, $said"

# What is wrong with the file is said, whether a dimension is open or not.
sed 's/\bRelu\b/Rilu/' "$models/lenet/1/model.onnx" >"$folder/wrong.onnx"
run "$folder/wrong.onnx" --seconds 0.01
[[ $code -ne 0 && $said == *Rilu* ]] || wrong "an unknown operator: $code, $said"

# Measured, and then stored.
run "$folder/models/mlp" "$folder/models/lenet/1/model.onnx" "${quick[@]}" --batches 4 --corun
[[ $code -eq 0 && $said == *"5/5"* && $said == *"times as long"* ]] || wrong "measuring: $code, $said"
on=$one
run list
[[ $said == *"6 profiles, 0 stale"* && $(grep -c "^$core .*beside" <<<"$said") -eq 4 ]] || wrong "list: $said"
run show mlp
[[ $said == *"model_hash "* && $said == *"oneDNN"* && $said == *"cold_load_ns"*"[measured]"* ]] || wrong "show: $said"
run show what
[[ $code -eq 1 && $said == *'"what"'* ]] || wrong "show what: $code, $said"
run "$folder/models/mlp" "${quick[@]}" --batches 4
[[ $code -eq 0 && $said == *"1 of 1 are stored already"* && $said != *left* ]] || wrong "it is measured again: $said"

# What never reached its interval is measured again where that is asked for, and stands where it is no narrower then: a file gives
# mlp one that is narrow, and marked as disturbed all the same.
disturbed=(--disturbed "${quick[@]}" --batches 4 --store "$folder/disturbed.db")
run "${disturbed[@]}" "$folder/models/mlp"
run "${disturbed[@]}" "$folder/models/mlp"
[[ $code -eq 0 && $said == *"1/1"* && $said != *"stored already"* ]] || wrong "what was disturbed is not measured again: $code, $said"
run export -o "$folder/wide.csv" --store "$folder/disturbed.db"
python3 - "$folder/wide.csv" "$folder/narrow.csv" <<'EOF'
import csv, sys
lines = open(sys.argv[1]).readlines()
rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
assert rows[0]["converged"] in ("", "0"), rows[0]
rows[0].update(latency_p50_ns="1000", latency_low_ns="999", latency_high_ns="1001")
with open(sys.argv[2], "w") as out:
    out.writelines(line for line in lines if line.startswith("#"))
    writer = csv.DictWriter(out, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
EOF
run import "$folder/narrow.csv" --store "$folder/disturbed.db"
run "${disturbed[@]}" "$folder/models/mlp"
[[ $code -eq 0 && $said == *"1/1"* ]] || wrong "what is marked as disturbed is not measured again: $code, $said"
run show mlp --store "$folder/disturbed.db"
[[ $said == *"latency_high_ns     1001"* ]] || wrong "a wider interval takes the place of a narrow one: $said"
run "${disturbed[@]}" --seconds 5 --width 1000 "$folder/models/mlp"
run "${disturbed[@]}" "$folder/models/mlp"
[[ $code -eq 0 && $said == *"1 of 1 are stored already"* ]] || wrong "what reached its interval is measured again: $code, $said"

# Out, in again, and the same.
for kind in csv json; do
        run export -o "$folder/one.$kind"
        run import "$folder/one.$kind" --store "$folder/$kind.db"
        [[ $code -eq 0 && $said == "6 profiles into "* ]] || wrong "import $kind: $code, $said"
        run export -o "$folder/two.$kind" --store "$folder/$kind.db"
        cmp -s "$folder/one.$kind" "$folder/two.$kind" || wrong "$kind is not the same after export and import"
done
run export --store "$folder/json.db"
[ "$said" = "$(cat "$folder/one.csv")" ] || wrong "CSV and JSON are not the same"
pushd "$folder" >/dev/null
run export --store "$folder/json.db" -o -
popd >/dev/null
[[ $said == "$(cat "$folder/one.csv")" && ! -e $folder/- ]] || wrong "export -o - is not standard output: $said"
run diff "$folder/one.csv" "$folder/json.db"
[[ $code -eq 0 && $(wc -l <<<"$said") -eq 6 && $said != *larger* && $said != *smaller* && $said != *only* ]] || wrong "diff: $said"

# As costs, which the optimizer takes.
run export -o "$folder/costs.yaml"
[ "$code" -eq 0 ] || wrong "export as costs: $said"
said=$("$starling" optimize "$folder/costs.yaml" -o "$folder/allocation.yaml" 2>&1) || wrong "optimize: $said"
grep -q "models: \['lenet'\|models: \['mlp'" "$folder/allocation.yaml" || wrong "no allocation: $(cat "$folder/allocation.yaml")"

# A model's own largest batch is that of its workers here, too.
cp -r "$folder/models/mlp" "$folder/models/small"
printf 'batch_max: 2\n' >"$folder/models/small/config.yaml"
run "$folder/models/small" "${quick[@]}" --batches 2,4 --store "$folder/small.db"
[[ $code -eq 0 && $said == *'a model has no such batch'* ]] || wrong "a batch above batch_max: $code, $said"
run list --store "$folder/small.db"
[[ $said == *"1 profiles, 0 stale"* ]] || wrong "what is stored of two batches: $said"

# Models that are named are called so in costs, whatever their precision.
long=$(printf 'l%.0s' {1..63})
cp -r "$folder/models/mlp" "$folder/models/$long"
printf 'precision: bf16\n' >"$folder/models/$long/config.yaml"
run "$folder/models/$long" "${quick[@]}" --store "$folder/long.db"
run export "$folder/models/$long" -o "$folder/long.yaml" --store "$folder/long.db"
[[ $code -eq 0 ]] && grep -q "name: '$long'" "$folder/long.yaml" || wrong "costs of a long name: $code, $said"
said=$("$starling" optimize "$folder/long.yaml" --models "$long" 2>&1) || wrong "optimize a long name: $said"

# Of a model what was measured here of it: no other host's figures, no other model's, no other batch's.
run import "$folder/one.csv" --store "$folder/mixed.db"
{
        printf 'host,device,model,path,precision,batch,origin,latency_p50_ns\n'
        printf 'zzz,%s,mlp,/elsewhere,fp32,4,measured,1\nzzz,%s,mlp,/elsewhere,fp32,8,measured,1\n' "$core" "$core"
} >"$folder/elsewhere.csv"
run import "$folder/elsewhere.csv" --store "$folder/mixed.db"
run export "$folder/models/mlp" --devices "$core" --batches 4,8 -o "$folder/own.yaml" --store "$folder/mixed.db"
[[ $code -eq 0 && $(<"$folder/own.yaml") == *'batches: [4]'* && $(<"$folder/own.yaml") != *lenet* ]] &&
        ! grep -q 'latency_ns: \[1\]' "$folder/own.yaml" || wrong "costs of mlp: $code, $said: $(<"$folder/own.yaml")"
run export "$folder/models/mlp" --batches 2 --store "$folder/mixed.db"
[[ $code -eq 1 && $said == *'mixed.db" has no profile of what is asked for'* ]] || wrong "export of what is not there: $code, $said"

# A host of a hundred cores; what cannot be costs leaves no file.
{
        printf 'device,model,precision,batch,origin,latency_p50_ns\n'
        for number in {0..99}; do printf 'cpu:%d,big,fp32,1,measured,100\n' "$number"; done
} >"$folder/cores.csv"
run import "$folder/cores.csv" --store "$folder/cores.db"
run export -o "$folder/cores.yaml" --store "$folder/cores.db"
[[ $code -eq 0 && $(grep -c 'memory_of' "$folder/cores.yaml") -eq 99 ]] || wrong "costs of a hundred cores: $code, $said"
run export -o "$folder/none.yaml" --store "$folder/none.db"
[[ $code -eq 1 && ! -e $folder/none.yaml ]] || wrong "costs of nothing: $code, $said"

# Memory is what is available here, which is less than what the host has.
total=$(awk '/^MemTotal:/ { printf "%.0f", $2 * 1024 / 8 * 7 }' /proc/meminfo)
[ "$(sed -n 's/.*, memory: \([0-9]*\)}$/\1/p' "$folder/costs.yaml")" -lt "$total" ] || wrong "memory of the host: $(cat "$folder/costs.yaml")"

# Intervals tell noise from differences.
{
        printf 'device,model,precision,batch,origin,latency_p50_ns,latency_low_ns,latency_high_ns\n'
        printf 'cpu:0,a,fp32,1,measured,100,95,105\ncpu:0,b,fp32,1,measured,100,95,105\n'
} >"$folder/before.csv"
sed 's/a,fp32,1,measured,100,95,105/a,fp32,1,measured,104,100,108/; s/b,fp32,1,measured,100,95,105/b,fp32,1,measured,120,110,130/' \
        "$folder/before.csv" >"$folder/after.csv"
run diff "$folder/before.csv" "$folder/after.csv"
[[ $said == *" a "*"(+4.0 %) noise"*" b "*"(+20.0 %) larger"* ]] || wrong "noise: $said"

# What nobody measured here says so.
{
        printf '# 1: made up for this test\ndevice,model,precision,batch,origin,latency_p50_ns,weights_bytes\n'
        printf 'V100,big,fp32,8,"latency_p50_ns=published 1, weights_bytes=derived 1",5e6,1e8\n'
} >"$folder/v100.csv"
run import "$folder/v100.csv" --store "$folder/v100.db"
run show big --store "$folder/v100.db"
[[ $said == *"[published 1]"* && $said == *"[derived 1]"* && $said == *"made up for this test"* && $said == *"NOT MEASURED"* ]] || wrong "origins: $said"

# A changed model is stale, with those that were beside it, and measured again.
cp "$folder/models/lenet/1/model.onnx" "$folder/lenet.onnx"
cp "$folder/models/mlp/1/model.onnx" "$folder/models/lenet/1/model.onnx"
run export "$folder/models/lenet"
[[ $code -eq 1 && $said == *"no profile of what is asked for that was measured here and is not stale" ]] || wrong "export of stale: $code, $said"
run list
[[ $said == *"6 profiles, 4 stale"* && $said == *"STALE: the model lenet has changed: "* ]] || wrong "stale: $said"
run "$folder/models/lenet" "${quick[@]}" --batches 4
[[ $code -eq 0 && $said == *"1/1"* ]] || wrong "stale is not measured again: $said"
cp "$folder/lenet.onnx" "$folder/models/lenet/1/model.onnx"

# Interrupted when the first of many is stored; the rest comes from the same command.
many=1,2,4,8,16,32
mkfifo "$folder/says"
$on "$starling" profile "$folder/models/mlp" --store "$folder/part.db" --devices "$core" --seconds 2 --width 0.01 --batches "$many" 2>"$folder/says" &
pid=$!
exec 3<"$folder/says"
while read -r line <&3 && [[ $line != 1/6* ]]; do :; done
kill -INT $pid
cat <&3 >"$folder/said"
exec 3<&-
code=0
wait $pid || code=$?
[[ $code -eq 1 && $(tail -n 1 "$folder/said") == *"interrupted: "*" of 6 are stored"* ]] || wrong "interrupted: $code, $(cat "$folder/said")"
run "$folder/models/mlp" --store "$folder/part.db" "${quick[@]}" --batches "$many"
[[ $code -eq 0 && $said == *" of 6 are stored already"* ]] || wrong "it does not go on: $code, $said"
run list --store "$folder/part.db"
[[ $said == *"6 profiles, 0 stale"* ]] || wrong "after going on: $said"

# one_error WORDS
one_error() {
        [[ $code -eq 1 && $(wc -l <<<"$said") -eq 1 && $said == *"$1"* ]] || wrong "wanted one line with \"$1\": $code, $said"
}

printf 'no database%.0s' {1..2000} >"$folder/broken.db"
run list --store "$folder/broken.db"
one_error "broken.db\" is no database"
head -c 5000 "$store" >"$folder/cut.db"
run list --store "$folder/cut.db"
one_error "cut.db\""
code=0
said=$( (ulimit -f 2 && "$starling" profile import "$folder/one.csv" --store "$folder/full.db") 2>&1) || code=$?
one_error "full.db\": "
printf 'device,model\n"cpu' >"$folder/open.csv"
run import "$folder/open.csv" --store "$folder/v100.db"
one_error "line 2: a quote is not closed"
printf 'what\n' >"$folder/what.csv"
run import "$folder/what.csv" --store "$folder/v100.db"
one_error 'line 1: no field "what"'

# Two at once into one store that is not there yet.
"$starling" profile "$folder/models/mlp" "${quick[@]}" --batches 1,2 --store "$folder/both.db" 2>"$folder/first" &
pid=$!
run "$folder/models/lenet" "${quick[@]}" --batches 1,2 --store "$folder/both.db"
wait $pid || wrong "the other of two: $(cat "$folder/first")"
[ "$code" -eq 0 ] || wrong "one of two: $said"
run list --store "$folder/both.db"
[[ $said == *"4 profiles, 0 stale"* ]] || wrong "two at once: $said"

# A team is a worker of its own; without the word a file means one thread.
on=
run "$folder/models/lenet" "${quick[@]}" --threads 1 --store "$folder/team.db"
run "$folder/models/lenet" "${quick[@]}" --store "$folder/team.db"
[[ $said == *"1 of 1 are stored already"* ]] || wrong "one thread is not the default: $said"
run "$folder/models/lenet" --devices "$core" --threads 1,2 --store "$folder/team.db"
[[ $code -eq 2 && $said == "starling profile: --threads: 2 on $core, which has 1 core" ]] || wrong "two threads on one core: $code, $said"
if [ "$(nproc)" -ge 2 ]; then
        run "$folder/models/lenet" --seconds 0.01 --devices cpu --threads 1..2 --store "$folder/team.db"
        [[ $code -eq 0 && $said == *"lenet fp32 1, 2 threads: "* ]] || wrong "a team: $code, $said"
        run list --store "$folder/team.db"
        [[ $said == *"3 profiles, 0 stale"* && $(grep -Ec ' lenet +fp32 +1 +2 ' <<<"$said") -eq 1 ]] || wrong "list of teams: $said"
        run export -o "$folder/team.json" --store "$folder/team.db"
        grep -q '"threads": 2' "$folder/team.json" || wrong "no threads in JSON"
        run diff "$folder/team.json" "$folder/team.db"
        [[ $code -eq 0 && $said == *"fp32 1 threads 2: "* && $said != *only* ]] || wrong "diff of teams: $said"
fi
run import "$folder/v100.csv" --store "$folder/team.db"
run show big --store "$folder/team.db"
[[ $said == *"threads             1  "* ]] || wrong "a file that says no threads: $said"

# What teams should take, and what one takes.
run "$folder/models/lenet" --nodes --threads 2..3 --seconds 0.01
[[ $code -eq 0 && $(grep -Ec '^ +[1-3] .* [0-9.]+ +([0-9.]+|-) +([-+][0-9.]+ %|-)$' <<<"$said") -ge 3 && $said == *"3 threads"*"measured: "* ]] ||
        wrong "teams: $code, $said"
run "$folder/models/lenet" --nodes --threads 64 --seconds 0.01 --json
[[ $code -eq 0 && $said == *'"threads": 64,'* && $said == *'"difference_percent": null'* ]] || wrong "teams as JSON: $code, $said"
run "$folder/models/lenet" --nodes --threads 1..65
[[ $code -eq 2 && $said == *'--threads: "65" is'* ]] || wrong "a team of 65: $code, $said"

# An ensemble is its members.
on=$one
run "$models/digits" "${quick[@]}" --store "$folder/digits.db"
[[ $code -eq 0 && $said == *"5/5"* ]] || wrong "an ensemble: $code, $said"

on=

# Workers for e_ebird: what is written is what a runtime takes for the model, and each row adds up to its load.
run --elastic "$folder/models/mlp" --seconds 0.01 -o "$folder/elastic.yaml"
[[ $code -eq 0 && $said == *"4/4"*"72 of 202 measured"* ]] || wrong "elastic: $code, $said"
python3 - "$folder/elastic.yaml" <<'EOF' || wrong "elastic: $(<"$folder/elastic.yaml")"
import json, re, sys
text = open(sys.argv[1]).read()
rows = [[int(n) for n in row.split(",")] for row in json.loads(re.search(r"^batching_rows: (.*)$", text, re.M)[1])]
sizes = json.loads(re.search(r"^batch_sizes: (.*)$", text, re.M)[1])
assert [sum(n << i for i, n in enumerate(row)) for row in rows] == [4, 8, 16, 32], rows
assert all(sizes.count(1 << i) >= n for row in rows for i, n in enumerate(row)), (rows, sizes)
EOF
cp -r "$folder/models/mlp" "$folder/models/elastic"
cp "$folder/elastic.yaml" "$folder/models/elastic/config.yaml"
name=elastic-$$
mkfifo "$folder/serves"
"$starling" serve --name "$name" "$folder/models/elastic" >/dev/null 2>"$folder/serves" &
served=$!
exec 3<"$folder/serves"
: >"$folder/said"
while read -r line <&3; do
        printf '%s\n' "$line" >>"$folder/said"
        [[ $line == *event=ready* ]] && break
done
cat <&3 >>"$folder/said" &
exec 3<&-
grep -q 'event=ready failed_models=0' "$folder/said" || wrong "elastic: it is not served: $(<"$folder/said")"
kill "$served"
wait "$served" || wrong "elastic: the runtime ends with $?: $(<"$folder/said")"
run --elastic "$models/digits" --seconds 0.01
[[ $code -eq 1 && $said == *"--elastic: 5 models, it takes one at a time"* ]] || wrong "elastic of an ensemble: $code, $said"
run --elastic "$folder/models/small" --seconds 0.01
[[ $code -eq 1 && $said == *"batches of up to 2 samples"* ]] || wrong "elastic of small batches: $code, $said"

# Wrong usage.
for words in "--seconds 2abc" "--seconds nan" "--batch 1x" "--batches 3" "--devices gpu:0" "--devices cpu:1023" "--beside 99" "--precisions fp13" "--threads 0" "--threads 65" "--threads 4..2" "--threads 1,x" "--elastic --batches 4" "--elastic --corun" "--elastic --again" "--elastic --store x.db" "--elastic --devices cpu:0,cpu"; do
        read -r -a arguments <<<"$words"
        run "$folder/models/mlp" "${arguments[@]}"
        [ "$code" -eq 2 ] || wrong "$words: $code, $said"
done
exit "$status"
