/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in other places, and what is made of places alone. */
#include "shape/rearrange.h"

#include "element.h"
#include "kernels.h"
#include "shape/window.h"
#include "walk.h"

#include <errno.h>
#include <string.h>

int sl_ref_blocks(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct sl_block_walk blocks;
        struct sl_shape shape = {.rank = SL_BLOCK_WALK_RANK};
        struct sl_ref_walk walk;

        sl_block_walk_read(node, &blocks);
        memcpy(shape.dims, blocks.sizes, sizeof(blocks.sizes));
        sl_ref_walk_init(&walk, &shape, 2, binding->pace);
        memcpy(walk.strides[0], blocks.out_strides, sizeof(blocks.out_strides));
        memcpy(walk.strides[1], blocks.in_strides, sizeof(blocks.in_strides));
        sl_ref_walk_copy(&walk, binding->outputs[0], binding->inputs[0], sl_dtype_bytes(node->inputs[0].dtype));
        return 0;
}

static int64_t product(const struct sl_shape *shape, uint32_t from, uint32_t to)
{
        int64_t elements = 1;

        for (uint32_t i = from; i < to; i++)
                elements *= shape->dims[i];
        return elements;
}

int sl_ref_reverse_sequence(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool time_first = sl_attrs_int(&node->attrs, SL_ATTR_TIME_AXIS, 0) == 0;
        int64_t steps = in->dims[time_first ? 0 : 1], batch = in->dims[time_first ? 1 : 0];
        size_t row = (size_t)product(in, 2, in->rank) * sl_dtype_bytes(node->inputs[0].dtype);
        const int64_t *lengths = binding->inputs[1];

        for (int64_t b = 0; b < batch; b++) {
                if (lengths[b] < 0 || lengths[b] > steps)
                        return -ERANGE;
                for (int64_t t = 0; t < steps && sl_pace_on(binding->pace, 1 + row / sizeof(uint64_t)); t++) {
                        int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
                        int64_t to_row = time_first ? t * batch + b : b * steps + t;
                        int64_t from_row = time_first ? from * batch + b : b * steps + from;

                        memcpy((char *)binding->outputs[0] + (size_t)to_row * row,
                                (const char *)binding->inputs[0] + (size_t)from_row * row, row);
                }
        }
        return 0;
}

int sl_ref_trilu(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1], n = (int64_t)sl_shape_elements(in);
        int64_t k = sl_attrs_int(&node->attrs, SL_ATTR_K, 0);
        bool upper = sl_attrs_int(&node->attrs, SL_ATTR_UPPER, 1);
        size_t bytes = sl_dtype_bytes(node->inputs[0].dtype);

        /* Beyond these all is kept, or nothing is. */
        k = k > columns ? columns : k < -rows ? -rows : k;
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                int64_t row = i / columns % rows, column = i % columns;
                bool kept = upper ? column - row >= k : column - row <= k;
                char *to = (char *)binding->outputs[0] + (size_t)i * bytes;

                if (kept)
                        memmove(to, (const char *)binding->inputs[0] + (size_t)i * bytes, bytes);
                else
                        memset(to, 0, bytes);
        }
        return 0;
}

int sl_ref_eye_like(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t rows = node->inputs[0].shape.dims[0], columns = node->inputs[0].shape.dims[1];
        int64_t k = sl_attrs_int(&node->attrs, SL_ATTR_K, 0);

        k = k > columns ? columns : k < -rows ? -rows : k;
        for (int64_t i = 0; i < rows * columns && sl_pace_on(binding->pace, 1); i++)
                sl_ref_store(binding->outputs[0], i, node->outputs[0].dtype, i % columns - i / columns == k ? 1 : 0);
        return 0;
}

int sl_ref_one_hot(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *out = &node->outputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), inner, n = (int64_t)sl_shape_elements(out), depth;
        size_t bytes = sl_dtype_bytes(node->outputs[0].dtype);

        axis += axis < 0 ? out->rank : 0;
        depth = out->dims[axis];
        inner = product(out, (uint32_t)axis + 1, out->rank);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                int64_t at = i / inner / depth * inner + i % inner, place = i / inner % depth;
                double index = sl_ref_load(binding->inputs[0], at, node->inputs[0].dtype);
                bool on = index == (double)place || index == (double)(place - depth);

                memcpy((char *)binding->outputs[0] + (size_t)i * bytes, (const char *)binding->inputs[1] + (on ? bytes : 0), bytes);
        }
        return 0;
}

/* Sums, or products, of what lies before each element along the axis, itself included or not. */
static void run_along(const struct sl_node_desc *node, const struct sl_binding *binding, bool products)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), inner, size, outer;
        bool exclusive = sl_attrs_int(&node->attrs, SL_ATTR_EXCLUSIVE, 0),
             backward = sl_attrs_int(&node->attrs, SL_ATTR_REVERSE, 0);
        uint32_t dtype = node->inputs[0].dtype;

        axis += axis < 0 ? in->rank : 0;
        inner = product(in, (uint32_t)axis + 1, in->rank);
        outer = product(in, 0, (uint32_t)axis);
        size = in->dims[axis];
        for (int64_t column = 0; column < outer * inner && sl_pace_on(binding->pace, 1); column++) {
                double all = products;
                uint64_t bits = products;

                for (int64_t k = 0; k < size && sl_pace_on(binding->pace, 1); k++) {
                        int64_t at = (column / inner * size + (backward ? size - 1 - k : k)) * inner + column % inner;
                        double x = sl_dtype_is_float(dtype) ? sl_ref_load(binding->inputs[0], at, dtype) : 0;
                        uint64_t b = sl_dtype_is_float(dtype) ? 0 : sl_ref_load_bits(binding->inputs[0], at, dtype);
                        double with = products ? all * x : all + x;
                        uint64_t with_bits = products ? bits * b : bits + b;

                        if (sl_dtype_is_float(dtype))
                                sl_ref_store(binding->outputs[0], at, dtype, exclusive ? all : with);
                        else
                                sl_ref_store_bits(binding->outputs[0], at, dtype, exclusive ? bits : with_bits);
                        all = with;
                        bits = with_bits;
                }
        }
}

