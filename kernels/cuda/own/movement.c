/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements: a box from one place to another where it can be said so, in units as wide as both sides allow. */
#include "cuda/own/builder.h"
#include "shape/rearrange.h"
#include "shape/slice.h"

#include <errno.h>

#define UNIT_BYTES_MAX 16
#define TILED_MIN      8 /* rows and columns of a matrix below which tiles are mostly empty */

/* A box on its way: tensor 0 of the box is the output. */
struct move {
        struct sl_own_box box;
        uint32_t bytes; /* of a unit */
        uint32_t out, in;
        uint64_t out_base, in_base; /* bytes */
};

static void start_move(struct move *move, const struct sl_tensor *order, const struct sl_shape *sizes)
{
        *move = (struct move){.bytes = (uint32_t)sl_dtype_bytes(order->dtype)};
        sl_own_box_over(order, sizes, &move->box);
}

static uint32_t widest_unit(const struct move *move)
{
        const struct sl_own_box *box = &move->box;
        uint32_t inner = box->rank - 1, unit = UNIT_BYTES_MAX;

        if (box->strides[0][inner] != 1 || box->strides[1][inner] != 1)
                return move->bytes;
        for (; unit > move->bytes; unit /= 2) {
                int64_t n = unit / move->bytes;
                bool fits = box->sizes[inner] % n == 0 && move->out_base % unit == 0 && move->in_base % unit == 0;

                for (uint32_t d = 0; d < inner && fits; d++)
                        fits = box->strides[0][d] % n == 0 && box->strides[1][d] % n == 0;
                if (fits)
                        return unit;
        }
        return move->bytes;
}

static void widen_units(struct move *move)
{
        uint32_t unit = widest_unit(move), inner = move->box.rank - 1;
        int64_t n = unit / move->bytes;

        move->bytes = unit;
        move->box.sizes[inner] /= n;
        for (uint32_t d = 0; d < inner; d++) {
                move->box.strides[0][d] /= n;
                move->box.strides[1][d] /= n;
        }
}

static uint32_t log_2(uint32_t bytes)
{
        return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
}

static void add_slots(struct sl_own_launch *launch, const struct move *move, size_t out, size_t in)
{
        sl_own_slot(launch, out, SL_OWN_OUTPUT, move->out, move->out_base);
        sl_own_slot(launch, in, SL_OWN_INPUT, move->in, move->in_base);
}

static uint32_t elements_of(const struct sl_own_box *box)
{
        int64_t elements = 1;

        for (uint32_t d = 0; d < box->rank; d++)
                elements *= box->sizes[d];
        return (uint32_t)elements;
}

static void add_plain_copy(struct sl_own_builder *builder, const struct move *move)
{
        const struct sl_own_box *box = &move->box;
        struct sl_own_copy a = {.elements = elements_of(box), .n_dims = box->rank};
        struct sl_own_launch *launch;

        for (uint32_t d = 0; d < box->rank; d++) {
                a.dims[d] = sl_own_divide_by((uint64_t)box->sizes[box->rank - 1 - d]);
                a.out_strides[d] = (int32_t)box->strides[0][box->rank - 1 - d];
                a.in_strides[d] = (int32_t)box->strides[1][box->rank - 1 - d];
        }
        launch = sl_own_add(builder, SL_OWN_KERNEL_copy_1 + log_2(move->bytes), &a, sizeof(a), a.elements);
        add_slots(launch, move, offsetof(struct sl_own_copy, out), offsetof(struct sl_own_copy, in));
}

/* The dimension whose elements lie next to each other in the input but not in the output, whose innermost one is another; or -1. */
static int transposed_dimension(const struct sl_own_box *box)
{
        uint32_t inner = box->rank - 1;

        if (box->strides[0][inner] != 1 || box->strides[1][inner] < TILED_MIN || box->sizes[inner] < TILED_MIN)
                return -1;
        for (uint32_t d = 0; d < box->rank; d++)
                if (box->strides[0][d] < 0 || box->strides[1][d] < 0)
                        return -1;
        for (uint32_t d = 0; d < inner; d++)
                if (box->strides[1][d] == 1 && box->sizes[d] >= TILED_MIN)
                        return (int)d;
        return -1;
}

