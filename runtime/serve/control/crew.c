/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "cores.h"
#include "dispatcher.h"
#include "inline_executor.h"
#include "job_runner.h"
#include "lets.h"
#include "memory.h"
#include "model.h"
#include "process_executor.h"
#include "runtime_options.h"
#include "stats.h"
#include "supervisor.h"
#include "team.h"
#include "thread_executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many processes that end without a use are followed at once; those behind them wait, twice as long each time. */
#define RELIEF_AT_ONCE     2u
#define RELIEF_STEP_NS     (100 * SL_NS_PER_MS)
#define RELIEF_STEP_MAX_NS SL_NS_PER_SECOND

/* A process that leaves for so long hangs. */
#define LEAVING_MAX_NS (60 * SL_NS_PER_SECOND)

/* The largest output whose size depends on the data that a process may make. */
#define OPEN_BYTES_MAX (64ull << 20)

/* Of each output that says only afterwards how large it is. */
static uint64_t open_bytes(const struct sl_crew_options *options)
{
        return options->dynamic_bytes < OPEN_BYTES_MAX ? options->dynamic_bytes : OPEN_BYTES_MAX;
}

/* Where a worker runs that nobody has put anywhere: one with a team shares all worker cores. */
static const cpu_set_t *cores_of(const struct sl_crew_options *options, const struct sl_worker_wish *wish)
{
        return options->threads > 1 && !CPU_COUNT(&wish->cores) ? &options->lets->allowed : &wish->cores;
}

/* What its memory is promised for: the same as long as the crew lives, whatever cores come and go. */
static uint32_t threads_of(const struct sl_crew_options *options, const struct sl_worker_wish *wish)
{
        uint32_t cores = (uint32_t)CPU_COUNT(&wish->cores), threads = options->threads > 1 ? options->threads : 1;

        return cores && cores < threads ? cores : threads;
}

/* Of the worker cores that there are when the model is loaded. */
static uint32_t most_threads(const struct sl_crew_options *options)
{
        uint32_t cores = (uint32_t)CPU_COUNT(&options->lets->allowed), most = cores < SL_TEAM_MEMBERS_MAX ? cores : SL_TEAM_MEMBERS_MAX;

        return options->threads < most ? options->threads : most;
}

/*
 * What one worker may take: its instance, its team's scratch, its pool, what data-dependent steps make while they run, and what its
 * process shares.
 */
static uint64_t bytes_of_worker(const struct sl_crew_options *options, uint32_t batch_max, uint32_t threads)
{
        uint64_t bytes = sl_job_runner_bytes(options->model->plan, batch_max);

        if (sl_add_overflows(bytes, options->dynamic_bytes, &bytes) ||
                sl_add_overflows(bytes, sl_instance_team_bytes(options->model->plan, batch_max, threads), &bytes))
                return UINT64_MAX;
        if (options->own_process &&
                sl_add_overflows(bytes, sl_process_executor_bytes(options->model->plan, batch_max, open_bytes(options)), &bytes))
                return UINT64_MAX;
        return bytes;
}

static struct sl_batch_limit limit_of(const struct sl_crew *crew, uint32_t batch_size)
{
        return batch_size ? sl_batch_limit_choose(crew->options.model->plan, batch_size, 0) : crew->options.limit;
}

static uint64_t bytes_of(const struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++)
                if (sl_add_overflows(bytes,
                            bytes_of_worker(&crew->options, limit_of(crew, wishes[i].batch_size).batch_max,
                                    threads_of(&crew->options, &wishes[i])),
                            &bytes))
                        return UINT64_MAX;
        return bytes;
}

int sl_crew_new(const struct sl_crew_options *options, struct sl_crew **ret_crew)
{
        struct sl_crew *crew = calloc(1, sizeof(*crew));

        if (!crew)
                return -ENOMEM;
        crew->options = *options;
        crew->options.threads = most_threads(options);
        crew->seats = (struct sl_seats){
                .stats = options->stats,
                .model = options->model->name,
                .executor = options->own_process ? "process" : "thread",
                .with_histograms = options->runtime->worker_histograms,
        };
        *ret_crew = crew;
        return 0;
}

