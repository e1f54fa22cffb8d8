#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try-debs.sh: installs the packages of build/package into a fresh Debian 12 (debootstrap, in build/package-root), serves the digits
# ensemble as the packaged unit would, asks it from C, C++, Python and the command line, checks unit and completions, and purges the
# packages again. Needs root and the network; what it made of Debian is kept for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."

root=${STARLING_ROOT:-build/package-root}
debian=http://deb.debian.org/debian

say() {
        printf 'try-debs: %s\n' "$*"
}

[ "$(id -u)" -eq 0 ] || { say "needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { say "apt-get install debootstrap" >&2; exit 1; }
ls build/package/*.deb >/dev/null || { say "tools/package.sh deb comes first" >&2; exit 1; }

# What people have beside Starling; the packages bring their own dependencies.
prepare() {
        [ -f "$root/.prepared" ] && return
        [ -x "$root/bin/bash" ] || { say "debootstrap"; debootstrap --variant=minbase bookworm "$root" "$debian"; }
        say "a compiler, systemd and shells"
        inside bash -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
                gcc g++ libc6-dev pkg-config procps strace systemd zsh man-db bash-completion util-linux'
        touch "$root/.prepared"
}

# Mounts and processes of its own: both go with the last process inside.
inside() {
        # shellcheck disable=SC2016
        unshare --mount --pid --fork --ipc bash -c '
                root=$1; shift
                mount -t proc proc "$root/proc"
                mount -t tmpfs tmpfs "$root/dev/shm"
                mount -t tmpfs tmpfs "$root/run"
                mount --bind /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || cp /etc/resolv.conf "$root/etc/"
                for file in /etc/apt/apt.conf.d/*proxy*; do [ -f "$file" ] && cp "$file" "$root/etc/apt/apt.conf.d/"; done
                exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"' bash "$root" "$@"
}

prepare >build/package-root.log 2>&1 || { tail -n 40 build/package-root.log >&2; exit 1; }
rm -rf "$root/srv/try"
mkdir -p "$root/srv/try"
cp build/package/*.deb packaging/try/* client/examples/hello.c client/examples/hello.cpp "$root/srv/try"
cp -r client/examples/digits/models "$root/srv/try/models"
cp client/examples/digits/test-images.f32 client/examples/digits/test-labels.u8 "$root/srv/try"
inside bash /srv/try/inside.sh
say "everything works"
