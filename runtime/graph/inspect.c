/* SPDX-License-Identifier: Apache-2.0 */
/* The facts are gathered once into a JSON tree; the text is a walk over the same tree, so that the two cannot differ. */
#include "inspect.h"

#include "base/error.h"
#include "base/labels.h"
#include "base/utf8.h"
#include "graph.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define LABELS_SHOWN 4
#define LABEL_BYTES  48

static json_t *shape_json(const struct sl_shape *shape)
{
        json_t *dims = json_array();

        for (uint32_t i = 0; i < shape->rank; i++)
                json_array_append_new(dims, shape->dims[i] < 0 ? json_null() : json_integer(shape->dims[i]));
        return dims;
}

/* Names come from files: what is no UTF-8 is shown as such. */
static json_t *name_json(const char *name)
{
        json_t *text = json_string(name);

        return text ? text : json_string("(not UTF-8)");
}

static json_t *labels_json(const char *labels)
{
        json_t *list = json_array();

        for (const char *end; (end = strchr(labels, SL_LABEL_END)); labels = end + 1)
                json_array_append_new(list, json_stringn(labels, (size_t)(end - labels)));
        return list;
}

static json_t *ports_json(const struct sl_graph *graph, const uint32_t *values, uint32_t n)
{
        json_t *ports = json_array();

        for (uint32_t i = 0; i < n; i++) {
                const struct sl_value *value = &graph->values[values[i]];
                const char *labels = sl_graph_labels_of(graph, value->name);

                json_array_append_new(
                        ports, json_pack("{s:o, s:s, s:o}", "name", name_json(value->name), "dtype",
                                       sl_dtype_name(value->tensor.dtype), "shape", shape_json(&value->tensor.shape)));
                if (*labels)
                        json_object_set_new(json_array_get(ports, i), "labels", labels_json(labels));
        }
        return ports;
}

static uint32_t count_nodes(const struct sl_graph *graph, uint32_t op)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                count += !graph->nodes[i].dead && (op == SL_OP_COUNT || graph->nodes[i].op == op);
        return count;
}

static json_t *operators_json(const struct sl_graph *raw, const struct sl_graph *optimised)
{
        json_t *operators = json_array();

        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                json_int_t before = count_nodes(raw, op), after = count_nodes(optimised, op);

                if (before || after)
                        json_array_append_new(
                                operators, json_pack("{s:s, s:I, s:I}", "name", sl_op_name(op), "before", before, "after", after));
        }
        return operators;
}

/* Matrices of 4 bits an element, two of which are in a byte. */
static void count_nibbles(const struct sl_graph *graph, uint64_t *parameters, uint64_t *bytes)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (node->dead || node->op != SL_OP_NIBBLE_MATMUL || !sl_graph_is_constant(graph, node->inputs[1]))
                        continue;
                *parameters += 2 * graph->values[node->inputs[1]].data_bytes;
                *bytes += graph->values[node->inputs[1]].data_bytes;
        }
}

/* Floating constants that some node still uses: shapes and axes are no parameters of a model. */
static void count_parameters(const struct sl_graph *graph, uint64_t *ret_parameters, uint64_t *ret_bytes)
{
        *ret_parameters = *ret_bytes = 0;
        for (uint32_t i = 0; i < graph->n_values; i++) {
                const struct sl_value *value = &graph->values[i];

                if (value->dead || value->kind != SL_VALUE_CONSTANT || !sl_dtype_is_float(value->tensor.dtype))
                        continue;
                *ret_parameters += sl_shape_elements(&value->tensor.shape);
                *ret_bytes += value->data_bytes;
        }
        count_nibbles(graph, ret_parameters, ret_bytes);
}

static int multiply_adds(const struct sl_graph *graph, uint64_t *ret_count, struct sl_error *error)
{
        struct sl_graph *one;
        int result = sl_graph_specialise(graph, 1, &one, error);

        if (result < 0)
                return result;
        *ret_count = 0;
        for (uint32_t i = 0; i < one->n_nodes; i++) {
                struct sl_node_desc desc;

                if (!one->nodes[i].dead && sl_graph_describe(one, i, &desc) == 0)
                        *ret_count += sl_op_multiply_adds(&desc);
        }
        sl_graph_free(one);
        return 0;
}

