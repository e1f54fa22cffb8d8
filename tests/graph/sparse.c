/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse tensors: the dense ones that they describe, and lies about them.
 */
#include "base/error.h"
#include "builder.h"
#include "import.h"

#include <criterion/criterion.h>
#include <string.h>

/* y = x [N,4] * w [4,2], of which two elements are there; @places: [2] or [2,2]. */
static struct builder *product(uint32_t rank, const int64_t places[4], Onnx__SparseTensorProto **ret_sparse)
{
        struct builder *b = builder_new_of_x(17, DIMS(-1, 4));
        Onnx__SparseTensorProto *sparse = builder_alloc(b, sizeof(*sparse));

        onnx__sparse_tensor_proto__init(sparse);
        sparse->values = builder_floats(b, "w", DIMS(2), (float[]){1.5f, -2});
        sparse->indices = builder_ints(b, "places", rank, (int64_t[]){2, 2}, places);
        b->graph.n_initializer -= 2;
        sparse->n_dims = 2;
        sparse->dims = builder_alloc(b, 2 * sizeof(int64_t));
        sparse->dims[0] = 4;
        sparse->dims[1] = 2;
        b->graph.sparse_initializer = builder_alloc(b, sizeof(void *));
        b->graph.sparse_initializer[0] = sparse;
        b->graph.n_sparse_initializer = 1;
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        *ret_sparse = sparse;
        return b;
}

static void expect_product(struct builder *b)
{
        struct sl_graph *graph = builder_import(b);
        const float x[4] = {1, 2, 3, 4};
        float y[2];

        evaluate_floats(graph, 1, x, y, 2);
        cr_expect(y[0] == -8 && y[1] == 1.5f, "%g %g", (double)y[0], (double)y[1]);
        sl_graph_free(graph);
}

Test(sparse, tensors_are_dense_by_either_kind_of_index)
{
        Onnx__SparseTensorProto *sparse;
        struct builder *b = product(1, (int64_t[]){1, 6, 0, 0}, &sparse);

        expect_product(b);
        builder_free(b);
        b = product(2, (int64_t[]){0, 1, 3, 0}, &sparse);
        expect_product(b);
        builder_free(b);
}

Test(sparse, values_of_a_constant_are_dense)
{
        Onnx__SparseTensorProto *sparse;
        struct builder *b = product(1, (int64_t[]){1, 6, 0, 0}, &sparse);
        Onnx__NodeProto *node = builder_node(b, "Constant", "", "w");

        node->n_input = 0;
        builder_attr_int(b, node, "sparse_value", 0);
        node->attribute[0]->has_i = false;
        node->attribute[0]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR;
        node->attribute[0]->sparse_tensor = sparse;
        b->graph.n_sparse_initializer = 0;
        expect_product(b);
        builder_free(b);
}

Test(sparse, tensors_that_lie_about_their_places_are_refused)
{
        static const struct {
                uint32_t rank;
                int64_t places[4];
                const char *text;
        } lies[] = {
                {1, {1, 8}, "sparse tensor \"w\": index 8 of element 1 is outside [4,2]"},
                {1, {-1, 6}, "index -1 of element 0 is outside [4,2]"},
                {1, {6, 1}, "element 1 has place 1, the one before it 6: want them ascending"},
                {1, {6, 6}, "element 1 has place 6, the one before it 6: want them ascending"},
                {2, {0, 2, 3, 0}, "index 2 of element 0 is outside [4,2]"},
                {2, {0, 1, INT64_MAX, 0}, "of element 1 is outside [4,2]"},
                {2, {3, 0, 0, 1}, "element 1 has place 1, the one before it 6"},
        };

        for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
                Onnx__SparseTensorProto *sparse;
                struct builder *b = product(lies[i].rank, lies[i].places, &sparse);

                builder_expect(b, -EBADMSG, lies[i].text);
                builder_free(b);
        }
}

