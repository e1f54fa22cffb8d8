/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples are followed through the graph. In each value they lie along one axis: the only dimension that is as many times
 * longer for several samples as there are of them. Reshapes may have merged other dimensions into that axis, so a number says how
 * many whole copies of all samples the axis holds in front of each other:
 *
 *     elements of the axis = copies * samples * rest
 *
 * A node mixes samples when it computes along that axis, when the samples vanish from its output, or when a reshape cuts
 * across them.
 */
#include "independence.h"

#include "base/cleanup.h"
#include "graph.h"
#include "sample_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NO_AXIS  (-1) /* the same for one sample and for several */
#define NO_TRACK (-2)

struct follower {
        const struct sl_graph *one, *many;
        int64_t samples;  /* how many */
        uint64_t *copies; /* of each value that has samples */
};

static int axis_of(const struct follower *follower, uint32_t value)
{
        const struct sl_shape *one = &follower->one->values[value].tensor.shape;
        const struct sl_shape *many = &follower->many->values[value].tensor.shape;
        int axis = NO_AXIS;

        if (one->rank != many->rank)
                return NO_TRACK;
        for (uint32_t i = 0; i < one->rank; i++) {
                if (one->dims[i] == many->dims[i])
                        continue;
                if (axis != NO_AXIS || many->dims[i] != follower->samples * one->dims[i])
                        return NO_TRACK;
                axis = (int)i;
        }
        return axis;
}

static uint64_t product(const int64_t *dims, int n)
{
        uint64_t result = 1;

        for (int i = 0; i < n; i++)
                result *= (uint64_t)dims[i];
        return result;
}

static bool repeats(const uint8_t *alone, const uint8_t *all, uint64_t chunk, int64_t times)
{
        for (int64_t i = 0; i < times; i++)
                if (memcmp(alone, all + (uint64_t)i * chunk, chunk))
                        return false;
        return true;
}

/* Numbers that are the same for each sample, and for any number of them. */
static bool constant_is_uniform(const struct follower *follower, uint32_t value, int axis)
{
        const struct sl_value *one = &follower->one->values[value], *many = &follower->many->values[value];
        const struct sl_shape *shape = &one->tensor.shape;
        uint64_t outer, chunk;

        if (one->kind != SL_VALUE_CONSTANT || axis == NO_TRACK)
                return false;
        if (axis == NO_AXIS)
                return one->data == many->data || !memcmp(one->data, many->data, one->data_bytes);
        outer = product(shape->dims, axis);
        chunk = outer ? one->data_bytes / outer : 0;
        for (uint64_t i = 0; i < outer; i++) {
                const uint8_t *all = (const uint8_t *)many->data + (uint64_t)follower->samples * i * chunk;

                if (!repeats((const uint8_t *)one->data + i * chunk, all, chunk, follower->samples))
                        return false;
        }
        return true;
}

static int64_t wrapped(int64_t axis, uint32_t rank)
{
        return axis < 0 ? axis + (int64_t)rank : axis;
}

static bool slices_axis(const struct sl_node *node, const struct sl_tensor *in, const struct sl_tensor *out, int axis)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t n = axes ? axes->count : in->shape.rank;

        if (in->shape.dims[axis] != out->shape.dims[axis])
                return true;
        for (uint32_t i = 0; i < n; i++) {
                int64_t at = axes ? wrapped(axes->ints[i], in->shape.rank) : (int64_t)i;

                if (at == axis && sl_attrs_ints(&node->attrs, SL_ATTR_STEPS, i, 1) != 1)
                        return true;
        }
        return false;
}

/* Does the node compute along the axis of the samples in input 0? What changes the axis' length shows in the shapes instead. */
static bool computes_along(const struct sl_node *node, const struct sl_tensor *in, const struct sl_tensor *out, int axis)
{
        int64_t last = wrapped(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), in->shape.rank);
        int64_t first = wrapped(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), in->shape.rank);

        switch (node->op) {
        case SL_OP_MAX_POOL:
                /* The places of the largest are counted through the whole batch. */
                return axis != 0 || node->n_outputs > 1;
        case SL_OP_SOFTMAX:
        case SL_OP_LOG_SOFTMAX:
                return last == axis;
        case SL_OP_LAYER_NORM:
                return axis >= last;
        case SL_OP_CONCAT:
        case SL_OP_SPLIT:
        case SL_OP_GATHER:
                return first == axis;
        case SL_OP_SLICE:
                return slices_axis(node, in, out, axis);
        case SL_OP_QUANTIZE_LINEAR:
        case SL_OP_DEQUANTIZE_LINEAR:
                return false;
        case SL_OP_TILE:
                return in->shape.dims[axis] != out->shape.dims[axis];
        case SL_OP_TOP_K:
        case SL_OP_HARDMAX:
        case SL_OP_LP_NORM:
                return last == axis;
        case SL_OP_RMS_NORM:
                return axis >= last;
        case SL_OP_CUM_SUM:
        case SL_OP_CUM_PROD:
                return first == axis;
        case SL_OP_REVERSE_SEQUENCE:
                return in->shape.rank > 1 && axis != sl_attrs_int(&node->attrs, SL_ATTR_BATCH_AXIS, 1);
        case SL_OP_TRILU:
        case SL_OP_DET:
                return axis + 2 >= (int)in->shape.rank;
        case SL_OP_DFT:
                return axis + 1 == (int)in->shape.rank ||
                       axis == wrapped(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2), in->shape.rank);
        case SL_OP_GATHER_ELEMENTS:
        case SL_OP_SCATTER_ELEMENTS:
                return first == axis;
        case SL_OP_GATHER_ND:
                return axis >= sl_attrs_int(&node->attrs, SL_ATTR_BATCH_DIMS, 0);
        case SL_OP_RESIZE:
                return axis != 0 || in->shape.dims[0] != out->shape.dims[0];
        case SL_OP_LSTM:
        case SL_OP_GRU:
        case SL_OP_RNN:
                return in->shape.rank == 3 && axis != (sl_attrs_int(&node->attrs, SL_ATTR_LAYOUT, 0) ? 0 : 1);
        default:
                if (sl_op_traits(node->op) & SL_OP_MIXES)
                        return true;
                if (sl_op_traits(node->op) & SL_OP_LEADING)
                        return axis != 0;
                /* Windows, channels and pixels: everything behind the leading axis may be mixed. */
                return (sl_op_traits(node->op) & SL_OP_SPATIAL) && node->op != SL_OP_PAD && axis != 0;
        }
}

