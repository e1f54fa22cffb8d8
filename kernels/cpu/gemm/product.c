/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMul and Gemm of float32 by a constant matrix, over gemm.h: rows by a packed matrix, with bias, residual and activation at the
 * end. The matrix is packed once, whatever the number of rows, and a row has the same bits among any others. A MatMul of K matrices
 * is K such products one after the other, each lane's rows by its own packed matrix, which is what a product by that matrix alone
 * has.
 */
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/base/narrow.h"
#include "cpu/gemm/epilogue.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/loops.h"
#include "cpu/gemm/row_lanes.h"

#include <string.h>

struct product {
        int64_t lanes, rows, depth, columns; /* rows of one lane */
        bool has_bias;
        int64_t bias_stride; /* from lane to lane */
        int residual;        /* its input; -1: none */
        uint32_t narrow;     /* what the matrix lies in: SL_DTYPE_F16, SL_DTYPE_BF16; NONE: float32 */
        struct sl_gemm_reading reading;
        struct sl_cpu_epilogue epilogue;
};

/* A Gemm that is a plain product: nothing transposed on the left, no factors. */
static bool read_gemm(const struct sl_node_desc *node, struct product *p)
{
        const struct sl_shape *a = &node->inputs[0].shape, *y = &node->outputs[0].shape;

        if (a->rank != 2 || y->rank != 2 || sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) ||
                sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.0) != 1.0 || sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1.0) != 1.0)
                return false;
        p->lanes = 1;
        p->rows = a->dims[0];
        p->depth = a->dims[1];
        p->columns = y->dims[1];
        return true;
}

static bool read_lanes(const struct sl_shape *a, const struct sl_shape *b, struct product *p)
{
        if (a->rank != 3 || b->rank != 3 || a->dims[0] != b->dims[0])
                return false;
        p->lanes = a->dims[0];
        p->rows = a->dims[1];
        p->depth = b->dims[1];
        p->columns = b->dims[2];
        return true;
}

/* Any number of rows in front, one matrix for all of them; or lanes. */
static bool read_matmul(const struct sl_node_desc *node, struct product *p)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;

        if (a->rank < 2 || b->rank != 2)
                return read_lanes(a, b, p);
        p->lanes = p->rows = 1;
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
        p->bias_stride = bias && bias->shape.rank == 3 && p->lanes > 1 ? p->columns : 0;
        if (p->bias_stride)
                return sl_cpu_is_f32(bias) && sl_shape_elements(&bias->shape) == (uint64_t)(p->lanes * p->columns);
        return !bias || (sl_cpu_is_f32(bias) && sl_shape_elements(&bias->shape) == (uint64_t)p->columns && bias->shape.rank &&
                                bias->shape.dims[bias->shape.rank - 1] == p->columns);
}

/* The matrix alone decides: depth and columns come from it, and whether it lies transposed. */
static bool is_transposed(const struct sl_node_desc *node)
{
        return node->op == SL_OP_GEMM && sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0);
}

/* Input 1: its matrices, and the sizes of each. */
struct matrices {
        int64_t lanes, depth, columns;
        bool transposed;
};

static struct matrices matrices_of(const struct sl_node_desc *node)
{
        const struct sl_shape *b = &node->inputs[1].shape;
        bool transposed = is_transposed(node), laned = b->rank == 3;

        return (struct matrices){laned ? b->dims[0] : 1, b->dims[laned + transposed], b->dims[laned + !transposed], transposed};
}

static uint32_t narrow_of(const struct sl_node_desc *node)
{
        struct matrices m = matrices_of(node);

        return sl_narrow_dtype(node, 1, m.lanes * sl_gemm_packed_floats(m.depth, m.columns));
}

static bool product_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct product *p = state;

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
        p->reading = sl_gemm_reading(sizes->core);
        return sl_cpu_epilogue_plan(node, &p->epilogue);
}

static int64_t product_units(const void *state, uint32_t axis)
{
        const struct product *p = state;

        return axis == SL_AXIS_COLUMNS ? sl_gemm_panels(p->columns) : p->lanes > 1 ? p->lanes : p->rows;
}

static void run_lane(const struct product *p, const struct sl_binding *binding, int64_t lane, const struct sl_part *part)
{
        int64_t from = lane * p->rows * p->columns, packed = lane * sl_gemm_packed_floats(p->depth, p->columns);
        const float *bias = p->has_bias ? binding->inputs[2] : NULL;
        const float *residual = p->residual < 0 ? NULL : binding->inputs[p->residual];
        struct sl_gemm gemm = {.a = (const float *)binding->inputs[0] + lane * p->rows * p->depth,
                .b = p->narrow ? NULL : (const float *)binding->inputs[1] + packed,
                .narrow = p->narrow ? (const uint16_t *)binding->inputs[1] + packed : NULL,
                .narrow_dtype = p->narrow,
                .c = (float *)binding->outputs[0] + from,
                .rows = p->rows,
                .depth = p->depth,
                .columns = p->columns,
                .a_stride = p->depth,
                .c_stride = p->columns,
                .bias = bias ? bias + lane * p->bias_stride : NULL,
                .residual = residual ? residual + from : NULL,
                .residual_stride = p->columns,
                .streams = true,
                .reading = p->reading,
                .epilogue = &p->epilogue};

        sl_gemm_take(&gemm, part);
        sl_gemm_run(&gemm);
}

