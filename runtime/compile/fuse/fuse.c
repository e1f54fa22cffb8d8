/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block at a time. While the number of lanes is being chosen, the first block is tried with 2, 4, 8, ... of them and the best
 * is kept; where none of these could even be compiled, the next members are tried, a few times.
 */
#include "fuse.h"

#include "base/cleanup.h"
#include "compile.h"
#include "fuse_record.h"
#include "fuse_step.h"
#include "lower_options.h"
#include "plan.h"
#include "sample_ports.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define FAILURES_MAX 3 /* of choosing, each at other members */

enum state { SEARCHING, ORDERED, COMPILING, MEASURING, OVER };

struct sl_fuse {
        struct sl_fuse_options options; /* but for members, lowering, and the program, which are below */
        struct sl_lower_options lowering;
        char *program;
        uint32_t n;
        char *paths[SL_FUSE_LANES_MAX];
        struct sl_model_identity files[SL_FUSE_LANES_MAX];
        struct sl_plan *plans[SL_FUSE_LANES_MAX];
        int epoll_fd; /* of that which is under way */

        enum state state;
        uint32_t first, n_lanes; /* the block that is on */
        struct sl_fuse_keys keys;
        struct sl_fuse_step *step;          /* while SEARCHING, and MEASURING */
        struct sl_compilation *compilation; /* while COMPILING */
        struct sl_compile_notes notes;
        int plan_fd; /* while MEASURING; else -1 */

        bool choosing;
        uint32_t n_failures;
        struct sl_fused best;  /* while choosing */
        uint32_t lanes;        /* of a block, when that is known */
        struct sl_plan *known; /* the last of a block of so many, and its table; NULL: there is none yet */
        struct sl_fuse_table known_table;
        struct sl_fuse_result result;
};

SL_DEFINE_CLEANUP(struct sl_fuse *, sl_fuse_free)

/* ---- blocks ---- */

/* For its ports, and for what a child may write before that is taken out which its members have. */
static bool has_room(const struct sl_fuse *fuse, uint32_t first, uint32_t n_lanes)
{
        uint64_t memory = fuse->options.memory_bytes ? fuse->options.memory_bytes : SL_COMPILE_MEMORY_BYTES_DEFAULT, bytes = 0;
        uint32_t n_inputs = 0, n_outputs = 0;

        for (uint32_t i = first; i < first + n_lanes; i++) {
                n_inputs += sl_plan_info(fuse->plans[i])->n_inputs;
                n_outputs += sl_plan_info(fuse->plans[i])->n_outputs;
                bytes += sl_plan_bytes(fuse->plans[i]);
        }
        return n_inputs <= SL_PLAN_PORTS_MAX && n_outputs <= SL_PLAN_PORTS_MAX && bytes <= memory / SL_COMPILE_PLAN_PART;
}

static uint64_t budget_of(const struct sl_fuse *fuse)
{
        uint32_t n_tables = 1; /* of the last block */

        for (uint32_t lanes = 2; lanes <= fuse->n; lanes *= 2)
                n_tables++;
        return fuse->options.measure_ns / n_tables;
}

static int watch(struct sl_fuse *fuse, int fd)
{
        struct epoll_event event = {.events = EPOLLIN};

        return epoll_ctl(fuse->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Weights of all models but those of the block that is on. */
static uint64_t neighbour_bytes(const struct sl_fuse *fuse)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < fuse->n; i++)
                if (i < fuse->first || i >= fuse->first + fuse->n_lanes)
                        bytes += sl_plan_info(fuse->plans[i])->weights_bytes;
        return bytes;
}

