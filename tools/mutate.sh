#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests fail when the code is wrong? Applies one mutation at a time to a copy of the tree in build/mutate, builds what
# changed and runs the suites that concern the file; then prints the score and the survivors by folder. Not part of test.sh.
#
#     tools/mutate.sh [--sample N] [--seed S] [--folder F]... [--jobs N] [--hand] [--fresh] [--list | --report]
#
#     --sample N   draw N of the generated mutants, evenly over the folders (default: 40)
#     --seed S     draw by the seed S; the same seed draws the same mutants from the same code (default: 1)
#     --folder F   draw from the folder F alone; repeatable (default: client shm runtime kernels)
#     --jobs N     try N mutants at a time, each in a copy of its own (default: one per two processors)
#     --hand       try those of mutate/by_hand.tsv instead: memory orders, quotas, legality conditions of passes
#     --list       print what would be tried, and try nothing
#     --report     print the score of what has been tried so far
#     --fresh      copy the working tree anew and forget what has been tried; otherwise a run goes on where it was stopped
#
# A mutant is killed when a test fails, or hangs for 60 s. Late is one whose suites took 90 s together: it says nothing, but that the
# machine is busy. Left out: what does not compile, what compiles to the same code, and what mutate/left_out.tsv explains.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

work=$PWD/build/mutate
results=$work/results.tsv # FILE, verdict, mutant, the test that failed
here=$PWD/tools/mutate
mutant_seconds=90
jobs=$((($(nproc) + 1) / 2))
sample=40
seed=1
folders=()
action=run
hand=
fresh=

usage() {
        sed -n '2,/^set/p' tools/mutate.sh | sed '$d;s/^# \{0,1\}//'
}

while [ $# -gt 0 ]; do
        case $1 in
        --sample) sample=$2 && shift ;;
        --seed) seed=$2 && shift ;;
        --folder) folders+=("${2%/}") && shift ;;
        --jobs) jobs=$2 && shift ;;
        --hand) hand=1 ;;
        --fresh) fresh=1 ;;
        --list) action=list ;;
        --report) action=report ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
        esac
        shift
