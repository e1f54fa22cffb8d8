/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling inspect` prints, as text and as JSON.
 */
#include "inspect.h"

#include "backend.h"
#include "base/error.h"
#include "builder.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct builder *model(void)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 6));
        builder_random(b, "w", DIMS(6, 4));
        builder_random(b, "v", DIMS(4));
        builder_node(b, "MatMul", "x,w", "m");
        builder_node(b, "Add", "m,v", "a");
        builder_node(b, "Relu", "a", "y");
        builder_output(b, "y");
        return b;
}

static char *inspect_model(struct builder *b, const struct sl_inspect_plan *plan, bool json)
{
        struct sl_graph *raw = builder_import(b), *optimised = builder_import(b);
        struct sl_error error = {0};
        char *printed = NULL;
        size_t n;
        FILE *stream = open_memstream(&printed, &n);

        cr_assert_eq(sl_passes_run(optimised, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0);
        cr_assert_eq(sl_inspect(raw, optimised, plan, json, stream, &error), 0, "%s", error.text);
        fclose(stream);
        sl_graph_free(raw);
        sl_graph_free(optimised);
        builder_free(b);
        return printed;
}

static char *inspect(const struct sl_inspect_plan *plan, bool json)
{
        return inspect_model(model(), plan, json);
}

/* The columns of x have the words r, a, b, c and d. */
static struct builder *labelled(void)
{
        static const char words[] = "rabcd";
        struct builder *b = builder_new_of_x(13, DIMS(-1, 5));
        Onnx__NodeProto *node = builder_node(b, "ZipMap", "x", "y");
        Onnx__AttributeProto *attr;

        node->domain = (char *)(uintptr_t) "ai.onnx.ml";
        builder_attr_int(b, node, "classlabels_strings", 0);
        attr = node->attribute[0];
        attr->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        attr->has_i = 0;
        attr->n_strings = 5;
        attr->strings = builder_alloc(b, 5 * sizeof(*attr->strings));
        for (size_t i = 0; i < 5; i++)
                attr->strings[i] = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t)words + i};
        builder_output(b, "y");
        return b;
}

Test(inspect, labels_are_listed_with_their_port)
{
        char *printed = inspect_model(labelled(), NULL, false);
        json_t *facts;
        const char *last;

        cr_expect(strstr(printed, "inputs        x float32 [N,5]\n"), "%s", printed);
        cr_expect(strstr(printed, "outputs       y float32 [N,5] of r, a, b, c and 1 more\n"), "%s", printed);
        free(printed);
        printed = inspect_model(labelled(), NULL, true);
        facts = json_loads(printed, 0, NULL);
        cr_assert_eq(json_unpack(facts, "{s:[{s:[s,s,s,s,s!]}]}", "outputs", "labels", &last, &last, &last, &last, &last), 0, "%s",
                printed);
        cr_expect_str_eq(last, "d");
        json_decref(facts);
        free(printed);
}

Test(inspect, text_names_ports_parameters_work_and_operators)
{
        char *printed = inspect(NULL, false);

        cr_assert_str_eq(printed,
                "model         test (opset 13, IR version 7)\n"
                "inputs        x float32 [N,6]\n"
                "outputs       y float32 [N,4]\n"
                "parameters    28 (112 bytes)\n"
                "multiply-adds 24\n"
                "nodes         3 before passes, 1 after\n"
                "  operator                      before   after\n"
                "  MatMul                             1       1\n"
                "  Relu                               1       0\n"
                "  Add                                1       0\n",
                "%s", printed);
        free(printed);
}

Test(inspect, json_has_the_same_facts_and_the_plan_that_was_passed_in)
{
        const struct sl_inspect_memory memory[] = {
                {.batch = 1, .workspace_bytes = 64}, {.batch = 8, .workspace_bytes = 512, .sum_bytes = 900}};
        const struct sl_inspect_plan plan = {.backend = "cpu", .weights_bytes = 128, .memory = memory, .n_memory = 2};
        char *printed = inspect(&plan, true);
        json_t *facts = json_loads(printed, 0, NULL);
        json_int_t before, after, adds, weights, workspace;
        const char *input, *dtype;
        json_t *shape;

        cr_assert(facts, "%s", printed);
        cr_assert_eq(json_unpack(facts, "{s:{s:I, s:I}, s:I, s:{s:I, s:[o, {s:I}]}, s:[{s:s, s:s, s:o}]}", "nodes", "before",
                             &before, "after", &after, "multiply_adds", &adds, "plan", "weights_bytes", &weights, "memory", &shape,
                             "workspace_bytes", &workspace, "inputs", "name", &input, "dtype", &dtype, "shape", &shape),
                0, "%s", printed);
        cr_assert_eq(before, 3);
        cr_assert_eq(after, 1);
        cr_assert_eq(adds, 24);
        cr_assert_eq(weights, 128);
        cr_assert_eq(workspace, 512);
        cr_assert_str_eq(input, "x");
        cr_assert_str_eq(dtype, "float32");
        cr_assert(json_is_null(json_array_get(shape, 0)));
        cr_assert_eq(json_integer_value(json_array_get(shape, 1)), 6);
        json_decref(facts);
        free(printed);
}

Test(inspect, a_node_that_another_backend_runs_is_named_with_it)
{
        const struct sl_inspect_node nodes[] = {
                {.name = "m", .operator= "MatMul", .backend = "cpu"}, {.name = "y", .operator= "Acos", .backend = "ref"}};
        const struct sl_inspect_plan plan = {.backend = "cpu", .nodes = nodes, .n_nodes = 2};
        char *printed = inspect(&plan, false);

        cr_assert(strstr(printed, "on ref      y (Acos)\n"), "%s", printed);
        cr_assert(!strstr(printed, "m (MatMul)"), "%s", printed);
        free(printed);
}

/* A column of 16 elements in half as many bytes, and its scale. */
Test(inspect, weights_of_4_bits_are_parameters)
{
        static const char *const names[] = {"K", "N", "block_size"};
        static const int64_t numbers[] = {16, 3, 16};
        static const uint8_t bytes[3 * 8] = {1};
        struct builder *b = builder_new_of_x(17, DIMS(-1, 16));
        struct sl_inspect_plan plan = {.backend = "cpu"};
        Onnx__NodeProto *node;
        char *text;

        builder_raw(b, "b", SL_DTYPE_U8, DIMS(3, 1, 8), bytes);
        builder_random(b, "scales", DIMS(3));
        node = builder_node(b, "MatMulNBits", "x,b,scales", "y");
        node->domain = (char *)(uintptr_t) "com.microsoft";
        for (int i = 0; i < 3; i++)
                builder_attr_int(b, node, names[i], numbers[i]);
        builder_output(b, "y");
        text = inspect_model(b, &plan, false);
        cr_expect(strstr(text, "parameters    51 (36 bytes)\n"), "%s", text);
        free(text);
}
