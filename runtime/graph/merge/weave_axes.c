/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that compute along axes which their attributes name. With K before axis a and not folded into it, each axis from a on
 * stands one later. Folded into an axis that the node does not touch, K changes nothing; folded into one that it does touch (a
 * Concat of channels, a channel shuffle) the value is opened there first, so that lanes never interleave.
 */
#include "base/error.h"
#include "merge/weave.h"
#include "merge/weave_nodes.h"

#include <string.h>

/* A node's axes while K comes to stand before axis @at. */
struct shift {
        const struct sl_node *node;
        struct sl_attrs *attrs; /* what they become */
        uint32_t rank, at;      /* of input 0 */
        bool touches;           /* it computes along, or moves, axis @at */
        bool drops;             /* dimensions up to @at go or come: a folded K would stand elsewhere behind the node */
};

static int64_t wrapped(int64_t axis, uint32_t rank)
{
        return axis < 0 ? axis + (int64_t)rank : axis;
}

static int64_t shifted(struct shift *s, int64_t axis)
{
        s->touches = s->touches || axis == (int64_t)s->at;
        return axis + (axis >= (int64_t)s->at);
}

static int shift_axis(struct shift *s, int64_t fallback)
{
        return sl_attrs_set_int(
                s->attrs, SL_ATTR_AXIS, shifted(s, wrapped(sl_attrs_int(&s->node->attrs, SL_ATTR_AXIS, fallback), s->rank)));
}

/* A list of axes; @n of them from the first on when there is no list. */
static int shift_list(struct shift *s, uint32_t n, uint32_t rank, bool drops)
{
        const struct sl_attr *axes = sl_attrs_find(&s->node->attrs, SL_ATTR_AXES);
        int64_t list[SL_ATTR_INTS_MAX];

        n = axes ? axes->count : n;
        for (uint32_t i = 0; i < n; i++) {
                int64_t axis = axes ? wrapped(axes->ints[i], rank) : (int64_t)i;

                s->drops = s->drops || (drops && axis <= (int64_t)s->at);
                list[i] = shifted(s, axis);
        }
        return n ? sl_attrs_set_ints(s->attrs, SL_ATTR_AXES, list, n) : -ENOTSUP;
}

static int shift_slice(struct shift *s)
{
        const struct sl_attr *starts = sl_attrs_find(&s->node->attrs, SL_ATTR_STARTS);

        return starts ? shift_list(s, starts->count, s->rank, false) : -ENOTSUP;
}

static int shift_reduction(struct shift *s)
{
        bool keeps = sl_attrs_int(&s->node->attrs, SL_ATTR_KEEPDIMS, 1);

        if (!sl_attrs_find(&s->node->attrs, SL_ATTR_AXES) && sl_attrs_int(&s->node->attrs, SL_ATTR_NOOP_EMPTY_AXES, 0))
                return -ENOTSUP;
        return shift_list(s, s->rank, s->rank, !keeps);
}

static int shift_search(struct shift *s)
{
        int64_t axis = wrapped(sl_attrs_int(&s->node->attrs, SL_ATTR_AXIS, 0), s->rank);

        s->drops = !sl_attrs_int(&s->node->attrs, SL_ATTR_KEEPDIMS, 1) && axis <= (int64_t)s->at;
        return shift_axis(s, 0);
}

/* K stays where it is; the others change places around it. */
static int shift_transpose(struct shift *s)
{
        int64_t perm[SL_RANK_MAX] = {0};

        for (uint32_t i = 0; i < s->rank; i++)
                perm[i + (i >= s->at)] = shifted(s, sl_attrs_ints(&s->node->attrs, SL_ATTR_PERM, i, s->rank - 1 - i));
        perm[s->at] = s->at;
        s->touches = true;
        return sl_attrs_set_ints(s->attrs, SL_ATTR_PERM, perm, s->rank + 1);
}

static int shift_pads(struct shift *s)
{
        const struct sl_attr *pads = sl_attrs_find(&s->node->attrs, SL_ATTR_PADS);
        const struct sl_attr *axes = sl_attrs_find(&s->node->attrs, SL_ATTR_AXES);
        int64_t list[2 * SL_RANK_MAX] = {0};

        if (!pads || pads->count != 2 * (axes ? axes->count : s->rank))
                return -ENOTSUP;
        if (axes)
                return shift_list(s, 0, s->rank, false);
        for (uint32_t i = 0; i < s->rank; i++) {
                uint32_t to = i + (i >= s->at);

                list[to] = pads->ints[i];
                list[s->rank + 1 + to] = pads->ints[s->rank + i];
                s->touches = s->touches || (i == s->at && (pads->ints[i] || pads->ints[s->rank + i]));
        }
        return sl_attrs_set_ints(s->attrs, SL_ATTR_PADS, list, 2 * (s->rank + 1));
}

static int shift_squeeze(struct shift *s)
{
        return sl_attrs_find(&s->node->attrs, SL_ATTR_AXES) ? shift_list(s, 0, s->rank, true) : -ENOTSUP;
}

