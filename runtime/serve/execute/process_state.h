/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process executor's own state, shared by its files: process_order.c (jobs that go) and process_executor.c (answers that come),
 * process_growth.c (memory that is asked for), which are the dispatcher's; worker_process.c (the process itself), the control
 * thread's; and process_hang.c, of both.
 */
#pragma once

#include "growth.h"
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
        pid_t pid;                     /* 0: it has been reaped, or never was; on a GPU always */
        struct sl_growth_share growth; /* what its data-dependent steps have; the dispatcher's while it runs */
        struct sl_gpu_host *host;      /* whose process it shares, on a GPU; else NULL */
        char ended[160];               /* why; written before S1 */
        bool refused;                  /* that it cannot start is what it has said itself */

        /* control: on a GPU */
        bool timing, has_choices;
        struct sl_process_choices choices; /* heard, and not taken yet */

        /* control, which looks whether it hangs */
        uint64_t looked_ns;
        uint32_t seen;  /* `taken`, then */
        uint32_t looks; /* one after another in which it had a job and `taken` was the same */

        /* dispatcher */
        void *memory;                                /* of the jobs, which only this process writes to */
        uint32_t *mapped;                            /* [regions]: serial that the worker has; 0: none */
        bool *writable;                              /* [regions]: it may write there */
        uint32_t maps;                               /* sent */
        uint32_t filled;                             /* jobs, ever: n_given of them have not been answered */
        uint32_t given;                              /* of them, those that the worker has been told of */
        uint8_t filled_slots[SL_EXECUTOR_SLOTS_MAX]; /* of the jobs filled, in this order, as a ring */
        uint32_t numbers[SL_EXECUTOR_SLOTS_MAX];     /* of the slots' jobs, of all that were filled: from 0 on */
        uint32_t heard;                              /* packets, as the worker said before the last try to give the others */
        bool distrusted;                             /* it has answered what cannot be: nothing of it is believed any more */
        _Atomic uint32_t taken;                      /* answers; read by control, as the next two */
        _Atomic bool busy;                           /* it has a job */
        _Atomic uint64_t slowest_ns;                 /* of its answers */
        uint64_t answered_ns;                        /* the last of them */
        uint64_t given_ns[SL_EXECUTOR_SLOTS_MAX];
        uint32_t unaccounted[SL_EXECUTOR_SLOTS_MAX]; /* samples of the slot's job that no answer has accounted for */
};

static inline struct sl_process *sl_process_of(const struct sl_executor *executor)
{
        return (struct sl_process *)((const char *)executor - offsetof(struct sl_process, common));
}

/* Dispatcher: gives the slot's job, which is filled; or holds it while the worker has no room to hear of regions. */
void sl_process_order(struct sl_process *process, uint32_t slot);

/* Is a job held, and can it be tried again? seq_cst. */
bool sl_process_order_waits(const struct sl_process *process);

/* It has asked for memory, and sleeps until there is an answer. seq_cst. */
bool sl_process_asks(const struct sl_process *process);
void sl_process_answer_ask(struct sl_process *process);

/* An answer has come: shows what it says that it has used. */
void sl_process_note_used(struct sl_process *process);

/* Gives what was held, if it can. */
void sl_process_order_again(struct sl_process *process);

/* Dispatcher: whether it has a job may have changed; an answer has come, of the slot's job. */
void sl_process_note_busy(struct sl_process *process);
void sl_process_note_answer(struct sl_process *process, uint32_t slot, uint64_t now_ns);

/* Shares memory with a new process and tells it what to do. Return: 0; -errno with a text. */
int sl_process_start(struct sl_process *process, struct sl_error *error);

/* Wakes the worker if it sleeps; call it behind what it is to find. Any thread, until it is stopped. */
void sl_process_wake(struct sl_process *process);

/* From any thread, until it is stopped: the control thread hears of its end and reaps it. */
void sl_process_kill(struct sl_process *process);

/* One on a GPU that is starting, and whose process was killed and does not end: it has ended for everybody here. Control. */
void sl_process_leave_behind(struct sl_process *process);

/* Whatever of it there is. */
void sl_process_stop(struct sl_process *process);
