/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What If, Loop and Scan do with their bodies. Values that are carried, and what each round adds to a growing output, are holders
 * of blocks: nothing is copied but the slices of a Scan and what grows.
 */
#include "dynamic.h"

#include "base/bytes.h"
#include "base/error.h"
#include "kernels.h"

#include <inttypes.h>
#include <string.h>

#define BODY_PORTS_MAX SL_NODE_INPUTS_MAX

/* An output to which each round adds one row: room for @capacity of them. */
struct growing {
        struct sl_live rows;
        struct sl_tensor row; /* dtype SL_DTYPE_NONE before the first */
        int64_t n, capacity;
};

struct rounds {
        struct sl_dynamic *dynamic;
        const struct sl_node_desc *node;
        sl_body_fn run;
        void *context;
        uint32_t n_carried, n_grown;
        struct sl_live inputs[BODY_PORTS_MAX];
        struct sl_live outputs[SL_NODE_OUTPUTS_MAX + 1];
        struct growing grown[SL_NODE_OUTPUTS_MAX];
};

static int over_memory(struct rounds *rounds)
{
        return sl_pool_explain(&rounds->dynamic->pool, sl_op_name(rounds->node->op), rounds->dynamic->error);
}

static int refuse(struct rounds *rounds, int code, const char *what)
{
        return sl_error_set(rounds->dynamic->error, code, "%s: %s", sl_op_name(rounds->node->op), what);
}

/* The elements of @tensor are moved. */
static int take_moves(struct rounds *rounds, const struct sl_tensor *tensor)
{
        return sl_dynamic_work(rounds->dynamic, rounds->node->op, sl_shape_elements(&tensor->shape));
}

static int make_rows(struct rounds *rounds, const struct sl_tensor *row, int64_t n, struct sl_live *ret_live)
{
        struct sl_tensor tensor = *row;

        if (row->shape.rank >= SL_RANK_MAX)
                return refuse(rounds, EINVAL, "the rows of an output that grows have the highest rank already");
        tensor.shape.rank = row->shape.rank + 1;
        tensor.shape.dims[0] = n;
        for (uint32_t i = 0; i < row->shape.rank; i++)
                tensor.shape.dims[i + 1] = row->shape.dims[i];
        return sl_live_make(&rounds->dynamic->pool, &tensor, ret_live) < 0 ? over_memory(rounds) : 0;
}

static int widen(struct rounds *rounds, struct growing *growing)
{
        int64_t capacity = growing->capacity ? growing->capacity * 2 : 4;
        struct sl_live wider;
        int r = make_rows(rounds, &growing->row, capacity, &wider);

        if (r < 0)
                return r;
        if (growing->n && sl_tensor_bytes(&growing->row))
                memcpy(wider.data, growing->rows.data, (uint64_t)growing->n * sl_tensor_bytes(&growing->row));
        sl_live_drop(&rounds->dynamic->pool, &growing->rows);
        growing->rows = wider;
        growing->capacity = capacity;
        return 0;
}

static int add_row(struct rounds *rounds, struct growing *growing, const struct sl_live *row)
{
        uint64_t bytes = sl_tensor_bytes(&row->tensor);
        int r = 0;

        if (!growing->n)
                growing->row = row->tensor;
        if (growing->row.dtype != row->tensor.dtype || !sl_shape_equal(&growing->row.shape, &row->tensor.shape))
                return refuse(rounds, EINVAL, "an output that grows changes its shape from one round to the next");
        r = take_moves(rounds, &row->tensor);
        if (r == 0 && growing->n == growing->capacity)
                r = widen(rounds, growing);
        if (r < 0)
                return r;
        if (bytes)
                memcpy((uint8_t *)growing->rows.data + (uint64_t)growing->n * bytes, row->data, bytes);
        growing->n++;
        return 0;
}

/* Without a round nothing is known of the rows but what the graph knew. */
static struct sl_tensor row_of_none(const struct sl_tensor *output)
{
        struct sl_tensor row = {.dtype = output->dtype, .shape.rank = output->shape.rank ? output->shape.rank - 1 : 0};

        for (uint32_t i = 0; i < row.shape.rank; i++)
                row.shape.dims[i] = output->shape.dims[i + 1] > 0 ? output->shape.dims[i + 1] : 0;
        return row;
}

