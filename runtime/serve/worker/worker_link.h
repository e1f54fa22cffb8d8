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
struct sl_pool_grant;

/* What the runtime has handed over: the link's. */
struct sl_worker_fds {
        int socket, order, reply, verdicts, wake;
};

struct sl_worker_link {
        struct sl_worker_fds fds;
        struct sl_process_start start;
        int choices_fd; /* that came with it; -1: none */
        struct sl_mapping order_map, reply_map, verdicts_map;
        const struct sl_process_order *order;
        struct sl_process_reply *reply;
        struct sl_regions *regions; /* as they are mapped here; the last one is the parts of the reply */
        uint32_t n_maps, heard;     /* MAP packets that have come; all packets */
        uint32_t taken;             /* jobs */
        uint32_t slot;              /* of the one that was taken last */
        uint32_t answered;
        bool ended;                 /* the runtime is gone */
        uint32_t n_gpus;            /* that there are, for who asks; 0: not known */
        struct sl_cuda_figures gpu; /* what it is, for the same; zeros: not known */

        /* Who is told of regions: one is mapped, one is about to be unmapped. NULL: nobody. */
        void (*mapped)(void *context, uint32_t region);
        void (*unmapping)(void *context, uint32_t region);
        void *context;
};

/* Waits for what to do. Return: 0; -EPIPE the runtime is gone; -EPROTO. */
int sl_worker_link_begin(struct sl_worker_link *link, const struct sl_worker_fds *fds);

/* Before it is ready: what was found out about its plan, or -1, and why what came with the start was of no use, or "". */
void sl_worker_link_tell_choices(struct sl_worker_link *link, int fd, const char *ignored);

/* Unmaps and closes whatever there is. */
void sl_worker_link_end(struct sl_worker_link *link);

/* Maps what is shared. Return: 0; -errno with a text. */
int sl_worker_link_map(struct sl_worker_link *link, struct sl_error *error);

/* Is there a job? Spins for as long as it was told. */
bool sl_worker_link_look(struct sl_worker_link *link);

/* Sleeps until there is one, for a second at most, and hears what regions are to be forgotten. */
void sl_worker_link_sleep(struct sl_worker_link *link);

/*
 * The same for who has several links: about to sleep, until @ret_rung is no longer what the link's `rung` says. False: there is a
 * job, or the runtime is gone. Then awake, in either case.
 */
bool sl_worker_link_doze(struct sl_worker_link *link, uint32_t *ret_rung);
void sl_worker_link_rouse(struct sl_worker_link *link);

/* Hears what has come, without waiting. */
void sl_worker_link_hear(struct sl_worker_link *link);

/* There is a job that has not been taken. */
bool sl_worker_link_waits(const struct sl_worker_link *link);

/* That of the job that was taken last. */
static inline uint32_t sl_worker_link_slot(const struct sl_worker_link *link)
{
        return link->slot;
}

/* That of the next job. Before: there is one. */
uint32_t sl_worker_link_next(const struct sl_worker_link *link);

/* The next job, copied to @job; its regions are mapped, or their base is NULL. Before: there is one. */
void sl_worker_link_take(struct sl_worker_link *link, struct sl_job *job);

/* Which pieces of the slot's job, that was taken and is not answered, may be combined here: one for each. */
const struct sl_process_gather *sl_worker_link_gathers(const struct sl_worker_link *link, const struct sl_job *job, uint32_t slot);

/* So many jobs are computed and wait for what others make. */
void sl_worker_link_rest(struct sl_worker_link *link, uint32_t jobs);

/* Every input of the piece can be reached. */
bool sl_worker_link_reaches(const struct sl_worker_link *link, struct sl_job *job, uint32_t piece);

/*
 * While a job is computed: asks the runtime for memory for data-dependent steps, @wanted bytes in all, and sleeps until it has
 * answered. False: it gives no more.
 */
bool sl_worker_link_grow(struct sl_worker_link *link, struct sl_pool_grant *grant, uint64_t wanted);

/* Of the job in that slot. */
void sl_worker_link_answer(
        struct sl_worker_link *link, uint32_t slot, const struct sl_job *job, const struct sl_prediction *prediction);

/* @status: 0, or why it cannot start. @text: what the sandbox lacks (or NULL), or why. */
void sl_worker_link_ready(struct sl_worker_link *link, int status, uint64_t first_ns, const char *text);
