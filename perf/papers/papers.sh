#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an experiment of a paper, NAME.py. What it measures is built where it is missing. Live ones have ONNX and ONNX Runtime in a virtual
# environment below the build folder, simulated ones (tables, policies, gpulets) Python alone.
#     perf/papers/papers.sh overhead --out build/overhead.json
#     perf/papers/papers.sh memory --zoo build/zoo --out build/memory.json
#     perf/papers/papers.sh elastic --zoo build/zoo --out build/elastic.json
#     perf/papers/papers.sh diurnal --zoo build/zoo --out build/diurnal.json
#     perf/papers/papers.sh live --out build/live.json
#     perf/papers/papers.sh pause --out build/pause.json
#     perf/papers/papers.sh netfuse --out build/netfuse.json
#     perf/papers/papers.sh fuse_table --out build/fuse_table.json
#     perf/papers/papers.sh infaas --out build/infaas.json
#     perf/papers/papers.sh queries --zoo build/zoo --out build/queries.json
#     perf/papers/papers.sh offline --out build/offline.json
#     perf/papers/papers.sh tables --out build/tables.json
#     perf/papers/papers.sh policies --out build/policies.json
#     perf/papers/papers.sh gpulets --out build/gpulets.json
# Or draws the result of one:
#     perf/papers/papers.sh plot build/policies.json build/policies.svg
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
name=${1:-}
case $name in
overhead | memory | elastic | diurnal | pause | fuse_table | infaas | queries | offline) targets="starling-tool starling" ;;
live) targets="starling-tool starling starling-profile" ;;
netfuse) targets="starling-tool starling bench-netfuse bench-lanes" ;;
tables) targets=bench-allocation ;;
policies) targets=bench-policies ;;
gpulets) targets=bench-lets ;;
plot) targets= ;;
*)
        printf 'papers.sh: no experiment "%s": overhead, memory, elastic, diurnal, live, pause, netfuse, fuse_table, infaas, queries, offline, tables, policies, gpulets, or plot\n' "$name" >&2
        exit 2
        ;;
esac
shift

# A program of another build goes by --program; otherwise those of the release preset.
built() {
        for target in $targets; do
                case $target in
                starling) [ -e "$root/build/release/lib/libstarling.so" ] || return 1 ;;
                starling-profile) [ -x "$root/build/release/libexec/starling/$target" ] || return 1 ;;
                *) [ -x "$root/build/release/bin/${target%-tool}" ] || return 1 ;;
                esac
        done
}
case " $* " in
*" --program "*) ;;
*)
        if ! built; then
                printf 'papers.sh: building %s\n' "$targets" >&2
                # shellcheck disable=SC2086 # several targets
                (cd "$root" && cmake --preset release && cmake --build --preset release --target $targets) >"$root/build/papers.log" 2>&1 || {
                        tail -n 20 "$root/build/papers.log" >&2
                        exit 1
                }
        fi
        ;;
esac

case $name in
tables | policies | gpulets | plot) python=python3 ;;
*) python=$("$root/tools/venv.sh" made "$root/tests/conformance/made/requirements.txt") ;;
esac
PYTHONPATH=$root/client/python:$here/../serving:$here/../profiles:$here/../zoo:$here/../report
export PYTHONPATH
exec "$python" -B "$here/$name.py" "$@"
