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
nobody stats nobody
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
full models --name "$name"
full models --name "$name" --json
full stats "$name"
full stats "$name" --json
full stats "$name" --watch=0.05
full postmortem "$name"
full postmortem "$name" --json
said=$(timeout 20 "$starling" trace "$name" --seconds 3600 -o "$folder/none/t.json" 2>&1) && wrong "trace -o below no folder: $said"
[[ $said == *"none/t.json\": No such file or directory"* ]] || wrong "trace -o below no folder: $said"
# "-" is standard output, and no file of that name.
(
        cd "$folder"
        "$starling" trace "$name" --seconds 0.05 -o - >trace.json 2>/dev/null || wrong "trace -o -"
        [[ $(head -c 1 trace.json) == "{" && ! -e ./- ]] || wrong "trace -o - does not write to standard output"
        exit "$status"
) || status=1
# Who was stopped does not catch up: a line for each 0.5 s, and not all at once.
"$starling" stats "$name" --watch 0.5 --count 4 >/dev/null &
watching=$!
sleep 0.2
kill -STOP "$watching"
sleep 2
begun=$EPOCHREALTIME
kill -CONT "$watching"
wait "$watching"
awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a > 1.2) }' || wrong "stats --watch catches up"
# The log is for nobody where descriptor 2 is closed, and for no client either.
"$starling" inspect "$folder/models/mlp/1/model.onnx" <&- 2>&- | grep -q . || wrong "inspect without standard input says nothing"
stop
exit "$status"
