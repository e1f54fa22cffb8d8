/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of one model in the memory of a GPU (E2bird, section 5): each is copied into its slot as soon as it has come, by a stream
 * of its own, so that a batch finds its inputs there, one behind the other, when a worker has time. A batch of a mirrored pool may
 * go over the end of the buffer.
 *
 * Order. Copies go to one stream, in the order of their slots; an event behind each copy is of its last slot. A worker's stream
 * waits for the event of the last slot of its batch, and so for all copies before it. A slot is filled again only after the batch
 * that reads it was given back, which its owner does when he has seen that it ended: no copy waits for a batch on the device. A
 * byte is written at one address and read at another, its mirror's, only by operations one of which has ended before the other
 * begins.
 *
 * One thread, with the device's context.
 */
#pragma once

#include "cuda/driver/device.h"
#include "pool_layout.h"

struct sl_pool;

struct sl_pool_options {
        const struct sl_cuda_device *device;
        const uint64_t *slot_bytes; /* of a sample, for each input */
        uint32_t n_inputs;
        uint32_t n_slots;   /* or more: pool_layout.h */
        uint64_t bytes_max; /* of device memory */
};

/* May block. Return: 0; -ENOMEM, -E2BIG the text says how much it wanted; -EINVAL; what sl_cuda_errno() says. */
int sl_pool_new(const struct sl_pool_options *options, struct sl_pool **ret_pool, struct sl_error *error);

/* All batches were given back. Waits for copies that are under way. NULL is fine. Returns NULL. */
struct sl_pool *sl_pool_free(struct sl_pool *pool);

const struct sl_pool_layout *sl_pool_layout_of(const struct sl_pool *pool);

/* How many samples can be put, and how many wait to be taken. */
uint32_t sl_pool_room(const struct sl_pool *pool);
uint32_t sl_pool_waiting(const struct sl_pool *pool);

/*
 * Who found no room: what is given back next is for it, so that whoever has much to do does not keep it all. Others do not put
 * anything until it has put something, or has gone; and it does not want the next turn before somebody else could.
 */
bool sl_pool_is_turn_of(const struct sl_pool *pool, const void *who);
void sl_pool_want_turn(struct sl_pool *pool, const void *who);
void sl_pool_end_turn(struct sl_pool *pool, const void *who);

/* How many of the samples that are put next lie behind each other. */
uint32_t sl_pool_run(const struct sl_pool *pool);

/* Where the samples of an input begin: its first slot. */
CUdeviceptr sl_pool_address(const struct sl_pool *pool, uint32_t input);

/* Where the last batch of @n begins: that of a mirrored pool goes over the end. */
CUdeviceptr sl_pool_last_address(const struct sl_pool *pool, uint32_t input, uint32_t n);

/*
 * Starts to copy @n samples, which lie one behind the other at inputs[i], in memory that stays as it is until sl_pool_has_copied()
 * says so of *ret_position. Return: 0; -EAGAIN no room for all of them; what sl_cuda_errno() says: the pool is then lost.
 */
int sl_pool_put(struct sl_pool *pool, const void *const *inputs, uint32_t n, uint64_t *ret_position, struct sl_error *error);

/* Return: 1 the samples that were put at @position have been copied; 0 not yet; an error. */
int sl_pool_has_copied(struct sl_pool *pool, uint64_t position);

/* What the driver said when the pool was lost; CUDA_ERROR_UNKNOWN: it was not. */
CUresult sl_pool_failed(const struct sl_pool *pool);

struct sl_pool_batch {
        uint64_t first;
        uint32_t n;
        CUdeviceptr inputs[SL_POOL_INPUTS_MAX];
};

/*
 * Up to @most of the samples that have waited longest, contiguous; what @stream is given from now on finds them copied. Return: how
 * many, also in the batch; 0 none waits; an error.
 */
int sl_pool_take(struct sl_pool *pool, uint32_t most, CUstream stream, struct sl_pool_batch *ret_batch, struct sl_error *error);

/* What reads the batch has ended. Return: 0; -EINVAL it is none that is out. */
int sl_pool_give_back(struct sl_pool *pool, const struct sl_pool_batch *batch);
