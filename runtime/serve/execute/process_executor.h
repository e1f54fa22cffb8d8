/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off
 *
 * The executor in a process of its own (serve/worker/), for a model that may crash: it maps the plan, a word for each segment, what
 * is given to it (process_link.h), and of the regions those that its jobs name, each of them read-only; predictions it writes to a
 * staging of its own, from where the dispatcher copies them to their places with each answer, but for a GPU's process that was told to
 * write them to the client's arena (`gpu_direct`), which has those that its jobs name writable. Counting and combining stay here. It
 * has no network and no files, and dies with the runtime.
 *
 *     STARTING --READY packet--> READY --socket ends: killed, reaped--> -ECHILD     sl_process_executor_hear()
 *         +--it says why not, or its socket ends-----------------------> -errno
 *
 * Once its process is gone, a piece that was given and has no answer is answered here: nothing can write any more. Such an answer
 * is `lost`: nobody has delivered it, and who hears it fails the piece or gives it out again.
 *
 * Threads: sl_process_executor_new(), _fd(), _hear() and the end are the control thread's; what executor.h has for the dispatcher is
 * the dispatcher's. Between the two: `state` (S1, S2), and the socket, to which both write whole packets.
 */
/* clang-format on */
#pragma once

#include "bell.h"
#include "executor.h"
#include "fault.h"
#include "gpu_part.h"
#include "gpu_tuning.h"
#include "plan.h"

struct sl_accumulator;
struct sl_growth;
struct sl_error;
struct sl_gpu_hosts;

/* A start may take so many times what an answer may (hang_ms), and so may the word whether a GPU can be used. */
#define SL_PROCESS_START_HANGS 10u
struct sl_gpu_let;
struct sl_let;

struct sl_process_executor_options {
        const struct sl_plan *plan;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        const char *program;      /* that is the worker's when its first argument is SL_PROCESS_COMMAND; NULL: /proc/self/exe */
        bool fake;                /* predictions are zeros: job_runner.h */
        uint32_t batch_max;       /* the instance's is the largest size of the plan's ladder that is not above it */
        uint64_t memory_bytes;    /* that its instance, its pool, data-dependent steps and packed weights may take */
        struct sl_growth *growth; /* NULL: nobody counts what data-dependent steps take */
        uint64_t dynamic_bytes;   /* that those may take at most, of memory_bytes */
        uint64_t open_bytes;      /* room for each output that says only afterwards how large it is */
        uint64_t warmup_ns, spin_ns;
        bool background;
        const struct sl_gpu_let *gpu;    /* outlives it: it is a worker in the process of that GPU. NULL: it has one of its own */
        struct sl_gpu_part gpu_part;     /* what of it, and who leaves then */
        bool gpu_words;                  /* it writes itself that a launch has ended, where it can */
        struct sl_gpu_tuning gpu_tuning; /* what is timed there of the plan's candidates */
        int choices_fd; /* what is known of that: a file of gpu_choices.h, borrowed while it is made; -1: nothing */
        bool asked;     /* a request of this user wanted the plan: */
        uint32_t uid;
        bool gpu_direct;                /* predictions that nobody combines go straight to the client's arena */
        struct sl_gpu_hosts *gpu_hosts; /* where that process is, or will be */
        struct sl_let *let;
        struct sl_bell *dispatcher; /* rung when it has ended */
        struct sl_worker_stats *stats;
};

/*
 * What it takes of the host's memory beside its instance and its pool: what it shares with the runtime, and what of a GPU's results
 * is pinned. Pure. UINT64_MAX: more than can be said.
 */
uint64_t sl_process_executor_bytes(const struct sl_plan *plan, uint32_t batch_max, uint64_t open_bytes, bool on_gpu);

/* Jobs that it can have. */
static inline uint32_t sl_process_executor_jobs(bool on_gpu)
{
        return on_gpu ? SL_EXECUTOR_SLOTS_MAX : SL_EXECUTOR_JOBS_MAX;
}

/* Starts the process. Return: 0; -ENOMEM, -EMFILE, -EAGAIN, -ENOENT, with a text. */
int sl_process_executor_new(
        const struct sl_process_executor_options *options, struct sl_executor **ret_executor, struct sl_error *error);

/* NULL when it is of another class. */
struct sl_executor *sl_process_executor_of(struct sl_executor *executor);

/* Readable when there is something to hear, until it has ended. */
int sl_process_executor_fd(const struct sl_executor *executor);

/*
 * What its process says, without waiting but for the reaping of one that has been killed. Changes sl_executor_started().
 * @ret_warning: what its sandbox lacks on this host; "" else. Return: 0; -errno: it has ended, or cannot start; the text says why.
 */
int sl_process_executor_hear(struct sl_executor *executor, struct sl_error *ret_warning, struct sl_error *error);

/* As it was made, but for choices_fd. */
const struct sl_process_executor_options *sl_process_executor_options(const struct sl_executor *executor);

/*
 * What its GPU has to say of its plan, when it was heard: once. Nothing of it has been checked. False: nothing, or no more.
 */
struct sl_process_choices {
        int fd;                       /* the caller's, of what has been found out; -1: nothing new */
        char ignored[SL_FAULT_BYTES]; /* why what it was handed was of no use; "" */
};
bool sl_process_executor_take_choices(struct sl_executor *executor, struct sl_process_choices *ret_choices);

/* It may time candidates, and has not said what became of its start. */
bool sl_process_executor_is_timing(const struct sl_executor *executor);

/* Why it has ended; "" before. */
const char *sl_process_executor_why(const struct sl_executor *executor);

/* Has it answered anything? */
bool sl_process_executor_was_useful(const struct sl_executor *executor);

/*
 * Control, now and then: it is killed when it has had a job and answered nothing for @hang_ns, and ten times as long as its slowest
 * answer took; or is not ready after ten times @hang_ns. Return: when to look again, CLOCK_MONOTONIC.
 */
uint64_t sl_process_executor_look(struct sl_executor *executor, uint64_t hang_ns, uint64_t now_ns);

/* It is heard to have ended soon afterwards. */
void sl_process_executor_kill(struct sl_executor *executor);

/* 0: it has been reaped. */
int sl_process_executor_pid(const struct sl_executor *executor);