int sl_ref_cum_sum(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        run_along(node, binding, false);
        return 0;
}

int sl_ref_cum_prod(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        run_along(node, binding, true);
        return 0;
}

/* Elimination with the largest pivot of each column, in scratch. */
static double determinant(struct sl_pace *pace, double *m, int64_t n)
{
        double result = 1;

        for (int64_t i = 0; i < n && sl_pace_on(pace, (uint64_t)(n - i)); i++) {
                int64_t pivot = i;

                for (int64_t r = i + 1; r < n; r++)
                        if (fabs(m[r * n + i]) > fabs(m[pivot * n + i]))
                                pivot = r;
                if (m[pivot * n + i] == 0)
                        return 0;
                for (int64_t c = 0; c < n && pivot != i; c++) {
                        double swap = m[i * n + c];

                        m[i * n + c] = m[pivot * n + c];
                        m[pivot * n + c] = swap;
                }
                result *= pivot == i ? m[i * n + i] : -m[i * n + i];
                for (int64_t r = i + 1; r < n && sl_pace_on(pace, (uint64_t)(n - i)); r++) {
                        double factor = m[r * n + i] / m[i * n + i];

                        for (int64_t c = i; c < n; c++)
                                m[r * n + c] -= factor * m[i * n + c];
                }
        }
        return result;
}

size_t sl_ref_scratch_det(const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;

        return (size_t)in->dims[in->rank - 1] * (size_t)in->dims[in->rank - 1] * sizeof(double);
}

int sl_ref_det(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t n = in->dims[in->rank - 1], matrices = (int64_t)sl_shape_elements(&node->outputs[0].shape);
        double *m = binding->scratch;

        for (int64_t i = 0; i < matrices && sl_pace_on(binding->pace, 1); i++) {
                for (int64_t k = 0; k < n * n && sl_pace_on(binding->pace, 1); k++)
                        m[k] = sl_ref_load(binding->inputs[0], i * n * n + k, node->inputs[0].dtype);
                sl_ref_store(binding->outputs[0], i, node->inputs[0].dtype, determinant(binding->pace, m, n));
        }
        return 0;
}

/* Where tap @tap at position @position lies in the image, or -1 in the padding. */
static int64_t pixel_of(const struct sl_window *w, const int64_t *image, const int64_t *positions, int64_t tap, int64_t position)
{
        int64_t at = 0, stride = 1;

        for (uint32_t d = w->rank; d-- > 0;) {
                int64_t x = position % positions[d] * w->stride[d] - w->pad_begin[d] + tap % w->kernel[d] * w->dilation[d];

                if (x < 0 || x >= image[d])
                        return -1;
                at += x * stride;
                stride *= image[d];
                position /= positions[d];
                tap /= w->kernel[d];
        }
        return at;
}

/* One image of one channel is put together in scratch, in double. */
size_t sl_ref_scratch_col2im(const struct sl_node_desc *node)
{
        return (size_t)product(&node->outputs[0].shape, 2, node->outputs[0].shape.rank) * sizeof(double);
}

int sl_ref_col2im(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape, *out = &node->outputs[0].shape;
        int64_t pixels = product(out, 2, out->rank), planes = out->dims[0] * out->dims[1], taps = 1,
                positions[SL_SPATIAL_MAX] = {0};
        struct sl_node_desc *image = &(struct sl_node_desc){.op = SL_OP_MAX_POOL};
        struct sl_window window = {.rank = 0};
        double *sums = binding->scratch;

        sl_col2im_image(node, image);
        sl_window_read(image, &window, NULL);
        for (uint32_t i = 0; i < window.rank; i++) {
                sl_window_positions(&window, i, out->dims[i + 2], &positions[i], NULL);
                taps *= window.kernel[i];
        }
        for (int64_t plane = 0; plane < planes && sl_pace_on(binding->pace, 1); plane++) {
                memset(sums, 0, (size_t)pixels * sizeof(double));
                for (int64_t i = 0; i < taps * in->dims[2] && sl_pace_on(binding->pace, 1); i++) {
                        int64_t at = pixel_of(&window, out->dims + 2, positions, i / in->dims[2], i % in->dims[2]);

                        if (at >= 0)
                                sums[at] += sl_ref_load(binding->inputs[0], plane * taps * in->dims[2] + i, node->inputs[0].dtype);
                }
                for (int64_t i = 0; i < pixels && sl_pace_on(binding->pace, 1); i++)
                        sl_ref_store(binding->outputs[0], plane * pixels + i, node->inputs[0].dtype, sums[i]);
        }
        return 0;
}
