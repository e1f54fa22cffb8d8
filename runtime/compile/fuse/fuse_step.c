/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_step.h"

#include "base/background.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "fuse_measure.h"
#include "fuse_record.h"
#include "lower_options.h"
#include "plan.h"
#include "share.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct sl_fuse_step {
        struct sl_fuse_step_options options;
        int fd;
        pthread_t thread;
        bool runs;                  /* the thread has to be joined */
        _Atomic int32_t verdict;    /* the owner's word to the thread (stop.h) */
        struct sl_fuse_found found; /* the thread's until it is joined */
};

static struct sl_fuse_measure measure_of(const struct sl_fuse_step *step)
{
        return (struct sl_fuse_measure){.merged = step->found.plan,
                .singles = step->options.singles,
                .n_lanes = step->options.n_lanes,
                .neighbour_bytes = step->options.neighbour_bytes,
                .batch_max = step->options.batch_max,
                .budget_ns = step->options.budget_ns,
                .verdict = &step->verdict};
}

/* Another block's rows hold for this one, as far as its outputs are right. */
static int check(struct sl_fuse_step *step, const struct sl_fuse_table *known)
{
        const struct sl_fuse_measure measure = measure_of(step);
        struct sl_fuse_table checked;
        int r = sl_fuse_check(&measure, &checked, &step->found.error);

        step->found.table = *known;
        step->found.table.difference = checked.difference;
        return r;
}

/* Two blocks are merged by what nodes cost when each was compiled, which is not the same twice. */
static bool is_alike(const struct sl_plan *plan, const struct sl_plan *other)
{
        const struct sl_plan_info *one = sl_plan_info(plan), *two = sl_plan_info(other);

        return one->n_common == two->n_common && one->n_merged == two->n_merged && one->stacked_bytes == two->stacked_bytes &&
               one->weights_bytes == two->weights_bytes && one->member_bytes == two->member_bytes &&
               one->n_batches == two->n_batches &&
               !memcmp(one->workspace_bytes, two->workspace_bytes, sizeof(one->workspace_bytes));
}

const char *sl_fuse_find_changed(const char *const *paths, const struct sl_model_identity *files, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (!sl_model_is_still(paths[i], &files[i]))
                        return paths[i];
        return NULL;
}

static int check_files(struct sl_fuse_step *step)
{
        const struct sl_fuse_step_options *options = &step->options;
        const char *path = sl_fuse_find_changed(options->paths, options->files, options->n_lanes);

        return path ? sl_error_set(&step->found.error, ESTALE, "\"%s\" has changed since it was loaded", path) : 0;
}

static int make_keys(struct sl_fuse_step *step)
{
        const struct sl_fuse_step_options *options = &step->options;
        const struct sl_stop stop = {.verdict = &step->verdict};
        struct sl_fuse_keys *keys = options->keys;
        int r = 0;

        for (uint32_t i = 0; i < options->n_lanes && r == 0; i++)
                r = sl_plan_cache_key(options->cache, options->paths[i], options->program, options->lowering, &stop,
                        &keys->members[i], &step->found.error);
        if (r < 0)
                return r;
        sl_plan_cache_key_merged(keys->members, options->n_lanes, &keys->merged);
        keys->known = true;
        return 0;
}

/* What came of it, if it comes out so again: whoever was told to end has found out nothing. */
static void keep_record(struct sl_fuse_step *step, int status)
{
        const struct sl_fuse_step_options *options = &step->options;
        SL_CLEANUP(sl_cleanup_free) struct sl_fuse_record *record = calloc(1, sizeof(*record));
        bool lasting = status == 0 || status == -EBADMSG || status == -ETIME || status == -ENODATA;

        if (!record || !options->cache || !options->keys->known || !lasting)
                return;
        record->status = status;
        record->batch_max = options->batch_max;
        record->budget_ns = options->budget_ns;
        record->table = step->found.table;
        record->notes = step->found.notes;
        if (status < 0)
                memcpy(record->cause, step->found.error.text, sizeof(record->cause));
        sl_fuse_record_write(options->cache, &options->keys->merged, record);
}

static int measure(struct sl_fuse_step *step)
{
        const struct sl_fuse_measure measure = measure_of(step);
        const struct sl_fuse_table *known = step->options.known;
        bool holds = known && is_alike(step->found.plan, step->options.known_plan);
        int r = holds ? check(step, known) : sl_fuse_measure(&measure, &step->found.table, &step->found.error);

        keep_record(step, r);
        return r;
}

/* With more time it may come out otherwise. */
static bool is_refused(const struct sl_fuse_record *record, uint64_t budget_ns)
{
        return record->status < 0 && (record->status != -ETIME || record->budget_ns >= budget_ns);
}

