/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include "base/error.h"

#include <string.h>

/* After so many rounds in which a dimension still changed, all of those that are carried are unknown. */
#define PATIENCE 2

static uint32_t leading(uint32_t op)
{
        return op == SL_OP_LOOP ? 2 : op == SL_OP_IF ? 1 : 0;
}

static int refuse(struct sl_error *error, int code, const char *what)
{
        return sl_error_set(error, code, "%s", what);
}

static int check_body(const struct sl_graph *body, uint32_t n_inputs, uint32_t n_outputs, struct sl_error *error)
{
        if (body->n_inputs != n_inputs || body->n_outputs != n_outputs)
                return sl_error_set(error, EINVAL, "its body has %u inputs and %u outputs, wants %u and %u", body->n_inputs,
                        body->n_outputs, n_inputs, n_outputs);
        return 0;
}

static void set_input(struct sl_graph *body, uint32_t input, const struct sl_tensor *tensor)
{
        body->values[body->inputs[input]].tensor = *tensor;
}

static struct sl_tensor *input_of(struct sl_graph *body, uint32_t input)
{
        return &body->values[body->inputs[input]].tensor;
}

static const struct sl_tensor *output_of(const struct sl_graph *body, uint32_t output)
{
        return &body->values[body->outputs[output]].tensor;
}

static int join(struct sl_tensor *tensor, const struct sl_tensor *other, struct sl_error *error)
{
        if (tensor->dtype != other->dtype)
                return refuse(error, EINVAL, "an output has another type on another path");
        if (tensor->shape.rank != other->shape.rank)
                return refuse(error, ENOTSUP, "an output has another rank on another path");
        for (uint32_t i = 0; i < tensor->shape.rank; i++)
                if (tensor->shape.dims[i] != other->shape.dims[i])
                        tensor->shape.dims[i] = SL_DIM_UNKNOWN;
        return 0;
}

static int infer_if(struct sl_control *control, struct sl_error *error)
{
        int result = 0;

        if (control->inputs[0].dtype != SL_DTYPE_BOOL)
                return refuse(error, EINVAL, "its condition is no bool");
        for (uint32_t b = 0; b < 2 && result == 0; b++) {
                struct sl_graph *body = control->bodies[b];

                result = check_body(body, control->n_inputs - 1, control->n_outputs, error);
                for (uint32_t i = 1; i < control->n_inputs && result == 0; i++)
                        set_input(body, i - 1, &control->inputs[i]);
                if (result == 0)
                        result = sl_graph_infer(body, error);
                for (uint32_t i = 0; i < control->n_outputs && result == 0; i++) {
                        if (b == 0)
                                control->outputs[i] = *output_of(body, i);
                        else
                                result = join(&control->outputs[i], output_of(body, i), error);
                }
        }
        return result;
}

/* Takes into the body's inputs what a round may have changed. Return: 1 something had to change, 0 nothing, -errno. */
static int widen(struct sl_graph *body, uint32_t first_input, uint32_t first_output, uint32_t n_carried, bool impatient,
        struct sl_error *error)
{
        int changed = 0;

        for (uint32_t i = 0; i < n_carried; i++) {
                struct sl_tensor *in = input_of(body, first_input + i);
                const struct sl_tensor *out = output_of(body, first_output + i);

                if (in->dtype != out->dtype)
                        return refuse(error, EINVAL, "a value that it carries changes its type");
                if (in->shape.rank != out->shape.rank)
                        return refuse(error, ENOTSUP, "a value that it carries changes its rank");
                for (uint32_t d = 0; d < in->shape.rank; d++) {
                        if (in->shape.dims[d] == SL_DIM_UNKNOWN || in->shape.dims[d] == out->shape.dims[d])
                                continue;
                        in->shape.dims[d] = SL_DIM_UNKNOWN;
                        changed = 1;
                }
        }
        for (uint32_t i = 0; i < n_carried && changed && impatient; i++)
                for (uint32_t d = 0; d < input_of(body, first_input + i)->shape.rank; d++)
                        input_of(body, first_input + i)->shape.dims[d] = SL_DIM_UNKNOWN;
        return changed;
}

static int infer_rounds(
        struct sl_control *control, uint32_t first_input, uint32_t first_output, uint32_t n_carried, struct sl_error *error)
{
        struct sl_graph *body = control->bodies[0];
        int result = 1;

