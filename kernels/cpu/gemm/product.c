/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMul and Gemm of float32 by a constant matrix, over gemm.h: rows by a packed matrix, with bias, residual and activation at the
 * end. The matrix is packed once, whatever the number of rows, and a row has the same bits among any others.
 */
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/base/narrow.h"
#include "cpu/gemm/epilogue.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/loops.h"

struct product {
        int64_t rows, depth, columns;
        bool has_bias;
        int residual;    /* its input; -1: none */
        uint32_t narrow; /* what the matrix lies in: SL_DTYPE_F16, SL_DTYPE_BF16; NONE: float32 */
        struct sl_cpu_epilogue epilogue;
};

/* A Gemm that is a plain product: nothing transposed on the left, no factors. */
static bool read_gemm(const struct sl_node_desc *node, struct product *p)
{
        const struct sl_shape *a = &node->inputs[0].shape, *y = &node->outputs[0].shape;

        if (a->rank != 2 || y->rank != 2 || sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) ||
                sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.0) != 1.0 || sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1.0) != 1.0)
                return false;
        p->rows = a->dims[0];
        p->depth = a->dims[1];
        p->columns = y->dims[1];
        return true;
}

/* Any number of rows in front, one matrix for all of them. */
static bool read_matmul(const struct sl_node_desc *node, struct product *p)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;

        if (a->rank < 2 || b->rank != 2)
                return false;
        p->rows = 1;
        for (uint32_t i = 0; i + 1 < a->rank; i++)
                p->rows *= a->dims[i];
        p->depth = b->dims[0];
        p->columns = b->dims[1];
        return true;
}

static bool read_bias(const struct sl_node_desc *node, struct product *p)
{
        const struct sl_tensor *bias = sl_cpu_input(node, 2);

        p->has_bias = bias != NULL;
        return !bias || (sl_cpu_is_f32(bias) && sl_shape_elements(&bias->shape) == (uint64_t)p->columns && bias->shape.rank &&
                                bias->shape.dims[bias->shape.rank - 1] == p->columns);
}

/* The matrix alone decides: depth and columns come from it, and whether it lies transposed. */
static bool is_transposed(const struct sl_node_desc *node)
{
        return node->op == SL_OP_GEMM && sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0);
}

static uint32_t narrow_of(const struct sl_node_desc *node)
{
        const int64_t *dims = node->inputs[1].shape.dims;
        bool transposed = is_transposed(node);

        return sl_narrow_dtype(node, 1, sl_gemm_packed_floats(dims[transposed], dims[!transposed]));
}

static bool product_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct product *p = state;

        (void)sizes;
        if (!sl_cpu_has_avx2() || !sl_cpu_input(node, 1) || sl_cpu_is_empty(&node->outputs[0]) || sl_cpu_is_empty(&node->inputs[0]))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE &&
                        (!sl_cpu_is_f32(&node->inputs[i]) || node->inputs[i].layout != SL_LAYOUT_PLAIN))
                        return false;
        if (!sl_cpu_is_f32(&node->outputs[0]) || node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return false;
        if (!(node->op == SL_OP_GEMM ? read_gemm(node, p) : read_matmul(node, p)) || !read_bias(node, p))
                return false;
        p->residual = node->epilogue.has_residual ? (int)node->n_inputs - 1 : -1;
        p->narrow = narrow_of(node);
        return sl_cpu_epilogue_plan(node, &p->epilogue);
}

static int64_t product_units(const void *state, uint32_t axis)
{
        const struct product *p = state;

        return axis == SL_AXIS_ROWS ? p->rows : sl_gemm_panels(p->columns);
}

static int product_run(const void *state, const struct sl_binding *binding)
{
        const struct product *p = state;
        struct sl_gemm gemm = {.a = binding->inputs[0],
                .b = p->narrow ? NULL : binding->inputs[1],
                .narrow = p->narrow ? binding->inputs[1] : NULL,
                .narrow_dtype = p->narrow,
                .c = binding->outputs[0],
                .rows = p->rows,
                .depth = p->depth,
                .columns = p->columns,
                .a_stride = p->depth,
                .c_stride = p->columns,
                .bias = p->has_bias ? binding->inputs[2] : NULL,
                .residual = p->residual < 0 ? NULL : binding->inputs[p->residual],
                .residual_stride = p->columns,
                .streams = true,
                .epilogue = &p->epilogue};

        sl_gemm_take(&gemm, binding->part);
        sl_gemm_run(&gemm);
        return 0;
}

static bool product_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        bool transposed = is_transposed(node);
        int64_t depth = node->inputs[1].shape.dims[transposed], columns = node->inputs[1].shape.dims[!transposed];

        if (index == 1)
                sl_cpu_form_narrow(ret_packed, "product", (int64_t[]){depth, columns, transposed, 0},
                        sl_gemm_packed_floats(depth, columns), narrow_of(node));
        return index == 1;
}

static int product_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        bool transposed = is_transposed(node);
        int64_t depth = node->inputs[1].shape.dims[transposed], columns = node->inputs[1].shape.dims[!transposed];

        (void)index;
        if (narrow_of(node))
                return sl_gemm_pack_narrow(
                        plain, depth, columns, transposed ? 1 : columns, transposed ? depth : 1, narrow_of(node), ret_data);
        sl_gemm_pack(plain, depth, columns, transposed ? 1 : columns, transposed ? depth : 1, ret_data);
        return 0;
}

static double product_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct product *p = state;
        double products = (double)p->rows * (double)p->depth * (double)p->columns;
        int64_t bytes = p->depth * p->columns * (int64_t)sl_dtype_bytes(p->narrow ? p->narrow : SL_DTYPE_F32);

        return (double)p->rows * (double)p->columns * core->store / core->flops +
               sl_cost_longer(2 * products / core->flops / core->product,
                       (double)bytes / (sl_gemm_passes(p->rows, bytes) ? core->stream : core->weights));
}

static void product_narrow(void *state, const struct sl_part *part)
{
        struct product *p = state;

        if (part->axis == SL_AXIS_ROWS)
                p->rows = part->end - part->first;
        else
                p->columns = (part->end - part->first) * SL_GEMM_PANEL;
}

/* The other operands are constants, or all of them is read. */
static bool product_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct product *p = state;
        int64_t row_bytes = p->columns * (int64_t)sizeof(float);
        bool is_result = operand == SL_REACH_OUTPUT || (p->residual >= 0 && operand == (uint32_t)p->residual);

        if (is_result && part->axis == SL_AXIS_COLUMNS)
                return sl_reach_columns(part, SL_GEMM_PANEL * (int64_t)sizeof(float), row_bytes, p->rows, ret_reach);
        if (part->axis == SL_AXIS_ROWS && (is_result || operand == 0))
                return sl_reach_rows(part, is_result ? row_bytes : p->depth * (int64_t)sizeof(float), ret_reach);
        return false;
}

const struct sl_cpu_loop sl_cpu_product = {.state_bytes = sizeof(struct product),
        .plan = product_plan,
        .run = product_run,
        .units = product_units,
        .reach = product_reach,
        .form = product_form,
        .repack = product_repack,
        .reads_anywhere = true,
        .seconds = product_seconds,
        .narrow = product_narrow,
        .fuses_epilogue = true};