static json_t *plan_json(const struct sl_inspect_plan *plan)
{
        json_t *memory;

        json_t *nodes;

        if (!plan)
                return json_null();
        memory = json_array();
        nodes = json_array();
        for (uint32_t i = 0; i < plan->n_memory; i++)
                json_array_append_new(memory,
                        json_pack("{s:I, s:I, s:I, s:I}", "batch", (json_int_t)plan->memory[i].batch, "workspace_bytes",
                                (json_int_t)plan->memory[i].workspace_bytes, "bound_bytes", (json_int_t)plan->memory[i].bound_bytes,
                                "sum_bytes", (json_int_t)plan->memory[i].sum_bytes));
        for (uint32_t i = 0; i < plan->n_nodes; i++)
                json_array_append_new(
                        nodes, json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:I}", "name", name_json(plan->nodes[i].name), "operator",
                                       plan->nodes[i].operator, "backend", plan->nodes[i].backend, "algorithm",
                                       plan->nodes[i].algorithm ? plan->nodes[i].algorithm : "", "why", plan->nodes[i].why,
                                       "weights", plan->nodes[i].weights ? plan->nodes[i].weights : "", "saved_bytes",
                                       (json_int_t)plan->nodes[i].saved_bytes));
        return json_pack("{s:s, s:I, s:o, s:o}", "backend", plan->backend ? plan->backend : "", "weights_bytes",
                (json_int_t)plan->weights_bytes, "memory", memory, "nodes", nodes);
}

/* How the file says that it was made, and how good it was found to be. */
static json_t *variant_json(const struct sl_graph *graph)
{
        json_t *variant = json_object();

        for (uint32_t i = 0; i < graph->n_properties; i++)
                json_object_set_new(variant, strchr(graph->properties[i].key, '.') + 1, name_json(graph->properties[i].value));
        return variant;
}

static int gather(const struct sl_graph *raw, const struct sl_graph *optimised, const struct sl_inspect_plan *plan,
        json_t **ret_facts, struct sl_error *error)
{
        uint64_t parameters, bytes, adds;
        int result = multiply_adds(raw, &adds, error);

        if (result < 0)
                return result;
        count_parameters(raw, &parameters, &bytes);
        *ret_facts = json_pack("{s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:{s:I, s:I}, s:o, s:o, s:o}", "name",
                name_json(raw->name), "opset", (json_int_t)raw->opset, "ir_version", (json_int_t)raw->ir_version, "inputs",
                ports_json(raw, raw->inputs, raw->n_inputs), "outputs", ports_json(raw, raw->outputs, raw->n_outputs), "parameters",
                (json_int_t)parameters, "parameter_bytes", (json_int_t)bytes, "multiply_adds", (json_int_t)adds, "nodes", "before",
                (json_int_t)count_nodes(raw, SL_OP_COUNT), "after", (json_int_t)count_nodes(optimised, SL_OP_COUNT), "operators",
                operators_json(raw, optimised), "plan", plan_json(plan), "variant", variant_json(raw));
        return *ret_facts ? 0 : sl_error_set(error, ENOMEM, "no memory to describe the graph");
}

