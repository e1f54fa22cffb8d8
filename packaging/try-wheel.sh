#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try-wheel.sh FOLDER: installs the wheel in it into a fresh virtual environment, serves the digits ensemble with the command that it brings and asks
# it from Python. Exit status 77: NumPy, which it depends on, cannot be had.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "$1"/starling_inference-*.whl)
[ -f "$wheel" ] || { printf '[SKIP] the wheel is not tried: there is none in %s\n' "$1"; exit 77; }
pip=$("$source/tools/venv.sh" pip)
work=$(mktemp -d)
runtime=

finish() {
        if [ -n "$runtime" ]; then
                kill -TERM "$runtime" 2>/dev/null || true
                wait "$runtime" || true
        fi
        rm -rf "$work"
}
trap finish EXIT

fail() {
        printf 'try-wheel: %s\n' "$*"
        [ ! -f "$work/log" ] || cat "$work/log"
        exit 1
}

python3 -m venv --without-pip "$work/venv"
"$pip" --python "$work/venv/bin/python" install -q --no-compile --disable-pip-version-check "$wheel" >"$work/pip.log" 2>&1 || {
        grep -qi 'numpy' "$work/pip.log" || fail "$(tail -n 5 "$work/pip.log")"
        printf '[SKIP] the wheel is not tried: NumPy cannot be had: %s\n' "$(tail -n 1 "$work/pip.log")"
        exit 77
}

# Nothing of this source tree, nor of the system's libraries, may be needed. Takes the place of the shell that calls it.
alone() {
        exec env -i PATH="$work/venv/bin:/usr/bin:/bin" HOME="$work" STARLING_SOCKET_DIR="$work" "$@"
}
cd "$work"
version=$(alone starling --version)
[ "$version" = "starling $(sed -n 's/^version = "\(.*\)"/\1/p' "$source/client/python/pyproject.toml")" ] || fail "says: $version"
[ "$(alone python -c 'import starling; print(starling.version())')" = "${version#starling }" ] || fail "library and command differ"

forms=ctypes
if [[ $wheel == *-cp311.py3-abi3.none-* ]] && (alone python -c 'import sys; sys.exit(sys.version_info < (3, 11))'); then
        forms="ctypes native"
fi

name=wheel-$$
(alone starling serve --name "$name" "$source/client/examples/digits/models") 2>"$work/log" &
runtime=$!
for ((i = 0; i < 400; i++)); do
        [ -S "$work/$name.sock" ] && break
        kill -0 "$runtime" 2>/dev/null || fail "the runtime did not start"
        sleep 0.1
done
mv "$work/$name.sock" "$work/starling.sock"
for form in $forms; do
        (alone STARLING_PYTHON=$form python "$source/packaging/try/digits.py" "$source/client/examples/digits") || fail "digits, $form"
done

# The exporter takes HTTP's library from the host, where it is.
if ldconfig -p | grep -q 'libmicrohttpd\.so\.12 '; then
        said=$(alone starling exporter --listen nowhere 2>&1) && fail "the exporter listens nowhere"
        [[ $said == *'"nowhere" wants an address and a port'* ]] || fail "the exporter says: $said"
fi

said=$(alone starling top "$name" 2>&1 </dev/null) && fail "top needs no terminal"
[[ $said == *"is no terminal"* ]] || fail "top says: $said"

# Every library beside libc's own comes out of the wheel.
outside=$(sed -n 's/.* \(\/[^ ]*\.so[^ ]*\)$/\1/p' "/proc/$runtime/maps" | sort -u | grep -v "^$work/" |
        grep -Ev '/(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libgcc_s|libstdc\+\+)\.so' || true)
[ -z "$outside" ] || fail "libraries of the system are used: $outside"
grep -q "$work/venv/.*libdnnl" "/proc/$runtime/maps" || fail "oneDNN does not come out of the wheel"
kill -TERM "$runtime"
wait "$runtime" || fail "the runtime ended with $?"
runtime=
printf 'try-wheel: %s works\n' "$(basename "$wheel")"
