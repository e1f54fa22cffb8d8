/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets of a GPU that workers share: one for each percentage, there while a worker is on it. A model whose let becomes larger or
 * smaller has workers on the new one before the old ones leave. So a worker says who leaves when it has come; and a let on which
 * all leave makes room for those that come, whose streams may have the same multiprocessors for as long as both are there:
 *
 *     claim, of a crew --> take: joins the let of that size; makes one of what is free; makes one of what lets have whose workers
 * all leave |                                                                         (released again: they have it back)
 *           +--> -EBUSY: others may still come that make room
 *
 * Sources: gpulets (S. Choi et al., 2022), section 5, "Dynamic partition reorganizer": while the old lets serve. One thread, with the device's
 * context.
 */
#pragma once

#include "gpu_part.h"
#include "green.h"

struct sl_gpu_claim;

struct sl_gpu_lets {
        struct sl_greens greens;
        struct sl_gpu_claim *newest;
        struct {
                uint32_t n_workers; /* 0: the row is free */
                uint32_t percent;
                bool retired; /* others may have what it has: nobody joins it */
                struct sl_green *green;
        } rows[SL_LET_ATOMS_MAX];
};

/* Return: 0; what sl_cuda_errno() says. */
int sl_gpu_lets_init(struct sl_gpu_lets *lets, const struct sl_cuda_device *device, struct sl_error *error);

/* What a worker wants of the device, which counts as of now: whom it replaces leaves. NULL: no memory. */
struct sl_gpu_claim *sl_gpu_lets_claim(struct sl_gpu_lets *lets, const struct sl_gpu_part *part);

/* Its let; none for all of the device. Return: 0; -EBUSY, -ENOTSUP, -ENOMEM, ... with the line. */
int sl_gpu_lets_take(struct sl_gpu_lets *lets, struct sl_gpu_claim *claim, struct sl_error *error);

/* NULL: all of the device. */
struct sl_green *sl_gpu_lets_green(const struct sl_gpu_lets *lets, const struct sl_gpu_claim *claim);

/* Its worker is gone, or will not come. NULL is fine. Returns NULL. */
struct sl_gpu_claim *sl_gpu_lets_release(struct sl_gpu_lets *lets, struct sl_gpu_claim *claim);
