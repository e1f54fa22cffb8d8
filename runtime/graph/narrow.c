/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* Of one value of the graph as it was. */
struct form {
        uint32_t half; /* the same numbers in bfloat16, or SL_VALUE_NONE */
        bool missing;  /* no node makes the float32 form, until somebody asks for it */
};

struct narrowing {
        struct sl_graph *graph;
        struct form *forms;
        uint32_t n_forms;
        bool halves; /* the backend has them everywhere */
};

static bool is_product(const struct narrowing *narrowing, uint32_t op)
{
        return op == SL_OP_CONV || op == SL_OP_GEMM || op == SL_OP_MATMUL || (narrowing->halves && op == SL_OP_ROW_ATTENTION);
}

/* Worth narrowing when what goes in is narrow already. */
static bool carries(uint32_t op)
{
        switch (op) {
        case SL_OP_MAX_POOL:
        case SL_OP_AVERAGE_POOL:
        case SL_OP_GLOBAL_AVERAGE_POOL:
        case SL_OP_GLOBAL_MAX_POOL:
        case SL_OP_RELU:
        case SL_OP_CLIP:
        case SL_OP_SIGMOID:
        case SL_OP_TANH:
        case SL_OP_GELU:
        case SL_OP_ADD:
        case SL_OP_SUB:
        case SL_OP_MUL:
        case SL_OP_CONCAT:
        case SL_OP_CHANNEL_SHUFFLE:
        case SL_OP_SPLIT:
        case SL_OP_SLICE:
        case SL_OP_IDENTITY:
        case SL_OP_RESHAPE:
        case SL_OP_FLATTEN:
        case SL_OP_SQUEEZE:
        case SL_OP_UNSQUEEZE:
        case SL_OP_TRANSPOSE:
                return true;
        default:
                return false;
        }
}

/* The same where kernels compute anything in halves, each in float32 within. */
static bool carries_halves(uint32_t op)
{
        switch (op) {
        case SL_OP_LEAKY_RELU:
        case SL_OP_PRELU:
        case SL_OP_ELU:
        case SL_OP_SELU:
        case SL_OP_CELU:
        case SL_OP_MISH:
        case SL_OP_HARD_SIGMOID:
        case SL_OP_HARD_SWISH:
        case SL_OP_SOFTPLUS:
        case SL_OP_DIV:
        case SL_OP_SUM:
        case SL_OP_MIN:
        case SL_OP_MAX:
        case SL_OP_SOFTMAX:
        case SL_OP_LAYER_NORM:
        case SL_OP_RMS_NORM:
        case SL_OP_INSTANCE_NORM:
        case SL_OP_GROUP_NORM:
        case SL_OP_BATCH_NORM:
        case SL_OP_NORMALIZED_CONCAT:
        case SL_OP_LRN:
        case SL_OP_REDUCE_MEAN:
        case SL_OP_RESIZE:
        case SL_OP_GATHER:
        case SL_OP_EXPAND:
        case SL_OP_TILE:
        case SL_OP_DEPTH_TO_SPACE:
        case SL_OP_SPACE_TO_DEPTH:
        case SL_OP_CONV_TRANSPOSE:
                return true;
        default:
                return carries(op);
        }
}

/*
 * How many of its inputs become narrow; behind them are parameters and masks, which kernels read in any type, and indices. The
 * scale of an RMSNormalization says what the result is, and so is narrow.
 */
static uint32_t count_narrow(const struct sl_node *node)
{
        switch (node->op) {
        case SL_OP_ROW_ATTENTION:
                return 3;
        case SL_OP_NORMALIZED_CONCAT:
                return node->n_inputs - 4;
        case SL_OP_LAYER_NORM:
        case SL_OP_INSTANCE_NORM:
        case SL_OP_GROUP_NORM:
        case SL_OP_BATCH_NORM:
        case SL_OP_RESIZE:
        case SL_OP_GATHER:
        case SL_OP_EXPAND:
        case SL_OP_TILE:
                return 1;
        default:
                return node->n_inputs;
        }
}

