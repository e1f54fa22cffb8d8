/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that the compiler makes. The list was made by tracing compilations; tests/compile/test_child.c tries all the
 * others. Pure.
 */
#pragma once

struct sl_call_list;

/* Written to are @plan_fd, @report_fd and the numbers of child_args.h. */
void sl_child_calls(int plan_fd, int report_fd, struct sl_call_list *ret_list);
