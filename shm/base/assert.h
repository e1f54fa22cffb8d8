/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SL_ASSERT(condition): what a comment states and code relies on. Where it is broken, a debug or sanitized build, which all tests
 * run in once, says where and aborts; a release build does not look, and evaluates nothing.
 *
 * SL_WALK(call): the same of what takes a loop to look at: a function of the struct's that asserts the equations beside it.
 */
#pragma once

#ifdef SL_ASSERTIONS
#include <stdio.h>
#include <stdlib.h>
#define SL_ASSERT(condition)                                                                                                       \
        do {                                                                                                                       \
                if (!(condition)) {                                                                                                \
                        fprintf(stderr, "%s:%d: %s: broken: %s\n", __FILE__, __LINE__, __func__, #condition);                      \
                        abort();                                                                                                   \
                }                                                                                                                  \
        } while (0)
#define SL_WALK(call) (call)
#else
#define SL_ASSERT(condition) ((void)sizeof(!(condition)))
#define SL_WALK(call)        ((void)0)
#endif
