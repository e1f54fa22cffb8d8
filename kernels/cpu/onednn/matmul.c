/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gemm and MatMul through oneDNN's matrix product. Whatever can be seen as one product of two matrices is, because weights in a
 * form of oneDNN's choice and a bias inside the product exist there; a bias of a batched product is an addend instead, since
 * oneDNN has only reference code for the former.
 */
#include "cpu/onednn/describe.h"

static bool all_of_a_type(const struct sl_node_desc *node)
{
        const struct sl_tensor *y = &node->outputs[0];

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE &&
                        (node->inputs[i].dtype != y->dtype || sl_cpu_is_empty(&node->inputs[i])))
                        return false;
        return sl_cpu_is_real(y) && !sl_cpu_is_empty(y);
}

static bool all_plain(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        return node->outputs[0].layout == SL_LAYOUT_PLAIN;
}

/* A matrix of @rows x @columns, which lies transposed in memory or not. */
static struct sl_strided describe_matrix(uint32_t dtype, int64_t rows, int64_t columns, bool transposed)
{
        struct sl_strided matrix = {.rank = 2, .dtype = dtype, .dims = {rows, columns}};

        matrix.strides[0] = transposed ? 1 : columns;
        matrix.strides[1] = transposed ? rows : 1;
        return matrix;
}

static struct sl_strided describe_row(uint32_t dtype, uint32_t rank, int64_t columns)
{
        int64_t dims[SL_STRIDED_RANK_MAX];

        for (uint32_t i = 0; i + 1 < rank; i++)
                dims[i] = 1;
        dims[rank - 1] = columns;
        return sl_describe_dense(dtype, rank, dims);
}

/*
 * alpha * A * B + beta * C. oneDNN's addends have no factor, so beta comes last:
 * beta * (alpha / beta * A * B + C).
 */
static bool describe_addend(const struct sl_node_desc *node, struct sl_cpu_call *call, float alpha, float beta)
{
        const struct sl_tensor *c = beta != 0.0f ? sl_cpu_input(node, 2) : NULL;
        int64_t dims[2] = {1, 1};
        struct sl_strided addend;

        if (!c) {
                call->spec.scale = alpha == 1.0f ? 0.0f : alpha;
                return alpha != 0.0f;
        }
        if (c->shape.rank > 2)
                return false;
        for (uint32_t i = 0; i < c->shape.rank; i++)
                dims[2 - c->shape.rank + i] = c->shape.dims[i];
        addend = sl_describe_dense(c->dtype, 2, dims);
        if (alpha == 1.0f && beta == 1.0f && dims[0] == 1 && dims[1] == call->spec.result.dims[1]) {
                call->spec.bias = addend;
                call->input_of[SL_ARGUMENT_BIAS] = 2;
                return true;
        }
        call->spec.scale = alpha == beta ? 0.0f : alpha / beta;
        return alpha != 0.0f && sl_describe_add(call, &addend, 2) && (beta == 1.0f || sl_describe_linear(call, beta, 0.0f));
}

bool sl_cpu_describe_gemm(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        bool trans_a = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) != 0;
        bool trans_b = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        float alpha = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.0);
        float beta = (float)sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1.0);
        const struct sl_shape *a = &node->inputs[0].shape, *y = &node->outputs[0].shape;
        int64_t inner = a->dims[!trans_a];
        uint32_t dtype = node->outputs[0].dtype;

        if (!sl_cpu_input(node, 1) || !all_of_a_type(node) || !all_plain(node) || a->rank != 2 || y->rank != 2)
                return false;
        call->spec.kind = SL_PRIMITIVE_MATMUL;
        call->spec.source = describe_matrix(dtype, y->dims[0], inner, trans_a);
        call->spec.weights = describe_matrix(dtype, inner, y->dims[1], trans_b);
        call->spec.result = describe_matrix(dtype, y->dims[0], y->dims[1], false);
        call->input_of[SL_ARGUMENT_WEIGHTS] = 1;
        return describe_addend(node, call, alpha, beta) && sl_describe_epilogue(node, call);
}

