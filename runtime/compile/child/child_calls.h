/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that the compiler makes. The list was made by tracing compilations; tests/compile/test_child.c tries all the
 * others. Pure.
 */
#pragma once

#include "call_filter.h"

#define SL_CHILD_CALLS_MAX 64

/* Written to are @plan_fd, @report_fd and the numbers of child_args.h. Return: how many. */
size_t sl_child_calls(int plan_fd, int report_fd, struct sl_call_rule ret_rules[SL_CHILD_CALLS_MAX]);
