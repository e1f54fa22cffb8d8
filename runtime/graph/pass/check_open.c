/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dimensions of any size that nodes want to be numbers, and no number that suits all of them. A node is asked by its shape rule,
 * one dimension at a time, with all others as open as they are: what it refuses then, it refuses whatever the others are.
 */
#include "check_open.h"

#include "base/error.h"
#include "control.h"
#include "graph.h"
#include "pass/open_dims.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Numbers that suit a dimension; what wants more is not followed. */
#define WANTED_MAX 4

struct wanted {
        uint32_t n; /* 0: any will do so far */
        int64_t sizes[WANTED_MAX];
        uint32_t node; /* that wants it, the first one that ruled a number out */
};

/* Neither divides anything, and no file has them: what refuses both refuses all but the numbers that it is given otherwise. */
static const int64_t strangers[] = {1000003, 1000033};

/* Its rule wants this dimension to be equal to a number of another operand, or of the attributes, or has nothing to say of it. */
static bool compares(const struct sl_node *node, const struct sl_node_desc *desc, uint32_t input, uint32_t i)
{
        uint32_t rank = desc->inputs[input].shape.rank;

        switch (node->op) {
        case SL_OP_MATMUL:
        case SL_OP_GEMM:
                return input < 2;
        case SL_OP_CONV:
        case SL_OP_CONV_TRANSPOSE:
        case SL_OP_BATCH_NORM:
        case SL_OP_INSTANCE_NORM:
                return input == 0 && i == 1;
        case SL_OP_LAYER_NORM:
        case SL_OP_RMS_NORM:
                return input == 0;
        case SL_OP_LSTM:
        case SL_OP_GRU:
        case SL_OP_RNN:
                return input == 0 && i + 1 == rank;
        case SL_OP_CONCAT:
                return true;
        default:
                return node->n_inputs > 1 && (sl_op_traits(node->op) & SL_OP_ELEMENTWISE);
        }
}

static bool suits(const struct sl_node_desc *desc, uint32_t input, uint32_t i, int64_t size)
{
        struct sl_node_desc asked = *desc;

        asked.inputs[input].shape.dims[i] = size;
        return sl_op_infer(&asked, NULL) != -EINVAL;
}

static bool holds(const struct wanted *wanted, int64_t size)
{
        for (uint32_t k = 0; k < wanted->n; k++)
                if (wanted->sizes[k] == size)
                        return true;
        return false;
}

/* Return: false when there are more than are followed. */
static bool try_size(const struct sl_node_desc *desc, uint32_t input, uint32_t i, int64_t size, struct wanted *wanted)
{
        if (holds(wanted, size) || !suits(desc, input, i, size))
                return true;
        if (wanted->n == WANTED_MAX)
                return false;
        wanted->sizes[wanted->n++] = size;
        return true;
}

/* The numbers that suit, of those that the node is given. Return: whether they are all that do. */
static bool find_wanted(const struct sl_node_desc *desc, uint32_t input, uint32_t i, struct wanted *ret_wanted)
{
        int64_t group = sl_attrs_int(&desc->attrs, SL_ATTR_GROUP, 1);
        bool all = !suits(desc, input, i, strangers[0]) && !suits(desc, input, i, strangers[1]);

        for (uint32_t k = 0; k < desc->n_inputs && all; k++)
                for (uint32_t d = 0; d < desc->inputs[k].shape.rank && all; d++) {
                        int64_t size = desc->inputs[k].shape.dims[d];

                        all = size < 0 || size > INT32_MAX || group < 1 || group > INT32_MAX ||
                              (try_size(desc, input, i, size, ret_wanted) && try_size(desc, input, i, size * group, ret_wanted));
                }
        all = all && try_size(desc, input, i, 0, ret_wanted) && try_size(desc, input, i, 1, ret_wanted);
        return all && ret_wanted->n;
}

static void print_sizes(const struct wanted *wanted, char text[96])
{
        int used = 0;

        for (uint32_t k = 0; k < wanted->n && used < 96; k++)
                used += snprintf(text + used, (size_t)(96 - used), "%s%" PRId64, k ? " or " : "", wanted->sizes[k]);
}

/* As requests say it; NULL: no input has it. */
static const char *name_of(const struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t class)
{
        for (uint32_t k = 0; k < graph->n_inputs; k++) {
                const struct sl_value *value = &graph->values[graph->inputs[k]];

                for (uint32_t i = 0; i < value->tensor.shape.rank && value->symbols; i++)
                        if (value->symbols[i] && sl_open_dims_class(dims, graph->inputs[k], i) == class)
                                return value->symbols[i];
        }
        return NULL;
}

static int refuse(const struct sl_graph *graph, const struct wanted *one, const struct wanted *other, uint32_t node,
        const char *dimension, struct sl_error *error)
{
        const struct sl_node *first = &graph->nodes[one->node], *second = &graph->nodes[node];
        char want[96], wants[96];

        print_sizes(one, want);
        print_sizes(other, wants);
        return sl_error_set(error, EBADMSG, "node \"%s\" (%s): %s%s%s has to be %s, and %s for node \"%s\" (%s)", second->name,
                sl_op_name(second->op), dimension ? "\"" : "a dimension", dimension ? dimension : "", dimension ? "\"" : "", wants,
                want, first->name, sl_op_name(first->op));
}

/* @node wants @now, others before it *@wanted: what suits both. Return: 0; -EBADMSG nothing does. */
static int meet(struct wanted *wanted, const struct wanted *now, uint32_t node)
{
        struct wanted both = {.node = wanted->node};

        for (uint32_t k = 0; k < now->n; k++)
                if (!wanted->n || holds(wanted, now->sizes[k]))
                        both.sizes[both.n++] = now->sizes[k];
        if (!both.n)
                return -EBADMSG;
        if (!wanted->n || both.n < wanted->n)
                both.node = node;
        *wanted = both;
        return 0;
}

static int check_node(const struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t index, struct wanted *of_class,
        struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        struct sl_node_desc desc;

        if (sl_op_has_bodies(node->op) || sl_graph_describe(graph, index, &desc) < 0)
                return 0;
        for (uint32_t k = 0; k < desc.n_inputs; k++)
                for (uint32_t i = 0; i < desc.inputs[k].shape.rank; i++) {
                        uint32_t class = node->inputs[k] == SL_VALUE_NONE ? 0 : sl_open_dims_class(dims, node->inputs[k], i);
                        struct wanted now = {.n = 0};

                        if (!class || !compares(node, &desc, k, i) || !find_wanted(&desc, k, i, &now))
                                continue;
                        if (meet(&of_class[class], &now, index) < 0)
                                return refuse(graph, &of_class[class], &now, index, name_of(graph, dims, class), error);
                }
        return 0;
}

int sl_graph_check_open(const struct sl_graph *graph, struct sl_error *error)
{
        struct wanted *of_class = NULL;
        struct sl_open_dims *dims;
        int r = sl_open_dims_new(graph, &dims);

        if (r < 0)
                return r;
        of_class = calloc(sl_open_dims_classes(dims) + 1u, sizeof(*of_class));
        r = of_class ? 0 : -ENOMEM;
        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++)
                r = graph->nodes[i].dead ? 0 : check_node(graph, dims, i, of_class, error);
        free(of_class);
        sl_open_dims_free(dims);
        return r;
}