/* The operands of MatMul with all their dimensions: `lead` ones, which broadcast, then a matrix. */
struct product {
        uint32_t lead;
        int64_t a[SL_RANK_MAX], b[SL_RANK_MAX], y[SL_RANK_MAX]; /* of the leading dimensions */
        int64_t rows, inner, columns;
};

static void read_lead(const struct sl_shape *shape, uint32_t lead, int64_t *ret_dims)
{
        uint32_t own = shape->rank > 2 ? shape->rank - 2 : 0;

        for (uint32_t i = 0; i < lead; i++)
                ret_dims[i] = i + own < lead ? 1 : shape->dims[i + own - lead];
}

/* A vector is a row on the left and a column on the right. */
static void read_product(const struct sl_node_desc *node, struct product *p)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;
        uint32_t rank = a->rank > b->rank ? a->rank : b->rank;

        p->lead = rank > 2 ? rank - 2 : 0;
        read_lead(a, p->lead, p->a);
        read_lead(b, p->lead, p->b);
        for (uint32_t i = 0; i < p->lead; i++)
                p->y[i] = p->a[i] > p->b[i] ? p->a[i] : p->b[i];
        p->inner = a->dims[a->rank - 1];
        p->rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
        p->columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
}

/* Merges the leading dimensions that neither operand broadcasts, or that one of them has as ones only. */
static void merge_lead(struct product *p)
{
        int64_t a = 1, b = 1;
        bool equal = true;

        for (uint32_t i = 0; i < p->lead; i++) {
                a *= p->a[i];
                b *= p->b[i];
                equal = equal && p->a[i] == p->b[i];
        }
        if (b == 1) { /* the same right matrix for all: more rows */
                p->rows *= a;
                p->lead = 0;
        } else if (equal || a == 1) {
                p->a[0] = a;
                p->b[0] = b;
                p->y[0] = b;
                p->lead = 1;
        }
}

static struct sl_strided describe_stack(uint32_t dtype, const int64_t *lead_dims, uint32_t lead, int64_t rows, int64_t columns)
{
        int64_t dims[SL_STRIDED_RANK_MAX];

        for (uint32_t i = 0; i < lead; i++)
                dims[i] = lead_dims[i];
        dims[lead] = rows;
        dims[lead + 1] = columns;
        return sl_describe_dense(dtype, lead + 2, dims);
}

bool sl_cpu_describe_matmul(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        struct sl_primitive_spec *spec = &call->spec;
        uint32_t dtype = node->outputs[0].dtype;
        struct product p;

        if (!sl_cpu_input(node, 1) || !all_of_a_type(node) || !all_plain(node) || !node->inputs[0].shape.rank ||
                !node->inputs[1].shape.rank)
                return false;
        read_product(node, &p);
        merge_lead(&p);
        spec->kind = SL_PRIMITIVE_MATMUL;
        spec->source = describe_stack(dtype, p.a, p.lead, p.rows, p.inner);
        spec->weights = describe_stack(dtype, p.b, p.lead, p.inner, p.columns);
        spec->result = describe_stack(dtype, p.y, p.lead, p.rows, p.columns);
        call->input_of[SL_ARGUMENT_WEIGHTS] = 1;
        if (sl_cpu_input(node, 2)) {
                bool laned = sl_cpu_input(node, 2)->shape.rank == 3;
                struct sl_strided row =
                        laned ? describe_stack(dtype, p.b, p.lead, 1, p.columns) : describe_row(dtype, p.lead + 2, p.columns);

                if (laned && (p.lead != 1 || p.y[0] != p.b[0]))
                        return false;
                if (p.lead && !sl_describe_add(call, &row, 2))
                        return false;
                if (!p.lead) {
                        spec->bias = row;
                        call->input_of[SL_ARGUMENT_BIAS] = 2;
                }
        }
        return sl_describe_epilogue(node, call);
}