static bool is_f32(const struct narrowing *narrowing, uint32_t value)
{
        return narrowing->graph->values[value].tensor.dtype == SL_DTYPE_F32;
}

/* A result that is narrow already, or a constant that may become so. */
static bool has_half(const struct narrowing *narrowing, uint32_t value)
{
        return narrowing->forms[value].half != SL_VALUE_NONE || sl_graph_is_constant(narrowing->graph, value);
}

/* Makes it what the model answers, where a Cast on either side costs the same? */
static bool is_last(const struct narrowing *narrowing, const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (narrowing->halves && sl_graph_is_output(narrowing->graph, node->outputs[i]))
                        return true;
        return false;
}

static bool wants_half(const struct narrowing *narrowing, const struct sl_node *node)
{
        bool product = is_product(narrowing, node->op), any = product;

        if (node->op == SL_OP_LAYER_NORM && node->n_outputs > 1) /* means and deviations are float32 */
                return false;
        if (!product && (!(narrowing->halves ? carries_halves(node->op) : carries(node->op)) || is_last(narrowing, node)))
                return false;
        for (uint32_t i = 0; i < count_narrow(node); i++) {
                uint32_t value = node->inputs[i];

                if (value == SL_VALUE_NONE)
                        continue;
                if (!is_f32(narrowing, value) || (!product && !has_half(narrowing, value)))
                        return false;
                any = any || narrowing->forms[value].half != SL_VALUE_NONE;
        }
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] == SL_VALUE_NONE || !is_f32(narrowing, node->outputs[i]))
                        return false;
        return any;
}

/* To the nearest, ties to even; a NaN stays one. */
static uint16_t narrowed(float value)
{
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        if (value != value)
                return (uint16_t)(bits >> 16 | 0x40);
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static int add_half(struct narrowing *narrowing, uint32_t value, enum sl_value_kind kind, uint32_t *ret_half)
{
        struct sl_tensor tensor = narrowing->graph->values[value].tensor;
        int r;

        tensor.dtype = SL_DTYPE_BF16;
        r = sl_graph_add_value(narrowing->graph, narrowing->graph->values[value].name, kind, &tensor, ret_half);
        if (r == 0)
                narrowing->forms[value].half = *ret_half;
        return r;
}

static int narrow_constant(struct narrowing *narrowing, uint32_t value, uint32_t *ret_half)
{
        const float *from = sl_graph_constant(narrowing->graph, value);
        uint64_t elements = sl_shape_elements(&narrowing->graph->values[value].tensor.shape);
        uint16_t *to = sl_graph_alloc(narrowing->graph, elements * sizeof(*to));
        int r = to ? add_half(narrowing, value, SL_VALUE_CONSTANT, ret_half) : -ENOMEM;

        if (r < 0)
                return r;
        for (uint64_t i = 0; i < elements; i++)
                to[i] = narrowed(from[i]);
        sl_graph_drop_copies(narrowing->graph);
        narrowing->graph->values[*ret_half].data = to;
        narrowing->graph->values[*ret_half].data_bytes = elements * sizeof(*to);
        return 0;
}

static int add_cast(struct narrowing *narrowing, uint32_t from, uint32_t to)
{
        uint32_t node;
        int r = sl_graph_add_node(narrowing->graph, SL_OP_CAST, narrowing->graph->values[to].name, &from, 1, &to, 1, &node);

        if (r < 0)
                return r;
        return sl_attrs_set_int(&narrowing->graph->nodes[node].attrs, SL_ATTR_TO, narrowing->graph->values[to].tensor.dtype);
}

static int half_of(struct narrowing *narrowing, uint32_t value, uint32_t *ret_half)
{
        int r;

        *ret_half = narrowing->forms[value].half;
        if (*ret_half != SL_VALUE_NONE)
                return 0;
        if (sl_graph_is_constant(narrowing->graph, value))
                return narrow_constant(narrowing, value, ret_half);
        r = add_half(narrowing, value, SL_VALUE_COMPUTED, ret_half);
        return r < 0 ? r : add_cast(narrowing, value, *ret_half);
}

/* The float32 form, which is asked for here. */
static int widen(struct narrowing *narrowing, uint32_t value)
{
        if (value == SL_VALUE_NONE || value >= narrowing->n_forms || !narrowing->forms[value].missing)
                return 0;
        narrowing->forms[value].missing = false;
        return add_cast(narrowing, narrowing->forms[value].half, value);
}

static int add_same(struct narrowing *narrowing, const struct sl_node *node, const uint32_t *inputs, const uint32_t *outputs)
{
        uint32_t written;
        int r = sl_graph_add_node(
                narrowing->graph, node->op, node->name, inputs, node->n_inputs, outputs, node->n_outputs, &written);

        if (r < 0)
                return r;
        narrowing->graph->nodes[written].attrs = node->attrs;
        narrowing->graph->nodes[written].epilogue = node->epilogue;
        return 0;
}

static int write_narrow(struct narrowing *narrowing, const struct sl_node *node)
{
        uint32_t inputs[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX], n_narrow = count_narrow(node);
        int r = 0;

        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++) {
                inputs[i] = node->inputs[i];
                if (inputs[i] != SL_VALUE_NONE)
                        r = i < n_narrow ? half_of(narrowing, node->inputs[i], &inputs[i]) : widen(narrowing, node->inputs[i]);
        }
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++) {
                narrowing->forms[node->outputs[i]].missing = true;
                r = add_half(narrowing, node->outputs[i], SL_VALUE_COMPUTED, &outputs[i]);
        }
        return r < 0 ? r : add_same(narrowing, node, inputs, outputs);
}