/* Rows become the slices along @axis, last first for @backwards. */
static int arrange(struct rounds *rounds, struct growing *growing, uint32_t axis, bool backwards, struct sl_live *ret_output)
{
        struct sl_tensor tensor = growing->row;
        uint64_t outer = 1, inner = sl_dtype_bytes(tensor.dtype);
        struct sl_live arranged;

        for (uint32_t i = tensor.shape.rank; i > axis; i--)
                tensor.shape.dims[i] = tensor.shape.dims[i - 1];
        tensor.shape.dims[axis] = growing->n;
        tensor.shape.rank++;
        for (uint32_t i = 0; i < growing->row.shape.rank; i++) {
                outer *= i < axis ? (uint64_t)growing->row.shape.dims[i] : 1;
                inner *= i < axis ? 1 : (uint64_t)growing->row.shape.dims[i];
        }
        if (take_moves(rounds, &tensor) < 0)
                return -E2BIG;
        if (sl_live_make(&rounds->dynamic->pool, &tensor, &arranged) < 0)
                return over_memory(rounds);
        for (int64_t n = 0; n < growing->n && inner; n++)
                for (uint64_t o = 0; o < outer; o++) {
                        int64_t from = backwards ? growing->n - 1 - n : n;

                        memcpy((uint8_t *)arranged.data + (o * (uint64_t)growing->n + (uint64_t)n) * inner,
                                (const uint8_t *)growing->rows.data + ((uint64_t)from * outer + o) * inner, inner);
                }
        *ret_output = arranged;
        return 0;
}

static int finish_grown(struct rounds *rounds, uint32_t i, struct sl_live *ret_output)
{
        const struct sl_attrs *attrs = &rounds->node->attrs;
        int64_t axis = sl_attrs_ints(attrs, SL_ATTR_SCAN_OUTPUT_AXES, i, 0);
        bool backwards = sl_attrs_ints(attrs, SL_ATTR_SCAN_OUTPUT_DIRECTIONS, i, 0) != 0;
        struct growing *growing = &rounds->grown[i];
        int r = 0;

        if (!growing->n)
                growing->row = row_of_none(&rounds->node->outputs[rounds->n_carried + i]);
        if (!growing->rows.block)
                r = make_rows(rounds, &growing->row, 0, &growing->rows);
        if (r < 0)
                return r;
        axis += axis < 0 ? (int64_t)growing->row.shape.rank + 1 : 0;
        if (axis < 0 || axis > growing->row.shape.rank)
                return refuse(rounds, EINVAL, "an axis in scan_output_axes is outside the output's rank");
        if (axis || backwards)
                return arrange(rounds, growing, (uint32_t)axis, backwards, ret_output);
        *ret_output = sl_live_share(&growing->rows);
        ret_output->tensor.shape.dims[0] = growing->n;
        return 0;
}

/* Runs the body once; what it carries becomes its next inputs from @first_input on, what it adds is added. */
static int run_round(struct rounds *rounds, uint32_t first_input, uint32_t n_leading)
{
        uint32_t n_outputs = n_leading + rounds->n_carried + rounds->n_grown;
        struct sl_pool *pool = &rounds->dynamic->pool;
        int r = sl_dynamic_step(rounds->dynamic, rounds->node->op);

        for (uint32_t i = 0; i < n_leading; i++)
                sl_live_drop(pool, &rounds->outputs[i]);
        if (r == 0)
                r = rounds->run(rounds->context, 0, rounds->inputs, rounds->node->n_inputs, rounds->outputs, n_outputs);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < rounds->n_carried; i++) {
                struct sl_live *carried = &rounds->inputs[first_input + i];

                sl_live_drop(pool, carried);
                *carried = rounds->outputs[n_leading + i];
                rounds->outputs[n_leading + i] = (struct sl_live){0};
        }
        for (uint32_t i = 0; i < rounds->n_grown; i++) {
                struct sl_live *row = &rounds->outputs[n_leading + rounds->n_carried + i];

                if (r == 0)
                        r = add_row(rounds, &rounds->grown[i], row);
                sl_live_drop(pool, row);
        }
        return r;
}

static int finish(struct rounds *rounds, uint32_t first_input, struct sl_live *outputs)
{
        int r = 0;

        for (uint32_t i = 0; i < rounds->n_carried; i++)
                outputs[i] = sl_live_share(&rounds->inputs[first_input + i]);
        for (uint32_t i = 0; i < rounds->n_grown && r == 0; i++)
                r = finish_grown(rounds, i, &outputs[rounds->n_carried + i]);
        return r;
}

