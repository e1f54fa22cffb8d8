#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# register.sh STARLING DIGITS ASK: what is wrong is one clear line, and nothing is served of it; what was changed by hand is not written
# over; a task that is registered is served at once, and a query of a C client gets a variant that is accurate enough.
set -euo pipefail
starling=$1
digits=$2
ask=$3
. "$(dirname "$0")/../serving.sh"
models=("$digits/models/mlp/1/model.onnx" "$digits/models/lenet/1/model.onnx")
data=(--validation "$digits/test-images.f32" --labels "$digits/test-labels.u8")
quick=(--kinds fp32 --batches 1 --seconds 0.01 --into "$repository")
core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')

# run ARGUMENT...: on one core, so that no other is waited for; sets said, of standard error, and code
run() {
        code=0
        said=$(taskset -c "$core" "$starling" register "$@" 2>&1 >"$folder/out") || code=$?
}

# fails STATUS PATTERN ARGUMENT...: the last line is the error, and no task is there
fails() {
        local expected=$1 pattern=$2
        shift 2
        run "$@"
        # shellcheck disable=SC2053
        [[ $code -eq $expected && $said == *"starling register: "$pattern && $(grep -c accuracy <<<"$said") -lt $(wc -l <<<"$said") ]] ||
                wrong "$*: status $code, $said"
        [ ! -e "$repository/read/config.yaml" ] || wrong "$*: there is a task"
}

fails 2 '--task is missing*' "${models[@]}" "${data[@]}" "${quick[@]}"
fails 2 'no MODEL.onnx is given*' --task read "${data[@]}" "${quick[@]}"
fails 2 '--task: "a/b" is *' "${models[@]}" --task a/b "${data[@]}" "${quick[@]}"
fails 2 '--kinds: "int4" is not fp32, int8,*' "${models[@]}" --task read "${data[@]}" "${quick[@]}" --kinds int4
fails 2 '--reference: not with --labels*' "${models[@]}" --task read "${data[@]}" "${quick[@]}" --reference mlp
fails 1 "\"$folder/none.onnx\": No such file or directory" "$folder/none.onnx" --task read "${data[@]}" "${quick[@]}"
fails 1 "\"$folder/none.f32\": No such file or directory" "${models[@]}" --task read --validation "$folder/none.f32" "${quick[@]}"
fails 1 '--scale: no model "lstm" is given, the first is "mlp"' "${models[@]}" --task read "${data[@]}" "${quick[@]}" --scale lstm=2
fails 1 '*599 of 599 samples to calibrate on*' "${models[@]}" --task read "${data[@]}" "${quick[@]}" --samples 599

# Labels of another length or class; numbers that are none; a file that is no model.
head -c 598 "$digits/test-labels.u8" >"$folder/short.u8"
(head -c 598 "$digits/test-labels.u8" && printf '\x0a') >"$folder/eleven.u8"
(head -c $((200 * 256)) "$digits/test-images.f32" && printf '\x00\x00\xc0\x7f' && tail -c +$((200 * 256 + 5)) "$digits/test-images.f32") >"$folder/nan.f32"
printf 'none' >"$folder/none-such.onnx"
fails 1 'mlp: *short.u8: *598*599*' "${models[@]}" --task read --validation "$digits/test-images.f32" --labels "$folder/short.u8" "${quick[@]}"
fails 1 'mlp: label 10 of sample 598: output "probabilities" has classes 0 to 9' \
        "${models[@]}" --task read --validation "$digits/test-images.f32" --labels "$folder/eleven.u8" "${quick[@]}"
fails 1 'mlp: sample 200: element 0 of input "image" is nan' "${models[@]}" --task read --validation "$folder/nan.f32" "${quick[@]}"
fails 1 'none-such: *' "$folder/none-such.onnx" --task read "${data[@]}" "${quick[@]}"

# A full disk: no file may have more than 8 KiB.
code=0
said=$( (ulimit -f 8 && "$starling" register "${models[@]}" --task read "${data[@]}" "${quick[@]}") 2>&1) || code=$?
[[ $code -eq 1 && $said == "starling register: "*": File too large" && $said != *$'\n'* ]] || wrong "a full disk: $code, $said"
[ ! -e "$repository/read" ] || wrong 'a full disk: there is a task'

# Two at once: this shell shares the lock, so that only one that wants it alone is refused.
exec 9<"$repository/.register"
flock -s 9
fails 1 "another \`starling register\` works on \"$repository\"" "${models[@]}" --task read "${data[@]}" "${quick[@]}"
exec 9<&-

# What is called as a variant, or as the task, and is not its own.
mkdir -p "$repository/lenet-fp32/1"
fails 1 "\"$repository/lenet-fp32\" is there, and was not written for --task read" "${models[@]}" --task read "${data[@]}" "${quick[@]}"
rm -r "$repository/lenet-fp32"
mkdir -p "$repository/read/1"
fails 1 "\"$repository/read\" is there, and is no task" "${models[@]}" --task read "${data[@]}" "${quick[@]}"
rm -r "$repository/read"

