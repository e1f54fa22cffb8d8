/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan, an arena, an accumulator, and executors that compute it: all that is below a dispatcher, with the test as the dispatcher.
 */
#pragma once

#include "accumulator.h"
#include "assembly.h"
#include "base/error.h"
#include "bell.h"
#include "executor.h"
#include "gpu_host.h"
#include "let.h"
#include "process_executor.h"
#include "segment.h"
#include "stats.h"

#define STAND_REGIONS 40u
#define STAND_SAMPLES 512u
#define STAND_CLASSES 10u
#define STAND_PIXELS  64u

/* For what must come: some milliseconds, and as much more as others have the processors. */
#define STAND_LIMIT_NS 120000000000ull

struct stand {
        struct sl_plan *plan;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_served_port made; /* the assembly's output */
        struct sl_assembly assembly;
        struct sl_work work;
        struct sl_place input, output; /* of the work's first sample */
        struct sl_mapping arena;
        float *inputs, *outputs; /* in the arena */
        struct sl_worker_stats stats;
        struct sl_let let;   /* any cores */
        struct sl_bell bell; /* nobody sleeps */
        struct sl_wait *wait;
        struct sl_error error; /* why an executor has ended */
        uint64_t spin_ns;
        bool direct;                  /* a process writes to the arena */
        const struct sl_gpu_let *gpu; /* where a process is; NULL: it has one of its own */
        struct sl_gpu_hosts gpu_hosts;
        cpu_set_t start_cores; /* of a thread */
        uint32_t threads;      /* of a thread's team; 0: none */
        uint64_t team_spin_ns;
};

/* LeNet of the digits, under no rule, with images that differ. Ends the test where something is missing. */
struct stand *stand_new(void);
void stand_free(struct stand *stand);

void stand_add_arena(struct stand *stand);
void stand_remove_arena(struct stand *stand);

/* Both are the caller's to free. @program: NULL: the tests' own. */
struct sl_executor *stand_thread(struct stand *stand, uint32_t batch_max);
struct sl_executor *stand_process(struct stand *stand, uint32_t batch_max, const char *program);

/* Until it is ready or has ended: what sl_executor_started() says then. A process that is ready: until it has ended. */
int32_t stand_wait(struct stand *stand, struct sl_executor *executor);

/* Samples [first, first + samples) in one job; or several such pieces. */
void stand_give(struct stand *stand, struct sl_executor *executor, uint32_t first, uint32_t samples);
void stand_give_pieces(
        struct stand *stand, struct sl_executor *executor, const uint32_t *firsts, const uint32_t *samples, uint32_t n);

/* The next answer, within ten seconds; its segment is closed. */
bool stand_poll(struct stand *stand, struct sl_executor *executor, struct sl_prediction *ret_answer);

/* An answer that was polled: its segment is closed. */
void stand_finish(struct stand *stand, struct sl_executor *executor, const struct sl_prediction *answer);

bool stand_readable(int fd, int limit_ms);

/* The youngest child of this thread: the process of the executor that was started last. */
int stand_child(void);
