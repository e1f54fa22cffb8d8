/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/weave_apart.h"

#include "base/error.h"
#include "control.h"
#include "merge/weave.h"

#include <stdio.h>
#include <string.h>

static uint32_t *apart_of(const struct sl_weave *weave, uint32_t lane, uint32_t joint)
{
        return &weave->apart[lane][weave->match->lane_of[lane][joint]];
}

static const char *name_of(const struct sl_weave *weave, uint32_t lane, uint32_t joint)
{
        return weave->match->graphs[lane]->values[weave->match->lane_of[lane][joint]].name;
}

/* Unsqueeze, Squeeze of an axis. */
static int change_axis(struct sl_weave *weave, uint32_t op, const char *name, uint32_t axis, uint32_t value, uint32_t *ret_value)
{
        struct sl_weave_step step = {.op = op, .name = name, .n_inputs = 1, .inputs = {value}};
        int r = sl_attrs_set_ints(&step.attrs, SL_ATTR_AXES, (const int64_t[]){axis}, 1);

        return r < 0 ? r : sl_weave_add(weave, &step, ret_value);
}

/* Lanes that have an axis of their own while they are joined or parted, and which that is. */
static bool has_own_axis(uint32_t form, uint32_t *ret_axis)
{
        *ret_axis = form == SL_FORM_INNER ? 2 : form;
        return form == SL_FORM_INNER || form == SL_FORM_LANE;
}

int sl_weave_join(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t *ret_value)
{
        struct sl_weave_step step = {.op = SL_OP_CONCAT, .name = name_of(weave, 0, joint), .n_inputs = weave->lanes};
        struct sl_shape folded;
        uint32_t axis;
        bool own = has_own_axis(form, &axis);
        int r = sl_weave_shape(weave, joint, form, &folded);

        /* Of one channel the lanes are neighbours as they lie. */
        if (r == 0 && form == SL_FORM_INNER && folded.dims[1] == weave->lanes) {
                axis = 1;
                own = false;
        }
        if (r == 0)
                r = sl_attrs_set_int(&step.attrs, SL_ATTR_AXIS, axis);
        for (uint32_t g = 0; g < weave->lanes && r == 0; g++) {
                step.inputs[g] = *apart_of(weave, g, joint);
                if (own)
                        r = change_axis(weave, SL_OP_UNSQUEEZE, name_of(weave, g, joint), axis, step.inputs[g], &step.inputs[g]);
        }
        if (r == 0)
                r = sl_weave_add(weave, &step, ret_value);
        return r == 0 && form == SL_FORM_INNER ? sl_weave_reshape(weave, *ret_value, &folded, ret_value) : r;
}

/* One lane of the axis, of which each has @each. */
static int slice_lane(struct sl_weave *weave, uint32_t value, uint32_t axis, int64_t each, uint32_t lane, uint32_t *ret_value)
{
        const char *name = weave->graph->values[value].name;
        struct sl_weave_step step = {.op = SL_OP_SLICE, .name = name, .n_inputs = 1, .inputs = {value}};
        int r = sl_attrs_set_ints(&step.attrs, SL_ATTR_STARTS, (const int64_t[]){lane * each}, 1);

        if (r == 0)
                r = sl_attrs_set_ints(&step.attrs, SL_ATTR_ENDS, (const int64_t[]){(lane + 1) * each}, 1);
        if (r == 0)
                r = sl_attrs_set_ints(&step.attrs, SL_ATTR_AXES, (const int64_t[]){axis}, 1);
        return r < 0 ? r : sl_weave_add(weave, &step, ret_value);
}

