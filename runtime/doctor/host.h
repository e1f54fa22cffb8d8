/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host and the runtime that is meant to run on it, as checks look at them: files below a root, what the system answers
 * (probes.h), the configuration, and what several of them need of these. Made once, then read only.
 */
#pragma once

#include "base/error.h"
#include "probes.h"
#include "topology.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>

struct sl_config;
struct sl_finding;

struct sl_host {
        const char *root; /* "": this host */
        const struct sl_probes *probes;
        const struct sl_config *config;
        bool configured; /* the configuration is somebody's, not the default */

        cpu_set_t online, isolated, tickless;
        struct sl_machine machine; /* what this process may use of it */
        int placed;                /* 0: as `cores` says; -errno */
        struct sl_thread_cores cores;
        struct sl_error misplaced;
        char socket_folder[PATH_MAX]; /* without the root; "": it has no name */
};

void sl_host_init(
        struct sl_host *host, const char *root, const struct sl_probes *probes, const struct sl_config *config, bool configured);

/* The path below the root, into @ret_path. */
const char *sl_host_path(const struct sl_host *host, const char *path, char ret_path[PATH_MAX]);
