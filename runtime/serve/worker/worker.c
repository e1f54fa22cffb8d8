/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "base/background.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "call_list.h"
#include "cpu/base/threads.h"
#include "executor.h"
#include "job_runner.h"
#include "packed_store.h"
#include "process_staging.h"
#include "ref/live.h"
#include "sandbox.h"
#include "stats.h"
#include "warm_up.h"
#include "worker_calls.h"
#include "worker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Private memory beside the instance and the pool: kernels, tables, the heap's own. */
#define SLACK_BYTES (256ull << 20)

struct worker {
        struct sl_worker_link link;
        struct sl_plan *base, *plan;
        struct sl_job_runner *runner;
        struct sl_job *job;
        struct sl_warm_up warm_up;
        struct sl_pool_grant grant;   /* what is granted, without: */
        uint64_t staged_bytes;        /* for outputs in the reply, beyond SL_PROCESS_OPEN_BYTES of each */
        uint64_t packed_bytes;        /* for weights that its plan of any size packs while it runs */
        uint64_t *staged;             /* [slots][outputs]: how large each has been, and may be */
        bool computing;               /* a job: the runtime hears it ask for memory */
        struct sl_worker_stats stats; /* nobody's: the runtime counts */
        const char *missing;          /* of the sandbox; NULL: nothing */
};

/* When memory runs out, the kernel takes this process and not who serves: it comes back. Nothing depends on it. */
static void offer_to_the_kernel(void)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void)!write(fd, "500", 3);
}

static int enter_sandbox(struct worker *w, struct sl_error *error)
{
        struct sl_call_list calls;
        const struct sl_sandbox_limits limits = {
                .address_bytes = SL_SANDBOX_NO_LIMIT, /* of the regions, which others made */
                .data_bytes = w->link.start.memory_bytes + w->link.start.memory_bytes / 4 + SLACK_BYTES,
                .file_bytes = 0,
                .seconds = SL_SANDBOX_NO_LIMIT,
                .parent = w->link.start.parent,
                .calls = &calls,
        };

        sl_worker_calls(&calls);
        return sl_sandbox_enter(&limits, &w->missing, error);
}

/* What opens files or asks for a place, before the sandbox closes. */
static int settle(struct worker *w, struct sl_error *error)
{
        const struct sl_process_start *start = &w->link.start;

        offer_to_the_kernel();
        if (CPU_COUNT(&start->cpus) && sched_setaffinity(0, sizeof(start->cpus), &start->cpus) < 0)
                return sl_error_set(error, errno, "it cannot run on its cores: %s", strerror(errno));
        sl_cpu_use_one_thread();
        return enter_sandbox(w, error);
}

/* The runtime has checked the file: it is walked, but not read for damage. */
static int open_plan(struct worker *w, struct sl_error *error)
{
        int r = w->link.start.has_base ? sl_plan_open_intact(SL_PROCESS_BASE_FD, NULL, &w->base, error) : 0;

        if (r == 0)
                r = sl_plan_open_intact(SL_PROCESS_PLAN_FD, w->base, &w->plan, error);
        return r;
}

/* For data-dependent steps, for what is staged, and for what is packed. */
static bool grow(struct worker *w, uint64_t pool_bytes, uint64_t staged_bytes, uint64_t packed_bytes)
{
        struct sl_pool_grant all = {.bytes = 0};

        if (!w->computing || !sl_worker_link_grow(&w->link, &all, pool_bytes + staged_bytes + packed_bytes)) {
                w->grant.left_bytes = all.left_bytes;
                w->grant.max_bytes = all.max_bytes;
                return false;
        }
        w->staged_bytes = staged_bytes;
        w->packed_bytes = packed_bytes;
        w->grant.bytes = all.bytes - staged_bytes - packed_bytes;
        return true;
}

static bool ask_for_more(struct sl_pool_grant *grant, uint64_t wanted)
{
        struct worker *w = (struct worker *)((char *)grant - offsetof(struct worker, grant));

        return grow(w, wanted, w->staged_bytes, w->packed_bytes);
}

/* Pages of the reply take memory when they are first written, and keep it. */
static bool make_room(void *context, uint32_t output, uint64_t bytes)
{
        struct worker *w = context;
        uint64_t *staged = &w->staged[sl_worker_link_slot(&w->link) * sl_plan_info(w->plan)->n_outputs + output];
        uint64_t wanted = sl_align_up(bytes, SL_PROCESS_OPEN_BYTES);

        if (bytes <= *staged)
                return true;
        if (!grow(w, w->grant.bytes, w->staged_bytes + wanted - *staged, w->packed_bytes))
                return false;
        *staged = wanted;
        return true;
}

/* The process has its own: what another one packs is not here. */
static bool take_packed(void *context, uint64_t bytes)
{
        struct worker *w = context;

        return grow(w, w->grant.bytes, w->staged_bytes, w->packed_bytes + bytes);
}

static void give_packed(void *context, uint64_t bytes)
{
        struct worker *w = context;

        w->packed_bytes -= bytes;
        w->grant.bytes += bytes;
}

static int make_staged(struct worker *w)
{
        uint32_t n = SL_EXECUTOR_SLOTS_MAX * sl_plan_info(w->plan)->n_outputs;

        w->staged = calloc((size_t)n + 1, sizeof(*w->staged));
        for (uint32_t i = 0; w->staged && i < n; i++)
                w->staged[i] = SL_PROCESS_OPEN_BYTES;
        return w->staged ? 0 : -ENOMEM;
}

