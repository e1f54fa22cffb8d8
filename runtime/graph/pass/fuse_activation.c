/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An activation that alone uses what a Conv, Gemm or MatMul makes goes into the node's epilogue. x * Sigmoid(x) is Swish and
 * x * HardSigmoid(x) of slope 1/6 is HardSwish, also where a file spells them out.
 */
#include "pass.h"

#include "graph.h"

#include <float.h>
#include <math.h>

static bool clip_of(const struct sl_node *node, struct sl_epilogue *epilogue)
{
        if (node->n_inputs != 1)
                return false;
        epilogue->activation = SL_ACT_CLIP;
        epilogue->act_a = (float)sl_attrs_float(&node->attrs, SL_ATTR_MIN, -FLT_MAX);
        epilogue->act_b = (float)sl_attrs_float(&node->attrs, SL_ATTR_MAX, FLT_MAX);
        return epilogue->act_a <= epilogue->act_b;
}

/* The node as an activation of an epilogue; false when it is none. */
static bool activation_of(const struct sl_node *node, struct sl_epilogue *epilogue)
{
        switch (node->op) {
        case SL_OP_RELU:
                epilogue->activation = SL_ACT_RELU;
                return true;
        case SL_OP_CLIP:
                return clip_of(node, epilogue);
        case SL_OP_SIGMOID:
                epilogue->activation = SL_ACT_SIGMOID;
                return true;
        case SL_OP_TANH:
                epilogue->activation = SL_ACT_TANH;
                return true;
        case SL_OP_LEAKY_RELU:
                epilogue->activation = SL_ACT_LEAKY_RELU;
                epilogue->act_a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0.01);
                return true;
        case SL_OP_ELU:
                epilogue->activation = SL_ACT_ELU;
                epilogue->act_a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1);
                return true;
        case SL_OP_HARD_SWISH:
                epilogue->activation = SL_ACT_HARD_SWISH;
                return true;
        case SL_OP_GELU:
                epilogue->activation = SL_ACT_GELU_ERF;
                return !sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0);
        default:
                return false;
        }
}

/* A normalisation that could not go into a Conv takes no more than a clip: it is a walk over memory, without time to spare. */
static bool can_take(const struct sl_graph *graph, uint32_t host, const struct sl_epilogue *activation)
{
        const struct sl_node *node = host == SL_VALUE_NONE ? NULL : &graph->nodes[host];

        if (node && node->op == SL_OP_BATCH_NORM && activation->activation != SL_ACT_RELU && activation->activation != SL_ACT_CLIP)
                return false;
        return node && (sl_op_traits(node->op) & SL_OP_EPILOGUE) && node->epilogue.activation == SL_ACT_NONE &&
               sl_dtype_is_float(graph->values[node->outputs[0]].tensor.dtype);
}

static void fuse(struct sl_graph *graph, uint32_t host, uint32_t last, const struct sl_epilogue *activation)
{
        struct sl_node *node = &graph->nodes[host];

        graph->values[node->outputs[0]].dead = 1;
        node->epilogue.activation = activation->activation;
        node->epilogue.act_a = activation->act_a;
        node->epilogue.act_b = activation->act_b;
        sl_graph_set_output(graph, host, 0, graph->nodes[last].outputs[0]);
        graph->nodes[last].dead = 1;
}

static void fuse_single(struct sl_graph *graph, uint32_t index)
{
        struct sl_epilogue activation = {0};
        uint32_t made, host;

        if (!activation_of(&graph->nodes[index], &activation))
                return;
        made = graph->nodes[index].inputs[0];
        host = sl_graph_producer(graph, made);
        if (can_take(graph, host, &activation) && sl_graph_only_user(graph, made) == index)
                fuse(graph, host, index, &activation);
}

static bool is_sixth(const struct sl_node *node)
{
        return fabs(sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0.2) - 1.0 / 6) < 1e-6 &&
               sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.5) == 0.5;
}

/* The activation that x * gate(x) is. */
static bool gated_activation(const struct sl_node *gate, struct sl_epilogue *epilogue)
{
        if (gate->op == SL_OP_SIGMOID) {
                epilogue->activation = SL_ACT_SWISH;
                epilogue->act_a = 1;
                return true;
        }
        epilogue->activation = SL_ACT_HARD_SWISH;
        return gate->op == SL_OP_HARD_SIGMOID && is_sixth(gate);
}

/* The gate and the product use @made, and nothing else does. */
static bool used_by_both_alone(const struct sl_graph *graph, uint32_t made)
{
        uint32_t users[2];

        return !sl_graph_is_output(graph, made) && sl_graph_users(graph, made, users, 2) == 2;
}

static void fuse_product(struct sl_graph *graph, uint32_t index)
{
        for (uint32_t side = 0; side < 2; side++) {
                const struct sl_node *product = &graph->nodes[index];
                uint32_t made = product->inputs[side], gated = product->inputs[1 - side];
                uint32_t gate = sl_graph_producer(graph, gated), host = sl_graph_producer(graph, made);
                struct sl_epilogue activation = {0};

                if (gate == SL_VALUE_NONE || graph->nodes[gate].inputs[0] != made)
                        continue;
                if (!gated_activation(&graph->nodes[gate], &activation) || !can_take(graph, host, &activation) ||
                        sl_graph_only_user(graph, gated) != index)
                        continue;
                if (!used_by_both_alone(graph, made))
                        continue;
                fuse(graph, host, index, &activation);
                graph->nodes[gate].dead = 1;
                graph->values[gated].dead = 1;
                return;
        }
}

int sl_pass_fuse_activation(struct sl_graph *graph, struct sl_error *error)
{
        (void)error;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i].dead)
                        continue;
                if (graph->nodes[i].op == SL_OP_MUL)
                        fuse_product(graph, i);
                else
                        fuse_single(graph, i);
        }
        return 0;
}
