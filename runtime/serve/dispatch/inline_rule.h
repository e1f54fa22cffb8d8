/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off
 *
 * What the dispatcher computes itself (execute/inline_executor.h), because handing it over would take longer. The rule:
 *
 *     a model may       when the data decide on no more than SL_INLINE_DATA_STEPS of its work, and one sample took no longer than
 *                       SL_INLINE_PASS_NS when it was tried at the start, and no longer than SL_INLINE_ALONE_NS with denormal numbers;
 *                       of a plan of any size, at the size 1, whatever the data decide: each of its jobs is given up when it is too long
 *     a segment is      when so many samples are expected to take all its members together no longer than `inline_us`, and their
 *                       slowest recent jobs together took no longer than twice that
 *     what is expected  is the moving average of what the dispatcher took, at first what the trial did. A worker's job, on a core that others
 *                       may have, counts where it took less; else the average falls by one part in 32 towards the trial's, so that a model
 *                       which the dispatcher computed slowly while its own core was not free is tried again. Of a plan of any size it is
 *                       a line over sizes, at first that of the workers' jobs: until that is known they compute
 *     the only request  in flight, as one segment, has SL_INLINE_ALONE_NS in place of `inline_us`, where those who wait have all cores but
 *                       the dispatcher's: a worker would have to take one from them first
 *     a slow job        of more than twice `inline_us` ends it for its model at once, until the slowest is below `inline_us` again;
 *                       a slowest job is forgotten by one part in 32 with each job, wherever that was computed. It is not
 *                       held against the model while all such jobs together took less than a quarter of `inline_us` for each job there
 *                       was: whoever computes is preempted once in a while
 *     what is given up  since it has taken twice what a job may be expected to take, not counting what others had the core for
 *                       (execute/inline_executor.h), is a worker's, and bars its model: the next jobs are workers', alone or not, SL_INLINE_TERM of them, and twice as
 *                       many each time; a term is shorter by a job for each that ends in time behind it. One such job in some hundred
 *                       is forgiven: whoever lends a virtual core takes it away unseen
 *     a pass computes   the shortest first, for SL_INLINE_PASS_NS and the job at hand, and only while nothing more urgent waits for
 *                       a worker: that long the dispatcher is away at most. Answers are harvested after each `inline_us` of it
 *     what a merged     plan computes of a bundle in one run (execute/block.h) may take what the pass has left, as one by one it takes
 *     plan computes     longer; where that is too little it waits for the next pass, once
 *     what is left      is the next pass's where that has done it before a woken thread would run (SL_LIGHT_NS), or in less time than the
 *                       calls take that wake its workers (SL_WAKE_CALL_NS each), and of an only request as long as it is that.
 *                       What SL_INLINE_PASSES of them have kept goes first, or what is shorter and comes again and again would keep
 *                       it waiting. Otherwise, and where that did not suffice, or no pass would, it goes to the workers, and so does
 *                       all else
 *
 * Dispatcher only; pure but for the learning.
 */
/* clang-format on */
#pragma once

#include "service_time.h"
#include "size_line.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_ensemble;
struct sl_model;
struct sl_task;

#define SL_INLINE_PASS_NS  50000ull
#define SL_INLINE_ALONE_NS 100000ull

/* 1,024 jobs take many times what was given up, which is bounded. */
#define SL_INLINE_TERM     1024u
#define SL_INLINE_TERM_MAX (1u << 20)

/* 0.8 ms. With 1 and 4, sixteen LeNets were answered 0.7 to 0.8 times as often, as those that go first have their weights in a
 * cache; with 16 as often, within the noise of a tenth (Xeon, model 207). */
#define SL_INLINE_PASSES 16u

struct sl_inline_gauge {
        struct sl_service_time time; /* of the dispatcher's jobs */
        struct sl_size_line line;    /* of those, of a plan of any size */
        uint64_t tried_ns;           /* a sample; 0: none was */
        uint64_t slowest_ns;         /* of recent jobs; 0: none */
        uint64_t credit_ns;          /* so long may a slow one have taken that is forgiven */
        uint32_t barred;             /* jobs that are workers' before it may again */
        uint32_t term;               /* so many were, less those that have ended in time since */
        bool slow;                   /* one took more than twice the limit, and the slowest is not below the limit yet */
};

struct sl_inline_limit {
        uint64_t ns; /* `inline_us`; 0: nothing is inline */
        bool alone;  /* the only request in flight, and no core is free for a worker */
};

/* Is this the only request, and no core is free for a worker? @cores: that the runtime and its clients share, 0 when that is not
 * known; @waiting: clients that wait. */
bool sl_inline_is_alone(uint32_t in_flight, uint32_t cores, uint32_t waiting);

/* A sample took @ns when it was tried. */
void sl_inline_gauge_init(struct sl_inline_gauge *gauge, uint64_t ns);

/* A job of the dispatcher's took @ns. */
void sl_inline_learn(struct sl_inline_gauge *gauge, uint32_t samples, uint64_t ns, uint64_t limit_ns);

/* A worker's took @ns, which could have been the dispatcher's: that it took long says nothing, as others may have its core
 * meanwhile. */
void sl_inline_learn_elsewhere(struct sl_inline_gauge *gauge, uint32_t samples, uint64_t ns, uint64_t limit_ns);

/* The dispatcher has given one up after @ns. */
void sl_inline_overran(struct sl_inline_gauge *gauge, uint64_t ns, uint64_t limit_ns);

/* What the dispatcher is expected to take for @samples; 0: nothing is known. */
uint64_t sl_inline_ns(const struct sl_model *model, uint32_t samples);

/* The same of a task, for a plan of any size by what the task is. */
uint64_t sl_inline_task_ns(const struct sl_model *model, const struct sl_task *task);

/* The same two of a plan of any size, whose job of @units took @ns. */
void sl_inline_learn_size(struct sl_inline_gauge *gauge, uint64_t units, uint64_t ns);
void sl_inline_learn_size_elsewhere(struct sl_inline_gauge *gauge, uint64_t units, uint64_t ns);

/* The largest job that it is expected to take no longer than @limit_ns for; at least 1. */
uint32_t sl_inline_samples(const struct sl_model *model, uint64_t limit_ns);

/* Is a segment of @samples for the dispatcher itself? @units: its size, for a plan of any size; else 0. */
bool sl_inline_wants(const struct sl_ensemble *ensemble, uint32_t samples, uint64_t units, const struct sl_inline_limit *limit);
