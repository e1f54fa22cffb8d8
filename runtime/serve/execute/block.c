/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "batcher.h"
#include "port.h"
#include "stats.h"
#include "stop.h"
#include "workspace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A member's ports among those of the plan, and its pool. */
struct member {
        struct sl_plan_info info;
        uint32_t first_input, first_output;
        uint32_t lane; /* SL_CARRIER_LANES_MAX: it has none, and is idle */
        uint64_t pool_offset;
        void **outputs; /* in the pool: of a batch that nobody asked for */
};

struct sl_block {
        struct sl_block *next;
        struct sl_plan *plan;
        const struct sl_plan_info *info;
        struct sl_instance *instance;
        uint32_t batch_max;
        struct sl_block_size sizes[SL_PLAN_BATCHES_MAX];
        uint64_t lanes;            /* as bits */
        struct sl_workspace pools; /* of all members; behind them zeros, which nobody writes */
        const void *zeros;
        const void **inputs; /* of the plan's ports: those of the run */
        void **outputs;
        _Atomic uint64_t n_runs, n_jobs;
        uint32_t n_members;
        struct member members[];
};

/* ---- what it is made of ---- */

static bool port_agrees(const struct sl_port *merged, const struct sl_port *own, uint32_t member)
{
        char lane[16];
        int n = snprintf(lane, sizeof(lane), "%u/", member);

        return strncmp(merged->name, lane, (size_t)n) == 0 && strcmp(merged->name + n, own->name) == 0 &&
               merged->dtype == own->dtype && merged->batch_axis == own->batch_axis && merged->indexes <= own->indexes &&
               merged->shape.rank == own->shape.rank && !sl_port_is_open(own) &&
               memcmp(merged->shape.dims, own->shape.dims, own->shape.rank * sizeof(own->shape.dims[0])) == 0;
}

/* What a member's job has is then what the plan reads and writes. */
static bool ports_agree(
        const struct sl_plan_info *merged, const struct sl_plan_info *own, uint32_t member, uint32_t *input, uint32_t *output)
{
        if (*input + own->n_inputs > merged->n_inputs || *output + own->n_outputs > merged->n_outputs ||
                merged->batchable != own->batchable)
                return false;
        for (uint32_t i = 0; i < own->n_inputs; i++)
                if (!port_agrees(&merged->inputs[(*input)++], &own->inputs[i], member))
                        return false;
        for (uint32_t i = 0; i < own->n_outputs; i++)
                if (!port_agrees(&merged->outputs[(*output)++], &own->outputs[i], member))
                        return false;
        return true;
}

static int check_ports(const struct sl_block_options *options, struct sl_error *error)
{
        const struct sl_plan_info *merged = sl_plan_info(options->plan);
        uint32_t input = 0, output = 0;

        if (sl_plan_is_dynamic(options->plan))
                return sl_error_set(error, EINVAL, "a merged plan whose steps depend on the data");
        for (uint32_t i = 0; i < options->n_members; i++)
                if (!ports_agree(merged, options->members[i], i, &input, &output))
                        return sl_error_set(error, EINVAL, "the merged plan has other ports than member %u, \"%s\"", i,
                                options->members[i]->name);
        if (input != merged->n_inputs || output != merged->n_outputs)
                return sl_error_set(error, EINVAL, "the merged plan has %u inputs and %u outputs, its %u members %u and %u",
                        merged->n_inputs, merged->n_outputs, options->n_members, input, output);
        return 0;
}

static uint64_t pool_bytes(const struct sl_block_options *options, uint32_t member)
{
        return sl_align_up(sl_batcher_pool_bytes(options->members[member], options->batch_max), SL_LINE_BYTES);
}

/* As large as the largest input. */
static uint64_t zeros_bytes(const struct sl_block_options *options)
{
        const struct sl_plan_info *info = sl_plan_info(options->plan);
        struct sl_served_port port;
        uint64_t most = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++) {
                uint64_t bytes = UINT64_MAX >> 8;

                if (sl_served_port_init(&port, &info->inputs[i]) == 0)
                        bytes = sl_served_port_bytes(&port, options->batch_max);
                most = bytes > most ? bytes : most;
        }
        return most;
}

static uint64_t pools_bytes(const struct sl_block_options *options)
{
        uint64_t bytes = zeros_bytes(options);

        for (uint32_t i = 0; i < options->n_members; i++)
                if (sl_add_overflows(bytes, pool_bytes(options, i), &bytes))
                        return UINT64_MAX;
        return bytes;
}

