/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that the compiler makes, and with which arguments; every other one is answered as by a kernel that lacks it
 * (ENOSYS), because that is what libraries have fallbacks for. The list was made by tracing compilations;
 * tests/compile/test_child.c tries all the others. Calls of another architecture's table end the process.
 */
#pragma once

#include <stddef.h>

#include <seccomp.h>

#define SL_CALL_RULE_ARGS 2

/* A call that is allowed when all comparisons hold. Several rows for one call are alternatives. */
struct sl_call_rule {
        int call;
        unsigned n_args;
        struct scmp_arg_cmp args[SL_CALL_RULE_ARGS];
};

/*
 * For the calling thread, which is alone. Written to are @plan_fd, @report_fd and the numbers of child_args.h.
 * Return: 0; -ENOSYS the kernel lacks filters, or denies them; -ENOMEM; -errno.
 */
int sl_call_filter_load(int plan_fd, int report_fd);
