#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports.sh [NAME ...]: trains models with scikit-learn, XGBoost and LightGBM, exports them to ONNX, serves them with the release build, and
# compares what Python gets with what the library says. Takes minutes, some hundred megabytes of packages the first time, and so is
# no test of ctest; exit status 0 when all agree.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/release
python=$("$here/../../tools/venv.sh" exports "$here/requirements.txt")

export PYTHONPATH="$here/../../client/python:$here/../client/python" OMP_NUM_THREADS=1
export STARLING_LIBRARY="${STARLING_LIBRARY:-$build/lib/libstarling.so}" STARLING_COMMAND="${STARLING_COMMAND:-$build/bin/starling}"
exec "$python" "$here/exports.py" "$@"