        for (uint32_t round = 0; result == 1; round++) {
                result = sl_graph_infer(body, error);
                if (result == 0)
                        result = widen(body, first_input, first_output, n_carried, round >= PATIENCE, error);
        }
        return result;
}

/* Output @output is the rows of the body's output, one for each round, along @axis. */
static int stack(struct sl_control *control, uint32_t output, const struct sl_tensor *row, int64_t axis, int64_t rounds,
        struct sl_error *error)
{
        struct sl_tensor *tensor = &control->outputs[output];

        if (row->shape.rank >= SL_RANK_MAX)
                return sl_error_set(
                        error, EINVAL, "the rows of an output that grows have rank %d, the highest, already", SL_RANK_MAX);
        axis += axis < 0 ? (int64_t)row->shape.rank + 1 : 0;
        if (axis < 0 || axis > row->shape.rank)
                return refuse(error, EINVAL, "an axis in scan_output_axes is outside the output's rank");
        *tensor = *row;
        tensor->shape.rank++;
        for (uint32_t i = row->shape.rank; i > axis; i--)
                tensor->shape.dims[i] = tensor->shape.dims[i - 1];
        tensor->shape.dims[axis] = rounds;
        return 0;
}

static int finish_rounds(struct sl_control *control, uint32_t first_input, uint32_t first_output, uint32_t n_carried,
        int64_t rounds, struct sl_error *error)
{
        struct sl_graph *body = control->bodies[0];
        int result = 0;

        for (uint32_t i = 0; i < n_carried; i++)
                control->outputs[i] = *input_of(body, first_input + i);
        for (uint32_t i = n_carried; i < control->n_outputs && result == 0; i++)
                result = stack(control, i, output_of(body, first_output + i),
                        sl_attrs_ints(control->attrs, SL_ATTR_SCAN_OUTPUT_AXES, i - n_carried, 0), rounds, error);
        return result;
}

static int infer_loop(struct sl_control *control, uint32_t n_carried, struct sl_error *error)
{
        const struct sl_tensor iteration = {.dtype = SL_DTYPE_I64}, condition = {.dtype = SL_DTYPE_BOOL};
        struct sl_graph *body = control->bodies[0];
        int result = check_body(body, control->n_inputs, control->n_outputs + 1, error);

        if (result < 0)
                return result;
        if (output_of(body, 0)->dtype && output_of(body, 0)->dtype != SL_DTYPE_BOOL)
                return refuse(error, EINVAL, "the condition that its body makes is no bool");
        set_input(body, 0, &iteration);
        set_input(body, 1, &condition);
        for (uint32_t i = 2; i < control->n_inputs; i++)
                set_input(body, i, &control->inputs[i]);
        result = infer_rounds(control, 2, 1, n_carried, error);
        return result < 0 ? result : finish_rounds(control, 2, 1, n_carried, control->trips, error);
}

static int infer_scan(struct sl_control *control, uint32_t n_carried, struct sl_error *error)
{
        int64_t n_scanned = sl_attrs_int(control->attrs, SL_ATTR_NUM_SCAN_INPUTS, 0), rounds = SL_DIM_UNKNOWN;
        struct sl_graph *body = control->bodies[0];
        int result = check_body(body, control->n_inputs, control->n_outputs, error);

        if (result < 0)
                return result;
        if (n_scanned < 1 || n_scanned > (int64_t)control->n_inputs - n_carried)
                return refuse(error, EINVAL, "it has fewer inputs than it scans");
        for (uint32_t i = 0; i < control->n_inputs; i++) {
                struct sl_tensor tensor = control->inputs[i];
                int64_t axis = sl_attrs_ints(control->attrs, SL_ATTR_SCAN_INPUT_AXES, i - n_carried, 0);

                if (i >= n_carried && i < n_carried + n_scanned) {
                        axis += axis < 0 ? tensor.shape.rank : 0;
                        if (axis < 0 || axis >= tensor.shape.rank)
                                return refuse(error, EINVAL, "an axis in scan_input_axes is outside the input's rank");
                        if (rounds == SL_DIM_UNKNOWN)
                                rounds = tensor.shape.dims[axis];
                        for (uint32_t d = (uint32_t)axis; d + 1 < tensor.shape.rank; d++)
                                tensor.shape.dims[d] = tensor.shape.dims[d + 1];
                        tensor.shape.rank--;
                }
                set_input(body, i, &tensor);
        }
        result = infer_rounds(control, 0, 0, n_carried, error);
        return result < 0 ? result : finish_rounds(control, 0, 0, n_carried, rounds, error);
}