static int start_step(struct sl_fuse *fuse, enum state state)
{
        const struct sl_fuse_step_options options = {
                .cache = fuse->options.cache,
                .program = fuse->program,
                .lowering = &fuse->lowering,
                .paths = (const char *const *)fuse->paths + fuse->first,
                .files = fuse->files + fuse->first,
                .singles = fuse->plans + fuse->first,
                .n_lanes = fuse->n_lanes,
                .neighbour_bytes = neighbour_bytes(fuse),
                .keys = &fuse->keys,
                .notes = &fuse->notes,
                .known = fuse->known && fuse->n_lanes == fuse->lanes ? &fuse->known_table : NULL,
                .known_plan = fuse->known,
                .plan_fd = fuse->plan_fd,
                .batch_max = fuse->options.batch_max,
                .budget_ns = budget_of(fuse),
                .background = fuse->options.background,
        };
        int r = sl_fuse_step_new(&options, &fuse->step);

        fuse->state = state;
        return r < 0 ? r : watch(fuse, sl_fuse_step_fd(fuse->step));
}

static int start_block(struct sl_fuse *fuse, uint32_t first, uint32_t n_lanes)
{
        fuse->first = first;
        fuse->n_lanes = n_lanes;
        fuse->keys.known = false;
        fuse->notes.text[0] = 0;
        sl_cleanup_fd(&fuse->plan_fd);
        fuse->plan_fd = -1;
        return start_step(fuse, SEARCHING);
}

static struct sl_compile_options compile_options(const struct sl_fuse *fuse)
{
        return (struct sl_compile_options){
                .program = fuse->program,
                .data_folders = fuse->options.data_folders,
                .model_path = fuse->paths[fuse->first],
                .members = (const char *const *)fuse->paths + fuse->first + 1,
                .n_members = fuse->n_lanes - 1,
                .lowering = &fuse->lowering,
                .zygote = fuse->options.zygote,
                .background = fuse->options.background,
                .memory_bytes = fuse->options.memory_bytes,
                .seconds = fuse->options.seconds,
        };
}

static int follow_compilation(struct sl_fuse *fuse, struct sl_compilation *compilation, struct sl_error *error)
{
        int r = watch(fuse, sl_compile_fd(compilation));

        fuse->compilation = compilation;
        if (r == 0)
                return 0;
        sl_compile_cancel(sl_take(fuse->compilation));
        return sl_error_set(error, -r, "its compiler cannot be watched: %s", strerror(-r));
}

static int start_compilation(struct sl_fuse *fuse, struct sl_error *error)
{
        const struct sl_compile_options options = compile_options(fuse);
        struct sl_compilation *compilation;
        int r;

        fuse->state = fuse->options.orders ? ORDERED : COMPILING;
        if (fuse->options.orders)
                return 0;
        r = sl_compile_start(&options, &compilation, error);
        return r < 0 ? r : follow_compilation(fuse, compilation, error);
}

/* ---- what comes next ---- */

static void keep_first_error(struct sl_fuse *fuse, int status, const struct sl_error *error)
{
        if (fuse->result.error.text[0])
                return;
        fuse->result.error = *error;
        fuse->result.status = status;
}

static int next_block(struct sl_fuse *fuse)
{
        uint32_t left = fuse->n - fuse->first, n_lanes = left < fuse->lanes ? left : fuse->lanes;

        while (n_lanes >= 2 && !has_room(fuse, fuse->first, n_lanes))
                n_lanes--;
        if (n_lanes >= 2)
                return start_block(fuse, fuse->first, n_lanes);
        fuse->state = OVER;
        return 0;
}

static void know_block(struct sl_fuse *fuse, const struct sl_fused *block)
{
        sl_plan_free(fuse->known);
        fuse->known = sl_plan_hold(block->plan);
        fuse->known_table = block->table;
}

static bool pays(const struct sl_fuse_table *table)
{
        for (uint32_t i = 0; i < table->n_rows; i++)
                if (sl_fuse_least_lanes(table, table->rows[i].batch) != SL_FUSE_NEVER)
                        return true;
        return false;
}

