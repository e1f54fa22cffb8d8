/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that only moves elements: views bound to other memory, Concat, Slice, Split, Transpose, Pad, Expand, Tile and the
 * reorder between layouts. Each is a list of moves, and a move is a walk over the elements of one input and their places in one
 * output. Any type: elements are bytes. A view whose output is its input moves nothing.
 */
#include "cpu/base/walk.h"
#include "cpu/movement/loops.h"
#include "shape/rearrange.h"
#include "shape/rules.h"
#include "shape/slice.h"

#include <stddef.h>
#include <string.h>

struct move {
        uint32_t input, output;
        int64_t from, to;    /* in elements */
        struct sl_walk walk; /* the output, the input */
};

struct copy {
        uint32_t element_bytes;
        uint32_t fills; /* the whole output is filled first */
        int64_t fill_elements;
        unsigned char fill_value[8];
        uint32_t n_moves;
        struct move moves[SL_NODE_INPUTS_MAX];
};

/* A tile's rows of input and of output stay in the L1 cache while it is turned. */
#define TILE 16

/* Copies of so few elements are no calls. */
#define FEW 4

/* A fill copies its own beginning, no more of it than stays in that cache. A multiple of every element's size. */
#define FILL_BYTES 4096

/* The channels of an image, side by side: to[i][j] = from[j][i] for so few j that a row of them is no loop. */
#define DEFINE_WEAVE(name, type, columns)                                                                                          \
        SL_CPU_CLONES static void weave_##columns##_##name(                                                                        \
                int64_t rows, type *restrict to, const type *restrict from, int64_t from_column)                                   \
        {                                                                                                                          \
                for (int64_t i = 0; i < rows; i++)                                                                                 \
                        for (int64_t j = 0; j < (columns); j++)                                                                    \
                                to[i * (columns) + j] = from[i + j * from_column];                                                 \
        }