static int make_runner(struct worker *w, struct sl_error *error)
{
        const struct sl_job_runner_options options = {
                .plan = w->plan,
                .batch_max = w->link.start.batch_max,
                .regions = w->link.regions,
                .verdicts = w->link.verdicts_map.base,
                .fake = w->link.start.fake,
                .grant = &w->grant,
                .make_room = make_room,
                .room_context = w,
        };
        const struct sl_plan_info *info = sl_plan_info(w->plan);
        int r;

        sl_plan_lend_packed(w->plan, &(struct sl_packed_lender){.take = take_packed, .give = give_packed, .context = w});
        w->grant.more = ask_for_more;
        r = make_staged(w);
        if (r == 0)
                r = sl_job_runner_new(&options, &w->runner);
        w->job = calloc(1, sl_job_bytes(info->n_inputs, info->n_outputs));
        if (r < 0 || !w->job)
                return sl_error_set(error, r < 0 ? -r : ENOMEM, "an instance of batch %u cannot be made: %s", options.batch_max,
                        strerror(r < 0 ? -r : ENOMEM));
        w->job->n_inputs = info->n_inputs;
        w->job->n_outputs = info->n_outputs;
        return 0;
}

static int warm_up_first(struct worker *w, struct sl_error *error)
{
        int r;

        w->warm_up = (struct sl_warm_up){
                .instance = sl_job_runner_instance(w->runner),
                .batcher = sl_job_runner_batcher(w->runner),
                .stats = &w->stats,
                .info = sl_plan_info(w->plan),
                .dynamic = sl_plan_is_dynamic(w->plan),
                .batch_max = w->link.start.batch_max,
                .until_ns = sl_clock_ns() + w->link.start.warmup_ns,
                .called = &w->link.order->called,
        };
        r = sl_warm_up_first(&w->warm_up);
        return r < 0 ? sl_error_set(error, -r, "its first sample cannot be run: %s", strerror(-r)) : 0;
}

static int worker_start(struct worker *w, struct sl_error *error)
{
        int r = settle(w, error);

        if (r == 0)
                r = sl_worker_link_map(&w->link, error);
        if (r == 0)
                r = open_plan(w, error);
        if (r == 0)
                r = make_runner(w, error);
        return r < 0 ? r : warm_up_first(w, error);
}

/* Where the worker may run nothing to become warm, its memory is faulted before "ready". */
static int worker_prepare(struct worker *w, struct sl_error *error)
{
        int r;

        if (!w->link.start.background)
                return worker_start(w, error);
        sl_background_thread(true);
        r = worker_start(w, error);
        while (r == 0 && !w->link.start.warmup_ns && sl_warm_up_next(&w->warm_up))
                ;
        sl_background_thread(false);
        return r;
}

static void worker_answer(void *context, const struct sl_job *job, struct sl_prediction *prediction)
{
        struct worker *w = context;

        atomic_store_explicit(
                &w->link.reply->used_bytes, w->grant.peak_bytes + w->staged_bytes + w->packed_bytes, memory_order_relaxed);
        sl_worker_link_answer(&w->link, sl_worker_link_slot(&w->link), job, prediction);
}

static void compute_job(struct worker *w)
{
        w->computing = true;
        sl_job_runner_run(w->runner, w->job, sl_clock_ns(), worker_answer, w);
        w->computing = false;
}

static bool all_reach(struct worker *w)
{
        for (uint32_t i = 0; i < w->job->n_pieces; i++)
                if (!sl_worker_link_reaches(&w->link, w->job, i))
                        return false;
        return true;
}

/* What cannot be reached had no room in this process's memory. */
static void refuse_job(struct worker *w)
{
        for (uint32_t i = 0; i < w->job->n_pieces; i++)
                sl_worker_link_answer(
                        &w->link, sl_worker_link_slot(&w->link), w->job, &(struct sl_prediction){.piece = i, .status = -ENOMEM});
}

static void worker_serve(struct worker *w)
{
        while (!w->link.ended) {
                if (!sl_worker_link_look(&w->link)) {
                        if (!sl_warm_up_next(&w->warm_up))
                                sl_worker_link_sleep(&w->link);
                        continue;
                }
                sl_worker_link_take(&w->link, w->job);
                if (w->link.ended)
                        return;
                if (all_reach(w))
                        compute_job(w);
                else
                        refuse_job(w);
        }
}

static void worker_end(struct worker *w)
{
        sl_job_runner_free(w->runner);
        sl_plan_free(w->plan);
        sl_plan_free(w->base);
        sl_worker_link_end(&w->link);
        free(w->job);
        free(w->staged);
        free(w);
}

bool sl_worker_is_meant(int argc, char **argv)
{
        return argc > 1 && strcmp(argv[1], SL_PROCESS_COMMAND) == 0;
}

/* Those that a terminal or a service manager sends to all processes are for the runtime, which ends this one when it is done. */
static void ignore_signals(void)
{
        signal(SIGHUP, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
}

int sl_worker_main(int argc, char **argv)
{
        const struct sl_worker_fds fds = {
                SL_PROCESS_SOCKET_FD, SL_PROCESS_ORDER_FD, SL_PROCESS_REPLY_FD, SL_PROCESS_VERDICTS_FD, SL_PROCESS_WAKE_FD};
        struct worker *w = calloc(1, sizeof(*w));
        struct sl_error error = {""};
        int r;

        (void)argc;
        (void)argv;
        ignore_signals();
        if (!w || sl_worker_link_begin(&w->link, &fds) < 0)
                return 1;
        r = worker_prepare(w, &error);
        sl_worker_link_ready(&w->link, r, w->warm_up.first_ns, r < 0 ? error.text : w->missing);
        if (r == 0)
                worker_serve(w);
        worker_end(w);
        return r < 0;
}
