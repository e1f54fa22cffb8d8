/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no file of a host tells: the system has to be asked, or something has to be run for some milliseconds. A test, or a host
 * that is there as files only, has others, or NULL for what it cannot say.
 *
 * Threads: one at a time; what is measured runs in the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_config;
struct sl_core_figures;
struct sl_error;

struct sl_space {
        uint64_t bytes, free_bytes;
};

/* What a thread lost that never wanted to stop. */
struct sl_gaps {
        double share; /* of the time */
        double longest_us;
};

struct sl_probes {
        /* Return: 0; -errno with a text: the control thread waits with epoll. */
        int (*io_uring)(struct sl_error *error);

        int (*landlock)(void);      /* its version; 0: none */
        bool (*call_filters)(void); /* seccomp's */

        /* May this process make files in the folder? */
        bool (*may_write)(const char *folder);

        /* Of the file system at @path. Return: 0, -errno. */
        int (*space)(const char *path, struct sl_space *ret_space);

        /* What a core reaches, if the cache of plans of this configuration knows it. False: not measured yet. */
        bool (*core)(const struct sl_config *config, struct sl_core_figures *ret_figures);

        /* Measurements; 0, or false: it could not be. */
        double (*clock_ns)(void);                        /* a reading of CLOCK_MONOTONIC */
        double (*call_ns)(void);                         /* a system call that does nothing */
        bool (*gaps)(int cpu, struct sl_gaps *ret_gaps); /* on a processor that this process may use, for a tenth of a second */
        double (*huge_speed)(void);                      /* of reading from huge pages, over that from small ones */
};

/* Of the host that this process runs on. */
extern const struct sl_probes sl_probes_live;

/* The same, but for what takes time. */
extern const struct sl_probes sl_probes_quick;

/* Nothing: a host that is there as files only. */
extern const struct sl_probes sl_probes_none;
