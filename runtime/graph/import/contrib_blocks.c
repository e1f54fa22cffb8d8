/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMulNBits: weights of 2, 4 or 8 bits in blocks along the rows of B, transposed, each block with a scale and maybe a zero point.
 * Those of 2 and 4 bits stay 4 bits, and the operator becomes starling.NibbleMatMul. Those of 8 bits, and what has zero points that
 * are floats, become float32 and the operator a MatMul: a plan has them in four bytes each. The rows of GatherBlockQuantized stay
 * 4 bits, too, and are widened where they are gathered.
 */
#include "import/contrib.h"
#include "import/expand.h"

#include "base/bytes.h"
#include "shape/nibbles.h"

#define ACCURACY_INT8 4 /* of accuracy_level: rows may go by bytes */

struct blocks {
        int64_t rows, columns;       /* of the matrix that is multiplied by, K and N */
        int64_t bits, size;          /* of a block: elements of one column */
        int64_t per_column;          /* blocks of one column */
        int64_t bytes, zero_bytes;   /* of one block, of the packed zero points of one column */
        const uint8_t *data, *zeros; /* zeros: packed as the data are, or NULL */
        const float *scales, *float_zeros;
};

static bool in_range(int64_t value)
{
        return value >= 1 && value <= INT32_MAX;
}

static void read_sizes(struct sl_expansion *x, struct blocks *b)
{
        b->rows = sl_expand_int(x, "K", 0);
        b->columns = sl_expand_int(x, "N", 0);
        b->bits = sl_expand_int(x, "bits", 4);
        b->size = sl_expand_int(x, "block_size", 0);
        if (b->bits != 2 && b->bits != 4 && b->bits != 8)
                sl_expand_refuse(x, "its attribute bits is none of 2, 4 and 8");
        if (!in_range(b->rows) || !in_range(b->columns) || !in_range(b->size) || b->size < 16 || b->size & (b->size - 1))
                sl_expand_wrong(x, "K, N or block_size is missing or outside: K and N from 1 to 2^31 - 1, block_size a power "
                                   "of two from 16 on");
        if (x->result < 0)
                return;
        b->per_column = (b->rows - 1) / b->size + 1;
        b->bytes = b->size * b->bits / 8;
        b->zero_bytes = (b->per_column * b->bits + 7) / 8;
}

/* The constant, of that type and of that many elements; NULL after an error. */
static const void *read_constant(struct sl_expansion *x, uint32_t value, uint32_t dtype, int64_t elements, const char *what)
{
        const void *data = value == SL_VALUE_NONE ? NULL : sl_graph_constant(x->im->graph, value);

        if (!data)
                sl_expand_refuse(x, what);
        else if (sl_expand_dtype(x, value) != dtype || sl_shape_elements(sl_expand_shape(x, value)) != (uint64_t)elements)
                sl_expand_wrong(
                        x, "its blocks, scales or zero points have another type or size than K, N, bits and block_size say");
        return x->result < 0 ? NULL : data;
}

static void read_constants(struct sl_expansion *x, struct blocks *b)
{
        uint32_t zeros = sl_expand_input(x, 3);
        bool halves = b->bits != 8 && sl_expand_dtype(x, sl_expand_input(x, 0)) == SL_DTYPE_F16;

        if (x->result < 0)
                return;
        b->data = read_constant(
                x, sl_expand_input(x, 1), SL_DTYPE_U8, b->columns * b->per_column * b->bytes, "its matrix B is not constant");
        b->scales = read_constant(x, sl_expand_input(x, 2), halves ? SL_DTYPE_F16 : SL_DTYPE_F32, b->columns * b->per_column,
                "its scales are not constant");
        if (zeros == SL_VALUE_NONE)
                return;
        if (sl_expand_dtype(x, zeros) == SL_DTYPE_U8)
                b->zeros = read_constant(x, zeros, SL_DTYPE_U8, b->columns * b->zero_bytes, "its zero points are not constant");
        else if (halves)
                sl_expand_refuse(x, "its zero points are float16");
        else
                b->float_zeros =
                        read_constant(x, zeros, SL_DTYPE_F32, b->columns * b->per_column, "its zero points are not constant");
}

