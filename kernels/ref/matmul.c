/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "epilogue.h"
#include "kernels.h"
#include "walk.h"

#include <string.h>

/* Rows and columns that are summed side by side: a row of the right matrix is read along its line, and for several rows at once. */
#define ROWS  4
#define TILE  16
#define LANES 8

/* Rows of the right matrix between two looks at the pace. */
#define LOOK_EVERY 256

#define INLINE static inline __attribute__((always_inline))

/* One product of matrices, [rows, inner] x [inner, columns]; strides in elements. */
struct product {
        int64_t rows, columns, inner;
        int64_t a_row, a_column, b_row, b_column, bias_row, bias_column;
        double alpha, beta;
        struct sl_pace *pace;
        const void *a, *b, *bias, *residual;
        void *out;
        int64_t a_at, b_at, bias_at, out_at;
        const struct sl_epilogue *epilogue;
};

INLINE void finish_float(const struct product *p, int64_t i, int64_t j, double sum, uint32_t dtype)
{
        int64_t at = p->out_at + i * p->columns + j;

        sum *= p->alpha;
        if (p->bias)
                sum += p->beta * sl_ref_load(p->bias, p->bias_at + i * p->bias_row + j * p->bias_column, dtype);
        if (p->residual)
                sum += sl_ref_load(p->residual, at, dtype);
        sl_ref_store(p->out, at, dtype, sl_ref_activate(p->epilogue, sum));
}

INLINE uint64_t steps_ahead(const struct product *p, int64_t k, int64_t sums)
{
        int64_t rows = p->inner - k < LOOK_EVERY ? p->inner - k : LOOK_EVERY;

        return (uint64_t)(rows * sums);
}

/* Each sum is taken in the order of the inner dimension, whatever lies beside it. */
INLINE void multiply_block(const struct product *p, int64_t i, int64_t rows, int64_t j, int64_t width, uint32_t dtype)
{
        double sums[ROWS][TILE] = {0};

        for (int64_t k = 0; k < p->inner; k++) {
                if (!(k % LOOK_EVERY) && !sl_pace_on(p->pace, steps_ahead(p, k, rows * width)))
                        return;

                int64_t a_at = p->a_at + i * p->a_row + k * p->a_column, b_at = p->b_at + k * p->b_row + j * p->b_column;
                double right[TILE];

                for (int64_t t = 0; t < width; t++)
                        right[t] = sl_ref_load(p->b, b_at + t * p->b_column, dtype);
                for (int64_t r = 0; r < rows; r++) {
                        double left = sl_ref_load(p->a, a_at + r * p->a_row, dtype);

                        for (int64_t t = 0; t < width; t++)
                                sums[r][t] += left * right[t];
                }
        }
        for (int64_t r = 0; r < rows; r++)
                for (int64_t t = 0; t < width; t++)
                        finish_float(p, i + r, j + t, sums[r][t], dtype);
}

