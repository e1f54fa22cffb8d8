/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool over images in channels-last. The rows under a window are joined first, as long rows of all pixels and channels; then
 * the pixels of the joined row. A window of 3 x 3 so takes six comparisons and not nine. Of float32 and of bytes (max_pool_rows.h).
 */
#include "cpu/reduce/loops.h"
#include "shape/window.h"

#include <string.h>

#define VECTOR_BYTES 64

struct max_pool {
        uint32_t dtype;
        int64_t batch, channels, height, width, rows, columns; /* rows and columns of the output */
        int64_t kernel[2], stride[2], dilation[2], pad[2];
};

/* The first and the number of kernel elements of @position that lie inside of @size. */
static int64_t inside(const struct max_pool *p, int d, int64_t position, int64_t size, int64_t *ret_first)
{
        int64_t from = position * p->stride[d] - p->pad[d], first = 0, n;

        if (from >= 0 && from + (p->kernel[d] - 1) * p->dilation[d] < size) {
                *ret_first = 0;
                return p->kernel[d];
        }
        if (from < 0)
                first = (-from + p->dilation[d] - 1) / p->dilation[d];
        n = size - from <= 0 ? 0 : (size - from - 1) / p->dilation[d] + 1;
        n = n < p->kernel[d] ? n : p->kernel[d];
        *ret_first = first;
        return n - first;
}

static bool all_have_pixels(const struct max_pool *p)
{
        int64_t first;

        for (int64_t i = 0; i < p->rows; i++)
                if (inside(p, 0, i, p->height, &first) < 1)
                        return false;
        for (int64_t i = 0; i < p->columns; i++)
                if (inside(p, 1, i, p->width, &first) < 1)
                        return false;
        return true;
}

static bool max_pool_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct max_pool *p = state;
        struct sl_window window;
        size_t element;

        if (!(sl_cpu_is_f32(x) || sl_cpu_is_byte(x)) || x->layout != SL_LAYOUT_CHANNELS_LAST ||
                y->layout != SL_LAYOUT_CHANNELS_LAST || x->shape.rank != 4 || node->n_outputs != 1 || sl_cpu_is_empty(x) ||
                sl_cpu_is_empty(y) || sl_window_read(node, &window, NULL))
                return false;
        *p = (struct max_pool){.dtype = x->dtype,
                .batch = x->shape.dims[0],
                .channels = x->shape.dims[1],
                .height = x->shape.dims[2],
                .width = x->shape.dims[3],
                .rows = y->shape.dims[2],
                .columns = y->shape.dims[3]};
        for (int d = 0; d < 2; d++) {
                p->kernel[d] = window.kernel[d];
                p->stride[d] = window.stride[d];
                p->dilation[d] = window.dilation[d];
                p->pad[d] = window.pad_begin[d];
        }
        element = sl_cpu_is_f32(x) ? sizeof(float) : 1;
        sizes->scratch_bytes = (size_t)(p->width * p->channels) * element;
        if ((size_t)p->channels * element < VECTOR_BYTES)
                sizes->scratch_bytes = 2 * sizes->scratch_bytes + VECTOR_BYTES;
        return all_have_pixels(p);
}

#define POOL_TYPE       float
#define POOL_NAME(name) name##_f32
#define POOL_FEW        16
#include "cpu/reduce/max_pool_rows.h"

#define POOL_TYPE       uint8_t
#define POOL_NAME(name) name##_u8
#define POOL_FEW        64
#include "cpu/reduce/max_pool_rows.h"

#define POOL_TYPE       int8_t
#define POOL_NAME(name) name##_i8
#define POOL_FEW        64
#include "cpu/reduce/max_pool_rows.h"

static int max_pool_run(const void *state, const struct sl_binding *binding)
{
        const struct max_pool *p = state;

        if (p->dtype == SL_DTYPE_U8)
                pool_u8(p, binding);
        else if (p->dtype == SL_DTYPE_I8)
                pool_i8(p, binding);
        else
                pool_f32(p, binding);
        return 0;
}

static int64_t max_pool_units(const void *state, uint32_t axis)
{
        const struct max_pool *p = state;

        return axis == SL_AXIS_ROWS ? p->batch * p->rows : 0;
}

/* oneDNN compares each pixel of each window, and is never faster. */
static double max_pool_seconds(const struct sl_core_figures *core, const void *state)
{
        (void)core;
        (void)state;
        return 0;
}

/* Windows of neighbouring rows lie over each other. */
static bool max_pool_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct max_pool *p = state;

        int64_t element = p->dtype == SL_DTYPE_F32 ? sizeof(float) : 1;

        return operand == SL_REACH_OUTPUT && sl_reach_rows(part, p->columns * p->channels * element, ret_reach);
}

const struct sl_cpu_loop sl_cpu_max_pool = {.state_bytes = sizeof(struct max_pool),
        .plan = max_pool_plan,
        .run = max_pool_run,
        .units = max_pool_units,
        .reach = max_pool_reach,
        .seconds = max_pool_seconds};
