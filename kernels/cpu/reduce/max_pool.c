/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool of rank 3 to 5, and GlobalMaxPool as one window. The rows under a window are joined first, as long rows of all pixels and
 * channels; then the pixels of the joined row. A window of 3 x 3 so takes six comparisons and not nine. Of float32, bfloat16 and
 * bytes (max_pool_rows.h), in either layout: planes of PLAIN are images of one channel. oneDNN's loses a NaN; that of bytes is as
 * good.
 */
#include "cpu/base/rows.h"
#include "cpu/reduce/loops.h"
#include "shape/window.h"

#include <string.h>

#define VECTOR_BYTES 64

enum { DEPTH, HEIGHT, WIDTH, SPATIAL };

struct max_pool {
        uint32_t dtype;
        int64_t images, channels, rows; /* rows of the output of an image, of all its depths */
        int64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad[SPATIAL];
        int64_t width; /* in[WIDTH] */
};

/* Where a window lies inside of the image along one dimension. */
struct taps {
        int64_t first, n; /* the first element, and how many of them */
};

static struct taps taps_of(const struct max_pool *p, int d, int64_t position)
{
        int64_t from = position * p->stride[d] - p->pad[d], size = p->in[d], first = 0, n;

        if (from >= 0 && from + (p->kernel[d] - 1) * p->dilation[d] < size)
                return (struct taps){from, p->kernel[d]};
        if (from < 0)
                first = (-from + p->dilation[d] - 1) / p->dilation[d];
        n = size - from <= 0 ? 0 : (size - from - 1) / p->dilation[d] + 1;
        n = n < p->kernel[d] ? n : p->kernel[d];
        return (struct taps){from + first * p->dilation[d], n - first};
}

static bool all_have_pixels(const struct max_pool *p)
{
        for (int d = 0; d < SPATIAL; d++)
                for (int64_t i = 0; i < p->out[d]; i++)
                        if (taps_of(p, d, i).n < 1)
                                return false;
        return true;
}

static bool read_types(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];

        return (sl_cpu_is_real(x) || sl_cpu_is_byte(x)) && x->dtype == y->dtype && sl_cpu_same_layout(x, y) &&
               node->n_outputs == 1 && !sl_cpu_is_empty(x) && !sl_cpu_is_empty(y) && x->shape.rank >= 3 &&
               x->shape.rank <= 2 + SPATIAL;
}

/* Of a GlobalMaxPool: all of the image. */
static bool read_window(const struct sl_node_desc *node, struct sl_window *window)
{
        const struct sl_shape *x = &node->inputs[0].shape;

        if (node->op == SL_OP_MAX_POOL)
                return !sl_window_read(node, window, NULL);
        *window = (struct sl_window){.rank = x->rank - 2};
        for (uint32_t i = 0; i < window->rank; i++) {
                window->kernel[i] = x->dims[i + 2];
                window->stride[i] = window->dilation[i] = 1;
        }
        return node->op == SL_OP_GLOBAL_MAX_POOL;
}

/* Dimension @i of the node's, that a missing one stands before. */
static void read_dimension(struct max_pool *p, const struct sl_node_desc *node, const struct sl_window *window, int d)
{
        int i = d - (SPATIAL - (int)window->rank);

        p->in[d] = i < 0 ? 1 : node->inputs[0].shape.dims[i + 2];
        p->out[d] = i < 0 ? 1 : node->outputs[0].shape.dims[i + 2];
        p->kernel[d] = i < 0 ? 1 : window->kernel[i];
        p->stride[d] = i < 0 ? 1 : window->stride[i];
        p->dilation[d] = i < 0 ? 1 : window->dilation[i];
        p->pad[d] = i < 0 ? 0 : window->pad_begin[i];
}

static bool max_pool_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        bool last = x->layout == SL_LAYOUT_CHANNELS_LAST;
        struct max_pool *p = state;
        struct sl_window window;
        int64_t slices;
        size_t row;

        if (!read_types(node) || !read_window(node, &window))
                return false;
        *p = (struct max_pool){.dtype = x->dtype,
                .images = x->shape.dims[0] * (last ? 1 : x->shape.dims[1]),
                .channels = last ? x->shape.dims[1] : 1};
        for (int d = 0; d < SPATIAL; d++)
                read_dimension(p, node, &window, d);
        p->rows = p->out[DEPTH] * p->out[HEIGHT];
        p->width = p->in[WIDTH];
        slices = p->kernel[DEPTH] < p->in[DEPTH] ? p->kernel[DEPTH] : p->in[DEPTH];
        row = (size_t)(p->width * p->channels) * sl_dtype_bytes(x->dtype);
        /* The joined row; of few channels its windows, of several depths a joined row for each. */
        sizes->scratch_bytes = row;
        if ((size_t)p->channels * sl_dtype_bytes(x->dtype) < VECTOR_BYTES || slices > 1)
                sizes->scratch_bytes = 2 * row + VECTOR_BYTES;
        if (slices > 1)
                sizes->scratch_bytes += (size_t)slices * row;
        return all_have_pixels(p);
}

