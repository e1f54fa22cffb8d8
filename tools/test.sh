#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every check, from a fresh clone: packages, release build and all tests; then the tests again under AddressSanitizer and UBSan
# (all but those labelled "long" or "asan-all") and ThreadSanitizer (those labelled "tsan"); then a short run of each fuzzer. Each
# build but the first is made beside the tests of the one before.
# With --all, those labelled "asan-all" as well: tests/README.md says which they are, and why.
# The last line is the sum of all tests, as ctest writes it. Exit status: 0 when everything passed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

left_out='^(long|asan-all)$'
case $* in
'') ;;
--all) left_out='^long$' ;;
*)
        printf 'usage: %s [--all]\n' "$0" >&2
        exit 2
        ;;
esac

fuzz_seconds=${STARLING_FUZZ_SECONDS:-20}
passed=0
total=0
failed_steps=()
step_name=
step_begin=0
step_times=()

# end_step: how long the one before took.
end_step() {
        [ -z "$step_name" ] || step_times+=("$(printf '%5d s  %s' $((SECONDS - step_begin)) "$step_name")")
}

step() {
        end_step
        step_name=$* step_begin=$SECONDS
        printf '\n==> %s (%d s since the start)\n' "$*" "$SECONDS"
}

fail() {
        failed_steps+=("$*")
        printf 'FAILED: %s\n' "$*"
}

# What was not built counts as a test that failed.
fail_build() {
        total=$((total + 1))
        fail "$1 build"
}

# build PRESET [TARGET]
build() {
        local preset=$1 log=build/$1.log
        mkdir -p build
        if ! cmake --preset "$preset" >"$log" 2>&1; then
                cat "$log"
                return 1
        fi
        if ! cmake --build --preset "$preset" ${2:+--target "$2"} >"$log" 2>&1; then
                grep -v '^\[[0-9]*/[0-9]*\] \(Building\|Linking\)' "$log" | tail -n 60
                return 1
        fi
        printf 'built: %s\n' "$preset"
}

# build_ahead PRESET [TARGET]: begins a build with what tests leave of the processors, as many of them sleep. A group of its own, so
# that all of it ends with this script.
ahead_pid=
build_ahead() {
        set -m
        {
                chrt --idle --pid 0 "$BASHPID" || renice -n 19 "$BASHPID" # which some containers forbid
                build "$@"
        } >"build/$1-ahead.log" 2>&1 </dev/null &
        ahead_pid=$!
        set +m
}

# end_build PRESET: waits for what build_ahead has begun.
end_build() {
        local status
        wait "$ahead_pid"
        status=$?
        ahead_pid=
        cat "build/$1-ahead.log"
        return "$status"
}

