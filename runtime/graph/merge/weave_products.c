/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices, K of them in one node: [K, rows, depth] by [K, depth, columns], with a bias of each lane, [K, 1, columns].
 * All rows of a lane go by one matrix, so whatever stands between K and the depth counts as rows.
 */
#include "base/error.h"
#include "merge/weave.h"
#include "merge/weave_nodes.h"

/* [K, d..., n] as [K, rows, n]. */
static int flatten_rows(struct sl_weave *weave, uint32_t joint, uint32_t *value)
{
        struct sl_shape shape, flat;
        int r = sl_weave_open_shape(weave, joint, 0, &shape);

        if (r < 0 || shape.rank < 3)
                return -ENOTSUP;
        flat = (struct sl_shape){.rank = 3, .dims = {weave->lanes, 1, shape.dims[shape.rank - 1]}};
        for (uint32_t i = 1; i + 1 < shape.rank; i++) {
                bool open = flat.dims[1] < 0 || shape.dims[i] < 0;

                flat.dims[1] = !open ? flat.dims[1] * shape.dims[i] : shape.rank == 3 ? shape.dims[1] : SL_DIM_UNKNOWN;
        }
        return sl_weave_reshape(weave, *value, &flat, value);
}

/* [K, d...] with dimensions of 1 behind K, up to @rank and K. */
static int widen_lead(struct sl_weave *weave, uint32_t joint, uint32_t rank, uint32_t *value)
{
        struct sl_shape shape, wide = {.rank = rank + 1, .dims = {weave->lanes}};
        int r = sl_weave_open_shape(weave, joint, 0, &shape);

        if (r < 0 || rank >= SL_RANK_MAX || shape.rank > rank + 1)
                return -ENOTSUP;
        for (uint32_t i = 1; i <= rank; i++)
                wide.dims[i] = i + shape.rank <= rank + 1 ? 1 : shape.dims[i + shape.rank - rank - 1];
        return sl_weave_reshape(weave, *value, &wide, value);
}

/* The left or right operand, with as many dimensions as @rank says and K. */
static int read_operand(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t rank, uint32_t *ret_value)
{
        uint32_t joint = weave->match->graphs[0]->nodes[node].inputs[input];
        const struct sl_stack stack = {.form = SL_FORM_LANE, .rank = rank};
        int r;

        if (sl_weave_is_constant(weave, node, input))
                return sl_weave_stack(weave, node, input, &stack, ret_value);
        r = sl_weave_get(weave, joint, SL_FORM_LANE, ret_value);
        return r < 0 ? r : widen_lead(weave, joint, rank, ret_value);
}

static int read_bias(struct sl_weave *weave, uint32_t node, struct sl_weave_step *step)
{
        const struct sl_stack stack = {.form = SL_FORM_LANE, .rank = 2};
        const struct sl_tensor *out = sl_weave_output(weave, node, 0), *bias;

        step->inputs[2] = SL_VALUE_NONE;
        if (!sl_weave_has_input(weave, node, 2))
                return 0;
        bias = sl_weave_input(weave, node, 2);
        if (!sl_weave_is_constant(weave, node, 2) || !bias->shape.rank || bias->shape.rank > 2 ||
                sl_shape_elements(&bias->shape) != (uint64_t)out->shape.dims[out->shape.rank - 1])
                return -ENOTSUP;
        return sl_weave_stack(weave, node, 2, &stack, &step->inputs[2]);
}

static int read_residual(struct sl_weave *weave, uint32_t node, bool flat, struct sl_weave_step *step)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        uint32_t last = from->n_inputs - 1;
        int r;

        if (!from->epilogue.has_residual)
                return 0;
        if (sl_weave_is_constant(weave, node, last))
                return -ENOTSUP;
        r = sl_weave_get(weave, from->inputs[last], SL_FORM_LANE, &step->inputs[last]);
        return r == 0 && flat ? flatten_rows(weave, from->inputs[last], &step->inputs[last]) : r;
}

/* Bias, residual and output of a product whose operands are there. */
static int finish(struct sl_weave *weave, uint32_t node, bool flat, struct sl_weave_step *step)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        uint32_t n_plain = from->n_inputs - (from->epilogue.has_residual != 0), value;
        int r;

        step->op = SL_OP_MATMUL;
        step->n_inputs = from->n_inputs;
        r = n_plain > 2 ? read_bias(weave, node, step) : 0;
        if (r == 0)
                r = read_residual(weave, node, flat, step);
        if (r == 0)
                r = sl_weave_add(weave, step, &value);
        return r < 0 ? r : sl_weave_set_lane(weave, from->outputs[0], value);
}

/* One matrix for all rows. */
static int add_flat(struct sl_weave *weave, uint32_t node, struct sl_weave_step *step)
{
        uint32_t rows = sl_weave_input(weave, node, 0)->shape.rank;
        int r = read_operand(weave, node, 0, rows, &step->inputs[0]);

        if (r == 0 && rows > 2)
                r = sl_weave_is_constant(weave, node, 0)
                            ? -ENOTSUP
                            : flatten_rows(weave, weave->match->graphs[0]->nodes[node].inputs[0], &step->inputs[0]);
        if (r == 0)
                r = read_operand(weave, node, 1, 2, &step->inputs[1]);
        return r < 0 ? r : finish(weave, node, true, step);
}

int sl_weave_product(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_shape *a = &sl_weave_input(weave, node, 0)->shape, *b = &sl_weave_input(weave, node, 1)->shape;
        uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        int r;

        if (form != SL_FORM_LANE || a->rank < 2 || b->rank < 2)
                return -ENOTSUP;
        if (b->rank == 2)
                return add_flat(weave, node, &step);
        if (sl_weave_has_input(weave, node, 2) &&
                !(weave->match->graphs[0]->nodes[node].epilogue.has_residual && weave->match->graphs[0]->nodes[node].n_inputs == 3))
                return -ENOTSUP;
        r = read_operand(weave, node, 0, rank, &step.inputs[0]);
        if (r == 0)
                r = read_operand(weave, node, 1, rank, &step.inputs[1]);
        return r < 0 ? r : finish(weave, node, false, &step);
}

int sl_weave_gemm(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        const struct sl_attrs attrs = step.attrs;
        const struct sl_stack stack = {
                .form = SL_FORM_LANE, .rank = 2, .transposed = sl_attrs_int(&attrs, SL_ATTR_TRANS_B, 0) != 0};
        int r;

        if (form != SL_FORM_LANE || sl_attrs_int(&attrs, SL_ATTR_TRANS_A, 0) || sl_attrs_float(&attrs, SL_ATTR_ALPHA, 1) != 1 ||
                sl_attrs_float(&attrs, SL_ATTR_BETA, 1) != 1 || sl_weave_is_constant(weave, node, 0) ||
                !sl_weave_is_constant(weave, node, 1))
                return -ENOTSUP;
        step.attrs = (struct sl_attrs){0};
        r = read_operand(weave, node, 0, 2, &step.inputs[0]);
        if (r == 0)
                r = sl_weave_stack(weave, node, 1, &stack, &step.inputs[1]);
        return r < 0 ? r : finish(weave, node, true, &step);
}
