/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool of rank 3 to 5, and GlobalMaxPool as one window. The rows under a window are joined first, as long rows of all pixels and
 * channels, into a line with padding on both sides; then the pixels of the line. A window of 3 x 3 so takes six comparisons and not
 * nine. Of float32, bfloat16 and bytes (max_pool_rows.h), in either layout: planes of PLAIN are images of one channel. With few
 * channels some lines lie behind each other, and are joined at once. oneDNN's loses a NaN; that of bytes is as good.
 */
#include "cpu/reduce/loops.h"
#include "shape/window.h"

#include <math.h>
#include <string.h>

#define VECTOR_BYTES 64
#define BLOCK_BYTES  8192 /* of lines with few channels: twice that in the L1 cache */
#define ASIDE        64   /* columns of padding, at most, where there are not as many of the image */

enum { DEPTH, HEIGHT, WIDTH, SPATIAL };

struct max_pool {
        uint32_t dtype;
        int64_t images, channels, rows; /* rows of the output of an image, of all its depths */
        int64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad[SPATIAL];
        int64_t line;  /* columns of a joined row with what stands beside it */
        int64_t block; /* lines at once */
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

/* Where a row of the output lies. */
struct place {
        int64_t image, depth, row;
};

static struct place place_of(const struct max_pool *p, int64_t i)
{
        return (struct place){i / p->rows, i % p->rows / p->out[HEIGHT], i % p->out[HEIGHT]};
}

static void next_place(const struct max_pool *p, struct place *at)
{
        if (++at->row < p->out[HEIGHT])
                return;
        at->row = 0;
        if (++at->depth < p->out[DEPTH])
                return;
        at->depth = 0;
        at->image++;
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

/* Channels that fill no vector. */
static bool is_few(const struct max_pool *p)
{
        return (size_t)p->channels * sl_dtype_bytes(p->dtype) < VECTOR_BYTES;
}

/* False where windows reach far over the edges of the image. */
static bool set_lines(struct max_pool *p, struct sl_cpu_sizes *sizes)
{
        int64_t pixel = p->channels * (int64_t)sl_dtype_bytes(p->dtype), row = p->in[WIDTH] * pixel;
        int64_t slices = p->kernel[DEPTH] < p->in[DEPTH] ? p->kernel[DEPTH] : p->in[DEPTH];
        int64_t under = (p->out[WIDTH] - 1) * p->stride[WIDTH] + (p->kernel[WIDTH] - 1) * p->dilation[WIDTH] + 1;

        p->line = p->in[WIDTH];
        p->block = 1;
        if (is_few(p)) {
                p->line = p->pad[WIDTH] + p->in[WIDTH] > under ? p->pad[WIDTH] + p->in[WIDTH] : under;
                p->block = p->line * pixel < BLOCK_BYTES ? BLOCK_BYTES / (p->line * pixel) : 1;
        }
        sizes->scratch_bytes = (size_t)(2 * p->block * p->line * pixel + VECTOR_BYTES + (slices > 1 ? slices * row : 0));
        return p->line - p->in[WIDTH] <= p->in[WIDTH] + ASIDE;
}

static bool max_pool_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        bool last = x->layout == SL_LAYOUT_CHANNELS_LAST;
        struct max_pool *p = state;
        struct sl_window window;

        if (!read_types(node) || !read_window(node, &window))
                return false;
        *p = (struct max_pool){.dtype = x->dtype,
                .images = x->shape.dims[0] * (last ? 1 : x->shape.dims[1]),
                .channels = last ? x->shape.dims[1] : 1};
        for (int d = 0; d < SPATIAL; d++)
                read_dimension(p, node, &window, d);
        p->rows = p->out[DEPTH] * p->out[HEIGHT];
        return all_have_pixels(p) && set_lines(p, sizes);
}

#define GREATER(a, b) ((a) > (b) ? (a) : (b))

/* A NaN is greater than every number: two more instructions. Rows that have none, as a comparison of two at a time finds, need not
 * pay. */
#define GREATER_OR_NAN(a, b) ((a) != (a) ? (a) : GREATER(a, b))

#define POOL_TYPE          float
#define POOL_NAME(name)    name##_watched
#define POOL_GREATER(a, b) GREATER(a, b)
#define POOL_ODD(a, b)     __builtin_isunordered(a, b)
#include "cpu/reduce/max_pool_join.h"
#undef POOL_TYPE
#undef POOL_NAME
#undef POOL_GREATER

#define POOL_TYPE          float
#define POOL_NAME(name)    name##_f32
#define POOL_GREATER(a, b) GREATER(a, b)
#define POOL_FEW           16
#define POOL_DOWN          join_rows_watched
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

/* What nothing is less than. */
static const void *least_of(uint32_t dtype)
{
        static const float least_f32 = -INFINITY;
        static const uint16_t least_bf16 = 0xff80;
        static const int8_t least_i8 = INT8_MIN;
        static const uint8_t least_u8 = 0;

        return dtype == SL_DTYPE_F32    ? (const void *)&least_f32
               : dtype == SL_DTYPE_BF16 ? (const void *)&least_bf16
               : dtype == SL_DTYPE_I8   ? (const void *)&least_i8
                                        : (const void *)&least_u8;
}

/* What stands beside the joined rows is never written again. */
static void set_sides(const struct max_pool *p, char *line)
{
        int64_t left = p->pad[WIDTH] * p->channels, end = left + p->in[WIDTH] * p->channels, n = p->line * p->channels;
        size_t bytes = sl_dtype_bytes(p->dtype);
        const void *least = least_of(p->dtype);

        for (int64_t i = 0; i < p->block; i++, line += (size_t)n * bytes)
                for (int64_t k = left ? 0 : end; k < n; k = k + 1 == left ? end : k + 1)
                        memcpy(line + (size_t)k * bytes, least, bytes);
}

typedef int pool_function(const struct max_pool *p, const struct sl_binding *binding, int64_t first, int64_t n);

static int max_pool_run(const void *state, const struct sl_binding *binding)
{
        const struct max_pool *p = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, p->images * p->rows);
        pool_function *pool = p->dtype == SL_DTYPE_F32  ? pool_f32
                              : p->dtype == SL_DTYPE_U8 ? pool_u8
                              : p->dtype == SL_DTYPE_I8 ? pool_i8
                                                        : pool_bf16;

        if (is_few(p))
                set_sides(p, binding->scratch);
        for (int64_t i = rows.first, n; i < rows.end; i += n) {
                n = rows.end - i < p->block ? rows.end - i : p->block;
                if (pool(p, binding, i, n))
                        pool_nan(p, binding, i, n);
        }
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
