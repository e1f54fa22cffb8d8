/* SPDX-License-Identifier: Apache-2.0 */
#include "adapter.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "shape/resize.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MAX_RESIZED 16384 /* of height or width */

/* What one network needs. */
struct adapter {
        struct sl_graph *graph;
        const struct sl_task_ports *task;
        const struct sl_adapter_wish *wish;
        struct sl_error *error;
        char *text;
        bool channels_last; /* the task's; that of the network where they are the same */
        bool turns;         /* the network has the other one */
        bool resizes, slices;
        int64_t height, width; /* that the network wants */
};

__attribute__((format(printf, 2, 3))) static void say(struct adapter *a, const char *format, ...)
{
        size_t used = strlen(a->text);
        va_list args;

        if (used)
                used += (size_t)snprintf(a->text + used, SL_ADAPTER_TEXT - used, ", ");
        if (used >= SL_ADAPTER_TEXT)
                return;
        va_start(args, format);
        vsnprintf(a->text + used, SL_ADAPTER_TEXT - used, format, args);
        va_end(args);
}

/* ---- what differs ---- */

int sl_task_ports_of(const struct sl_graph *graph, struct sl_task_ports *ret_ports, struct sl_error *error)
{
        if (graph->n_inputs > SL_ADAPTER_PORTS_MAX || graph->n_outputs > SL_ADAPTER_PORTS_MAX)
                return sl_error_set(error, E2BIG, "%u inputs and %u outputs, at most %u each", graph->n_inputs, graph->n_outputs,
                        SL_ADAPTER_PORTS_MAX);
        *ret_ports = (struct sl_task_ports){.n_inputs = graph->n_inputs, .n_outputs = graph->n_outputs};
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                ret_ports->inputs[i] = graph->values[graph->inputs[i]].tensor;
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                ret_ports->outputs[i] = graph->values[graph->outputs[i]].tensor;
        return 0;
}

static bool is_same(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return a->dtype == b->dtype && a->shape.rank == b->shape.rank &&
               memcmp(a->shape.dims, b->shape.dims, a->shape.rank * sizeof(*a->shape.dims)) == 0;
}

static int refuse(
        const struct adapter *a, const char *kind, const struct sl_value *port, const struct sl_tensor *task, const char *limit)
{
        char has[SL_SHAPE_TEXT_BYTES], wants[SL_SHAPE_TEXT_BYTES];

        return sl_error_set(a->error, EINVAL, "%s \"%s\" is %s %s, the task's is %s %s: %s", kind, port->name,
                sl_dtype_name(port->tensor.dtype), sl_shape_print(&port->tensor.shape, has), sl_dtype_name(task->dtype),
                sl_shape_print(&task->shape, wants), limit);
}

/* Images of the same number of channels, which a few are; @last where they stand in @a. */
static bool channels_agree(const struct sl_shape *a, bool last, const struct sl_shape *b, bool b_last)
{
        int64_t channels = a->dims[last ? 3 : 1];

        return channels == b->dims[b_last ? 3 : 1] && channels > 0 && channels <= 4;
}

static bool find_layout(struct adapter *a, const struct sl_shape *task, const struct sl_shape *network)
{
        static const struct {
                bool last, turns;
        } layouts[] = {{false, false}, {true, false}, {false, true}, {true, true}};

        for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
                a->channels_last = layouts[i].last;
                a->turns = layouts[i].turns;
                if (channels_agree(task, a->channels_last, network, a->channels_last != a->turns))
                        return true;
        }
        return false;
}

static int compare_images(struct adapter *a, const struct sl_value *port, const struct sl_tensor *task)
{
        const struct sl_shape *from = &task->shape, *to = &port->tensor.shape;
        uint32_t at, network_at;

        if (from->dims[0] != to->dims[0])
                return refuse(a, "input", port, task, "batches of both are open");
        if (!find_layout(a, from, to))
                return refuse(a, "input", port, task, "both have the same 1 to 4 channels, first or last");
        at = a->channels_last ? 1 : 2;
        network_at = a->channels_last != a->turns ? 1 : 2;
        a->height = to->dims[network_at];
        a->width = to->dims[network_at + 1];
        for (uint32_t i = 0; i < 2; i++)
                if (from->dims[at + i] < 1 || to->dims[network_at + i] < 1 || to->dims[network_at + i] > SIZE_MAX_RESIZED)
                        return refuse(a, "input", port, task, "heights and widths are known, to 16384");
        a->resizes = from->dims[at] != a->height || from->dims[at + 1] != a->width;
        return 0;
}

