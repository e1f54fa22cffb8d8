/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the nodes in order. For each node the ways of running it are listed, each with a cost in bytes moved: what must be
 * reordered first, and what a slow kernel is worth. The cheapest supported way is taken; no decision is revised.
 */
#include "placement.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "relabel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A byte that a plain loop of `ref` computes costs about this many moved ones. */
#define REF_COST 16

/* From so many on the channels of a pixel fill a vector. */
#define MANY_CHANNELS 16

/* One way of running a node: who, and the layout of its activations before and after. */
struct way {
        const struct sl_backend *backend;
        enum sl_layout in, out;
};

struct walk {
        const struct sl_graph *source;
        const struct sl_placement_wish *wishes; /* of each node of the source; NULL: none */
        struct sl_placement *placement;
        struct sl_graph *graph;
        const struct sl_backend *fast; /* NULL when only `ref` is wanted */
        const struct sl_backend *ref;  /* NULL when it cannot stand in */
        uint32_t
                *twins; /* of each value of the source and of each added one: the same data in the other layout, or SL_VALUE_NONE */
        uint32_t twins_room;
        uint32_t nodes_room;
        struct sl_node_desc desc; /* of the node at hand; too large for the stack of a deep call */
};

SL_DEFINE_CLEANUP(struct sl_placement *, sl_placement_free)

static bool has_layouts(const struct sl_tensor *tensor)
{
        return tensor->shape.rank >= 3 && tensor->shape.rank <= 5;
}

static int64_t pixels(const struct sl_tensor *tensor)
{
        int64_t product = 1;

        for (uint32_t i = 2; i < tensor->shape.rank; i++)
                product *= tensor->shape.dims[i];
        return product;
}

/* Moving the channels behind the pixels changes nothing when there is one channel or one pixel. */
bool sl_placement_bytes_agree(const struct sl_tensor *tensor)
{
        return !has_layouts(tensor) || tensor->shape.dims[1] <= 1 || pixels(tensor) <= 1;
}

static bool same_in(const struct sl_tensor *tensor, enum sl_layout layout)
{
        return tensor->layout == layout || sl_placement_bytes_agree(tensor);
}

