/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise nodes, whose operands broadcast. With K in front, or folded into an axis along which no lane is broadcast. */
#include "base/error.h"
#include "merge/weave.h"
#include "merge/weave_nodes.h"

#include <string.h>

/* [K, d...] becomes [K, 1..., d...] where others have more dimensions. */
static int widen_lane(struct sl_weave *weave, uint32_t joint, uint32_t rank, uint32_t *value)
{
        struct sl_shape shape, wide = {.rank = rank + 1, .dims = {weave->lanes}};
        int r = sl_weave_open_shape(weave, joint, 0, &shape);

        if (r < 0 || rank >= SL_RANK_MAX)
                return -ENOTSUP;
        if (shape.rank == wide.rank)
                return 0;
        for (uint32_t i = 1; i <= rank; i++)
                wide.dims[i] = i + shape.rank <= rank + 1 ? 1 : shape.dims[i + shape.rank - rank - 1];
        return sl_weave_reshape(weave, *value, &wide, value);
}

/* Along which no lane may be broadcast; not of LANE. */
static uint32_t axis_of(uint32_t form)
{
        return form == SL_FORM_INNER ? 1 : form;
}

static int computed_operand(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t form, uint32_t *ret_value)
{
        const struct sl_shape *out = &sl_weave_output(weave, node, 0)->shape, *in = &sl_weave_input(weave, node, input)->shape;
        uint32_t joint = weave->match->graphs[0]->nodes[node].inputs[input];
        int r;

        if (form != SL_FORM_LANE &&
                (in->rank != out->rank || axis_of(form) >= in->rank || in->dims[axis_of(form)] != out->dims[axis_of(form)]))
                return -ENOTSUP;
        r = sl_weave_get(weave, joint, form, ret_value);
        return r == 0 && form == SL_FORM_LANE ? widen_lane(weave, joint, out->rank, ret_value) : r;
}

/* The dimension of a constant that meets dimension @axis of @rank. */
static int64_t dim_at(const struct sl_shape *shape, uint32_t rank, uint32_t axis)
{
        uint32_t missing = rank - shape->rank;

        return axis < missing ? 1 : shape->dims[axis - missing];
}

static int constant_operand(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t form, uint32_t *ret_value)
{
        const struct sl_shape *out = &sl_weave_output(weave, node, 0)->shape, *in = &sl_weave_input(weave, node, input)->shape;
        uint32_t axis = axis_of(form);
        struct sl_stack stack = {.form = form, .axis = axis, .rank = out->rank};

        if (in->rank > out->rank || (form != SL_FORM_LANE && axis >= out->rank))
                return -ENOTSUP;
        if (sl_weave_is_shared(weave, node, input) && (form == SL_FORM_LANE || dim_at(in, out->rank, axis) == 1))
                return sl_weave_share(weave, node, input, ret_value);
        if (form != SL_FORM_LANE && dim_at(in, out->rank, axis) != out->dims[axis])
                stack.repeats = out->dims[axis];
        return sl_weave_stack(weave, node, input, &stack, ret_value);
}

int sl_weave_elements(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        uint32_t value;
        int r = 0;

        step.n_inputs = from->n_inputs;
        for (uint32_t i = 0; i < from->n_inputs && r == 0; i++) {
                step.inputs[i] = SL_VALUE_NONE;
                if (sl_weave_is_constant(weave, node, i))
                        r = constant_operand(weave, node, i, form, &step.inputs[i]);
                else if (sl_weave_has_input(weave, node, i))
                        r = computed_operand(weave, node, i, form, &step.inputs[i]);
        }
        if (r == 0)
                r = sl_weave_add(weave, &step, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}
