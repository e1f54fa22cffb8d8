#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# options.sh STARLING: every command describes itself, and takes each option that its help names, with an argument where the help has
# one. A wrong option at the end keeps the command from doing anything; it must be the only one that is complained about.
set -euo pipefail
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
                *\|*) argument=${argument%%|*} ;;
                N | P | X | S | D | K | R | T | MS | N,... | R,...) argument=1 ;;
                A,B,...) argument=0 ;;
                DEVICE,...) argument=cpu ;;
                PRECISION,...) argument=fp32 ;;
                A,B) continue ;; # a host may have one CPU
                INPUT=*) argument=images=1x2 ;;
                CHECK,...) argument=smt,kernel ;;
                esac
                [ "$option" = --percentile ] && argument=99
                [ "$option" = --headroom ] && argument=0.5
                [ "$option" = --rounds ] && argument=1000
                [ "$option" = --depth ] && argument=2
                [ "$option" = --lanes ] && argument=2
                try "$option" ${argument:+"$argument"}
                [ "$letter" = - ] || try "$letter" ${argument:+"$argument"}
        done < <(sed -n 's/^  \(-[a-zA-Z]\), \(--[a-z-]*\) \{0,1\}\([^ ]*\).*/\1 \2 \3/p; s/^  \(--[a-z-]*\) \{0,1\}\([^ ]*\).*/- \1 \2/p' <<<"$help" |
                grep -v 'KEY=VALUE of:')
done <<<"$commands
$benchmarks"
[ "$n_options" -ge 90 ] || wrong help "names $n_options options only"
exit "$status"
