/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reshape, Flatten, Expand and Tile. A view keeps elements in order, so with K in front each lane does as before. Folded into
 * channels K keeps its place where the samples stay in front and every lane's part stays in one piece.
 */
#include "base/error.h"
#include "merge/weave.h"
#include "merge/weave_nodes.h"

#include <string.h>

static int reshape_to(struct sl_weave *weave, uint32_t node, uint32_t form, const struct sl_shape *shape)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        uint32_t value;
        int r = sl_weave_get(weave, from->inputs[0], form, &value);

        if (r == 0)
                r = sl_weave_reshape(weave, value, shape, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}

int sl_weave_view(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_shape *in = &sl_weave_input(weave, node, 0)->shape, *out = &sl_weave_output(weave, node, 0)->shape;
        struct sl_shape shape;
        int r = sl_weave_shape(weave, weave->match->graphs[0]->nodes[node].outputs[0], form, &shape);

        if (r < 0 || weave->match->graphs[0]->nodes[node].n_inputs > 1)
                return -ENOTSUP;
        if (form == SL_FORM_INNER && (in->rank < 2 || in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1]))
                return -ENOTSUP;
        if (form != SL_FORM_LANE && form != SL_FORM_INNER && (form != 1 || in->dims[0] != out->dims[0]))
                return -ENOTSUP;
        return reshape_to(weave, node, form, &shape);
}

int sl_weave_expand(struct sl_weave *weave, uint32_t node, uint32_t form)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];
        const struct sl_attr *shape = sl_attrs_find(&from->attrs, SL_ATTR_SHAPE);
        struct sl_weave_step step = sl_weave_step_of(weave, node);
        int64_t list[SL_RANK_MAX] = {1};
        uint32_t value;
        int r;

        if (form != SL_FORM_LANE || !shape || shape->count >= SL_RANK_MAX || from->n_inputs > 1 ||
                shape->count != sl_weave_input(weave, node, 0)->shape.rank)
                return -ENOTSUP;
        memcpy(list + 1, shape->ints, shape->count * sizeof(*list));
        r = sl_attrs_set_ints(&step.attrs, SL_ATTR_SHAPE, list, shape->count + 1);
        step.n_inputs = 1;
        if (r == 0)
                r = sl_weave_get(weave, from->inputs[0], form, &step.inputs[0]);
        if (r == 0)
                r = sl_weave_add(weave, &step, &value);
        if (r == 0)
                sl_weave_set(weave, from->outputs[0], form, value);
        return r;
}