Test(sparse, tensors_are_refused_when_their_parts_do_not_fit)
{
        Onnx__SparseTensorProto *sparse;
        struct builder *b = product(1, (int64_t[]){1, 6, 0, 0}, &sparse);

        sparse->indices->data_type = SL_DTYPE_F64;
        builder_expect(b, -EBADMSG, "sparse tensor \"w\": its indices are float64, want int64");
        builder_free(b);
        b = product(2, (int64_t[]){0, 1, 3, 0}, &sparse);
        sparse->n_dims = 1;
        builder_expect(b, -EBADMSG, "of rank 1: values are [2] and indices [2,2], want [n] and [n] or [n,rank]");
        sparse->indices = NULL;
        builder_expect(b, -EBADMSG, "sparse tensor \"w\" has no values or no indices");
        builder_free(b);
}

Test(sparse, tensors_take_no_more_than_dense_ones_may)
{
        Onnx__SparseTensorProto *sparse;
        struct builder *b = product(1, (int64_t[]){1, 6, 0, 0}, &sparse);

        sparse->dims[0] = 1ll << 40;
        builder_expect(b, -E2BIG, "tensor \"w\": 8796093022208 bytes, at most ");
        sparse->dims[0] = INT64_MAX;
        builder_expect(b, -E2BIG, "tensor \"w\": its dimensions overflow");
        builder_free(b);
}

Test(sparse, tensors_are_no_defaults_of_inputs)
{
        Onnx__SparseTensorProto *sparse;
        struct builder *b = product(1, (int64_t[]){1, 6, 0, 0}, &sparse);

        builder_input(b, "w", SL_DTYPE_F32, DIMS(4, 2));
        builder_expect(b, -EBADMSG, "value \"w\" is made twice");
        builder_free(b);
}

/* w: five elements that a file has in few bytes, as raw data or as numbers of which each is a byte. */
static void expect_unpacked(uint32_t dtype, const uint8_t *packed, size_t n, bool raw, const int8_t wanted[5])
{
        struct builder *b = builder_new_of_x(25, DIMS(5));
        Onnx__TensorProto *w = builder_raw(b, "w", (int32_t)dtype, DIMS(5), packed);
        struct sl_graph *graph;
        uint32_t constant = 0;

        w->raw_data.len = n;
        if (!raw) {
                w->has_raw_data = false;
                w->n_int32_data = n;
                w->int32_data = builder_alloc(b, n * sizeof(int32_t));
                for (size_t i = 0; i < n; i++)
                        w->int32_data[i] = packed[i];
        }
        builder_attr_int(b, builder_node(b, "Cast", "w", "f"), "to", SL_DTYPE_F32);
        builder_node(b, "Add", "x,f", "y");
        builder_output(b, "y");
        graph = builder_import(b);
        while (strcmp(graph->values[constant].name, "w"))
                constant++;
        cr_expect_arr_eq(graph->values[constant].data, wanted, 5);
        sl_graph_free(graph);
        if (raw) {
                w->raw_data.len = n + 1;
                builder_expect(b, -EBADMSG, "bytes of data, its shape wants ");
        } else {
                w->n_int32_data = n - 1;
                builder_expect(b, -EBADMSG, "elements of data, its shape wants ");
        }
        builder_free(b);
}

Test(packed, elements_get_a_byte_each)
{
        const uint8_t nibbles[5] = {0x21, 0xf7, 0x08}, pairs[5] = {0xe4, 0x03};

        for (int raw = 0; raw < 2; raw++) {
                expect_unpacked(SL_DTYPE_U4, nibbles, 3, raw, (int8_t[]){1, 2, 7, 15, 8});
                expect_unpacked(SL_DTYPE_I4, nibbles, 3, raw, (int8_t[]){1, 2, 7, -1, -8});
                expect_unpacked(SL_DTYPE_U2, pairs, 2, raw, (int8_t[]){0, 1, 2, 3, 3});
                expect_unpacked(SL_DTYPE_I2, pairs, 2, raw, (int8_t[]){0, 1, -2, -1, -1});
        }
}
