#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme.sh SOURCE LIBRARY WORK CC CXX [FLAGS]: the programs of the front page and of the library's compile as what they are said to be,
# without a warning, C also as C++, and say that no runtime is there.
set -euo pipefail
source=$1 library=$2 work=$3 cc=$4 cxx=$5 flags=${6:-}
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

block README.md c "$work/example.c"
cp "$work/example.c" "$work/example-c.cpp"
block client/README.md c++ "$work/example.cpp"
build c17 "$cc" -std=c17 -pedantic "$work/example.c"
build c-as-c++20 "$cxx" -std=c++20 -pedantic -Wno-missing-field-initializers "$work/example-c.cpp"
build c++20 "$cxx" -std=c++20 -pedantic "$work/example.cpp"
