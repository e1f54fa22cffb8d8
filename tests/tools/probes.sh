#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# probes.sh STARLING SHARE: the probes in the program's notes are those of starling-probes(7), with as many arguments.
set -euo pipefail
starling=$1 page=$2/man/man7/starling-probes.7

# NAME ARGUMENTS, each once.
in_program() {
        readelf -n "$starling" 2>/dev/null | awk '
                $1 == "Provider:" { ours = $2 == "starling" }
                $1 == "Name:" { name = $2 }
                $1 == "Arguments:" && ours { print name, NF - 1 }' | sort -u
}

in_page() {
        sed -n 's/^\.It Cm \([a-z_]*\) No ( \(.*\) )$/\1 \2/p' "$page" | awk '{ print $1, NF - 1 }' | sort
}

[ "$(in_page | wc -l)" -ge 8 ] || { echo "$page lists hardly any probe"; exit 1; }
diff <(in_page) <(in_program) || { echo "< in starling-probes(7), > in $starling"; exit 1; }