int sl_control_infer(struct sl_control *control, struct sl_error *error)
{
        int64_t n_carried = sl_attrs_int(control->attrs, SL_ATTR_CARRIED, 0);
        uint32_t first = leading(control->op);

        if (control->n_bodies != (control->op == SL_OP_IF ? 2 : 1) || control->n_inputs < first)
                return refuse(error, EINVAL, "it lacks a body or an input");
        if (n_carried < 0 || n_carried > control->n_outputs || n_carried > (int64_t)control->n_inputs - first)
                return refuse(error, EINVAL, "it carries more values than it has");
        for (uint32_t i = control->op == SL_OP_LOOP ? 2 : 0; i < control->n_inputs; i++)
                if (control->inputs[i].dtype == SL_DTYPE_NONE)
                        return sl_error_set(error, EINVAL, "input %u is missing", i);
        if (control->op == SL_OP_IF)
                return infer_if(control, error);
        if (control->op == SL_OP_LOOP)
                return infer_loop(control, (uint32_t)n_carried, error);
        return infer_scan(control, (uint32_t)n_carried, error);
}

static bool constant_bool(const struct sl_graph *graph, uint32_t value, bool *ret_value)
{
        const uint8_t *data = sl_graph_constant(graph, value);

        if (!data || graph->values[value].tensor.dtype != SL_DTYPE_BOOL || graph->values[value].data_bytes != 1)
                return false;
        *ret_value = *data;
        return true;
}

/* The body hands its condition on, or makes one that is always true. */
static bool never_stops(const struct sl_graph *body)
{
        uint32_t value = body->n_outputs ? body->outputs[0] : SL_VALUE_NONE, producer;
        bool goes_on = false;

        while ((producer = sl_graph_producer(body, value)) != SL_VALUE_NONE && body->nodes[producer].op == SL_OP_IDENTITY)
                value = body->nodes[producer].inputs[0];
        return body->n_inputs > 1 && (value == body->inputs[1] || (constant_bool(body, value, &goes_on) && goes_on));
}

static int64_t trips_of(const struct sl_graph *graph, const struct sl_node *node)
{
        const void *data = node->n_inputs > 1 ? sl_graph_constant(graph, node->inputs[0]) : NULL;
        bool goes_on = true;
        int64_t trips;

        if (!data || graph->values[node->inputs[0]].tensor.dtype != SL_DTYPE_I64 || graph->values[node->inputs[0]].data_bytes != 8)
                return SL_DIM_UNKNOWN;
        if (node->inputs[1] != SL_VALUE_NONE && !constant_bool(graph, node->inputs[1], &goes_on))
                return SL_DIM_UNKNOWN;
        memcpy(&trips, data, sizeof(trips));
        if (!goes_on || trips < 0)
                return 0;
        return node->n_bodies && never_stops(node->bodies[0]) ? trips : SL_DIM_UNKNOWN;
}

int sl_graph_infer_control(struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        struct sl_control control = {.op = node->op,
                .attrs = &node->attrs,
                .n_inputs = node->n_inputs,
                .n_outputs = node->n_outputs,
                .n_bodies = node->n_bodies,
                .bodies = node->bodies,
                .trips = node->op == SL_OP_LOOP ? trips_of(graph, node) : SL_DIM_UNKNOWN};
        int result;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] != SL_VALUE_NONE)
                        control.inputs[i] = graph->values[node->inputs[i]].tensor;
        result = sl_control_infer(&control, error);
        for (uint32_t i = 0; i < node->n_outputs && result == 0; i++) {
                if (sl_graph_least_bytes(&control.outputs[i]) == UINT64_MAX)
                        result = sl_error_set(error, EOVERFLOW, "output %u has more bytes than 64 bits count", i);
                else if (node->outputs[i] != SL_VALUE_NONE)
                        graph->values[node->outputs[i]].tensor = control.outputs[i];
        }
        return result < 0 ? sl_error_prefix(error, result, "node \"%s\" (%s)", node->name, sl_op_name(node->op)) : 0;
}
