#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# version.sh VERSION: every file that says the version says this one.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
IFS=. read -r major minor patch <<<"$version"
status=0

# says FILE PATTERN: a line of @FILE matches the extended regular expression @PATTERN.
says() {
        grep -Eq "$2" "$1" || { printf '%s does not say %s: no line matches %s\n' "$1" "$version" "$2"; status=1; }
}

says client/include/starling.h "^#define STARLING_VERSION_MAJOR $major\$"
says client/include/starling.h "^#define STARLING_VERSION_MINOR $minor\$"
says client/include/starling.h "^#define STARLING_VERSION_PATCH $patch\$"
says client/python/pyproject.toml "^version = \"${version//./\\.}\"\$"
says client/python/starling/__init__.py "^__version__ = \"${version//./\\.}\"\$"
says CHANGELOG.md "^## ${version//./\\.}( |\$)"
exit "$status"