static bool keeps_order(uint32_t op)
{
        return op != SL_OP_IDENTITY && (sl_op_traits(op) & SL_OP_VIEW);
}

/* The elements stay in order, so there are as many copies of all samples in the whole tensor as before. */
static uint64_t copies_behind_view(const struct follower *follower, const struct sl_node *node, int axis_in, int axis_out)
{
        const struct sl_shape *in = &follower->many->values[node->inputs[0]].tensor.shape;
        const struct sl_shape *out = &follower->many->values[node->outputs[0]].tensor.shape;
        uint64_t whole = product(in->dims, axis_in) * follower->copies[node->inputs[0]], before = product(out->dims, axis_out);

        return before && whole % before == 0 ? whole / before : 0;
}

/* Joins what the inputs say. False when they contradict each other. *ret_copies: 0 when no input has samples. */
static bool join_inputs(struct follower *follower, const struct sl_node *node, uint64_t *ret_copies)
{
        uint64_t copies = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t value = node->inputs[i];
                int axis = value == SL_VALUE_NONE ? NO_AXIS : axis_of(follower, value);

                if (axis == NO_TRACK)
                        return false;
                if (value == SL_VALUE_NONE)
                        continue;
                if (follower->many->values[value].kind == SL_VALUE_CONSTANT) {
                        if (!constant_is_uniform(follower, value, axis))
                                return false;
                        continue;
                }
                if (axis == NO_AXIS)
                        continue;
                if (copies && copies != follower->copies[value])
                        return false;
                copies = follower->copies[value];
        }
        *ret_copies = copies;
        return true;
}

static bool input_is_mixed(const struct follower *follower, const struct sl_node *node, uint32_t input)
{
        const struct sl_tensor *out = &follower->many->values[node->outputs[0]].tensor;
        uint32_t value = node->inputs[input];
        int axis = value == SL_VALUE_NONE ? NO_AXIS : axis_of(follower, value);

        /* Indices of Gather lie along other axes than its data. */
        if (axis < 0 || ((node->op == SL_OP_GATHER || node->op == SL_OP_GATHER_ND) && input > 0))
                return false;
        return computes_along(node, &follower->many->values[value].tensor, out, axis);
}

static bool follow_output(struct follower *follower, const struct sl_node *node, uint32_t value, uint64_t copies)
{
        int axis = axis_of(follower, value);

        if (axis == NO_TRACK || (copies && axis == NO_AXIS))
                return false;
        if (axis == NO_AXIS)
                return true;
        /* Samples that come from nowhere are broadcast, unless they are counted. */
        if (!copies)
                copies = node->op == SL_OP_RANGE ? 0 : 1;
        else if (keeps_order(node->op))
                copies = copies_behind_view(follower, node, axis_of(follower, node->inputs[0]), axis);
        follower->copies[value] = copies;
        return copies != 0;
}

/* Attributes that say where something is, or how much of it there is, of which the shapes tell what depends on the samples. */
static bool is_seen_in_shape(const struct sl_node *node, uint32_t id)
{
        switch (node->op) {
        case SL_OP_RESHAPE:
        case SL_OP_EXPAND:
        case SL_OP_TILE:
        case SL_OP_CONSTANT_OF_SHAPE:
                return id == SL_ATTR_SHAPE;
        case SL_OP_RESIZE: /* sizes are those of the output, but for a policy that takes them as bounds */
                return id == SL_ATTR_SIZES && !sl_attrs_int(&node->attrs, SL_ATTR_ASPECT_POLICY, 0);
        default:
                return false;
        }
}

