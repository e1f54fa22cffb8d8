/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open dimensions: the batch, those beside it, the sizes that they are given, and the signature that numbers them by name.
 */
#include "base/dim_sizes.h"
#include "base/error.h"
#include "builder.h"
#include "import.h"
#include "pass_bench.h"
#include "signature.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(import, an_open_dimension_beside_the_batch_needs_a_size)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 3, -2, 4));

        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        builder_expect(
                b, -ENOTSUP, "input \"x\": dimension 2 is open, and only the batch may be: give it a size, as in \"M=SIZE\"");
        builder_free(b);
        b = builder_new(13);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3));
        builder_input(b, "z", SL_DTYPE_F32, DIMS(-2, 3));
        builder_node(b, "Add", "x,z", "y");
        builder_output(b, "y");
        builder_expect(b, -ENOTSUP, "input \"z\": dimension 0 is open");
        builder_free(b);
}

static struct sl_graph *import_bound(struct builder *b, const char *text)
{
        struct sl_dim_sizes sizes;
        struct sl_error error = {""};
        struct sl_graph *graph = NULL;
        size_t n_bytes;
        const uint8_t *bytes = builder_pack(b, &n_bytes);

        cr_assert_eq(sl_dim_sizes_parse(text, &sizes, &error), 0, "%s", error.text);
        cr_assert_eq(sl_import_onnx_bytes_bound(bytes, n_bytes, NULL, &sizes, &graph, &error), 0, "%s", error.text);
        return graph;
}

Test(import, a_size_binds_every_dimension_of_its_name)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, -2, 3));
        struct sl_graph *graph;

        builder_input(b, "z", SL_DTYPE_F32, DIMS(-2, 1));
        builder_node(b, "Add", "x,z", "y");
        builder_output(b, "y");
        graph = import_bound(b, "M=7");
        expect_text(graph, "y = Add(x [N,7,3], z [7,1]) -> y [N,7,3]\n");
        sl_graph_free(graph);
        graph = import_bound(b, "M=7,N=2");
        expect_text(graph, "y = Add(x [2,7,3], z [7,1]) -> y [2,7,3]\n");
        sl_graph_free(graph);
        builder_free(b);
}

/* Unless the limits say so it is another model's. */
Test(import, a_size_of_a_name_that_no_input_has_is_the_callers_mistake)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 3));
        struct sl_graph_limits limits = sl_graph_limits_default;
        struct sl_dim_sizes sizes;
        struct sl_error error = {""};
        struct sl_graph *graph = NULL;
        const uint8_t *bytes;
        size_t n_bytes;

        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        graph = import_bound(b, "width=7");
        graph = sl_graph_free(graph);
        bytes = builder_pack(b, &n_bytes);
        limits.sizes_known = true;
        cr_assert_eq(sl_dim_sizes_parse("width=7", &sizes, &error), 0, "%s", error.text);
        cr_expect_eq(sl_import_onnx_bytes_bound(bytes, n_bytes, &limits, &sizes, &graph, &error), -EINVAL);
        cr_expect_str_eq(error.text, "shapes: no input has an open dimension \"width\": x [N,3]");
        builder_free(b);
}

/* y of as many rows as the batch counts, and at most @most. */
static struct builder *counted(int64_t most)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 3));

        builder_ints(b, "most", 0, NULL, &most);
        builder_ints(b, "zero", 0, NULL, (const int64_t[]){0});
        builder_ints(b, "one", 0, NULL, (const int64_t[]){1});
        builder_node(b, "Shape", "x", "shape");
        builder_node(b, "Gather", "shape,zero", "size");
        builder_node(b, "Min", "size,most", "count");
        builder_node(b, "Range", "zero,count,one", "numbers");
        builder_node(b, "Gather", "x,numbers", "y");
        builder_output(b, "y");
        return b;
}

/* No rule of shapes knows what a Range counts to; several batch sizes tell. */
Test(import, a_dimension_that_the_file_computes_is_the_batch_where_it_is_so_for_every_size)
{
        for (int is_clipped = 0; is_clipped < 2; is_clipped++) {
                struct builder *b = counted(is_clipped ? 1000 : INT64_MAX);
                struct sl_graph *graph = builder_import(b), *special;
                const struct sl_shape *y = &graph->values[graph->outputs[0]].tensor.shape;

                cr_assert_eq(y->rank, 2);
                cr_expect_eq(y->dims[0], is_clipped ? SL_DIM_UNKNOWN : SL_DIM_BATCH);
                cr_expect_eq(y->dims[1], 3);
                cr_assert_eq(sl_graph_specialise(graph, 2000, &special, NULL), 0);
                cr_expect_eq(special->values[special->outputs[0]].tensor.shape.dims[0], is_clipped ? 1000 : 2000);
                sl_graph_free(special);
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* The signature of x [N, M, 3] and @z, and of w [N, 5]. */
static struct sl_signature signature_beside(uint32_t rank, const int64_t *z)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, -2, 3));
        struct sl_signature signature;
        struct sl_error error = {""};
        size_t n_bytes;
        const uint8_t *bytes;

        builder_input(b, "z", SL_DTYPE_I64, rank, z);
        builder_node(b, "Relu", "x", "y");
        builder_input(b, "w", SL_DTYPE_F32, DIMS(-1, 5));
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_output(b, "y");
        bytes = builder_pack(b, &n_bytes);
        cr_assert_eq(sl_import_signature_bytes(bytes, n_bytes, NULL, &signature, &error), 0, "%s", error.text);
        cr_assert_eq(signature.n_inputs, 3);
        builder_free(b);
        return signature;
}

