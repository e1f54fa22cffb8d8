/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways out of the sandbox of a process, each a function that is true when it led out.
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

/*
 * Tries the ways that have all flags of @wanted, and under a sanitizer not those that it needs itself. Return: the first that leads
 * out, or is not refused as a sandbox refuses, errno says how; NULL: none.
 */
const struct escape_way *escape_try_ways(const struct escape_victim *victim, int wanted);

/* Numbers of system calls are below it. */
#define ESCAPE_CALLS 512

/* Does the filter let the call through? No argument is a good one, so that such a call does no harm. */
bool escape_is_let_through(int call);
