#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What tools/try-debs.sh runs inside of the fresh Debian.
set -euo pipefail
cd "$(dirname "$0")"
runtime=

check() {
        printf 'try-debs: %s: ' "$1"
        shift
        local said
        said=$("$@" 2>&1) || { printf 'FAILED\n%s\n' "$said"; exit 1; }
        printf '%s\n' "${said##*$'\n'}"
}

# status NUMBER COMMAND...
status() {
        local wanted=$1 got=0
        shift
        "$@" || got=$?
        [ "$got" -eq "$wanted" ] || { printf 'status %d instead of %d\n' "$got" "$wanted"; return 1; }
}

as() {
        local user=$1
        shift
        setpriv --reuid "$user" --regid "$user" --init-groups "$@"
}

# The system calls that the unit allows, groups written out.
allowed() {
        local name
        for name in "$@"; do
                case $name in
                @*) allowed $(systemd-analyze syscall-filter "$name" | sed '1d; s/#.*//') ;;
                *) printf '%s\n' "$name" ;;
                esac
        done
}

# no_call_is_filtered UNIT TRACE
no_call_is_filtered() {
        local refused
        refused=$(comm -23 <(sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' "$2" | sort -u) \
                <(allowed $(sed -n 's/^SystemCallFilter=//p' "/usr/lib/systemd/system/$1") | sort -u))
        [ -z "$refused" ] || { printf 'not allowed: %s\n' "$refused"; return 1; }
        sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' "$2" | sort -u | wc -l
}

# One scrape of an exporter that runs as a user of the group.
scrape() {
        local status=0 port
        setpriv --reuid alice --regid alice --init-groups strace -f -qq -o /tmp/exporter-trace \
                starling exporter --listen 127.0.0.1:0 2>/tmp/exporter.log &
        for ((i = 0; i < 100; i++)); do
                port=$(sed -n 's/.* 127\.0\.0\.1:\([0-9]*\)$/\1/p' /tmp/exporter.log)
                [ -z "$port" ] || break
                sleep 0.1
        done
        python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' \
                "http://127.0.0.1:$port/metrics" >/tmp/scrape || status=1
        pkill -TERM -x -u alice starling-export
        wait $! || status=1
        grep '^starling_inference_completions_total{.*model="digits",outcome="done"} [1-9]' /tmp/scrape || status=1
        [ "$status" -eq 0 ] || cat /tmp/exporter.log
        return "$status"
}

finish() {
        [ -z "$runtime" ] || kill "$runtime" 2>/dev/null || true
}
trap finish EXIT

export DEBIAN_FRONTEND=noninteractive

# What a run before, that failed, may have left.
apt-get purge -qq -y starling starling-cuda libstarling0 libstarling-dev python3-starling >/dev/null 2>&1 || true
for user in alice mallory; do
        ! getent passwd "$user" >/dev/null || deluser --quiet "$user"
done

apt-get -qq update
check "install" apt-get install -qq -y --no-install-recommends ./*.deb
for package in starling libstarling0 libstarling-dev python3-starling; do
        check "$package" dpkg-query -W -f '${db:Status-Status} ${Version}: ${Depends}' "$package"
done

# The unit, as far as that goes without a manager; then what it would start, as its user, in the folders that it would make.
for unit in starling starling-exporter; do
        check "$unit.service" systemd-analyze verify "$unit.service"
        check "$unit.service's exposure" systemd-analyze security --offline=yes --threshold=30 "$unit.service"
done
cp -r models/* /var/lib/starling/models/
mkdir -m 755 -p /run/starling
mkdir -m 700 -p /var/cache/starling
chown starling: /run/starling /var/cache/starling
strace -f -qq -o /tmp/trace -u starling starling serve --config /etc/starling/starling.yaml 2>/tmp/starling.log &
tracer=$!
for ((i = 0; i < 600; i++)); do
        [ -S /run/starling/starling.sock ] && break
        kill -0 "$tracer" || { cat /tmp/starling.log; exit 1; }
        sleep 0.1
done
runtime=$(pgrep -o -x -u starling starling)
check "log" grep -m 1 'event=start version=' /tmp/starling.log
check "models, as root" starling models
check "stats, as root" starling stats
check "top, without a terminal" status 1 starling top

# Users: one of the group, who has a runtime folder of his own, and one who is not.
adduser --quiet --disabled-password --gecos '' alice
adduser --quiet alice starling
adduser --quiet --disabled-password --gecos '' mallory
export XDG_RUNTIME_DIR=/tmp/nothing-here
check "Python, a user of the group" as alice python3 digits.py .
check "Python, its ctypes form" as alice env STARLING_PYTHON=ctypes python3 digits.py .
check "Python, its extension" as alice env STARLING_PYTHON=native python3 digits.py .
check "Python, somebody else" status 1 as mallory python3 digits.py .
check "load, not an administrator" status 4 as alice starling load digits
check "stats, a user of the group" as alice starling stats
gcc -Wall -Werror hello.c $(pkg-config --cflags --libs starling) -o hello-c
g++ -std=c++20 -Wall -Werror hello.cpp $(pkg-config --cflags --libs starling) -o hello-cpp
check "C" as alice ./hello-c digits
check "C++" as alice ./hello-cpp digits

check "scrape, a user of the group" scrape
check "zsh completion" zsh -n /usr/share/zsh/vendor-completions/_starling
check "zsh finds it" zsh -fc 'fpath=(/usr/share/zsh/vendor-completions $fpath); autoload -U compinit; compinit -u -d /tmp/dump; print ${_comps[starling]}'
for page in 1/starling 1/starling-serve 1/starling-exporter 1/starling-top 3/starling_infer 5/starling-config 5/starling-stats 7/starling; do
        man -w "${page%/*}" "${page#*/}" >/dev/null 2>&1 || [ -f "/usr/share/man/man${page%/*}/${page#*/}.${page%/*}" ] ||
                { printf 'no page %s\n' "$page"; exit 1; }
done

# No GPU and nothing of NVIDIA's: the module is found, and says so.
if [ -e /usr/lib/*/starling/libstarling_cuda.so ]; then
        starling inspect models/lenet/1/model.onnx -O backend=cuda >/tmp/cuda 2>&1 || true
        check "the unit may use GPUs" grep -x 'DeviceAllow=char-nvidia\* rw' /usr/lib/systemd/system/starling.service.d/cuda.conf
        check "the CUDA module" grep 'there is no cuDNN 9' /tmp/cuda
fi

check "reload, as root" starling reload lenet
kill -TERM "$runtime"
wait "$tracer" || { cat /tmp/starling.log; exit 1; }
runtime=
check "an orderly end" grep 'event=stopped' /tmp/starling.log
check "the unit's filter lets all pass that the runtime called" no_call_is_filtered starling.service /tmp/trace
check "the unit's filter lets all pass that the exporter called" no_call_is_filtered starling-exporter.service /tmp/exporter-trace

# What the unit runs behind a runtime that has ended, which an orderly end leaves nothing for.
stop_post=$(sed -n "s/^ExecStopPost=-.bin.sh -c '\(.*\)'$/\1/p" /usr/lib/systemd/system/starling.service)
check "the unit runs something after the end" test -n "$stop_post"
setpriv --reuid starling --regid starling --init-groups starling serve --config /etc/starling/starling.yaml 2>/tmp/starling.log &
runtime=$!
until [ -S /run/starling/starling.sock ]; do
        kill -0 "$runtime" || { cat /tmp/starling.log; exit 1; }
        sleep 0.1
done
kill -KILL "$runtime"
wait "$runtime" || true
runtime=
SERVICE_RESULT=signal strace -f -qq -o /tmp/post-trace -u starling sh -c "${stop_post//\$\$/\$}" >/tmp/post
check "after a crash the journal is told" grep 'ended without saying so' /tmp/post
check "the unit's filter lets all pass that this called" no_call_is_filtered starling.service /tmp/post-trace
rm -f /dev/shm/starling.starling

rm -r /var/lib/starling/models/*
check "purge" apt-get purge -qq -y starling $([ ! -f starling-cuda*.deb ] || echo starling-cuda) libstarling0 libstarling-dev python3-starling
for left in /etc/starling /var/lib/starling /var/cache/starling /usr/bin/starling /usr/include/starling; do
        [ ! -e "$left" ] || { printf 'left behind: %s\n' "$left"; exit 1; }
done
! getent passwd starling || { printf 'left behind: user starling\n'; exit 1; }
for user in alice mallory; do
        deluser --quiet "$user"
        rm -rf "/home/$user"
done
