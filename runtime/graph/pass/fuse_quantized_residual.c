/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum of bytes of which one part is made by a QuantizedConv or QuantizedMatMul for it alone becomes the residual of that: the
 * part is never rounded to bytes of its own, nor kept within what they can say. So it is left alone where that is what limits it:
 * who writes such files leaves out a Relu or Clip in front of bytes that stand for nothing beyond it. Of a Clip on both sides the
 * limits are whole numbers, which those of a range that was found by calibration hardly are. The other part must be made before the
 * product.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"

#include <math.h>

#define RESIDUAL_INPUT 4
#define STEP_SLACK     1.01
#define STEP_MOST      0.1 /* of larger ones a limit is near a whole number too often */

static bool made_before(const struct sl_graph *graph, uint32_t value, uint32_t node)
{
        uint32_t producer = sl_graph_producer(graph, value);

        return graph->values[value].kind == SL_VALUE_INPUT || (producer != SL_VALUE_NONE && producer < node);
}

/* But for a step: of symmetric bytes the least has one more than the most. */
static bool is_whole(double limit, double step)
{
        return fabs(limit) > step && fabs(limit - rint(limit)) <= step * STEP_SLACK;
}

/* All that its bytes stand for is on one side of zero, or ends at whole numbers on both. */
static bool is_limited(const struct sl_node *node)
{
        bool is_signed = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_U8) == SL_DTYPE_I8;
        int64_t zero = sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0), least = is_signed ? INT8_MIN : 0;
        double step = sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0);

        if (zero == least || zero == least + UINT8_MAX)
                return true;
        return step < STEP_MOST && is_whole(step * (double)(least - zero), step) &&
               is_whole(step * (double)(least + UINT8_MAX - zero), step);
}

static bool can_take(const struct sl_graph *graph, uint32_t host, uint32_t made, uint32_t residual)
{
        const struct sl_node *node = host == SL_VALUE_NONE ? NULL : &graph->nodes[host];

        if (!node || (node->op != SL_OP_QUANTIZED_CONV && node->op != SL_OP_QUANTIZED_MATMUL) || made == residual)
                return false;
        if (node->epilogue.has_residual || node->epilogue.activation != SL_ACT_NONE || is_limited(node))
                return false;
        return sl_graph_only_user(graph, made) != SL_VALUE_NONE && made_before(graph, residual, host);
}

/* The numbers of the residual are those of one side of the sum, the numbers of the result those of the sum. */
static int take_numbers(struct sl_attrs *attrs, const struct sl_attrs *sum, uint32_t side)
{
        uint32_t scale = side ? SL_ATTR_ADDEND_SCALE : SL_ATTR_X_SCALE, zero = side ? SL_ATTR_ADDEND_ZERO : SL_ATTR_X_ZERO;
        int r = sl_attrs_set_float(attrs, SL_ATTR_ADDEND_SCALE, sl_attrs_float(sum, scale, 1.0));

        r = r ? r : sl_attrs_set_int(attrs, SL_ATTR_ADDEND_ZERO, sl_attrs_int(sum, zero, 0));
        r = r ? r : sl_attrs_set_float(attrs, SL_ATTR_Y_SCALE, sl_attrs_float(sum, SL_ATTR_Y_SCALE, 1.0));
        r = r ? r : sl_attrs_set_int(attrs, SL_ATTR_Y_ZERO, sl_attrs_int(sum, SL_ATTR_Y_ZERO, 0));
        return r ? r : sl_attrs_set_int(attrs, SL_ATTR_TO, sl_attrs_int(sum, SL_ATTR_TO, SL_DTYPE_U8));
}

static int fuse(struct sl_graph *graph, uint32_t sum, uint32_t host, uint32_t side, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[host];
        uint32_t made = node->outputs[0], inputs[RESIDUAL_INPUT + 1] = {node->inputs[0], node->inputs[1], node->inputs[2]};
        struct sl_attrs attrs = node->attrs;
        int r = take_numbers(&attrs, &graph->nodes[sum].attrs, side);

        if (r < 0)
                return 0; /* no room for the numbers: the sum stays */
        inputs[3] = node->n_inputs > 3 ? node->inputs[3] : SL_VALUE_NONE;
        inputs[RESIDUAL_INPUT] = graph->nodes[sum].inputs[side];
        r = sl_graph_set_inputs(graph, host, inputs, RESIDUAL_INPUT + 1);
        if (r < 0)
                return r;
        graph->nodes[host].attrs = attrs;
        graph->nodes[host].epilogue = graph->nodes[sum].epilogue;
        graph->nodes[host].epilogue.has_residual = 1;
        sl_graph_set_output(graph, host, 0, graph->nodes[sum].outputs[0]);
        graph->nodes[sum].dead = 1;
        graph->values[made].dead = 1;
        return sl_graph_infer_node(graph, host, error);
}

static int fuse_sum(struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        for (uint32_t side = 0; side < 2; side++) {
                uint32_t made = graph->nodes[index].inputs[1 - side], residual = graph->nodes[index].inputs[side];
                uint32_t host = sl_graph_producer(graph, made);

                if (can_take(graph, host, made, residual))
                        return fuse(graph, index, host, side, error);
        }
        return 0;
}

int sl_pass_fuse_quantized_residual(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        /* DequantizeLinears that nobody needs any more would count as users. */
        int result = sl_pass_remove_dead(graph, error);

        (void)options;
        if (result < 0)
                return result;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];
                bool adds = !node->dead && node->op == SL_OP_QUANTIZED_ADD && node->n_inputs == 2;
                int r = adds ? fuse_sum(graph, i, error) : 0;

                if (r < 0)
                        return error && error->text[0]
                                       ? r
                                       : sl_error_set(error, -r, "node \"%s\": no memory for a residual", graph->nodes[i].name);
        }
        return 0;
}