static void add_transpose(struct sl_own_builder *builder, const struct move *move, uint32_t row)
{
        const struct sl_own_box *box = &move->box;
        uint32_t inner = box->rank - 1;
        struct sl_own_transpose a = {.rows = (uint32_t)box->sizes[row],
                .columns = (uint32_t)box->sizes[inner],
                .out_stride = (uint32_t)box->strides[0][row],
                .in_stride = (uint32_t)box->strides[1][inner]};
        uint32_t row_tiles = (a.rows + SL_OWN_TILE - 1) / SL_OWN_TILE, column_tiles = (a.columns + SL_OWN_TILE - 1) / SL_OWN_TILE;
        struct sl_own_launch *launch;

        a.row_tiles = sl_own_divide_by(row_tiles);
        a.column_tiles = sl_own_divide_by(column_tiles);
        a.n_tiles = row_tiles * column_tiles;
        for (uint32_t d = inner; d-- > 0;) {
                if (d == row)
                        continue;
                a.outer[a.n_outer] = sl_own_divide_by((uint64_t)box->sizes[d]);
                a.out_strides[a.n_outer] = (uint32_t)box->strides[0][d];
                a.in_strides[a.n_outer++] = (uint32_t)box->strides[1][d];
                a.n_tiles *= (uint32_t)box->sizes[d];
        }
        launch = sl_own_add(
                builder, SL_OWN_KERNEL_transpose_1 + log_2(move->bytes), &a, sizeof(a), (uint64_t)a.n_tiles * SL_OWN_BLOCK);
        add_slots(launch, move, offsetof(struct sl_own_transpose, out), offsetof(struct sl_own_transpose, in));
}

static void add_move(struct sl_own_builder *builder, struct move *move)
{
        int row;

        if (!elements_of(&move->box))
                return;
        sl_own_collapse(&move->box);
        row = transposed_dimension(&move->box);
        if (row >= 0) {
                add_transpose(builder, move, (uint32_t)row);
                return;
        }
        widen_units(move);
        add_plain_copy(builder, move);
}

/* All of input 0, to where @out_strides say. */
static void move_all(struct sl_own_builder *builder, const struct sl_tensor *order, const struct sl_shape *sizes,
        const int64_t *out_strides, const int64_t *in_strides)
{
        struct move move;

        start_move(&move, order, sizes);
        sl_own_box_add(&move.box, order, out_strides);
        sl_own_box_add(&move.box, order, in_strides);
        add_move(builder, &move);
}

int sl_own_plan_view(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0], *out = &node->outputs[0];
        struct sl_shape line = {.rank = 1, .dims = {(int64_t)sl_shape_elements(&out->shape)}};
        struct sl_tensor flat = {.dtype = out->dtype, .shape = line};
        const int64_t strides[SL_RANK_MAX] = {1};

        if (in->layout != out->layout || (in->layout != SL_LAYOUT_PLAIN && !sl_shape_equal(&in->shape, &out->shape)))
                return -ENOTSUP;
        move_all(builder, &flat, &line, strides, strides);
        return 0;
}

/* Parts of one tensor side by side along the axis: of the output, or of the input. */
static void move_parts(struct sl_own_builder *builder, const struct sl_tensor *whole, const struct sl_tensor *parts, uint32_t n_parts,
        uint32_t axis, bool concat)
{
        int64_t strides[SL_RANK_MAX], part_strides[SL_RANK_MAX];
        uint64_t base = 0;

        sl_tensor_strides(whole, strides);
        for (uint32_t i = 0; i < n_parts; i++) {
                struct move move;

                sl_tensor_strides(&parts[i], part_strides);
                start_move(&move, concat ? whole : &parts[i], &parts[i].shape);
                sl_own_box_add(&move.box, concat ? whole : &parts[i], concat ? strides : part_strides);
                sl_own_box_add(&move.box, concat ? whole : &parts[i], concat ? part_strides : strides);
                move.out = concat ? 0 : i;
                move.in = concat ? i : 0;
                move.out_base = concat ? base : 0;
                move.in_base = concat ? 0 : base;
                add_move(builder, &move);
                base += (uint64_t)(parts[i].shape.dims[axis] * strides[axis]) * sl_dtype_bytes(whole->dtype);
        }
}