/* Growing tables: values are added while the walk goes on. */
static int grow_twins(struct walk *walk)
{
        uint32_t room = walk->twins_room ? walk->twins_room * 2 : walk->source->n_values + 16;
        uint32_t *grown = reallocarray(walk->twins, room, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        for (uint32_t i = walk->twins_room; i < room; i++)
                grown[i] = SL_VALUE_NONE;
        walk->twins = grown;
        walk->twins_room = room;
        return 0;
}

static int grow_nodes(struct walk *walk)
{
        uint32_t room = walk->nodes_room ? walk->nodes_room * 2 : walk->source->n_nodes + 16;
        const struct sl_backend **backends = reallocarray(walk->placement->backends, room, sizeof(*backends));
        uint32_t *origins;

        if (!backends)
                return -ENOMEM;
        walk->placement->backends = backends;
        origins = reallocarray(walk->placement->origins, room, sizeof(*origins));
        if (!origins)
                return -ENOMEM;
        walk->placement->origins = origins;
        walk->nodes_room = room;
        return 0;
}

static int add_value(struct walk *walk, const struct sl_value *like, const struct sl_tensor *tensor, uint32_t *ret_value)
{
        int r = walk->graph->n_values >= walk->twins_room ? grow_twins(walk) : 0;

        return r < 0 ? r : sl_graph_add_value(walk->graph, like->name, like->kind, tensor, ret_value);
}

static int add_node(struct walk *walk, uint32_t op, const char *name, const uint32_t *inputs, uint32_t n_inputs,
        const uint32_t *outputs, uint32_t n_outputs, const struct sl_backend *backend, uint32_t origin, uint32_t *ret_node)
{
        int r = walk->graph->n_nodes >= walk->nodes_room ? grow_nodes(walk) : 0;

        if (r == 0)
                r = sl_graph_add_node(walk->graph, op, name, inputs, n_inputs, outputs, n_outputs, ret_node);
        if (r < 0)
                return r;
        walk->placement->backends[*ret_node] = backend;
        walk->placement->origins[*ret_node] = origin;
        return 0;
}

static void copy_elements(const struct sl_tensor *from, const uint8_t *source, const struct sl_tensor *to, uint8_t *target)
{
        int64_t from_strides[SL_RANK_MAX], to_strides[SL_RANK_MAX], index[SL_RANK_MAX] = {0};
        size_t bytes = sl_dtype_bytes(from->dtype);
        uint64_t n = sl_shape_elements(&from->shape);

        sl_tensor_strides(from, from_strides);
        sl_tensor_strides(to, to_strides);
        for (uint64_t i = 0; i < n; i++) {
                int64_t at_from = 0, at_to = 0;

                for (uint32_t d = 0; d < from->shape.rank; d++) {
                        at_from += index[d] * from_strides[d];
                        at_to += index[d] * to_strides[d];
                }
                memcpy(target + (uint64_t)at_to * bytes, source + (uint64_t)at_from * bytes, bytes);
                for (uint32_t d = from->shape.rank; d-- > 0 && ++index[d] == from->shape.dims[d];)
                        index[d] = 0;
        }
}

/* A constant is reordered here and now. */
static int reorder_constant(struct walk *walk, uint32_t value, const struct sl_tensor *wanted, uint32_t *ret_value)
{
        const struct sl_value from = walk->graph->values[value];
        const void *data = from.data;
        int r;

        if (!sl_placement_bytes_agree(wanted)) {
                uint8_t *moved = sl_graph_alloc(walk->graph, from.data_bytes);

                if (!moved)
                        return -ENOMEM;
                copy_elements(&from.tensor, sl_graph_constant(walk->graph, value), wanted, moved);
                sl_graph_drop_copies(walk->graph);
                data = moved;
        }
        r = add_value(walk, &from, wanted, ret_value);
        if (r < 0)
                return r;
        walk->graph->values[*ret_value].data = data;
        walk->graph->values[*ret_value].data_bytes = from.data_bytes;
        return 0;
}

static int reorder_computed(struct walk *walk, uint32_t value, const struct sl_tensor *wanted, uint32_t *ret_value)
{
        struct sl_value from = walk->graph->values[value];
        bool view = sl_placement_bytes_agree(wanted);
        uint32_t node;
        int r;

        from.kind = SL_VALUE_COMPUTED;
        r = add_value(walk, &from, wanted, ret_value);
        if (r == 0)
                r = add_node(walk, view ? SL_OP_IDENTITY : SL_OP_REORDER, from.name, &value, 1, ret_value, 1,
                        view ? NULL : walk->fast, SL_VALUE_NONE, &node);
        if (r < 0)
                return r;
        walk->placement->n_reorders += !view;
        return sl_attrs_set_int(&walk->graph->nodes[node].attrs, SL_ATTR_LAYOUT, wanted->layout);
}

/* The value itself, or its twin in the other layout, which is made when it is wanted for the first time. */
static int value_in(struct walk *walk, uint32_t value, enum sl_layout layout, uint32_t *ret_value)
{
        struct sl_tensor wanted = walk->graph->values[value].tensor;
        uint32_t twin;
        int r;

        if (wanted.layout == layout || !has_layouts(&wanted)) {
                *ret_value = value;
                return 0;
        }
        if (walk->twins[value] != SL_VALUE_NONE) {
                *ret_value = walk->twins[value];
                return 0;
        }
        wanted.layout = layout;
        if (walk->graph->values[value].kind == SL_VALUE_CONSTANT)
                r = reorder_constant(walk, value, &wanted, &twin);
        else
                r = reorder_computed(walk, value, &wanted, &twin);
        if (r < 0)
                return r;
        walk->twins[value] = twin;
        walk->twins[twin] = value;
        *ret_value = twin;
        return 0;
}

/* Bias [C,1,1] of an elementwise node over [N,C,H,W] becomes [1,C,1,1]: only then it can be CHANNELS_LAST like the others. */
static struct sl_tensor widened(const struct sl_tensor *tensor, uint32_t rank)
{
        struct sl_tensor wide = *tensor;
        uint32_t added = rank - tensor->shape.rank;

        wide.shape.rank = rank;
        for (uint32_t i = 0; i < rank; i++)
                wide.shape.dims[i] = i < added ? 1 : tensor->shape.dims[i - added];
        return wide;
}

static bool is_elementwise(const struct sl_node *node)
{
        return sl_op_traits(node->op) & SL_OP_ELEMENTWISE;
}

bool sl_placement_follows(const struct sl_node *node, uint32_t input)
{
        if (node->inputs[input] == SL_VALUE_NONE)
                return false;
        if (input == 0 || is_elementwise(node) || node->op == SL_OP_CONCAT || node->op == SL_OP_CHANNEL_SHUFFLE)
                return true;
        if (node->op == SL_OP_NORMALIZED_CONCAT)
                return input + 4 < node->n_inputs;
        return node->epilogue.has_residual && input == node->n_inputs - 1;
}

/* Can input @input be CHANNELS_LAST at all, and what is its tensor then? */
static bool channels_last_input(const struct walk *walk, const struct sl_node *node, uint32_t input, struct sl_tensor *tensor)
{
        const struct sl_value *value = &walk->graph->values[node->inputs[input]];
        uint32_t rank = walk->graph->values[node->outputs[0]].tensor.shape.rank;

        if (is_elementwise(node) && value->kind == SL_VALUE_CONSTANT && tensor->shape.rank < rank)
                *tensor = widened(tensor, rank);
        if (tensor->shape.rank != rank && !(sl_op_traits(node->op) & SL_OP_READS_LAST))
                return false;
        tensor->layout = SL_LAYOUT_CHANNELS_LAST;
        return true;
}

/* Fills walk->desc with the node as the way would run it. False when its tensors cannot lie so. */
static bool describe_way(struct walk *walk, const struct sl_node *node, const struct way *way)
{
        struct sl_node_desc *desc = &walk->desc;

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (node->inputs[i] == SL_VALUE_NONE)
                        continue;
                desc->inputs[i] = walk->graph->values[node->inputs[i]].tensor;
                desc->inputs[i].layout = SL_LAYOUT_PLAIN;
                if (way->in == SL_LAYOUT_CHANNELS_LAST && sl_placement_follows(node, i) &&
                        !channels_last_input(walk, node, i, &desc->inputs[i]))
                        return false;
        }
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                desc->outputs[i] = walk->graph->values[node->outputs[i]].tensor;
                desc->outputs[i].layout = way->out;
        }
        return true;
}

