# SPDX-License-Identifier: Apache-2.0
# To be sourced, with $starling set: a folder that goes with the script, with $folder/models, the $repository to be served, and nothing of the user's;
# $status, which wrong() sets; a runtime $name, and what it says in $folder/said.
folder=$(mktemp -d)
name=tested-$$
runtime=
repository=$folder/models
trap '[ -z "$runtime" ] || kill "$runtime"; wait; rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache XDG_DATA_HOME=$folder/data STARLING_SOCKET_DIR=$folder/run TMPDIR=$folder/tmp
mkdir "$folder/cache" "$folder/tmp" "$folder/models"
status=0

wrong() {
        printf 'starling: %s\n' "$*"
        status=1
}

# start ARGUMENT...: a runtime that is ready. What it says from then on comes to $folder/said a moment later, and is there after stop.
start() {
        mkfifo "$folder/log"
        "$starling" serve --name "$name" "$@" "$repository" 2>"$folder/log" &
        runtime=$!
        exec 3<"$folder/log"
        rm "$folder/log"
        : >"$folder/said"
        while read -r line <&3; do
                printf '%s\n' "$line" >>"$folder/said"
                [[ $line == *event=ready* ]] && break
        done
        cat <&3 >>"$folder/said" &
        copying=$!
}

stop() {
        kill "$runtime"
        wait "$runtime" || wrong "serve ended with status $?: $(<"$folder/said")"
        wait "$copying"
        runtime=
        exec 3<&-
}
