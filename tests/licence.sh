#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every source file says under which licence it stands, in one of its first three lines.
set -euo pipefail
cd "$(dirname "$0")/.."

silent=$(find . \( -path ./build -o -path ./.git \) -prune -o -type f \
        \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.inc' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt \) -print |
        while IFS= read -r file; do
                head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2\.0' || printf '%s\n' "$file"
        done)
if [ -n "$silent" ]; then
        printf 'no SPDX-License-Identifier in:\n%s\n' "$silent"
        exit 1
fi