static uint64_t reorder_cost(const struct walk *walk, const struct sl_node *node, uint32_t input, enum sl_layout wanted)
{
        const struct sl_value *value = &walk->graph->values[node->inputs[input]];

        if (value->kind == SL_VALUE_CONSTANT || same_in(&value->tensor, wanted) ||
                walk->twins[node->inputs[input]] != SL_VALUE_NONE)
                return 0;
        return 2 * sl_tensor_bytes(&value->tensor);
}

static uint64_t touched_bytes(const struct sl_node_desc *desc)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < desc->n_inputs; i++)
                bytes += desc->inputs[i].dtype == SL_DTYPE_NONE ? 0 : sl_tensor_bytes(&desc->inputs[i]);
        for (uint32_t i = 0; i < desc->n_outputs; i++)
                bytes += sl_tensor_bytes(&desc->outputs[i]);
        return bytes;
}

static bool is_convolution(uint32_t op)
{
        return op == SL_OP_CONV || op == SL_OP_LANED_CONV || op == SL_OP_QUANTIZED_CONV || op == SL_OP_MBCONV;
}

/* Convolutions and pools gather whole pixels: with the channels apart they are slow. */
static bool gathers_pixels(uint32_t op)
{
        return is_convolution(op) || op == SL_OP_MAX_POOL || op == SL_OP_AVERAGE_POOL || op == SL_OP_GLOBAL_AVERAGE_POOL ||
               op == SL_OP_GLOBAL_MAX_POOL;
}

