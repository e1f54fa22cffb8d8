/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of integers whose sums are cast to float32 at once, as dynamic quantization writes them:
 *
 *     Cast(MatMulInteger(x, w, zero of x, zero of w)), ConvInteger the same
 *
 * By constant int8 weights around zero the sums are those of starling.QuantizedMatMul, with the zero of x in the bias: a vector
 * that is computed from it. Any other becomes a product of floats, x - zero and w - zero, which are exact, and so are their sums up
 * to 2^24. Nodes come to stand where there were none, so all of them are put back one by one.
 */
#include "pass.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"

#include <errno.h>
#include <stdlib.h>

enum { X_INPUT, W_INPUT, X_ZERO_INPUT, W_ZERO_INPUT };

struct rewriting {
        struct sl_graph *graph;
        const struct sl_node *product; /* of integers */
        uint32_t output;               /* the sums as floats */
        struct sl_error *error;
};

static bool is_integer_product(const struct sl_node *node)
{
        return !node->dead && (node->op == SL_OP_MATMUL_INTEGER || node->op == SL_OP_CONV_INTEGER);
}

static uint32_t input_of(const struct sl_node *node, uint32_t input)
{
        return input < node->n_inputs ? node->inputs[input] : SL_VALUE_NONE;
}

/* The Cast to float32 that alone reads the sums, or SL_VALUE_NONE. */
static uint32_t find_cast(const struct sl_graph *graph, const struct sl_node *product)
{
        uint32_t user = sl_graph_only_user(graph, product->outputs[0]);

        if (user == SL_VALUE_NONE || graph->nodes[user].op != SL_OP_CAST)
                return SL_VALUE_NONE;
        return graph->values[graph->nodes[user].outputs[0]].tensor.dtype == SL_DTYPE_F32 ? user : SL_VALUE_NONE;
}

static int add_node(
        struct rewriting *r, uint32_t op, const uint32_t *inputs, uint32_t n_inputs, const struct sl_attrs *attrs, uint32_t output)
{
        uint32_t node;
        int result = sl_graph_add_node(r->graph, op, r->product->name, inputs, n_inputs, &output, 1, &node);

        if (result < 0)
                return result;
        if (attrs)
                r->graph->nodes[node].attrs = *attrs;
        return sl_graph_infer_node(r->graph, node, r->error);
}

/* The same with a new value as output. */
static int add_step(struct rewriting *r, uint32_t op, const uint32_t *inputs, uint32_t n_inputs, const struct sl_attrs *attrs,
        uint32_t *ret_value)
{
        const struct sl_tensor nothing = {0};
        int result = sl_graph_add_value(r->graph, r->product->name, SL_VALUE_COMPUTED, &nothing, ret_value);

        return result < 0 ? result : add_node(r, op, inputs, n_inputs, attrs, *ret_value);
}

static int cast(struct rewriting *r, uint32_t value, uint32_t dtype, uint32_t *ret_value)
{
        struct sl_attrs attrs = {0};
        int result = sl_attrs_set_int(&attrs, SL_ATTR_TO, dtype);

        return result < 0 ? result : add_step(r, SL_OP_CAST, &value, 1, &attrs, ret_value);
}

static int add_vector(struct rewriting *r, uint32_t dtype, int64_t n, const void *data, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = 1, .dims = {n}}};

        return sl_graph_add_constant(r->graph, r->product->name, &tensor, data, ret_value);
}

/* Every byte of the constant is @byte; also when there is none and it would be 0. */
static bool all_are(const struct sl_graph *graph, uint32_t value, uint8_t byte)
{
        const uint8_t *data = sl_graph_constant(graph, value);

        if (value == SL_VALUE_NONE)
                return !byte;
        for (uint64_t i = 0; data && i < graph->values[value].data_bytes; i++)
                if (data[i] != byte)
                        return false;
        return data != NULL;
}

static bool is_single(const struct sl_graph *graph, uint32_t value)
{
        return value == SL_VALUE_NONE || sl_shape_elements(&graph->values[value].tensor.shape) == 1;
}