static int compare_input(struct adapter *a)
{
        const struct sl_value *port = &a->graph->values[a->graph->inputs[0]];
        const struct sl_tensor *task = &a->task->inputs[0];

        if (is_same(&port->tensor, task))
                return 0;
        if (port->tensor.dtype != task->dtype || task->dtype != SL_DTYPE_F32)
                return refuse(a, "input", port, task, "types are the same, and what is adapted is float32");
        if (port->tensor.shape.rank != 4 || task->shape.rank != 4)
                return refuse(a, "input", port, task, "what is adapted has 4 dimensions");
        return compare_images(a, port, task);
}

static int compare_output(struct adapter *a)
{
        const struct sl_value *port = &a->graph->values[a->graph->outputs[0]];
        const struct sl_tensor *task = &a->task->outputs[0];
        const struct sl_shape *from = &port->tensor.shape, *to = &task->shape;

        if (is_same(&port->tensor, task))
                return 0;
        if (port->tensor.dtype != task->dtype || task->dtype != SL_DTYPE_F32)
                return refuse(a, "output", port, task, "types are the same, and what is adapted is float32");
        if (from->rank != 2 || to->rank != 2 || from->dims[0] != to->dims[0] || from->dims[1] != to->dims[1] + 1)
                return refuse(a, "output", port, task, "one class more, the background in front, is the most that is adapted");
        a->slices = true;
        return 0;
}

static int compare_others(const struct adapter *a)
{
        const struct sl_graph *graph = a->graph;

        if (graph->n_inputs != a->task->n_inputs || graph->n_outputs != a->task->n_outputs || !graph->n_inputs || !graph->n_outputs)
                return sl_error_set(a->error, EINVAL, "%u inputs and %u outputs, the task has %u and %u", graph->n_inputs,
                        graph->n_outputs, a->task->n_inputs, a->task->n_outputs);
        for (uint32_t i = 1; i < graph->n_inputs; i++)
                if (!is_same(&graph->values[graph->inputs[i]].tensor, &a->task->inputs[i]))
                        return refuse(
                                a, "input", &graph->values[graph->inputs[i]], &a->task->inputs[i], "the first alone is adapted");
        for (uint32_t i = 1; i < graph->n_outputs; i++)
                if (!is_same(&graph->values[graph->outputs[i]].tensor, &a->task->outputs[i]))
                        return refuse(
                                a, "output", &graph->values[graph->outputs[i]], &a->task->outputs[i], "the first alone is adapted");
        return 0;
}

static int check_numbers(const struct adapter *a, const char *what, uint32_t n)
{
        const struct sl_value *port = &a->graph->values[a->graph->inputs[0]];
        const struct sl_tensor *task = &a->task->inputs[0];
        int64_t channels = task->shape.rank == 4 ? task->shape.dims[a->channels_last ? 3 : 1] : 1;

        if (n && task->dtype != SL_DTYPE_F32)
                return refuse(a, "input", port, task, "a range is that of float32");
        if (n > 1 && n != channels)
                return sl_error_set(a->error, EINVAL, "input \"%s\": %u numbers of %s for %" PRId64 " channels, one or one of each",
                        port->name, n, what, channels);
        return 0;
}

/* ---- nodes ---- */

static int add(struct adapter *a, uint32_t op, const char *name, const uint32_t *inputs, uint32_t n_inputs, const char *value,
        const struct sl_attrs *attrs, uint32_t *ret_output)
{
        const struct sl_tensor unknown = {.dtype = SL_DTYPE_F32};
        uint32_t node, output;
        int r = sl_graph_add_value(a->graph, value, SL_VALUE_COMPUTED, &unknown, &output);

        r = r < 0 ? r : sl_graph_add_node(a->graph, op, name, inputs, n_inputs, &output, 1, &node);
        if (r < 0)
                return sl_error_set(a->error, -r, "no room for an adapter");
        *ret_output = output; /* @inputs may be there */
        if (attrs)
                a->graph->nodes[node].attrs = *attrs;
        return sl_graph_infer_node(a->graph, node, a->error);
}

/* @numbers beside the axis of channels, or a single one. */
static int add_elements(struct adapter *a, uint32_t op, const char *name, const float *numbers, uint32_t n, uint32_t *value)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = 1, .dims = {1}}};
        uint32_t constant;
        int r;

        if (!n)
                return 0;
        if (n > 1)
                tensor.shape = (struct sl_shape){.rank = 4, .dims = {1, 1, 1, 1}};
        if (n > 1)
                tensor.shape.dims[a->channels_last ? 3 : 1] = n;
        void *data = sl_graph_alloc(a->graph, n * sizeof(*numbers));
        if (!data)
                return sl_error_set(a->error, ENOMEM, "no room for an adapter");
        memcpy(data, numbers, n * sizeof(*numbers));
        r = sl_graph_add_constant(a->graph, name, &tensor, data, &constant);
        if (r < 0)
                return sl_error_set(a->error, -r, "no room for an adapter");
        say(a, "%s", op == SL_OP_MUL ? "scale" : "offset");
        return add(a, op, name, (uint32_t[]){*value, constant}, 2, name, NULL, value);
}

