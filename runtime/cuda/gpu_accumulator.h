/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulator of a GPU: predictions of ensembles whose members are all on it stay on the device (held_segments.h), are combined
 * there in model order when all of a segment are there, and one result is copied out instead of a prediction for each member. What
 * cannot be combined here is copied out member by member, for the runtime to combine.
 *
 *     workers' streams of results   | copy a prediction to its room |   the host sees it end
 *     stream of the accumulator                                         | combine | copy the result | record |
 *
 * The arithmetic is that of serve/execute/combine.h: to the bit for mean and weighted mean, for maximum but for the sign of a zero,
 * for a vote but where a member says NaN; a geometric mean is within rounding, as the device has its own log and exp and sums a row
 * in another order.
 *
 * No stream waits for anything: copies and kernels are queued when the host has seen their predictions there. One thread, with the
 * device's context.
 */
#pragma once

#include "gpu.h"
#include "green.h"
#include "held_segments.h"

struct sl_cuda_own;
struct sl_gpu_accumulator;

/* Room for predictions, on the device. */
#define SL_GPU_ACCUMULATOR_BYTES (16ull << 20)

/* @own: outlives it. Load time. Return: 0; -ENOMEM one line; what sl_cuda_errno() says. */
int sl_gpu_accumulator_new(struct sl_gpu *gpu, const struct sl_greens *greens, const struct sl_cuda_own *own,
        struct sl_gpu_accumulator **ret_accumulator, struct sl_error *error);

/* Waits for what is on its way. Nothing is held. NULL is fine. Returns NULL. */
struct sl_gpu_accumulator *sl_gpu_accumulator_free(struct sl_gpu_accumulator *accumulator);

/* As sl_held_come(). @ret_outputs: [n_outputs], where on the device the prediction is to be put, if it is held. */
bool sl_gpu_accumulator_come(
        struct sl_gpu_accumulator *accumulator, const struct sl_held_shape *shape, struct sl_held_piece *piece, void **ret_outputs);

/* Queues what can leave, and looks what has left. Return: did anything happen? */
bool sl_gpu_accumulator_go_on(struct sl_gpu_accumulator *accumulator, uint64_t now_ns);

/* As sl_held_drop(), also of a piece that leaves, for which it waits. Nothing else copies to its room. */
void sl_gpu_accumulator_drop(struct sl_gpu_accumulator *accumulator, struct sl_held_piece *piece);

/* 0; -EIO: the device, or this process's use of it, is lost; the text says how. */
int sl_gpu_accumulator_lost(const struct sl_gpu_accumulator *accumulator, struct sl_error *error);
