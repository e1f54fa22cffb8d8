/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup attributes: a local that owns a thing frees it when it goes out of scope; sl_take() hands it on.
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define SL_CLEANUP(function) __attribute__((cleanup(function)))

/* Declares sl_cleanup_NAME(), which calls free_function(*pointer). */
#define SL_DEFINE_CLEANUP(type, free_function)                                                                                     \
        static inline void sl_cleanup_##free_function(type *pointer)                                                               \
        {                                                                                                                          \
                (void)free_function(*pointer);                                                                                     \
        }

/* The value of @pointer, which becomes NULL: ownership moves to the caller of the function. */
#define sl_take(pointer)                                                                                                           \
        __extension__({                                                                                                            \
                __auto_type sl_taken = (pointer);                                                                                  \
                (pointer) = NULL;                                                                                                  \
                sl_taken;                                                                                                          \
        })

static inline void sl_cleanup_fd(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

static inline void sl_cleanup_free(void *pointer)
{
        free(*(void **)pointer);
}

/* The fd, and -1 stays behind. */
static inline int sl_take_fd(int *fd)
{
        int taken = *fd;

        *fd = -1;
        return taken;
}
