/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that nobody wrote in good faith. Each must give an error or a graph, never a crash, and no memory that the file does not
 * account for. Meant to run under AddressSanitizer and UndefinedBehaviorSanitizer.
 */
#include "backend.h"
#include "base/error.h"
#include "builder.h"
#include "import.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FLIPS 4000

/* What the child process does with a file. */
static int swallow(const uint8_t *bytes, size_t n_bytes, struct sl_error *error)
{
        /* A copy of exactly that size, so that a read behind the end is seen. */
        uint8_t *copy = malloc(n_bytes ? n_bytes : 1);
        struct sl_graph *graph = NULL, *special = NULL;
        int result;

        cr_assert(copy);
        if (n_bytes)
                memcpy(copy, bytes, n_bytes);
        result = sl_import_onnx_bytes(copy, n_bytes, NULL, &graph, error);
        free(copy);
        if (result < 0) {
                cr_assert_null(graph);
                cr_assert(error->text[0], "result %d has no text", result);
                return result;
        }
        result = sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, error);
        cr_assert(result == 0 || result == -ENOMEM || result == -ERANGE || result == -EINVAL || result == -ENOTSUP, "%d: %s",
                result, error->text);
        if (result == 0)
                cr_assert_eq(sl_graph_check(graph, error), 0, "what is accepted is sound: %s", error->text);
        if (result == 0)
                result = sl_graph_specialise(graph, 2, &special, error);
        if (result == 0)
                cr_assert_eq(sl_graph_check(special, error), 0, "what is accepted is sound: %s", error->text);
        sl_graph_free(special);
        sl_graph_free(graph);
        return result;
}

/* A small network with most kinds of fields. */
static struct builder *network(void)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2, 4, 4));
        builder_random(b, "w", DIMS(3, 2, 3, 3));
        builder_random(b, "v", DIMS(1, 3, 1, 1));
        builder_ints(b, "rest", DIMS(2), (int64_t[]){0, -1});
        builder_random(b, "fc", DIMS(12, 5));
        builder_attr_string(b, builder_node(b, "Conv", "x,w", "c"), "auto_pad", "VALID");
        builder_node(b, "Add", "c,v", "d");
        builder_attr_float(b, builder_node(b, "LeakyRelu", "d", "e"), "alpha", 0.5f);
        builder_node(b, "Reshape", "e,rest", "f");
        builder_attr_int(b, builder_node(b, "Gemm", "f,fc", "g"), "transA", 0);
        builder_attr_int(b, builder_node(b, "Softmax", "g", "y"), "axis", 1);
        builder_output(b, "y");
        return b;
}

Test(hostile, the_network_itself_is_accepted)
{
        struct builder *b = network();
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);

        cr_assert_eq(swallow(bytes, n_bytes, &error), 0, "%s", error.text);
        builder_free(b);
}

Test(hostile, a_file_cut_off_at_any_length_is_refused_or_whole)
{
        struct builder *b = network();
        struct sl_error error = {0};
        size_t n_bytes, accepted = 0;
        uint8_t *bytes = builder_pack(b, &n_bytes);

        for (size_t n = 0; n < n_bytes; n++)
                accepted += swallow(bytes, n, &error) == 0;
        /* The graph is one field: without its end there is none. */
        cr_assert_leq(accepted, 16u);
        builder_free(b);
}

Test(hostile, a_file_with_flipped_bytes_is_refused_with_a_cause_or_a_sound_graph)
{
        struct builder *b = network();
        struct sl_error error = {0};
        size_t n_bytes;
        uint32_t accepted = 0;
        uint8_t *bytes = builder_pack(b, &n_bytes);
        uint64_t state = 12345;

        for (uint32_t i = 0; i < FLIPS; i++) {
                size_t at[4];
                uint8_t old[4];

                for (uint32_t k = 0; k < 1 + i % 4; k++) {
                        state = state * 6364136223846793005ull + 1442695040888963407ull;
                        at[k] = (state >> 33) % n_bytes;
                        old[k] = bytes[at[k]];
                        bytes[at[k]] = (uint8_t)(state >> 25);
                }
                accepted += swallow(bytes, n_bytes, &error) == 0;
                for (uint32_t k = 1 + i % 4; k-- > 0;)
                        bytes[at[k]] = old[k];
        }
        cr_assert(accepted > FLIPS / 100 && accepted < FLIPS - FLIPS / 100, "%u of %u were accepted", accepted, FLIPS);
        builder_free(b);
}

Test(hostile, cycles_and_missing_values_are_refused)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Add", "x,c", "a");
        builder_node(b, "Relu", "a", "c");
        builder_output(b, "c");
        builder_expect(b, -EBADMSG, "cycle");
        builder_free(b);
        b = builder_new(13);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Add", "x,nowhere", "y");
        builder_output(b, "y");
        builder_expect(b, -EBADMSG, "input \"nowhere\" is made by nothing");
        builder_free(b);
        b = builder_new(13);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Relu", "y", "y");
        builder_output(b, "y");
        builder_expect(b, -EBADMSG, "cycle");
        builder_free(b);
}

