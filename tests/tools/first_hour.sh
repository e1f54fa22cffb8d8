#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# first_hour.sh STARLING DIGITS: whoever types something that does not work yet reads what to do next.
set -euo pipefail
starling=$1
models=$2/models
. "$(dirname "$0")/serving.sh"

# says STATUS TEXT ARGUMENT...: ends with it, and one line of standard error that has the text
says() {
        local wanted=$1 text=$2 said code=0
        shift 2
        said=$("$starling" "$@" 2>&1 >/dev/null </dev/null) || code=$?
        [[ $code -eq $wanted && $said == *"$text"* && $said != *$'\n'* ]] || wrong "$* (wanted: $wanted, $text): $code: $said"
}

# Nothing but the name: all commands, and how to begin.
code=0
said=$("$starling" 2>&1 >/dev/null) || code=$?
[[ $code -eq 2 && $said == "usage: starling COMMAND"* && $said == *"To begin: \`starling serve NAME.onnx\`"* ]] ||
        wrong "without a command: $code: $said"
[ "$said" = "$("$starling" help)" ] || wrong "help says something else"
[ "$said" = "$("$starling" --help)" ] || wrong "--help says something else"

# Words that there are not.
says 2 'starling: no command "servee", did you mean "serve"? `starling help` lists all commands' servee models
says 2 'starling: no command "model", did you mean "models"?' model
says 2 'starling: no command "frobnicate"; `starling help` lists all commands' frobnicate
says 2 'starling: no option "--verison", did you mean "--version"?' --verison
says 2 'starling help: no command "stat", did you mean "stats"?' help stat
says 2 'starling bench: no benchmark "lod", did you mean "load"? `starling bench` lists all' bench lod
says 2 'starling bench: no benchmark "lod", did you mean "load"?' help bench lod
for internal in zygot workr; do
        said=$("$starling" "$internal" 2>&1) && wrong "$internal"
        [[ $said != *"did you mean"* ]] || wrong "a command that is not for people is offered: $said"
done

# Options and arguments that are wrong: the usage, and where more is.
for command in serve load inspect; do
        # shellcheck disable=SC2086
        said=$("$starling" $command --no-such-option 2>&1) && wrong "$command --no-such-option"
        [[ $said == *"usage: starling $command "* && $said == *"starling $command --help"* ]] || wrong "$command --no-such-option: $said"
done

said=$("$starling" bench model --no-such-option 2>&1) && wrong "bench model --no-such-option"
[[ $said == *"starling bench model --help"* ]] || wrong "bench model --no-such-option: $said"

# No runtime: each command, and each client, says how to start it.
nobody=nobody-$$
for command in models 'load mlp' 'unload mlp' 'reload mlp'; do
        # shellcheck disable=SC2086
        says 3 "No such file or directory; to start it: starling serve MODELS --name $nobody" $command --name $nobody
done
says 3 "to start it: starling serve MODELS --name $nobody" bench load --name $nobody mlp
for command in stats 'stats --watch' trace postmortem; do
        # shellcheck disable=SC2086
        says 3 "no runtime \"$nobody\" is there, and none has crashed; to start it: starling serve MODELS --name $nobody" $command --name $nobody
done
says 3 "at $folder/none.sock: No such file or directory" models --name "$folder/none.sock"

# A runtime that has nothing to serve.
says_log() {
        grep -q "$1" "$folder/said" || wrong "no \"$1\" in: $(cat "$folder/said")"
}
start
says_log 'event=serves-nothing cause="no repository has a model, NAME.onnx or NAME/VERSION/model.onnx"'
stop

# Names that it does not have.
cp -r "$models/mlp" "$repository"
start
says 1 'no model "mpl"' unload --name "$name" mpl
stop
exit "$status"