/*
 * Filters count for each sample, as all else does: what one size of a model reads in one layout and another one in the other has no
 * form that suits both, and runs on reference code.
 */
static uint64_t filters_of_samples(const struct sl_node_desc *desc)
{
        const struct sl_shape *x = &desc->inputs[0].shape;

        if (!is_convolution(desc->op) || !x->rank || x->dims[0] < 2)
                return 0;
        return (uint64_t)(x->dims[0] - 1) * sl_tensor_bytes(&desc->inputs[1]);
}

/*
 * A convolution that reads PLAIN and writes CHANNELS_LAST: kernels for few channels can. All others turn the input in scratch,
 * which is a reorder as well, and those behind a reorder have more algorithms.
 */
static uint64_t turn_cost(const struct sl_node *node, const struct way *way, const struct sl_tensor *x)
{
        bool turns = is_convolution(node->op) && way->in != way->out && !sl_placement_bytes_agree(x);

        return turns && x->shape.dims[1] >= MANY_CHANNELS ? 2 * sl_tensor_bytes(x) : 0;
}

static uint64_t way_cost(const struct walk *walk, const struct sl_node *node, const struct way *way)
{
        uint64_t cost = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (node->inputs[i] != SL_VALUE_NONE)
                        cost += reorder_cost(walk, node, i, sl_placement_follows(node, i) ? way->in : SL_LAYOUT_PLAIN);
        }
        if (way->backend == walk->ref)
                cost += REF_COST * touched_bytes(&walk->desc) + sl_op_multiply_adds(&walk->desc);
        else if (way->out == SL_LAYOUT_PLAIN && gathers_pixels(node->op))
                cost += touched_bytes(&walk->desc) + filters_of_samples(&walk->desc) + sl_op_multiply_adds(&walk->desc) / 16;
        else
                cost += turn_cost(node, way, &walk->desc.inputs[0]);
        return cost;
}

/* The way that is wished for, if a backend has it; `ref` is no answer to a wish. */
static bool grant_wish(struct walk *walk, const struct sl_node *node, const struct sl_placement_wish *wish, const struct way *ways,
        uint32_t n_ways, struct way *ret_way)
{
        for (uint32_t i = 0; i < n_ways; i++) {
                if (!ways[i].backend || ways[i].backend == walk->ref || ways[i].in != wish->in || ways[i].out != wish->out)
                        continue;
                if (!describe_way(walk, node, &ways[i]) ||
                        !ways[i].backend->planner->supports(&walk->placement->target, &walk->desc))
                        continue;
                *ret_way = ways[i];
                return true;
        }
        return false;
}

/* The first of the cheapest ways wins, so their order is the preference among equals. Asking a backend takes longest and comes
 * last. */
static bool choose_way(struct walk *walk, const struct sl_node *node, const struct way *ways, uint32_t n_ways, struct way *ret_way)
{
        uint64_t least = UINT64_MAX;

        for (uint32_t i = 0; i < n_ways; i++) {
                uint64_t cost;

                if (!ways[i].backend || !describe_way(walk, node, &ways[i]))
                        continue;
                cost = way_cost(walk, node, &ways[i]);
                if (cost >= least || !ways[i].backend->planner->supports(&walk->placement->target, &walk->desc))
                        continue;
                least = cost;
                *ret_way = ways[i];
        }
        return least != UINT64_MAX;
}

static bool may_be_channels_last(const struct walk *walk, const struct sl_node *node)
{
        if (!(sl_op_traits(node->op) & (SL_OP_SPATIAL | SL_OP_ELEMENTWISE)))
                return false;
        return has_layouts(&walk->graph->values[node->outputs[0]].tensor);
}

static bool may_read_channels_last(const struct walk *walk, const struct sl_node *node)
{
        return sl_op_traits(node->op) & SL_OP_READS_LAST && has_layouts(&walk->graph->values[node->inputs[0]].tensor);
}

