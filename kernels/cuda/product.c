/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/product.h"

#include "op.h"

/* cuBLASLt counts rows and columns in 32 bits. */
#define LENGTH_MAX INT32_MAX

static bool is_float(uint32_t dtype)
{
        return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16;
}

static int64_t count_lead(const struct sl_shape *shape)
{
        int64_t product = 1;

        for (uint32_t i = 0; i + 2 < shape->rank; i++)
                product *= shape->dims[i];
        return product;
}

/* The dimensions before the matrices are the same, but for ones in front. */
static bool leads_agree(const struct sl_shape *a, const struct sl_shape *b)
{
        const struct sl_shape *longer = a->rank > b->rank ? a : b, *shorter = longer == a ? b : a;
        uint32_t ahead = longer->rank - shorter->rank;

        for (uint32_t i = 0; i + 2 < longer->rank; i++)
                if (longer->dims[i] != (i < ahead ? 1 : shorter->dims[i - ahead]))
                        return false;
        return true;
}

static struct sl_shape matrix_of(const struct sl_shape *shape, bool left)
{
        struct sl_shape matrix = *shape;

        if (shape->rank == 1 && left)
                matrix = (struct sl_shape){.rank = 2, .dims = {1, shape->dims[0]}};
        else if (shape->rank == 1)
                matrix = (struct sl_shape){.rank = 2, .dims = {shape->dims[0], 1}};
        return matrix;
}

static bool read_stacks(const struct sl_node_desc *node, struct sl_cuda_product *p)
{
        const struct sl_shape a = matrix_of(&node->inputs[0].shape, true), b = matrix_of(&node->inputs[1].shape, false);
        int64_t lead_a = count_lead(&a), lead_b = count_lead(&b);

        p->rows = a.dims[a.rank - 2];
        p->depth = a.dims[a.rank - 1];
        p->columns = b.dims[b.rank - 1];
        p->batch = 1;
        if (lead_b == 1) {
                p->rows *= lead_a;
        } else {
                if (lead_a != 1 && !leads_agree(&a, &b))
                        return false;
                p->batch = lead_b;
                p->left_step = lead_a == 1 ? 0 : p->rows * p->depth;
                p->right_step = p->depth * p->columns;
                p->out_step = p->rows * p->columns;
        }
        p->left_row = p->depth;
        p->right_row = p->columns;
        return true;
}

static bool read_gemm(const struct sl_node_desc *node, struct sl_cuda_product *p)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;

        p->left_turned = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) != 0;
        p->right_turned = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        p->rows = a->dims[p->left_turned];
        p->depth = a->dims[!p->left_turned];
        p->columns = b->dims[!p->right_turned];
        p->batch = 1;
        p->left_row = a->dims[1];
        p->right_row = b->dims[1];
        p->alpha = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1);
        return true;
}

static bool is_row(const struct sl_shape *shape, int64_t columns)
{
        return shape->rank >= 1 && shape->dims[shape->rank - 1] == columns && sl_shape_elements(shape) == (uint64_t)columns;
}

/* Input 2: a row, one for each matrix of the stack, or of a Gemm a whole matrix. */
static bool read_bias(const struct sl_node_desc *node, struct sl_cuda_product *p, uint32_t *ret_addend)
{
        const struct sl_tensor *bias = &node->inputs[2];
        double beta = node->op == SL_OP_GEMM ? sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1) : 1;

        if (bias->dtype != p->type)
                return false;
        if (beta == 1 && is_row(&bias->shape, p->columns)) {
                p->has_bias = true;
                return true;
        }
        if (node->op == SL_OP_MATMUL && bias->shape.rank == 3 && bias->shape.dims[0] == p->batch) {
                p->has_bias = true;
                p->bias_step = p->columns;
                return true;
        }
        if (node->op != SL_OP_GEMM || p->has_addend || bias->shape.rank != 2 || bias->shape.dims[0] != p->rows ||
                bias->shape.dims[1] != p->columns)
                return false;
        p->has_addend = true;
        p->beta = (float)beta;
        *ret_addend = 2;
        return true;
}

static bool lengths_fit(const struct sl_cuda_product *p)
{
        const int64_t lengths[] = {p->rows, p->depth, p->columns, p->batch};

        for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
                if (lengths[i] < 1 || lengths[i] > LENGTH_MAX)
                        return false;
        return true;
}

bool sl_cuda_product_read(const struct sl_node_desc *node, struct sl_cuda_product *ret_product, uint32_t *ret_addend)
{
        struct sl_cuda_product p = {.alpha = 1, .beta = 1};
        bool residual = node->epilogue.has_residual;

        if ((node->op != SL_OP_MATMUL && node->op != SL_OP_GEMM) || !is_float(node->inputs[0].dtype) ||
                !sl_shape_is_static(&node->inputs[0].shape) || !sl_shape_is_static(&node->inputs[1].shape))
                return false;
        if (node->op == SL_OP_GEMM ? !read_gemm(node, &p) : !read_stacks(node, &p))
                return false;
        p.type = p.out_type = node->inputs[0].dtype;
        p.out_row = p.columns;
        p.has_addend = residual;
        *ret_addend = residual ? node->n_inputs - 1 : 0;
        p.has_relu = node->epilogue.activation == SL_ACT_RELU;
        if (node->n_inputs - residual > 2 && node->inputs[2].dtype != SL_DTYPE_NONE && !read_bias(node, &p, ret_addend)) {
                if (node->op != SL_OP_GEMM || node->inputs[2].dtype != p.type)
                        return false;
                p.has_addend = p.has_relu = false;
                *ret_addend = SL_CUDA_BEHIND;
        }
        *ret_product = p;
        return lengths_fit(&p);
}
