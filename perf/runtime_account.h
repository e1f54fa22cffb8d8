/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime has used until now, from its stats page and from /proc: two of them around a load say what the load cost. No
 * state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_runtime_account {
        bool known;                                 /* false: its stats page cannot be read, and all is 0 */
        bool measured;                              /* cpu_ns and rss_bytes are known, too */
        uint64_t cpu_ns, rss_bytes;                 /* of its process */
        uint64_t compute_ns, busy_ns, combining_ns; /* sums over all models */
        uint64_t batches, batch_samples;            /* given to workers */
        uint64_t wakes;                             /* sleeping clients that the dispatchers woke */
};

/* @runtime: a name, the path of a socket, or NULL, as for starling_connect(). */
struct sl_runtime_account sl_runtime_account_take(const char *runtime);
