/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph as text, one line per live node: for people, and for tests that compare before and after. Pure.
 */
#include "graph.h"

#include <inttypes.h>

static const char *const activations[] = {
        [SL_ACT_NONE] = "",
        [SL_ACT_RELU] = "Relu",
        [SL_ACT_CLIP] = "Clip",
        [SL_ACT_SIGMOID] = "Sigmoid",
        [SL_ACT_TANH] = "Tanh",
        [SL_ACT_LEAKY_RELU] = "LeakyRelu",
        [SL_ACT_GELU_ERF] = "Gelu",
        [SL_ACT_HARD_SWISH] = "HardSwish",
        [SL_ACT_SWISH] = "Swish",
        [SL_ACT_ELU] = "Elu",
};

static void print_values(const struct sl_graph *graph, const uint32_t *values, uint32_t n, FILE *stream)
{
        char shape[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < n; i++) {
                const char *comma = i ? ", " : "";

                if (values[i] == SL_VALUE_NONE)
                        fprintf(stream, "%s-", comma);
                else
                        fprintf(stream, "%s%s %s", comma, graph->values[values[i]].name,
                                sl_shape_print(&graph->values[values[i]].tensor.shape, shape));
        }
}

static void print_attr(const struct sl_attr *attr, FILE *stream)
{
        fprintf(stream, "%s=", sl_attr_name(attr->id));
        if (attr->type == SL_ATTR_TYPE_INT)
                fprintf(stream, "%" PRId64, attr->i);
        else if (attr->type == SL_ATTR_TYPE_FLOAT)
                fprintf(stream, "%g", attr->f);
        else if (attr->type == SL_ATTR_TYPE_FLOATS)
                for (uint32_t i = 0; i < attr->count; i++)
                        fprintf(stream, "%s%g%s", i ? "," : "[", attr->floats[i], i + 1 == attr->count ? "]" : "");
        else
                for (uint32_t i = 0; i < attr->count; i++)
                        fprintf(stream, "%s%" PRId64 "%s", i ? "," : "[", attr->ints[i], i + 1 == attr->count ? "]" : "");
        if (attr->type >= SL_ATTR_TYPE_INTS && !attr->count)
                fputs("[]", stream);
}

static void print_attrs(const struct sl_attrs *attrs, FILE *stream)
{
        for (uint32_t i = 0; i < attrs->count; i++) {
                fputs(i ? ", " : " {", stream);
                print_attr(&attrs->items[i], stream);
        }
        if (attrs->count)
                fputc('}', stream);
}

static void print_graph(const struct sl_graph *graph, uint32_t depth, FILE *stream);

static void print_node(const struct sl_graph *graph, const struct sl_node *node, uint32_t depth, FILE *stream)
{
        fprintf(stream, "%*s%s = %s(", (int)depth * 4, "", node->name, sl_op_name(node->op));
        print_values(graph, node->inputs, node->n_inputs, stream);
        fputc(')', stream);
        print_attrs(&node->attrs, stream);
        if (node->epilogue.has_residual)
                fputs(" + residual", stream);
        if (node->epilogue.activation != SL_ACT_NONE)
                fprintf(stream, " | %s", activations[node->epilogue.activation]);
        fputs(" -> ", stream);
        print_values(graph, node->outputs, node->n_outputs, stream);
        fputc('\n', stream);
        for (uint32_t i = 0; i < node->n_bodies; i++) {
                fprintf(stream, "%*sbody(", (int)depth * 4 + 2, "");
                print_values(node->bodies[i], node->bodies[i]->inputs, node->bodies[i]->n_inputs, stream);
                fputs(") -> ", stream);
                print_values(node->bodies[i], node->bodies[i]->outputs, node->bodies[i]->n_outputs, stream);
                fputc('\n', stream);
                print_graph(node->bodies[i], depth + 1, stream);
        }
}

static void print_graph(const struct sl_graph *graph, uint32_t depth, FILE *stream)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead)
                        print_node(graph, &graph->nodes[i], depth, stream);
}

void sl_graph_print(const struct sl_graph *graph, FILE *stream)
{
        print_graph(graph, 0, stream);
}
