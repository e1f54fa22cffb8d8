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

static struct sl_shape matrix_of(const struct sl_shape *shape, bool left)
{
        struct sl_shape matrix = *shape;

        if (shape->rank == 1 && left)
                matrix = (struct sl_shape){.rank = 2, .dims = {1, shape->dims[0]}};
        else if (shape->rank == 1)
                matrix = (struct sl_shape){.rank = 2, .dims = {shape->dims[0], 1}};
        return matrix;
}

/* One matrix for all of a stack has a step of 0; a stack that some dimension of the result's is missing in is expanded. */
static bool read_stacks(const struct sl_node_desc *node, struct sl_cuda_product_node *n)
{
        const struct sl_shape a = matrix_of(&node->inputs[0].shape, true), b = matrix_of(&node->inputs[1].shape, false);
        struct sl_cuda_product *p = &n->product;
        int64_t lead_a = count_lead(&a), lead_b = count_lead(&b), matrix;

        p->rows = a.dims[a.rank - 2];
        p->depth = a.dims[a.rank - 1];
        p->columns = b.dims[b.rank - 1];
        p->batch = 1;
        matrix = p->rows * p->columns;
        if (lead_b == 1) {
                p->rows *= lead_a;
        } else if (matrix > 0) {
                p->batch = (int64_t)sl_shape_elements(&node->outputs[0].shape) / matrix;
                n->spread[0] = lead_a != 1 && lead_a != p->batch;
                n->spread[1] = lead_b != p->batch;
                p->left_step = lead_a == 1 ? 0 : p->rows * p->depth;
                p->right_step = p->depth * p->columns;
                p->out_step = matrix;
        }
        p->left_row = p->depth;
        p->right_row = p->columns;
        return matrix > 0;
}

struct sl_shape sl_cuda_product_spread(const struct sl_node_desc *node, uint32_t i)
{
        const struct sl_shape *matrix = &node->inputs[i].shape;
        struct sl_shape shape = node->outputs[0].shape;

        for (uint32_t d = 1; d <= 2; d++)
                shape.dims[shape.rank - d] = matrix->dims[matrix->rank - d];
        return shape;
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

bool sl_cuda_product_read(const struct sl_node_desc *node, struct sl_cuda_product_node *ret_product)
{
        struct sl_cuda_product_node n = {.product = {.alpha = 1, .beta = 1}};
        struct sl_cuda_product *p = &n.product;
        bool residual = node->epilogue.has_residual;

        if ((node->op != SL_OP_MATMUL && node->op != SL_OP_GEMM) || !is_float(node->inputs[0].dtype) ||
                !sl_shape_is_static(&node->inputs[0].shape) || !sl_shape_is_static(&node->inputs[1].shape))
                return false;
        if (node->op == SL_OP_GEMM ? !read_gemm(node, p) : !read_stacks(node, &n))
                return false;
        p->type = p->out_type = node->inputs[0].dtype;
        p->out_row = p->columns;
        p->has_addend = residual;
        n.addend = residual ? node->n_inputs - 1 : 0;
        p->has_relu = node->epilogue.activation == SL_ACT_RELU;
        if (node->n_inputs - residual > 2 && node->inputs[2].dtype != SL_DTYPE_NONE && !read_bias(node, p, &n.addend)) {
                if (node->op != SL_OP_GEMM || node->inputs[2].dtype != p->type)
                        return false;
                p->has_addend = p->has_relu = false;
                n.addend = SL_CUDA_BEHIND;
        }
        *ret_product = n;
        return lengths_fit(p);
}
