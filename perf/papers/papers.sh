#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an experiment of a paper, NAME.py: live ones with the packages of the zoo, in a virtual environment of its own under the build folder,
# simulated ones (tables, policies) with Python alone.
#     perf/papers/papers.sh overhead --out build/overhead.json
#     perf/papers/papers.sh memory --zoo build/zoo --out build/memory.json
#     perf/papers/papers.sh diurnal --zoo build/zoo --out build/diurnal.json
#     perf/papers/papers.sh live --out build/live.json
#     perf/papers/papers.sh pause --out build/pause.json
#     perf/papers/papers.sh netfuse --out build/netfuse.json      # wants bench-netfuse and bench-lanes
#     perf/papers/papers.sh fuse_table --out build/fuse_table.json
#     perf/papers/papers.sh tables --out build/tables.json
#     perf/papers/papers.sh policies --out build/policies.json
# Or draws the result of one, with the packages of requirements.txt:
#     perf/papers/papers.sh plot build/policies.json build/policies.svg
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=${1:?which experiment}
shift
case $name in
tables | policies) python=python3 ;;
netfuse | fuse_table) python=$("$here/../../tools/venv.sh" engine "$here/../engine/requirements.txt") ;;
plot) python=$("$here/../../tools/venv.sh" plots "$here/requirements.txt") ;;
*) python=$("$here/../../tools/venv.sh" zoo "$here/../zoo/requirements.txt") ;;
esac
exec env PYTHONPATH="$here/../../client/python:$here/../serving:$here/../profiles:$here/../zoo" "$python" -B "$here/$name.py" "$@"