done
[ ${#folders[@]} -gt 0 ] || folders=(client shm runtime kernels)

# enter COPY: where this process breaks, builds and tests from now on.
enter() {
        copy=$work/$1
        tree=$copy/tree
        build=$tree/build/release
}
enter 0

# suites FILE: three regular expressions of tests, the nearer and faster ones first, so that most mutants end early.
suites() {
        case $1 in
        client/*) echo '^client(-threads)?$' '^(client-python|serve-(end|change|shapes|open)|daemon-serve|survive-isolation)' \
                '^(serve-lifecycle|survive-(kill|hostile$|names|overload|memory|shares))' ;;
        shm/*) echo '^(base-|shm-(layout|ring|segment|attach|doorbell|arena|catalogue|histogram|stats(-file)?)$)' \
                '^(shm-|client(-threads)?$|daemon-|compile-(lower|plan-cache|cache-folder|signature)|serve-(end|wait|intake|admission|shapes))' \
                '^(client-python|serve-(open|change|sleepers)|survive-(isolation|names|shares|memory|rules|overload|kill|postmortem|trace))' ;;
        kernels/*) echo '^kernels-(tables|shapes|ref|cpu)' '^(kernels-work|graph-(passes|import|quantize|digits))' \
                '^(compile-|graph|conformance$|quantize|profile|serve-(open|shapes))' ;;
        runtime/graph/*) echo '^graph-' '^(compile-|quantize|conformance$|profile)' '^(serve-(open|shapes|end)|survive-work|kernels-work)' ;;
        runtime/compile/*) echo '^compile-' '^(profile|conformance$|quantize|serve-(open|shapes|end|starts|change)|daemon-serve)' \
                '^(serve-lifecycle|survive-(compilers|surroundings|work|shares|batch-limit))' ;;
        runtime/serve/converge/*) echo '^sim-(leads|converge)' '^serve-(want|on-request|change)' '^(serve-lifecycle|survive-(storm|history))' ;;
        runtime/serve/*) echo '^serve-(wait|combine|places|shape-slots|a|lateness|f|pa|po|service-time|mailbox|sch|b|ensemble|peer|intake|end)' \
                '^(serve-(starts|open|sleepers|shapes|change)|serve-lifecycle-|daemon-serve)' \
                '^(sim|serve-lifecycle$|client-python|survive-(isolation|names|overload|rules|memory|shares|hostile|turns|batch|postmortem|trace))' ;;
        runtime/planner/lets/* | runtime/sim/cycles.*) echo '^planner-lets-' '^planner-lets$' '^tools-lets$' ;;
        runtime/planner/*) echo '^planner-(matrix|space|costs|simulated|worst|best|bounded|exhaustive|device)' '^planner-' '^tools-optimize$' ;;
        runtime/sim/*) echo '^sim' '^serve-pol' '^perf-load-' ;;
        runtime/daemon/*) echo '^daemon-' '^(client-python|survive-(isolation|compilers|surroundings))' '^survive-(names|memory|rules|turns)' ;;
        tools/exporter/*) echo '^exporter-(text|buckets|accept|ledger|table)' '^exporter-(runtimes|restarts|hostile)' '^(exporter-(server|strangers)|survive-exporter)' ;;
        tools/watch/* | tools/top/*) echo '^(watch|top)-' '^top-terminal$' '^survive-stats' ;;
        runtime/doctor/*) echo '^doctor-' '^tools-doctor$' '^daemon-' ;;
        runtime/profile/*) echo '^profile' '^(perf-engine|daemon-serve)' '^client-python' ;;
        *) echo '^(quantize|graph-quantize)' '^(profile|daemon-serve)' '^conformance$' ;;
        esac
}

copy_tree() {
        mkdir -p "$tree" || exit 1
        find "$tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
        git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - 2>/dev/null | tar -xf - -C "$tree"
        mkdir -p "$tree/build"
        [ ! -d build/onnx-1.18 ] || ln -sfn "$PWD/build/onnx-1.18" "$tree/build/onnx-1.18"
}

install_generator() {
        local at=$work/venv
        [ ! -x "$at/bin/python" ] || return 0
        python3 -m venv "$at" && "$at/bin/pip" install --quiet universalmutator==1.14.1
}

# list_mutants: FILE, sed script, words; of the copy, in its order.
list_mutants() {
        local files
        if [ -n "$hand" ]; then
                grep -v '^#' "$here/by_hand.tsv" | grep -E "^($(IFS='|' && echo "${folders[*]}"))/"
                return
        fi
        files=$(cd "$tree" && find "$1" -name '*.c' ! -path '*/examples/*' | LC_ALL=C sort)
        # shellcheck disable=SC2086 # names without blanks
        (cd "$tree" && "$work/venv/bin/python" "$here/generate.py" "$here/operators.rules" $files) 2>"$work/generate.log"
}

# unexplained: what left_out.tsv does not name. Behind the draw, so that a row more leaves the rest of the sample as it is.
unexplained() {
        awk -F '\t' -v list="$here/left_out.tsv" '
                BEGIN { while ((getline row < list) > 0) if (row !~ /^#/ && split(row, f, "\t") > 1) { file[++n] = f[1]; text[n] = f[2] } }
                { for (i = 1; i <= n; i++) if ($1 ~ file[i] && $3 ~ text[i]) next; print }'
}

# The same seed, the same sequence.
random_bytes() {
        openssl enc -aes-256-ctr -pass "pass:$seed" -nosalt -iter 1 </dev/zero 2>/dev/null
}

# Folders take turns, so that a run that is stopped has tried about as many of each.
draw() {
        local folder share=$(((sample + ${#folders[@]} - 1) / ${#folders[@]}))
        if [ -n "$hand" ]; then
                list_mutants
                return
        fi
        for folder in "${folders[@]}"; do
                list_mutants "$folder" | shuf -n "$share" --random-source=<(random_bytes) | nl -w1 -n ln
        done | LC_ALL=C sort -s -n -k1,1 | cut -f 2- | head -n "$sample" | unexplained
}

# object_of FILE: what the compiler makes of it, below the build's folder.
object_of() {
        sed -n "s|.*\"command\": .* -o \([^ ]*\) -c $tree/$1\".*|\1|p" "$build/compile_commands.json" | head -n 1
}

# target_of TEST: its executable; the suites of one share it and begin with its name.
target_of() {
        local name=$1
        until grep -qx "test-$name" "$copy/targets"; do
                [[ $name == *-* ]] || return
                name=${name%-*}
        done
        echo "test-$name"
}

# targets REGEX: what ninja has to build for these tests.
targets() {
        local name
        ctest --test-dir "$build" -N -R "$1" | sed -n 's/^ *Test *#[0-9]*: //p' | while read -r name; do
                target_of "$name"
                case $name in
                client-python*) printf '%s\n' starling starling_python fake-runtime starling-tool ;;
                shm-ring-stress) echo ring-stress ;;
                esac
        done | sort -u
}

# stage REGEX: builds and runs these tests. Prints the first that fails, or "late"; true when all pass.
stage() {
        local log=$copy/stage.log
        # shellcheck disable=SC2046 # names without blanks
        ninja -C "$build" $(targets "$1") >"$log" 2>&1 || {
                echo "build"
                return 1
        }
        rm -f "$build/Testing/Temporary/CTestCostData.txt" # it would put the slowest first
        timeout $((until > SECONDS ? until - SECONDS : 1)) ctest --test-dir "$build" -j2 --stop-on-failure --timeout 60 -R "$1" -FA '.*' >"$log" 2>&1
        case $? in
        0) return 0 ;;
        124) echo "late" ;;
        *) sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*.*/\1/p' "$log" | head -n 1 ;;
        esac
        return 1
}

# reference FILE: the stripped object of the unchanged file.
reference() {
        local object
        object=$(object_of "$1")
        [ -n "$object" ] && ninja -C "$build" "$object" >/dev/null 2>&1 && strip -s -o "$copy/reference.o" "$build/$object"
}

# same_code FILE: 0 the mutant's object is the same; 1 another; 2 it does not compile.
same_code() {
        local object
        object=$(object_of "$1")
        ninja -C "$build" "$object" >"$copy/compile.log" 2>&1 || return 2
        strip -s -o "$copy/mutant.o" "$build/$object" && cmp -s "$copy/reference.o" "$copy/mutant.o"
}

judge() {
        local near middle far failed until=$((SECONDS + mutant_seconds)) # stage() sees it too
        read -r near middle far <<<"$(suites "$1")"
        if failed=$(stage "$near") && failed=$(stage "$middle") && failed=$(stage "$far"); then
                printf 'survived\t'
        elif [ "$failed" = late ]; then
                printf 'late\t'
        else
                printf 'killed\t%s' "$failed"
        fi
}

# mend: the copy as it was, with a new time, so that the next build sees it; also after a run that was stopped.
mend() {
        [ ! -f "$copy/broken" ] || cp "$copy/original" "$tree/$(cat "$copy/broken")" && rm -f "$copy/broken"
}

# A header has no object of its own: its mutants are all judged by tests.
try() {
        local file=$1 script=$2 words=$3 verdict test=
        case $file in *.c) reference "$file" || return ;; esac
        cp "$tree/$file" "$copy/original" && echo "$file" >"$copy/broken"
        sed -E -i "$script" "$tree/$file"
        if cmp -s "$copy/original" "$tree/$file"; then
                verdict=stale
        else
                case $file in *.c) same_code "$file" ;; *) (exit 1) ;; esac
                case $? in
                0) verdict=identical ;;
                2) verdict=stillborn ;;
                *) IFS=$'\t' read -r verdict test <<<"$(judge "$file")" ;;
                esac
        fi
        mend
        printf '%s\t%s\t%s\t%s\n' "$file" "$verdict" "$words" "$test" | tee -a "$results"
}