/* Number @index of those that lie packed, the first in the lowest bits. */
static uint32_t unpack(const uint8_t *data, int64_t bits, int64_t index)
{
        int64_t bit = index * bits;

        return (uint32_t)(data[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
}

static void write_column(const struct blocks *b, int64_t column, float *to)
{
        for (int64_t k = 0; k < b->rows; k++) {
                int64_t block = column * b->per_column + k / b->size;
                float zero = (float)(1 << (b->bits - 1));

                if (b->zeros)
                        zero = (float)unpack(b->zeros + column * b->zero_bytes, b->bits, k / b->size);
                else if (b->float_zeros)
                        zero = b->float_zeros[block];
                to[k * b->columns + column] =
                        ((float)unpack(b->data + block * b->bytes, b->bits, k % b->size) - zero) * b->scales[block];
        }
}

/* The matrix [rows, columns] in float32. */
static uint32_t dequantized(struct sl_expansion *x, const struct blocks *b)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {b->rows, b->columns}}};
        uint32_t value = SL_VALUE_NONE;
        void *data;

        if (x->result == 0)
                x->result = sl_import_room(x->im, x->node->name, &tensor, &data, &value);
        for (int64_t i = 0; i < b->columns && x->result == 0; i++)
                write_column(b, i, data);
        return x->result == 0 ? value : SL_VALUE_NONE;
}

/* A byte for each block, where the file packs them. */
static uint32_t unpacked_zeros(struct sl_expansion *x, const struct blocks *b)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_U8, .shape = {.rank = 2, .dims = {b->columns, b->per_column}}};
        uint32_t value = SL_VALUE_NONE;
        void *room;

        if (x->result == 0)
                x->result = sl_import_room(x->im, x->node->name, &tensor, &room, &value);
        for (int64_t i = 0; i < b->columns * b->per_column && x->result == 0; i++)
                ((uint8_t *)room)[i] =
                        (uint8_t)(b->zeros ? unpack(b->zeros + i / b->per_column * b->zero_bytes, b->bits, i % b->per_column)
                                           : 1u << (b->bits - 1));
        return x->result == 0 ? value : SL_VALUE_NONE;
}

/* Elements of 2 bits as nibbles. */
static uint32_t widened(struct sl_expansion *x, const struct blocks *b)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_U8, .shape = {.rank = 3, .dims = {b->columns, b->per_column, b->size / 2}}};
        uint32_t value = SL_VALUE_NONE;
        void *room;

        if (x->result == 0)
                x->result = sl_import_room(x->im, x->node->name, &tensor, &room, &value);
        for (int64_t i = 0; i < b->columns * b->per_column * b->size / 2 && x->result == 0; i++)
                ((uint8_t *)room)[i] = (uint8_t)(unpack(b->data, b->bits, 2 * i) | unpack(b->data, b->bits, 2 * i + 1) << 4);
        return x->result == 0 ? value : SL_VALUE_NONE;
}

/* As the node wants it, whatever the rank of the file's: the same data. */
static uint32_t shaped(struct sl_expansion *x, uint32_t value, const struct sl_shape *shape)
{
        struct sl_tensor tensor = {.dtype = sl_expand_dtype(x, value), .shape = *shape};
        uint32_t same = value;

        if (x->result == 0 && !sl_shape_equal(sl_expand_shape(x, value), shape))
                x->result = sl_graph_add_constant(x->im->graph, x->node->name, &tensor, x->im->graph->values[value].data, &same);
        return same;
}

/* The product by the blocks as they are (kernels/shape/nibbles.h). */
static uint32_t by_nibbles(struct sl_expansion *x, const struct blocks *b)
{
        const struct sl_shape matrix = {3, {b->columns, b->per_column, b->size / 2}}, blocks = {2, {b->columns, b->per_column}};
        bool by_bytes = sl_expand_int(x, "accuracy_level", 0) == ACCURACY_INT8 && b->size <= SL_NIBBLE_BLOCK_MAX;
        struct sl_draft draft = {.op = SL_OP_NIBBLE_MATMUL, .n_inputs = 3, .n_outputs = 1};

        draft.inputs[0] = sl_expand_input(x, 0);
        draft.inputs[1] = b->bits == 4 ? shaped(x, sl_expand_input(x, 1), &matrix) : widened(x, b);
        draft.inputs[2] = shaped(x, sl_expand_input(x, 2), &blocks);
        if (b->zeros || b->bits != 4)
                draft.inputs[draft.n_inputs++] = unpacked_zeros(x, b);
        sl_attrs_set_int(&draft.attrs, SL_ATTR_BLOCK_SIZE, b->size);
        sl_attrs_set_int(&draft.attrs, SL_ATTR_MODE, by_bytes ? SL_NIBBLE_BYTES : SL_NIBBLE_FLOATS);
        return sl_expand(x, &draft);
}