static int refuse(const struct walk *walk, const struct sl_node *node, const char *why, struct sl_error *error)
{
        if (walk->ref)
                return sl_error_set(error, ENOTSUP, "node \"%s\": no backend runs this %s", node->name, sl_op_name(node->op));
        return sl_error_set(error, ENOTSUP, "node \"%s\" (%s): backend %s cannot run it%s", node->name, sl_op_name(node->op),
                walk->fast->name, why);
}

static int find_way(struct walk *walk, uint32_t index, struct way *ret_way, struct sl_error *error)
{
        const struct sl_node *node = &walk->source->nodes[index];
        const struct sl_placement_wish *wish = walk->wishes ? &walk->wishes[index] : NULL;
        const struct sl_backend *spatial = may_be_channels_last(walk, node) ? walk->fast : NULL;
        const struct sl_backend *convolution = is_convolution(node->op) ? spatial : NULL;
        const struct sl_backend *reader = may_read_channels_last(walk, node) ? walk->fast : NULL;
        const struct way ways[] = {
                {convolution, SL_LAYOUT_CHANNELS_LAST, SL_LAYOUT_CHANNELS_LAST},
                {convolution, SL_LAYOUT_PLAIN, SL_LAYOUT_CHANNELS_LAST},
                {walk->fast, SL_LAYOUT_PLAIN, SL_LAYOUT_PLAIN},
                {spatial, SL_LAYOUT_CHANNELS_LAST, SL_LAYOUT_CHANNELS_LAST},
                {reader, SL_LAYOUT_CHANNELS_LAST, SL_LAYOUT_PLAIN},
                {walk->ref, SL_LAYOUT_PLAIN, SL_LAYOUT_PLAIN},
        };

        walk->desc.op = node->op;
        walk->desc.n_inputs = node->n_inputs;
        walk->desc.n_outputs = node->n_outputs;
        walk->desc.attrs = node->attrs;
        walk->desc.epilogue = node->epilogue;
        memset(walk->desc.inputs, 0, sizeof(walk->desc.inputs));
        if (wish && wish->wanted && grant_wish(walk, node, wish, ways, sizeof(ways) / sizeof(ways[0]), ret_way))
                return 0;
        if (choose_way(walk, node, ways, sizeof(ways) / sizeof(ways[0]), ret_way))
                return 0;
        return refuse(walk, node, "", error);
}

/* A constant of lower rank gets the rank that the way wants; a new value, since others may use the old one. */
static int widen_constant(struct walk *walk, uint32_t *value, uint32_t rank)
{
        const struct sl_value from = walk->graph->values[*value];
        struct sl_tensor wide;
        int r;

        if (from.kind != SL_VALUE_CONSTANT || from.tensor.shape.rank >= rank)
                return 0;
        wide = widened(&from.tensor, rank);
        r = add_value(walk, &from, &wide, value);
        if (r < 0)
                return r;
        walk->graph->values[*value].data = from.data;
        walk->graph->values[*value].data_bytes = from.data_bytes;
        return 0;
}

