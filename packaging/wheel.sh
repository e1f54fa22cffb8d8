#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel.sh TREE OUT: a wheel of the build in TREE, with every library that it needs inside, below the tag that auditwheel grants.
# wheel.sh tools: only what it is made with, which comes from PyPI into build/package-venv. Exit status 77: it cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$here")
venv=$source/build/package-venv
pip=$("$source/tools/venv.sh" pip)
mkdir -p "$source/build"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() {
        printf 'wheel: %s\n' "$*"
}

get_tools() {
        cmp -s "$here/wheel/requirements.txt" "$venv/installed" && return
        say "tools from PyPI"
        python3 -m venv --clear --without-pip "$venv"
        "$pip" --python "$venv/bin/python" install -q --no-compile --disable-pip-version-check -r "$here/wheel/requirements.txt" >"$work/pip.log" 2>&1 || {
                printf '[SKIP] no wheel: its tools cannot be had: %s\n' "$(tail -n 1 "$work/pip.log")"
                exit 77
        }
        cp "$here/wheel/requirements.txt" "$venv/installed"
}

# The distribution's oneDNN is linked with OpenCL's loader, which it calls only for devices that are no CPUs. Inside the wheel a library
# without a single platform stands in for it, so that no driver of the host is ever loaded.
make_no_opencl() {
        local dnnl
        dnnl=$(ldd "$tree/bin/starling" | sed -n 's/.*libdnnl[^ ]* => \([^ ]*\) .*/\1/p')
        nm -D --undefined-only --with-symbol-versions "$dnnl" | sed -n 's/^ *U \(cl[A-Z][A-Za-z]*\)\(@*\(.*\)\)\{0,1\}$/\1 \3/p' >"$work/calls"
        [ -s "$work/calls" ] || return 0
        awk '{print "long " $1 "(void);\nlong " $1 "(void)\n{\n        return -1001; /* CL_PLATFORM_NOT_FOUND_KHR */\n}"}' "$work/calls" >"$work/no_opencl.c"
        awk '{calls[$2] = calls[$2] " " $1 ";"} END {for (v in calls) print (v == "" ? "" : v) " {" (v == "" ? " global:" : "") calls[v] " };"}' \
                "$work/calls" >"$work/no_opencl.map"
        "${CC:-cc}" -shared -fPIC -O2 -Wl,-soname,libOpenCL.so.1 -Wl,--version-script,"$work/no_opencl.map" "$work/no_opencl.c" \
                -o "$work/libOpenCL.so.1"
}

get_tools
[ "$1" != tools ] || exit 0
tree=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
make_no_opencl
say "building"
"$pip" --python "$venv/bin/python" wheel -q --disable-pip-version-check --no-build-isolation --no-deps "$source/client/python" -w "$work/raw" \
        -C "build-dir=$work/build" -C "cmake.define.STARLING_TREE=$tree"
say "putting the libraries inside"
rm -f "$out"/starling_inference-*.whl
PATH=$venv/bin:$PATH LD_LIBRARY_PATH=$work "$venv/bin/auditwheel" -v repair --exclude libmicrohttpd.so.12 --wheel-dir "$out" "$work"/raw/*.whl >"$work/audit.log" 2>&1 || {
        tail -n 40 "$work/audit.log" >&2
        exit 1
}
# The extension is for CPython 3.11 and later; all else serves any Python, which then has the ctypes form.
if [ -f "$tree/lib/python/starling/_native.abi3.so" ]; then
        "$venv/bin/wheel" tags --remove --python-tag +cp311 --abi-tag +abi3 "$out"/starling_inference-*.whl >"$work/tags.log" 2>&1 || {
                cat "$work/tags.log" >&2
                exit 1
        }
fi
ls "$out"/starling_inference-*.whl
