/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runtimes of a host use which cores: a locked file for each core and what it is used for, in the folder of the sockets
 * (core-3.dispatcher, core-3.workers), with name and pid of its holder. A lock ends with its process (stats_claim.h), so a file
 * that lies there means nothing by itself; a lock does, whoever can see the process that has it. Runtimes with folders of their own
 * do not know of each other.
 *
 * Threads: one at a time.
 */
#pragma once

#include "topology.h"

#include <stddef.h>

struct sl_core_claims;

/* Says in @machine which of its cores living runtimes of @folder hold. */
void sl_core_claims_survey(const char *folder, struct sl_machine *machine);

/* What a runtime could not have for itself. */
struct sl_core_sharing {
        cpu_set_t cores;
        char holders[256]; /* "NAME (pid N), ..."; cut when there are many */
        int result;        /* 0, or why some claim could not be made: -EMFILE they have an eighth of the fds already, -errno */
};

/*
 * Claims the cores of @thread_cores for runtime @name, as far as nobody else holds them; waits up to 2 s, for all together, for
 * holders that were killed just now. Return: 0, -ENOMEM.
 */
int sl_core_claims_take(const char *folder, const char *name, const struct sl_thread_cores *thread_cores,
        struct sl_core_claims **ret_claims, struct sl_core_sharing *ret_sharing);

/* Gives them up, and removes their files. NULL is fine. Returns NULL. */
struct sl_core_claims *sl_core_claims_free(struct sl_core_claims *claims);
