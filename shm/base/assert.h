/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SL_ASSERT(condition): what a comment states and code relies on. Where it is broken, a debug or sanitized build, which all tests run
 * in once, says where and aborts; a release build does not look, and evaluates nothing.
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
#else
#define SL_ASSERT(condition) ((void)sizeof(!(condition)))
#endif