/* Eight sums that lie in one register where there are such; elsewhere the compiler cuts them. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

INLINE void load_lanes(const void *values, int64_t at, uint32_t dtype, lanes *ret_loaded)
{
        float floats __attribute__((vector_size(LANES * sizeof(float))));

        if (dtype == SL_DTYPE_F32) {
                memcpy(&floats, (const float *)values + at, sizeof(floats));
                *ret_loaded = __builtin_convertvector(floats, lanes);
                return;
        }
        for (int t = 0; t < LANES; t++)
                (*ret_loaded)[t] = sl_ref_load(values, at + t, dtype);
}

/* The same for a whole block whose columns lie side by side: its sums stay in registers. */
INLINE void multiply_whole_block(const struct product *p, int64_t i, int64_t j, uint32_t dtype)
{
        lanes sums[ROWS][TILE / LANES] = {0}; /* only with indices that the compiler knows: else they would lie in memory */
        double finished[ROWS][TILE];

        for (int64_t k = 0; k < p->inner; k++) {
                if (!(k % LOOK_EVERY) && !sl_pace_on(p->pace, steps_ahead(p, k, ROWS * TILE)))
                        return;

                int64_t a_at = p->a_at + i * p->a_row + k * p->a_column, b_at = p->b_at + k * p->b_row + j;
                lanes left = {0}, right = {0};

                load_lanes(p->b, b_at, dtype, &left);
                load_lanes(p->b, b_at + LANES, dtype, &right);
#pragma GCC unroll 8
                for (int r = 0; r < ROWS; r++) {
                        double factor = sl_ref_load(p->a, a_at + r * p->a_row, dtype);

                        sums[r][0] += factor * left;
                        sums[r][1] += factor * right;
                }
        }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
                memcpy(finished[r], &sums[r][0], sizeof(sums[r][0]));
                memcpy(finished[r] + LANES, &sums[r][1], sizeof(sums[r][1]));
        }
        for (int64_t r = 0; r < ROWS; r++)
                for (int64_t t = 0; t < TILE; t++)
                        finish_float(p, i + r, j + t, finished[r][t], dtype);
}

/* Columns outside: what all rows take of the right matrix stays near. */
INLINE void multiply_floats(const struct product *p, uint32_t dtype)
{
        for (int64_t j = 0; j < p->columns; j += TILE)
                for (int64_t i = 0; i < p->rows && sl_pace_on(p->pace, TILE); i += ROWS) {
                        int64_t rows = p->rows - i < ROWS ? p->rows - i : ROWS;
                        int64_t width = p->columns - j < TILE ? p->columns - j : TILE;

                        if (rows == ROWS && width == TILE && p->b_column == 1)
                                multiply_whole_block(p, i, j, dtype);
                        else
                                multiply_block(p, i, rows, j, width, dtype);
                }
}

/* The compiler's own vectors keep the bits: nothing is contracted. Constants of models are folded by this. */
SL_REF_CLONES static void multiply_f32(const struct product *p)
{
        multiply_floats(p, SL_DTYPE_F32);
}

/* Scales by a factor that is 1 in nearly every file, and then must stay exact. */
static uint64_t scale_bits(uint64_t bits, double factor, uint32_t dtype)
{
        if (factor == 1)
                return bits;
        double value = sl_ref_is_unsigned(dtype) ? (double)bits : (double)(int64_t)bits;
        return sl_ref_saturate(value * factor, dtype);
}

static void multiply_integers(const struct product *p, uint32_t dtype)
{
        for (int64_t i = 0; i < p->rows; i++)
                for (int64_t j = 0; j < p->columns && sl_pace_on(p->pace, 1); j++) {
                        uint64_t sum = 0;

                        for (int64_t k = 0; k < p->inner && sl_pace_on(p->pace, 1); k++)
                                sum += sl_ref_load_bits(p->a, p->a_at + i * p->a_row + k * p->a_column, dtype) *
                                       sl_ref_load_bits(p->b, p->b_at + k * p->b_row + j * p->b_column, dtype);
                        sum = scale_bits(sum, p->alpha, dtype);
                        if (p->bias)
                                sum += scale_bits(
                                        sl_ref_load_bits(p->bias, p->bias_at + i * p->bias_row + j * p->bias_column, dtype), p->beta, dtype);
                        sl_ref_store_bits(p->out, p->out_at + i * p->columns + j, dtype, sum);
                }
}

static void multiply(const struct product *p, uint32_t dtype)
{
        if (dtype == SL_DTYPE_F32)
                multiply_f32(p);
        else if (dtype == SL_DTYPE_F64)
                multiply_floats(p, SL_DTYPE_F64);
        else if (sl_dtype_is_float(dtype))
                multiply_floats(p, dtype);
        else
                multiply_integers(p, dtype);
}