#define DEFINE_MOVES(name, type)                                                                                                   \
        DEFINE_WEAVE(name, type, 2)                                                                                                \
        DEFINE_WEAVE(name, type, 3)                                                                                                \
        DEFINE_WEAVE(name, type, 4)                                                                                                \
                                                                                                                                   \
        static void turn_any_##name(                                                                                               \
                int64_t rows, int64_t columns, type *to, int64_t to_row, const type *from, int64_t from_column)                    \
        {                                                                                                                          \
                for (int64_t i = 0; i < rows; i++)                                                                                 \
                        for (int64_t j = 0; j < columns; j++)                                                                      \
                                to[i * to_row + j] = from[i + j * from_column];                                                    \
        }                                                                                                                          \
                                                                                                                                   \
        /* to[i][j] = from[j][i] */                                                                                                \
        static void turn_##name(int64_t rows, int64_t columns, type *to, int64_t to_row, const type *from, int64_t from_column)    \
        {                                                                                                                          \
                if (columns == to_row && columns == 2)                                                                             \
                        return weave_2_##name(rows, to, from, from_column);                                                        \
                if (columns == to_row && columns == 3)                                                                             \
                        return weave_3_##name(rows, to, from, from_column);                                                        \
                if (columns == to_row && columns == 4)                                                                             \
                        return weave_4_##name(rows, to, from, from_column);                                                        \
                for (int64_t i = 0; i < rows; i += TILE)                                                                           \
                        for (int64_t j = 0; j < columns; j += TILE)                                                                \
                                turn_tile_##name(rows - i < TILE ? rows - i : TILE, columns - j < TILE ? columns - j : TILE,       \
                                        to + i * to_row + j, to_row, from + i + j * from_column, from_column);                     \
        }                                                                                                                          \
                                                                                                                                   \
        static inline __attribute__((always_inline)) void step_row_##name(                                                         \
                int64_t n, type *restrict to, int64_t to_step, const type *restrict from, int64_t from_step)                       \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        to[i * to_step] = from[i * from_step];                                                                     \
        }                                                                                                                          \
                                                                                                                                   \
        SL_CPU_CLONES static void move_row_##name(int64_t n, type *to, int64_t to_step, const type *from, int64_t from_step)       \
        {                                                                                                                          \
                if (to_step == 1 && from_step == 0)                                                                                \
                        step_row_##name(n, to, 1, from, 0);                                                                        \
                else if (to_step == 1 && from_step == 2)                                                                           \
                        step_row_##name(n, to, 1, from, 2);                                                                        \
                else if (to_step == 2 && from_step == 1)                                                                           \
                        step_row_##name(n, to, 2, from, 1);                                                                        \
                else                                                                                                               \
                        step_row_##name(n, to, to_step, from, from_step);                                                          \
        }                                                                                                                          \
                                                                                                                                   \
        static inline __attribute__((always_inline)) void move_rows_of_##name(                                                     \
                int64_t rows, int64_t n, type *restrict to, int64_t to_row, const type *restrict from, int64_t from_row)           \
        {                                                                                                                          \
                for (int64_t i = 0; i < rows; i++)                                                                                 \
                        memcpy(to + i * to_row, from + i * from_row, (size_t)n * sizeof(type));                                    \
        }                                                                                                                          \
                                                                                                                                   \
        /* Of few elements each. */                                                                                                \
        static void move_rows_##name(                                                                                              \
                int64_t rows, int64_t n, type *restrict to, int64_t to_row, const type *restrict from, int64_t from_row)           \
        {                                                                                                                          \
                switch (n) {                                                                                                       \
                case 2:                                                                                                            \
                        return move_rows_of_##name(rows, 2, to, to_row, from, from_row);                                           \
                case 3:                                                                                                            \
                        return move_rows_of_##name(rows, 3, to, to_row, from, from_row);                                           \
                default:                                                                                                           \
                        return move_rows_of_##name(rows, 4, to, to_row, from, from_row);                                           \
                }                                                                                                                  \
        }                                                                                                                          \
                                                                                                                                   \
        static void move_##name(const struct sl_walk *all, const struct sl_part *part, type *to, const type *from)                 \
        {                                                                                                                          \
                struct sl_walk room;                                                                                               \
                struct sl_walk_row row;                                                                                            \
                const struct sl_walk *walk = sl_walk_take(all, part, &room, &row);                                                 \
                uint32_t outer = walk->rank - 2; /* looked at only when there are two dimensions */                                \
                int64_t n = sl_walk_row_length(walk), to_step = sl_walk_row_stride(walk, 0);                                       \
                int64_t from_step = sl_walk_row_stride(walk, 1);                                                                   \
                bool few = walk->rank > 1 && to_step == 1 && from_step == 1 && n > 1 && n <= FEW;                                  \
                bool turns = walk->rank > 1 && to_step == 1 && from_step != 1 && walk->strides[1][outer] == 1;                     \
                                                                                                                                   \
                if (sl_walk_is_empty(walk))                                                                                        \
                        return;                                                                                                    \
                do {                                                                                                               \
                        type *out = to + row.offset[0];                                                                            \
                        const type *in = from + row.offset[1];                                                                     \
                                                                                                                                   \
                        if (turns)                                                                                                 \
                                turn_##name(walk->sizes[outer], n, out, walk->strides[0][outer], in, from_step);                   \
                        else if (few)                                                                                              \
                                move_rows_##name(                                                                                  \
                                        walk->sizes[outer], n, out, walk->strides[0][outer], in, walk->strides[1][outer]);         \
                        else if (to_step == 1 && from_step == 1)                                                                   \
                                memcpy(out, in, (size_t)n * sizeof(type));                                                         \
                        else                                                                                                       \
                                move_row_##name(n, out, to_step, in, from_step);                                                   \
                } while (sl_walk_next(walk, &row, turns || few ? 2 : 1));                                                          \
        }

#define turn_tile_8  turn_any_8
#define turn_tile_16 turn_any_16
#define turn_tile_64 turn_any_64

static void turn_any_32(int64_t rows, int64_t columns, uint32_t *to, int64_t to_row, const uint32_t *from, int64_t from_column);

typedef uint32_t eight __attribute__((vector_size(32), aligned(4), may_alias));

#define PAIRS(a, b)        __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define UPPER_PAIRS(a, b)  __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define FOURS(a, b)        __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define UPPER_FOURS(a, b)  __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define HALVES(a, b)       __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define UPPER_HALVES(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* Eight rows by eight columns, in registers. */
static inline __attribute__((always_inline)) void turn_eight(
        uint32_t *to, int64_t to_row, const uint32_t *from, int64_t from_column)
{
        eight r[8], pairs[8], fours[8];

        for (int k = 0; k < 8; k++)
                r[k] = *(const eight *)(from + k * from_column);
        for (int k = 0; k < 8; k += 2) {
                pairs[k] = PAIRS(r[k], r[k + 1]);
                pairs[k + 1] = UPPER_PAIRS(r[k], r[k + 1]);
        }
        for (int k = 0; k < 8; k += 4)
                for (int half = 0; half < 2; half++) {
                        fours[k + 2 * half] = FOURS(pairs[k + half], pairs[k + half + 2]);
                        fours[k + 2 * half + 1] = UPPER_FOURS(pairs[k + half], pairs[k + half + 2]);
                }
        for (int k = 0; k < 4; k++) {
                *(eight *)(to + k * to_row) = HALVES(fours[k], fours[k + 4]);
                *(eight *)(to + (k + 4) * to_row) = UPPER_HALVES(fours[k], fours[k + 4]);
        }
}

