/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/open_dims.h"

#include "graph.h"
#include "op.h"
#include "pass/open_windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a tensor of shape arithmetic that are followed. */
#define LIST_MAX SL_RANK_MAX

/* A number of shape arithmetic: a class, or where that is 0 the number itself. */
struct element {
        bool known;
        uint32_t class;
        int64_t number;
};

struct list {
        uint32_t n;
        struct element elements[LIST_MAX];
};

struct sl_open_dims {
        const struct sl_graph *graph;
        uint32_t n_values, n_classes;
        uint32_t (*classes)[SL_RANK_MAX]; /* [n_values]; 0 where the dimension is known. NULL: the graph is not of any size */
        struct list **lists;              /* [n_values]; NULL: nothing is known of its elements */
        struct sl_open_windows windows;
};

static const struct sl_shape *shape_of(const struct sl_open_dims *dims, uint32_t value)
{
        return &dims->graph->values[value].tensor.shape;
}

static bool is_of_any_size(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                if (graph->values[graph->inputs[i]].symbols)
                        return true;
        return false;
}

/* ---- classes of dimensions ---- */

static uint32_t class_of(const struct sl_open_dims *dims, uint32_t value, uint32_t i)
{
        return value < dims->n_values ? dims->classes[value][i] : 0;
}

static void name_inputs(struct sl_open_dims *dims)
{
        const struct sl_graph *graph = dims->graph;
        const char *names[SL_RANK_MAX * 64];
        uint32_t of[SL_RANK_MAX * 64], n = 0;

        for (uint32_t k = 0; k < graph->n_inputs; k++) {
                const struct sl_value *value = &graph->values[graph->inputs[k]];

                for (uint32_t i = 0; i < value->tensor.shape.rank && value->symbols; i++) {
                        uint32_t known = 0;

                        if (!value->symbols[i] || value->tensor.shape.dims[i] != SL_DIM_UNKNOWN)
                                continue;
                        while (known < n && strcmp(names[known], value->symbols[i]) != 0)
                                known++;
                        if (known == sizeof(names) / sizeof(*names)) /* beyond so many each is a class of its own */
                                continue;
                        if (known == n) {
                                names[n] = value->symbols[i];
                                of[n++] = ++dims->n_classes;
                        }
                        dims->classes[graph->inputs[k]][i] = of[known];
                }
        }
}

/* Dimension @i of @out, counted from the last one, is what those of the operands make of it: they are equal, or 1. */
static uint32_t broadcast(const struct sl_open_dims *dims, const uint32_t *inputs, uint32_t n, uint32_t skipped, uint32_t from_last)
{
        uint32_t class = 0;

        for (uint32_t k = 0; k < n; k++) {
                const struct sl_shape *shape = inputs[k] == SL_VALUE_NONE ? NULL : shape_of(dims, inputs[k]);
                uint32_t at = from_last + skipped, own;

                if (!shape || at >= shape->rank || shape->dims[shape->rank - 1 - at] == 1)
                        continue;
                own = class_of(dims, inputs[k], shape->rank - 1 - at);
                if (!own || (class && class != own))
                        return 0;
                class = own;
        }
        return class;
}

static uint32_t product_class(const struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        const struct sl_shape *a = shape_of(dims, node->inputs[0]), *b = shape_of(dims, node->inputs[1]);
        uint32_t rank = shape_of(dims, node->outputs[0])->rank;

        if (a->rank < 2 || b->rank < 2)
                return 0;
        if (i == rank - 1)
                return class_of(dims, node->inputs[1], b->rank - 1);
        if (i == rank - 2)
                return class_of(dims, node->inputs[0], a->rank - 2);
        return broadcast(dims, node->inputs, 2, 2, rank - 3 - i);
}

static uint32_t gather_class(const struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        const struct sl_shape *data = shape_of(dims, node->inputs[0]), *indices = shape_of(dims, node->inputs[1]);
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        axis += axis < 0 ? (int64_t)data->rank : 0;
        if (i < axis)
                return class_of(dims, node->inputs[0], i);
        if (i < axis + indices->rank)
                return class_of(dims, node->inputs[1], i - (uint32_t)axis);
        return class_of(dims, node->inputs[0], i - indices->rank + 1);
}

static uint32_t transpose_class(const struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        uint32_t rank = shape_of(dims, node->inputs[0])->rank;

        return class_of(
                dims, node->inputs[0], (uint32_t)sl_attrs_ints(&node->attrs, SL_ATTR_PERM, i, (int64_t)rank - 1 - i));
}