/* Weights that are int8 around zero, or would be if their bytes were counted from 128. */
static bool has_plain_weights(const struct sl_graph *graph, const struct sl_node *product)
{
        const struct sl_value *w = &graph->values[product->inputs[W_INPUT]];
        bool is_unsigned = w->tensor.dtype == SL_DTYPE_U8;
        const struct sl_shape *x = &graph->values[product->inputs[X_INPUT]].tensor.shape;

        return product->op == SL_OP_MATMUL_INTEGER && sl_graph_is_constant(graph, product->inputs[W_INPUT]) && x->rank >= 2 &&
               w->tensor.shape.rank == 2 && w->data_bytes && is_single(graph, input_of(product, X_ZERO_INPUT)) &&
               all_are(graph, input_of(product, W_ZERO_INPUT), is_unsigned ? 128 : 0);
}

/* Weights as int8, and what each column of them sums up to, negated: in [rows, columns]. */
static int prepare_weights(struct rewriting *r, uint32_t *ret_weights, uint32_t *ret_sums)
{
        const struct sl_value *w = &r->graph->values[r->product->inputs[W_INPUT]];
        int64_t rows = w->tensor.shape.dims[0], columns = w->tensor.shape.dims[1];
        uint8_t flip = w->tensor.dtype == SL_DTYPE_U8 ? 0x80 : 0, *bytes = sl_graph_alloc(r->graph, w->data_bytes);
        int32_t *sums = sl_graph_alloc(r->graph, (uint64_t)columns * sizeof(*sums));
        struct sl_tensor tensor = {.dtype = SL_DTYPE_I8, .shape = w->tensor.shape};
        int result;

        if (!bytes || !sums)
                return -ENOMEM;
        for (int64_t i = 0; i < rows; i++)
                for (int64_t k = 0; k < columns; k++) {
                        bytes[i * columns + k] = ((const uint8_t *)w->data)[i * columns + k] ^ flip;
                        sums[k] = (int32_t)((uint32_t)sums[k] - (uint32_t)(int32_t)(int8_t)bytes[i * columns + k]);
                }
        *ret_weights = r->product->inputs[W_INPUT];
        result = flip ? sl_graph_add_constant(r->graph, r->product->name, &tensor, bytes, ret_weights) : 0;
        return result < 0 ? result : add_vector(r, SL_DTYPE_I32, columns, sums, ret_sums);
}

static int write_quantized(struct rewriting *r)
{
        uint32_t inputs[] = {r->product->inputs[X_INPUT], 0, 0, SL_VALUE_NONE}, zero = input_of(r->product, X_ZERO_INPUT);
        int64_t columns = r->graph->values[r->product->inputs[W_INPUT]].tensor.shape.dims[1];
        float *ones = sl_graph_alloc(r->graph, (uint64_t)columns * sizeof(*ones));
        struct sl_attrs attrs = {0};
        uint32_t sums[2] = {0};
        int result = ones ? sl_attrs_set_int(&attrs, SL_ATTR_TO, SL_DTYPE_F32) : -ENOMEM;

        for (int64_t i = 0; i < columns && ones; i++)
                ones[i] = 1;
        if (result == 0)
                result = add_vector(r, SL_DTYPE_F32, columns, ones, &inputs[2]);
        if (result == 0)
                result = prepare_weights(r, &inputs[1], &sums[0]);
        if (result == 0 && zero != SL_VALUE_NONE)
                result = cast(r, zero, SL_DTYPE_I32, &sums[1]);
        if (result == 0 && zero != SL_VALUE_NONE)
                result = add_step(r, SL_OP_MUL, sums, 2, NULL, &inputs[3]);
        return result < 0 ? result : add_node(r, SL_OP_QUANTIZED_MATMUL, inputs, zero == SL_VALUE_NONE ? 3 : 4, &attrs, r->output);
}

/* Zeros of several rows or filters lie along dimension @axis of what has @rank of them. */
static int align_zero(struct rewriting *r, uint32_t *zero, uint32_t axis, uint32_t rank)
{
        struct sl_attrs attrs = {0};
        int64_t axes[SL_RANK_MAX];
        uint32_t n_axes = 0;
        int result;

        if (r->graph->values[*zero].tensor.shape.rank != 1 || is_single(r->graph, *zero))
                return 0;
        for (uint32_t i = axis + 1; i < rank; i++)
                axes[n_axes++] = i - axis;
        if (!n_axes)
                return 0;
        result = sl_attrs_set_ints(&attrs, SL_ATTR_AXES, axes, n_axes);
        return result < 0 ? result : add_step(r, SL_OP_UNSQUEEZE, zero, 1, &attrs, zero);
}

