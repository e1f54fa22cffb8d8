/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with workers that compute nothing, and what a run of the scheduler makes of what waits for it.
 */
#pragma once

#include "executor.h"
#include "fixture.h"
#include "let.h"
#include "scheduler.h"

#define CREW_INPUTS    4u
#define CREW_CLASSES   10u
#define CREW_BATCH_MAX 8u

/* An executor that computes nothing: its jobs lie in their slots until the test answers them. */
struct idle {
        struct sl_executor common;
        void *memory;
        uint32_t given, taken; /* jobs in all; those that the test has looked at */
        const struct sl_job *jobs[512];
};

struct crew {
        struct fixture *f;
        struct sl_model *model;
        struct idle workers[2], inliner;
        struct sl_executor *list[2];
        struct sl_let own_let, *let; /* of all its workers */
        uint64_t run;
        struct sl_inline_budget budget;
        uint64_t next_ns;
        bool full;
};

/* @n_workers: at most two. */
void crew_init(struct crew *crew, uint32_t n_workers);
void crew_deinit(struct crew *crew);

/* The workers of both run where those of @with do. */
void crew_share_let(struct crew *crew, struct crew *with);

/* A task of the segment @id; or a segment of @samples, of class 0 if nothing is said, that waits for a worker. */
void crew_push(struct crew *crew, uint32_t id, uint32_t samples, uint32_t priority, bool is_inline);
void crew_wait_with_priority(struct crew *crew, uint16_t tag, uint32_t samples, uint32_t priority);
void crew_wait(struct crew *crew, uint16_t tag, uint32_t samples);

/* One run of the scheduler, at a time or at 1. Return: jobs. */
uint32_t crew_run_at(struct crew *crew, uint64_t now_ns);
uint32_t crew_run(struct crew *crew);
void crew_give_all(struct crew *crew);

/* The worker's next job that was not looked at; NULL: it has got none. */
const struct sl_job *crew_next_job(struct crew *crew, uint32_t worker);
uint32_t crew_job_samples(const struct sl_job *job);

/* The first tag of the first worker's next job; -1: it has none. */
int crew_next_tag(struct crew *crew);

/* The first worker answers its oldest job, and the dispatcher counts its end. */
void crew_end_job(struct crew *crew);