/* An Unsqueeze puts ones between dimensions that stay in their order, and a Squeeze takes ones out. */
static uint32_t squeezed_class(const struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        bool adds = node->op == SL_OP_UNSQUEEZE;
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t rank = shape_of(dims, node->inputs[0])->rank, mask = 0;
        uint32_t wide = adds ? shape_of(dims, node->outputs[0])->rank : rank;

        for (uint32_t k = 0; axes && k < axes->count; k++)
                mask |= 1u << (axes->ints[k] < 0 ? axes->ints[k] + (int64_t)wide : axes->ints[k]);
        if (!axes || (adds && mask & 1u << i))
                return 0;
        for (uint32_t at = 0, place = 0; at < wide; at++) {
                if (mask & 1u << at)
                        continue;
                if (adds ? at == i : place == i)
                        return class_of(dims, node->inputs[0], adds ? place : at);
                place++;
        }
        return 0;
}

static uint32_t reshape_class(const struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, SL_ATTR_SHAPE);
        const struct list *numbers = node->n_inputs > 1 && node->inputs[1] < dims->n_values ? dims->lists[node->inputs[1]] : NULL;

        if (list)
                return i < list->count && list->ints[i] == 0 && !sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0)
                               ? class_of(dims, node->inputs[0], i)
                               : 0;
        return numbers && i < numbers->n && numbers->elements[i].known ? numbers->elements[i].class : 0;
}

/* What is not along the axis is as long in all inputs. */
static uint32_t concat_class(const struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        axis += axis < 0 ? (int64_t)shape_of(dims, node->outputs[0])->rank : 0;
        return i == axis ? 0 : class_of(dims, node->inputs[0], i);
}

static uint32_t window_class(struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        uint32_t size = class_of(dims, node->inputs[0], i), next = dims->n_classes + 1, class;

        if (i < 2)
                return i ? 0 : size;
        class = sl_open_windows_class(&dims->windows, dims->graph, node, i, size, next);
        dims->n_classes += class == next;
        return class;
}

/* Output 0 has the shape of input 0. */
static bool keeps_shape(const struct sl_node *node)
{
        switch (node->op) {
        case SL_OP_BATCH_NORM:
        case SL_OP_INSTANCE_NORM:
        case SL_OP_GROUP_NORM:
        case SL_OP_LAYER_NORM:
        case SL_OP_RMS_NORM:
        case SL_OP_PRELU:
        case SL_OP_SOFTMAX:
        case SL_OP_LOG_SOFTMAX:
        case SL_OP_CUM_SUM:
                return true;
        default:
                return (sl_op_traits(node->op) & SL_OP_ELEMENTWISE) && (node->n_inputs == 1 || node->op == SL_OP_CLIP);
        }
}

static uint32_t infer_class(struct sl_open_dims *dims, const struct sl_node *node, uint32_t i)
{
        if (keeps_shape(node))
                return class_of(dims, node->inputs[0], i);
        switch (node->op) {
        case SL_OP_ADD:
        case SL_OP_SUB:
        case SL_OP_MUL:
        case SL_OP_DIV:
        case SL_OP_POW:
        case SL_OP_WHERE:
                return broadcast(dims, node->inputs, node->n_inputs, 0, shape_of(dims, node->outputs[0])->rank - 1 - i);
        case SL_OP_MATMUL:
                return product_class(dims, node, i);
        case SL_OP_CONV:
        case SL_OP_MAX_POOL:
        case SL_OP_AVERAGE_POOL:
                return window_class(dims, node, i);
        case SL_OP_CONCAT:
                return concat_class(dims, node, i);
        case SL_OP_GATHER:
                return gather_class(dims, node, i);
        case SL_OP_TRANSPOSE:
                return transpose_class(dims, node, i);
        case SL_OP_SQUEEZE:
        case SL_OP_UNSQUEEZE:
                return squeezed_class(dims, node, i);
        case SL_OP_RESHAPE:
                return reshape_class(dims, node, i);
        case SL_OP_ROW_ATTENTION:
                return i < 2 ? class_of(dims, node->inputs[0], i) : 0;
        default:
                return 0;
        }
}

static void find_classes(struct sl_open_dims *dims, uint32_t value, const struct sl_node *node)
{
        const struct sl_shape *shape = shape_of(dims, value);

        for (uint32_t i = 0; i < shape->rank; i++) {
                if (shape->dims[i] != SL_DIM_UNKNOWN || dims->classes[value][i])
                        continue;
                if (node && value == node->outputs[0])
                        dims->classes[value][i] = infer_class(dims, node, i);
                if (!dims->classes[value][i])
                        dims->classes[value][i] = ++dims->n_classes;
        }
}

/* ---- numbers of shape arithmetic ---- */

/* NULL: it is nothing that is followed, or there is no memory. */
static struct list *new_list(struct sl_open_dims *dims, uint32_t value, int64_t n)
{
        struct list *list = n >= 0 && n <= LIST_MAX ? calloc(1, sizeof(*list)) : NULL;

