/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of images. Those that compute each sample apart take lanes for samples; those that compute each channel apart, or in
 * groups, take lanes for more of them: a convolution of one group becomes one of K groups (Jeong et al., Accelerating Multi-Model
 * Inference by Merging DNNs of Different Weights, 2020, section 3.1 and appendix A).
 */
#include "base/error.h"
#include "merge/weave.h"
#include "merge/weave_nodes.h"

/* [K, N, ...] as [K * N, ...]: what is open in front cannot be told while the batch is. */
static int fold_front(struct sl_weave *weave, uint32_t joint, uint32_t *ret_value)
{
        const struct sl_shape *shape = &weave->sizes->values[joint].tensor.shape;
        struct sl_shape folded = *shape;
        int r = sl_weave_get(weave, joint, SL_FORM_LANE, ret_value);

        if (r < 0 || !shape->rank)
                return -ENOTSUP;
        folded.dims[0] = shape->dims[0] == SL_DIM_BATCH ? SL_DIM_UNKNOWN : shape->dims[0] * weave->lanes;
        return sl_weave_reshape(weave, *ret_value, &folded, ret_value);
}

static bool makes_one(const struct sl_node *node)
{
        for (uint32_t i = 1; i < node->n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE)
                        return false;
        return true;
}

static int fold_input(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t *ret_value)
{
        uint32_t joint = weave->match->graphs[0]->nodes[node].inputs[input];

        *ret_value = SL_VALUE_NONE;
        if (!sl_weave_has_input(weave, node, input))
                return 0;
        if (sl_weave_is_constant(weave, node, input))
                return sl_weave_is_shared(weave, node, input) ? sl_weave_share(weave, node, input, ret_value) : -ENOTSUP;
        if (!sl_weave_input(weave, node, input)->shape.rank ||
                sl_weave_input(weave, node, input)->shape.dims[0] != sl_weave_output(weave, node, 0)->shape.dims[0])
                return -ENOTSUP;
        return fold_front(weave, joint, ret_value);
}

int sl_weave_folded(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        uint32_t value;
        int r = 0;

        if (form != SL_FORM_LANE || !makes_one(from) || !sl_weave_input(weave, node, 0)->shape.rank ||
                sl_attrs_find(&from->attrs, SL_ATTR_SIZES))
                return -ENOTSUP;
        step.n_inputs = from->n_inputs;
        for (uint32_t i = 0; i < from->n_inputs && r == 0; i++)
                r = fold_input(weave, node, i, &step.inputs[i]);
        if (r == 0)
                r = sl_weave_add(weave, &step, &value);
        return r < 0 ? r : sl_weave_set_lane(weave, from->outputs[0], value);
}

int sl_weave_pooled(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        uint32_t value;
        int r;

        if ((form != 1 && form != SL_FORM_INNER) || !makes_one(from) || from->n_inputs != 1)
                return -ENOTSUP;
        step.n_inputs = 1;
        r = sl_weave_get(weave, from->inputs[0], form, &step.inputs[0]);
        if (r == 0)
                r = sl_weave_add(weave, &step, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}

/* A constant whose first dimension is of channels. */
static int stack_channels(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t form, uint32_t *ret_value)
{
        struct sl_shape shape = sl_weave_input(weave, node, input)->shape;
        const struct sl_stack stack = {.form = form == SL_FORM_INNER ? form : SL_FORM_LANE, .rank = shape.rank};
        int r = sl_weave_is_constant(weave, node, input) && shape.rank ? 0 : -ENOTSUP;

        if (r == 0)
                r = sl_weave_stack(weave, node, input, &stack, ret_value);
        if (r < 0)
                return r;
        /* Lanes lie one behind the other: a stack with K in front is one of K times as many channels. */
        shape.dims[0] *= weave->lanes;
        weave->graph->values[*ret_value].tensor.shape = shape;
        return 0;
}

/* Input 0 is an image, the last one a residual if there is one, all between are constants of channels. */
static int read_inputs(struct sl_weave *weave, uint32_t node, uint32_t form, struct sl_weave_step *step)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        uint32_t n_weights = from->n_inputs - (from->epilogue.has_residual != 0);
        int r = sl_weave_is_constant(weave, node, 0) ? -ENOTSUP : sl_weave_get(weave, from->inputs[0], form, &step->inputs[0]);

        step->n_inputs = from->n_inputs;
        for (uint32_t i = 1; i < n_weights && r == 0; i++) {
                step->inputs[i] = SL_VALUE_NONE;
                if (sl_weave_has_input(weave, node, i))
                        r = stack_channels(weave, node, i, form, &step->inputs[i]);
        }
        if (r == 0 && from->epilogue.has_residual)
                r = sl_weave_is_constant(weave, node, n_weights)
                            ? -ENOTSUP
                            : sl_weave_get(weave, from->inputs[n_weights], form, &step->inputs[n_weights]);
        return r;
}

static int add_channels(struct sl_weave *weave, uint32_t node, uint32_t form, struct sl_weave_step *step)
{
        uint32_t value;
        int r = read_inputs(weave, node, form, step);

        if (r == 0)
                r = sl_weave_add(weave, step, &value);
        if (r == 0)
                sl_weave_set(weave, weave->match->graphs[0]->nodes[node].outputs[0], form, value);
        return r;
}

/* One filter reads each channel, and lanes are more of both; of one group it is a LanedConv. */
static int set_inner(const struct sl_weave *weave, uint32_t node, struct sl_weave_step *step)
{
        const struct sl_shape *weights = &sl_weave_input(weave, node, 1)->shape;
        bool depthwise = weights->dims[1] == 1 && weights->dims[0] == sl_attrs_int(&step->attrs, SL_ATTR_GROUP, 1);

        if (step->op != SL_OP_CONV || (!depthwise && sl_attrs_int(&step->attrs, SL_ATTR_GROUP, 1) != 1))
                return -ENOTSUP;
        if (!depthwise)
                step->op = SL_OP_LANED_CONV;
        return 0;
}

int sl_weave_grouped(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        int r = form == 1 ? 0 : form == SL_FORM_INNER ? set_inner(weave, node, &step) : -ENOTSUP;

        if (r == 0)
                r = sl_attrs_set_int(&step.attrs, SL_ATTR_GROUP, sl_attrs_int(&step.attrs, SL_ATTR_GROUP, 1) * weave->lanes);
        return r < 0 ? -ENOTSUP : add_channels(weave, node, form, &step);
}

int sl_weave_channelled(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        const struct sl_attr *groups = sl_attrs_find(&step.attrs, SL_ATTR_NUM_GROUPS);

        if ((form != 1 && (form != SL_FORM_INNER || groups)) || !makes_one(&weave->match->graphs[0]->nodes[node]))
                return -ENOTSUP;
        if (groups && sl_attrs_set_int(&step.attrs, SL_ATTR_NUM_GROUPS, groups->i * weave->lanes) < 0)
                return -ENOTSUP;
        return add_channels(weave, node, form, &step);
}
