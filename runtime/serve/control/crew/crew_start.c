/* SPDX-License-Identifier: Apache-2.0 */
#include "crew_start.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"
#include "bundles.h"
#include "crew.h"
#include "dispatcher.h"
#include "inline_executor.h"
#include "job_runner.h"
#include "lane_executor.h"
#include "lets.h"
#include "memory.h"
#include "model.h"
#include "process_executor.h"
#include "process_staging.h"
#include "runtime_options.h"
#include "stats.h"
#include "supervisor.h"
#include "team.h"
#include "thread_executor.h"
#include "tunings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The largest output whose size depends on the data that a GPU's process may make: it asks nobody for more. */
#define GPU_OPEN_BYTES_MAX (64ull << 20)

/* Room for each output that says only afterwards how large it is. It takes memory when it is used. */
static uint64_t open_bytes(const struct sl_crew_options *options)
{
        return options->on_gpu && options->dynamic_bytes > GPU_OPEN_BYTES_MAX ? GPU_OPEN_BYTES_MAX : options->dynamic_bytes;
}

/* What of it is promised before that. */
static uint64_t open_bytes_promised(const struct sl_crew_options *options)
{
        return options->on_gpu || options->dynamic_bytes < SL_PROCESS_OPEN_BYTES ? open_bytes(options) : SL_PROCESS_OPEN_BYTES;
}

/* Where a worker runs that nobody has put anywhere: one with a team shares all worker cores. */
static const cpu_set_t *cores_of(const struct sl_crew_options *options, const struct sl_worker_wish *wish)
{
        return options->worker.threads != 1 && !CPU_COUNT(&wish->cores) ? &options->lets->allowed : &wish->cores;
}

static uint32_t threads_of(const struct sl_crew_options *options, const struct sl_worker_wish *wish)
{
        uint32_t cores = (uint32_t)CPU_COUNT(cores_of(options, wish)),
                 most = cores < SL_TEAM_MEMBERS_MAX ? cores : SL_TEAM_MEMBERS_MAX;

        if (!cores)
                return 1;
        return options->worker.threads && options->worker.threads < most ? options->worker.threads : most;
}

/*
 * What one worker may take: its instance, its team's scratch, its pool, and what its process shares. On a GPU the first three are
 * in memory of the device, which its process keeps the book of. What data-dependent steps make comes later (growth.h), but on a
 * GPU, whose process asks nobody.
 */
static uint64_t bytes_of_worker(const struct sl_crew_options *options, uint32_t batch_max, uint32_t threads)
{
        uint64_t bytes = options->on_gpu ? options->dynamic_bytes : sl_job_runner_bytes(options->model->plan, batch_max);

        if (sl_add_overflows(bytes, sl_instance_team_bytes(options->model->plan, batch_max, threads), &bytes))
                return UINT64_MAX;
        if (options->own_process &&
                sl_add_overflows(bytes,
                        sl_process_executor_bytes(options->model->plan, batch_max, open_bytes_promised(options), options->on_gpu),
                        &bytes))
                return UINT64_MAX;
        return bytes;
}

struct sl_batch_limit sl_crew_limit_of(const struct sl_crew *crew, uint32_t batch_size)
{
        return batch_size ? sl_batch_limit_choose(crew->options.model->plan, batch_size, 0) : crew->options.limit;
}

static uint64_t bytes_of(const struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++)
                if (sl_add_overflows(bytes,
                            bytes_of_worker(&crew->options, sl_crew_limit_of(crew, wishes[i].batch_size).batch_max,
                                    threads_of(&crew->options, &wishes[i])),
                            &bytes))
                        return UINT64_MAX;
        return bytes;
}

static int take_memory(const struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, struct sl_error *error)
{
        uint64_t bytes = bytes_of(crew, wishes, n);
        int r = sl_memory_take(crew->options.memory, SL_MEMORY_WORKERS, bytes, error);
        uint32_t largest = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t batch_max = sl_crew_limit_of(crew, wishes[i].batch_size).batch_max;

                largest = batch_max > largest ? batch_max : largest;
        }
        return r < 0 ? sl_error_prefix(error, r, "%u workers of batch %u%s, %llu bytes", n, largest,
                               wishes[0].batch_size && n > 1 ? " and less" : "", (unsigned long long)bytes)
                     : 0;
}

