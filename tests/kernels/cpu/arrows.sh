#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Folders of kernels/cpu include only what lies below them.
set -euo pipefail
cd "$(dirname "$0")/../../../kernels/cpu"

declare -A below=(
        [base]='' [gemm]='base' [elementwise]='base' [movement]='base' [reduce]='base' [ml]='base'
        [conv]='base gemm' [rnn]='base gemm' [onednn]='base gemm reduce')
status=0
for folder in */; do
        folder=${folder%/}
        if [ -z "${below[$folder]+known}" ]; then
                printf 'kernels/cpu/%s: no row here says what it may include\n' "$folder"
                status=1
                continue
        fi
        allowed=$(tr ' ' '|' <<<"$folder ${below[$folder]}")
        if grep -nE '#include "cpu/' "$folder"/*.[ch] | grep -vE "#include \"cpu/(${allowed%|})/"; then
                printf 'kernels/cpu/%s includes what does not lie below it: %s\n' "$folder" "${below[$folder]:-nothing}"
                status=1
        fi
done
exit $status