# run_tests PRESET [ctest arguments]: counts what ctest counts, and prints what was not tried and why. Two jobs to a core keep it
# busy, as many tests sleep.
run_tests() {
        local preset=$1 log=build/$1-tests.log summary
        shift
        ctest --test-dir "build/$preset" --parallel $((2 * $(nproc))) --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log"
        local status=${PIPESTATUS[0]}
        grep -hE '^\[SKIP\]|skipped=' "build/$preset/Testing/Temporary/LastTest.log" | LC_ALL=C sort -u
        summary=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests\{0,1\} failed out of \([0-9]*\)$/\1 \2/p' "$log")
        if [ -n "$summary" ]; then
                local failures=${summary% *} count=${summary#* }
                passed=$((passed + count - failures))
                total=$((total + count))
        fi
        return "$status"
}

# Beside the tests serves a runtime of the default name, as on every host where the product is installed; none may use it.
default_pid=
default_log=build/default-runtime.log
trap 'kill -- $default_pid ${ahead_pid:+-$ahead_pid} 2>/dev/null' EXIT

start_default() {
        local i
        if build/release/bin/starling stats starling >/dev/null 2>&1; then
                printf 'a runtime of the default name serves here: the tests run beside it\n'
                return
        fi
        XDG_CACHE_HOME=build/default-cache build/release/bin/starling serve client/examples/digits/models 2>"$default_log" &
        default_pid=$!
        for ((i = 0; i < 600; i++)); do
                grep -q 'event=ready' "$default_log" && return
                kill -0 "$default_pid" 2>/dev/null || break
                sleep 0.1
        done
        printf '[SKIP] no runtime of the default name starts here: %s\n' "$(tail -n 1 "$default_log")"
        kill "$default_pid" 2>/dev/null
        default_pid=
}

# What it says after it is ready, the sum of its requests, and how it ends.
stop_default() {
        local requests more
        [ -n "$default_pid" ] || return 0
        total=$((total + 1))
        requests=$(build/release/bin/starling stats starling --json | sed -n 's/^ *"requests": \([0-9]*\),$/\1/p' | LC_ALL=C sort -un | tail -n 1)
        more=$(sed '1,/event=ready/d' "$default_log")
        kill "$default_pid"
        wait "$default_pid"
        local status=$?
        default_pid=
        if [ "$status" = 0 ] && [ "$requests" = 0 ] && [ -z "$more" ]; then
                passed=$((passed + 1))
                return
        fi
        printf 'a test has used the runtime of the default name: %s requests\n%s\n' "$requests" "$more"
        return 1
}

# print_times: where the time went.
print_times() {
        local preset seconds name
        printf '\ntime of each step:\n'
        printf '%s\n' "${step_times[@]}"
        printf 'the ten slowest tests:\n'
        for preset in release asan tsan; do
                sed -n "s/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .* \([0-9.]*\) sec.*/\2 \1 ($preset)/p" "build/$preset-tests.log" 2>/dev/null
        done >build/test-times
        LC_ALL=C sort -rn build/test-times | head -n 10 | while read -r seconds name; do printf '%7.1f s  %s\n' "$seconds" "$name"; done
}

# fuzz NAME: what it finds beside the seeds goes with it.
fuzz() {
        local found status
        found=$(mktemp -d)
        "build/fuzz/bin/fuzz-$1" -max_total_time="$fuzz_seconds" -rss_limit_mb=4096 -timeout=25 -print_final_stats=1 \
                -artifact_prefix="build/fuzz/" "$found" "tests/fuzz/corpus/$1" >"build/fuzz-$1.log" 2>&1
        status=$?
        rm -rf "$found"
        return "$status"
}

# Each folder NAME of seeds in tests/fuzz/corpus has an executable fuzz-NAME of the build "fuzz". All run at once.
run_fuzzers() {
        local seeds name status=0
        declare -A running
        for seeds in tests/fuzz/corpus/*; do
                name=${seeds##*/}
                fuzz "$name" &
                running[$name]=$!
        done
        printf 'fuzzing %s for %d s\n' "${!running[*]}" "$fuzz_seconds"
        for name in "${!running[@]}"; do
                total=$((total + 1))
                if wait "${running[$name]}"; then
                        passed=$((passed + 1))
                        printf '%s:\n' "$name"
                        grep -E 'stat::(number_of_executed_units|new_units_added)' "build/fuzz-$name.log"
                else
                        tail -n 40 "build/fuzz-$name.log"
                        status=1
                fi
        done
        return "$status"
}

step "packages"
tools/setup.sh || exit 1

step "release: build"
build release || { printf 'FAILED: release build\n'; exit 1; }
step "release: all tests"
build_ahead asan
start_default
run_tests release || fail "release tests"
stop_default || fail "runtime of the default name"

step "asan: rest of the build"
if end_build asan; then
        step "asan: tests"
        build_ahead tsan tsan-tests
        ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:handle_sigill=1:quarantine_size_mb=16:malloc_context_size=10 run_tests asan -LE "$left_out" ||
                fail "asan tests"
else
        fail_build asan
        build_ahead tsan tsan-tests
fi

step "tsan: rest of the build"
if end_build tsan; then
        step "tsan: tests"
        build_ahead fuzz fuzzers
        TSAN_OPTIONS=halt_on_error=1 run_tests tsan -L tsan || fail "tsan tests"
else
        fail_build tsan
        build_ahead fuzz fuzzers
fi

step "fuzzers"
if end_build fuzz; then
        run_fuzzers || fail "fuzzers"
else
        fail_build fuzz
fi

end_step
print_times
printf '\n'
if [ "${#failed_steps[@]}" -gt 0 ]; then
        printf 'failed: %s\n' "${failed_steps[@]}"
fi
[ "$total" -gt 0 ] || { printf 'no test ran\n'; exit 1; }
[ "$SECONDS" -lt 1200 ] || printf 'note: this took %d s; the aim is 1200 s\n' "$SECONDS"
printf '%d%% tests passed, %d tests failed out of %d\n' $((100 * passed / total)) $((total - passed)) "$total"
[ "${#failed_steps[@]}" -eq 0 ]