int sl_own_plan_concat(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        move_parts(builder, &node->outputs[0], node->inputs, node->n_inputs, sl_own_axis(node, 0), true);
        return 0;
}

int sl_own_plan_split(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        move_parts(builder, &node->inputs[0], node->outputs, node->n_outputs, sl_own_axis(node, 0), false);
        return 0;
}

int sl_own_plan_slice(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *out = &node->outputs[0];
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], base = 0;
        struct sl_slice slices[SL_RANK_MAX];
        struct move move;

        if (sl_slice_read(node, slices, NULL))
                return -ENOTSUP;
        if (!sl_shape_elements(&out->shape))
                return 0;
        sl_tensor_strides(out, out_strides);
        sl_tensor_strides(&node->inputs[0], in_strides);
        for (uint32_t i = 0; i < out->shape.rank; i++) {
                base += slices[i].first * in_strides[i];
                /* A single element is never stepped from, and its step may be any number. */
                in_strides[i] = slices[i].count > 1 ? in_strides[i] * slices[i].step : 0;
        }
        start_move(&move, out, &out->shape);
        sl_own_box_add(&move.box, out, out_strides);
        sl_own_box_add(&move.box, out, in_strides);
        move.in_base = (uint64_t)base * sl_dtype_bytes(out->dtype);
        add_move(builder, &move);
        return 0;
}

int sl_own_plan_transpose(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *out = &node->outputs[0];
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], permuted[SL_RANK_MAX] = {0};
        uint32_t rank = out->shape.rank;

        sl_tensor_strides(out, out_strides);
        sl_tensor_strides(&node->inputs[0], in_strides);
        for (uint32_t i = 0; i < rank; i++)
                permuted[i] = in_strides[sl_attrs_ints(&node->attrs, SL_ATTR_PERM, i, (int64_t)rank - 1 - i)];
        move_all(builder, out, &out->shape, out_strides, permuted);
        return 0;
}

int sl_own_plan_reorder(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *out = &node->outputs[0];
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX];

        sl_tensor_strides(out, out_strides);
        sl_tensor_strides(&node->inputs[0], in_strides);
        move_all(builder, out, &out->shape, out_strides, in_strides);
        return 0;
}

int sl_own_plan_expand(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *out = &node->outputs[0];
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX];

        sl_tensor_strides(out, out_strides);
        sl_own_broadcast(&node->inputs[0], &out->shape, in_strides);
        move_all(builder, out, &out->shape, out_strides, in_strides);
        return 0;
}

/* Each dimension as two, the repeats with a stride of 0; dimensions that are not repeated stay one. */
int sl_own_plan_tile(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape, *out = &node->outputs[0].shape;
        int64_t plain[SL_RANK_MAX], wide[SL_RANK_MAX], out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX];
        struct sl_tensor order = {.dtype = node->outputs[0].dtype};

        if (node->inputs[0].layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return -ENOTSUP;
        sl_tensor_strides(&node->inputs[0], plain);
        sl_tensor_strides(&node->outputs[0], wide);
        for (uint32_t i = 0; i < in->rank; i++) {
                uint32_t *rank = &order.shape.rank;

                if (*rank + 1 + (out->dims[i] != in->dims[i]) > SL_RANK_MAX)
                        return -ENOTSUP;
                if (out->dims[i] != in->dims[i]) {
                        order.shape.dims[*rank] = in->dims[i] ? out->dims[i] / in->dims[i] : 0;
                        out_strides[*rank] = wide[i] * in->dims[i];
                        in_strides[(*rank)++] = 0;
                }
                order.shape.dims[*rank] = in->dims[i];
                out_strides[*rank] = wide[i];
                in_strides[(*rank)++] = plain[i];
        }
        move_all(builder, &order, &order.shape, out_strides, in_strides);
        return 0;
}

