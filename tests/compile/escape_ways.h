/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways out of the compiler's sandbox, each a function that is true when it led out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct escape_victim {
        const char *path;
        int fd; /* open for reading and writing */
        int sockets[2];
        pid_t parent;
};

enum escape_way_flag {
        ESCAPE_SANITIZERS_DO_IT = 1,
        ESCAPE_NOT_WHERE_IT_WORKS = 2,
        ESCAPE_LANDLOCK_SEES_IT = 4,
};

struct escape_way {
        const char *name;
        bool (*leads_out)(const struct escape_victim *victim); /* else errno says why */
        int flags;                                             /* enum escape_way_flag */
};

extern const struct escape_way escape_ways[];
extern const size_t escape_n_ways;