static struct product bind(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t n_plain = node->n_inputs - (node->epilogue.has_residual != 0);

        return (struct product){
                .alpha = 1,
                .beta = 1,
                .a = binding->inputs[0],
                .b = binding->inputs[1],
                .bias = n_plain > 2 ? binding->inputs[2] : NULL,
                .residual = node->epilogue.has_residual ? binding->inputs[node->n_inputs - 1] : NULL,
                .out = binding->outputs[0],
                .epilogue = &node->epilogue,
                .pace = binding->pace,
        };
}

int sl_ref_gemm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const int64_t *a = node->inputs[0].shape.dims, *b = node->inputs[1].shape.dims;
        bool trans_a = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0), trans_b = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0);
        struct product p = bind(node, binding);

        p.rows = node->outputs[0].shape.dims[0];
        p.columns = node->outputs[0].shape.dims[1];
        p.inner = a[!trans_a];
        p.a_row = trans_a ? 1 : a[1];
        p.a_column = trans_a ? a[1] : 1;
        p.b_row = trans_b ? 1 : b[1];
        p.b_column = trans_b ? b[1] : 1;
        p.alpha = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1);
        p.beta = sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1);
        if (p.bias) {
                struct sl_ref_walk walk;

                sl_ref_walk_init(&walk, &node->outputs[0].shape, 1, NULL);
                sl_ref_walk_broadcast(&walk, 0, &node->inputs[2].shape);
                p.bias_row = walk.strides[0][0];
                p.bias_column = walk.strides[0][1];
        }
        multiply(&p, node->inputs[0].dtype);
        return 0;
}

/* Operand @k steps from matrix to matrix of a tensor of that shape. */
static void set_matrices(struct sl_ref_walk *walk, uint32_t k, const struct sl_shape *shape)
{
        struct sl_shape lead = *shape;
        int64_t matrix = 1;

        lead.rank = shape->rank > 2 ? shape->rank - 2 : 0;
        for (uint32_t i = lead.rank; i < shape->rank; i++)
                matrix *= shape->dims[i];
        sl_ref_walk_broadcast(walk, k, &lead);
        for (uint32_t i = 0; i < walk->rank; i++)
                walk->strides[k][i] *= matrix;
}

/* By one matrix, all matrices on the left are one below the other. */
static struct sl_shape merge_left(const struct sl_shape *a, const struct sl_shape *b)
{
        struct sl_shape merged = *a;

        if (a->rank < 3 || b->rank != 2)
                return merged;
        for (uint32_t i = 0; i + 2 < a->rank; i++)
                merged.dims[a->rank - 2] *= a->dims[i];
        for (uint32_t i = 0; i + 2 < a->rank; i++)
                merged.dims[i] = 1;
        return merged;
}

int sl_ref_matmul(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *b = &node->inputs[1].shape;
        const struct sl_shape merged = merge_left(&node->inputs[0].shape, b), *a = &merged;
        struct sl_shape batch = node->outputs[0].shape;
        struct product p = bind(node, binding);
        bool laned = p.bias && node->inputs[2].shape.rank == 3;
        struct sl_ref_walk walk;

        p.rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
        p.columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
        p.inner = p.a_row = a->dims[a->rank - 1];
        p.a_column = p.b_column = p.bias_column = 1;
        p.b_row = p.columns;
        batch.rank -= (a->rank > 1) + (b->rank > 1);
        if (b->rank == 2)
                memcpy(batch.dims, a->dims, batch.rank * sizeof(*batch.dims));
        sl_ref_walk_init(&walk, &batch, 2, binding->pace);
        set_matrices(&walk, 0, a);
        set_matrices(&walk, 1, b);
        for (; walk.left; sl_ref_walk_next(&walk)) {
                p.a_at = walk.offsets[0];
                p.b_at = walk.offsets[1];
                multiply(&p, node->inputs[0].dtype);
                p.out_at += p.rows * p.columns;
                p.bias_at += laned ? p.columns : 0;
        }
        return 0;
}