int sl_own_plan_blocks(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        struct sl_tensor order = {.dtype = node->outputs[0].dtype, .shape = {.rank = SL_BLOCK_WALK_RANK}};
        struct sl_block_walk walk;

        sl_block_walk_read(node, &walk);
        for (uint32_t i = 0; i < SL_BLOCK_WALK_RANK; i++)
                order.shape.dims[i] = walk.sizes[i];
        move_all(builder, &order, &order.shape, walk.out_strides, walk.in_strides);
        return 0;
}

static void add_fill(struct sl_own_builder *builder, const struct sl_tensor *out, double value)
{
        struct sl_own_fill a = {.elements = (uint32_t)sl_shape_elements(&out->shape),
                .bytes = (uint32_t)sl_dtype_bytes(out->dtype),
                .value = sl_own_bits(value, out->dtype)};
        struct sl_own_launch *launch = sl_own_add(builder, SL_OWN_KERNEL_fill, &a, sizeof(a), a.elements);

        sl_own_slot(launch, offsetof(struct sl_own_fill, out), SL_OWN_OUTPUT, 0, 0);
}

int sl_own_plan_constant_of_shape(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        add_fill(builder, &node->outputs[0], sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 0));
        return 0;
}

int sl_own_plan_shape(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        int64_t rank = node->inputs[0].shape.rank, start = sl_attrs_ints(&node->attrs, SL_ATTR_STARTS, 0, 0);
        struct sl_own_values a = {.count = (uint32_t)node->outputs[0].shape.dims[0]};
        struct sl_own_launch *launch;

        start += start < 0 ? rank : 0;
        start = start < 0 ? 0 : start;
        for (uint32_t i = 0; i < a.count; i++)
                a.values[i] = node->inputs[0].shape.dims[start + i];
        launch = sl_own_add(builder, SL_OWN_KERNEL_values, &a, sizeof(a), a.count);
        sl_own_slot(launch, offsetof(struct sl_own_values, out), SL_OWN_OUTPUT, 0, 0);
        return 0;
}

int sl_own_plan_pad(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0], *out = &node->outputs[0];
        int64_t begin[SL_RANK_MAX], end[SL_RANK_MAX], in_strides[SL_RANK_MAX];
        struct sl_own_pad a = {.elements = (uint32_t)sl_shape_elements(&out->shape),
                .bytes = (uint32_t)sl_dtype_bytes(in->dtype),
                .mode = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_MODE, SL_OWN_PAD_CONSTANT),
                .value = sl_own_bits(sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 0), in->dtype),
                .n_dims = in->shape.rank};
        struct sl_own_launch *launch;

        if (sl_pads_read(node, begin, end, NULL))
                return -ENOTSUP;
        sl_tensor_strides(in, in_strides);
        for (uint32_t d = 0; d < a.n_dims; d++) {
                uint32_t at = sl_own_dimension_at(out, a.n_dims - 1 - d);

                if (begin[at] > INT32_MAX || begin[at] < INT32_MIN)
                        return -ENOTSUP;
                a.dims[d] = sl_own_divide_by((uint64_t)out->shape.dims[at]);
                a.begin[d] = (int32_t)begin[at];
                a.sizes[d] = (int32_t)in->shape.dims[at];
                a.strides[d] = (uint32_t)in_strides[at];
        }
        launch = sl_own_add(builder, SL_OWN_KERNEL_pad, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_pad, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_pad, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

/* What both have is copied, about its middle; the rest of the output is 0. */
int sl_own_plan_center_crop_pad(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0], *out = &node->outputs[0];
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], out_base = 0, in_base = 0;
        struct sl_shape common = {.rank = in->shape.rank};
        struct move move;

        sl_tensor_strides(out, out_strides);
        sl_tensor_strides(in, in_strides);
        for (uint32_t i = 0; i < common.rank; i++) {
                int64_t from = in->shape.dims[i], to = out->shape.dims[i];

                common.dims[i] = from < to ? from : to;
                in_base += (from - common.dims[i]) / 2 * in_strides[i];
                out_base += (to - common.dims[i]) / 2 * out_strides[i];
        }
        add_fill(builder, out, 0);
        start_move(&move, out, &common);
        sl_own_box_add(&move.box, out, out_strides);
        sl_own_box_add(&move.box, out, in_strides);
        move.in_base = (uint64_t)in_base * move.bytes;
        move.out_base = (uint64_t)out_base * move.bytes;
        add_move(builder, &move);
        return 0;
}

