/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pad that repeats the tensor's own elements: mirrored, the edge, or from the other end. What lies inside of the innermost
 * dimension is copied in one piece. Any type, both layouts. The shape rule has seen to it that every index finds an element.
 */
#include "cpu/movement/loops.h"
#include "shape/slice.h"

#include <string.h>

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE };

/* Dimensions in the order of the output's memory, the outermost first. */
struct pad {
        uint32_t rank, mode, element_bytes;
        int64_t to_size[SL_RANK_MAX], from_size[SL_RANK_MAX], begin[SL_RANK_MAX];
        int64_t to_stride[SL_RANK_MAX], from_stride[SL_RANK_MAX]; /* in bytes */
};

static int64_t source_of(const struct pad *pad, uint32_t axis, int64_t i)
{
        int64_t at = i - pad->begin[axis], size = pad->from_size[axis];

        if (at >= 0 && at < size)
                return at;
        if (pad->mode == PAD_REFLECT)
                return at < 0 ? -at : 2 * (size - 1) - at;
        if (pad->mode == PAD_EDGE)
                return at < 0 ? 0 : size - 1;
        return (at % size + size) % size;
}

static void pad_some(const struct pad *pad, uint32_t axis, int64_t first, int64_t end, char *to, const char *from)
{
        for (int64_t i = first; i < end; i++)
                memcpy(to + i * pad->to_stride[axis], from + source_of(pad, axis, i) * pad->from_stride[axis], pad->element_bytes);
}

/* What lies in the input from @first to @end of the row is there in order. */
static void pad_row(const struct pad *pad, char *to, const char *from)
{
        uint32_t axis = pad->rank - 1;
        int64_t size = pad->to_size[axis], first = pad->begin[axis] < 0 ? 0 : pad->begin[axis];
        int64_t end = pad->begin[axis] + pad->from_size[axis] < size ? pad->begin[axis] + pad->from_size[axis] : size;

        if (first >= end || pad->to_stride[axis] != pad->element_bytes || pad->from_stride[axis] != pad->element_bytes) {
                pad_some(pad, axis, 0, size, to, from);
                return;
        }
        pad_some(pad, axis, 0, first, to, from);
        memcpy(to + first * pad->element_bytes, from + (first - pad->begin[axis]) * pad->element_bytes,
                (size_t)(end - first) * pad->element_bytes);
        pad_some(pad, axis, end, size, to, from);
}

static void pad_axis(const struct pad *pad, uint32_t axis, char *to, const char *from)
{
        if (axis + 1 == pad->rank) {
                pad_row(pad, to, from);
                return;
        }
        for (int64_t i = 0; i < pad->to_size[axis]; i++)
                pad_axis(pad, axis + 1, to + i * pad->to_stride[axis], from + source_of(pad, axis, i) * pad->from_stride[axis]);
}

static int pad_run(const void *state, const struct sl_binding *binding)
{
        pad_axis(state, 0, binding->outputs[0], binding->inputs[0]);
        return 0;
}

/* The dimension with the @k-th largest stride of the output. */
static uint32_t kth_axis(const int64_t *strides, uint32_t rank, uint32_t k)
{
        for (uint32_t d = 0; d < rank; d++) {
                uint32_t before = 0;

                for (uint32_t other = 0; other < rank; other++)
                        before += strides[other] > strides[d] || (strides[other] == strides[d] && other < d);
                if (before == k)
                        return d;
        }
        return 0;
}

static bool pad_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *in = &node->inputs[0], *out = &node->outputs[0];
        int64_t begin[SL_RANK_MAX], end[SL_RANK_MAX], from[SL_RANK_MAX], to[SL_RANK_MAX];
        int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, PAD_CONSTANT);
        struct pad *pad = state;

        (void)sizes;
        pad->rank = in->shape.rank;
        pad->mode = (uint32_t)mode;
        pad->element_bytes = (uint32_t)sl_dtype_bytes(in->dtype);
        if (mode == PAD_CONSTANT || !pad->rank || !pad->element_bytes || out->dtype != in->dtype || sl_cpu_is_empty(in) ||
                sl_cpu_is_empty(out) || !sl_attrs_find(&node->attrs, SL_ATTR_PADS) || sl_pads_read(node, begin, end, NULL))
                return false;
        sl_tensor_strides(in, from);
        sl_tensor_strides(out, to);
        for (uint32_t k = 0; k < pad->rank; k++) {
                uint32_t axis = kth_axis(to, pad->rank, k);

                pad->begin[k] = begin[axis];
                pad->to_size[k] = out->shape.dims[axis];
                pad->from_size[k] = in->shape.dims[axis];
                pad->to_stride[k] = to[axis] * pad->element_bytes;
                pad->from_stride[k] = from[axis] * pad->element_bytes;
        }
        return true;
}

const struct sl_cpu_loop sl_cpu_pad = {
        .state_bytes = sizeof(struct pad), .plan = pad_plan, .run = pad_run, .instead = &sl_cpu_copy};