static int write_wide(struct narrowing *narrowing, const struct sl_node *node)
{
        int r = 0;

        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++)
                r = widen(narrowing, node->inputs[i]);
        return r < 0 ? r : add_same(narrowing, node, node->inputs, node->outputs);
}

static int write_nodes(struct narrowing *narrowing, const struct sl_node *nodes, uint32_t n_nodes)
{
        int r = 0;

        for (uint32_t i = 0; i < n_nodes && r == 0; i++) {
                if (nodes[i].dead)
                        continue;
                r = wants_half(narrowing, &nodes[i]) ? write_narrow(narrowing, &nodes[i]) : write_wide(narrowing, &nodes[i]);
        }
        for (uint32_t i = 0; i < narrowing->graph->n_outputs && r == 0; i++)
                r = widen(narrowing, narrowing->graph->outputs[i]);
        return r;
}

/* Float32 forms that nobody asked for. */
static void bury_missing(struct narrowing *narrowing)
{
        for (uint32_t i = 0; i < narrowing->n_forms; i++)
                if (narrowing->forms[i].missing)
                        narrowing->graph->values[i].dead = 1;
}

int sl_graph_narrow(struct sl_graph *graph, bool halves, struct sl_error *error)
{
        struct narrowing narrowing = {.graph = graph, .n_forms = graph->n_values, .halves = halves};
        SL_CLEANUP(sl_cleanup_free) struct form *forms = calloc(graph->n_values + 1u, sizeof(*forms));
        SL_CLEANUP(sl_cleanup_free) struct sl_node *nodes = NULL;
        uint32_t n_nodes;
        int r;

        if (sl_graph_has_bodies(graph))
                return sl_error_set(error, ENOTSUP, "bfloat16: the graph has an If, a Loop or a Scan");
        if (!forms)
                return sl_error_set(error, ENOMEM, "no memory for the forms of %u values", graph->n_values);
        for (uint32_t i = 0; i < narrowing.n_forms; i++)
                forms[i].half = SL_VALUE_NONE;
        narrowing.forms = forms;
        nodes = sl_graph_take_nodes(graph, &n_nodes);
        r = write_nodes(&narrowing, nodes, n_nodes);
        if (r < 0)
                return sl_error_set(error, -r, "no room for a graph of %u nodes in bfloat16", n_nodes);
        bury_missing(&narrowing);
        r = sl_graph_infer(graph, error);
        return r < 0 ? r : sl_graph_check(graph, error);
}
