#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks every interleaving of doorbell.pml: the protocol has no lost wake-up, and each mutant has one. Exit code 77: no spin here.
set -eu

model=$(realpath "$(dirname "$0")/doorbell.pml")
command -v spin >/dev/null || { echo "skipped: spin is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# check EXPECTED_ERRORS FLAG...
check() {
        expected=$1
        shift
        spin -a "$@" "$model" >spin.log || { cat spin.log; exit 1; }
        gcc -O1 -w -DSAFETY -DNOREDUCE -o pan pan.c
        ./pan -m100000 >pan.log
        grep -q "errors: $expected\$" pan.log || { echo "$*: expected $expected errors"; cat pan.log; exit 1; }
        ! grep -q "max search depth too small" pan.log || { echo "$*: search was cut"; exit 1; }
        echo "errors: $expected as expected: ${*:-the protocol} ($(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log) states)"
}

check 0
check 0 -DCLIENT_FD
for mutant in NO_CLIENT_K1 NO_DISPATCHER_K1 NO_DISPATCHER_W2 NO_DISPATCHER_FENCE; do
        check 1 -D$mutant
done
check 1 -DCLIENT_FD -DNO_DISPATCHER_K1
check 1 -DCLIENT_FD -DNO_CLIENT_FENCE
check 1 -DNO_CLIENT_FENCE
