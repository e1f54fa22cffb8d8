/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of libstarling by name. They are looked up at run time in the very file that the ctypes form has open, so that handles
 * go from one to the other, and so that the module starts wherever that library lies.
 */
#pragma once

#include "starling.h"

#define SL_LIBRARY_CALLS(X)                                                                                                        \
        X(alloc)                                                                                                                   \
        X(alloc_error)                                                                                                             \
        X(cancel)                                                                                                                  \
        X(clock_ns)                                                                                                                \
        X(close)                                                                                                                   \
        X(completion_members)                                                                                                      \
        X(completion_variant)                                                                                                      \
        X(dtype_bytes)                                                                                                             \
        X(free)                                                                                                                    \
        X(model_changed)                                                                                                           \
        X(model_describe)                                                                                                          \
        X(poll)                                                                                                                    \
        X(queue_arm)                                                                                                               \
        X(queue_close)                                                                                                             \
        X(queue_error)                                                                                                             \
        X(queue_fd)                                                                                                                \
        X(queue_open)                                                                                                              \
        X(reason_text)                                                                                                             \
        X(strerror)                                                                                                                \
        X(submit)                                                                                                                  \
        X(wait)

struct library {
        void *file; /* NULL until it is open; never closed, as handles outlive all */
#define SL_LIBRARY_FIELD(name) __typeof__(&starling_##name) name;
        SL_LIBRARY_CALLS(SL_LIBRARY_FIELD)
#undef SL_LIBRARY_FIELD
};

/* Return: NULL, or what is wrong, in words that last until the thread's next dlerror(). Does nothing when it is open. */
const char *sl_library_open(struct library *library, const char *path);
