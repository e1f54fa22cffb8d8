#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compile.sh STARLING MODEL: the plan that `starling compile` writes has the rights of any file, follows a link, and replaces nothing but
# files; nothing else is left beside it.
set -euo pipefail
starling=$1 model=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache
mkdir "$folder/cache" "$folder/out"
cd "$folder/out"
status=0

wrong() {
        printf 'starling compile: %s\n' "$*"
        status=1
}

# compiled PLAN
compiled() {
        "$starling" compile "$model" -O tune=off -o "$1" >said 2>&1 || wrong "-o $1: $(<said)"
}

# refused PLAN TEXT
refused() {
        local code=0
        timeout 120 "$starling" compile "$model" -O tune=off -o "$1" >said 2>&1 || code=$?
        [[ $code -eq 1 && $(<said) == "starling compile: \"$1\"$2" ]] || wrong "-o $1: status $code: $(<said)"
}

umask 027
compiled plan
[ "$(stat -c %a plan)" = 640 ] || wrong "with umask 027 the plan has the rights $(stat -c %a plan)"
ln -s plan link
: >plan
compiled link
[ -L link ] || wrong "the link was replaced"
[ -s plan ] || wrong "the link was not followed"

mkfifo pipe
refused pipe " is no regular file"
[ -p pipe ] || wrong "the pipe was replaced"
mkdir inner
refused inner " is no regular file"
ln -s nowhere dangling
refused dangling ": No such file or directory"
[ -L dangling ] || wrong "the link to nowhere was replaced"
[ "$(echo *)" = "dangling inner link pipe plan said" ] || wrong "beside the plan there are $(echo *)"
exit "$status"