/* A plan that is never the cheapest way is not worth its memory. */
static void take_block(struct sl_fuse *fuse, struct sl_fused *block)
{
        struct sl_error error;

        if (!fuse->options.always && !pays(&block->table)) {
                sl_error_set(&error, ENODATA, "a merged plan of %u lanes takes %.2f times what they take one after another",
                        block->n_lanes, 1 / sl_fuse_gain(&block->table));
                keep_first_error(fuse, -ENODATA, &error);
                block->plan = sl_plan_free(block->plan);
                return;
        }
        fuse->result.blocks[fuse->result.n_blocks++] = *block;
        block->plan = NULL;
}

static int try_next_number(struct sl_fuse *fuse, bool worthless)
{
        uint32_t more = 2 * fuse->n_lanes;

        if (more <= fuse->n - fuse->first && has_room(fuse, fuse->first, more))
                return start_block(fuse, fuse->first, more);
        if (fuse->best.plan) {
                fuse->choosing = false;
                fuse->lanes = fuse->best.n_lanes;
                know_block(fuse, &fuse->best);
                take_block(fuse, &fuse->best);
                fuse->first += fuse->lanes;
                if (fuse->result.n_blocks)
                        return next_block(fuse);
        } else if (!worthless && ++fuse->n_failures < FAILURES_MAX && fuse->n - fuse->first >= 4) {
                return start_block(fuse, fuse->first + 2, 2);
        }
        fuse->state = OVER;
        return 0;
}

static void tell(struct sl_fuse *fuse, const struct sl_fuse_found *found)
{
        const struct sl_fuse_trial trial = {
                .first = fuse->first,
                .n_lanes = fuse->n_lanes,
                .status = found->status,
                .cause = found->status < 0 ? found->error.text : "",
                .notes = found->notes.text,
                .table = found->status < 0 ? NULL : &found->table,
                .info = found->status < 0 ? NULL : sl_plan_info(found->plan),
                .compiled = fuse->state == MEASURING || fuse->state == COMPILING,
        };

        if (fuse->options.tried)
                fuse->options.tried(fuse->options.context, &trial);
}

static void keep_plan(struct sl_fuse *fuse, const struct sl_plan *plan)
{
        struct sl_error error;

        if (fuse->options.cache && fuse->keys.known)
                (void)sl_plan_cache_store_merged(fuse->options.cache, &fuse->keys.merged, fuse->keys.members,
                        (const char *const *)fuse->paths + fuse->first, fuse->n_lanes, sl_plan_fd(plan), &error);
}

/* The block is done with. Its plan becomes the result's, or is freed. */
static int end_block(struct sl_fuse *fuse, struct sl_fuse_found *found)
{
        struct sl_fused block = {.first = fuse->first, .n_lanes = fuse->n_lanes, .plan = found->plan, .table = found->table};

        if (found->status < 0) {
                sl_error_prefix(&found->error, found->status, "models %u to %u", fuse->first, fuse->first + fuse->n_lanes - 1);
                keep_first_error(fuse, found->status, &found->error);
                block.plan = sl_plan_free(block.plan);
        }
        if (!fuse->choosing) {
                if (block.plan && fuse->n_lanes == fuse->lanes)
                        know_block(fuse, &block);
                if (block.plan)
                        take_block(fuse, &block);
                fuse->first += fuse->n_lanes;
                return next_block(fuse);
        }
        if (block.plan && (!fuse->best.plan || sl_fuse_worth(&block.table, fuse->n, fuse->options.short_ns) >
                                                       sl_fuse_worth(&fuse->best.table, fuse->n, fuse->options.short_ns))) {
                sl_plan_free(fuse->best.plan);
                fuse->best = block;
        } else {
                sl_plan_free(block.plan);
        }
        return try_next_number(fuse, found->status == -ENODATA);
}

/* ---- the owner's calls ---- */

static bool is_ready(int fd)
{
        struct pollfd one = {.fd = fd, .events = POLLIN};

        return poll(&one, 1, 0) == 1;
}

