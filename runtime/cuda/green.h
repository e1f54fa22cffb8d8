/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets of a GPU: green contexts over atoms of multiprocessors, and streams on them. A let that makes room for another one goes on
 * with what its streams have, beside the new one, until the last of them ends: the atoms that both have are shared until then. One
 * thread, with the device's context.
 *
 *     new --> streams --> dropped by its owner --> last stream ended: destroyed
 *       |                     ^
 *       +--> retired: its atoms are others' --> restored
 */
#pragma once

#include "cuda/driver/device.h"
#include "let_map.h"

struct sl_green;

struct sl_greens {
        const struct sl_cuda_device *device;
        struct sl_let_map map;
        struct sl_green *first;                /* of all that there are */
        int least_priority, greatest_priority; /* of streams: the greatest has the lowest number */
        CUdevResource groups[SL_LET_ATOMS_MAX];
};

/* A device that cannot be cut has no atoms, and refuses lets. Return: 0; what sl_cuda_errno() says. */
int sl_greens_init(struct sl_greens *greens, const struct sl_cuda_device *device, struct sl_error *error);

/* Return: 0; -EBUSY; -ENOTSUP; an error. */
int sl_green_new(struct sl_greens *greens, uint32_t percent, struct sl_green **ret_green, struct sl_error *error);

/* Other lets may have its atoms from now on; its streams keep them. */
void sl_green_retire(struct sl_green *green);

/*
 * It has them for itself again, but for what others have taken meanwhile, which is shared until those give it back. Before: it was
 * retired.
 */
void sl_green_restore(struct sl_green *green);

/* Its owner makes no more streams on it. NULL is fine. Returns NULL. */
struct sl_green *sl_green_drop(struct sl_green *green);

/* Multiprocessors that it has, or had. */
uint32_t sl_green_processors(const struct sl_green *green);

/*
 * A stream on it; @green NULL: on the whole device. @priority: from 0, the lowest, on; what is beyond the device's range is its
 * end.
 */
int sl_green_stream(
        const struct sl_greens *greens, struct sl_green *green, uint32_t priority, CUstream *ret_stream, struct sl_error *error);

/* It has nothing left to do. NULL is fine. */
void sl_green_end_stream(const struct sl_greens *greens, struct sl_green *green, CUstream stream);