report() {
        awk -F '\t' '
                function folder_of(path, parts) {
                        split(path, parts, "/")
                        return parts[1] == "runtime" || parts[1] == "kernels" ? parts[1] "/" parts[2] : parts[1]
                }
                function print_row(name, tried) {
                        tried = n[name, "killed"] + n[name, "survived"]
                        printf "%-16s %3d of %3d killed (%3.0f %%); late %d; left out: %d the same code, %d do not compile\n", name,
                                n[name, "killed"], tried, tried ? 100 * n[name, "killed"] / tried : 0, n[name, "late"],
                                n[name, "identical"], n[name, "stillborn"] | "LC_ALL=C sort"
                }
                { split($1, top, "/"); names[1] = folder_of($1); names[2] = top[1]; names[3] = "total"
                  for (i = names[1] == names[2] ? 2 : 1; i <= 3; i++) { seen[names[i]] = 1; n[names[i], $2]++ } }
                $2 == "survived" || $2 == "late" || $2 == "stale" { print $2 ": " $1 ":" $3 }
                END { for (name in seen) print_row(name) }' "$results"
}

build_copy() {
        (cd "$tree" && cmake --preset release -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG" && cmake --build --preset release) >"$copy/build.log" 2>&1 ||
                { tail -n 20 "$copy/build.log" && return 1; }
        ninja -C "$build" -t targets all | sed -n 's/^\(test-[^:/]*\): phony$/\1/p' >"$copy/targets"
}

is_tried() {
        awk -F '\t' -v file="$1" -v words="$2" '$1 == file && $3 == words { found = 1 } END { exit !found }' "$results"
}

# work_off COPY: every one of the drawn mutants that is this copy's turn.
work_off() {
        local file script words
        while IFS=$'\t' read -r file script words; do
                is_tried "$file" "$words" || try "$file" "$script" "$words" </dev/null
        done < <(awk -v jobs="$jobs" -v turn="$1" 'NR % jobs == turn' "$work/drawn.tsv")
}

main() {
        local i
        mkdir -p "$work"
        if [ "$action" = report ]; then
                report
                exit
        fi
        exec 9>"$work/lock"
        flock -n 9 || { echo "mutate: another run is under way" >&2 && exit 1; }
        install_generator || exit 1
        [ -z "$fresh" ] || rm -f "$results"
        for ((i = 0; i < jobs; i++)); do
                enter "$i"
                if [ ! -f "$results" ] || [ ! -d "$tree" ]; then copy_tree; fi
        done
        touch "$results"
        enter 0
        draw >"$work/drawn.tsv"
        if [ "$action" = list ]; then
                cut -f 1,3 "$work/drawn.tsv"
                exit
        fi
        for ((i = 0; i < jobs; i++)); do
                enter "$i"
                mend
                build_copy || break
                work_off "$i" &
        done
        wait
        report
}

main
