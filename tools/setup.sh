#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of Debian 12 (or a current Ubuntu) that Starling is built and tested with; does nothing when all are there.
# Runs without a terminal; uses sudo when it is not root.
set -euo pipefail

packages=(
        # to build
        build-essential cmake ninja-build pkg-config
        liburing-dev libnuma-dev libdnnl-dev ocl-icd-opencl-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev
        libcyaml-dev libyaml-dev libxxhash-dev libjansson-dev libseccomp-dev libmicrohttpd-dev libncurses-dev systemtap-sdt-dev
        coinor-libcbc-dev libsqlite3-dev python3-dev
        # to test
        lld libonnx-testdata spin python3 python3-numpy python3-venv tmux
        # the short fuzz run
        clang
)

say() {
        printf 'setup: %s\n' "$*"
}

installed() {
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
        local package
        for package in "$@"; do
                installed "$package" || printf '%s\n' "$package"
        done
}

as_root() {
        if [ "$(id -u)" -eq 0 ]; then
                "$@"
        elif command -v sudo >/dev/null; then
                sudo "$@"
        else
                say "cannot install as $(id -un): no sudo; as root: apt-get install ${missing[*]}" >&2
                return 1
        fi
}

# The sanitizer and fuzzer runtime of the default clang is a package of its own, named after the version; where the package is
# unknown, clang brings it along.
clang_runtime() {
        local version
        version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/\1/p' | head -n 1)
        if [ -n "$version" ] && known "libclang-rt-$version-dev"; then
                printf 'libclang-rt-%s-dev\n' "$version"
        fi
}

known() {
        apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

all_known() {
        local package
        for package in "$@"; do
                known "$package" || return 1
        done
}

find_missing() {
        local runtime
        mapfile -t runtime < <(clang_runtime)
        mapfile -t missing < <(missing_of "${packages[@]}" "${runtime[@]}")
}

quietly() {
        if ! as_root env DEBIAN_FRONTEND=noninteractive "$@" </dev/null >"$log" 2>&1; then
                tail -n 20 "$log" >&2
                return 1
        fi
}

update() {
        say "reading the package lists"
        quietly apt-get -qq update
}

install() {
        say "installing ${#missing[@]} packages: ${missing[*]}"
        quietly apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}"
}

find_missing
[ "${#missing[@]}" -eq 0 ] && exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT
updated=no
if ! all_known "${missing[@]}"; then
        update
        updated=yes
        find_missing
fi
if ! install; then
        # Old lists name versions that the mirror no longer has.
        [ "$updated" = yes ] && exit 1
        update
        install
fi
say "done"