uint64_t sl_block_bytes(const struct sl_block_options *options)
{
        uint64_t bytes = sizeof(struct sl_block) + options->n_members * sizeof(struct member);

        if (sl_add_overflows(bytes, sl_instance_bytes(options->plan, options->batch_max), &bytes) ||
                sl_add_overflows(bytes, pools_bytes(options), &bytes))
                return UINT64_MAX;
        return bytes;
}

uint64_t sl_block_room_bytes(const struct sl_block_options *options)
{
        return sl_plan_workspace_bytes(options->plan, options->batch_max);
}

static void place_outputs(struct member *member, unsigned char *pool, uint32_t batch_max)
{
        uint64_t offset = 0;

        for (uint32_t i = 0; i < member->info.n_outputs; i++) {
                struct sl_served_port port;

                member->outputs[i] = pool + offset;
                if (sl_served_port_init(&port, &member->info.outputs[i]) == 0)
                        offset += sl_align_up(sl_served_port_bytes(&port, batch_max), SL_LINE_BYTES);
        }
}

static int add_members(struct sl_block *block, const struct sl_block_options *options)
{
        uint32_t input = 0, output = 0;
        uint64_t offset = 0;

        block->inputs = calloc((size_t)block->info->n_inputs + 1, sizeof(*block->inputs));
        block->outputs = calloc((size_t)block->info->n_outputs + 1, sizeof(*block->outputs));
        if (!block->inputs || !block->outputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < options->n_members; i++) {
                struct member *member = &block->members[i];

                if (sl_plan_info_copy(options->members[i], &member->info) < 0)
                        return -ENOMEM;
                block->n_members++;
                member->outputs = calloc((size_t)member->info.n_outputs + 1, sizeof(*member->outputs));
                if (!member->outputs)
                        return -ENOMEM;
                member->lane = SL_CARRIER_LANES_MAX;
                member->first_input = input;
                member->first_output = output;
                member->pool_offset = offset;
                place_outputs(member, block->pools.bytes + offset, options->batch_max);
                input += member->info.n_inputs;
                output += member->info.n_outputs;
                offset += pool_bytes(options, i);
        }
        block->zeros = block->pools.bytes + offset;
        return 0;
}

/* A batch of which nobody has asked for anything. */
static void fill_idle(struct sl_block *block, const struct member *member)
{
        for (uint32_t i = 0; i < member->info.n_inputs; i++)
                block->inputs[member->first_input + i] = block->zeros;
        for (uint32_t i = 0; i < member->info.n_outputs; i++)
                block->outputs[member->first_output + i] = member->outputs[i];
}

static int warm(struct sl_block *block, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < block->n_members; i++)
                fill_idle(block, &block->members[i]);
        for (uint32_t i = 0; i < block->info->n_batches && block->info->batches[i] <= block->batch_max && r == 0; i++)
                r = sl_instance_run(block->instance, block->info->batches[i], block->inputs, block->outputs);
        return r < 0 ? sl_error_set(error, -r, "a merged plan fails on zeros: %s", strerror(-r)) : 0;
}

static int make_block(struct sl_block *block, const struct sl_block_options *options, struct sl_error *error)
{
        uint64_t bytes = pools_bytes(options);
        int r;

        if (bytes == UINT64_MAX || sl_workspace_init(&block->pools, bytes) < 0)
                return sl_error_set(error, ENOMEM, "no memory for the %u pools of a merged plan, %llu bytes", options->n_members,
                        (unsigned long long)bytes);
        if (add_members(block, options) < 0)
                return sl_error_set(error, ENOMEM, "no memory for the ports of %u members", options->n_members);
        r = sl_instance_new(options->plan, options->batch_max, &block->instance, error);
        return r < 0 ? r : warm(block, error);
}

int sl_block_new(const struct sl_block_options *options, struct sl_block **ret_block, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(options->plan);
        struct sl_block *block;
        int r = options->n_members > SL_CARRIER_LANES_MAX ? -EINVAL : check_ports(options, error);

        if (r < 0)
                return r;
        block = calloc(1, sizeof(*block) + options->n_members * sizeof(block->members[0]));
        if (!block)
                return sl_error_set(error, ENOMEM, "no memory for a merged plan of %u members", options->n_members);
        block->plan = sl_plan_hold(options->plan);
        block->info = info;
        block->batch_max = options->batch_max;
        memcpy(block->sizes, options->sizes, info->n_batches * sizeof(block->sizes[0]));
        r = make_block(block, options, error);
        if (r < 0) {
                sl_block_free(block);
                return r;
        }
        *ret_block = block;
        return 0;
}

