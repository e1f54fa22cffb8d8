/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "bundles.h"
#include "cores.h"
#include "crew_start.h"
#include "dispatcher.h"
#include "gpu_host.h"
#include "inline_executor.h"
#include "job_runner.h"
#include "lane_executor.h"
#include "lets.h"
#include "memory.h"
#include "model.h"
#include "process_executor.h"
#include "runtime_options.h"
#include "stats.h"
#include "supervisor.h"
#include "thread_executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many processes that end without a use are followed at once; those behind them wait, twice as long each time. */
#define RELIEF_AT_ONCE     2u
#define RELIEF_STEP_NS     (100 * SL_NS_PER_MS)
#define RELIEF_STEP_MAX_NS SL_NS_PER_SECOND

int sl_crew_new(const struct sl_crew_options *options, struct sl_crew **ret_crew)
{
        struct sl_crew *crew = calloc(1, sizeof(*crew));

        if (!crew)
                return -ENOMEM;
        crew->options = *options;
        if (options->own_process)
                crew->options.worker.threads = 1;
        if (options->on_gpu)
                crew->gpu_number = ++sl_supervisor_gpu_hosts(options->supervisor)->n_crews;
        crew->seats = (struct sl_seats){
                .stats = options->stats,
                .model = options->model->name,
                .executor = options->own_process     ? "process"
                            : options->model->bundle ? "lane"
                                                     : "thread",
                .with_histograms = options->runtime->worker_histograms,
        };
        *ret_crew = crew;
        return 0;
}

/* Joins it, if it runs, and gives back what it had. */
static void worker_free(struct sl_crew *crew, uint32_t i)
{
        struct sl_crew_worker worker = crew->workers[i];

        crew->n_gone -= worker.gone;
        if (sl_process_executor_of(worker.executor))
                sl_supervisor_unwatch(crew->options.supervisor, worker.executor);
        sl_executor_free(worker.executor);
        sl_seats_leave(&crew->seats, worker.seat);
        sl_memory_give(crew->options.memory, SL_MEMORY_WORKERS, worker.bytes);
        memmove(crew->workers + i, crew->workers + i + 1, (--crew->n - i) * sizeof(worker));
        if (crew->options.model->bundle)
                sl_bundle_trim(crew->options.model->bundle);
        else
                sl_lets_return(worker.let);
}

bool sl_crew_bury(struct sl_crew *crew)
{
        for (uint32_t i = crew->n; i-- > 0 && crew->n_gone;)
                if (crew->workers[i].gone && sl_executor_leave(crew->workers[i].executor))
                        worker_free(crew, i);
        return !crew->n_gone;
}

