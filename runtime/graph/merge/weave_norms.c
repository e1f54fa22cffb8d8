/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer normalization in both forms: with K in front the scales of the lanes broadcast, [K, 1..., C]; with K folded into the
 * normalized axis it is a group normalization of K groups (Jeong et al., 2020, section 3.1).
 */
#include "base/error.h"
#include "merge/weave.h"
#include "merge/weave_nodes.h"

/* Scale and shift are weights of the lanes, and there is one output. */
static bool is_plain(const struct sl_weave *weave, uint32_t node)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];

        for (uint32_t i = 1; i < from->n_outputs; i++)
                if (from->outputs[i] != SL_VALUE_NONE)
                        return false;
        for (uint32_t i = 1; i < from->n_inputs; i++)
                if (sl_weave_has_input(weave, node, i) && !sl_weave_is_constant(weave, node, i))
                        return false;
        return !sl_weave_is_constant(weave, node, 0);
}

static int64_t axis_of(const struct sl_weave *weave, uint32_t node)
{
        int64_t axis = sl_attrs_int(&weave->match->graphs[0]->nodes[node].attrs, SL_ATTR_AXIS, -1);

        return axis < 0 ? axis + (int64_t)sl_weave_input(weave, node, 0)->shape.rank : axis;
}

int sl_weave_layer_norm(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        const struct sl_stack stack = {.form = SL_FORM_LANE, .rank = sl_weave_input(weave, node, 0)->shape.rank};
        uint32_t value;
        int r;

        if (form != SL_FORM_LANE || !is_plain(weave, node))
                return -ENOTSUP;
        r = sl_attrs_set_int(&step.attrs, SL_ATTR_AXIS, axis_of(weave, node) + 1);
        step.n_inputs = from->n_inputs;
        if (r == 0)
                r = sl_weave_get(weave, from->inputs[0], form, &step.inputs[0]);
        for (uint32_t i = 1; i < from->n_inputs && r == 0; i++) {
                step.inputs[i] = SL_VALUE_NONE;
                if (sl_weave_has_input(weave, node, i))
                        r = sl_weave_stack(weave, node, i, &stack, &step.inputs[i]);
        }
        if (r == 0)
                r = sl_weave_add(weave, &step, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}

/* A vector of zeros for each lane. */
static int add_zeros(struct sl_weave *weave, const struct sl_tensor *like, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = like->dtype, .shape = {.rank = 1, .dims = {like->shape.dims[0] * weave->lanes}}};
        void *data = sl_graph_alloc(weave->graph, sl_tensor_bytes(&tensor) + 1);

        return data ? sl_graph_add_constant(weave->graph, "shift", &tensor, data, ret_value) : -ENOMEM;
}

/* Scale or shift of all lanes, one behind the other. */
static int stack_vector(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t *ret_value)
{
        const struct sl_stack stack = {.form = SL_FORM_LANE, .rank = 1};
        int r = sl_weave_stack(weave, node, input, &stack, ret_value);

        if (r == 0)
                weave->graph->values[*ret_value].tensor.shape =
                        (struct sl_shape){.rank = 1, .dims = {sl_weave_input(weave, node, input)->shape.dims[0] * weave->lanes}};
        return r;
}

static int add_group_norm(struct sl_weave *weave, uint32_t node, uint32_t x, uint32_t *ret_value)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = {.op = SL_OP_GROUP_NORM, .name = from->name, .n_inputs = 3, .inputs = {x}};
        int r = sl_attrs_set_int(&step.attrs, SL_ATTR_NUM_GROUPS, weave->lanes);

        if (r == 0)
                r = sl_attrs_set_float(&step.attrs, SL_ATTR_EPSILON, sl_attrs_float(&from->attrs, SL_ATTR_EPSILON, 1e-5));
        if (r == 0)
                r = stack_vector(weave, node, 1, &step.inputs[1]);
        if (r == 0)
                r = sl_weave_has_input(weave, node, 2) ? stack_vector(weave, node, 2, &step.inputs[2])
                                                       : add_zeros(weave, sl_weave_input(weave, node, 1), &step.inputs[2]);
        return r < 0 ? r : sl_weave_add(weave, &step, ret_value);
}

/* All but the last dimension are samples: [d0 * d1 ..., K * C]. */
static int flatten(struct sl_weave *weave, const struct sl_shape *shape, uint32_t value, uint32_t *ret_value)
{
        struct sl_shape flat = {.rank = 2, .dims = {1, shape->dims[shape->rank - 1]}};

        for (uint32_t i = 0; i + 1 < shape->rank; i++) {
                bool open = flat.dims[0] < 0 || shape->dims[i] < 0;

                flat.dims[0] = open ? SL_DIM_UNKNOWN : flat.dims[0] * shape->dims[i];
        }
        return shape->rank == 2 ? (*ret_value = value, 0) : sl_weave_reshape(weave, value, &flat, ret_value);
}

int sl_weave_group_norm(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        const struct sl_shape *in = &sl_weave_input(weave, node, 0)->shape;
        struct sl_shape shape;
        uint32_t value;
        int r;

        if (in->rank < 2 || form != in->rank - 1 || axis_of(weave, node) != form || !is_plain(weave, node))
                return -ENOTSUP;
        for (uint32_t i = 1; i < from->n_inputs; i++)
                if (sl_weave_has_input(weave, node, i) && (sl_weave_input(weave, node, i)->shape.rank != 1 ||
                                                                  sl_weave_input(weave, node, i)->shape.dims[0] != in->dims[form]))
                        return -ENOTSUP;
        r = sl_weave_shape(weave, from->inputs[0], form, &shape);
        if (r == 0)
                r = sl_weave_get(weave, from->inputs[0], form, &value);
        if (r == 0)
                r = flatten(weave, &shape, value, &value);
        if (r == 0)
                r = add_group_norm(weave, node, value, &value);
        if (r == 0 && in->rank > 2)
                r = sl_weave_reshape(weave, value, &shape, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}