SL_CONTRIB(matmul_nbits)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct blocks b = {0};
        uint32_t value;

        (void)draft;
        if (sl_expand_input(&x, 4) != SL_VALUE_NONE)
                sl_expand_refuse(&x, "its input g_idx is not supported");
        read_sizes(&x, &b);
        read_constants(&x, &b);
        if (b.bits == 8 || b.float_zeros)
                value = sl_expand_binary(&x, SL_OP_MATMUL, sl_expand_input(&x, 0), dequantized(&x, &b));
        else
                value = by_nibbles(&x, &b);
        sl_expand_output(&x, 0, sl_expand_plus(&x, value, sl_expand_input(&x, 5)));
        return sl_expansion_end(&x);
}

/* A table of rows of 4 bits an element, in blocks along a row. */
struct table {
        int64_t rows, columns, size, per_row; /* size: of a block; per_row: blocks */
        int zero;                             /* where no zero points are given */
        bool packed;                          /* two in a byte of uint8; else a byte each, of int4 or uint4 */
};

static void read_table(struct sl_expansion *x, struct table *t)
{
        uint32_t data = sl_expand_input(x, 0), scales = sl_expand_input(x, 2), dtype = sl_expand_dtype(x, data);
        const struct sl_shape *shape = sl_expand_shape(x, data), *scale = sl_expand_shape(x, scales);
        int64_t gathered = sl_expand_int(x, "gather_axis", 0), blocked = sl_expand_int(x, "quantize_axis", 1);

        t->size = sl_expand_int(x, "block_size", 128);
        t->packed = dtype == SL_DTYPE_U8;
        if (sl_expand_int(x, "bits", 4) != 4 || (!t->packed && dtype != SL_DTYPE_U4 && dtype != SL_DTYPE_I4))
                sl_expand_refuse(x, "its data are not of 4 bits");
        if (shape->rank != 2 || (gathered != 0 && gathered != -2) || (blocked != 1 && blocked != -1))
                sl_expand_refuse(x, "it gathers no rows of a matrix whose blocks lie along them");
        if (!sl_graph_constant(x->im->graph, data) || !sl_graph_constant(x->im->graph, scales))
                sl_expand_refuse(x, "its data or scales are not constant");
        if (x->result < 0)
                return;
        t->rows = shape->dims[0];
        t->columns = shape->dims[1] * (t->packed ? 2 : 1);
        t->zero = t->packed ? 8 : 0;
        if (t->size < 16 || t->size & (t->size - 1) || t->columns < 1 || t->columns % t->size || scale->rank != 2 ||
                scale->dims[0] != t->rows || scale->dims[1] != t->columns / t->size)
                sl_expand_refuse(x, "block_size is no power of two from 16 on, or its rows are no whole blocks with a scale each");
        else
                t->per_row = t->columns / t->size;
}

/* What is below 0 in int4 counts from 8 on. */
static int shift_of(uint32_t dtype)
{
        return dtype == SL_DTYPE_I4 ? 8 : 0;
}

/* [rows, columns / 2] of uint8. */
static uint32_t packed_table(struct sl_expansion *x, const struct table *t)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_U8, .shape = {.rank = 2, .dims = {t->rows, t->columns / 2}}};
        uint32_t data = sl_expand_input(x, 0), value = SL_VALUE_NONE;
        int shift = shift_of(sl_expand_dtype(x, data));
        const int8_t *from;
        void *room;

        if (t->packed)
                return data;
        if (x->result == 0)
                x->result = sl_import_room(x->im, x->node->name, &tensor, &room, &value);
        from = x->result == 0 ? sl_graph_constant(x->im->graph, data) : NULL;
        for (int64_t i = 0; i < t->rows * t->columns / 2 && x->result == 0; i++)
                ((uint8_t *)room)[i] = (uint8_t)(((from[2 * i] + shift) & 15) | ((from[2 * i + 1] + shift) & 15) << 4);
        return x->result == 0 ? value : SL_VALUE_NONE;
}

