/* SPDX-License-Identifier: Apache-2.0 */
#include "config_change.h"

#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum kind { TEXT, NUMBER, LONG_NUMBER, CORES, PEOPLE, FOLDERS };

static const struct {
        const char *key;
        enum kind kind;
        size_t offset;
} keys[] = {
#define KEY(key, kind, field)                                                                                                      \
        {                                                                                                                          \
                key, kind, offsetof(struct sl_config, field)                                                                       \
        }
        KEY("name", TEXT, name),
        KEY("socket_dir", TEXT, socket_dir),
        KEY("access.allow", PEOPLE, clients),
        KEY("access.admins", PEOPLE, admins),
        KEY("access.readers", PEOPLE, readers),
        KEY("data_folders", FOLDERS, data_folders),
        KEY("limits.clients", NUMBER, clients_max),
        KEY("limits.client.arena_bytes", LONG_NUMBER, client_arena_bytes),
        KEY("limits.client.in_flight", NUMBER, client_in_flight),
        KEY("limits.uid.arena_bytes", LONG_NUMBER, uid_arena_bytes),
        KEY("limits.uid.in_flight", NUMBER, uid_in_flight),
        KEY("limits.uid.shapes", NUMBER, uid_shapes),
        KEY("limits.uid.log_lines", NUMBER, uid_log_lines),
        KEY("limits.memory_max", LONG_NUMBER, memory_max),
        KEY("limits.models_max_loaded", NUMBER, models_max_loaded),
        KEY("limits.load_wait_s", NUMBER, load_wait_s),
        KEY("limits.staging_bytes", LONG_NUMBER, staging_bytes),
        KEY("limits.fuse_bytes", LONG_NUMBER, fuse_bytes),
        KEY("limits.stats_bytes", LONG_NUMBER, stats_bytes),
        KEY("threads.dispatcher_cores", CORES, dispatcher_cores),
        KEY("threads.worker_cores", CORES, worker_cores),
        KEY("threads.numa_node", NUMBER, numa_node),
        KEY("threads.spin_us", NUMBER, spin_us),
        KEY("threads.inline_us", NUMBER, inline_us),
        KEY("grace_seconds", NUMBER, grace_seconds),
        KEY("compile.jobs", NUMBER, compile_jobs),
        KEY("compile.memory_bytes", LONG_NUMBER, compile_memory_bytes),
        KEY("compile.seconds", LONG_NUMBER, compile_seconds),
        KEY("cache.directory", TEXT, cache_directory),
        KEY("cache.bytes", LONG_NUMBER, cache_bytes),
        KEY("autoscale", NUMBER, autoscale),
        KEY("scaling.rule", NUMBER, scaling_rule),
        KEY("scaling.headroom_percent", NUMBER, scaling_headroom),
        KEY("scaling.lambda", NUMBER, scaling_lambda),
        KEY("scaling.idle_least_ms", NUMBER, scaling_idle_ms),
        KEY("scaling.prices.core", NUMBER, scaling_core_price),
        KEY("scaling.prices.gib", NUMBER, scaling_gib_price),
        KEY("stats.worker_histograms", NUMBER, worker_histograms),
        KEY("wait", NUMBER, wait),
        KEY("log_level", NUMBER, log_level),
        KEY("log_format", NUMBER, log_format),
#undef KEY
};

static bool same_text(const char *a, const char *b)
{
        return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_people(const struct sl_people *a, const struct sl_people *b)
{
        return a->everybody == b->everybody && a->n_uids == b->n_uids && a->n_gids == b->n_gids &&
               (!a->n_uids || memcmp(a->uids, b->uids, a->n_uids * sizeof(*a->uids)) == 0) &&
               (!a->n_gids || memcmp(a->gids, b->gids, a->n_gids * sizeof(*a->gids)) == 0);
}

static bool same_folders(const struct sl_data_folders *a, const struct sl_data_folders *b)
{
        bool same = a->n == b->n;

        for (uint32_t i = 0; i < a->n && same; i++)
                same = !strcmp(a->paths[i], b->paths[i]);
        return same;
}

static bool same(enum kind kind, const void *a, const void *b)
{
        switch (kind) {
        case TEXT:
                return same_text(*(const char *const *)a, *(const char *const *)b);
        case NUMBER:
                return *(const uint32_t *)a == *(const uint32_t *)b;
        case LONG_NUMBER:
                return *(const uint64_t *)a == *(const uint64_t *)b;
        case CORES:
                return CPU_EQUAL((const cpu_set_t *)a, (const cpu_set_t *)b);
        case FOLDERS:
                return same_folders(a, b);
        default:
                return same_people(a, b);
        }
}

bool sl_config_wants_restart(const struct sl_config *is, const struct sl_config *said, char ret_keys[SL_CONFIG_KEYS_BYTES])
{
        size_t used = 0;

        ret_keys[0] = 0;
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                int n;

                if (same(keys[i].kind, (const char *)is + keys[i].offset, (const char *)said + keys[i].offset))
                        continue;
                n = snprintf(ret_keys + used, SL_CONFIG_KEYS_BYTES - used, "%s%s", used ? ", " : "", keys[i].key);
                used = used + (size_t)n < SL_CONFIG_KEYS_BYTES ? used + (size_t)n : SL_CONFIG_KEYS_BYTES - 1;
        }
        return used;
}