static void note_memory(const struct sl_crew_options *options, const struct sl_batch_limit *limit, struct sl_worker_stats *stats)
{
        sl_counter_set(&stats->batch_reason, limit->reason);
        sl_counter_set(&stats->plan_bytes, sl_plan_bytes(options->model->plan));
        sl_counter_set(&stats->workspace_bytes, limit->workspace_bytes);
        sl_counter_set(&stats->pool_bytes, limit->pool_bytes);
}

/* Where workers share cores none spins, and what runs to become warm would delay others. */
static uint64_t spin_ns(const struct sl_crew *crew, const struct sl_let *let)
{
        return let->turns.for_one ? crew->options.runtime->spin_ns : 0;
}

static uint64_t warmup_ns(const struct sl_crew *crew, const struct sl_let *let, bool background)
{
        return background && !let->turns.for_one ? 0 : crew->options.worker.warmup_ms * SL_NS_PER_MS;
}

static uint64_t longer(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* Of a worker that is about to start. */
struct start {
        struct sl_let *let;
        struct sl_carrier *carrier; /* whose let that is; NULL: the worker is no lane */
        struct sl_worker_wish wish;
        const struct sl_crew *replaced; /* whose place the crew takes; NULL: nobody's */
        bool background;
        bool tries_inline; /* before it is ready */
        struct sl_worker_stats *stats;
};

static uint64_t inline_trial_ns(const struct sl_crew *crew, const struct start *start)
{
        return start->tries_inline ? longer(crew->options.runtime->inline_ns, SL_INLINE_PASS_NS) : 0;
}

static int start_thread(struct sl_crew *crew, const struct start *start, struct sl_executor **ret_executor, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        char name[16];

        snprintf(name, sizeof(name), "sl-%.*s-%u", (int)sl_utf8_head(options->model->name, 10), options->model->name,
                crew->n_named++ % 10);
        return sl_thread_executor_new(
                &(struct sl_thread_executor_options){
                        .plan = options->model->plan,
                        .regions = options->regions,
                        .accumulator = options->accumulator,
                        .batch_max = sl_crew_limit_of(crew, start->wish.batch_size).batch_max,
                        .fake = sl_worker_options_are_fake(&options->worker),
                        .growth = &options->memory->growth,
                        .inline_ns = inline_trial_ns(crew, start),
                        .inline_bound_ns = SL_INLINE_ALONE_NS,
                        .first_ns = options->first_ns,
                        .warmup_ns = warmup_ns(crew, start->let, start->background),
                        .let = start->let,
                        .start_cores = sl_lets_start_cores(options->lets, &start->let->cpus, start->background),
                        .threads = threads_of(options, &start->wish),
                        .nth = start->let->n_assigned - 1,
                        .spin_ns = spin_ns(crew, start->let),
                        .wait = options->runtime->wait,
                        .name = name,
                        .background = start->background,
                        .starter = options->control,
                        .dispatcher = sl_dispatcher_bell(options->dispatcher),
                        .stats = start->stats,
                },
                ret_executor, error);
}

static int start_lane(struct sl_crew *crew, const struct start *start, struct sl_executor **ret_executor, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        char name[16];

        snprintf(name, sizeof(name), "sl-%.*s-%u", (int)sl_utf8_head(options->model->name, 10), options->model->name,
                crew->n_named++ % 10);
        return sl_lane_executor_new(
                &(struct sl_lane_executor_options){
                        .prepare =
                                {
                                        .plan = options->model->plan,
                                        .regions = options->regions,
                                        .accumulator = options->accumulator,
                                        .batch_max = sl_crew_limit_of(crew, start->wish.batch_size).batch_max,
                                        .inline_ns = inline_trial_ns(crew, start),
                                        .inline_bound_ns = SL_INLINE_ALONE_NS,
                                        .first_ns = options->first_ns,
                                        .warmup_ns = crew->options.worker.warmup_ms * SL_NS_PER_MS,
                                        .fake = sl_worker_options_are_fake(&options->worker),
                                        .growth = &options->memory->growth,
                                        .stats = start->stats,
                                },
                        .carrier = start->carrier,
                        .start_cores = sl_lets_start_cores(options->lets, &start->let->cpus, start->background),
                        .background = start->background,
                        .starter = options->control,
                        .name = name,
                },
                ret_executor, error);
}

/* A worker that starts for ten times hang_ms hangs: what it times takes no great part of that. */
static struct sl_gpu_tuning tuning_of(const struct sl_crew_options *options)
{
        uint64_t bound_ns = options->worker.gpu_tune_seconds * SL_NS_PER_SECOND,
                 hang_ns = sl_worker_options_hang_ns(&options->worker);

        return (struct sl_gpu_tuning){options->worker.gpu_tune, hang_ns && bound_ns > 2 * hang_ns ? 2 * hang_ns : bound_ns};
}

static bool is_wanted_there(const struct sl_crew *crew, const struct sl_gpu_let *let)
{
        for (uint32_t i = 0; i < crew->wanted.n; i++)
                if (strcmp(crew->wanted.wishes[i].gpu.name, let->name) == 0)
                        return true;
        return false;
}

/* Who leaves when it has come: those of its own crew on lets where nobody is wanted any more, else the crew that its own replaces,
 * as long as that is there. */
static struct sl_gpu_part gpu_part_of(const struct sl_crew *crew, const struct start *start)
{
        const struct sl_gpu_let *let = &start->let->gpu;
        struct sl_gpu_part part = {.crew = crew->gpu_number, .replaced_crew = crew->replaced_gpu_number, .percent = let->percent};

        for (uint32_t i = 0; i < crew->n; i++) {
                const struct sl_gpu_let *other = &crew->workers[i].let->gpu;

                if (other->gpu != let->gpu || other->percent == let->percent || is_wanted_there(crew, other))
                        continue;
                part.replaced_crew = crew->gpu_number;
                sl_gpu_percents_add(&part.replaced_percents, other->percent);
        }
        return part;
}

static int start_process(struct sl_crew *crew, const struct start *start, struct sl_executor **ret_executor, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        struct sl_process_executor_options process = {
                .plan = options->model->plan,
                .regions = options->regions,
                .accumulator = options->accumulator,
                .program = options->runtime->compile_program,
                .batch_max = sl_crew_limit_of(crew, start->wish.batch_size).batch_max,
                .fake = sl_worker_options_are_fake(&options->worker),
                .memory_bytes =
                        bytes_of(crew, &start->wish, 1) + options->dynamic_bytes + sl_plan_packed_bytes_max(options->model->plan),
                .growth = &options->memory->growth,
                .dynamic_bytes = options->dynamic_bytes,
                .open_bytes = open_bytes(options),
                .warmup_ns = warmup_ns(crew, start->let, start->background),
                .spin_ns = spin_ns(crew, start->let),
                .background = start->background,
                .gpu = options->on_gpu ? &start->let->gpu : NULL,
                .gpu_part = options->on_gpu ? gpu_part_of(crew, start) : (struct sl_gpu_part){0},
                .gpu_words = options->worker.gpu_completions,
                .gpu_direct = options->worker.gpu_results && options->on_gpu,
                .gpu_tuning = tuning_of(options),
                .gpu_hosts = sl_supervisor_gpu_hosts(options->supervisor),
                .asked = options->asked,
                .uid = options->uid,
                .let = start->let,
                .dispatcher = sl_dispatcher_bell(options->dispatcher),
                .stats = start->stats,
        };
        int r;

        sl_tunings_begin(sl_supervisor_tunings(options->supervisor), &process);
        r = sl_process_executor_new(&process, ret_executor, error);
        sl_cleanup_fd(&process.choices_fd);
        if (r < 0)
                return r;
        r = sl_supervisor_watch(options->supervisor, *ret_executor);
        if (r == 0)
                return 0;
        sl_executor_free(*ret_executor);
        return sl_error_set(error, -r, "its process cannot be watched: %s", strerror(-r));
}

static struct sl_let *assign_let(const struct sl_crew *crew, const struct sl_worker_wish *wish, const struct sl_crew *replaced)
{
        struct sl_let *leaving[SL_WORKERS_MAX];
        uint32_t n = 0;

        if (crew->options.on_gpu)
                return sl_lets_assign_gpu(crew->options.lets, &wish->gpu);
        for (uint32_t i = 0; replaced && i < replaced->n; i++)
                leaving[n++] = replaced->workers[i].let;
        for (uint32_t i = 0; i < crew->n && n < SL_WORKERS_MAX; i++)
                if (crew->workers[i].state == SL_CREW_LEAVING)
                        leaving[n++] = crew->workers[i].let;
        return sl_lets_assign(crew->options.lets, cores_of(&crew->options, wish), leaving, n);
}

/* That lanes of a carrier use in turns. */
static uint64_t room_bytes(const struct sl_crew *crew, const struct sl_worker_wish *wish)
{
        return sl_job_runner_room_bytes(crew->options.model->plan, sl_crew_limit_of(crew, wish->batch_size).batch_max);
}

/* A lane runs where its carrier does, which may have to start. */
static int find_place(struct sl_crew *crew, struct start *start, struct sl_error *error)
{
        struct sl_bundle *bundle = crew->options.model->bundle;
        int r = 0;

        if (bundle)
                start->carrier = sl_bundle_find_carrier(bundle, crew, &start->wish);
        start->let = start->carrier ? start->carrier->let : assign_let(crew, &start->wish, start->replaced);
        if (!start->let)
                return sl_error_set(error, ENOMEM, "no more lets than %u: %s is none of them", SL_LETS_MAX, start->wish.gpu.name);
        if (bundle && !start->carrier)
                r = sl_bundle_add_carrier(
                        bundle, crew, &start->wish, start->let, room_bytes(crew, &start->wish), &start->carrier, error);
        if (r < 0)
                sl_lets_return(start->let);
        return r;
}

/* A carrier that was made for it ends without a lane. */
static void leave_place(struct sl_crew *crew, const struct start *start)
{
        if (start->carrier)
                sl_bundle_trim(crew->options.model->bundle);
        else
                sl_lets_return(start->let);
}

static int start_executor(
        struct sl_crew *crew, const struct start *start, struct sl_executor **ret_executor, struct sl_error *error)
{
        if (crew->options.own_process)
                return start_process(crew, start, ret_executor, error);
        return start->carrier ? start_lane(crew, start, ret_executor, error) : start_thread(crew, start, ret_executor, error);
}

/* Its memory is taken. */
static int start_worker(struct sl_crew *crew, struct start *start, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        struct sl_batch_limit limit = sl_crew_limit_of(crew, start->wish.batch_size);
        struct sl_executor *executor;
        int r = find_place(crew, start, error);

        if (r < 0)
                return r;
        crew->seats.batch_max = limit.batch_max;
        start->stats = sl_seats_take(&crew->seats, start->let, -1);
        note_memory(options, &limit, start->stats);
        r = start_executor(crew, start, &executor, error);
        if (r < 0) {
                sl_seats_leave(&crew->seats, start->stats);
                leave_place(crew, start);
                return r;
        }
        if (options->own_process)
                sl_seat_started(start->stats, (uint32_t)sl_process_executor_pid(executor));
        executor->histograms = sl_stats_worker_histograms(options->stats, start->stats);
        crew->workers[crew->n++] = (struct sl_crew_worker){.state = SL_CREW_STARTING,
                .let = start->let,
                .wish = start->wish,
                .bytes = bytes_of(crew, &start->wish, 1),
                .seat = start->stats,
                .executor = executor};
        return 0;
}

/* As many as can; the memory of the others goes back. */
int sl_crew_start_some(struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, const struct sl_crew *replaced,
        bool background, bool tries_inline, struct sl_error *error)
{
        int r = take_memory(crew, wishes, n, error);

        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = start_worker(crew,
                        &(struct start){.wish = wishes[i],
                                .replaced = replaced,
                                .background = background,
                                .tries_inline = tries_inline && i == 0},
                        error);
                if (r < 0)
                        sl_memory_give(crew->options.memory, SL_MEMORY_WORKERS, bytes_of(crew, &wishes[i], n - i));
        }
        return r;
}

int sl_crew_explain_failed_start(const struct sl_crew *crew, uint32_t i, int32_t state, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        const struct sl_worker_wish *wish = &crew->workers[i].wish;
        uint32_t batch_max = sl_crew_limit_of(crew, wish->batch_size).batch_max;

        if (options->own_process)
                return sl_error_set(error, state == -ENOMEM ? ENOMEM : EIO, "a worker of batch %u%s%s cannot start: %s", batch_max,
                        wish->gpu.name[0] ? " on " : "", wish->gpu.name, sl_process_executor_why(crew->workers[i].executor));
        if (state != -ENOMEM)
                return sl_error_set(error, EIO, "a worker of batch %u cannot start: %s%s", batch_max, strerror(-state),
                        state == -ENODEV ? ": there is no GPU that its backend can use here, see `starling doctor`" : "");
        return sl_error_set(error, ENOMEM, "a worker of batch %u cannot start: %s; an instance needs %llu bytes", batch_max,
                strerror(-state), (unsigned long long)sl_instance_bytes(options->model->plan, batch_max));
}