static int import_two_opsets(int64_t first, int64_t second, struct sl_error *error)
{
        struct builder *b = builder_new(first);
        Onnx__OperatorSetIdProto once = *b->model.opset_import[0], again = once, *both[] = {&once, &again};
        size_t n_bytes;
        int result;

        again.version = second;
        b->model.opset_import = both;
        b->model.n_opset_import = 2;
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        const uint8_t *bytes = builder_pack(b, &n_bytes);

        result = swallow(bytes, n_bytes, error);
        builder_free(b);
        return result;
}

Test(hostile, a_domain_comes_twice_in_one_version_only)
{
        struct sl_error error = {""};

        cr_expect_eq(import_two_opsets(13, 13, &error), 0, "%s", error.text);
        cr_expect_eq(import_two_opsets(13, 14, &error), -EBADMSG);
        cr_expect(strstr(error.text, "in opset 13 and in opset 14"), "%s", error.text);
}

Test(hostile, a_value_that_is_made_twice_is_refused)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Relu", "x", "y");
        builder_node(b, "Exp", "x", "y");
        builder_output(b, "y");
        builder_expect(b, -EBADMSG, "value \"y\" is made twice");
        builder_free(b);
}

static struct builder *with_weights(int64_t a, int64_t b_dim, size_t n_bytes)
{
        struct builder *b = builder_new(13);
        Onnx__TensorProto *tensor = builder_random(b, "w", DIMS(4));

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 4));
        tensor->n_dims = 2;
        tensor->dims = builder_alloc(b, 2 * sizeof(int64_t));
        tensor->dims[0] = a;
        tensor->dims[1] = b_dim;
        tensor->raw_data.len = n_bytes;
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        return b;
}

static void expect_weights(int64_t a, int64_t b_dim, size_t n_bytes, int result, const char *text)
{
        struct builder *b = with_weights(a, b_dim, n_bytes);

        builder_expect(b, result, text);
        builder_free(b);
}

Test(hostile, sizes_that_contradict_the_data_are_refused)
{
        expect_weights(4, 1, 15, -EBADMSG, "15 bytes of data, its shape wants 16");
        expect_weights(4, 2, 16, -EBADMSG, "16 bytes of data, its shape wants 32");
        expect_weights(-4, -1, 16, -EBADMSG, "dimension 0 is -4");
}

Test(hostile, dimensions_that_overflow_are_refused)
{
        expect_weights(INT64_MAX, 4, 16, -E2BIG, "overflow");
        expect_weights(1ll << 32, 1ll << 32, 0, -E2BIG, "overflow");
        expect_weights(1ll << 30, 1ll << 30, 16, -E2BIG, "at most");
}

Test(hostile, a_claim_of_10_gigabytes_takes_no_memory)
{
        struct sl_graph_limits wide = sl_graph_limits_default;
        struct builder *b = with_weights(4, 640ll << 20, 16);
        struct rusage before, after;
        struct sl_graph *graph = NULL;
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);

        /* Even where the limits would allow it: the data are not there. */
        wide.tensor_bytes = wide.constant_bytes = 1ull << 40;
        getrusage(RUSAGE_SELF, &before);
        cr_assert_eq(sl_import_onnx_bytes(bytes, n_bytes, &wide, &graph, &error), -EBADMSG, "%s", error.text);
        getrusage(RUSAGE_SELF, &after);
        cr_assert_lt(after.ru_maxrss - before.ru_maxrss, 64l << 10);
        builder_free(b);
        /* Nor does an operator that makes much out of little. */
        b = builder_new(13);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1));
        builder_ints(b, "shape", DIMS(2), (int64_t[]){50000, 50000});
        builder_floats(b, "one", DIMS(1), (float[]){1});
        builder_node(b, "Expand", "one,shape", "e");
        builder_node(b, "Add", "e,x", "y");
        builder_output(b, "y");
        builder_expect(b, -E2BIG, "larger than");
        builder_free(b);
}

Test(hostile, many_small_nodes_over_the_limit_are_refused_before_they_are_parsed)
{
        struct sl_graph_limits few = sl_graph_limits_default;
        struct builder *b = network();
        struct sl_graph *graph = NULL;
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);

        few.nodes = 5;
        cr_assert_eq(sl_import_onnx_bytes(bytes, n_bytes, &few, &graph, &error), -E2BIG);
        cr_assert(strstr(error.text, "more than 5 nodes"), "%s", error.text);
        few.nodes = 100;
        few.values = 6;
        cr_assert_eq(sl_import_onnx_bytes(bytes, n_bytes, &few, &graph, &error), -E2BIG);
        few.values = 100;
        few.file_bytes = 100;
        cr_assert_eq(sl_import_onnx_bytes(bytes, n_bytes, &few, &graph, &error), -E2BIG);
        few.file_bytes = 1 << 20;
        few.constant_bytes = 100;
        cr_assert_eq(sl_import_onnx_bytes(bytes, n_bytes, &few, &graph, &error), -E2BIG);
        builder_free(b);
}