/* Its axes are those of the output. */
static int shift_unsqueeze(struct shift *s)
{
        const struct sl_attr *axes = sl_attrs_find(&s->node->attrs, SL_ATTR_AXES);

        return axes ? shift_list(s, 0, s->rank + axes->count, true) : -ENOTSUP;
}

static int shift_node(struct shift *s)
{
        switch (s->node->op) {
        case SL_OP_CONCAT:
        case SL_OP_SPLIT:
        case SL_OP_CUM_SUM:
                return shift_axis(s, 0);
        case SL_OP_ARG_MAX:
        case SL_OP_ARG_MIN:
                return shift_search(s);
        case SL_OP_SLICE:
                return shift_slice(s);
        case SL_OP_TRANSPOSE:
                return shift_transpose(s);
        case SL_OP_PAD:
                return shift_pads(s);
        case SL_OP_SQUEEZE:
                return shift_squeeze(s);
        case SL_OP_UNSQUEEZE:
                return shift_unsqueeze(s);
        case SL_OP_SOFTMAX:
        case SL_OP_LOG_SOFTMAX:
        case SL_OP_HARDMAX:
        case SL_OP_LP_NORM:
        case SL_OP_TOP_K:
                return shift_axis(s, -1);
        default:
                return shift_reduction(s);
        }
}

static int read_operand(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t form, bool open, uint32_t *ret_value)
{
        const struct sl_shape *shape = &sl_weave_input(weave, node, input)->shape;
        uint32_t joint = weave->match->graphs[0]->nodes[node].inputs[input];
        struct sl_stack stack = {.form = form, .axis = 1, .rank = shape->rank};
        struct sl_shape opened;
        int r;

        if (!sl_weave_has_input(weave, node, input))
                return -ENOTSUP;
        if (!sl_weave_is_constant(weave, node, input))
                return open ? sl_weave_get_open(weave, joint, form, ret_value) : sl_weave_get(weave, joint, form, ret_value);
        r = sl_weave_stack(weave, node, input, &stack, ret_value);
        if (r < 0 || !open || form == SL_FORM_LANE)
                return r;
        r = sl_weave_open_shape(weave, joint, form, &opened);
        return r < 0 ? r : sl_weave_reshape(weave, *ret_value, &opened, ret_value);
}

static int set_outputs(struct sl_weave *weave, const struct sl_node *from, uint32_t form, bool open, const uint32_t *values)
{
        int r = 0;

        for (uint32_t i = 0; i < from->n_outputs && r == 0; i++) {
                if (from->outputs[i] == SL_VALUE_NONE)
                        continue;
                if (open)
                        r = sl_weave_set_open(weave, from->outputs[i], form, values[i]);
                else
                        sl_weave_set(weave, from->outputs[i], form, values[i]);
        }
        return r;
}

int sl_weave_axes(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        struct shift shift = {.node = from,
                .attrs = &step.attrs,
                .rank = sl_weave_input(weave, node, 0)->shape.rank,
                .at = form == SL_FORM_INNER ? 1 : form};
        uint32_t values[SL_NODE_OUTPUTS_MAX];
        bool open = form == SL_FORM_LANE;
        int r = shift.rank < SL_RANK_MAX ? shift_node(&shift) : -ENOTSUP;

        if (r < 0 || (form != SL_FORM_LANE && shift.drops))
                return -ENOTSUP;
        /* Channels whose lanes are neighbours are joined as they are. */
        if (form == SL_FORM_INNER && shift.touches && from->op != SL_OP_CONCAT)
                return -ENOTSUP;
        open = open || (shift.touches && form != SL_FORM_INNER);
        if (!open)
                step.attrs = from->attrs;
        step.n_inputs = from->n_inputs;
        step.n_outputs = from->n_outputs;
        for (uint32_t i = 0; i < from->n_inputs && r == 0; i++)
                r = read_operand(weave, node, i, form, open, &step.inputs[i]);
        if (r == 0)
                r = sl_weave_add(weave, &step, values);
        return r < 0 ? r : set_outputs(weave, from, form, open, values);
}

int sl_weave_indexed(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        uint32_t rank = sl_weave_input(weave, node, 0)->shape.rank, value;
        int64_t axis = wrapped(sl_attrs_int(&from->attrs, SL_ATTR_AXIS, 0), rank);
        int r;

        if (sl_weave_is_constant(weave, node, 0) || !sl_weave_is_shared(weave, node, 1) ||
                (form != SL_FORM_LANE && axis <= (int64_t)form))
                return -ENOTSUP;
        r = sl_attrs_set_int(&step.attrs, SL_ATTR_AXIS, axis + (form == SL_FORM_LANE));
        step.n_inputs = 2;
        if (r == 0)
                r = sl_weave_get(weave, from->inputs[0], form, &step.inputs[0]);
        if (r == 0)
                r = sl_weave_share(weave, node, 1, &step.inputs[1]);
        if (r == 0)
                r = sl_weave_add(weave, &step, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}
