#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# output.sh STARLING DIGITS: what a command prints arrives, or it says that it does not; a runtime that is not there is told by status 3,
# and one that is there is found by its name and by its socket.
set -euo pipefail
starling=$1
digits=$2
. "$(dirname "$0")/serving.sh"
mkdir -p "$folder/models/mlp/1"
echo 'trace: {sampling: 1}' >"$folder/traced.yaml"
cp "$digits/models/mlp/1/model.onnx" "$folder/models/mlp/1"
mkdir "$folder/models/read"
printf 'task:\n  variants: [mlp, none]\n  accuracy: [0.9783, 1]\n' >"$folder/models/read/config.yaml"

# full COMMAND...: to a full device
full() {
        local said code=0
        said=$("$starling" "$@" 2>&1 >/dev/full) || code=$?
        [[ $code -eq 1 && $said == "starling $1: "*"No space left on device" ]] || wrong "$* >/dev/full: status $code: $said"
}

# nobody COMMAND...: of a runtime that is not there
nobody() {
        local said code=0
        said=$("$starling" "$@" 2>&1 >/dev/null) || code=$?
        [[ $code -eq 3 && $said == *nobody* && $said != *$'\n'* ]] || wrong "$*: status $code: $said"
}

nobody models --name nobody
nobody models --name nobody --why mlp
nobody stats nobody
nobody tasks --name nobody
nobody load --name nobody mlp
nobody bench load --name nobody mlp
nobody bench load --runtime nobody mlp
nobody bench model --name nobody mlp
nobody bench model --runtime nobody mlp

full help
full help serve
full --help
full serve --help
full version
full cache list
full doctor --quick # whatever it finds
full inspect "$folder/models/mlp/1/model.onnx"
start --fake --config "$folder/traced.yaml"
for runtime_name in "$name" "$STARLING_SOCKET_DIR/$name.sock"; do
        said=$("$starling" models --name "$runtime_name" --verbose 2>&1) || wrong "models --name $runtime_name --verbose: $said"
        [[ $said == mlp*worker* ]] || wrong "models --name $runtime_name --verbose: $said"