struct sl_block *sl_block_free(struct sl_block *block)
{
        while (block) {
                struct sl_block *next = block->next;

                sl_instance_free(block->instance);
                sl_plan_free(block->plan);
                sl_workspace_deinit(&block->pools);
                for (uint32_t i = 0; i < block->n_members; i++) {
                        sl_plan_info_deinit(&block->members[i].info);
                        free(block->members[i].outputs);
                }
                free(block->inputs);
                free(block->outputs);
                free(block);
                block = next;
        }
        return NULL;
}

void sl_block_move(struct sl_block *block, void *room)
{
        sl_instance_move(block->instance, room);
}

void sl_block_seat(struct sl_block *block, uint32_t member, uint32_t lane)
{
        SL_ASSERT(!(block->lanes >> lane & 1));
        block->lanes |= UINT64_C(1) << lane;
        block->members[member].lane = lane;
}

void sl_block_chain(struct sl_block *block, struct sl_block *behind)
{
        block->next = behind;
}

uint64_t sl_blocks_lanes(const struct sl_block *blocks)
{
        uint64_t lanes = 0;

        for (; blocks; blocks = blocks->next)
                lanes |= blocks->lanes;
        return lanes;
}

/* UINT32_MAX: none of the ladder that it computes. */
static uint32_t find_samples(const struct sl_block *block, uint32_t samples)
{
        for (uint32_t i = 0; i < block->info->n_batches && block->info->batches[i] <= block->batch_max; i++)
                if (block->info->batches[i] == samples)
                        return i;
        return UINT32_MAX;
}

uint64_t sl_blocks_together(const struct sl_block *blocks, uint32_t lane, uint64_t lanes, uint32_t samples, uint64_t *ret_ns)
{
        const struct sl_block *block = blocks;
        uint32_t size;

        while (block && !(block->lanes >> lane & 1))
                block = block->next;
        size = block ? find_samples(block, samples) : UINT32_MAX;
        if (size == UINT32_MAX || !block->sizes[size].least ||
                (uint32_t)__builtin_popcountll(lanes & block->lanes) < block->sizes[size].least)
                return 0;
        *ret_ns = block->sizes[size].ns;
        return lanes & block->lanes;
}

struct sl_block_count sl_blocks_count(const struct sl_block *blocks)
{
        struct sl_block_count count = {0};

        for (; blocks; blocks = blocks->next) {
                count.runs += atomic_load_explicit(&blocks->n_runs, memory_order_relaxed);
                count.jobs += atomic_load_explicit(&blocks->n_jobs, memory_order_relaxed);
        }
        return count;
}

/* ---- a launch: the carrier's thread ---- */

/* Which size of the ladder the job has; UINT32_MAX: none that it computes. */
static uint32_t find_size(const struct sl_block *block, const struct sl_job_run *run)
{
        return sl_job_runner_is_plain(run->runner) ? find_samples(block, sl_job_run_batch(run)) : UINT32_MAX;
}

/* The size that most of the lanes have, if those are enough for it. Return: those lanes. */
static uint64_t choose_lanes(const struct sl_block *block, uint64_t lanes, const struct sl_job_run *runs, uint32_t *ret_size)
{
        uint64_t of_size[SL_PLAN_BATCHES_MAX] = {0}, chosen = 0;

        for (uint64_t left = lanes; left; left &= left - 1) {
                uint32_t lane = (uint32_t)__builtin_ctzll(left), size = find_size(block, &runs[lane]);

                if (size != UINT32_MAX)
                        of_size[size] |= UINT64_C(1) << lane;
        }
        for (uint32_t i = 0; i < block->info->n_batches; i++) {
                uint32_t n = (uint32_t)__builtin_popcountll(of_size[i]);

                if (block->sizes[i].least && n >= block->sizes[i].least && n > (uint32_t)__builtin_popcountll(chosen)) {
                        chosen = of_size[i];
                        *ret_size = i;
                }
        }
        return chosen;
}

static uint64_t run_alone(uint64_t lanes, struct sl_job_run *runs, uint64_t now_ns)
{
        for (; lanes; lanes &= lanes - 1)
                now_ns = sl_job_run_alone(&runs[__builtin_ctzll(lanes)], now_ns);
        return now_ns;
}

