/* SPDX-License-Identifier: Apache-2.0 */
#include "random_graph.h"

#include <inttypes.h>
#include <string.h>

#define STEPS 7

uint32_t random_graph_below(struct random_graph *g, uint32_t limit)
{
        g->state = g->state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(g->state >> 33) % limit;
}

void random_graph_declare(struct random_graph *g, uint32_t value)
{
        const struct sl_tensor *tensor = &g->values[value].tensor;
        int64_t dims[SL_RANK_MAX];

        for (uint32_t i = 0; i < tensor->shape.rank; i++)
                dims[i] = -2;
        g->b->graph.n_output = 0;
        builder_declare_output(g->b, g->values[value].name, (int32_t)tensor->dtype, tensor->shape.rank, dims);
}

static void add_input(struct random_graph *g)
{
        struct random_value *value = &g->values[g->n_values++];
        uint32_t rank = 1 + random_graph_below(g, RANDOM_RANK_MAX - 1);

        *value = (struct random_value){.tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = rank, .dims = {g->tried}}}};
        snprintf(value->name, sizeof(value->name), "x%u", g->n_inputs++);
        for (uint32_t i = 1; i < rank; i++)
                value->tensor.shape.dims[i] = 1 + random_graph_below(g, 4);
        builder_input(g->b, value->name, SL_DTYPE_F32, rank, value->tensor.shape.dims);
}

void random_graph_init(struct random_graph *g, uint64_t seed)
{
        static const int64_t batches[] = {3, 3, 3, 2, 1, 4};

        *g = (struct random_graph){.b = builder_new(13), .state = seed * 0x9e3779b97f4a7c15u + 12345};
        random_graph_below(g, 2);
        g->tried = batches[random_graph_below(g, 6)];
        add_input(g);
        if (random_graph_below(g, 3) == 0)
                add_input(g);
        for (uint32_t i = 0, n = 2 + random_graph_below(g, STEPS); i < n || g->n_values == g->n_inputs; i++)
                random_graph_step(g);
        g->nodes = g->b->graph.node;
        g->n_nodes = g->b->graph.n_node;
}

void random_graph_deinit(struct random_graph *g)
{
        for (uint32_t i = 0; i < g->n_bodies; i++)
                builder_free(g->bodies[i]);
        builder_free(g->b);
}

void random_graph_set_batch(struct random_graph *g, int64_t batch)
{
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                Onnx__TensorShapeProto__Dimension *dim = g->b->graph.input[i]->type->tensor_type->shape->dim[0];

                dim->value_case = batch < 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                            : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
                if (batch < 0)
                        dim->dim_param = (char *)"N";
                else
                        dim->dim_value = batch;
        }
}

static bool reads(const Onnx__NodeProto *node, const char *name)
{
        for (size_t i = 0; i < node->n_input; i++)
                if (!strcmp(node->input[i], name))
                        return true;
        for (size_t i = 0; i < node->n_attribute; i++)
                if (node->attribute[i]->g && reads(node->attribute[i]->g->node[0], name))
                        return true;
        return false;
}

/* Nodes that nobody needs may be such that the file is none at some batch size. */
void random_graph_set_output(struct random_graph *g, uint32_t value)
{
        Onnx__GraphProto *graph = &g->b->graph;
        Onnx__NodeProto **kept = builder_alloc(g->b, (g->n_nodes + 1) * sizeof(*kept));
        size_t first = g->n_nodes;

        for (size_t i = g->n_nodes; i-- > 0;) {
                bool needed = !strcmp(g->nodes[i]->output[0], g->values[value].name);

                for (size_t k = first; k < g->n_nodes && !needed; k++)
                        needed = reads(kept[k], g->nodes[i]->output[0]);
                if (needed)
                        kept[--first] = g->nodes[i];
        }
        graph->node = kept + first;
        graph->n_node = g->n_nodes - first;
        random_graph_declare(g, value);
}

static void print_attribute(const Onnx__AttributeProto *attr, FILE *stream)
{
        fprintf(stream, " %s=", attr->name);
        if (attr->has_i)
                fprintf(stream, "%" PRId64, attr->i);
        for (size_t i = 0; i < attr->n_ints; i++)
                fprintf(stream, "%s%" PRId64, i ? "," : "", attr->ints[i]);
        if (attr->g)
                fprintf(stream, "{%s %s}", attr->g->node[0]->op_type, attr->g->node[0]->input[0]);
}

static void print_constant(const Onnx__TensorProto *tensor, FILE *stream)
{
        fprintf(stream, "  %s = [", tensor->name);
        for (size_t i = 0; i < tensor->n_dims; i++)
                fprintf(stream, "%s%" PRId64, i ? "," : "", tensor->dims[i]);
        fprintf(stream, "]");
        for (size_t i = 0; tensor->data_type == SL_DTYPE_I64 && i < tensor->raw_data.len / sizeof(int64_t); i++)
                fprintf(stream, " %" PRId64, ((const int64_t *)(const void *)tensor->raw_data.data)[i]);
        for (size_t i = 0; tensor->data_type == SL_DTYPE_F32 && i < tensor->raw_data.len / sizeof(float) && i < 16; i++)
                fprintf(stream, " %g", (double)((const float *)(const void *)tensor->raw_data.data)[i]);
        fprintf(stream, "\n");
}

static void print_value(const struct random_graph *g, const char *name, FILE *stream)
{
        char text[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < g->n_values; i++)
                if (!strcmp(g->values[i].name, name))
                        fprintf(stream, "%s %s", name, sl_shape_print(&g->values[i].tensor.shape, text));
}

void random_graph_print(const struct random_graph *g, FILE *stream)
{
        fprintf(stream, "made for a batch of %" PRId64 ", output %s\n", g->tried, g->b->graph.output[0]->name);
        for (size_t i = 0; i < g->b->graph.n_initializer; i++)
                print_constant(g->b->graph.initializer[i], stream);
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                fprintf(stream, "  ");
                print_value(g, g->values[i].name, stream);
                fprintf(stream, "\n");
        }
        for (size_t i = 0; i < g->b->graph.n_node; i++) {
                const Onnx__NodeProto *node = g->b->graph.node[i];

                fprintf(stream, "  ");
                print_value(g, node->output[0], stream);
                fprintf(stream, " = %s(", node->op_type);
                for (size_t k = 0; k < node->n_input; k++)
                        fprintf(stream, "%s%s", k ? ", " : "", node->input[k]);
                fprintf(stream, ")");
                for (size_t k = 0; k < node->n_attribute; k++)
                        print_attribute(node->attribute[k], stream);
                fprintf(stream, "\n");
        }
}
