/* SPDX-License-Identifier: Apache-2.0 */
#include "mbconv.h"

#include "rules.h"

#include <inttypes.h>

enum sl_mbconv_input sl_mbconv_weights(enum sl_mbconv_part part)
{
        static const enum sl_mbconv_input inputs[SL_MBCONV_PARTS] = {[SL_MBCONV_EXPAND] = SL_MBCONV_EXPAND_WEIGHTS,
                [SL_MBCONV_DEPTHWISE] = SL_MBCONV_DEPTHWISE_WEIGHTS,
                [SL_MBCONV_PROJECT] = SL_MBCONV_PROJECT_WEIGHTS};

        return inputs[part];
}

/* An input of the operator itself: the residual is the last one of the node, wherever that is. */
static bool is_present(const struct sl_node_desc *node, uint32_t input)
{
        return input < node->n_inputs - (node->epilogue.has_residual != 0) && node->inputs[input].dtype != SL_DTYPE_NONE;
}

bool sl_mbconv_has(const struct sl_node_desc *node, enum sl_mbconv_part part)
{
        return is_present(node, sl_mbconv_weights(part));
}

enum sl_mbconv_part sl_mbconv_last(const struct sl_node_desc *node)
{
        return sl_mbconv_has(node, SL_MBCONV_PROJECT) ? SL_MBCONV_PROJECT : SL_MBCONV_DEPTHWISE;
}

static struct sl_epilogue epilogue_of(const struct sl_node_desc *node, enum sl_mbconv_part part)
{
        uint32_t at = part == SL_MBCONV_DEPTHWISE;

        if (part == sl_mbconv_last(node))
                return node->epilogue;
        return (struct sl_epilogue){.activation = (uint32_t)sl_attrs_ints(&node->attrs, SL_ATTR_ACTIVATIONS, at, SL_ACT_NONE),
                .act_a = (float)sl_attrs_floats(&node->attrs, SL_ATTR_ACTIVATION_ALPHA, at, 0),
                .act_b = (float)sl_attrs_floats(&node->attrs, SL_ATTR_ACTIVATION_BETA, at, 0)};
}

/* Takes the place of the part before it, whose output it reads. */
static void describe(
        const struct sl_node_desc *node, enum sl_mbconv_part part, const struct sl_tensor *image, struct sl_node_desc *ret_conv)
{
        uint32_t weights = sl_mbconv_weights(part);

        *ret_conv = (struct sl_node_desc){
                .op = SL_OP_CONV, .n_inputs = 3, .n_outputs = 1, .epilogue = epilogue_of(node, part), .inputs = {*image}};
        if (part == SL_MBCONV_DEPTHWISE)
                ret_conv->attrs = node->attrs;
        ret_conv->inputs[1] = node->inputs[weights];
        if (is_present(node, weights + 1))
                ret_conv->inputs[2] = node->inputs[weights + 1];
        if (ret_conv->epilogue.has_residual)
                ret_conv->inputs[ret_conv->n_inputs++] = node->inputs[node->n_inputs - 1];
        ret_conv->outputs[0].layout = node->outputs[0].layout;
}

/* The rule of Conv sees it without its residual. */
static int infer(struct sl_node_desc *conv, struct sl_error *error)
{
        uint32_t n_inputs = conv->n_inputs;
        int r;

        conv->n_inputs = 3;
        r = sl_shape_conv(conv, error);
        conv->n_inputs = n_inputs;
        if (!r && sl_shape_is_static(&conv->outputs[0].shape) && sl_tensor_bytes(&conv->outputs[0]) > INT64_MAX)
                return sl_error_set(error, EOVERFLOW, "an image between two parts exceeds 64 bits");
        return r;
}

int sl_mbconv_conv(const struct sl_node_desc *node, enum sl_mbconv_part part, struct sl_node_desc *ret_conv, struct sl_error *error)
{
        struct sl_tensor image = node->inputs[SL_MBCONV_IMAGE];
        int r = 0;

        for (int before = 0; before <= (int)part && !r; before++) {
                if (!sl_mbconv_has(node, before))
                        continue;
                describe(node, before, &image, ret_conv);
                r = infer(ret_conv, error);
                image = ret_conv->outputs[0];
        }
        return r;
}

static int check_activations(const struct sl_node_desc *node, struct sl_error *error)
{
        static const struct {
                uint32_t id, type;
        } lists[] = {{SL_ATTR_ACTIVATIONS, SL_ATTR_TYPE_INTS}, {SL_ATTR_ACTIVATION_ALPHA, SL_ATTR_TYPE_FLOATS},
                {SL_ATTR_ACTIVATION_BETA, SL_ATTR_TYPE_FLOATS}};

        for (uint32_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
                const struct sl_attr *attr = sl_attrs_find(&node->attrs, lists[i].id);

                if (attr && (attr->type != lists[i].type || attr->count != 2))
                        return sl_error_set(
                                error, EINVAL, "attribute %s has %u elements, wants 2", sl_attr_name(lists[i].id), attr->count);
        }
        for (uint32_t i = 0; i < 2; i++) {
                int64_t activation = sl_attrs_ints(&node->attrs, SL_ATTR_ACTIVATIONS, i, SL_ACT_NONE);
                bool owned = sl_mbconv_has(node, i ? SL_MBCONV_PROJECT : SL_MBCONV_EXPAND);
                int64_t most = owned ? SL_ACT_ELU : SL_ACT_NONE;

                if (activation < SL_ACT_NONE || activation > most)
                        return sl_error_set(error, EINVAL,
                                "attribute activations has the element %" PRId64 " at %u, outside [0,%" PRId64 "]", activation, i,
                                most);
        }
        return 0;
}

/* Pointwise, or with a filter of one channel for each channel. */
static int check_weights(const struct sl_node_desc *conv, enum sl_mbconv_part part, struct sl_error *error)
{
        const struct sl_shape *w = &conv->inputs[1].shape;
        uint32_t first = part == SL_MBCONV_DEPTHWISE ? 1 : 2, last = part == SL_MBCONV_DEPTHWISE ? 2 : w->rank;
        int64_t channels = conv->inputs[0].shape.dims[1], merged;
        char text[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = first; i < last; i++)
                if (sl_dim_known(w->dims[i]) && w->dims[i] != 1)
                        return sl_error_set(error, EINVAL, "input %u is %s, wants 1 as dimension %u", sl_mbconv_weights(part),
                                sl_shape_print(w, text), i);
        if (part == SL_MBCONV_DEPTHWISE && sl_dim_merge(w->dims[0], channels, &merged))
                return sl_error_set(error, EINVAL, "input %u is %s, wants one filter for each of %" PRId64 " channels",
                        sl_mbconv_weights(part), sl_shape_print(w, text), channels);
        return 0;
}

static int infer_parts(const struct sl_node_desc *node, struct sl_tensor *ret_output, struct sl_error *error)
{
        struct sl_node_desc conv;
        int r = check_activations(node, error);

        for (int part = 0; part < SL_MBCONV_PARTS && !r; part++) {
                if (!sl_mbconv_has(node, part))
                        continue;
                r = sl_mbconv_conv(node, part, &conv, error);
                r = r ? r : check_weights(&conv, part, error);
        }
        if (r)
                return r;
        *ret_output = conv.outputs[0];
        return 0;
}

/* The parts look for the residual where the node has it. */
int sl_shape_mbconv(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t n_inputs = node->n_inputs;
        int r;

        node->n_inputs += node->epilogue.has_residual != 0;
        r = infer_parts(node, &node->outputs[0], error);
        node->n_inputs = n_inputs;
        return r;
}