static uint32_t channels_in(const struct sl_tensor *tensors, uint32_t n_tensors, uint32_t ret_channels[SL_OWN_SHUFFLE_TENSORS])
{
        uint32_t sum = 0;

        for (uint32_t i = 0; i < n_tensors; i++)
                sum += ret_channels[i] = (uint32_t)tensors[i].shape.dims[1];
        return sum;
}

static bool all_lie_alike(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].layout != node->outputs[0].layout)
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i].layout != node->outputs[0].layout)
                        return false;
        return true;
}

int sl_own_plan_channel_shuffle(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        struct sl_own_shuffle a = {.bytes = (uint32_t)sl_dtype_bytes(node->inputs[0].dtype),
                .channels_last = node->outputs[0].layout == SL_LAYOUT_CHANNELS_LAST};
        struct sl_own_launch *launch;
        uint64_t inner = 1, channels;

        if (node->n_inputs > SL_OWN_SHUFFLE_TENSORS || node->n_outputs > SL_OWN_SHUFFLE_TENSORS || !all_lie_alike(node))
                return -ENOTSUP;
        for (uint32_t i = 2; i < shape->rank; i++)
                inner *= (uint64_t)shape->dims[i];
        channels = channels_in(node->inputs, node->n_inputs, a.in_channels);
        channels_in(node->outputs, node->n_outputs, a.out_channels);
        if ((uint64_t)shape->dims[0] * channels * inner > INT32_MAX)
                return -ENOTSUP;
        a.elements = (uint32_t)((uint64_t)shape->dims[0] * channels * inner);
        a.inner = sl_own_divide_by(inner);
        a.channels = sl_own_divide_by(channels);
        a.group = sl_own_divide_by((uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1));
        launch = sl_own_add(builder, SL_OWN_KERNEL_shuffle, &a, sizeof(a), a.elements);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                sl_own_slot(launch, offsetof(struct sl_own_shuffle, out) + i * sizeof(void *), SL_OWN_OUTPUT, i, 0);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                sl_own_slot(launch, offsetof(struct sl_own_shuffle, in) + i * sizeof(void *), SL_OWN_INPUT, i, 0);
        return 0;
}

static void add_triangle(struct sl_own_builder *builder, const struct sl_node_desc *node, bool ones)
{
        const struct sl_shape *shape = &node->outputs[0].shape;
        int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
        int64_t k = sl_attrs_int(&node->attrs, SL_ATTR_K, 0);
        struct sl_own_triangle a = {.elements = (uint32_t)sl_shape_elements(shape),
                .dtype = node->outputs[0].dtype,
                .upper = sl_attrs_int(&node->attrs, SL_ATTR_UPPER, 1) != 0,
                .rows = sl_own_divide_by((uint64_t)rows),
                .columns = sl_own_divide_by((uint64_t)columns)};
        struct sl_own_launch *launch;

        /* Beyond these all is kept, or nothing is. */
        a.diagonal = k > columns ? columns : k < -rows ? -rows : k;
        launch = sl_own_add(builder, SL_OWN_KERNEL_triangle, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_triangle, out), SL_OWN_OUTPUT, 0, 0);
        if (!ones)
                sl_own_slot(launch, offsetof(struct sl_own_triangle, in), SL_OWN_INPUT, 0, 0);
}

int sl_own_plan_trilu(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        add_triangle(builder, node, false);
        return 0;
}

int sl_own_plan_eye_like(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        add_triangle(builder, node, true);
        return 0;
}