/* The dispatcher does not know it, or no longer. */
static void let_go(struct sl_crew *crew, uint32_t i)
{
        struct sl_crew_worker *worker = &crew->workers[i];

        worker->state = SL_CREW_LEAVING;
        crew->n_gone += !worker->gone;
        worker->gone = true;
        if (worker->seat)
                sl_seat_show(worker->seat, SL_STATS_WORKER_LEAVING);
        if (sl_executor_leave(worker->executor))
                worker_free(crew, i);
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

/* A plan is for one kind of device. */
static int check_device(const struct sl_crew *crew, const struct sl_worker_wish *wish, struct sl_error *error)
{
        char cores[128];

        if (wish->gpu.name[0] && !crew->options.on_gpu && !crew->options.fell_back)
                return sl_error_set(
                        error, EINVAL, "a worker on %s: its device is cpu, for which its plan was made", wish->gpu.name);
        if (CPU_COUNT(&wish->cores) && crew->options.on_gpu)
                return sl_error_set(error, EINVAL, "a worker on cores %s: its device is a GPU, for which its plan was made",
                        sl_cores_text(&wish->cores, cores, sizeof(cores)));
        return 0;
}

int sl_crew_check(const struct sl_crew *crew, const struct sl_worker_set *set, struct sl_error *error)
{
        char cores[128];

        for (uint32_t i = 0; i < set->n; i++) {
                const struct sl_worker_wish *wish = &set->wishes[i];
                uint32_t batch_max = sl_crew_limit_of(crew, wish->batch_size).batch_max;
                int r = check_device(crew, wish, error);

                if (r < 0)
                        return r;
                if (CPU_COUNT(&wish->cores) == 0 && !wish->gpu.name[0])
                        continue;
                if (wish->batch_size && wish->batch_size != batch_max)
                        return sl_error_set(error, EINVAL,
                                "a worker of batch %u: its plan has powers of two up to batch_max, here %u", wish->batch_size,
                                sl_crew_limit_of(crew, UINT32_MAX).batch_max);
                if (!sl_lets_allow(crew->options.lets, &wish->cores))
                        return sl_error_set(error, EINVAL, "a worker on cores %s: not all of them are worker cores",
                                sl_cores_text(&wish->cores, cores, sizeof(cores)));
        }
        return 0;
}

static void forget_wish(struct sl_worker_set *set, const struct sl_worker_wish *wish)
{
        for (uint32_t i = 0; i < set->n; i++)
                if (sl_worker_wish_equal(&set->wishes[i], wish)) {
                        memmove(&set->wishes[i], &set->wishes[i + 1], (--set->n - i) * sizeof(*wish));
                        return;
                }
}

/* What is left of @set here: on the cores that there are; on each GPU, of what is for all; on none, where the model fell back. */
static int crew_fit(
        const struct sl_crew *crew, const struct sl_worker_set *set, struct sl_worker_set *ret_set, struct sl_error *error)
{
        struct sl_worker_set placed = *set;
        int r = 0;

        if (crew->options.on_gpu)
                r = sl_worker_set_spread(set, crew->options.gpus, crew->options.n_gpus, &placed, error);
        else
                sl_worker_set_without_gpus(set, &placed);
        if (r == 0)
                sl_lets_fit(crew->options.lets, &placed, ret_set);
        return r;
}

static void report_left_out(const struct sl_crew *crew, const struct sl_worker_wish *wish, const char *cause)
{
        const struct sl_runtime_options *runtime = crew->options.runtime;
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", crew->options.model->name);
        if (wish->gpu.name[0])
                sl_fields_add(&fields, "device", wish->gpu.name);
        sl_fields_add_number(&fields, "batch", sl_crew_limit_of(crew, wish->batch_size).batch_max);
        sl_fields_add(&fields, "cause", cause);
        if (runtime->log)
                runtime->log(runtime->context, 1, "worker-left-out", fields.text);
}

int sl_crew_start(struct sl_crew *crew, const struct sl_worker_set *set, const struct sl_crew *replaced, bool background,
        struct sl_error *error)
{
        int r = sl_crew_check(crew, set, error);

        if (r == 0)
                r = crew_fit(crew, set, &crew->wanted, error);
        if (r < 0)
                return r;
        crew->replaced_gpu_number = replaced ? replaced->gpu_number : 0;
        r = sl_crew_start_some(crew, crew->wanted.wishes, crew->wanted.n, replaced, background,
                crew->options.runtime->inline_ns > 0 && !sl_worker_options_are_fake(&crew->options.worker), error);
        /* Threads that the system does not give are left out as others are that cannot start. */
        for (; r < 0 && crew->n && crew->wanted.n > crew->n; crew->wanted.n--)
                report_left_out(crew, &crew->wanted.wishes[crew->wanted.n - 1], error->text);
        crew->before = crew->wanted;
        return crew->n ? 0 : r;
}

void sl_crew_outlives(struct sl_crew *crew, const struct sl_crew *gone)
{
        if (crew->replaced_gpu_number == gone->gpu_number)
                crew->replaced_gpu_number = 0;
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

static void look_at_start(struct sl_crew *crew, struct sl_executor *executor)
{
        uint64_t due_ns = sl_process_executor_look(executor, sl_worker_options_hang_ns(&crew->options.worker), sl_clock_ns());

        crew->starting_due_ns = due_ns < crew->starting_due_ns ? due_ns : crew->starting_due_ns;
}

int sl_crew_starting(struct sl_crew *crew, struct sl_error *error)
{
        int starting = 0;

        crew->starting_due_ns = UINT64_MAX;
        for (uint32_t i = crew->n; i-- > 0;) {
                int32_t state = sl_executor_started(crew->workers[i].executor);
                int r = state < 0 ? sl_crew_explain_failed_start(crew, i, state, error) : 0;

                if (r < 0 && crew->n == 1)
                        return r;
                if (r < 0) {
                        leave_out(crew, i, error->text);
                        continue;
                }
                if (state == SL_EXECUTOR_READY)
                        sl_seat_show(crew->workers[i].seat, SL_STATS_WORKER_WARM);
                else if (crew->options.own_process && crew->options.worker.hang_ms)
                        look_at_start(crew, crew->workers[i].executor);
                starting += state == SL_EXECUTOR_STARTING;
        }
        return starting;
}

struct sl_inline_trial sl_crew_take_trial(struct sl_crew *crew)
{
        struct sl_executor *first = crew->n ? crew->workers[0].executor : NULL;

        if (!first || crew->options.own_process)
                return (struct sl_inline_trial){0};
        return first->carrier ? sl_lane_executor_take_trial(first) : sl_thread_executor_take_trial(first);
}

/* What lies in the carrier's room was promised for that. */
static void give_back_room(const struct sl_crew *crew, struct sl_crew_worker *worker)
{
        uint64_t bytes = sl_job_runner_moved_bytes(crew->options.model->plan, worker->executor->batch_max);

        if (!worker->executor->carrier || !sl_lane_executor_has_room(worker->executor))
                return;
        bytes = bytes < worker->bytes ? bytes : worker->bytes;
        worker->bytes -= bytes;
        sl_memory_give(crew->options.memory, SL_MEMORY_WORKERS, bytes);
}

static void set_serving(const struct sl_crew *crew, struct sl_crew_worker *worker)
{
        give_back_room(crew, worker);
        worker->state = SL_CREW_SERVING;
        sl_seat_show(worker->seat, SL_STATS_WORKER_SERVING);
}

void sl_crew_enlist(struct sl_crew *crew, struct sl_workers *workers)
{
        for (uint32_t i = 0; i < crew->n; i++) {
                sl_workers_add(workers, crew->workers[i].executor);
                set_serving(crew, &crew->workers[i]);
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

static bool is_elsewhere(const struct sl_crew_worker *worker)
{
        return worker->let->stale || worker->moves;
}

static void compare(const struct sl_crew *crew, const struct sl_worker_set *set, struct difference *ret_difference)
{
        bool found[SL_WORKERS_MAX] = {false};
        struct difference d = {.n_missing = 0};

        for (uint32_t i = 0; i < crew->n; i++)
                d.surplus[i] = crew->workers[i].state != SL_CREW_LEAVING &&
                               (is_elsewhere(&crew->workers[i]) || !find_in(set, &crew->workers[i].wish, found));
        for (uint32_t k = 0; k < set->n; k++)
                if (!found[k])
                        d.missing[d.n_missing++] = set->wishes[k];
        *ret_difference = d;
}

/* Who is not wanted: what does not serve yet goes at once, and who is to run elsewhere once somebody is in its place. */
static void dismiss_surplus(struct sl_crew *crew)
{
        struct difference difference;

        compare(crew, &crew->wanted, &difference);
        for (uint32_t i = crew->n; i-- > 0;) {
                if (!difference.surplus[i] || (is_elsewhere(&crew->workers[i]) && difference.n_missing))
                        continue;
                if (crew->workers[i].state == SL_CREW_STARTING)
                        let_go(crew, i);
                else
                        begin_leaving(crew, &crew->workers[i]);
        }
}

static int hire(struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, struct sl_error *error)
{
        uint32_t before = crew->n;
        int r;

        if (crew->n + n > SL_WORKERS_MAX)
                return sl_error_set(error, E2BIG,
                        "%u workers more, beside %u that are there until those come: a model has at most %u", n, crew->n,
                        SL_WORKERS_MAX);
        r = sl_crew_start_some(crew, wishes, n, NULL, true, false, error);
        for (uint32_t i = crew->n; r < 0 && i-- > before;)
                let_go(crew, i);
        return r;
}

void sl_crew_hold(struct sl_crew *crew, bool holds)
{
        crew->holds = holds;
}

static bool is_misplaced(const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (crew->workers[i].state == SL_CREW_SERVING && is_elsewhere(&crew->workers[i]))
                        return true;
        return false;
}

void sl_crew_move(struct sl_crew *crew, uint32_t i)
{
        crew->workers[i].moves = true;
        sl_lets_note_departure(crew->options.lets, crew->workers[i].let);
}

bool sl_crew_moves(const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (crew->workers[i].moves && crew->workers[i].state == SL_CREW_SERVING)
                        return true;
        return false;
}

bool sl_crew_needs(const struct sl_crew *crew, const struct sl_worker_set *set)
{
        struct sl_worker_set fit;
        struct sl_error error;

        return crew_fit(crew, set, &fit, &error) < 0 || !sl_worker_set_equal(&crew->wanted, &fit) ||
               (is_misplaced(crew) && !sl_crew_is_starting(crew));
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
        const struct sl_worker_set before = crew->wanted;
        struct difference difference;
        struct sl_worker_set fit;
        int r = crew_fit(crew, set, &fit, error);

        r = r < 0 ? r : sl_crew_check(crew, &fit, error);
        if (r < 0)
                return r;
        compare(crew, &fit, &difference);
        crew->wanted = fit;
        if (difference.n_missing)
                r = hire(crew, difference.missing, difference.n_missing, error);
        if (r < 0) {
                crew->wanted = before;
                return r;
        }
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

/* Of those of one GPU, or of all that are on none. */
static struct sl_crew_relief *relief_of(struct sl_crew *crew, const struct sl_worker_wish *wish)
{
        return &crew->reliefs[wish->gpu.name[0] ? wish->gpu.gpu : 0];
}

static void strike(struct sl_crew *crew, struct sl_crew_relief *relief, uint64_t now_ns, const char *why)
{
        relief->strikes++;
        relief->due_ns = now_ns + relief_delay_ns(relief->strikes);
        if (relief->strikes > RELIEF_AT_ONCE && !count_in(crew, SL_CREW_SERVING))
                say_down(crew, why);
}

/* Its seat is for the next one, whether or not it is still answered for. */
static void relieve_worker(struct sl_crew *crew, uint32_t i, uint64_t now_ns)
{
        struct sl_crew_worker *worker = &crew->workers[i];
        struct sl_worker_stats *seat = worker->seat;
        struct sl_crew_relief *relief = relief_of(crew, &worker->wish);
        bool useful = sl_process_executor_was_useful(worker->executor);

        sl_error_fit(sl_process_executor_why(worker->executor), crew->why, sizeof(crew->why));
        worker->seat = NULL;
        if (worker->state == SL_CREW_STARTING)
                let_go(crew, i);
        else
                begin_leaving(crew, worker);
        if (useful)
                relief->strikes = 0;
        else
                strike(crew, relief, now_ns, crew->why);
        sl_seats_vacate(&crew->seats, seat, crew->why, relief->due_ns > now_ns);
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
        set_serving(crew, &crew->workers[i]);
        command(crew, SL_COMMAND_ADD_WORKER, crew->workers[i].executor);
}

/* Return: when to look again. */
static uint64_t look_at_worker(struct sl_crew *crew, uint32_t i, uint64_t now_ns)
{
        struct sl_crew_worker *worker = &crew->workers[i];
        int32_t state = sl_executor_started(worker->executor);

        if (worker->state != SL_CREW_LEAVING && state < 0 && !undoes_change(crew, i))
                relieve_worker(crew, i, now_ns);
        else if (worker->state == SL_CREW_STARTING && state == SL_EXECUTOR_READY)
                enlist_worker(crew, i);
        else if (state >= 0 && crew->options.worker.hang_ms && !worker->gone)
                return sl_process_executor_look(worker->executor, sl_worker_options_hang_ns(&crew->options.worker), now_ns);
        return UINT64_MAX;
}

/* The wishes whose relief that is. Return: how many. */
static uint32_t missing_of(struct sl_crew *crew, const struct difference *difference, const struct sl_crew_relief *relief,
        struct sl_worker_wish ret_wishes[SL_WORKERS_MAX])
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < difference->n_missing; i++)
                if (relief_of(crew, &difference->missing[i]) == relief)
                        ret_wishes[n++] = difference->missing[i];
        return n;
}

/* Return: when to ask again for these, which are missing. */
static uint64_t replace_some(
        struct sl_crew *crew, struct sl_crew_relief *relief, const struct sl_worker_wish *wishes, uint32_t n, uint64_t now_ns)
{
        struct sl_error error;

        if (now_ns < relief->due_ns)
                return relief->due_ns;
        if (hire(crew, wishes, n, &error) == 0)
                return UINT64_MAX;
        if (count_in(crew, SL_CREW_LEAVING)) /* they have memory that comes back */
                return now_ns + RELIEF_STEP_NS;
        strike(crew, relief, now_ns, error.text);
        return relief->due_ns > now_ns ? relief->due_ns : now_ns + RELIEF_STEP_NS;
}

/* Return: when to ask again for those that are missing. */
static uint64_t replace_missing(struct sl_crew *crew, uint64_t now_ns)
{
        struct sl_worker_wish wishes[SL_WORKERS_MAX];
        struct difference difference;
        uint64_t due_ns = UINT64_MAX;

        compare(crew, &crew->wanted, &difference);
        sl_seats_trim(&crew->seats, difference.n_missing);
        for (uint32_t i = 0; i < SL_GPUS_MAX && difference.n_missing; i++) {
                uint32_t n = missing_of(crew, &difference, &crew->reliefs[i], wishes);
                uint64_t again_ns = n ? replace_some(crew, &crew->reliefs[i], wishes, n, now_ns) : UINT64_MAX;

                due_ns = again_ns < due_ns ? again_ns : due_ns;
        }
        return due_ns;
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

        for (uint32_t i = 0; i < crew->n; i++)
                crew->workers[i].moves = false;
        compare(crew, &crew->wanted, &difference);
        if (!difference.n_missing && !crew->holds) /* those that are too many leave already */
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
        int r = sl_crew_explain_failed_start(crew, i, state, error);
        let_go(crew, i);
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
                        let_go(crew, i);
                        return;
                }
}

bool sl_crew_leave(struct sl_crew *crew)
{
        bool all = true;

        for (uint32_t i = 0; i < crew->n; i++)
                all &= sl_executor_leave(crew->workers[i].executor);
        return all;
}
