#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# get_prometheus.sh: prints the folder where `prometheus` and `promtool` are. Those of the PATH; else the distribution's package, 19 MB
# to load and 95 MB on disk, is unpacked below build/ and not installed, as installing it would start a server. Exit status 77: it cannot
# be had.
set -euo pipefail
folder=$(cd "$(dirname "$0")/../../.." && pwd)/build/prometheus

give_up() {
        printf '[SKIP] exporter-prometheus: %s\n' "$*"
        exit 77
}

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
        dirname "$(command -v prometheus)"
        exit 0
fi
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9
if [ ! -x "$folder/usr/bin/promtool" ]; then
        command -v apt-get >/dev/null || give_up "prometheus is not installed, and there is no apt-get"
        (cd "$folder" && timeout 50 apt-get -q download prometheus >"$folder/log" 2>&1) ||
                give_up "prometheus is not installed, and cannot be had: $(tail -n 1 "$folder/log")"
        dpkg-deb -x "$folder"/prometheus_*.deb "$folder"
        rm "$folder"/prometheus_*.deb
fi
printf '%s\n' "$folder/usr/bin"
