/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OneHot: rows of what is off, and one element of what is on for each index that is a place. Others, and what is no whole number,
 * leave a row off.
 */
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <string.h>

struct one_hot {
        int64_t outer, depth, inner;
        size_t bytes;
        uint32_t dtype; /* of the indices */
};

static bool one_hot_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *indices = &node->inputs[0], *y = &node->outputs[0];
        struct one_hot *h = state;
        uint32_t axis;

        (void)sizes;
        if (sl_cpu_input(node, 2) || indices->layout != SL_LAYOUT_PLAIN || y->layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(y) ||
                sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), y->shape.rank, &axis, NULL))
                return false;
        h->outer = h->inner = 1;
        for (uint32_t d = 0; d < y->shape.rank; d++) {
                h->outer *= d < axis ? y->shape.dims[d] : 1;
                h->inner *= d > axis ? y->shape.dims[d] : 1;
        }
        h->depth = y->shape.dims[axis];
        h->bytes = sl_dtype_bytes(y->dtype);
        h->dtype = indices->dtype;
        return h->dtype == SL_DTYPE_I64 || h->dtype == SL_DTYPE_I32 || h->dtype == SL_DTYPE_F32;
}

/* -1: it is no place. */
static inline int64_t place_of(const struct one_hot *h, const void *indices, int64_t i)
{
        int64_t index;

        if (h->dtype == SL_DTYPE_F32) {
                float x = ((const float *)indices)[i];

                if (!(x >= -(float)h->depth && x < (float)h->depth) || x != (float)(int64_t)x)
                        return -1;
                index = (int64_t)x;
        } else {
                index = h->dtype == SL_DTYPE_I64 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
        }
        if (index < -h->depth || index >= h->depth)
                return -1;
        return index < 0 ? index + h->depth : index;
}

#define DEFINE_FILL(bits)                                                                                                          \
        SL_CPU_CLONES static void fill_##bits(int64_t n, uint##bits##_t *y, uint##bits##_t value)                                  \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = value;                                                                                              \
        }

DEFINE_FILL(16)
DEFINE_FILL(32)
DEFINE_FILL(64)

static void fill(char *y, int64_t n, const char *value, size_t bytes)
{
        uint64_t bits = 0;

        memcpy(&bits, value, bytes);
        if (!bits || bytes == 1)
                memset(y, (int)bits, (size_t)n * bytes);
        else if (bytes == 2)
                fill_16(n, (void *)y, (uint16_t)bits);
        else if (bytes == 4)
                fill_32(n, (void *)y, (uint32_t)bits);
        else
                fill_64(n, (void *)y, bits);
}

static int one_hot_run(const void *state, const struct sl_binding *binding)
{
        const struct one_hot *h = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, h->outer);
        const char *off = binding->inputs[1], *on = off + h->bytes;
        int64_t elements = h->depth * h->inner;

        for (int64_t o = rows.first; o < rows.end; o++) {
                char *y = (char *)binding->outputs[0] + (size_t)(o * elements) * h->bytes;

                fill(y, elements, off, h->bytes);
                for (int64_t j = 0; j < h->inner; j++) {
                        int64_t place = place_of(h, binding->inputs[0], o * h->inner + j);

                        if (place >= 0)
                                memcpy(y + (size_t)(place * h->inner + j) * h->bytes, on, h->bytes);
                }
        }
        return 0;
}

static int64_t one_hot_units(const void *state, uint32_t axis)
{
        return axis == SL_AXIS_ROWS ? ((const struct one_hot *)state)->outer : 0;
}

static bool one_hot_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct one_hot *h = state;

        if (operand == SL_REACH_OUTPUT)
                return sl_reach_rows(part, h->depth * h->inner * (int64_t)h->bytes, ret_reach);
        return operand == 0 && sl_reach_rows(part, h->inner * (int64_t)sl_dtype_bytes(h->dtype), ret_reach);
}

const struct sl_cpu_loop sl_cpu_one_hot = {.state_bytes = sizeof(struct one_hot),
        .plan = one_hot_plan,
        .run = one_hot_run,
        .units = one_hot_units,
        .reach = one_hot_reach};
