/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process executor's own state, shared by its two files: process_executor.c (jobs and answers, the dispatcher's) and
 * worker_process.c (the process itself, the control thread's).
 */
#pragma once

#include "process_executor.h"
#include "process_link.h"
#include "process_staging.h"
#include "segment.h"

#include <stddef.h>
#include <sys/types.h>

struct sl_process {
        struct sl_executor common;
        struct sl_process_executor_options options;
        struct sl_process_staging staging;
        struct sl_regions_watch watch;
        struct sl_mapping order_map, reply_map;
        struct sl_process_order *order;
        struct sl_process_reply *reply;
        int socket_fd, pid_fd;
        pid_t pid;       /* 0: it has been reaped, or never was */
        char ended[160]; /* why; written before S1 */

        /* dispatcher */
        void *memory;     /* of the jobs, which only this process writes to */
        uint32_t *mapped; /* [regions]: serial that the worker has; 0: none */
        uint32_t maps;    /* sent */
        uint32_t given, taken;
        bool distrusted;                      /* it has answered what cannot be: nothing of it is believed any more */
        _Atomic bool useful;                  /* it has answered something; read by control */
        bool accounted[SL_EXECUTOR_JOBS_MAX]; /* an answer has accounted for the slot's job */
        uint64_t given_ns[SL_EXECUTOR_JOBS_MAX];
        uint32_t first[SL_EXECUTOR_JOBS_MAX]; /* the number of each slot's job: of `given` */
};

static inline struct sl_process *sl_process_of(const struct sl_executor *executor)
{
        return (struct sl_process *)((const char *)executor - offsetof(struct sl_process, common));
}

/* Shares memory with a new process and tells it what to do. Return: 0; -errno with a text. */
int sl_process_start(struct sl_process *process, struct sl_error *error);

/* From any thread, until it is stopped: the control thread hears of its end and reaps it. */
void sl_process_kill(struct sl_process *process);

/* Whatever of it there is. */
void sl_process_stop(struct sl_process *process);
