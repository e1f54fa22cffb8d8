#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every source file says under which licence it stands, in one of its first three lines.
set -euo pipefail
cd "$(dirname "$0")/.."

sources() {
        find . \( -path ./build -o -path ./.git \) -prune -o -type f \
                \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.inc' -o -name '*.py' -o -name '*.sh' \
                -o -name '*.cmake' -o -name CMakeLists.txt \) -print | LC_ALL=C sort
}

said() {
        sources | xargs -d '\n' grep -m1 -nH 'SPDX-License-Identifier: Apache-2\.0' | sed -n 's/:[123]:.*//p'
}

silent=$(LC_ALL=C comm -23 <(sources) <(said))
if [ -n "$silent" ]; then
        printf 'no SPDX-License-Identifier in:\n%s\n' "$silent"
        exit 1
fi
