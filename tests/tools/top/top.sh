#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# top.sh STARLING REPOSITORY: `starling top` on a terminal of tmux, watching a runtime that is loaded, killed and started again; on
# terminals of several sizes; and the terminal as it is left, however the program ends.
set -euo pipefail
starling=$1 repository=$2
if ! command -v tmux >/dev/null; then
        printf '[SKIP] top-terminal: tmux is not installed (apt-get install tmux)\n'
        exit 77
fi

folder=$(mktemp -d /tmp/starling-top-XXXXXX)
name=top-$$
export STARLING_SOCKET_DIR=$folder LC_ALL=C
runtime='' load=''

tm() {
        tmux -f /dev/null -S "$folder/tmux" "$@"
}

end_all() {
        tm kill-server 2>/dev/null || true
        [ -z "$load" ] || kill "$load" 2>/dev/null || true
        [ -z "$runtime" ] || kill -9 "$runtime" 2>/dev/null || true
        wait
        rm -rf "$folder" "/dev/shm/starling.$name"
}
trap end_all EXIT

screen() {
        tm capture-pane -p -t top
}

failed() {
        printf '%s\n' "top-terminal: $*"
        screen || true
        tail -n 5 "$folder/log"
        exit 1
}

# Waits until the screen has a line like this, or, with "no", none.
expect() {
        local i
        for ((i = 0; i < 600; i++)); do
                if [ "$1" = no ]; then
                        screen | grep -Eq -- "$2" || return 0
                else
                        ! screen | grep -Eq -- "$1" || return 0
                fi
                sleep 0.1
        done
        failed "the screen does not have: $*"
}

start_runtime() {
        "$starling" serve --name "$name" "$repository" 2>>"$folder/log" &
        runtime=$!
        until [ "$("$starling" stats --json "$name" 2>/dev/null | grep -c '"state": "ready"')" -ge 7 ]; do
                kill -0 "$runtime" || failed "the runtime does not start"
                sleep 0.1
        done
}

start_top() {
        tm respawn-pane -k -t top "$starling top --interval 0.2 $1; echo end=\$?; exec sleep 1000"
}

# The program itself, of which the pane's shell is the parent.
top_pid() {
        local shell pid
        shell=$(tm display-message -p -t top '#{pane_pid}')
        for pid in $(cat "/proc/$shell/task/$shell/children"); do
                echo "$pid"
        done
}

# The terminal is as it was: its own screen, a cursor, lines and an echo.
expect_terminal() {
        expect "end=$1"
        local tty
        tty=$(tm display-message -p -t top '#{pane_tty}')
        [ "$(tm display-message -p -t top '#{alternate_on}#{cursor_flag}#{keypad_flag}')" = 010 ] || failed "the screen is not given back"
        stty -a <"$tty" | grep -qw -- 'icanon' || failed "the terminal does not wait for lines"
        stty -a <"$tty" | grep -Eq -- '(^| )echo( |$)' || failed "the terminal does not echo"
}

start_runtime
tm new-session -d -s top -x 110 -y 30 "exec sleep 1000"

# What there is, and what it does.
start_top "$name"
expect "^starling top  $name  ready "
for model in lenet resnet densenet mobilenet mlp digits; do
        expect "^$model  +ready "
done
"$starling" bench load --runtime "$name" digits --in-flight 4 --seconds 1000 --warmup 0 --repeats 1 >/dev/null 2>>"$folder/log" &
load=$!
expect '^digits  +ready  +[1-9][0-9.]*k? '
expect '^requests/s [1-9].* p50 [1-9]'
tm send-keys -t top w
expect '^digits|^lenet  +(inline|thread)  +serving'
tm send-keys -t top /
tm send-keys -t top -l mlp
tm send-keys -t top Enter
expect 'filter: mlp'
expect no '^lenet'
tm send-keys -t top Escape
expect '^lenet'
tm send-keys -t top c
expect ' bench-load  +'
tm send-keys -t top u
expect '^digits  +requests'
tm send-keys -t top l
expect '^worker cores|^core [0-9]'
tm send-keys -t top y
expect '^plans '
tm send-keys -t top h
expect 'any key goes back'
tm send-keys -t top x m
expect '^digits  +ready'

# Any size, and back.
for size in 60x10 20x5 4x2 1x1 200x50 110x30; do
        tm resize-window -t top -x "${size%x*}" -y "${size#*x}"
        sleep 0.3
        top_pid | grep -q . || failed "it ended at $size"
done
expect '^digits  +ready'
expect '^q quit'

# The runtime dies, and another one comes.
before=$runtime
kill -9 "$runtime"
wait "$runtime" 2>/dev/null || true
expect 'GONE \(dead\)'
expect '^digits  '
start_runtime
expect "^starling top  $name  ready .* pid $runtime "
[ "$before" != "$runtime" ]

# However it ends.
tm send-keys -t top q
expect_terminal 0
for signal in INT TERM HUP SEGV; do
        start_top "$name"
        expect "^starling top  $name  ready "
        kill -s "$signal" "$(top_pid)"
        case $signal in
        SEGV) expect_terminal 139 ;;
        *) expect_terminal 0 ;;
        esac
done

# Nobody of that name, who comes later; terminals that are none.
start_top "$name-2"
expect 'no runtime'
tm send-keys -t top q
expect_terminal 0
status=0
said=$("$starling" top "$name" 2>&1 </dev/null) || status=$?
[ "$status" = 1 ] && [[ $said == *"no terminal"* ]] || failed "without a terminal: $status: $said"
tm respawn-pane -k -t top "TERM=no-such-terminal $starling top $name; echo end=\$?; exec sleep 1000"
expect 'terminal type "no-such-terminal" is not known'
expect_terminal 1
kill "$load" 2>/dev/null || true
load=''
kill "$runtime"
wait "$runtime" || failed "the runtime ends with $?"
runtime=''