/* One row of each of some lanes. */
static void run_rows(const struct product *p, const struct sl_binding *binding, const struct sl_part *lanes)
{
        int64_t packed = sl_gemm_packed_floats(p->depth, p->columns), from = lanes->first * p->columns;
        const float *bias = p->has_bias ? binding->inputs[2] : NULL;
        const float *residual = p->residual < 0 ? NULL : binding->inputs[p->residual];

        sl_row_lanes_run(&(struct sl_row_lanes){.a = (const float *)binding->inputs[0] + lanes->first * p->depth,
                .b = (const float *)binding->inputs[1] + lanes->first * packed,
                .c = (float *)binding->outputs[0] + from,
                .bias = bias ? bias + lanes->first * p->bias_stride : NULL,
                .residual = residual ? residual + from : NULL,
                .lanes = lanes->end - lanes->first,
                .depth = p->depth,
                .columns = p->columns,
                .b_stride = packed,
                .bias_stride = p->bias_stride,
                .epilogue = &p->epilogue});
}

static void run_lanes(const struct product *p, const struct sl_binding *binding, const struct sl_part *lanes, bool cut)
{
        if (p->rows == 1 && !p->narrow && (cut || !binding->part)) {
                run_rows(p, binding, lanes);
                return;
        }
        for (int64_t lane = lanes->first; lane < lanes->end; lane++)
                run_lane(p, binding, lane, cut ? NULL : binding->part);
}

/* Lanes are cut between, not inside of them. */
static int product_run(const void *state, const struct sl_binding *binding)
{
        const struct product *p = state;
        bool cut = p->lanes > 1 && binding->part && binding->part->axis == SL_AXIS_ROWS;
        struct sl_part lanes = cut ? *binding->part : (struct sl_part){.end = p->lanes};

        if (p->lanes == 1)
                run_lane(p, binding, 0, binding->part);
        else
                run_lanes(p, binding, &lanes, cut);
        return 0;
}

static bool product_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        struct matrices m = matrices_of(node);

        if (index == 1)
                sl_cpu_form_narrow(ret_packed, "product", (int64_t[]){m.depth, m.columns, m.transposed, m.lanes > 1 ? m.lanes : 0},
                        m.lanes * sl_gemm_packed_floats(m.depth, m.columns), narrow_of(node));
        return index == 1;
}

/* Of one lane. */
static int repack_lane(const struct matrices *m, uint32_t narrow, const uint8_t *plain, void *ret_data)
{
        int64_t depth_stride = m->transposed ? 1 : m->columns, column_stride = m->transposed ? m->depth : 1;

        if (narrow)
                return sl_gemm_pack_narrow(plain, m->depth, m->columns, depth_stride, column_stride, narrow, ret_data);
        sl_gemm_pack((const void *)plain, m->depth, m->columns, depth_stride, column_stride, ret_data);
        return 0;
}

static int product_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        struct matrices m = matrices_of(node);
        uint32_t narrow = narrow_of(node);
        int64_t element = (int64_t)sl_dtype_bytes(narrow ? narrow : SL_DTYPE_F32), r = 0;

        (void)index;
        for (int64_t lane = 0; lane < m.lanes && r == 0; lane++)
                r = repack_lane(&m, narrow, (const uint8_t *)plain + lane * m.depth * m.columns * (int64_t)sizeof(float),
                        (uint8_t *)ret_data + lane * sl_gemm_packed_floats(m.depth, m.columns) * element);
        return (int)r;
}

static double product_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct product *p = state;
        double products = (double)p->rows * (double)p->depth * (double)p->columns;
        int64_t bytes = p->depth * p->columns * (int64_t)sl_dtype_bytes(p->narrow ? p->narrow : SL_DTYPE_F32);
        double lane = (double)p->rows * (double)p->columns * core->store / core->flops +
                      sl_cost_longer(2 * products / core->flops / core->product,
                              (double)bytes / (sl_gemm_passes(p->rows, bytes) ? core->stream : core->weights));

        return (double)p->lanes * lane;
}

static void product_narrow(void *state, const struct sl_part *part)
{
        struct product *p = state;

        if (part->axis == SL_AXIS_ROWS && p->lanes > 1)
                p->lanes = part->end - part->first;
        else if (part->axis == SL_AXIS_ROWS)
                p->rows = part->end - part->first;
        else
                p->columns = (part->end - part->first) * SL_GEMM_PANEL;
}

/* The other operands are constants, or all of them is read. */
static bool product_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct product *p = state;
        int64_t row_bytes = p->columns * (int64_t)sizeof(float), unit = p->lanes > 1 ? p->rows : 1;
        bool is_result = operand == SL_REACH_OUTPUT || (p->residual >= 0 && operand == (uint32_t)p->residual);

        if (is_result && part->axis == SL_AXIS_COLUMNS)
                return sl_reach_columns(part, SL_GEMM_PANEL * (int64_t)sizeof(float), row_bytes, p->lanes * p->rows, ret_reach);
        if (part->axis == SL_AXIS_ROWS && (is_result || operand == 0))
                return sl_reach_rows(part, unit * (is_result ? row_bytes : p->depth * (int64_t)sizeof(float)), ret_reach);
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
