/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pooling, global or by windows, through oneDNN. It adds up the pixels under a window one after the other: means of
 * many float32 are left to own loops.
 */
#include "cpu/onednn/describe.h"
#include "cpu/reduce/loops.h"
#include "shape/window.h"

static bool read_global(const struct sl_node_desc *node, struct sl_window *window)
{
        const struct sl_shape *x = &node->inputs[0].shape;

        if (x->rank < 3 || x->rank > 2 + SL_SPATIAL_MAX)
                return false;
        *window = (struct sl_window){.rank = x->rank - 2};
        for (uint32_t i = 0; i < window->rank; i++) {
                window->kernel[i] = x->dims[i + 2];
                window->stride[i] = window->dilation[i] = 1;
        }
        return true;
}

static bool is_global(const struct sl_node_desc *node)
{
        return node->op == SL_OP_GLOBAL_AVERAGE_POOL || node->op == SL_OP_GLOBAL_MAX_POOL;
}

/*
 * oneDNN looks at each place under a window, there or not: with 2^20 of them in both directions one sample takes hours. `ref` clips
 * windows first.
 */
static bool is_wider(const struct sl_window *window, const struct sl_shape *x)
{
        for (uint32_t i = 0; i < window->rank; i++)
                if (window->kernel[i] > x->dims[i + 2])
                        return true;
        return false;
}

/*
 * oneDNN takes no ceil mode, but pads at the end that make the last window fit. False when they are not the node's own and
 * would be counted.
 */
static bool fit_pads_end(struct sl_window *window, uint32_t i, int64_t size, int64_t positions, bool counted)
{
        int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
        int64_t spare = size + window->pad_begin[i] + window->pad_end[i] - reach;

        if (spare >= 0 && spare / window->stride[i] + 1 == positions)
                return true;
        window->pad_end[i] = (positions - 1) * window->stride[i] + reach - size - window->pad_begin[i];
        return !counted && window->pad_end[i] >= 0;
}

static uint32_t pool_kind(const struct sl_node_desc *node, bool counted)
{
        if (node->op == SL_OP_MAX_POOL || node->op == SL_OP_GLOBAL_MAX_POOL)
                return SL_PRIMITIVE_POOL_MAX;
        return counted ? SL_PRIMITIVE_POOL_AVERAGE_PADDED : SL_PRIMITIVE_POOL_AVERAGE;
}

/* The greatest of bytes, of which none is a NaN, which it loses; the mean of what is no byte. */
static bool is_pooled(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0];
        bool takes_greatest = node->op == SL_OP_MAX_POOL || node->op == SL_OP_GLOBAL_MAX_POOL;

        return x->dtype == node->outputs[0].dtype && (takes_greatest ? sl_cpu_is_byte(x) : sl_cpu_is_real(x));
}

static bool is_mean_of_many(const struct sl_node_desc *node)
{
        return node->op == SL_OP_GLOBAL_AVERAGE_POOL ? sl_cpu_is_f32(&node->inputs[0]) : sl_cpu_averages_many(node);
}

bool sl_cpu_describe_pool(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        bool counted = node->op == SL_OP_AVERAGE_POOL && sl_attrs_int(&node->attrs, SL_ATTR_COUNT_INCLUDE_PAD, 0) != 0;
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct sl_primitive_spec *spec = &call->spec;
        struct sl_window window;

        if (!is_pooled(node) || is_mean_of_many(node) || sl_cpu_is_empty(x) || sl_cpu_is_empty(y) || node->n_outputs != 1)
                return false;
        if (is_global(node) ? !read_global(node, &window) : sl_window_read(node, &window, NULL) != 0)
                return false;
        if (is_wider(&window, &x->shape))
                return false;
        spec->kind = pool_kind(node, counted);
        spec->source = sl_describe_tensor(x);
        spec->result = sl_describe_tensor(y);
        for (uint32_t i = 0; i < window.rank; i++) {
                if (!fit_pads_end(&window, i, x->shape.dims[i + 2], y->shape.dims[i + 2], counted))
                        return false;
                spec->kernel[i] = window.kernel[i];
                spec->strides[i] = window.stride[i];
                spec->dilations[i] = window.dilation[i];
                spec->pads_begin[i] = window.pad_begin[i];
                spec->pads_end[i] = window.pad_end[i];
        }
        return !node->epilogue.activation && !node->epilogue.has_residual;
}
