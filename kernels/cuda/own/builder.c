/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/own/builder.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRID_MAX 65535 /* blocks along one dimension; kernels go on from there in steps of the grid */

struct sl_own_launch *sl_own_add(
        struct sl_own_builder *builder, uint32_t kernel, const void *argument, size_t bytes, uint64_t threads)
{
        struct sl_own_launch *launch = &builder->spare, *launches;
        uint64_t blocks = (threads + SL_OWN_BLOCK - 1) / SL_OWN_BLOCK;

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
        launch->block[0] = SL_OWN_BLOCK;
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

/* Towards zero; what is out of range becomes the nearest limit, NaN becomes 0 (and true). */
static uint64_t saturate(double value, uint32_t dtype)
{
        int bits = 8 * (int)sl_dtype_bytes(dtype);
        bool is_signed = dtype == SL_DTYPE_I8 || dtype == SL_DTYPE_I16 || dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_I64;

        if (dtype == SL_DTYPE_BOOL)
                return value != 0;
        if (isnan(value))
                return 0;
        if (!is_signed)
                return value >= ldexp(1, bits) ? UINT64_MAX >> (64 - bits) : value <= 0 ? 0 : (uint64_t)value;
        if (value >= ldexp(1, bits - 1))
                return (uint64_t)INT64_MAX >> (64 - bits);
        return (uint64_t)(value < -ldexp(1, bits - 1) ? INT64_MIN >> (64 - bits) : (int64_t)value);
}

uint64_t sl_own_bits(double value, uint32_t dtype)
{
        float narrow = (float)value;
        uint64_t bits = 0;

        switch (dtype) {
        case SL_DTYPE_F32:
                memcpy(&bits, &narrow, sizeof(narrow));
                return bits;
        case SL_DTYPE_F64:
                memcpy(&bits, &value, sizeof(value));
                return bits;
        case SL_DTYPE_F16:
                return sl_narrow_f16(narrow);
        case SL_DTYPE_BF16:
                return sl_narrow_bf16(narrow);
        default:
                return saturate(value, dtype);
        }
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

/* @ret_size: of both together. Without elements, a tensor may have dimensions of any size beside one of 0. */
static bool can_merge(const struct sl_own_box *box, uint32_t outer, int64_t *ret_size)
{
        int64_t stride;

        for (uint32_t k = 0; k < box->n_tensors; k++)
                if (__builtin_mul_overflow(box->strides[k][outer + 1], box->sizes[outer + 1], &stride) ||
                        box->strides[k][outer] != stride)
                        return false;
        return !__builtin_mul_overflow(box->sizes[outer], box->sizes[outer + 1], ret_size);
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
        int64_t size;

        for (uint32_t d = box->rank; d-- > 0 && box->rank > 1;)
                if (box->sizes[d] == 1)
                        drop(box, d);
        for (uint32_t d = box->rank; d-- > 1;)
                if (can_merge(box, d - 1, &size)) {
                        box->sizes[d] = size;
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

uint32_t sl_own_dimension_at(const struct sl_tensor *tensor, uint32_t d)
{
        if (tensor->layout != SL_LAYOUT_CHANNELS_LAST || d == 0)
                return d;
        return d + 1 == tensor->shape.rank ? 1 : d + 1;
}

void sl_own_box_add(struct sl_own_box *box, const struct sl_tensor *tensor, const int64_t *strides)
{
        for (uint32_t d = 0; d < box->rank; d++)
                box->strides[box->n_tensors][d] = strides[sl_own_dimension_at(tensor, d)];
        box->n_tensors++;
}

void sl_own_box_over(const struct sl_tensor *order, const struct sl_shape *sizes, struct sl_own_box *ret_box)
{
        *ret_box = (struct sl_own_box){.rank = sizes->rank};
        for (uint32_t d = 0; d < ret_box->rank; d++)
                ret_box->sizes[d] = sizes->dims[sl_own_dimension_at(order, d)];
}

void sl_own_box_of(const struct sl_tensor *tensor, struct sl_own_box *ret_box)
{
        int64_t strides[SL_RANK_MAX];

        sl_own_box_over(tensor, &tensor->shape, ret_box);
        sl_tensor_strides(tensor, strides);
        sl_own_box_add(ret_box, tensor, strides);
}
