#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stop_post.sh STARLING UNIT: what the unit runs after the runtime tells of one that was killed, and of none that ended as it was asked to.
set -euo pipefail
starling=$1 unit=$2
folder=$(mktemp -d)
name=stop-post-$$
status=0 runtime=

finish() {
        [ -z "$runtime" ] || kill -KILL "$runtime" 2>/dev/null || true
        rm -rf "$folder" "/dev/shm/starling.$name"
}
trap finish EXIT
export XDG_RUNTIME_DIR=$folder/run XDG_CACHE_HOME=$folder/cache
mkdir -m 700 "$XDG_RUNTIME_DIR" "$folder/models"

wrong() {
        printf 'ExecStopPost=: %s\n' "$*"
        status=1
}

# The unit's own words, as systemd reads them: $$ is a dollar; @ and - before the program are no part of it.
words=$(sed -n 's/^ExecStopPost=-//p' "$unit" | sed 's/\$\$/$/g')
[[ $words == "/bin/sh -c '"*"exec /usr/bin/starling postmortem'" ]] || wrong "none that is known: $words"
words=${words/"/usr/bin/starling postmortem"/"$starling postmortem $name"}

# after RESULT: what it prints, and its status.
after() {
        SERVICE_RESULT=$1 eval "$words" 2>&1
}

start() {
        : >"$folder/log"
        "$starling" serve --name "$name" "$folder/models" 2>>"$folder/log" &
        runtime=$!
        until grep -q event=ready "$folder/log"; do
                kill -0 "$runtime" || { cat "$folder/log"; exit 1; }
                sleep 0.02
        done
}

# stop SIGNAL
stop() {
        kill -"$1" "$runtime"
        wait "$runtime" 2>/dev/null || true
        runtime=
}

start
pid=$runtime
stop KILL
said=$(after signal) || wrong "status $? after a crash: $said"
[[ $said == *"runtime $name  ended without saying so  pid $pid "* ]] || wrong "after a crash: $said"
[ -z "$(after success)" ] || wrong "tells of a crash before after an orderly end"

start
stop TERM
said=$(after success) || wrong "status $? after an orderly end: $said"
[ -z "$said" ] || wrong "after an orderly end: $said"
said=$(after exit-code) && wrong "a page that is gone is told of: $said"
[[ $said == *"No such file"* && $said != *$'\n'* ]] || wrong "of a page that is gone: $said"
exit "$status"