static int end_step(struct sl_fuse *fuse)
{
        struct sl_fuse_found found;
        bool measured = fuse->state == MEASURING;

        sl_fuse_step_take(fuse->step, &found);
        fuse->step = sl_fuse_step_free(fuse->step);
        sl_cleanup_fd(&fuse->plan_fd);
        fuse->plan_fd = -1;
        if (!measured && found.status == -ENOENT) {
                int r = start_compilation(fuse, &found.error);

                sl_plan_free(found.plan);
                found.plan = NULL;
                if (r == 0)
                        return 0;
                found.status = r;
        }
        if (measured && found.status == 0)
                keep_plan(fuse, found.plan);
        tell(fuse, &found);
        return end_block(fuse, &found);
}

/* That it is not worth it stands for the same models until the next change. */
static void keep_refusal(struct sl_fuse *fuse, const struct sl_fuse_found *found)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_fuse_record *record = calloc(1, sizeof(*record));

        if (!record || !fuse->options.cache || !fuse->keys.known ||
                sl_fuse_find_changed((const char *const *)fuse->paths + fuse->first, fuse->files + fuse->first, fuse->n_lanes))
                return;
        record->status = -ENODATA;
        record->notes = found->notes;
        memcpy(record->cause, found->error.text, sizeof(record->cause));
        sl_fuse_record_write(fuse->options.cache, &fuse->keys.merged, record);
}

static int end_compilation(struct sl_fuse *fuse)
{
        struct sl_fuse_found found = {0};

        found.status = sl_compile_finish_unsealed(sl_take(fuse->compilation), &fuse->plan_fd, &found.notes, &found.error);
        fuse->notes = found.notes;
        if (found.status == 0)
                return start_step(fuse, MEASURING);
        if (found.status == -ENODATA)
                keep_refusal(fuse, &found);
        tell(fuse, &found);
        return end_block(fuse, &found);
}

static void stop(struct sl_fuse *fuse, int r)
{
        struct sl_error error;

        sl_error_set(&error, -r, "merging cannot go on: %s", strerror(-r));
        keep_first_error(fuse, r, &error);
        fuse->state = OVER;
}

bool sl_fuse_wants(const struct sl_fuse *fuse, struct sl_compile_options *ret_options)
{
        if (fuse->state != ORDERED)
                return false;
        *ret_options = compile_options(fuse);
        return true;
}

void sl_fuse_give(struct sl_fuse *fuse, int r, struct sl_compilation *compilation, const struct sl_error *error)
{
        struct sl_fuse_found found = {.status = r};

        fuse->state = COMPILING;
        if (r == 0)
                found.status = follow_compilation(fuse, compilation, &found.error);
        else
                found.error = *error;
        if (found.status == 0)
                return;
        tell(fuse, &found);
        r = end_block(fuse, &found);
        if (r < 0)
                stop(fuse, r);
}

bool sl_fuse_advance(struct sl_fuse *fuse)
{
        int r = 0;

        while (r == 0 && fuse->state != OVER) {
                if (fuse->state == ORDERED)
                        return false;
                if (!is_ready(fuse->state == COMPILING ? sl_compile_fd(fuse->compilation) : sl_fuse_step_fd(fuse->step)))
                        return false;
                r = fuse->state == COMPILING ? end_compilation(fuse) : end_step(fuse);
        }
        if (r < 0)
                stop(fuse, r);
        return true;
}

void sl_fuse_take(struct sl_fuse *fuse, struct sl_fuse_result *ret_result)
{
        *ret_result = fuse->result;
        fuse->result = (struct sl_fuse_result){0};
}

int sl_fuse_fd(const struct sl_fuse *fuse)
{
        return fuse->epoll_fd;
}

static struct sl_fuse *fuse_new(const struct sl_fuse_options *options)
{
        SL_CLEANUP(sl_cleanup_sl_fuse_free) struct sl_fuse *fuse = calloc(1, sizeof(*fuse));

