/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the walk over a plan file (plan_check.c), in their order, and what they share. Return of a part: 0; -EBADMSG. */
#pragma once

#include "base/error.h"
#include "op.h"
#include "plan_map.h"

#include <string.h>

int sl_plan_point_info(struct sl_plan *plan, struct sl_error *error); /* also -ENOMEM; makes plan->info */
int sl_plan_check_info(const struct sl_plan *plan, struct sl_error *error);
int sl_plan_check_fallbacks(const struct sl_plan *plan, struct sl_error *error);
int sl_plan_check_attrs(const struct sl_plan *plan, struct sl_error *error);
int sl_plan_check_programs(const struct sl_plan *plan, struct sl_error *error);

static inline int sl_plan_damaged(struct sl_error *error, const char *what, uint64_t value, uint64_t limit)
{
        return sl_error_set(error, EBADMSG, "plan file: %s is %llu, the limit is %llu", what, (unsigned long long)value,
                (unsigned long long)limit);
}

static inline const void *sl_plan_section_at(const struct sl_plan *plan, enum sl_plan_section_id id)
{
        return plan->bytes + plan->header->sections[id].offset;
}

static inline bool sl_plan_text_ends(const char *text, size_t bytes)
{
        return memchr(text, 0, bytes) != NULL;
}

/* A dimension is at most the largest tensor, so that products with strides stay far from 2^64. */
static inline bool sl_plan_shape_is_sound(const struct sl_shape *shape)
{
        if (shape->rank > SL_RANK_MAX)
                return false;
        for (uint32_t i = 0; i < shape->rank; i++) {
                if (shape->dims[i] < 0 || (uint64_t)shape->dims[i] > SL_PLAN_BYTES_MAX)
                        return false;
        }
        return true;
}

static inline bool sl_plan_tensor_is_sound(const struct sl_tensor *tensor)
{
        if (!sl_dtype_bytes(tensor->dtype) || !sl_plan_shape_is_sound(&tensor->shape))
                return false;
        if (tensor->layout == SL_LAYOUT_CHANNELS_LAST && (tensor->shape.rank < 3 || tensor->shape.rank > 5))
                return false;
        return tensor->layout <= SL_LAYOUT_CHANNELS_LAST && sl_tensor_bytes(tensor) <= SL_PLAN_BYTES_MAX;
}

/* Of a value whose shape is known when it runs: what is written of it is a hint. */
static inline bool sl_plan_open_tensor_is_sound(const struct sl_tensor *tensor)
{
        if (!sl_dtype_bytes(tensor->dtype) || tensor->shape.rank > SL_RANK_MAX || tensor->layout != SL_LAYOUT_PLAIN)
                return false;
        for (uint32_t i = 0; i < tensor->shape.rank; i++) {
                int64_t dim = tensor->shape.dims[i];

                if (dim < SL_DIM_UNKNOWN || dim > (int64_t)SL_PLAN_BYTES_MAX)
                        return false;
        }
        return true;
}

/* The port's tensor at a batch size. */
static inline struct sl_tensor sl_plan_port_tensor(const struct sl_port *port, uint64_t batch)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};

        if (port->batch_axis == 0 && port->shape.rank)
                tensor.shape.dims[0] = (int64_t)batch;
        return tensor;
}