static int add_resize(struct adapter *a, uint32_t *value)
{
        int64_t axes[] = {a->channels_last ? 1 : 2, a->channels_last ? 2 : 3};
        const struct sl_shape *from = &a->task->inputs[0].shape;
        struct sl_attrs attrs = {0};

        say(a, "Resize %" PRId64 "x%" PRId64 " -> %" PRId64 "x%" PRId64, from->dims[axes[0]], from->dims[axes[1]], a->height,
                a->width);
        if (sl_attrs_set_int(&attrs, SL_ATTR_MODE, SL_RESIZE_LINEAR) < 0 ||
                sl_attrs_set_int(&attrs, SL_ATTR_TRANSFORM, SL_RESIZE_HALF_PIXEL) < 0 ||
                sl_attrs_set_ints(&attrs, SL_ATTR_AXES, axes, 2) < 0 ||
                sl_attrs_set_ints(&attrs, SL_ATTR_SIZES, (int64_t[]){a->height, a->width}, 2) < 0)
                return sl_error_set(a->error, ENOMEM, "no room for an adapter");
        return add(a, SL_OP_RESIZE, "adapter_resize", value, 1, "adapter_resized", &attrs, value);
}

static int add_transpose(struct adapter *a, uint32_t *value)
{
        static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
        struct sl_attrs attrs = {0};

        say(a, a->channels_last ? "Transpose NHWC -> NCHW" : "Transpose NCHW -> NHWC");
        if (sl_attrs_set_ints(&attrs, SL_ATTR_PERM, a->channels_last ? to_first : to_last, 4) < 0)
                return sl_error_set(a->error, ENOMEM, "no room for an adapter");
        return add(a, SL_OP_TRANSPOSE, "adapter_transpose", value, 1, "adapter_transposed", &attrs, value);
}

/* From the task's input to what the network takes; *ret_input is the task's. */
static int add_before(struct adapter *a, uint32_t *ret_input, uint32_t *ret_value)
{
        const struct sl_value *old = &a->graph->values[a->graph->inputs[0]];
        int r = sl_graph_add_value(a->graph, old->name, SL_VALUE_INPUT, &a->task->inputs[0], ret_input);

        if (r < 0)
                return sl_error_set(a->error, -r, "no room for an adapter");
        *ret_value = *ret_input;
        r = add_elements(a, SL_OP_MUL, "adapter_scale", a->wish->scale, a->wish->n_scale, ret_value);
        if (r == 0)
                r = add_elements(a, SL_OP_ADD, "adapter_offset", a->wish->offset, a->wish->n_offset, ret_value);
        if (r == 0 && a->resizes)
                r = add_resize(a, ret_value);
        return r == 0 && a->turns ? add_transpose(a, ret_value) : r;
}

static int add_slice(struct adapter *a, uint32_t *value)
{
        struct sl_attrs attrs = {0};

        say(a, "Slice %" PRId64 " -> %" PRId64 " classes", a->task->outputs[0].shape.dims[1] + 1,
                a->task->outputs[0].shape.dims[1]);
        if (sl_attrs_set_ints(&attrs, SL_ATTR_STARTS, (int64_t[]){1}, 1) < 0 ||
                sl_attrs_set_ints(&attrs, SL_ATTR_ENDS, (int64_t[]){INT32_MAX}, 1) < 0 ||
                sl_attrs_set_ints(&attrs, SL_ATTR_AXES, (int64_t[]){1}, 1) < 0 ||
                sl_attrs_set_ints(&attrs, SL_ATTR_STEPS, (int64_t[]){1}, 1) < 0)
                return sl_error_set(a->error, ENOMEM, "no room for an adapter");
        return add(a, SL_OP_SLICE, "adapter_slice", value, 1, "adapter_sliced", &attrs, value);
}

static int add_softmax(struct adapter *a, uint32_t *value)
{
        struct sl_attrs attrs = {0};

        say(a, "Softmax");
        if (sl_attrs_set_int(&attrs, SL_ATTR_AXIS, -1) < 0)
                return sl_error_set(a->error, ENOMEM, "no room for an adapter");
        return add(a, SL_OP_SOFTMAX, "adapter_softmax", value, 1, "adapter_probabilities", &attrs, value);
}