        if (!list)
                return NULL;
        list->n = (uint32_t)n;
        free(dims->lists[value]);
        dims->lists[value] = list;
        return list;
}

static const struct list *list_of(const struct sl_open_dims *dims, uint32_t value)
{
        return value < dims->n_values ? dims->lists[value] : NULL;
}

static void read_constant(struct sl_open_dims *dims, uint32_t value)
{
        const struct sl_value *v = &dims->graph->values[value];
        int64_t n = v->tensor.shape.rank == 0 ? 1 : v->tensor.shape.rank == 1 ? v->tensor.shape.dims[0] : -1;
        struct list *list;

        if (v->kind != SL_VALUE_CONSTANT || v->dead || v->tensor.dtype != SL_DTYPE_I64 || n < 0 || n > LIST_MAX)
                return;
        list = new_list(dims, value, n);
        for (int64_t i = 0; list && i < n; i++) {
                list->elements[i].known = true;
                memcpy(&list->elements[i].number, (const uint8_t *)v->data + (size_t)i * sizeof(int64_t), sizeof(int64_t));
        }
}

static int64_t clamp(int64_t place, int64_t n)
{
        place += place < 0 ? n : 0;
        return place < 0 ? 0 : place > n ? n : place;
}

static void read_shape(struct sl_open_dims *dims, const struct sl_node *node)
{
        const struct sl_shape *shape = shape_of(dims, node->inputs[0]);
        int64_t first = clamp(sl_attrs_ints(&node->attrs, SL_ATTR_STARTS, 0, 0), shape->rank);
        int64_t end = clamp(sl_attrs_ints(&node->attrs, SL_ATTR_ENDS, 0, shape->rank), shape->rank);
        struct list *list = new_list(dims, node->outputs[0], end > first ? end - first : 0);

        for (uint32_t i = 0; list && i < list->n; i++) {
                uint32_t at = (uint32_t)first + i;

                list->elements[i] = (struct element){.class = class_of(dims, node->inputs[0], at), .number = shape->dims[at]};
                list->elements[i].known = list->elements[i].class || shape->dims[at] >= 0;
        }
}

static void read_gather(struct sl_open_dims *dims, const struct sl_node *node)
{
        const struct list *data = list_of(dims, node->inputs[0]), *indices = list_of(dims, node->inputs[1]);
        struct list *list = data && indices && shape_of(dims, node->inputs[0])->rank == 1
                                    ? new_list(dims, node->outputs[0], indices->n)
                                    : NULL;

        for (uint32_t i = 0; list && i < list->n; i++) {
                int64_t at = indices->elements[i].number + (indices->elements[i].number < 0 ? (int64_t)data->n : 0);

                if (indices->elements[i].known && !indices->elements[i].class && at >= 0 && at < (int64_t)data->n)
                        list->elements[i] = data->elements[at];
        }
}

static void read_concat(struct sl_open_dims *dims, const struct sl_node *node)
{
        const struct sl_shape *shape = shape_of(dims, node->outputs[0]);
        struct list *list = shape->rank == 1 && shape->dims[0] >= 0 ? new_list(dims, node->outputs[0], shape->dims[0]) : NULL;
        uint32_t at = 0;

        for (uint32_t k = 0; list && k < node->n_inputs; k++) {
                const struct list *part = list_of(dims, node->inputs[k]);
                int64_t n = shape_of(dims, node->inputs[k])->dims[0];

                if (n < 0 || at + (uint64_t)n > list->n)
                        return;
                if (part && part->n == (uint64_t)n)
                        memcpy(&list->elements[at], part->elements, (size_t)n * sizeof(*part->elements));
                at += (uint32_t)n;
        }
}

static void read_slice(struct sl_open_dims *dims, const struct sl_node *node)
{
        const struct list *data = list_of(dims, node->inputs[0]);
        const struct sl_attr *starts = sl_attrs_find(&node->attrs, SL_ATTR_STARTS), *ends = sl_attrs_find(&node->attrs, SL_ATTR_ENDS);
        int64_t first, end;
        struct list *list;

        if (!data || node->n_inputs != 1 || shape_of(dims, node->inputs[0])->rank != 1 || !starts || !ends || starts->count != 1 ||
                ends->count != 1 || sl_attrs_ints(&node->attrs, SL_ATTR_STEPS, 0, 1) != 1)
                return;
        first = clamp(starts->ints[0], data->n);
        end = clamp(ends->ints[0], data->n);
        list = new_list(dims, node->outputs[0], end > first ? end - first : 0);
        if (list)
                memcpy(list->elements, data->elements + first, list->n * sizeof(*list->elements));
}