/* Joins it, if it runs, and gives back what it had. */
static void worker_free(struct sl_crew *crew, uint32_t i)
{
        struct sl_crew_worker worker = crew->workers[i];

        if (sl_process_executor_of(worker.executor))
                sl_supervisor_unwatch(crew->options.supervisor, worker.executor);
        sl_executor_free(worker.executor);
        sl_seats_leave(&crew->seats, worker.seat);
        sl_lets_return(worker.let);
        sl_memory_give(crew->options.memory, SL_MEMORY_WORKERS, worker.bytes);
        memmove(crew->workers + i, crew->workers + i + 1, (--crew->n - i) * sizeof(worker));
}

struct sl_crew *sl_crew_free(struct sl_crew *crew)
{
        if (!crew)
                return NULL;
        while (crew->n)
                worker_free(crew, crew->n - 1);
        sl_seats_trim(&crew->seats, 0);
        free(crew);
        return NULL;
}

static uint32_t count_in(const struct sl_crew *crew, enum sl_crew_state state)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < crew->n; i++)
                n += crew->workers[i].state == state;
        return n;
}

uint32_t sl_crew_serving(const struct sl_crew *crew)
{
        return count_in(crew, SL_CREW_SERVING);
}

bool sl_crew_is_short(const struct sl_crew *crew)
{
        return sl_crew_serving(crew) < (crew->wanted.n < crew->before.n ? crew->wanted.n : crew->before.n);
}

static int take_memory(const struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, struct sl_error *error)
{
        uint64_t bytes = bytes_of(crew, wishes, n);
        int r = sl_memory_take(crew->options.memory, SL_MEMORY_WORKERS, bytes, error);
        uint32_t largest = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t batch_max = limit_of(crew, wishes[i].batch_size).batch_max;

                largest = batch_max > largest ? batch_max : largest;
        }
        return r < 0 ? sl_error_prefix(error, r, "%u workers of batch %u%s, %llu bytes", n, largest,
                               wishes[0].batch_size && n > 1 ? " and less" : "", (unsigned long long)bytes)
                     : 0;
}

static void note_memory(const struct sl_crew_options *options, const struct sl_batch_limit *limit, struct sl_worker_stats *stats)
{
        sl_counter_set(&stats->batch_reason, limit->reason);
        sl_counter_set(&stats->plan_bytes, sl_plan_identity(options->model->plan).bytes);
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
        return background && !let->turns.for_one ? 0 : crew->options.warmup_ms * SL_NS_PER_MS;
}