#define GREATER(a, b) ((a) > (b) ? (a) : (b))

/* A NaN is greater than every number: two more instructions. Rows that have none need not pay for that. */
#define GREATER_OR_NAN(a, b) ((a) != (a) ? (a) : GREATER(a, b))

#define POOL_TYPE          float
#define POOL_NAME(name)    name##_f32
#define POOL_GREATER(a, b) GREATER(a, b)
#define POOL_FEW           16
#include "cpu/reduce/max_pool_rows.h"

#define POOL_TYPE          float
#define POOL_NAME(name)    name##_nan
#define POOL_GREATER(a, b) GREATER_OR_NAN(a, b)
#define POOL_FEW           16
#include "cpu/reduce/max_pool_rows.h"

/* As whole numbers in the order of what they stand for, a NaN of either sign above all. */
static inline int16_t key_of_bf16(uint16_t x)
{
        uint16_t magnitude = x & 0x7fff, bits = magnitude > 0x7f80 ? magnitude : x;

        return (int16_t)(bits & 0x8000 ? bits ^ 0x7fff : bits);
}

#define POOL_TYPE          uint16_t
#define POOL_NAME(name)    name##_bf16
#define POOL_GREATER(a, b) (key_of_bf16(a) > key_of_bf16(b) ? (a) : (b))
#define POOL_FEW           32
#include "cpu/reduce/max_pool_rows.h"

#define POOL_TYPE          uint8_t
#define POOL_NAME(name)    name##_u8
#define POOL_GREATER(a, b) GREATER(a, b)
#define POOL_FEW           64
#include "cpu/reduce/max_pool_rows.h"

#define POOL_TYPE          int8_t
#define POOL_NAME(name)    name##_i8
#define POOL_GREATER(a, b) GREATER(a, b)
#define POOL_FEW           64
#include "cpu/reduce/max_pool_rows.h"

/*
 * Rows of the input, numbered over all samples, are looked at once, when the first window needs them: they lie in the L1 cache then
 * for what follows. @next is the first that was not looked at, @last the last one that has a NaN. Rows between those of a window
 * count as its own.
 */
struct nan_watch {
        int64_t next, last;
};

static bool window_has_nan(const struct max_pool *p, const float *x, int64_t i, struct nan_watch *watch)
{
        struct taps deep = taps_of(p, DEPTH, i % p->rows / p->out[HEIGHT]), down = taps_of(p, HEIGHT, i % p->out[HEIGHT]);
        int64_t length = p->width * p->channels, planes = i / p->rows * p->in[DEPTH] + deep.first;
        int64_t first = planes * p->in[HEIGHT] + down.first, last = first + (down.n - 1) * p->dilation[HEIGHT];

        last += (deep.n - 1) * p->dilation[DEPTH] * p->in[HEIGHT];
        for (int64_t row = watch->next > first ? watch->next : first; row <= last; row++) {
                watch->next = row + 1;
                watch->last = sl_row_has_nan(x + row * length, length) ? row : watch->last;
        }
        return watch->last >= first;
}

static void pool_floats(const struct max_pool *p, const struct sl_binding *binding, const struct sl_part *rows)
{
        struct nan_watch watch = {.last = -1};

        for (int64_t i = rows->first; i < rows->end; i++)
                (window_has_nan(p, binding->inputs[0], i, &watch) ? pool_nan : pool_f32)(p, binding, i);
}

typedef void pool_function(const struct max_pool *p, const struct sl_binding *binding, int64_t i);

static int max_pool_run(const void *state, const struct sl_binding *binding)
{
        const struct max_pool *p = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, p->images * p->rows);
        pool_function *pool = p->dtype == SL_DTYPE_U8 ? pool_u8 : p->dtype == SL_DTYPE_I8 ? pool_i8 : pool_bf16;

        if (p->dtype == SL_DTYPE_F32)
                pool_floats(p, binding, &rows);
        for (int64_t i = rows.first; i < rows.end && p->dtype != SL_DTYPE_F32; i++)
                pool(p, binding, i);
        return 0;
}

static int64_t max_pool_units(const void *state, uint32_t axis)
{
        const struct max_pool *p = state;

        return axis == SL_AXIS_ROWS ? p->images * p->rows : 0;
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

        int64_t element = (int64_t)sl_dtype_bytes(p->dtype);

        return operand == SL_REACH_OUTPUT && sl_reach_rows(part, p->out[WIDTH] * p->channels * element, ret_reach);
}

const struct sl_cpu_loop sl_cpu_max_pool = {.state_bytes = sizeof(struct max_pool),
        .plan = max_pool_plan,
        .run = max_pool_run,
        .units = max_pool_units,
        .reach = max_pool_reach,
        .seconds = max_pool_seconds};
