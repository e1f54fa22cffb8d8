/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry works with: all of it outlives it. */
#pragma once

#include "runtime_options.h"

#include <stdint.h>

struct sl_accounts;
struct sl_accumulator;
struct sl_bell;
struct sl_catalogue;
struct sl_dispatcher;
struct sl_memory;
struct sl_regions;
struct sl_stats;
struct sl_supervisor;
struct sl_task_page;
struct sl_wait;

struct sl_registry_options {
        const struct sl_runtime_options *runtime;
        struct sl_accounts *accounts;
        struct sl_catalogue *catalogue;
        struct sl_task_page *task_page; /* behind it */
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        uint32_t segments;
        uint32_t usable_cores; /* where workers run whose cores are not configured; 0: not known */
        struct sl_dispatcher *dispatcher;
        struct sl_bell *control;
        struct sl_wait *wait; /* of the control thread: compilations are watched there */
        struct sl_stats *stats;
        struct sl_memory *memory;
        struct sl_supervisor *supervisor; /* of worker processes */

        /* An operation that somebody asked for has ended, and the dispatcher has taken what came of it: @status 0 or -errno with
         * @text. */
        void (*answer)(void *context, uint64_t asker, int status, const char *text);

        /* What somebody asked for cannot be begun: -errno with text. */
        void (*refuse)(void *context, uint64_t asker, int status, const char *text);

        /* The repository has been read for sl_registry_sync(), and is wanted: 0, or -errno with text, and nothing is changed. */
        void (*synced)(void *context, int status, const char *text);
        void *context;
};