static uint64_t longer(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* Of a worker that is about to start. */
struct start {
        struct sl_let *let;
        struct sl_worker_wish wish;
        bool background;
        bool tries_inline; /* before it is ready */
        struct sl_worker_stats *stats;
};

static int start_thread(struct sl_crew *crew, const struct start *start, struct sl_executor **ret_executor, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        char name[16];

        snprintf(name, sizeof(name), "sl-%.10s-%u", options->model->name, crew->n_named++ % 10);
        return sl_thread_executor_new(
                &(struct sl_thread_executor_options){
                        .plan = options->model->plan,
                        .regions = options->regions,
                        .accumulator = options->accumulator,
                        .batch_max = limit_of(crew, start->wish.batch_size).batch_max,
                        .fake = options->fake,
                        .inline_ns = start->tries_inline ? longer(options->runtime->inline_ns, SL_INLINE_PASS_NS) : 0,
                        .inline_bound_ns = SL_INLINE_ALONE_NS,
                        .warmup_ns = warmup_ns(crew, start->let, start->background),
                        .let = start->let,
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

static int start_process(struct sl_crew *crew, const struct start *start, struct sl_executor **ret_executor, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        int r = sl_process_executor_new(
                &(struct sl_process_executor_options){
                        .plan = options->model->plan,
                        .regions = options->regions,
                        .accumulator = options->accumulator,
                        .program = options->runtime->compile_program,
                        .batch_max = limit_of(crew, start->wish.batch_size).batch_max,
                        .fake = options->fake,
                        .memory_bytes = bytes_of(crew, &start->wish, 1),
                        .open_bytes = open_bytes(options),
                        .warmup_ns = warmup_ns(crew, start->let, start->background),
                        .spin_ns = spin_ns(crew, start->let),
                        .background = start->background,
                        .let = start->let,
                        .dispatcher = sl_dispatcher_bell(options->dispatcher),
                        .stats = start->stats,
                },
                ret_executor, error);

        if (r < 0)
                return r;
        r = sl_supervisor_watch(options->supervisor, *ret_executor);
        if (r == 0)
                return 0;
        sl_executor_free(*ret_executor);
        return sl_error_set(error, -r, "its process cannot be watched: %s", strerror(-r));
}

/* Its memory is taken. */
static int start_worker(struct sl_crew *crew, struct start *start, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        struct sl_crew_worker *worker = &crew->workers[crew->n];
        struct sl_batch_limit limit = limit_of(crew, start->wish.batch_size);
        int r;

        crew->seats.batch_max = limit.batch_max;
        start->stats = sl_seats_take(&crew->seats, start->let, -1);
        note_memory(options, &limit, start->stats);
        r = options->own_process ? start_process(crew, start, &worker->executor, error)
                                 : start_thread(crew, start, &worker->executor, error);
        if (r < 0) {
                sl_seats_leave(&crew->seats, start->stats);
                sl_lets_return(start->let);
                return r;
        }
        if (options->own_process)
                sl_seat_started(start->stats, (uint32_t)sl_process_executor_pid(worker->executor));
        worker->executor->histograms = sl_stats_worker_histograms(options->stats, start->stats);
        worker->state = SL_CREW_STARTING;
        worker->let = start->let;
        worker->wish = start->wish;
        worker->bytes = bytes_of(crew, &start->wish, 1);
        worker->seat = start->stats;
        crew->n++;
        return 0;
}

static struct sl_let *assign_let(const struct sl_crew *crew, const struct sl_worker_wish *wish, const struct sl_crew *replaced)
{
        struct sl_let *leaving[SL_WORKERS_MAX];
        uint32_t n = 0;

        for (uint32_t i = 0; replaced && i < replaced->n; i++)
                leaving[n++] = replaced->workers[i].let;
        for (uint32_t i = 0; i < crew->n && n < SL_WORKERS_MAX; i++)
                if (crew->workers[i].state == SL_CREW_LEAVING)
                        leaving[n++] = crew->workers[i].let;
        return sl_lets_assign(crew->options.lets, cores_of(&crew->options, wish), leaving, n);
}

/* As many as can; the memory of the others goes back. */
static int start_some(struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, const struct sl_crew *replaced, bool background,
        bool tries_inline, struct sl_error *error)
{
        int r = take_memory(crew, wishes, n, error);

        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = start_worker(crew,
                        &(struct start){.let = assign_let(crew, &wishes[i], replaced),
                                .wish = wishes[i],
                                .background = background,
                                .tries_inline = tries_inline && i == 0},
                        error);
                if (r < 0)
                        sl_memory_give(crew->options.memory, SL_MEMORY_WORKERS, bytes_of(crew, &wishes[i], n - i));
        }
        return r;
}

int sl_crew_check(const struct sl_crew *crew, const struct sl_worker_set *set, struct sl_error *error)
{
        char cores[128];

        for (uint32_t i = 0; i < set->n; i++) {
                const struct sl_worker_wish *wish = &set->wishes[i];
                uint32_t batch_max = limit_of(crew, wish->batch_size).batch_max;

                if (CPU_COUNT(&wish->cores) == 0)
                        continue;
                if (wish->batch_size != batch_max)
                        return sl_error_set(error, EINVAL, "a worker of batch %u: its plan has powers of two up to batch_max, here %u",
                                wish->batch_size, limit_of(crew, UINT32_MAX).batch_max);
                if (!sl_lets_allow(crew->options.lets, &wish->cores))
                        return sl_error_set(error, EINVAL, "a worker on cores %s: not all of them are worker cores",
                                sl_cores_text(&wish->cores, cores, sizeof(cores)));
        }
        return 0;
}

static int explain_failed_start(const struct sl_crew *crew, uint32_t i, int32_t state, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        uint32_t batch_max = limit_of(crew, crew->workers[i].wish.batch_size).batch_max;

        if (options->own_process)
                return sl_error_set(error, state == -ENOMEM ? ENOMEM : EIO, "worker %u of %u cannot start: %s", i, crew->wanted.n,
                        sl_process_executor_why(crew->workers[i].executor));
        return sl_error_set(error, state == -ENOMEM ? ENOMEM : EIO,
                "worker %u of %u cannot start: %s; an instance of batch %u needs %llu bytes", i, crew->wanted.n, strerror(-state),
                batch_max, (unsigned long long)sl_instance_bytes(options->model->plan, batch_max));
}

static void forget_wish(struct sl_worker_set *set, const struct sl_worker_wish *wish)
{
        for (uint32_t i = 0; i < set->n; i++)
                if (sl_worker_wish_equal(&set->wishes[i], wish)) {
                        memmove(&set->wishes[i], &set->wishes[i + 1], (--set->n - i) * sizeof(*wish));
                        return;
                }
}

static void report_left_out(const struct sl_crew *crew, const struct sl_worker_wish *wish, const char *cause)
{
        const struct sl_runtime_options *runtime = crew->options.runtime;
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", crew->options.model->name);
        sl_fields_add_number(&fields, "batch", limit_of(crew, wish->batch_size).batch_max);
        sl_fields_add(&fields, "cause", cause);
        if (runtime->log)
                runtime->log(runtime->context, 1, "worker-left-out", fields.text);
}

int sl_crew_start(struct sl_crew *crew, const struct sl_worker_set *set, const struct sl_crew *replaced, bool background,
        struct sl_error *error)
{
        int r = sl_crew_check(crew, set, error);

        if (r < 0)
                return r;
        sl_lets_fit(crew->options.lets, set, &crew->wanted);
        r = start_some(crew, crew->wanted.wishes, crew->wanted.n, replaced, background,
                crew->options.runtime->inline_ns > 0 && !crew->options.fake, error);
        /* Threads that the system does not give are left out as others are that cannot start. */
        for (; r < 0 && crew->n && crew->wanted.n > crew->n; crew->wanted.n--)
                report_left_out(crew, &crew->wanted.wishes[crew->wanted.n - 1], error->text);
        crew->before = crew->wanted;
        return crew->n ? 0 : r;
}

/* The others serve without it. */
static void leave_out(struct sl_crew *crew, uint32_t i, const char *cause)
{
        struct sl_worker_wish wish = crew->workers[i].wish;

        worker_free(crew, i);
        forget_wish(&crew->wanted, &wish);
        crew->before = crew->wanted;
        report_left_out(crew, &wish, cause);
}

int sl_crew_starting(struct sl_crew *crew, struct sl_error *error)
{
        int starting = 0;

        for (uint32_t i = crew->n; i-- > 0;) {
                int32_t state = sl_executor_started(crew->workers[i].executor);
                int r = state < 0 ? explain_failed_start(crew, i, state, error) : 0;

                if (r < 0 && crew->n == 1)
                        return r;
                if (r < 0) {
                        leave_out(crew, i, error->text);
                        continue;
                }
                if (state == SL_EXECUTOR_READY)
                        sl_seat_show(crew->workers[i].seat, SL_STATS_WORKER_WARM);
                starting += state == SL_EXECUTOR_STARTING;
        }
        return starting;
}

struct sl_inline_trial sl_crew_take_trial(struct sl_crew *crew)
{
        return crew->n && !crew->options.own_process ? sl_thread_executor_take_trial(crew->workers[0].executor)
                                                     : (struct sl_inline_trial){0};
}

static void set_serving(struct sl_crew_worker *worker)
{
        worker->state = SL_CREW_SERVING;
        sl_seat_show(worker->seat, SL_STATS_WORKER_SERVING);
}

void sl_crew_enlist(struct sl_crew *crew, struct sl_workers *workers)
{
        for (uint32_t i = 0; i < crew->n; i++) {
                sl_workers_add(workers, crew->workers[i].executor);
                set_serving(&crew->workers[i]);
        }
}

static void command(const struct sl_crew *crew, enum sl_command_kind kind, struct sl_executor *worker)
{
        sl_dispatcher_command(
                crew->options.dispatcher, &(struct sl_command){.kind = kind, .pointer = crew->options.model, .worker = worker});
}

static void begin_leaving(const struct sl_crew *crew, struct sl_crew_worker *worker)
{
        worker->state = SL_CREW_LEAVING;
        worker->leaving_ns = sl_clock_ns();
        sl_seat_show(worker->seat, SL_STATS_WORKER_LEAVING);
        command(crew, SL_COMMAND_REMOVE_WORKER, worker->executor);
}

/* Those of @set that nobody is who stays, and who of those is not of it, or on a stale let: of several alike the newest. */
struct difference {
        uint32_t n_missing;
        struct sl_worker_wish missing[SL_WORKERS_MAX];
        bool surplus[SL_WORKERS_MAX]; /* of workers, by number */
};

static bool find_in(const struct sl_worker_set *set, const struct sl_worker_wish *wish, bool *found)
{
        for (uint32_t k = 0; k < set->n; k++)
                if (!found[k] && sl_worker_wish_equal(&set->wishes[k], wish))
                        return found[k] = true;
        return false;
}

static void compare(const struct sl_crew *crew, const struct sl_worker_set *set, struct difference *ret_difference)
{
        bool found[SL_WORKERS_MAX] = {false};
        struct difference d = {.n_missing = 0};

        for (uint32_t i = 0; i < crew->n; i++)
                d.surplus[i] = crew->workers[i].state != SL_CREW_LEAVING &&
                               (crew->workers[i].let->stale || !find_in(set, &crew->workers[i].wish, found));
        for (uint32_t k = 0; k < set->n; k++)
                if (!found[k])
                        d.missing[d.n_missing++] = set->wishes[k];
        *ret_difference = d;
}

/* Who is not wanted: what does not serve yet goes at once, and who has lost cores once somebody is in its place. */
static void dismiss_surplus(struct sl_crew *crew)
{
        struct difference difference;

        compare(crew, &crew->wanted, &difference);
        for (uint32_t i = crew->n; i-- > 0;) {
                if (!difference.surplus[i] || (crew->workers[i].let->stale && difference.n_missing))
                        continue;
                if (crew->workers[i].state == SL_CREW_STARTING)
                        worker_free(crew, i);
                else
                        begin_leaving(crew, &crew->workers[i]);
        }
}

static int hire(struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, struct sl_error *error)
{
        uint32_t before = crew->n;
        int r;

        if (crew->n + n > SL_WORKERS_MAX)
                return sl_error_set(error, EBUSY, "%u workers more, beside %u that have not left yet: %u are the limit", n,
                        crew->n, SL_WORKERS_MAX);
        r = start_some(crew, wishes, n, NULL, true, false, error);
        while (r < 0 && crew->n > before)
                worker_free(crew, crew->n - 1);
        return r;
}

void sl_crew_hold(struct sl_crew *crew, bool holds)
{
        crew->holds = holds;
}

static bool is_misplaced(const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (crew->workers[i].state == SL_CREW_SERVING && crew->workers[i].let->stale)
                        return true;
        return false;
}

bool sl_crew_needs(const struct sl_crew *crew, const struct sl_worker_set *set)
{
        struct sl_worker_set fit;

        sl_lets_fit(crew->options.lets, set, &fit);
        return !sl_worker_set_equal(&crew->wanted, &fit) || (is_misplaced(crew) && !sl_crew_is_starting(crew));
}

bool sl_crew_is_starting(const struct sl_crew *crew)
{
        return count_in(crew, SL_CREW_STARTING);
}

bool sl_crew_is_changing(const struct sl_crew *crew)
{
        return sl_crew_is_starting(crew) || count_in(crew, SL_CREW_LEAVING);
}

int sl_crew_resize(struct sl_crew *crew, const struct sl_worker_set *set, struct sl_error *error)
{
        struct difference difference;
        struct sl_worker_set fit;
        int r = 0;

        sl_lets_fit(crew->options.lets, set, &fit);
        compare(crew, &fit, &difference);
        if (difference.n_missing)
                r = hire(crew, difference.missing, difference.n_missing, error);
        if (r < 0)
                return r;
        crew->wanted = fit;
        if (!difference.n_missing && !crew->holds)
                dismiss_surplus(crew);
        return 0;
}

/* @strikes: ends without a use, one after another. */
static uint64_t relief_delay_ns(uint32_t strikes)
{
        uint32_t doublings = strikes - RELIEF_AT_ONCE - 1;

        if (strikes <= RELIEF_AT_ONCE)
                return 0;
        return doublings < 4 ? RELIEF_STEP_NS << doublings : RELIEF_STEP_MAX_NS;
}

static void say_down(const struct sl_crew *crew, const char *why)
{
        struct sl_command down = {.kind = SL_COMMAND_MODEL_DOWN, .pointer = crew->options.model};

        snprintf(down.why, sizeof(down.why), "no worker lives long enough: %s", why);
        sl_dispatcher_command(crew->options.dispatcher, &down);
}

static void strike(struct sl_crew *crew, uint64_t now_ns, const char *why)
{
        crew->strikes++;
        crew->due_ns = now_ns + relief_delay_ns(crew->strikes);
        if (crew->strikes > RELIEF_AT_ONCE && !count_in(crew, SL_CREW_SERVING))
                say_down(crew, why);
}

/* Its seat is for the next one, whether or not it is still answered for. */
static void relieve_worker(struct sl_crew *crew, uint32_t i, uint64_t now_ns)
{
        struct sl_crew_worker *worker = &crew->workers[i];
        struct sl_worker_stats *seat = worker->seat;
        bool useful = sl_process_executor_was_useful(worker->executor);

        snprintf(crew->why, sizeof(crew->why), "%s", sl_process_executor_why(worker->executor));
        worker->seat = NULL;
        if (worker->state == SL_CREW_STARTING)
                worker_free(crew, i);
        else
                begin_leaving(crew, worker);
        if (useful)
                crew->strikes = 0;
        else
                strike(crew, now_ns, crew->why);
        sl_seats_vacate(&crew->seats, seat, crew->why, crew->due_ns > now_ns);
}

/* It cannot start while workers are being added: then that is undone (sl_crew_advance). */
static bool undoes_change(const struct sl_crew *crew, uint32_t i)
{
        struct difference difference;

        compare(crew, &crew->before, &difference);
        return crew->workers[i].state == SL_CREW_STARTING && difference.surplus[i];
}

static void enlist_worker(struct sl_crew *crew, uint32_t i)
{
        set_serving(&crew->workers[i]);
        command(crew, SL_COMMAND_ADD_WORKER, crew->workers[i].executor);
}

/* Return: when to look again. */
static uint64_t look_at_worker(struct sl_crew *crew, uint32_t i, uint64_t now_ns)
{
        struct sl_crew_worker *worker = &crew->workers[i];
        int32_t state = sl_executor_started(worker->executor);

        if (worker->state == SL_CREW_LEAVING) {
                if (now_ns - worker->leaving_ns > LEAVING_MAX_NS)
                        sl_process_executor_kill(worker->executor);
        } else if (state < 0 && !undoes_change(crew, i)) {
                relieve_worker(crew, i, now_ns);
        } else if (state == SL_EXECUTOR_READY && worker->state == SL_CREW_STARTING) {
                enlist_worker(crew, i);
        } else if (state >= 0 && crew->options.hang_ns) {
                return sl_process_executor_look(worker->executor, crew->options.hang_ns, now_ns);
        }
        return UINT64_MAX;
}

/* Return: when to ask again for those that are missing. */
static uint64_t replace_missing(struct sl_crew *crew, uint64_t now_ns)
{
        struct sl_error error;
        struct difference difference;

        compare(crew, &crew->wanted, &difference);
        sl_seats_trim(&crew->seats, difference.n_missing);
        if (!difference.n_missing)
                return UINT64_MAX;
        if (now_ns < crew->due_ns)
                return crew->due_ns;
        if (hire(crew, difference.missing, difference.n_missing, &error) == 0)
                return UINT64_MAX;
        if (count_in(crew, SL_CREW_LEAVING)) /* they have memory that comes back */
                return now_ns + RELIEF_STEP_NS;
        strike(crew, now_ns, error.text);
        return crew->due_ns > now_ns ? crew->due_ns : now_ns + RELIEF_STEP_NS;
}

uint64_t sl_crew_relieve(struct sl_crew *crew, uint64_t now_ns)
{
        uint64_t due_ns = UINT64_MAX, missing_ns;

        if (!crew->options.own_process)
                return UINT64_MAX;
        for (uint32_t i = crew->n; i-- > 0;) {
                uint64_t look_ns = look_at_worker(crew, i, now_ns);

                due_ns = look_ns < due_ns ? look_ns : due_ns;
        }
        missing_ns = replace_missing(crew, now_ns);
        return missing_ns < due_ns ? missing_ns : due_ns;
}

void sl_crew_undo(struct sl_crew *crew)
{
        struct difference difference;

        compare(crew, &crew->wanted, &difference);
        if (!difference.n_missing) /* those that are too many leave already */
                crew->before = crew->wanted;
        crew->wanted = crew->before;
        crew->holds = false;
        dismiss_surplus(crew);
}

static int advance_worker(struct sl_crew *crew, uint32_t i, struct sl_error *error)
{
        struct sl_crew_worker *worker = &crew->workers[i];
        int32_t state = sl_executor_started(worker->executor);

        if (worker->state != SL_CREW_STARTING || state == SL_EXECUTOR_STARTING)
                return 0;
        if (state == SL_EXECUTOR_READY) {
                enlist_worker(crew, i);
                return 0;
        }
        int r = explain_failed_start(crew, i, state, error);
        worker_free(crew, i);
        sl_crew_undo(crew);
        return r;
}

int sl_crew_advance(struct sl_crew *crew, struct sl_error *error)
{
        for (uint32_t i = crew->n; i-- > 0;) {
                int r = advance_worker(crew, i, error);

                if (r < 0)
                        return r;
        }
        if (!crew->holds && !count_in(crew, SL_CREW_STARTING))
                dismiss_surplus(crew);
        int changing = (int)(count_in(crew, SL_CREW_STARTING) + count_in(crew, SL_CREW_LEAVING));
        if (!changing && !crew->holds)
                crew->before = crew->wanted;
        return changing;
}

void sl_crew_kill(struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n && crew->options.own_process; i++)
                sl_process_executor_kill(crew->workers[i].executor);
}

void sl_crew_gone(struct sl_crew *crew, struct sl_executor *executor)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (crew->workers[i].executor == executor) {
                        worker_free(crew, i);
                        return;
                }
}