/* A Split while it has as many outputs; else a Slice for each: Splits of Splits would copy twice, and whole groups for one lane. */
static int split_lanes(struct sl_weave *weave, uint32_t value, uint32_t axis, int64_t each, uint32_t *ret_values)
{
        struct sl_weave_step step = {.op = SL_OP_SPLIT, .n_inputs = 1, .n_outputs = weave->lanes, .inputs = {value}};
        int64_t sizes[SL_NODE_OUTPUTS_MAX];
        int r = 0;

        for (uint32_t g = 0; weave->lanes > SL_NODE_OUTPUTS_MAX && g < weave->lanes && r == 0; g++)
                r = slice_lane(weave, value, axis, each, g, &ret_values[g]);
        if (weave->lanes > SL_NODE_OUTPUTS_MAX)
                return r;
        for (uint32_t g = 0; g < weave->lanes; g++)
                sizes[g] = each;
        step.name = weave->graph->values[value].name;
        r = sl_attrs_set_int(&step.attrs, SL_ATTR_AXIS, axis);
        if (r == 0)
                r = sl_attrs_set_ints(&step.attrs, SL_ATTR_SPLIT, sizes, weave->lanes);
        return r < 0 ? r : sl_weave_add(weave, &step, ret_values);
}

int sl_weave_part(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t value)
{
        uint32_t values[SL_MATCH_GRAPHS_MAX], axis;
        bool own = has_own_axis(form, &axis);
        int64_t each = own ? 1 : weave->sizes->values[joint].tensor.shape.dims[form];
        struct sl_shape open;
        int r = own ? sl_weave_open_shape(weave, joint, axis, &open) : 0;

        if (r == 0 && own)
                r = sl_weave_reshape(weave, value, &open, &value);
        if (r == 0)
                r = split_lanes(weave, value, axis, each, values);
        for (uint32_t g = 0; g < weave->lanes && r == 0; g++) {
                if (own)
                        r = change_axis(weave, SL_OP_SQUEEZE, name_of(weave, g, joint), axis, values[g], &values[g]);
                *apart_of(weave, g, joint) = values[g];
        }
        return r;
}

/* A value of one graph, in the merged one. */
static int copy_value(struct sl_weave *weave, uint32_t lane, uint32_t value, enum sl_value_kind kind)
{
        const struct sl_value *from = &weave->match->graphs[lane]->values[value];
        uint32_t *to = &weave->apart[lane][value];
        int r = sl_graph_add_value(weave->graph, from->name, kind, &from->tensor, to);

        if (r < 0)
                return r;
        weave->graph->values[*to].learned = from->learned;
        weave->graph->values[*to].data = from->data;
        weave->graph->values[*to].data_bytes = from->data_bytes;
        return 0;
}

static int read_value(struct sl_weave *weave, uint32_t lane, uint32_t value, uint32_t joint, uint32_t *ret_value)
{
        int r = 0;

        *ret_value = SL_VALUE_NONE;
        if (value == SL_VALUE_NONE)
                return 0;
        if (weave->match->graphs[lane]->values[value].kind == SL_VALUE_CONSTANT)
                r = weave->apart[lane][value] == SL_VALUE_NONE ? copy_value(weave, lane, value, SL_VALUE_CONSTANT) : 0;
        else if (joint != SL_VALUE_NONE && weave->apart[lane][value] == SL_VALUE_NONE) /* a lane may have it before the others */
                r = sl_weave_get_apart(weave, joint);
        *ret_value = weave->apart[lane][value];
        return r;
}

static int copy_bodies(struct sl_weave *weave, uint32_t index, const struct sl_node *node)
{
        int r = 0;

        for (uint32_t i = 0; i < node->n_bodies && r == 0; i++) {
                struct sl_graph *body;

                r = sl_graph_copy(node->bodies[i], &body);
                if (r < 0)
                        return r;
                r = sl_graph_add_body(weave->graph, index, body);
                if (r < 0)
                        sl_graph_free(body);
        }
        return r;
}

static int copy_node(struct sl_weave *weave, uint32_t lane, uint32_t index, const uint32_t *inputs)
{
        const struct sl_node *node = &weave->match->graphs[lane]->nodes[index];
        uint32_t outputs[SL_NODE_OUTPUTS_MAX], copy;
        int r = 0;

        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++) {
                outputs[i] = SL_VALUE_NONE;
                if (node->outputs[i] == SL_VALUE_NONE)
                        continue;
                r = copy_value(weave, lane, node->outputs[i], SL_VALUE_COMPUTED);
                outputs[i] = weave->apart[lane][node->outputs[i]];
        }
        if (r == 0)
                r = sl_graph_add_node(weave->graph, node->op, node->name, inputs, node->n_inputs, outputs, node->n_outputs, &copy);
        if (r < 0)
                return r;
        weave->graph->nodes[copy].attrs = node->attrs;
        weave->graph->nodes[copy].epilogue = node->epilogue;
        return copy_bodies(weave, copy, node);
}

