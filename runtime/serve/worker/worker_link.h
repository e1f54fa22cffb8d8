/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of what it shares with the runtime (execute/process_link.h): jobs that come, regions that are mapped and
 * forgotten, answers that go. One thread.
 */
#pragma once

#include "process_link.h"
#include "regions.h"
#include "segment.h"

struct sl_error;
struct sl_worker_link {
        struct sl_process_start start;
        struct sl_mapping order_map, reply_map, verdicts_map;
        const struct sl_process_order *order;
        struct sl_process_reply *reply;
        struct sl_regions *regions; /* as they are mapped here; the last one is the staging of the reply */
        uint32_t n_maps, heard;     /* MAP packets that have come; all packets */
        uint32_t taken;             /* jobs */
        uint32_t answered;
        bool ended; /* the runtime is gone */
};

/* Waits for what to do. Return: 0; -EPIPE the runtime is gone; -EPROTO. */
int sl_worker_link_begin(struct sl_worker_link *link);

/* Maps what is shared. Return: 0; -errno with a text. */
int sl_worker_link_map(struct sl_worker_link *link, struct sl_error *error);

/* Is there a job? Spins for as long as it was told. */
bool sl_worker_link_look(struct sl_worker_link *link);

/* Sleeps until there is one, for a second at most, and hears what regions are to be forgotten. */
void sl_worker_link_sleep(struct sl_worker_link *link);

/* The next job, copied to @job; its regions are mapped, or their base is NULL. Before: there is one. */
void sl_worker_link_take(struct sl_worker_link *link, struct sl_job *job);

/* Every place of the piece can be reached. */
bool sl_worker_link_reaches(const struct sl_worker_link *link, struct sl_job *job, uint32_t piece);

/* Of the job that was taken last. */
void sl_worker_link_answer(struct sl_worker_link *link, const struct sl_job *job, const struct sl_prediction *prediction);

/* @status: 0, or why it cannot start. @text: what the sandbox lacks (or NULL), or why. */
void sl_worker_link_ready(struct sl_worker_link *link, int status, uint64_t first_ns, const char *text);
