#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# options.sh STARLING: every command describes itself, and takes each option that its help names, with an argument where the help has
# one. A wrong option at the end keeps the command from doing anything; it must be the only one that is complained about. A value that
# is refused is named.
set -euo pipefail
export LC_ALL=C.UTF-8
starling=$1
status=0

wrong() {
        printf 'starling %s: %s\n' "$1" "$2"
        status=1
}

# try OPTION [ARGUMENT]: of ${command[@]}
try() {
        local said code=0
        said=$("$starling" "${command[@]}" "$@" --no-such-option 2>&1 </dev/null) || code=$?
        [ "$code" -eq 2 ] || wrong "${command[*]} $*" "status $code: $said"
        [[ $said == "starling ${command[*]}: unrecognized option '--no-such-option'"* ]] || wrong "${command[*]} $*" "does not come to the next option: $said"
        [[ $said != *"option '$1"* ]] || wrong "${command[*]} $*" "is not taken: $said"
}

commands=$("$starling" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
benchmarks=$("$starling" bench help | sed -n 's/^  \([a-z-]*\)  .*/bench \1/p')
n_options=0
while read -r -a command; do
        help=$("$starling" "${command[@]}" --help) || wrong "${command[*]}" "has no help"
        [ "$help" = "$("$starling" help "${command[@]}")" ] || wrong "${command[*]}" "help and --help differ"
        [[ $help == "usage: starling ${command[*]}"* ]] || wrong "${command[*]}" "does not begin with its usage: $help"
        while read -r letter option argument; do
                n_options=$((n_options + 1))
                # Values that every option of that kind takes.
                case $argument in
                KEY=VALUE) argument=backend=cpu ;;
                WISH) argument=accuracy=0 ;;
                *\|*) argument=${argument%%|*} ;;
                N | X | SECONDS | MS | US | PERCENT | N,...) argument=1 ;;
                A,B,...) argument=0 ;;
                DEVICE,...) argument=cpu ;;
                PRECISION,...) argument=fp32 ;;
                A,B) continue ;; # a host may have one CPU
                INPUT=*) argument=images=1x2 ;;
                CHECK,...) argument=smt,kernel ;;
                MODEL=*) argument=mlp=1 ;;
                esac
                [ "$option" = --percentile ] && argument=99
                [ "$option" = --headroom ] && argument=0.5
                [ "$option" = --rounds ] && argument=1000
                [ "$option" = --depth ] && argument=2
                [ "$option" = --lanes ] && argument=2
                [ "$option" = --data-folder ] && argument=/tmp
                try "$option" ${argument:+"$argument"}
                [ "$letter" = - ] || try "$letter" ${argument:+"$argument"}
        done < <(sed -n 's/^  \(-[a-zA-Z]\), \(--[a-z-]*\) \{0,1\}\([^ ]*\).*/\1 \2 \3/p; s/^  \(--[a-z-]*\) \{0,1\}\([^ ]*\).*/- \1 \2/p' <<<"$help")
done <<<"$commands
$benchmarks"
[ "$n_options" -ge 90 ] || wrong help "names $n_options options only"

# names VALUE COMMAND...: the refusal has the value whole, or with a sign that it is cut, between characters.
names() {
        local value=$1 said
        said=$("$starling" "${@:2}" 2>&1 </dev/null) && wrong "${*:2}" "takes it"
        iconv -f UTF-8 -t UTF-8 <<<"$said" >/dev/null 2>&1 || wrong "${*:2}" "cuts a character: $said"
        [[ $said == *"\"$value\""* || $said == *"\"${value:0:8}"*"..."*"${value: -8}\""* ]] || wrong "${*:2}" "does not name it, or cuts it without a sign: $said"
}

long=x$(printf 'ä%.0s' {1..61})
names "$long" quantize --precision "$long" none.onnx none
names "$long" quantize --weights "$long" none.onnx none
names "$long" profile --devices cpu --precisions "$long" none.onnx
names "$long" profile --devices cpu --batches "$long" none.onnx
names "$long" top --interval "$long"
exit "$status"
