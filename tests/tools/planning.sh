#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# planning.sh STARLING MODELS DRIVER: models are planned for a GPU where there is a driver, that in the folder DRIVER
# (tests/kernels/cuda/strict_driver.c), as where there is none: it is never called in the sandbox, takes no address space, and the
# plan is the same to the byte.
set -uo pipefail

starling=$1 models=$2 driver=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

wrong() {
        printf 'wrong: %s\n' "$*" >&2
        failed=1
}

plan() {
        "$starling" compile "$models/$1/1/model.onnx" -O backend=cuda -O gpu=h100 -O batch_max=4 -o "$folder/$1.$2" 2>"$folder/said"
}

for model in lenet mlp resnet densenet; do
        if ! plan $model without; then
                grep -q 'libcudnn\|libstarling_cuda' "$folder/said" || wrong "$model: $(<"$folder/said")"
                printf '[SKIP] %s\n' "$(tail -n 1 "$folder/said")"
                exit $((failed ? 1 : 77))
        fi
        LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} plan $model with || { wrong "$model beside a driver: $(<"$folder/said")"; continue; }
        cmp -s "$folder/$model.without" "$folder/$model.with" || wrong "$model: another plan beside a driver"
done
exit $failed
