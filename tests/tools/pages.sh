#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pages.sh STARLING SHARE: a page for each command, which names each of its options, and completions that a shell takes.
set -euo pipefail
starling=$1 share=$2
status=0

wrong() {
        printf '%s\n' "$*"
        status=1
}

commands=$("$starling" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
benchmarks=$("$starling" bench help | sed -n 's/^  \([a-z-]*\)  .*/bench-\1/p')
[[ $benchmarks == *bench-load* ]] || wrong "no benchmarks are listed: $benchmarks"
for command in $commands $benchmarks; do
        page=$share/man/man1/starling-$command.1
        index=$share/man/man1/starling.1
        [ "${command#bench-}" = "$command" ] || index=$share/man/man1/starling-bench.1
        [ -f "$page" ] || { wrong "starling-$command has no page"; continue; }
        grep -q "^\.It Xr starling-$command 1" "$index" || wrong "$index does not name starling-$command"
        # shellcheck disable=SC2086
        for option in $("$starling" help ${command/#bench-/bench } | sed -n 's/^  \(-[a-zA-Z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
                grep -q "Fl \\\\-$option\$\|Fl \\\\-$option " "$page" || wrong "starling-$command(1) lacks --$option"
        done
done
for key in limits.client.arena_bytes version_policy.specific batch_max; do
        grep -q "^\.It Cm $key" "$share/man/man5/starling-config.5" || wrong "starling-config(5) lacks $key"
done

# What bash offers at the end of these words.
offers() {
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _starling
        printf '%s ' "${COMPREPLY[@]}"
}
# shellcheck disable=SC1091
. "$share/bash-completion/completions/starling"
[[ $(offers starling mo) == "models " ]] || wrong "bash: mo is not completed to models"
[[ $(offers starling serve --log-level w) == "warning " ]] || wrong "bash: no levels"
[[ $(offers starling serve -O tune_) == "tune_seconds= " ]] || wrong "bash: no keys"
[[ $(offers starling cache "") == *"clear"* ]] || wrong "bash: no actions of cache"
[[ $(offers starling doctor --only sm) == "smt " ]] || wrong "bash: no checks of doctor"
[[ $(offers starling bench lo) == "load " ]] || wrong "bash: no benchmarks"
[[ $(offers starling bench load --scenario s) == "single-stream server " ]] || wrong "bash: no scenarios"
[[ $(offers starling bench load --sear) == "--search " ]] || wrong "bash: no options of a benchmark"
[[ $(offers starling compiler "") != *"--"* && $(offers starling comp) == "compile " ]] || wrong "bash: offers what is not for people"

if command -v zsh >/dev/null; then
        zsh -n "$share/zsh/vendor-completions/_starling" || wrong "zsh: the completion has a wrong syntax"
else
        printf '[SKIP] tools-pages: zsh is not installed, its completion is not parsed\n'
fi
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
        for page in "$share"/man/man?/*; do
                said=$(man --warnings=w -l "$page" 2>&1 >/dev/null) || wrong "$page: is not formatted"
                [ -z "$said" ] || wrong "$page: $said"
        done
else
        printf '[SKIP] tools-pages: man is not installed, the pages are not formatted\n'
fi
exit "$status"