/* A plan whose table is gone, or is for other batches, is measured again. */
static int search(struct sl_fuse_step *step)
{
        const struct sl_fuse_step_options *options = &step->options;
        SL_CLEANUP(sl_cleanup_free) struct sl_fuse_record *record = calloc(1, sizeof(*record));
        struct sl_fuse_found *found = &step->found;
        bool recorded;

        if (check_files(step) < 0)
                return -ESTALE;
        if (!record || !options->cache || make_keys(step) < 0)
                return -ENOENT;
        recorded = sl_fuse_record_read(options->cache, &options->keys->merged, record);
        if (recorded)
                found->notes = record->notes;
        if (recorded && is_refused(record, options->budget_ns))
                return sl_error_set(&found->error, -record->status, "%s", record->cause);
        if (sl_plan_cache_find_merged(
                    options->cache, &options->keys->merged, options->singles, options->n_lanes, &found->plan, &found->error) < 0)
                return -ENOENT;
        return recorded && !record->status && record->batch_max == options->batch_max ? check(step, &record->table) : measure(step);
}

/* What its members have packed alike is theirs from here on, also in what is measured and kept. */
static int share(struct sl_fuse_step *step)
{
        const struct sl_fuse_step_options *options = &step->options;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_plan *shared;
        int r = sl_plan_share(step->found.plan, options->singles, options->n_lanes, &fd, &step->found.error);

        if (r == -ENODATA)
                return 0;
        if (r == 0)
                r = sl_plan_open_merged(fd, options->singles, options->n_lanes, true, &shared, &step->found.error);
        if (r < 0)
                return r;
        sl_plan_free(step->found.plan);
        step->found.plan = shared;
        return 0;
}

/* What was counted before anything was packed may have come out otherwise. */
static int check_copies(struct sl_fuse_step *step)
{
        const struct sl_fuse_step_options *options = &step->options;
        uint64_t own = sl_plan_info(step->found.plan)->weights_bytes, members = 0, granted;

        for (uint32_t i = 0; i < options->n_lanes; i++)
                members += sl_plan_info(options->singles[i])->weights_bytes + sl_plan_info(options->singles[i])->shared_bytes;
        granted = (uint64_t)(options->lowering->merge_copies * (double)members) + options->n_lanes * (uint64_t)SL_MERGE_LANE_BYTES;
        if (own <= granted)
                return 0;
        return sl_error_set(&step->found.error, ENODATA,
                "merged they have %llu of %llu bytes of weights a second time, merge_copies grants %llu", (unsigned long long)own,
                (unsigned long long)members, (unsigned long long)granted);
}

static int open_and_measure(struct sl_fuse_step *step)
{
        struct sl_fuse_found *found = &step->found;
        int r = sl_compile_seal(step->options.plan_fd, &found->error);

        if (r == 0)
                r = sl_plan_open(step->options.plan_fd, &found->plan, &found->error);

        found->notes = *step->options.notes;
        if (r == 0)
                r = check_files(step);
        if (r == 0)
                r = share(step);
        if (r == 0)
                r = check_copies(step);
        if (r == -ENODATA)
                keep_record(step, r);
        return r < 0 ? r : measure(step);
}

static void *step_main(void *context)
{
        struct sl_fuse_step *step = context;

        sl_background_thread(step->options.background);
        step->found.status = step->options.plan_fd < 0 ? search(step) : open_and_measure(step);
        (void)eventfd_write(step->fd, 1);
        return NULL;
}

static int start_thread(struct sl_fuse_step *step)
{
        int r = sl_thread_start_aside(NULL, "sl-fuse", step_main, step, &step->thread);

        step->runs = r == 0;
        return r;
}

int sl_fuse_step_new(const struct sl_fuse_step_options *options, struct sl_fuse_step **ret_step)
{
        struct sl_fuse_step *step = calloc(1, sizeof(*step));
        int r;

        if (!step)
                return -ENOMEM;
        step->options = *options;
        step->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = step->fd < 0 ? -errno : start_thread(step);
        if (r < 0) {
                sl_fuse_step_free(step);
                return r;
        }
        *ret_step = step;
        return 0;
}

static void join(struct sl_fuse_step *step)
{
        if (step->runs)
                pthread_join(step->thread, NULL);
        step->runs = false;
}

struct sl_fuse_step *sl_fuse_step_free(struct sl_fuse_step *step)
{
        if (!step)
                return NULL;
        atomic_store_explicit(&step->verdict, -ECANCELED, memory_order_release); /* V1 of stop.h */
        join(step);
        sl_cleanup_fd(&step->fd);
        sl_plan_free(step->found.plan);
        free(step);
        return NULL;
}

int sl_fuse_step_fd(const struct sl_fuse_step *step)
{
        return step->fd;
}

void sl_fuse_step_take(struct sl_fuse_step *step, struct sl_fuse_found *ret_found)
{
        join(step);
        *ret_found = step->found;
        step->found.plan = NULL;
}