static void drop_rounds(struct rounds *rounds)
{
        struct sl_pool *pool = &rounds->dynamic->pool;

        for (uint32_t i = 0; i < rounds->node->n_inputs; i++)
                sl_live_drop(pool, &rounds->inputs[i]);
        for (uint32_t i = 0; i <= SL_NODE_OUTPUTS_MAX; i++)
                sl_live_drop(pool, &rounds->outputs[i]);
        for (uint32_t i = 0; i < rounds->n_grown; i++)
                sl_live_drop(pool, &rounds->grown[i].rows);
}

static bool is_one(const struct sl_live *live, uint32_t dtype)
{
        return live->tensor.dtype == dtype && live->data && sl_shape_elements(&live->tensor.shape) == 1;
}

static int set_scalar(struct rounds *rounds, uint32_t input, uint32_t dtype, int64_t value)
{
        struct sl_tensor tensor = {.dtype = dtype};

        sl_live_drop(&rounds->dynamic->pool, &rounds->inputs[input]);
        if (sl_live_make(&rounds->dynamic->pool, &tensor, &rounds->inputs[input]) < 0)
                return over_memory(rounds);
        memcpy(rounds->inputs[input].data, &value, sl_dtype_bytes(dtype));
        return 0;
}

static int loop(struct rounds *rounds, const struct sl_live *inputs)
{
        int64_t trips = INT64_MAX;
        bool goes_on = true;
        int r = 0;

        if (inputs[0].tensor.dtype != SL_DTYPE_NONE && !is_one(&inputs[0], SL_DTYPE_I64))
                return refuse(rounds, EINVAL, "its trip count is no int64 scalar");
        if (inputs[1].tensor.dtype != SL_DTYPE_NONE && !is_one(&inputs[1], SL_DTYPE_BOOL))
                return refuse(rounds, EINVAL, "its condition is no bool scalar");
        if (inputs[0].data)
                memcpy(&trips, inputs[0].data, sizeof(trips));
        if (inputs[1].data)
                goes_on = *(const uint8_t *)inputs[1].data;
        for (int64_t i = 0; i < trips && goes_on && r == 0; i++) {
                r = set_scalar(rounds, 0, SL_DTYPE_I64, i);
                if (r == 0)
                        r = set_scalar(rounds, 1, SL_DTYPE_BOOL, 1);
                if (r == 0)
                        r = run_round(rounds, 2, 1);
                if (r == 0 && !is_one(&rounds->outputs[0], SL_DTYPE_BOOL))
                        r = refuse(rounds, EINVAL, "the condition that its body makes is no bool scalar");
                goes_on = r == 0 && *(const uint8_t *)rounds->outputs[0].data;
        }
        return r;
}

struct scanned {
        uint32_t axis;
        int64_t length;
        bool backwards;
};

static int describe_scanned(struct rounds *rounds, const struct sl_live *input, uint32_t i, struct scanned *ret_scanned)
{
        const struct sl_attrs *attrs = &rounds->node->attrs;
        int64_t axis = sl_attrs_ints(attrs, SL_ATTR_SCAN_INPUT_AXES, i, 0);

        axis += axis < 0 ? input->tensor.shape.rank : 0;
        if (axis < 0 || axis >= input->tensor.shape.rank)
                return refuse(rounds, EINVAL, "an axis in scan_input_axes is outside the input's rank");
        *ret_scanned = (struct scanned){.axis = (uint32_t)axis,
                .length = input->tensor.shape.dims[axis],
                .backwards = sl_attrs_ints(attrs, SL_ATTR_SCAN_INPUT_DIRECTIONS, i, 0) != 0};
        return 0;
}

static int slice(
        struct rounds *rounds, const struct sl_live *input, const struct scanned *scanned, int64_t at, struct sl_live *ret_slice)
{
        struct sl_tensor tensor = {.dtype = input->tensor.dtype};
        uint64_t outer = 1, inner = sl_dtype_bytes(tensor.dtype);
        struct sl_live made;

