/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model that a process without rights (confined.h) makes of another one and of samples: a file in memory, and the calls that
 * making it takes. Any thread.
 */
#pragma once

#include "call_filter.h"

/* For struct confined: @fd is the file, which may be written alone of all that is open. */
#define VARIANT_FILE_CALLS(fd)                                                                                                     \
        SL_CALL_WITH(write, SL_ARG_IS(0, fd)),                                                                                     \
        /* samples */                                                                                                              \
        SL_CALL(access),                                                                                                           \
        SL_CALL(faccessat),                                                                                                        \
        /* plans, which are files in memory */                                                                                     \
        SL_CALL(memfd_create),                                                                                                     \
        SL_CALL(pwrite64),                                                                                                         \
        SL_CALL(ftruncate),                                                                                                        \
        SL_CALL(fallocate),                                                                                                        \
        SL_CALL_WITH_BOTH(prlimit64, SL_ARG_IS(0, 0), SL_ARG_IS(2, 0))

/* Empty; beside standard input, output and error, of which one may be closed. Return: a descriptor; below 0 there is none. */
int variant_file_new(void);
