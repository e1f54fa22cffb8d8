#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pure.sh ARCHIVE NAME...: what decides can be driven by a simulator: the objects NAME.c.o of the archive use each other and memory,
# no clock, no file, no thread, and hold no variable.
set -eu

archive=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for name; do
    ar x "$archive" "$name.c.o"
done
nm --defined-only *.o | awk 'NF == 3 && $2 ~ /[A-Z]/ {print $3}' | sort > defined
# of SL_ASSERT: abort, fprintf, stderr
printf '%s\n' abort fprintf stderr calloc free memcpy memmove memset __stack_chk_fail _GLOBAL_OFFSET_TABLE_ | sort > allowed
nm --undefined-only *.o | awk 'NF == 2 {print $2}' | sort -u | comm -23 - defined | comm -23 - allowed > foreign
nm --defined-only *.o | awk 'NF == 3 && $2 ~ /^[bBdDcC]$/ {print $3}' > variables
if [ -s foreign ] || [ -s variables ]; then
    echo "not pure:"
    cat foreign variables
    exit 1
fi
