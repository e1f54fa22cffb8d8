/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker in the process of a GPU: its end of the mailboxes that it shares with the runtime, and the worker of runtime/cuda that
 * computes its jobs, as many at once as the runtime gives. Pieces are answered when they are there, in whatever order; those of an
 * ensemble whose members are all on this GPU may wait for each other here (gpu_accumulator.h). One thread, with the device's
 * context.
 */
#pragma once

#include "gpu_attach.h"
#include "gpu_programs.h"

#include <stdbool.h>

struct sl_gpu_seat;

/*
 * Of a worker that has come, whose link and whose claim, with its let, are the seat's from now on, in any case. Load time: its
 * plan, its graphs, a first sample. Return: 0, and the runtime has been told that it is ready; -errno: it has been told why not.
 */
int sl_gpu_seat_new(const struct sl_gpu_attach *attach, struct sl_gpu_claim *claim, struct sl_gpu_programs *programs,
        struct sl_gpu_seat **ret_seat);

/* Waits for what is on its way. NULL is fine. Returns NULL. */
struct sl_gpu_seat *sl_gpu_seat_free(struct sl_gpu_seat *seat);

/* Takes what has been given, goes on with what there is, answers what has ended. Return: did anything happen? */
bool sl_gpu_seat_go_on(struct sl_gpu_seat *seat);

/* It has jobs. */
bool sl_gpu_seat_is_busy(const struct sl_gpu_seat *seat);

struct sl_worker_link *sl_gpu_seat_link(struct sl_gpu_seat *seat);

/* The device is lost: with the text. */
int sl_gpu_seat_lost(const struct sl_gpu_seat *seat, struct sl_error *error);

/* Its jobs fail with that cause, and the runtime is told that the process ends. */
void sl_gpu_seat_give_up(struct sl_gpu_seat *seat, const char *why);
