/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tests of these suites have to end is in outcomes.sh: each of "broken" fails, each of "kept" and "values" passes.
 * Criterion is not asked, as it sees neither leaks nor what a child process asserts.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the compiler does not know. */
static volatile int one = 1;

static void say_fini(void)
{
        fprintf(stderr, "fini ran\n");
}

static void fail_init(void)
{
        cr_assert(!one);
}

static void fail_fini(void)
{
        cr_assert(!one);
}

Test(broken, assertion, .fini = say_fini)
{
        cr_assert_eq(one, 2, "one is %d", one);
        fprintf(stderr, "it went on\n");
}

Test(broken, expectation, .fini = say_fini)
{
        cr_expect_eq(one, 2, "one is %d", one);
        fprintf(stderr, "it went on\n");
}

static void *expect_two(void *argument)
{
        cr_expect_eq(one, 2);
        return argument;
}

Test(broken, expectation_of_a_thread)
{
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, expect_two, NULL), 0);
        pthread_join(thread, NULL);
}

Test(broken, expectation_of_a_process)
{
        pid_t child = fork();

        if (child == 0) {
                cr_expect_eq(one, 2);
                _exit(0);
        }
        cr_assert_eq(waitpid(child, NULL, 0), child);
}

Test(broken, init, .init = fail_init)
{
}

Test(broken, fini, .fini = fail_fini)
{
}

Test(broken, crash)
{
        abort();
}

Test(broken, exit_status)
{
        exit(3);
}

Test(broken, no_exit_status, .exit_code = 3)
{
}

Test(broken, no_signal, .signal = SIGABRT)
{
}

Test(broken, expectation_before_a_signal, .signal = SIGABRT)
{
        cr_expect_eq(one, 2);
        abort();
}

Test(broken, time_out, .timeout = 0.2)
{
        pause();
}

TestSuite(broken_hangs, .timeout = 0.2);

Test(broken_hangs, time_out_of_the_suite)
{
        pause();
}

Test(broken, leak)
{
        char *volatile lost = malloc(100);

        cr_assert_not_null(lost);
        lost = NULL;
}

Test(broken, heap_overflow)
{
        volatile char *block = malloc(100); /* else the write, which is dead before free(), goes where code is optimised */

        cr_assert_not_null(block);
        block[99 + one] = 0;
        free((void *)block);
}

Test(broken, use_after_free)
{
        char *volatile block = malloc(100);

        cr_assert_not_null(block);
        free(block);
        fprintf(stderr, "%d\n", block[one]);
}

Test(broken, undefined_behaviour)
{
        fprintf(stderr, "%d\n", INT_MAX + one);
}

static int values[] = {1, 2, 3};

ParameterizedTestParameters(broken, second_value)
{
        return cr_make_param_array(int, values, 3);
}

ParameterizedTest(int *value, broken, second_value)
{
        cr_expect_neq(*value, 2);
}

ParameterizedTestParameters(values, each_is_tried)
{
        return cr_make_param_array(int, values, 3);
}

ParameterizedTest(int *value, values, each_is_tried)
{
        fprintf(stderr, "value %d\n", *value);
}

static int inits;

static void init_suite(void)
{
        cr_assert_eq(inits++, 0);
}

static void init_test(void)
{
        cr_assert_eq(inits++, 1);
}

TestSuite(kept, .init = init_suite, .fini = say_fini);

Test(kept, the_suite_begins_before_the_test, .init = init_test)
{
        cr_assert_eq(inits, 2);
}

Test(kept, a_test_sees_nothing_of_the_one_before)
{
        cr_assert_eq(inits, 1);
}

Test(kept, a_signal_that_is_wanted, .signal = SIGABRT)
{
        abort();
}

Test(kept, an_exit_status_that_is_wanted, .exit_code = 3)
{
        exit(3);
}

Test(kept, a_test_that_ends_in_time, .timeout = 60)
{
        usleep(1000);
}

static int evaluated(int *count)
{
        return ++*count;
}

Test(kept, a_message_is_made_where_the_assertion_fails_alone)
{
        int count = 0;

        cr_expect_eq(one, 1, "%d", evaluated(&count));
        cr_expect_eq(count, 0);
}

Test(kept, a_test_that_is_skipped)
{
        cr_skip_test("%s", "it has a cause");
}