done
said=$("$starling" models --name "$name" --why mlp 2>&1) || wrong "models --why: $said"
[[ $said == "mlp  ready "*"to be served, for "*", by: repository"*"version 1, as it is wanted; "*"waits for  nothing
    variant    of task read, accuracy 0.9783, cost "*": it serves"*"
    queries    choose it where an accuracy of at most 0.9783 is asked for, and where none is" ]] || wrong "models --why mlp: $said"
said=$("$starling" models --name "$name" --why mlp --json 2>&1) || wrong "models --why mlp --json: $said"
[[ $said == "{"*'"origin": "repository"'*'"awaits": null'*'"variant_of": ['*'"task": "read"'*"}" ]] || wrong "models --why mlp --json: $said"
said=$("$starling" models --name "$name" --why read 2>&1) || wrong "models --why of a task: $said"
[[ $said == $'read  task  1 of 2 variants serve, chosen by rule starling\n  mlp\n    variant    accuracy 0.9783, '*$'\n  none'"
    variant    accuracy 1, cost 0: it is not there: the repository has no such model
    queries    do not choose it by accuracy alone: it takes no requests" ]] || wrong "models --why of a task: $said"
said=$("$starling" models --name "$name" --why read --json 2>&1) || wrong "models --why of a task, --json: $said"
[[ $said == "{"*'"task": "read"'*'"chosen_up_to": 0.97'*'"variant": "none"'*'"chosen_above": null'*"}" ]] ||
        wrong "models --why of a task, --json: $said"
said=$("$starling" models --name "$name" --why lenet 2>&1) && wrong "models --why of no model: $said"
[[ $said == 'starling models: no model "lenet" is wanted or served, and no task is of that name' ]] || wrong "models --why of no model: $said"
said=$("$starling" stats "$name")
[[ $said == *$'\nsteps  load 1  serve 1\n'* ]] || wrong "stats without steps: $said"
full models --name "$name" --why mlp
full models --name "$name" --why read
said=$("$starling" tasks --name "$name" 2>&1) || wrong "tasks: $said"
[[ $said == $'read\n  mlp '*"serves "*"accuracy 0.9783 "*" us a sample, "*$'\n  none '*"absent "*"the repository has no such model" ]] || wrong "tasks: $said"
said=$("$starling" tasks --name "$name" --json read 2>&1) || wrong "tasks --json: $said"
[[ $said == "["*'"task": "read"'*'"name": "mlp"'*'"latency_ns": '*"]" ]] || wrong "tasks --json: $said"
said=$("$starling" tasks --name "$name" --explain accuracy=0.9 read 2>&1) || wrong "tasks --explain: $said"
[[ $said == $'read\n  mlp '*$'\n    * it is chosen, and meets all\n  none '*$'\n      it takes no requests' ]] || wrong "tasks --explain: $said"
said=$("$starling" tasks --name "$name" --json --explain accuracy=0.99 read 2>&1) || wrong "tasks --explain --json: $said"
[[ $said == *'"chosen": false'*'"why": "its accuracy, 0.9783, is below 0.99"'* ]] || wrong "tasks --explain --json: $said"
said=$("$starling" tasks --name "$name" --explain accuracy=2 2>&1) && wrong "tasks --explain of no wish: $said"
[[ $said == 'starling tasks: --explain: accuracy: "2" is '* ]] || wrong "tasks --explain of no wish: $said"
said=$("$starling" tasks --name "$name" write 2>&1) && wrong "tasks of no task: $said"
[[ $said == 'starling tasks: no task "write"' ]] || wrong "tasks of no task: $said"
full tasks --name "$name"
full tasks --name "$name" --json
full models --name "$name"
full models --name "$name" --json
full stats "$name"
full stats "$name" --json
full stats "$name" --watch=0.05
full postmortem "$name"
full postmortem "$name" --json
said=$(timeout 120 "$starling" trace "$name" --seconds 3600 -o "$folder/none/t.json" 2>&1) && wrong "trace -o below no folder: $said"
[[ $said == *"none/t.json\": No such file or directory"* ]] || wrong "trace -o below no folder: $said"
# "-" is standard output, and no file of that name.
(
        cd "$folder"
        "$starling" bench load --name "$name" mlp --seconds 0.1 --warmup 0 --output - >load.json 2>load.txt || true # valid or not
        [[ $(wc -l <load.json) -eq 1 && $(head -c 1 load.json) == "{" && -s load.txt && ! -e ./- ]] ||
                wrong "bench load --output - does not write to standard output alone: $(<load.json)"
        "$starling" trace "$name" --seconds 0.05 -o - >trace.json 2>/dev/null || wrong "trace -o -"
        [[ $(head -c 1 trace.json) == "{" && ! -e ./- ]] || wrong "trace -o - does not write to standard output"
        exit "$status"
) || status=1
# Who was stopped does not catch up: a line for each 0.5 s, and not all at once.
"$starling" stats "$name" --json --watch 0.5 --count 4 >"$folder/watched" &
watching=$!
until [[ -s $folder/watched ]] || ! kill -0 "$watching"; do sleep 0.02; done
kill -STOP "$watching"
sleep 2
lines=$(wc -l <"$folder/watched")
begun=$EPOCHREALTIME
kill -CONT "$watching"
wait "$watching"
awk -v a="$begun" -v b="$EPOCHREALTIME" -v n="$lines" 'BEGIN { exit !(b - a > 0.5 * (3 - n) - 0.1) }' ||
        wrong "stats --watch catches up: 4 lines, $lines of them before it was stopped"
# The log is for nobody where descriptor 2 is closed, and for no client either.
"$starling" inspect "$folder/models/mlp/1/model.onnx" <&- 2>&- | grep -q . || wrong "inspect without standard input says nothing"
stop
exit "$status"