/* What is given up is answered, and who has less to compute then goes alone. Return: lanes that go together still. */
static uint64_t begin_lanes(uint64_t lanes, struct sl_job_run *runs, uint64_t *now_ns)
{
        uint64_t together = 0, alone = 0;

        for (uint64_t left = lanes; left; left &= left - 1) {
                uint32_t lane = (uint32_t)__builtin_ctzll(left);
                uint32_t pieces = runs[lane].job->n_pieces;

                if (!sl_job_run_begin(&runs[lane], *now_ns))
                        continue;
                if (runs[lane].n == pieces)
                        together |= UINT64_C(1) << lane;
                else
                        alone |= UINT64_C(1) << lane;
        }
        *now_ns = run_alone(alone, runs, *now_ns);
        return together;
}

static bool has_job(const struct member *member, uint64_t lanes)
{
        return member->lane < SL_CARRIER_LANES_MAX && lanes >> member->lane & 1;
}

static void lend_lanes(struct sl_block *block, uint64_t lanes, uint32_t samples, struct sl_job_run *runs)
{
        struct sl_batch batch;

        for (uint32_t i = 0; i < block->n_members; i++) {
                const struct member *member = &block->members[i];

                if (!has_job(member, lanes)) {
                        fill_idle(block, member);
                        continue;
                }
                sl_job_run_lend(&runs[member->lane], block->pools.bytes + member->pool_offset, samples, &batch);
                memcpy(block->inputs + member->first_input, batch.inputs, member->info.n_inputs * sizeof(*batch.inputs));
                memcpy(block->outputs + member->first_output, batch.outputs, member->info.n_outputs * sizeof(*batch.outputs));
        }
}

/* Members without a job, as bits. */
static uint64_t idle_members(const struct sl_block *block, uint64_t lanes)
{
        uint64_t idle = 0;

        for (uint32_t i = 0; i < block->n_members; i++)
                idle |= (uint64_t)!has_job(&block->members[i], lanes) << i;
        return idle;
}

static int compute_lanes(struct sl_block *block, uint64_t lanes, uint32_t samples, struct sl_job_run *runs)
{
        int r;

        lend_lanes(block, lanes, samples, runs);
        sl_instance_watch(block->instance, &(struct sl_stop){.own = runs[__builtin_ctzll(lanes)].own});
        (void)sl_instance_idle(block->instance, idle_members(block, lanes));
        r = sl_instance_run(block->instance, samples, block->inputs, block->outputs);
        for (uint64_t left = lanes; left; left &= left - 1)
                sl_job_run_return(&runs[__builtin_ctzll(left)], r == 0);
        return r;
}

/* One writer: the thread of the carrier. */
static void count_run(struct sl_block *block, uint32_t jobs)
{
        sl_counter_add(&block->n_runs, 1);
        sl_counter_add(&block->n_jobs, jobs);
}

static void finish_lane(const struct sl_job_run *run, const struct sl_job_share *share)
{
        sl_counter_add(&run->stats->merged, 1);
        sl_job_run_done(run, share);
}

/* Behind its last answer the block may be gone. */
static uint64_t run_together(struct sl_block *block, uint64_t lanes, uint32_t samples, struct sl_job_run *runs, uint64_t begun_ns)
{
        uint32_t n = (uint32_t)__builtin_popcountll(lanes);
        struct sl_job_share share = {.started_ns = begun_ns};

        if (compute_lanes(block, lanes, samples, runs) < 0)
                return run_alone(lanes, runs, sl_clock_ns());
        share.ended_ns = sl_clock_ns();
        share.busy_ns = share.computing_ns = (share.ended_ns - begun_ns) / n;
        count_run(block, n);
        for (; lanes; lanes &= lanes - 1)
                finish_lane(&runs[__builtin_ctzll(lanes)], &share);
        return share.ended_ns;
}

static uint64_t run_block(struct sl_block *block, uint64_t lanes, struct sl_job_run *runs, uint64_t *now_ns)
{
        uint32_t size = 0;
        uint64_t chosen = choose_lanes(block, lanes & block->lanes, runs, &size), together;

        if (!chosen)
                return 0;
        together = begin_lanes(chosen, runs, now_ns);
        if (!together)
                return chosen; /* that may have been the last answer */
        if ((uint32_t)__builtin_popcountll(together) < block->sizes[size].least)
                *now_ns = run_alone(together, runs, *now_ns);
        else
                *now_ns = run_together(block, together, block->info->batches[size], runs, *now_ns);
        return chosen;
}

uint64_t sl_blocks_run(struct sl_block *blocks, uint64_t lanes, struct sl_job_run *runs, uint64_t *now_ns)
{
        uint64_t done = 0;

        while (blocks && lanes & ~done) {
                struct sl_block *next = blocks->next; /* behind the last answer they may be gone */

                done |= run_block(blocks, lanes & ~done, runs, now_ns);
                blocks = next;
        }
        return done;
}
