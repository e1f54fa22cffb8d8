#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# outcomes.sh PROGRAM SANITIZERS: each test of the suite "broken" in outcomes.c fails, alone and for its own reason; the others pass.
set -u
program=$1
sanitizers=$2
status=0
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_sigill=1

# fails SUITE/NAME TEXT...: each TEXT is in what it prints.
fails() {
        local test=$1 said text
        shift
        said=$("$program" --filter "$test" 2>&1)
        if [ $? -ne 1 ]; then
                printf '%s did not fail\n' "$test"
                status=1
        fi
        for text in "[FAIL] ${test/\//::}: " "$@"; do
                case $said in
                *"$text"*) ;;
                *)
                        # Without the words by which ctest knows a sanitizer's report.
                        printf '%s: "%s" is not in:\n%s\n' "$test" "$text" "$(sed 's/ERROR: /ERROR /; s/runtime error: /runtime error /' <<<"$said")"
                        status=1
                        ;;
                esac
        done
}

# passes SUITE TEXT...
passes() {
        local suite=$1 said text
        shift
        if ! said=$("$program" --filter "$suite/*" 2>&1); then
                printf '%s failed:\n%s\n' "$suite" "$said"
                status=1
        fi
        for text in "$@"; do
                case $said in
                *"$text"*) ;;
                *)
                        printf '%s: "%s" is not in:\n%s\n' "$suite" "$text" "$said"
                        status=1
                        ;;
                esac
        done
}

fails broken/assertion '(one) == (2): one is 1' 'fini ran' 'exit status 1' '1 tests, 1 failed'
fails broken/expectation 'one is 1' 'it went on' 'fini ran' 'exit status 0'
fails broken/expectation_of_a_thread
fails broken/expectation_of_a_process
fails broken/init 'exit status 1'
fails broken/fini 'exit status 1'
fails broken/crash 'signal 6'
fails broken/exit_status 'exit status 3'
fails broken/no_exit_status 'exit status 0'
fails broken/no_signal 'exit status 0'
fails broken/expectation_before_a_signal 'signal 6'
fails broken/time_out 'timed out' 'thread ' 'system call'
fails broken_hangs/time_out_of_the_suite 'timed out'
if [[ $sanitizers == *address* ]]; then
        fails broken/time_out 'in plain_test_broken_time_out'
        fails broken/leak 'detected memory leaks' 'in plain_test_broken_leak'
        fails broken/heap_overflow 'heap-buffer-overflow' 'in plain_test_broken_heap_overflow'
        fails broken/use_after_free 'heap-use-after-free'
        fails broken/undefined_behaviour 'AddressSanitizer: ILL' 'in plain_test_broken_undefined_behaviour'
fi
fails broken/second_value '3 tests, 1 failed'
if "$program" --filter broken/assertion 2>&1 | grep -q 'it went on'; then
        printf 'a test went on after an assertion\n'
        status=1
fi

passes kept '7 tests, 0 failed' 'fini ran' '[SKIP] kept::a_test_that_is_skipped: it has a cause'
passes values 'value 1' 'value 2' 'value 3' '3 tests, 0 failed'

# A filter that takes nothing is a mistake, and so is an option that there is not.
"$program" --filter nothing/here >/dev/null 2>&1 && { printf 'no test ran, and that passed\n'; status=1; }
"$program" --other >/dev/null 2>&1
[ $? -eq 2 ] || { printf 'an unknown option was taken\n'; status=1; }
exit $status