/* The same numbers in the same order, however many dimensions they lie in. */
static void read_moved(struct sl_open_dims *dims, const struct sl_node *node)
{
        const struct list *data = list_of(dims, node->inputs[0]);
        const struct sl_tensor *made = &dims->graph->values[node->outputs[0]].tensor;
        bool moves = data && made->dtype == SL_DTYPE_I64 && made->shape.rank <= 1;
        struct list *list = moves ? new_list(dims, node->outputs[0], data->n) : NULL;

        if (list)
                memcpy(list->elements, data->elements, sizeof(list->elements));
}

static void find_list(struct sl_open_dims *dims, const struct sl_node *node)
{
        if (node->outputs[0] == SL_VALUE_NONE)
                return;
        switch (node->op) {
        case SL_OP_SHAPE:
                read_shape(dims, node);
                break;
        case SL_OP_GATHER:
                read_gather(dims, node);
                break;
        case SL_OP_CONCAT:
                read_concat(dims, node);
                break;
        case SL_OP_SLICE:
                read_slice(dims, node);
                break;
        case SL_OP_UNSQUEEZE:
        case SL_OP_SQUEEZE:
        case SL_OP_IDENTITY:
        case SL_OP_CAST:
                read_moved(dims, node);
                break;
        default:
                break;
        }
}

/* ---- */

static int find_all(struct sl_open_dims *dims)
{
        const struct sl_graph *graph = dims->graph;

        dims->n_values = graph->n_values;
        dims->classes = calloc(graph->n_values + 1u, sizeof(*dims->classes));
        dims->lists = calloc(graph->n_values + 1u, sizeof(struct list *));
        if (!dims->classes || !dims->lists)
                return -ENOMEM;
        name_inputs(dims);
        for (uint32_t i = 0; i < graph->n_values; i++) {
                if (graph->values[i].kind == SL_VALUE_INPUT)
                        find_classes(dims, i, NULL);
                read_constant(dims, i);
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (node->dead)
                        continue;
                for (uint32_t k = 0; k < node->n_outputs; k++)
                        if (node->outputs[k] != SL_VALUE_NONE)
                                find_classes(dims, node->outputs[k], node);
                find_list(dims, node);
        }
        return 0;
}

int sl_open_dims_new(const struct sl_graph *graph, struct sl_open_dims **ret_dims)
{
        struct sl_open_dims *dims = calloc(1, sizeof(*dims));
        int r;

        if (!dims)
                return -ENOMEM;
        dims->graph = graph;
        r = is_of_any_size(graph) ? find_all(dims) : 0;
        if (r < 0) {
                sl_open_dims_free(dims);
                return r;
        }
        *ret_dims = dims;
        return 0;
}

struct sl_open_dims *sl_open_dims_free(struct sl_open_dims *dims)
{
        if (!dims)
                return NULL;
        for (uint32_t i = 0; i < dims->n_values && dims->lists; i++)
                free(dims->lists[i]);
        free(dims->lists);
        free(dims->classes);
        free(dims);
        return NULL;
}

bool sl_open_dims_same(const struct sl_open_dims *dims, uint32_t a, uint32_t i, uint32_t b, uint32_t k)
{
        int64_t one = shape_of(dims, a)->dims[i], other = shape_of(dims, b)->dims[k];

        if (one != SL_DIM_UNKNOWN || other != SL_DIM_UNKNOWN)
                return one == other;
        return dims->classes && class_of(dims, a, i) && class_of(dims, a, i) == class_of(dims, b, k);
}

uint32_t sl_open_dims_class(const struct sl_open_dims *dims, uint32_t value, uint32_t i)
{
        return dims->classes ? class_of(dims, value, i) : 0;
}

uint32_t sl_open_dims_classes(const struct sl_open_dims *dims)
{
        return dims->n_classes;
}

bool sl_open_dims_same_shape(const struct sl_open_dims *dims, uint32_t a, uint32_t b)
{
        uint32_t rank = shape_of(dims, a)->rank;
        bool same = shape_of(dims, b)->rank == rank;

        for (uint32_t i = 0; i < rank && same; i++)
                same = sl_open_dims_same(dims, a, i, b, i);
        return same;
}

uint32_t sl_open_dims_list(const struct sl_open_dims *dims, uint32_t data, uint32_t shape, int64_t *ret_list)
{
        const struct list *list = dims->classes ? list_of(dims, shape) : NULL;

        for (uint32_t i = 0; list && i < list->n; i++) {
                const struct element *element = &list->elements[i];
                bool copies = element->class && i < shape_of(dims, data)->rank && class_of(dims, data, i) == element->class;

                if (!element->known || (element->class && !copies))
                        return 0;
                ret_list[i] = copies ? 0 : element->number;
        }
        return list ? list->n : 0;
}
