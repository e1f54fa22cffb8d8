#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pure.sh WHOLE [ARCHIVE NAME...]: what decides can be driven by a simulator: all objects of the archive WHOLE and NAME.c.o of the other
# one use each other and memory, no clock, no file, no thread, and hold no variable.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ar x "$1"
shift
archive=${1:-}
[ $# -eq 0 ] || shift
for name; do
    ar x "$archive" "$name.c.o"
done
nm --defined-only *.o | awk 'NF == 3 && $2 ~ /[A-Z]/ {print $3}' | sort > defined
# of SL_ASSERT: abort, fprintf, stderr; of the compiler's arithmetic: __popcountdi2
printf '%s\n' __popcountdi2 abort fprintf stderr calloc malloc free memcpy memmove memset __stack_chk_fail _GLOBAL_OFFSET_TABLE_ | sort > allowed
nm --undefined-only *.o | awk 'NF == 2 {print $2}' | sort -u | comm -23 - defined | comm -23 - allowed > foreign
# constants with addresses in them lie in .data.rel.ro
objdump -t *.o | awk '/ (\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && !/\.data\.rel\.ro/ && !/ d +\.[a-z]+\t/ {print $NF}' > variables
if [ -s foreign ] || [ -s variables ]; then
    echo "not pure:"
    cat foreign variables
    exit 1
fi