/* The joint value that this value of the lane's graph is, if its lanes may lie together. */
static uint32_t joint_of(const struct sl_weave *weave, uint32_t lane, uint32_t value)
{
        return weave->match->joint_of[lane][value];
}

int sl_weave_own_node(struct sl_weave *weave, uint32_t lane, uint32_t index)
{
        const struct sl_node *node = &weave->match->graphs[lane]->nodes[index];
        uint32_t inputs[SL_NODE_INPUTS_MAX];
        int r = 0;

        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++) {
                uint32_t joint = node->inputs[i] == SL_VALUE_NONE ? SL_VALUE_NONE : joint_of(weave, lane, node->inputs[i]);

                r = read_value(weave, lane, node->inputs[i], joint, &inputs[i]);
        }
        if (r == 0)
                r = copy_node(weave, lane, index, inputs);
        return r < 0 ? sl_error_set(weave->error, -r, "no room for node \"%s\" of graph %u in the merged graph", node->name, lane)
                     : 0;
}

int sl_weave_nodes_apart(struct sl_weave *weave, uint32_t common)
{
        int r = 0;

        for (uint32_t g = 0; g < weave->lanes && r == 0; g++)
                r = sl_weave_own_node(weave, g, weave->match->nodes[g][common]);
        return r;
}

/* Ports have the number of their lane in front of their name. */
static int name_port(struct sl_weave *weave, uint32_t lane, uint32_t value, const char *name)
{
        size_t bytes = strlen(name) + sizeof("4294967295/");
        char *text = sl_graph_alloc(weave->graph, bytes);

        if (!text)
                return -ENOMEM;
        snprintf(text, bytes, "%u/%s", lane, name);
        weave->graph->values[value].name = text;
        return 0;
}

int sl_weave_inputs(struct sl_weave *weave)
{
        int r = 0;

        for (uint32_t g = 0; g < weave->lanes; g++) {
                const struct sl_graph *graph = weave->match->graphs[g];

                for (uint32_t i = 0; i < graph->n_inputs && r == 0; i++) {
                        r = copy_value(weave, g, graph->inputs[i], SL_VALUE_INPUT);
                        if (r == 0)
                                r = name_port(weave, g, weave->apart[g][graph->inputs[i]], graph->values[graph->inputs[i]].name);
                }
        }
        return r;
}

static uint32_t count_ports(const struct sl_weave *weave, bool outputs)
{
        uint32_t n = 0;

        for (uint32_t g = 0; g < weave->lanes; g++)
                n += outputs ? weave->match->graphs[g]->n_outputs : weave->match->graphs[g]->n_inputs;
        return n;
}

static int collect_ports(struct sl_weave *weave, uint32_t *inputs, uint32_t *outputs)
{
        uint32_t n_inputs = 0, n_outputs = 0;
        int r = 0;

        for (uint32_t g = 0; g < weave->lanes; g++) {
                const struct sl_graph *graph = weave->match->graphs[g];

                for (uint32_t i = 0; i < graph->n_inputs; i++)
                        inputs[n_inputs++] = weave->apart[g][graph->inputs[i]];
                for (uint32_t i = 0; i < graph->n_outputs && r == 0; i++) {
                        uint32_t *value = &outputs[n_outputs++];

                        r = read_value(weave, g, graph->outputs[i], joint_of(weave, g, graph->outputs[i]), value);
                        if (r == 0)
                                r = name_port(weave, g, *value, graph->values[graph->outputs[i]].name);
                }
        }
        return r < 0 ? r : sl_graph_set_ports(weave->graph, inputs, n_inputs, outputs, n_outputs);
}

int sl_weave_outputs(struct sl_weave *weave)
{
        uint32_t *inputs = sl_graph_alloc(weave->graph, (count_ports(weave, false) + 1u) * sizeof(*inputs));
        uint32_t *outputs = sl_graph_alloc(weave->graph, (count_ports(weave, true) + 1u) * sizeof(*outputs));

        return inputs && outputs ? collect_ports(weave, inputs, outputs) : -ENOMEM;
}