SL_CPU_CLONES static void turn_tile_32(
        int64_t rows, int64_t columns, uint32_t *to, int64_t to_row, const uint32_t *from, int64_t from_column)
{
        int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;

        for (int64_t i = 0; i < whole_rows; i += 8)
                for (int64_t j = 0; j < whole_columns; j += 8)
                        turn_eight(to + i * to_row + j, to_row, from + i + j * from_column, from_column);
        if (whole_columns < columns)
                turn_any_32(whole_rows, columns - whole_columns, to + whole_columns, to_row, from + whole_columns * from_column,
                        from_column);
        if (whole_rows < rows)
                turn_any_32(rows - whole_rows, columns, to + whole_rows * to_row, to_row, from + whole_rows, from_column);
}

DEFINE_MOVES(8, uint8_t)
DEFINE_MOVES(16, uint16_t)
DEFINE_MOVES(32, uint32_t)
DEFINE_MOVES(64, uint64_t)

/* @part: along rows, or NULL. */
static void run_move(const struct copy *copy, const struct move *m, const struct sl_part *part, const struct sl_binding *binding)
{
        const char *from = binding->inputs[m->input];
        char *to = binding->outputs[m->output];

        if (from == to || sl_walk_is_empty(&m->walk))
                return;
        from += m->from * copy->element_bytes;
        to += m->to * copy->element_bytes;
        switch (copy->element_bytes) {
        case 1:
                return move_8(&m->walk, part, (uint8_t *)to, (const uint8_t *)from);
        case 2:
                return move_16(&m->walk, part, (uint16_t *)to, (const uint16_t *)from);
        case 4:
                return move_32(&m->walk, part, (uint32_t *)to, (const uint32_t *)from);
        default:
                return move_64(&m->walk, part, (uint64_t *)to, (const uint64_t *)from);
        }
}

/* The first half of what is filled fills the second: long copies, whatever the element's size. */
static void run_fill(const struct copy *copy, char *output)
{
        size_t bytes = (size_t)copy->fill_elements * copy->element_bytes, done = copy->element_bytes;

        if (!bytes)
                return;
        memcpy(output, copy->fill_value, done);
        while (done < bytes) {
                size_t step = done < bytes - done ? done : bytes - done;

                step = step < FILL_BYTES ? step : FILL_BYTES;
                memcpy(output + done, output, step);
                done += step;
        }
}

static int copy_run(const void *state, const struct sl_binding *binding)
{
        const struct copy *copy = state;
        const struct sl_part *part = binding->part;
        struct sl_part moves = sl_part_along(part, SL_AXIS_COLUMNS, copy->n_moves);

        if (copy->fills)
                run_fill(copy, binding->outputs[0]);
        for (int64_t i = moves.first; i < moves.end; i++)
                run_move(copy, &copy->moves[i], part && part->axis == SL_AXIS_ROWS ? part : NULL, binding);
        return 0;
}

static struct move *add_move(struct copy *copy, uint32_t input, uint32_t output, const struct sl_shape *shape)
{
        struct move *m = &copy->moves[copy->n_moves++];

        m->input = input;
        m->output = output;
        m->walk.rank = shape->rank;
        m->walk.n_tensors = 2;
        for (uint32_t d = 0; d < shape->rank; d++)
                m->walk.sizes[d] = shape->dims[d];
        return m;
}