/* Writes `depth` graphs into each other: graph (7), node (1), attribute (5), its graph (6), node, ... from the inside out. */
static size_t nest(uint8_t *bytes, size_t capacity, uint32_t depth)
{
        static const uint8_t tags[] = {0x32, 0x2a, 0x0a};
        size_t at = capacity;

        for (uint32_t i = 0; i < depth; i++) {
                size_t length = capacity - at;
                uint8_t varint[10];
                size_t n = 0;

                do {
                        varint[n++] = (uint8_t)((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
                        length >>= 7;
                } while (length);
                at -= n;
                memcpy(bytes + at, varint, n);
                bytes[--at] = i + 1 == depth ? 0x3a : tags[i % 3];
        }
        memmove(bytes, bytes + at, capacity - at);
        return capacity - at;
}

Test(hostile, deep_nesting_is_refused_before_the_parser_recurses)
{
        size_t capacity = 1 << 20;
        uint8_t *bytes = malloc(capacity);
        struct sl_error error = {0};
        size_t n = nest(bytes, capacity, 3 * 50000 + 1);

        cr_assert_eq(swallow(bytes, n, &error), -EBADMSG);
        cr_assert(strstr(error.text, "nested deeper than"), "%s", error.text);
        free(bytes);
}

Test(hostile, a_singular_field_that_comes_twice_is_refused)
{
        struct builder *b = network();
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes), *twice = builder_alloc(b, 2 * n_bytes);

        memcpy(twice, bytes, n_bytes);
        memcpy(twice + n_bytes, bytes, n_bytes);
        cr_assert_eq(swallow(twice, 2 * n_bytes, &error), -EBADMSG);
        cr_assert(strstr(error.text, "comes twice"), "%s", error.text);
        builder_free(b);
}

Test(hostile, empty_messages_by_the_million_are_refused)
{
        size_t n = 4 << 20, at = 0;
        uint8_t *bytes = malloc(n + 16);
        struct sl_error error = {0};

        /* Graph of n/2 empty initializers, two bytes each, of which each would be a struct of 250. */
        bytes[at++] = 0x3a;
        for (size_t length = n; length; length >>= 7)
                bytes[at++] = (uint8_t)((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
        for (size_t i = 0; i < n; i += 2) {
                bytes[at++] = 0x2a;
                bytes[at++] = 0;
        }
        cr_assert_lt(swallow(bytes, at, &error), 0);
        free(bytes);
}

Test(hostile, expansion_by_a_chain_of_constants_has_a_budget)
{
        struct builder *b = builder_new(13);
        char from[16] = "w", to[16], inputs[40];

        builder_input(b, "x", SL_DTYPE_F32, DIMS(1));
        builder_random(b, "w", DIMS(1024));
        /* Each doubles: 2^18 of 4 KiB would be 1 GiB, and all of them together 2 GiB. */
        for (uint32_t i = 0; i < 18; i++) {
                snprintf(to, sizeof(to), "c%u", i);
                snprintf(inputs, sizeof(inputs), "%s,%s", from, from);
                builder_attr_int(b, builder_node(b, "Concat", inputs, to), "axis", 0);
                memcpy(from, to, sizeof(to));
        }
        snprintf(inputs, sizeof(inputs), "%s,x", from);
        builder_node(b, "Add", inputs, "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);
        uint64_t bytes = 0;

        cr_assert_eq(sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, NULL), 0);
        for (uint32_t i = 0; i < graph->n_values; i++)
                bytes += graph->values[i].data_bytes;
        cr_assert_leq(bytes, 65ull << 20);
        cr_assert_gt(count_ops(graph, SL_OP_CONCAT), 0u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(hostile, operators_that_carry_graphs_are_refused)
{
        struct builder *b = network();
        Onnx__AttributeProto *attr;
        Onnx__GraphProto inner = ONNX__GRAPH_PROTO__INIT;

        builder_attr_int(b, b->graph.node[0], "then_branch", 0);
        attr = b->graph.node[0]->attribute[b->graph.node[0]->n_attribute - 1];
        attr->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
        attr->g = &inner;
        builder_expect(b, -ENOTSUP, "operators that carry a graph");
        builder_free(b);
}

Test(hostile, a_tensor_without_elements_has_bounded_dimensions_too)
{
        expect_weights(INT64_MAX, 0, 0, -E2BIG, "overflow");
}