/* The network's nodes behind those that are there already, which read the task's input. */
static int put_back(struct adapter *a, const struct sl_node *nodes, uint32_t n, uint32_t from, uint32_t to)
{
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_node *node = &nodes[i];
                uint32_t inputs[SL_NODE_INPUTS_MAX], written;
                int r;

                if (node->dead)
                        continue;
                for (uint32_t k = 0; k < node->n_inputs; k++)
                        inputs[k] = node->inputs[k] == from ? to : node->inputs[k];
                r = sl_graph_add_node(
                        a->graph, node->op, node->name, inputs, node->n_inputs, node->outputs, node->n_outputs, &written);
                if (r < 0)
                        return sl_error_set(a->error, -r, "no room for an adapter");
                a->graph->nodes[written].attrs = node->attrs;
                a->graph->nodes[written].epilogue = node->epilogue;
        }
        return 0;
}

static int rewrite_input(struct adapter *a)
{
        struct sl_graph *graph = a->graph;
        uint32_t old = graph->inputs[0], inputs[SL_ADAPTER_PORTS_MAX], n_nodes, value;
        SL_CLEANUP(sl_cleanup_free) struct sl_node *nodes = NULL;
        int r;

        if (!a->resizes && !a->turns && !a->wish->n_scale && !a->wish->n_offset)
                return 0;
        memcpy(inputs, graph->inputs, graph->n_inputs * sizeof(*inputs));
        nodes = sl_graph_take_nodes(graph, &n_nodes);
        r = add_before(a, &inputs[0], &value);
        r = r < 0 ? r : put_back(a, nodes, n_nodes, old, value);
        if (r < 0)
                return r;
        r = sl_graph_set_ports(graph, inputs, graph->n_inputs, graph->outputs, graph->n_outputs);
        graph->values[old].kind = SL_VALUE_COMPUTED;
        graph->values[old].dead = 1;
        return r < 0 ? sl_error_set(a->error, -r, "no room for an adapter") : 0;
}

/* The port keeps its name, and what it was before gets another. */
static int rewrite_output(struct adapter *a)
{
        struct sl_graph *graph = a->graph;
        uint32_t outputs[SL_ADAPTER_PORTS_MAX], value = graph->outputs[0];
        int r = 0;

        if (!a->slices && !a->wish->softmax)
                return 0;
        memcpy(outputs, graph->outputs, graph->n_outputs * sizeof(*outputs));
        if (a->slices)
                r = add_slice(a, &value);
        if (r == 0 && a->wish->softmax)
                r = add_softmax(a, &value);
        if (r < 0)
                return r;
        r = sl_graph_rename_value(graph, value, graph->values[outputs[0]].name);
        r = r < 0 ? r : sl_graph_rename_value(graph, outputs[0], "adapter_of");
        outputs[0] = value;
        r = r < 0 ? r : sl_graph_set_ports(graph, graph->inputs, graph->n_inputs, outputs, graph->n_outputs);
        return r < 0 ? sl_error_set(a->error, -r, "no room for an adapter") : 0;
}

static int compare(struct adapter *a)
{
        int r = compare_others(a);

        r = r < 0 ? r : compare_input(a);
        r = r < 0 ? r : compare_output(a);
        r = r < 0 ? r : check_numbers(a, "scale", a->wish->n_scale);
        r = r < 0 ? r : check_numbers(a, "offset", a->wish->n_offset);
        if (r == 0 && a->wish->softmax && (a->task->outputs[0].dtype != SL_DTYPE_F32 || a->task->outputs[0].shape.rank != 2))
                r = refuse(a, "output", &a->graph->values[a->graph->outputs[0]], &a->task->outputs[0],
                        "a Softmax is behind rows of float32");
        if (r == 0 && sl_graph_has_bodies(a->graph) && (a->resizes || a->turns || a->wish->n_scale || a->wish->n_offset))
                r = sl_error_set(a->error, ENOTSUP, "a network with If, Loop or Scan is not adapted");
        return r;
}

int sl_adapt(struct sl_graph *graph, const struct sl_task_ports *task, const struct sl_adapter_wish *wish,
        char ret_text[SL_ADAPTER_TEXT], struct sl_error *error)
{
        struct adapter a = {.graph = graph, .task = task, .wish = wish, .error = error, .text = ret_text};
        int r;

        ret_text[0] = 0;
        r = compare(&a);
        r = r < 0 ? r : rewrite_input(&a);
        r = r < 0 ? r : rewrite_output(&a);
        if (r < 0 || !ret_text[0])
                return r;
        r = sl_graph_infer(graph, error);
        return r < 0 ? r : sl_graph_check(graph, error);
}
