/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMulNBits: weights of 2, 4 or 8 bits in blocks along the rows of B, transposed, each block with a scale and maybe a zero point.
 * They become float32 when the file is imported, and the operator a MatMul: a plan has them in four bytes each.
 */
#include "import/contrib.h"
#include "import/expand.h"

#include "base/bytes.h"

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
                sl_expand_wrong(x, "K, N or block_size is missing or out of range");
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

        if (x->result < 0)
                return;
        b->data = read_constant(
                x, sl_expand_input(x, 1), SL_DTYPE_U8, b->columns * b->per_column * b->bytes, "its matrix B is not constant");
        b->scales =
                read_constant(x, sl_expand_input(x, 2), SL_DTYPE_F32, b->columns * b->per_column, "its scales are not constant");
        if (zeros == SL_VALUE_NONE)
                return;
        if (sl_expand_dtype(x, zeros) == SL_DTYPE_U8)
                b->zeros = read_constant(x, zeros, SL_DTYPE_U8, b->columns * b->zero_bytes, "its zero points are not constant");
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
        float *data;

        if (x->result == 0)
                x->result = sl_import_floats(x->im, x->node->name, &tensor, &data, &value);
        for (int64_t i = 0; i < b->columns && x->result == 0; i++)
                write_column(b, i, data);
        return x->result == 0 ? value : SL_VALUE_NONE;
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
        value = sl_expand_binary(&x, SL_OP_MATMUL, sl_expand_input(&x, 0), dequantized(&x, &b));
        sl_expand_output(&x, 0, sl_expand_plus(&x, value, sl_expand_input(&x, 5)));
        return sl_expansion_end(&x);
}
