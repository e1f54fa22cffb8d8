/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/own/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_THREADS 256
#define GRID_MAX      65535 /* blocks along one dimension; kernels go on from there in steps of the grid */

struct sl_own_launch *sl_own_add(
        struct sl_own_builder *builder, uint32_t kernel, const void *argument, size_t bytes, uint64_t threads)
{
        struct sl_own_launch *launch = &builder->spare, *launches;
        uint64_t blocks = (threads + BLOCK_THREADS - 1) / BLOCK_THREADS;

        if (builder->plan) {
                launches = reallocarray(builder->plan->launches, builder->plan->n_launches + 1, sizeof(*launches));
                if (launches) {
                        builder->plan->launches = launches;
                        launch = &launches[builder->plan->n_launches++];
                } else {
                        builder->error = -ENOMEM;
                }
        }
        memset(launch, 0, sizeof(*launch));
        launch->kernel = kernel;
        launch->grid[0] = (uint32_t)(blocks < GRID_MAX ? blocks : GRID_MAX);
        launch->block[0] = BLOCK_THREADS;
        launch->grid[1] = launch->grid[2] = launch->block[1] = launch->block[2] = 1;
        memcpy(launch->argument, argument, bytes);
        return launch;
}

void sl_own_slot(struct sl_own_launch *launch, size_t offset, enum sl_own_source source, uint32_t index, uint64_t bytes)
{
        launch->slots[launch->n_slots++] = (struct sl_own_slot){(uint16_t)offset, (uint8_t)source, (uint8_t)index, bytes};
}

uint64_t sl_own_scratch(struct sl_own_builder *builder, uint64_t bytes)
{
        uint64_t at = builder->plan ? builder->plan->scratch_bytes : 0;

        if (builder->plan)
                builder->plan->scratch_bytes += (bytes + 255) & ~255ull;
        return at;
}

void sl_own_checks(struct sl_own_builder *builder)
{
        if (builder->plan)
                builder->plan->checks = true;
}

struct sl_own_divisor sl_own_divide_by(uint64_t divisor)
{
        uint32_t shift = 0;

        divisor = divisor ? divisor : 1; /* of a tensor without elements, which is never launched over */
        while (1ull << shift < divisor)
                shift++;
        return (struct sl_own_divisor){
                (uint32_t)divisor, (uint32_t)(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1), shift};
}

static bool can_merge(const struct sl_own_box *box, uint32_t outer)
{
        for (uint32_t k = 0; k < box->n_tensors; k++)
                if (box->strides[k][outer] != box->strides[k][outer + 1] * box->sizes[outer + 1])
                        return false;
        return true;
}

static void drop(struct sl_own_box *box, uint32_t dim)
{
        for (uint32_t d = dim; d + 1 < box->rank; d++) {
                box->sizes[d] = box->sizes[d + 1];
                for (uint32_t k = 0; k < box->n_tensors; k++)
                        box->strides[k][d] = box->strides[k][d + 1];
        }
        box->rank--;
}

void sl_own_collapse(struct sl_own_box *box)
{
        for (uint32_t d = box->rank; d-- > 0 && box->rank > 1;)
                if (box->sizes[d] == 1)
                        drop(box, d);
        for (uint32_t d = box->rank; d-- > 1;)
                if (can_merge(box, d - 1)) {
                        box->sizes[d] *= box->sizes[d - 1];
                        drop(box, d - 1);
                }
        if (!box->rank) {
                box->rank = 1;
                box->sizes[0] = 1;
                for (uint32_t k = 0; k < box->n_tensors; k++)
                        box->strides[k][0] = 1;
        }
}

void sl_own_broadcast(const struct sl_tensor *tensor, const struct sl_shape *shape, int64_t ret_strides[SL_RANK_MAX])
{
        uint32_t missing = shape->rank - tensor->shape.rank;
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(tensor, strides);
        for (uint32_t d = 0; d < shape->rank; d++)
                ret_strides[d] = d < missing || tensor->shape.dims[d - missing] == 1 ? 0 : strides[d - missing];
}

/* Which logical dimension is the @d-th in memory. */
static uint32_t dimension_at(const struct sl_tensor *tensor, uint32_t d)
{
        if (tensor->layout != SL_LAYOUT_CHANNELS_LAST || d == 0)
                return d;
        return d + 1 == tensor->shape.rank ? 1 : d + 1;
}

void sl_own_box_add(struct sl_own_box *box, const struct sl_tensor *tensor, const int64_t strides[SL_RANK_MAX])
{
        for (uint32_t d = 0; d < box->rank; d++)
                box->strides[box->n_tensors][d] = strides[dimension_at(tensor, d)];
        box->n_tensors++;
}

void sl_own_box_of(const struct sl_tensor *tensor, struct sl_own_box *ret_box)
{
        int64_t strides[SL_RANK_MAX];

        *ret_box = (struct sl_own_box){.rank = tensor->shape.rank};
        for (uint32_t d = 0; d < ret_box->rank; d++)
                ret_box->sizes[d] = tensor->shape.dims[dimension_at(tensor, d)];
        sl_tensor_strides(tensor, strides);
        sl_own_box_add(ret_box, tensor, strides);
}