# Registered, and changed by hand since.
run "${models[@]}" --task read "${data[@]}" "${quick[@]}"
[[ $code -eq 0 && $(<"$folder/out") == *"mlp-fp32 "*measured* ]] || wrong "registering: $code, $said"
sed -i 's/^  accuracy: .*/  accuracy: [1, 1]/' "$repository/read/config.yaml"
run "${models[@]}" --task read "${data[@]}" "${quick[@]}"
[[ $code -eq 1 && $said == *"read/config.yaml\" was not written by \`starling register\`, or has been changed since: "* ]] ||
        wrong "a change by hand: $code, $said"
rm "$repository/read/config.yaml"
cp "$repository/.register/read/record.json" "$folder/kept.json"
sed -i 's/"right": [0-9]*/"right": 450/' "$repository/.register/read/record.json"
run "${models[@]}" --task read "${data[@]}" "${quick[@]}"
[[ $code -eq 1 && $said == *"record.json\" is not as it was written: "* ]] || wrong "a changed record: $code, $said"
cp "$folder/kept.json" "$repository/.register/read/record.json"

# Accuracy that others published, times the agreement with float32.
run "${models[@]}" --task told --validation "$digits/test-images.f32" --published mlp=0.5 --kinds fp32,f16 --batches 1 --seconds 0.01 \
        --into "$folder/told"
[[ $code -eq 0 && $(<"$folder/out") == *"mlp-fp32 "*" 0.5000 ("*derived*"lenet-fp32 "*agreement*"mlp-f16 "*derived* ]] || wrong "published: $code, $said"

# What the runtime needs stands in the task: latencies of one sample and of batches, of which files, where and by what.
run "${models[@]}" --task read "${data[@]}" "${quick[@]}" --batches 1,2
[[ $code -eq 0 ]] || wrong "batches of two: $code, $said"
config=$(<"$repository/read/config.yaml")
for pattern in '  latency_ms: \[[0-9.e-]+, [0-9.e-]+\]' '  batches_ms: \["[0-9.e-]+ [0-9.e-]+", "[0-9.e-]+ [0-9.e-]+"\]' \
        '  files: \["[0-9a-f]{32}", "[0-9a-f]{32}"\]' '  processor: "[^"]+"' '  version: "[^"]+"'; do
        [[ $config =~ $pattern ]] || wrong "no $pattern in config.yaml: $config"
done

# Served at once.
run "${models[@]}" --task read "${data[@]}" "${quick[@]}"
[[ $code -eq 0 && $said == *"mlp-fp32: "*"known already"* ]] || wrong "registering again: $code, $said"
start
for variant in mlp-fp32 lenet-fp32; do
        "$starling" load --name "$name" $variant 2>/dev/null || true # it may be loaded, or left out
done
said=$("$ask" "$STARLING_SOCKET_DIR/$name.sock" read 0.98 "$digits/test-images.f32" "$digits/test-labels.u8" 2>&1) || wrong "a query: $said"
[[ $said == "lenet-fp32 0.984444 0.984444" ]] || wrong "a query for 0.98: $said"
said=$("$ask" "$STARLING_SOCKET_DIR/$name.sock" read 0.99 "$digits/test-images.f32" "$digits/test-labels.u8" 2>&1) && wrong "a query for 0.99: $said"
[[ $said == *'accuracy of at least 0.99'* ]] || wrong "a query for 0.99: $said"
grep -q 'event=task-measured-elsewhere\|event=variant-stale' "$folder/said" && wrong "of what was just measured: $(<"$folder/said")"

# Another file in the place of one that was measured, and figures of another processor.
rm "$repository/lenet-fp32/1/model.onnx"
cp "$digits/models/mlp/1/model.onnx" "$repository/lenet-fp32/1/model.onnx"
"$starling" reload --name "$name" lenet-fp32 2>/dev/null || true
said=$("$ask" "$STARLING_SOCKET_DIR/$name.sock" read 0.98 "$digits/test-images.f32" "$digits/test-labels.u8" 2>&1) && wrong "a stale variant answers: $said"
said=$("$starling" tasks --name "$name" read 2>&1) || wrong "tasks: $said"
[[ $said == *'its model file has changed since it was measured for task "read"'* ]] || wrong "no reason: $said"
stop
grep -q 'event=variant-stale.*lenet-fp32' "$folder/said" || wrong "the log does not say it: $(<"$folder/said")"
sed -i 's/^  processor: .*/  processor: "another one"/' "$repository/read/config.yaml"
start
stop
grep -q 'event=task-measured-elsewhere task=read .*another one' "$folder/said" || wrong "another processor: $(<"$folder/said")"
exit $status