        for (uint32_t i = 0; i < input->tensor.shape.rank; i++) {
                uint64_t dim = (uint64_t)input->tensor.shape.dims[i];

                if (i == scanned->axis)
                        continue;
                tensor.shape.dims[tensor.shape.rank++] = (int64_t)dim;
                outer *= i < scanned->axis ? dim : 1;
                inner *= i > scanned->axis ? dim : 1;
        }
        if (take_moves(rounds, &tensor) < 0)
                return -E2BIG;
        if (sl_live_make(&rounds->dynamic->pool, &tensor, &made) < 0)
                return over_memory(rounds);
        at = scanned->backwards ? scanned->length - 1 - at : at;
        for (uint64_t o = 0; o < outer && inner; o++)
                memcpy((uint8_t *)made.data + o * inner,
                        (const uint8_t *)input->data + (o * (uint64_t)scanned->length + (uint64_t)at) * inner, inner);
        *ret_slice = made;
        return 0;
}

static int scan(struct rounds *rounds, const struct sl_live *inputs)
{
        uint32_t n_scanned = (uint32_t)sl_attrs_int(&rounds->node->attrs, SL_ATTR_NUM_SCAN_INPUTS, 0), first = rounds->n_carried;
        struct scanned scanned[BODY_PORTS_MAX];
        int r = 0;

        if (!n_scanned || n_scanned > rounds->node->n_inputs - first)
                return refuse(rounds, EINVAL, "it has fewer inputs than it scans");
        for (uint32_t i = 0; i < n_scanned && r == 0; i++) {
                r = describe_scanned(rounds, &inputs[first + i], i, &scanned[i]);
                if (r == 0 && scanned[i].length != scanned[0].length)
                        r = refuse(rounds, EINVAL, "the inputs that it scans have different lengths");
        }
        for (int64_t at = 0; r == 0 && at < scanned[0].length; at++) {
                for (uint32_t i = 0; i < n_scanned && r == 0; i++) {
                        sl_live_drop(&rounds->dynamic->pool, &rounds->inputs[first + i]);
                        r = slice(rounds, &inputs[first + i], &scanned[i], at, &rounds->inputs[first + i]);
                }
                if (r == 0)
                        r = run_round(rounds, 0, 0);
        }
        return r;
}

static int branch(struct rounds *rounds, const struct sl_live *inputs, struct sl_live *outputs)
{
        int r = sl_dynamic_step(rounds->dynamic, SL_OP_IF);

        if (r < 0)
                return r;
        if (!is_one(&inputs[0], SL_DTYPE_BOOL))
                return refuse(rounds, EINVAL, "its condition is no bool scalar");
        return rounds->run(rounds->context, *(const uint8_t *)inputs[0].data ? 0 : 1, inputs + 1, rounds->node->n_inputs - 1,
                outputs, rounds->node->n_outputs);
}

int sl_control_run(struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_live *inputs, sl_body_fn run,
        void *context, struct sl_live *ret_outputs)
{
        struct rounds rounds = {.dynamic = dynamic, .node = node, .run = run, .context = context};
        struct sl_live outputs[SL_NODE_OUTPUTS_MAX] = {0};
        int64_t n_carried = sl_attrs_int(&node->attrs, SL_ATTR_CARRIED, 0);
        uint32_t first = node->op == SL_OP_LOOP ? 2 : 0;
        int r;

        if (node->op != SL_OP_IF) {
                if (node->n_inputs < first || n_carried < 0 || n_carried > node->n_outputs || n_carried > node->n_inputs - first)
                        return refuse(&rounds, EINVAL, "it carries more values than it has");
                rounds.n_carried = (uint32_t)n_carried;
                rounds.n_grown = node->n_outputs - rounds.n_carried;
                for (uint32_t i = 0; i < node->n_inputs; i++)
                        rounds.inputs[i] = sl_live_share(&inputs[i]);
        }
        if (node->op == SL_OP_IF)
                r = branch(&rounds, inputs, outputs);
        else
                r = node->op == SL_OP_LOOP ? loop(&rounds, inputs) : scan(&rounds, inputs);
        if (r == 0 && node->op != SL_OP_IF)
                r = finish(&rounds, first, outputs);
        if (node->op != SL_OP_IF)
                drop_rounds(&rounds);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (r < 0)
                        sl_live_drop(&dynamic->pool, &outputs[i]);
                else
                        ret_outputs[i] = outputs[i];
        return r;
}
