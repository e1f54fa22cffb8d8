/* SPDX-License-Identifier: Apache-2.0 */
#include "probes.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cache_folder.h"
#include "call_filter.h"
#include "config.h"
#include "landlock.h"
#include "measure.h"
#include "plan_cache.h"
#include "target.h"
#include "wait.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int probe_io_uring(struct sl_error *error)
{
        struct sl_wait *wait;
        int r = sl_wait_new(SL_WAIT_URING, &wait, error);

        if (r == 0)
                sl_wait_free(wait);
        return r;
}

static bool probe_may_write(const char *folder)
{
        return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

static int probe_space(const char *path, struct sl_space *ret_space)
{
        struct statvfs space;

        if (statvfs(path, &space) < 0)
                return -errno;
        *ret_space = (struct sl_space){
                .bytes = (uint64_t)space.f_blocks * space.f_frsize, .free_bytes = (uint64_t)space.f_bavail * space.f_frsize};
        return 0;
}

/* The folder is opened, and not made. */
static bool probe_core(const struct sl_config *config, struct sl_core_figures *ret_figures)
{
        SL_CLEANUP(sl_cleanup_fd) int folder = -1;
        struct sl_plan_cache *cache;
        char path[PATH_MAX];
        struct sl_target target;

        if (!config->cache_bytes)
                return false;
        if (config->cache_directory)
                snprintf(path, sizeof(path), "%s", config->cache_directory);
        else if (sl_cache_folder_default(path, NULL) < 0)
                return false;
        if (sl_cache_folder_open(path, false, &folder, NULL) < 0 || sl_plan_cache_new(path, config->cache_bytes, &cache, NULL) < 0)
                return false;
        int r = sl_plan_cache_recall_target(cache, sl_backend_cpu.name, &target);
        sl_plan_cache_free(cache);
        if (r < 0)
                return false;
        *ret_figures = target.core;
        return true;
}

#define ASKED                                                                                                                      \
        .io_uring = probe_io_uring, .landlock = sl_landlock_version, .call_filters = sl_call_filter_is_there,                      \
        .may_write = probe_may_write, .space = probe_space, .core = probe_core

const struct sl_probes sl_probes_quick = {ASKED};

const struct sl_probes sl_probes_live = {
        ASKED,
        .clock_ns = sl_measure_clock_ns,
        .call_ns = sl_measure_call_ns,
        .gaps = sl_measure_gaps,
        .huge_speed = sl_measure_huge_speed,
};

const struct sl_probes sl_probes_none = {0};