/* Same elements in the same order, whatever the shapes say. */
static bool plan_view(const struct sl_node_desc *node, struct copy *copy)
{
        struct sl_shape flat = {.rank = 1, .dims = {(int64_t)sl_shape_elements(&node->inputs[0].shape)}};
        struct move *m;

        if (node->inputs[0].layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return false;
        if (sl_shape_elements(&node->outputs[0].shape) != (uint64_t)flat.dims[0])
                return false;
        m = add_move(copy, 0, 0, &flat);
        m->walk.strides[0][0] = m->walk.strides[1][0] = 1;
        return true;
}

/* Same logical elements, repeated along broadcast dimensions; layouts may differ. */
static bool plan_spread(const struct sl_node_desc *node, struct copy *copy)
{
        struct move *m = add_move(copy, 0, 0, &node->outputs[0].shape);

        return sl_walk_elements(&m->walk, &node->outputs[0], &node->inputs[0], 1);
}

static bool plan_concat(const struct sl_node_desc *node, struct copy *copy)
{
        int64_t to_strides[SL_RANK_MAX], start = 0;
        uint32_t axis;

        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), node->outputs[0].shape.rank, &axis, NULL))
                return false;
        sl_tensor_strides(&node->outputs[0], to_strides);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                struct move *m = add_move(copy, i, 0, &node->inputs[i].shape);

                memcpy(m->walk.strides[0], to_strides, sizeof(to_strides));
                sl_tensor_strides(&node->inputs[i], m->walk.strides[1]);
                m->to = start * to_strides[axis];
                start += node->inputs[i].shape.dims[axis];
        }
        return start == node->outputs[0].shape.dims[axis];
}

static bool plan_split(const struct sl_node_desc *node, struct copy *copy)
{
        int64_t from_strides[SL_RANK_MAX], start = 0;
        uint32_t axis;

        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), node->inputs[0].shape.rank, &axis, NULL))
                return false;
        sl_tensor_strides(&node->inputs[0], from_strides);
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                struct move *m = add_move(copy, 0, i, &node->outputs[i].shape);

                sl_tensor_strides(&node->outputs[i], m->walk.strides[0]);
                memcpy(m->walk.strides[1], from_strides, sizeof(from_strides));
                m->from = start * from_strides[axis];
                start += node->outputs[i].shape.dims[axis];
        }
        return start == node->inputs[0].shape.dims[axis];
}

/* Which of @n tensors that lie side by side along the channels has channel @channel, and where that tensor begins. */
static uint32_t tensor_of(const struct sl_tensor *tensors, uint32_t n, int64_t channel, int64_t *ret_first)
{
        uint32_t i = 0;

        for (*ret_first = 0; i + 1 < n && channel >= *ret_first + tensors[i].shape.dims[1]; i++)
                *ret_first += tensors[i].shape.dims[1];
        return i;
}

/*
 * A run of channels of one group that lie in one input and in one output: side by side in the former, a group apart in the latter.
 * Returns how many there are from channel @j of group @g on.
 */
static int64_t add_run(const struct sl_node_desc *node, struct copy *copy, int64_t group, int64_t size, int64_t g, int64_t j)
{
        int64_t from = g * size + j, to = j * group + g, first_in, first_out, n;
        uint32_t in = tensor_of(node->inputs, node->n_inputs, from, &first_in);
        uint32_t out = tensor_of(node->outputs, node->n_outputs, to, &first_out);
        int64_t left_in = first_in + node->inputs[in].shape.dims[1] - from;
        int64_t left_out = (first_out + node->outputs[out].shape.dims[1] - to + group - 1) / group;
        struct move *m = add_move(copy, in, out, &node->inputs[in].shape);

        n = left_in < left_out ? left_in : left_out;
        n = n < size - j ? n : size - j;
        sl_tensor_strides(&node->outputs[out], m->walk.strides[0]);
        sl_tensor_strides(&node->inputs[in], m->walk.strides[1]);
        m->from = (from - first_in) * m->walk.strides[1][1];
        m->to = (to - first_out) * m->walk.strides[0][1];
        m->walk.sizes[1] = n;
        m->walk.strides[0][1] *= group;
        return n;
}

static bool plan_shuffle(const struct sl_node_desc *node, struct copy *copy)
{
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), channels = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                channels += node->inputs[i].shape.dims[1];
        for (int64_t g = 0; g < group && channels; g++)
                for (int64_t j = 0; j < channels / group;) {
                        if (copy->n_moves == SL_NODE_INPUTS_MAX)
                                return false;
                        j += add_run(node, copy, group, channels / group, g, j);
                }
        return true;
}