static json_int_t number(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static void print_shape(const json_t *dims, FILE *stream)
{
        for (size_t i = 0; i < json_array_size(dims); i++) {
                const json_t *dim = json_array_get(dims, i);

                fputs(i ? "," : "[", stream);
                if (json_is_null(dim))
                        fputs("N", stream);
                else
                        fprintf(stream, "%" JSON_INTEGER_FORMAT, json_integer_value(dim));
        }
        fputs(json_array_size(dims) ? "]" : "[]", stream);
}

/* The first ones. */
static void print_labels(const json_t *labels, FILE *stream)
{
        size_t n = json_array_size(labels);
        char shown[LABEL_BYTES];

        for (size_t i = 0; i < n && i < LABELS_SHOWN; i++)
                fprintf(stream, "%s%s", i ? ", " : " of ",
                        sl_utf8_clean(json_string_value(json_array_get(labels, i)), shown, sizeof(shown)));
        if (n > LABELS_SHOWN)
                fprintf(stream, " and %zu more", n - LABELS_SHOWN);
}

static void print_ports(const char *title, const json_t *ports, FILE *stream)
{
        for (size_t i = 0; i < json_array_size(ports); i++) {
                const json_t *port = json_array_get(ports, i);

                fprintf(stream, "%-14s%s %s ", i ? "" : title, text(port, "name"), text(port, "dtype"));
                print_shape(json_object_get(port, "shape"), stream);
                print_labels(json_object_get(port, "labels"), stream);
                fputc('\n', stream);
        }
}

static void print_operators(const json_t *operators, FILE *stream)
{
        for (size_t i = 0; i < json_array_size(operators); i++) {
                const json_t *row = json_array_get(operators, i);

                fprintf(stream, "  %-28s%8" JSON_INTEGER_FORMAT "%8" JSON_INTEGER_FORMAT "\n", text(row, "name"),
                        number(row, "before"), number(row, "after"));
        }
}

/* What the plan's own backend lacks, and what had a choice of algorithms. */
static void print_nodes(const json_t *plan, FILE *stream)
{
        const json_t *nodes = json_object_get(plan, "nodes");

        for (size_t i = 0; i < json_array_size(nodes); i++) {
                const json_t *node = json_array_get(nodes, i);
                bool elsewhere = strcmp(text(node, "backend"), text(plan, "backend")) != 0;

                if (elsewhere || *text(node, "why"))
                        fprintf(stream, "  on %-8s %s (%s)%s%s\n", text(node, "backend"), text(node, "name"),
                                text(node, "operator"), *text(node, "why") ? ": " : "", text(node, "why"));
        }
}

/* What has its weights in halves, and what should have them so. */
static void print_weights(const json_t *plan, FILE *stream)
{
        const json_t *nodes = json_object_get(plan, "nodes");
        json_int_t n = 0, saved = 0;

        for (size_t i = 0; i < json_array_size(nodes); i++) {
                const json_t *node = json_array_get(nodes, i);

                if (number(node, "saved_bytes"))
                        fprintf(stream, "  weights %-5s %s (%s): %" JSON_INTEGER_FORMAT " bytes saved\n", text(node, "weights"),
                                text(node, "name"), text(node, "operator"), number(node, "saved_bytes"));
                else if (*text(node, "weights"))
                        fprintf(stream, "  weights %-5s %s (%s): one of them is too large for float16\n", text(node, "weights"),
                                text(node, "name"), text(node, "operator"));
                n += number(node, "saved_bytes") > 0;
                saved += number(node, "saved_bytes");
        }
        if (n)
                fprintf(stream, "  weights of %" JSON_INTEGER_FORMAT " nodes in halves: %" JSON_INTEGER_FORMAT " bytes saved\n", n,
                        saved);
}

static void print_plan(const json_t *plan, FILE *stream)
{
        const json_t *memory = json_object_get(plan, "memory");

        if (json_is_null(plan))
                return;
        fprintf(stream, "plan          backend %s, weights %" JSON_INTEGER_FORMAT " bytes\n", text(plan, "backend"),
                number(plan, "weights_bytes"));
        for (size_t i = 0; i < json_array_size(memory); i++) {
                const json_t *row = json_array_get(memory, i);

                fprintf(stream, "  batch %-6" JSON_INTEGER_FORMAT "workspace %" JSON_INTEGER_FORMAT " bytes", number(row, "batch"),
                        number(row, "workspace_bytes"));
                if (number(row, "bound_bytes"))
                        fprintf(stream, ", at least %" JSON_INTEGER_FORMAT, number(row, "bound_bytes"));
                if (number(row, "sum_bytes"))
                        fprintf(stream, " (%" JSON_INTEGER_FORMAT " without reuse)", number(row, "sum_bytes"));
                fputc('\n', stream);
        }
        print_nodes(plan, stream);
        print_weights(plan, stream);
}

static void print_variant(json_t *variant, FILE *stream)
{
        const char *key, *title = "variant";
        json_t *value;

        json_object_foreach(variant, key, value)
        {
                fprintf(stream, "%-14s%s: %s\n", title, key, json_string_value(value));
                title = "";
        }
}

static void print_text(const json_t *facts, FILE *stream)
{
        const json_t *nodes = json_object_get(facts, "nodes");

        fprintf(stream, "model         %s (opset %" JSON_INTEGER_FORMAT ", IR version %" JSON_INTEGER_FORMAT ")\n",
                text(facts, "name"), number(facts, "opset"), number(facts, "ir_version"));
        print_ports("inputs", json_object_get(facts, "inputs"), stream);
        print_ports("outputs", json_object_get(facts, "outputs"), stream);
        fprintf(stream, "parameters    %" JSON_INTEGER_FORMAT " (%" JSON_INTEGER_FORMAT " bytes)\n", number(facts, "parameters"),
                number(facts, "parameter_bytes"));
        fprintf(stream, "multiply-adds %" JSON_INTEGER_FORMAT "\n", number(facts, "multiply_adds"));
        fprintf(stream, "nodes         %" JSON_INTEGER_FORMAT " before passes, %" JSON_INTEGER_FORMAT " after\n",
                number(nodes, "before"), number(nodes, "after"));
        fprintf(stream, "  %-28s%8s%8s\n", "operator", "before", "after");
        print_operators(json_object_get(facts, "operators"), stream);
        print_plan(json_object_get(facts, "plan"), stream);
        print_variant(json_object_get(facts, "variant"), stream);
}

int sl_inspect(const struct sl_graph *raw, const struct sl_graph *optimised, const struct sl_inspect_plan *plan, bool json,
        FILE *stream, struct sl_error *error)
{
        json_t *facts;
        int result = gather(raw, optimised, plan, &facts, error);

        if (result < 0)
                return result;
        if (!json)
                print_text(facts, stream);
        else if (json_dumpf(facts, stream, JSON_INDENT(2)) < 0 || fputc('\n', stream) == EOF)
                result = sl_error_set(error, EIO, "cannot write what was found");
        json_decref(facts);
        if (result == 0 && ferror(stream))
                result = sl_error_set(error, EIO, "cannot write what was found");
        return result;
}