Test(import, a_signature_numbers_open_dimensions_by_name)
{
        struct sl_signature signature = signature_beside(DIMS(-1, -2));

        cr_assert_eq(signature.n_symbols, 1);
        cr_assert_str_eq(signature.symbols[0], "M");
        cr_assert(signature.has_batch);
        cr_assert_str_eq(signature.batch, "N");
        cr_assert_eq(signature.inputs[0].tensor.shape.dims[0], SL_DIM_BATCH);
        cr_assert_eq(signature.inputs[0].tensor.shape.dims[1], SL_DIM_UNKNOWN);
        cr_assert_eq(signature.inputs[0].symbols[1], 0);
        cr_assert_eq(signature.inputs[0].symbols[2], SL_SYMBOL_NONE);
        cr_assert_eq(signature.inputs[1].symbols[1], 0);
        cr_assert_eq(signature.inputs[2].tensor.shape.dims[0], SL_DIM_BATCH);
        cr_expect(signature.outputs[0].described);
        cr_expect_not(signature.outputs[1].described);
        sl_signature_deinit(&signature);
}

static void expect_no_batch(const struct sl_signature *signature)
{
        uint8_t number = signature->inputs[0].symbols[0];

        cr_assert_eq(signature->n_symbols, 2);
        cr_assert_not(signature->has_batch);
        cr_assert_lt(number, 2);
        cr_assert_str_eq(signature->symbols[number], "N");
        cr_assert_eq(signature->inputs[0].tensor.shape.dims[0], SL_DIM_UNKNOWN);
        cr_assert_eq(signature->inputs[2].symbols[0], number);
}

Test(import, what_does_not_lead_all_inputs_or_is_a_size_of_anything_else_is_no_batch)
{
        struct sl_signature without = signature_beside(DIMS(-2, 1)), scalar = signature_beside(0, NULL),
                            behind = signature_beside(DIMS(2, -1)), twice = signature_beside(DIMS(-1, -1));

        expect_no_batch(&without);
        expect_no_batch(&scalar);
        expect_no_batch(&behind);
        expect_no_batch(&twice);
        cr_assert_eq(behind.inputs[1].symbols[1], behind.inputs[0].symbols[0]);
        sl_signature_deinit(&without);
        sl_signature_deinit(&scalar);
        sl_signature_deinit(&behind);
        sl_signature_deinit(&twice);
}

/* What Paddle writes for each dimension that it does not know. */
Test(import, a_question_mark_names_no_dimension)
{
        struct builder *b = builder_new_of_x(13, DIMS(-3, 3, -3, -3));
        struct sl_signature signature;
        struct sl_error error = {""};
        size_t n_bytes;
        const uint8_t *bytes;

        builder_node(b, "Relu", "x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-3, 3, -3, -3));
        bytes = builder_pack(b, &n_bytes);
        cr_assert_eq(sl_import_signature_bytes(bytes, n_bytes, NULL, &signature, &error), 0, "%s", error.text);
        cr_assert_eq(signature.inputs[0].tensor.shape.dims[0], SL_DIM_BATCH);
        cr_assert_eq(signature.n_symbols, 2);
        cr_assert_str_eq(signature.symbols[signature.inputs[0].symbols[2]], "x:2");
        cr_assert_str_eq(signature.symbols[signature.inputs[0].symbols[3]], "x:3");
        sl_signature_deinit(&signature);
        builder_free(b);
}

Test(sizes, are_read_and_printed)
{
        struct sl_dim_sizes sizes;
        char text[SL_DIM_SIZES_TEXT_MAX];

        cr_assert_eq(sl_dim_sizes_parse("sequence=128,images:2=224", &sizes, NULL), 0);
        cr_assert_eq(sl_dim_sizes_find(&sizes, "images:2"), 224);
        cr_assert_eq(sl_dim_sizes_find(&sizes, "images"), SL_DIM_SIZE_NONE);
        cr_assert_str_eq(sl_dim_sizes_print(&sizes, text), "sequence=128,images:2=224");
        cr_assert_eq(sl_dim_sizes_parse("", &sizes, NULL), 0);
        cr_assert_eq(sizes.n, 0);
}

Test(sizes, refuse_what_is_no_size)
{
        static const char *const wrong[] = {"a", "a=", "=3", "a=-1", "a=2147483649", "a=1x", "a=1,a=2", "a=1,,b=2",
                "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", "a=99999999999999999999"};
        struct sl_dim_sizes sizes = {.n = 77};

        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                struct sl_error error = {""};
                int r = sl_dim_sizes_parse(wrong[i], &sizes, &error);

                cr_expect(r == -EINVAL || r == -E2BIG, "%s: %d", wrong[i], r);
                cr_expect(error.text[0] && sizes.n == 77);
        }
}
