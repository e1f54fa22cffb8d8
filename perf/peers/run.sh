#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starling and its peers side by side. Each peer has its packages in a virtual environment of its own under the build folder.
#     perf/peers/run.sh                                                          everything, into build/peers.json and build/peers.md
#     perf/peers/run.sh --only noop,digits --peers triton,onnxruntime            a part; what --out has already stays in it
# AERON_BUILD names a build of Aeron, where there is one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for peer in engines triton perf-analyzer ray litserve; do
        "$here/../../tools/venv.sh" "peers-$peer" "$here/requirements/$peer.txt" >/dev/null
done
python=$here/../../build/peers-engines-venv/bin/python
models=$("$python" -B -c 'import sys; sys.path.insert(0, sys.argv[1]); from workloads import *; print(*zoo_models(WORKLOADS), sep=",")' "$here")
"$here/../zoo/zoo.sh" --out "$here/../../build/zoo" --resume --only "$models" >&2
exec env PYTHONPATH="$here/../serving" "$python" -B "$here/run.py" "$@"
