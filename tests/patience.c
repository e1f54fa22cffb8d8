/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of time are for hangs: they are written for a machine that does nothing else, and where others have its processors a test
 * has as many times more as under a sanitizer (plain/main.c).
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <criterion/internal/ordered-set.h>

#define SLOWER 5

static void extend(struct criterion_test_extra_data *options)
{
        if (options)
                options->timeout *= SLOWER;
}

static void extend_suite(struct criterion_suite_set *suite)
{
        extend(suite->suite.data);
        for (struct criterion_ordered_set_node *node = suite->tests->first; node; node = node->next)
                extend(((struct criterion_test *)(node + 1))->data);
}

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
        for (struct criterion_ordered_set_node *node = tests->suites->first; node; node = node->next)
                extend_suite((struct criterion_suite_set *)(node + 1));
}