/* Along the axis of the samples a Slice takes all of them, which slices_axis() sees to; elsewhere it is the same for any number. */
static bool slices_alike(const struct follower *follower, const struct sl_node *one, const struct sl_node *many)
{
        const struct sl_attr *axes = sl_attrs_find(&one->attrs, SL_ATTR_AXES),
                             *many_axes = sl_attrs_find(&many->attrs, SL_ATTR_AXES);
        static const uint32_t lists[] = {SL_ATTR_STARTS, SL_ATTR_ENDS, SL_ATTR_STEPS};
        uint32_t rank = follower->one->values[one->inputs[0]].tensor.shape.rank;
        int along = axis_of(follower, one->inputs[0]);

        if (!axes != !many_axes || (axes && memcmp(axes, many_axes, sizeof(*axes))))
                return false;
        for (uint32_t i = 0; i < (axes ? axes->count : rank); i++) {
                bool is_along = wrapped(axes ? axes->ints[i] : (int64_t)i, rank) == along;

                for (size_t k = 0; k < sizeof(lists) / sizeof(*lists) && !is_along; k++)
                        if (sl_attrs_ints(&one->attrs, lists[k], i, 1) != sl_attrs_ints(&many->attrs, lists[k], i, 1))
                                return false;
        }
        return true;
}

/* The node is told the same, however many samples there are. */
static bool is_alike(const struct follower *follower, const struct sl_node *one, const struct sl_node *many)
{
        if (one->op != many->op || one->attrs.count != many->attrs.count)
                return false;
        if (one->op == SL_OP_SLICE)
                return slices_alike(follower, one, many);
        for (uint32_t i = 0; i < one->attrs.count; i++) {
                const struct sl_attr *attr = &one->attrs.items[i], *other = sl_attrs_find(&many->attrs, attr->id);

                if (!other || (memcmp(attr, other, sizeof(*attr)) && !is_seen_in_shape(one, attr->id)))
                        return false;
        }
        return true;
}

/*
 * A Gather along the samples, or a GatherND, by indices that count them: each sample of the indices takes from its own of the data,
 * so that they lie in the output where they lie in the indices.
 */
static bool gathers_own_samples(struct follower *follower, const struct sl_node *node)
{
        bool many_dimensional = node->op == SL_OP_GATHER_ND;
        const struct sl_value *data, *one, *many;
        int axis;

        if ((node->op != SL_OP_GATHER && !many_dimensional) || node->n_inputs != 2 || axis_of(follower, node->inputs[0]) != 0 ||
                follower->copies[node->inputs[0]] != 1)
                return false;
        data = &follower->one->values[node->inputs[0]];
        one = &follower->one->values[node->inputs[1]];
        many = &follower->many->values[node->inputs[1]];
        axis = axis_of(follower, node->inputs[1]);
        if (sl_attrs_int(&node->attrs, many_dimensional ? SL_ATTR_BATCH_DIMS : SL_ATTR_AXIS, 0) != 0 || !one->tensor.shape.rank)
                return false;
        if (axis_of(follower, node->outputs[0]) != axis)
                return false;
        return sl_sample_index_is_own(one, many, axis, follower->samples,
                many_dimensional ? (uint64_t)one->tensor.shape.dims[one->tensor.shape.rank - 1] : 1, data->tensor.shape.dims[0]);
}

static bool follow_node(struct follower *follower, const struct sl_node *node)
{
        uint64_t copies;

        if (gathers_own_samples(follower, node)) {
                follower->copies[node->outputs[0]] = 1;
                return true;
        }

        if (!join_inputs(follower, node, &copies))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (input_is_mixed(follower, node, i))
                        return false;
        }
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (node->outputs[i] != SL_VALUE_NONE && !follow_output(follower, node, node->outputs[i], copies))
                        return false;
        }
        return true;
}

static bool outputs_lead_with_samples(const struct follower *follower)
{
        for (uint32_t i = 0; i < follower->many->n_outputs; i++) {
                uint32_t value = follower->many->outputs[i];

                if (follower->many->values[value].kind == SL_VALUE_CONSTANT) {
                        if (!constant_is_uniform(follower, value, axis_of(follower, value)))
                                return false;
                } else if (axis_of(follower, value) != 0 || follower->copies[value] != 1) {
                        return false;
                }
        }
        return true;
}

bool sl_samples_are_independent(const struct sl_graph *one, const struct sl_graph *many, int64_t samples)
{
        SL_CLEANUP(sl_cleanup_free) uint64_t *copies = calloc(many->n_values + 1u, sizeof(*copies));
        struct follower follower = {.one = one, .many = many, .samples = samples, .copies = copies};

        if (!copies || one->n_nodes != many->n_nodes || one->n_values != many->n_values)
                return false;
        for (uint32_t i = 0; i < many->n_inputs; i++)
                copies[many->inputs[i]] = 1;
        for (uint32_t i = 0; i < many->n_nodes; i++) {
                if (one->nodes[i].dead != many->nodes[i].dead)
                        return false;
                if (many->nodes[i].dead)
                        continue;
                if (!is_alike(&follower, &one->nodes[i], &many->nodes[i]) || !follow_node(&follower, &many->nodes[i]))
                        return false;
        }
        return outputs_lead_with_samples(&follower);
}
