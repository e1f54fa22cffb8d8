#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme.sh SOURCE LIBRARY WORK RUNTIME CC CXX [FLAGS]: the programs of the front page and of the library's, and the event loop of its manual,
# compile as what they are said to be, without a warning, C also as C++, and say that no runtime is there. The loop runs with RUNTIME, a
# fake one. The header for C++20 says in one line what it wants of another C++.
set -euo pipefail
source=$1 library=$2 work=$3 runtime=$4 cc=$5 cxx=$6 flags=${7:-}
mkdir -p "$work"

# block PAGE LANGUAGE FILE: the page's first fenced block of that language.
block() {
        awk -v fence="\`\`\`$2" '$0 == "```" && inside {exit} inside {print} $0 == fence {inside = 1}' "$source/$1" >"$3"
        [ -s "$3" ] || { printf 'no block of %s in %s\n' "$2" "$1"; exit 1; }
}

# build NAME COMPILER...: warnings are errors; C++ asks for members that C leaves out on purpose.
build() {
        local name=$1
        shift
        # shellcheck disable=SC2086
        "$@" $flags -Wall -Wextra -Werror -I "$source/client/include" "$library" -pthread -Wl,-rpath,"$(dirname "$library")" -o "$work/$name"
        if STARLING_SOCKET_DIR=$work "$work/$name" 2>"$work/$name.err"; then
                printf '%s: succeeds without a runtime\n' "$name"
                exit 1
        fi
        grep -q "$work" "$work/$name.err" || { printf '%s: does not say where it looked: %s\n' "$name" "$(cat "$work/$name.err")"; exit 1; }
}

# manual PAGE FILE: the literal block of the page's examples.
manual() {
        awk '$1 == ".Ed" {inside = 0} inside {gsub(/\\e/, "\\"); print} /^\.Bd -literal/ {inside = 1}' "$source/client/man/$1" >"$2"
        [ -s "$2" ] || { printf 'no program in %s\n' "$1"; exit 1; }
}

block README.md c "$work/example.c"
cp "$work/example.c" "$work/example-c.cpp"
block client/README.md c++ "$work/example.cpp"
build c17 "$cc" -std=c17 -pedantic "$work/example.c"
build c-as-c++20 "$cxx" -std=c++20 -pedantic -Wno-missing-field-initializers "$work/example-c.cpp"
build c++20 "$cxx" -std=c++20 -pedantic "$work/example.cpp"
manual starling_queue_fd.3 "$work/loop.c"
build loop "$cc" -std=gnu17 -pedantic "$work/loop.c"

# What is read is answered before the loop ends; three lines may come as one.
sockets=$(mktemp -d) # a socket's path is short
rm -f "$work/ready" # an earlier run's says so too early
"$runtime" "$sockets/starling.sock" >"$work/ready" &
pid=$!
trap 'kill "$pid"; rm -rf "$sockets"' EXIT
until grep -qs ready "$work/ready"; do kill -0 "$pid"; sleep 0.02; done
answers=$(printf '1\n2\n3\n' | STARLING_SOCKET_DIR=$sockets timeout 120 "$work/loop" | wc -l)
if [ "$answers" -lt 1 ] || [ "$answers" -gt 3 ]; then
        printf 'the event loop of the manual got %s answers\n' "$answers"
        exit 1
fi

# C++17 gets one line that says what is wrong.
printf '#include <starling.hpp>\n' >"$work/old.cpp"
if "$cxx" -std=c++17 -fsyntax-only -I "$source/client/include" "$work/old.cpp" 2>"$work/old.err"; then
        printf 'starling.hpp compiles as C++17\n'
        exit 1
fi
if [ "$(grep -c 'error:' "$work/old.err")" != 1 ] || ! grep -q 'error: .*starling.hpp wants C++20' "$work/old.err"; then
        printf 'starling.hpp as C++17: %s\n' "$(cat "$work/old.err")"
        exit 1
fi