        if (!fuse)
                return NULL;
        fuse->options = *options;
        fuse->lowering = *options->lowering;
        if (!fuse->options.measure_ns)
                fuse->options.measure_ns = SL_FUSE_MEASURE_NS;
        fuse->lanes = options->lanes;
        fuse->choosing = !options->lanes;
        fuse->plan_fd = -1;
        fuse->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        for (; fuse->n < options->n_members; fuse->n++) {
                fuse->paths[fuse->n] = strdup(options->members[fuse->n].path);
                fuse->files[fuse->n] = options->members[fuse->n].file;
                fuse->plans[fuse->n] = sl_plan_hold(options->members[fuse->n].plan);
                if (!fuse->paths[fuse->n])
                        return NULL;
        }
        if (options->compile_program && !(fuse->program = strdup(options->compile_program)))
                return NULL;
        return fuse->epoll_fd < 0 ? NULL : sl_take(fuse);
}

int sl_fuse_begin(const struct sl_fuse_options *options, struct sl_fuse **ret_fuse, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_fuse_free) struct sl_fuse *fuse = NULL;
        int r;

        if (options->n_members < 2 || options->n_members > SL_FUSE_LANES_MAX || options->lanes == 1 ||
                options->lanes > SL_FUSE_LANES_MAX)
                return sl_error_set(error, EINVAL, "%u models in blocks of %u lanes: 2 to %d can be merged", options->n_members,
                        options->lanes, SL_FUSE_LANES_MAX);
        fuse = fuse_new(options);
        if (!fuse)
                return sl_error_set(error, ENOMEM, "no memory to merge %u models", options->n_members);
        if (fuse->choosing)
                r = has_room(fuse, 0, 2) ? start_block(fuse, 0, 2) : -E2BIG;
        else
                r = next_block(fuse);
        if (r == 0 && fuse->state == OVER)
                r = -E2BIG; /* two lanes are more than a plan has ports, or a child memory */
        if (r < 0)
                return sl_error_set(error, -r, "merging %u models: %s", options->n_members, strerror(-r));
        *ret_fuse = sl_take(fuse);
        return 0;
}

struct sl_compilation *sl_fuse_take_compilation(struct sl_fuse *fuse)
{
        return sl_take(fuse->compilation);
}

struct sl_fuse *sl_fuse_free(struct sl_fuse *fuse)
{
        if (!fuse)
                return NULL;
        sl_compile_cancel(fuse->compilation);
        sl_fuse_step_free(fuse->step);
        for (uint32_t i = 0; i < SL_FUSE_LANES_MAX; i++) {
                free(fuse->paths[i]);
                sl_plan_free(fuse->plans[i]);
        }
        sl_plan_free(fuse->best.plan);
        sl_plan_free(fuse->known);
        sl_fuse_result_deinit(&fuse->result);
        sl_cleanup_fd(&fuse->plan_fd);
        sl_cleanup_fd(&fuse->epoll_fd);
        free(fuse->program);
        free(fuse);
        return NULL;
}

void sl_fuse_result_deinit(struct sl_fuse_result *result)
{
        for (uint32_t i = 0; i < result->n_blocks; i++)
                sl_plan_free(result->blocks[i].plan);
        result->n_blocks = 0;
}

/* The merged plan does not exist yet: it has about the activations and weights of its members, twice where it turns them. */
uint64_t sl_fuse_bytes(const struct sl_fuse_options *options)
{
        uint64_t memory = options->memory_bytes ? options->memory_bytes : SL_COMPILE_MEMORY_BYTES_DEFAULT, bytes = 0;

        for (uint32_t i = 0; i < options->n_members; i++) {
                const struct sl_plan_info *info = sl_plan_info(options->members[i].plan);
                uint32_t batch_max =
                        options->batch_max || !info->n_batches ? options->batch_max : info->batches[info->n_batches - 1];

                bytes += 3 * sl_instance_bytes(options->members[i].plan, batch_max) + 2 * sl_sample_ports_bytes(info, batch_max) +
                         info->weights_bytes + info->shared_bytes;
        }
        return sl_compile_takes(memory) > bytes ? sl_compile_takes(memory) : bytes;
}