static bool plan_slice(const struct sl_node_desc *node, struct copy *copy)
{
        struct sl_slice slices[SL_RANK_MAX];
        struct move *m = add_move(copy, 0, 0, &node->outputs[0].shape);
        int64_t strides[SL_RANK_MAX];

        if (!sl_attrs_find(&node->attrs, SL_ATTR_STARTS) || sl_slice_read(node, slices, NULL))
                return false;
        sl_tensor_strides(&node->inputs[0], strides);
        sl_tensor_strides(&node->outputs[0], m->walk.strides[0]);
        for (uint32_t d = 0; d < node->inputs[0].shape.rank; d++) {
                if (slices[d].count != node->outputs[0].shape.dims[d])
                        return false;
                m->walk.strides[1][d] = strides[d] * slices[d].step;
                m->from += strides[d] * slices[d].first;
        }
        return true;
}

static bool plan_transpose(const struct sl_node_desc *node, struct copy *copy)
{
        struct move *m = add_move(copy, 0, 0, &node->outputs[0].shape);
        uint32_t rank = node->inputs[0].shape.rank;
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(&node->inputs[0], strides);
        sl_tensor_strides(&node->outputs[0], m->walk.strides[0]);
        for (uint32_t d = 0; d < rank; d++) {
                int64_t from = sl_attrs_ints(&node->attrs, SL_ATTR_PERM, d, rank - 1 - d);

                if (from < 0 || from >= rank || node->inputs[0].shape.dims[from] != m->walk.sizes[d])
                        return false;
                m->walk.strides[1][d] = strides[from];
        }
        return true;
}

/* Each dimension becomes two: its repeats and its elements. */
static bool plan_tile(const struct sl_node_desc *node, struct copy *copy)
{
        struct move *m = add_move(copy, 0, 0, &node->outputs[0].shape);
        const struct sl_shape *in = &node->inputs[0].shape, *out = &node->outputs[0].shape;
        int64_t from[SL_RANK_MAX], to[SL_RANK_MAX];

        sl_tensor_strides(&node->inputs[0], from);
        sl_tensor_strides(&node->outputs[0], to);
        m->walk.rank = 2 * in->rank;
        for (uint32_t d = 0; d < in->rank; d++) {
                m->walk.sizes[2 * d] = in->dims[d] ? out->dims[d] / in->dims[d] : 0;
                m->walk.sizes[2 * d + 1] = in->dims[d];
                m->walk.strides[0][2 * d] = to[d] * in->dims[d];
                m->walk.strides[0][2 * d + 1] = to[d];
                m->walk.strides[1][2 * d + 1] = from[d];
        }
        return true;
}

static bool plan_blocks(const struct sl_node_desc *node, struct copy *copy)
{
        struct move *m = add_move(copy, 0, 0, &node->outputs[0].shape);
        struct sl_block_walk blocks;

        sl_block_walk_read(node, &blocks);
        m->walk.rank = SL_BLOCK_WALK_RANK;
        memcpy(m->walk.sizes, blocks.sizes, sizeof(blocks.sizes));
        memcpy(m->walk.strides[0], blocks.out_strides, sizeof(blocks.out_strides));
        memcpy(m->walk.strides[1], blocks.in_strides, sizeof(blocks.in_strides));
        return true;
}

static bool plan_fill(const struct sl_node_desc *node, struct copy *copy)
{
        double value = sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 0.0);
        float single = (float)value;

        if (value != 0.0 && !sl_cpu_is_f32(&node->outputs[0]))
                return false;
        copy->fills = 1;
        copy->fill_elements = (int64_t)sl_shape_elements(&node->outputs[0].shape);
        if (value != 0.0)
                memcpy(copy->fill_value, &single, sizeof(single));
        return true;
}

/* Constant padding: fill, then place what remains of the input after negative pads have cut it. */
static bool plan_pad(const struct sl_node_desc *node, struct copy *copy)
{
        int64_t begin[SL_RANK_MAX], end[SL_RANK_MAX], from[SL_RANK_MAX], to[SL_RANK_MAX];
        const struct sl_shape *in = &node->inputs[0].shape;
        struct move *m = add_move(copy, 0, 0, in);

        if (sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) || !sl_attrs_find(&node->attrs, SL_ATTR_PADS))
                return false;
        if (sl_pads_read(node, begin, end, NULL) || !plan_fill(node, copy))
                return false;
        sl_tensor_strides(&node->inputs[0], from);
        sl_tensor_strides(&node->outputs[0], to);
        for (uint32_t d = 0; d < in->rank; d++) {
                int64_t cut_begin = begin[d] < 0 ? -begin[d] : 0, cut_end = end[d] < 0 ? -end[d] : 0;

                if (cut_begin + cut_end > in->dims[d])
                        return false;
                m->walk.sizes[d] = in->dims[d] - cut_begin - cut_end;
                m->walk.strides[0][d] = to[d];
                m->walk.strides[1][d] = from[d];
                m->from += cut_begin * from[d];
                m->to += (begin[d] > 0 ? begin[d] : 0) * to[d];
        }
        return true;
}