static int bring_inputs(struct walk *walk, const struct sl_node *node, const struct way *way, uint32_t *inputs)
{
        uint32_t rank = walk->graph->values[node->outputs[0]].tensor.shape.rank;

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                bool follows = sl_placement_follows(node, i);
                int r = 0;

                inputs[i] = node->inputs[i];
                if (inputs[i] == SL_VALUE_NONE)
                        continue;
                if (follows && way->in == SL_LAYOUT_CHANNELS_LAST && is_elementwise(node))
                        r = widen_constant(walk, &inputs[i], rank);
                if (r == 0)
                        r = value_in(walk, inputs[i], follows ? way->in : SL_LAYOUT_PLAIN, &inputs[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int write_node(struct walk *walk, uint32_t origin, const struct way *way)
{
        const struct sl_node *node = &walk->source->nodes[origin];
        uint32_t inputs[SL_NODE_INPUTS_MAX], written;
        int r = bring_inputs(walk, node, way, inputs);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                walk->graph->values[node->outputs[i]].tensor.layout = way->out;
        r = add_node(
                walk, node->op, node->name, inputs, node->n_inputs, node->outputs, node->n_outputs, way->backend, origin, &written);
        if (r < 0)
                return r;
        walk->graph->nodes[written].attrs = node->attrs;
        walk->graph->nodes[written].epilogue = node->epilogue;
        return 0;
}

/* Can the node be a view of its input in the layouts of @way? */
static bool relabels(const struct walk *walk, const struct sl_node *node, const struct way *way)
{
        struct sl_tensor in = walk->graph->values[node->inputs[0]].tensor, out = walk->graph->values[node->outputs[0]].tensor;

        if ((way->in == SL_LAYOUT_CHANNELS_LAST && !has_layouts(&in)) ||
                (way->out == SL_LAYOUT_CHANNELS_LAST && !has_layouts(&out)))
                return false;
        in.layout = way->in;
        out.layout = way->out;
        return sl_relabels(node, &in, &out);
}

static bool wishes_otherwise(const struct walk *walk, uint32_t index, const struct way *way)
{
        const struct sl_placement_wish *wish = walk->wishes ? &walk->wishes[index] : NULL;

        return wish && wish->wanted && (wish->in != way->in || wish->out != way->out);
}

/*
 * The layouts in which the node computes nothing: as its input lies, or as its twin does. Any view has some; a Transpose may have
 * none. Nothing is CHANNELS_LAST where only `ref` runs.
 */
static bool find_view(const struct walk *walk, uint32_t index, struct way *ret_way)
{
        const struct sl_node *node = &walk->source->nodes[index];
        enum sl_layout lies = walk->graph->values[node->inputs[0]].tensor.layout, other = !lies;
        bool both = walk->twins[node->inputs[0]] != SL_VALUE_NONE;
        const struct way ways[] = {
                {NULL, lies, SL_LAYOUT_PLAIN},
                {NULL, lies, SL_LAYOUT_CHANNELS_LAST},
                {NULL, both ? other : lies, SL_LAYOUT_PLAIN},
                {NULL, both ? other : lies, SL_LAYOUT_CHANNELS_LAST},
                {NULL, SL_LAYOUT_PLAIN, SL_LAYOUT_PLAIN},
        };
        uint32_t n_ways = sl_op_traits(node->op) & SL_OP_VIEW ? 5 : 4;

        for (uint32_t i = 0; i < n_ways; i++) {
                bool last = ways[i].in == SL_LAYOUT_CHANNELS_LAST || ways[i].out == SL_LAYOUT_CHANNELS_LAST;

                if ((last && !walk->fast) || !relabels(walk, node, &ways[i]))
                        continue;
                if (i < 4 && wishes_otherwise(walk, index, &ways[i]))
                        continue;
                *ret_way = ways[i];
                return true;
        }
        return false;
}

static bool may_be_view(const struct sl_node *node)
{
        return sl_op_traits(node->op) & SL_OP_VIEW || node->op == SL_OP_TRANSPOSE;
}

static bool names_all_outputs(const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (node->outputs[i] == SL_VALUE_NONE)
                        return false;
        }
        return node->n_outputs > 0;
}

static int place_node(struct walk *walk, uint32_t index, struct sl_error *error)
{
        const struct sl_node *node = &walk->source->nodes[index];
        struct way way;
        int r;

        if (!names_all_outputs(node))
                return sl_error_set(error, ENOTSUP, "node \"%s\": this %s leaves out one of its %u outputs", node->name,
                        sl_op_name(node->op), node->n_outputs);
        if (!sl_node_is_static(walk->source, node) && !walk->ref)
                return refuse(walk, node, ", for its shapes or its path are data-dependent", error);
        if (!sl_node_is_static(walk->source, node)) {
                way = (struct way){.backend = walk->ref, .in = SL_LAYOUT_PLAIN, .out = SL_LAYOUT_PLAIN};
        } else if (!may_be_view(node) || !find_view(walk, index, &way)) {
                r = find_way(walk, index, &way, error);
                if (r < 0)
                        return r;
        }
        r = write_node(walk, index, &way);
        return r < 0 ? sl_error_set(error, -r, "node \"%s\": no room for it in the graph", node->name) : 0;
}

static int copy_values(struct walk *walk)
{
        walk->graph->name = walk->source->name;
        for (uint32_t i = 0; i < walk->source->n_values; i++) {
                uint32_t value;
                int r = add_value(walk, &walk->source->values[i], &walk->source->values[i].tensor, &value);

                if (r < 0)
                        return r;
                walk->graph->values[value] = walk->source->values[i];
                walk->graph->values[value].tensor.layout = SL_LAYOUT_PLAIN;
        }
        return 0;
}

static int set_ports(struct walk *walk)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *outputs = calloc(walk->source->n_outputs + 1u, sizeof(*outputs));

        if (!outputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < walk->source->n_outputs; i++) {
                int r = value_in(walk, walk->source->outputs[i], SL_LAYOUT_PLAIN, &outputs[i]);

                if (r < 0)
                        return r;
        }
        return sl_graph_set_ports(walk->graph, walk->source->inputs, walk->source->n_inputs, outputs, walk->source->n_outputs);
}

static int walk_graph(struct walk *walk, struct sl_error *error)
{
        int r = grow_nodes(walk);

        if (r == 0)
                r = copy_values(walk);
        if (r < 0)
                return sl_error_set(error, -r, "no memory for a graph of %u nodes", walk->source->n_nodes);
        for (uint32_t i = 0; i < walk->source->n_nodes; i++) {
                r = walk->source->nodes[i].dead ? 0 : place_node(walk, i, error);
                if (r < 0)
                        return r;
        }
        r = set_ports(walk);
        return r < 0 ? sl_error_set(error, -r, "no memory for a graph of %u nodes", walk->source->n_nodes) : 0;
}

static int find_backends(struct walk *walk, const char *backend, struct sl_error *error)
{
        const struct sl_backend *wanted = sl_backend_find(backend);

        walk->ref = sl_backend_find("ref");
        if (!wanted || !walk->ref)
                return sl_error_set(error, ENOTSUP, "this program has no backend \"%s\"", wanted ? "ref" : backend);
        walk->fast = wanted == walk->ref ? NULL : wanted;
        if (wanted->planner->traits & SL_PLANNER_ALONE)
                walk->ref = NULL;
        walk->placement->copier = walk->ref ? walk->ref : wanted;
        return 0;
}

int sl_placement_new_as(const struct sl_graph *graph, const char *backend, const struct sl_target *target,
        const struct sl_placement_wish *wishes, struct sl_placement **ret_placement, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_placement_free) struct sl_placement *placement = calloc(1, sizeof(*placement));
        SL_CLEANUP(sl_cleanup_free) struct walk *walk = calloc(1, sizeof(*walk));
        int r;

        if (!placement || !walk || sl_graph_new(&placement->graph) < 0)
                return sl_error_set(error, ENOMEM, "no memory for a graph of %u nodes", graph->n_nodes);
        walk->source = graph;
        placement->target = target ? *target : sl_target_typical;
        walk->wishes = wishes;
        walk->placement = placement;
        walk->graph = placement->graph;
        r = find_backends(walk, backend, error);
        if (r == 0)
                r = walk_graph(walk, error);
        free(walk->twins);
        if (r < 0)
                return r;
        *ret_placement = sl_take(placement);
        return 0;
}

int sl_placement_new(const struct sl_graph *graph, const char *backend, const struct sl_target *target,
        struct sl_placement **ret_placement, struct sl_error *error)
{
        return sl_placement_new_as(graph, backend, target, NULL, ret_placement, error);
}

struct sl_placement *sl_placement_free(struct sl_placement *placement)
{
        if (!placement)
                return NULL;
        sl_graph_free(placement->graph);
        free(placement->backends);
        free(placement->origins);
        free(placement);
        return NULL;
}
