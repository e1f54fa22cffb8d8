#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# doctor.sh STARLING: `starling doctor` on this host: text and JSON say the same, the exit status is the worst verdict's, a
# configuration is held against the host, and nothing is left behind.
set -euo pipefail
starling=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache STARLING_SOCKET_DIR=$folder/run
mkdir "$folder/cache"
status=0

wrong() {
        printf 'starling doctor: %s\n' "$*"
        status=1
}

# run ARGUMENT...: sets said and code
run() {
        code=0
        said=$("$starling" doctor "$@" 2>&1) || code=$?
}

# The worst verdict of the first columns of a report.
worst() {
        if grep -q '^wrong  ' <<<"$1"; then
                echo 6
        elif grep -q '^could be better  ' <<<"$1"; then
                echo 5
        else
                echo 0
        fi
}

run
[ "$code" -eq "$(worst "$said")" ] || wrong "status $code of: $said"
for check in $("$starling" help doctor | sed -n '/^Checks:/,$s/^  \([a-z-]*\)  .*/\1/p'); do
        [ "$(grep -cE "^(ok|could be better|wrong|cannot tell) +$check " <<<"$said")" -eq 1 ] || wrong "no line for $check: $said"
done
[[ $said == *" ok, "*" could be better, "*" wrong, "*" cannot tell" ]] || wrong "no sum: $said"
[ "$(find "$folder" -type f -o -name starling | wc -l)" -eq 0 ] || wrong "something is made: $(find "$folder")"

run --json --quick
json=$said
python3 -c '
import json, sys
report = json.loads(sys.argv[1])
statuses = {"ok": 0, "unknown": 0, "better": 5, "wrong": 6}
assert len(report["checks"]) >= 25, "too few checks"
assert max(statuses[c["verdict"]] for c in report["checks"]) == int(sys.argv[2]) == statuses[report["verdict"]], "status"
for check in report["checks"]:
    assert check["found"], check
    assert statuses[check["verdict"]] == 0 or (check["change"] and check["gain"]), check
    assert not any(name.endswith("_ns") for name in check["figures"]), "--quick measures"
' "$json" "$code" || wrong "JSON: $json"

run --only smt,kernel --only shm
[ "$(grep -cE '^(ok|could be better|wrong|cannot tell) ' <<<"$said")" -eq 3 ] || wrong "--only has not three lines: $said"
run --only smt,what
[[ $code -eq 2 && $said == *'no check "what"'* ]] || wrong "--only what: $code, $said"
run --root "$folder/none"
[[ $code -eq 2 && $said == *"$folder/none"* ]] || wrong "--root none: $code, $said"
run more
[ "$code" -eq 2 ] || wrong "an argument: $code, $said"

# What is measured once for the plans is shown.
run --only core-figures
[[ $said == *"nothing is measured yet"* ]] || wrong "core-figures before: $said"
if [[ $("$starling" version --host) != *"nothing is measured"* ]]; then
        run --only core-figures
        [[ $code -eq 0 && $said == *"operations/s"* ]] || wrong "core-figures afterwards: $said"
fi

# A home in which nothing is yet: the runtime will make both folders, who looks makes none.
mkdir "$folder/home"
said=$(env -u XDG_CACHE_HOME HOME="$folder/home" "$starling" doctor --only cache-folder 2>&1) || wrong "an empty home: $said"
[[ $said == *"home/.cache/starling"*"the"*"runtime makes"* ]] || wrong "an empty home: $said"
[ -z "$(ls -A "$folder/home")" ] || wrong "something was made in an empty home"

# A configuration that does not fit this host.
printf 'threads: {worker_cores: [1023]}\n' >"$folder/cores.yaml"
run --config "$folder/cores.yaml" --only pinning
[[ $code -eq 6 && $said == *"core 1023"* ]] || wrong "core 1023: $code, $said"
printf 'limits: {memory_max: 900 TiB}\n' >"$folder/memory.yaml"
run --config "$folder/memory.yaml" --only memory
[[ $code -eq 6 && $said == *"limits.memory_max"* ]] || wrong "900 TiB: $code, $said"
printf 'model_repositories: [%s/none]\n' "$folder" >"$folder/repository.yaml"
run --config "$folder/repository.yaml" --only repositories
[[ $code -eq 6 && $said == *"$folder/none"* ]] || wrong "a repository: $code, $said"
printf 'threads: {what: 1}\n' >"$folder/what.yaml"
run --config "$folder/what.yaml"
[[ $code -eq 2 && $said == *"what.yaml:1"* ]] || wrong "a wrong configuration: $code, $said"

# Another host's files.
mkdir -p "$folder/root/proc/sys/kernel"
echo 5.10.0 >"$folder/root/proc/sys/kernel/osrelease"
run --root "$folder/root"
[[ $code -eq 6 && $(grep -c '^cannot tell' <<<"$said") -ge 20 && $said == *"Linux 5.10.0"* ]] || wrong "another host: $code, $said"
exit "$status"
