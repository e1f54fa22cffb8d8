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

# try COMMAND OPTION [ARGUMENT]
try() {
        local said code=0
        said=$("$starling" "$@" --no-such-option 2>&1 </dev/null) || code=$?
        [ "$code" -eq 2 ] || wrong "$*" "status $code: $said"
        [[ $said == *"unrecognized option '--no-such-option'"* ]] || wrong "$*" "does not come to the next option: $said"
        [[ $said != *"option '$2"* ]] || wrong "$*" "is not taken: $said"
}

commands=$("$starling" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
n_options=0
for command in $commands; do
        help=$("$starling" "$command" --help) || wrong "$command" "has no help"
        [ "$help" = "$("$starling" help "$command")" ] || wrong "$command" "help and --help differ"
        [[ $help == "usage: starling $command"* ]] || wrong "$command" "does not begin with its usage: $help"
        [ "$command" = bench ] && continue # a benchmark has options of its own
        while read -r letter option argument; do
                n_options=$((n_options + 1))
                # Values that every option of that kind takes.
                case $argument in
                KEY=VALUE) argument=backend=cpu ;;
                *\|*) argument=${argument%%|*} ;;
                N | P | X | S) argument=1 ;;
                esac
                [ "$option" = --percentile ] && argument=99
                try "$command" "$option" ${argument:+"$argument"}
                [ "$letter" = - ] || try "$command" "$letter" ${argument:+"$argument"}
        done < <(sed -n 's/^  \(-[a-zA-Z]\), \(--[a-z-]*\) \{0,1\}\([^ ]*\).*/\1 \2 \3/p; s/^  \(--[a-z-]*\) \{0,1\}\([^ ]*\).*/- \1 \2/p' <<<"$help" |
                grep -v 'KEY=VALUE of:')
done
[ "$n_options" -ge 30 ] || wrong help "names $n_options options only"
exit "$status"
