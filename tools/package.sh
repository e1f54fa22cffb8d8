#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# package.sh [deb|wheel]...: builds Debian packages with CPack and a wheel of the same build, into build/package; without arguments
# both. The build is of its own, in build/package-tree: prefix /usr, no tests.
set -euo pipefail
cd "$(dirname "$0")/.."

tree=build/package-tree
out=$PWD/build/package
[ $# -gt 0 ] || set -- deb wheel

say() {
        printf 'package: %s\n' "$*"
}

# logged NAME COMMAND...: quiet unless it fails.
logged() {
        local log=build/package-$1.log
        shift
        "$@" >"$log" 2>&1 </dev/null || { tail -n 60 "$log" >&2; return 1; }
}

build_tree() {
        say "building"
        logged configure cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr \
                -DSTARLING_PACKAGES=ON -DSTARLING_TESTS=OFF
        logged build cmake --build "$tree"
}

build_debs() {
        say "Debian packages"
        rm -f "$out"/*.deb
        (cd "$tree" && rm -f ./*.deb && cpack -G DEB) >build/package-deb.log 2>&1 || { tail -n 60 build/package-deb.log >&2; return 1; }
        mv "$tree"/*.deb "$out"
}

mkdir -p "$out"
tools/setup.sh
build_tree
for kind in "$@"; do
        case $kind in
        deb) build_debs ;;
        wheel) packaging/wheel.sh "$tree" "$out" ;;
        *) say "no such package: $kind" >&2; exit 2 ;;
        esac
done
ls -l "$out"