/* Input @data minus its zero, in float32. */
static int write_operand(struct rewriting *r, uint32_t data, uint32_t zero_input, uint32_t axis, uint32_t *ret_value)
{
        uint32_t operands[2], zero = input_of(r->product, zero_input);
        uint32_t rank = r->graph->values[data].tensor.shape.rank;
        int result = cast(r, data, SL_DTYPE_F32, &operands[0]);

        *ret_value = operands[0];
        if (result < 0 || zero == SL_VALUE_NONE)
                return result;
        result = cast(r, zero, SL_DTYPE_F32, &operands[1]);
        if (result == 0)
                result = align_zero(r, &operands[1], axis, rank);
        return result < 0 ? result : add_step(r, SL_OP_SUB, operands, 2, NULL, ret_value);
}

static int write_floats(struct rewriting *r)
{
        bool conv = r->product->op == SL_OP_CONV_INTEGER;
        uint32_t x = r->product->inputs[X_INPUT], w = r->product->inputs[W_INPUT], operands[2];
        uint32_t x_rank = r->graph->values[x].tensor.shape.rank, w_rank = r->graph->values[w].tensor.shape.rank;
        int result = write_operand(r, x, X_ZERO_INPUT, x_rank < 2 ? 0 : x_rank - 2, &operands[0]);

        if (result == 0)
                result = write_operand(r, w, W_ZERO_INPUT, conv || !w_rank ? 0 : w_rank - 1, &operands[1]);
        return result < 0 ? result : add_node(r, conv ? SL_OP_CONV : SL_OP_MATMUL, operands, 2, &r->product->attrs, r->output);
}

/* The sums are no longer there; where they were, the floats are made. */
static int rewrite(struct sl_graph *graph, const struct sl_node *product, const struct sl_node *cast_node, struct sl_error *error)
{
        struct rewriting r = {.graph = graph, .product = product, .output = cast_node->outputs[0], .error = error};

        graph->values[product->outputs[0]].dead = 1;
        return has_plain_weights(graph, product) ? write_quantized(&r) : write_floats(&r);
}

static int put_back(struct sl_graph *graph, const struct sl_node *node)
{
        uint32_t index;
        int result = sl_graph_add_node(
                graph, node->op, node->name, node->inputs, node->n_inputs, node->outputs, node->n_outputs, &index);

        if (result < 0)
                return result;
        graph->nodes[index].attrs = node->attrs;
        graph->nodes[index].epilogue = node->epilogue;
        return 0;
}

/* For each node the Cast that goes with it; SL_VALUE_NONE for all but products that are rewritten. Returns how many are. */
static uint32_t find_casts(struct sl_graph *graph, uint32_t *casts)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                casts[i] = is_integer_product(&graph->nodes[i]) ? find_cast(graph, &graph->nodes[i]) : SL_VALUE_NONE;
                n += casts[i] != SL_VALUE_NONE;
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (casts[i] != SL_VALUE_NONE)
                        graph->nodes[casts[i]].dead = 1;
        return n;
}

int sl_pass_float_integers(struct sl_graph *graph, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *casts = calloc(graph->n_nodes + 1u, sizeof(*casts));
        SL_CLEANUP(sl_cleanup_free) struct sl_node *nodes = NULL;
        uint32_t n_nodes;
        int result = 0;

        if (!casts)
                return sl_error_set(error, ENOMEM, "no memory for %u nodes", graph->n_nodes);
        if (sl_graph_has_bodies(graph) || !find_casts(graph, casts))
                return 0;
        nodes = sl_graph_take_nodes(graph, &n_nodes);
        for (uint32_t i = 0; i < n_nodes && result == 0; i++) {
                if (casts[i] != SL_VALUE_NONE)
                        result = rewrite(graph, &nodes[i], &nodes[casts[i]], error);
                else if (!nodes[i].dead)
                        result = put_back(graph, &nodes[i]);
        }
        if (result == -ENOMEM || result == -E2BIG)
                return sl_error_set(error, -result, "no room for the products of %u nodes", n_nodes);
        return result;
}
