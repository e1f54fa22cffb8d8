#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# venv.sh NAME REQUIREMENTS: makes the virtual environment build/NAME-venv of a requirements file, again when that has changed, and prints
# where its Python is. Wheels alone and without their dependencies: the file names every package.
# venv.sh pip: prints where the pip is that installs into all of them; an environment with one of its own takes seconds to make.
set -eu
build=$(cd "$(dirname "$0")/.." && pwd)/build
mkdir -p "$build"

# lock NAME: until the next one, or the end
lock() {
        exec 9>"$build/$1-venv.lock"
        flock 9
}

# get_pip VENV: an environment with the pip that Python brings along. `venv` alone installs it as well, and compiles all of it, which takes
# eight times as long. Status 1: this Python brings none.
get_pip() {
        wheel=$(python3 - <<'EOF'
import ensurepip, glob, os
folders = getattr(ensurepip, "_WHEEL_PKG_DIR", None), os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
print(*[wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))][:1])
EOF
        )
        [ -n "$wheel" ] && python3 -m venv --clear --without-pip "$1" &&
                "$1/bin/python" -m zipfile -e "$wheel" "$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" &&
                printf '#!/bin/sh\nexec "${0%%/*}/python" -I -m pip "$@"\n' >"$1/bin/pip" &&
                chmod +x "$1/bin/pip"
}

pip=$build/pip-venv/bin/pip
lock pip
if [ ! -e "$build/pip-venv/complete" ]; then
        get_pip "$build/pip-venv" >&2 || python3 -m venv --clear "$build/pip-venv" >&2
        touch "$build/pip-venv/complete"
fi
if [ "$1" = pip ]; then
        printf '%s\n' "$pip"
        exit
fi

venv=$build/$1-venv
lock "$1"
if ! cmp -s "$2" "$venv/installed.txt"; then
        python3 -m venv --clear --without-pip "$venv" >&2
        # Python compiles what is imported when it is; most of what is installed never is.
        "$pip" --python "$venv/bin/python" install --quiet --disable-pip-version-check --no-compile --no-deps --only-binary=:all: -r "$2" >&2
        cp "$2" "$venv/installed.txt"
fi
printf '%s\n' "$venv/bin/python"