static bool plan_moves(const struct sl_node_desc *node, struct copy *copy)
{
        switch (node->op) {
        case SL_OP_RESHAPE:
        case SL_OP_FLATTEN:
        case SL_OP_SQUEEZE:
        case SL_OP_UNSQUEEZE:
                return plan_view(node, copy);
        case SL_OP_IDENTITY:
        case SL_OP_EXPAND:
        case SL_OP_REORDER:
                return plan_spread(node, copy);
        case SL_OP_CONCAT:
                return plan_concat(node, copy);
        case SL_OP_CHANNEL_SHUFFLE:
                return plan_shuffle(node, copy);
        case SL_OP_SPLIT:
                return plan_split(node, copy);
        case SL_OP_SLICE:
                return plan_slice(node, copy);
        case SL_OP_TRANSPOSE:
                return plan_transpose(node, copy);
        case SL_OP_TILE:
                return plan_tile(node, copy);
        case SL_OP_PAD:
                return plan_pad(node, copy);
        case SL_OP_DEPTH_TO_SPACE:
        case SL_OP_SPACE_TO_DEPTH:
                return plan_blocks(node, copy);
        default:
                return false;
        }
}

static bool copy_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct copy *copy = state;

        copy->element_bytes = (uint32_t)sl_dtype_bytes(node->inputs[0].dtype);
        if (!copy->element_bytes || node->outputs[0].dtype != node->inputs[0].dtype || !plan_moves(node, copy))
                return false;
        for (uint32_t i = 0; i < copy->n_moves; i++)
                sl_walk_order(&copy->moves[i].walk);
        sizes->state_bytes = offsetof(struct copy, moves) + copy->n_moves * sizeof(struct move);
        return true;
}

/* A single move is cut along its walk, several are cut between. */
static int64_t copy_units(const void *state, uint32_t axis)
{
        const struct copy *copy = state;

        if (copy->fills)
                return 0;
        if (copy->n_moves == 1)
                return sl_walk_units(&copy->moves[0].walk, axis);
        return axis == SL_AXIS_COLUMNS ? copy->n_moves : 0;
}

/* False: it does not go one way through its memory. */
static bool reach_of_move(
        const struct copy *copy, const struct move *m, const struct sl_part *part, bool writes, struct sl_reach *ret_reach)
{
        if (!sl_walk_reach(&m->walk, part, writes ? 0 : 1, copy->element_bytes, ret_reach))
                return false;
        ret_reach->first += (writes ? m->to : m->from) * copy->element_bytes;
        return true;
}

/* Of several moves, from the first byte to the last. */
static void join_reaches(const struct sl_reach *more, struct sl_reach *reach)
{
        int64_t end = reach->first + (reach->runs - 1) * reach->pitch + reach->bytes,
                more_end = more->first + (more->runs - 1) * more->pitch + more->bytes;

        if (!more->runs)
                return;
        if (!reach->runs) {
                *reach = *more;
                return;
        }
        *reach = (struct sl_reach){.first = more->first < reach->first ? more->first : reach->first, .runs = 1};
        reach->bytes = (more_end > end ? more_end : end) - reach->first;
}

static bool copy_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct copy *copy = state;
        struct sl_part moves = sl_part_along(part, SL_AXIS_COLUMNS, copy->n_moves);
        struct sl_reach reach = {.runs = 0}, more;
        bool writes = operand >= SL_REACH_OUTPUT;

        if (copy->fills)
                return false;
        for (int64_t i = moves.first; i < moves.end; i++) {
                const struct move *m = &copy->moves[i];

                if (writes ? m->output != operand - SL_REACH_OUTPUT : m->input != operand)
                        continue;
                if (!reach_of_move(copy, m, part->axis == SL_AXIS_ROWS ? part : NULL, writes, &more))
                        return false;
                join_reaches(&more, &reach);
        }
        *ret_reach = reach;
        return true;
}

const struct sl_cpu_loop sl_cpu_copy = {
        .state_bytes = sizeof(struct copy), .plan = copy_plan, .run = copy_run, .units = copy_units, .reach = copy_reach};