/* [rows, blocks] of uint8, or one number for all. */
static uint32_t table_zeros(struct sl_expansion *x, const struct table *t, uint32_t to)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_U8, .shape = {.rank = 2, .dims = {t->rows, t->per_row}}};
        uint32_t zeros = sl_expand_input(x, 3), value = SL_VALUE_NONE, dtype = sl_expand_dtype(x, zeros);
        int shift = shift_of(sl_expand_dtype(x, sl_expand_input(x, 0)));
        int64_t bytes = (t->per_row + 1) / 2;
        const uint8_t *from;
        void *room;

        if (zeros == SL_VALUE_NONE)
                return sl_expand_number(x, t->zero + shift, to);
        from = read_constant(x, zeros, dtype, t->rows * (t->packed ? bytes : t->per_row), "its zero points are not constant");
        if (x->result == 0 && dtype != sl_expand_dtype(x, sl_expand_input(x, 0)))
                sl_expand_wrong(x, "its zero points have another type than its data");
        if (x->result == 0)
                x->result = sl_import_room(x->im, x->node->name, &tensor, &room, &value);
        for (int64_t i = 0; i < t->rows * t->per_row && x->result == 0; i++)
                ((uint8_t *)room)[i] = (uint8_t)(t->packed ? unpack(from + i / t->per_row * bytes, 4, i % t->per_row)
                                                           : (uint32_t)((int8_t)from[i] + shift));
        return x->result == 0 ? value : SL_VALUE_NONE;
}

static uint32_t gather_rows(struct sl_expansion *x, uint32_t table, uint32_t indices)
{
        return sl_expand_binary(x, SL_OP_GATHER, table, indices);
}

/* The rows as numbers from 0 to 15, [indices..., columns / 2, 2]: a byte is 16 times one element and another. */
static uint32_t gather_elements(struct sl_expansion *x, const struct table *t, uint32_t indices, uint32_t to, int64_t rank)
{
        const int64_t last = rank + 1;
        uint32_t bytes = sl_expand_cast(x, gather_rows(x, packed_table(x, t), indices), to);
        uint32_t high = sl_expand_unary(x, SL_OP_FLOOR, sl_expand_times(x, bytes, 1.0 / 16));
        uint32_t low = sl_expand_binary(x, SL_OP_SUB, bytes, sl_expand_times(x, high, 16));

        low = sl_expand_unsqueeze(x, low, &last, 1);
        high = sl_expand_unsqueeze(x, high, &last, 1);
        return sl_expand_concat(x, low, high, last);
}

/* A row for each index: elements less the zero points of their blocks, times the scales. */
SL_CONTRIB(gather_block_quantized)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t indices = sl_expand_input(&x, 1), to = sl_expand_dtype(&x, sl_expand_input(&x, 2)), rows, zeros, scales;
        int64_t rank = sl_expand_shape(&x, indices)->rank, dims[SL_RANK_MAX] = {0}, last = rank + 1;
        struct table t = {0};

        (void)draft;
        if (rank + 2 > SL_RANK_MAX)
                sl_expand_refuse(&x, "its indices have too many dimensions");
        read_table(&x, &t);
        if (x.result < 0)
                return sl_expansion_end(&x);
        rows = gather_elements(&x, &t, indices, to, rank);
        dims[rank] = t.per_row;
        dims[rank + 1] = t.size;
        rows = sl_expand_reshape(&x, rows, dims, (uint32_t)rank + 2);
        zeros = table_zeros(&x, &t, to);
        if (sl_expand_input(&x, 3) != SL_VALUE_NONE)
                zeros = sl_expand_unsqueeze(&x, sl_expand_cast(&x, gather_rows(&x, zeros, indices), to), &last, 1);
        scales = sl_expand_unsqueeze(&x, gather_rows(&x, sl_expand_input(&x, 2), indices), &last, 1);
        rows = sl_expand_binary(&x, SL_OP_MUL, sl_expand_binary(&x, SL_OP_SUB, rows, zeros), scales);
        dims[rank] = t.columns;
        sl_expand_output(&x, 0, sl_expand_reshape(&x, rows, dims, (uint32_t)rank + 1));
        return sl_expansion_end(&x);
}
