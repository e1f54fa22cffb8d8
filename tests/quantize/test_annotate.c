/* SPDX-License-Identifier: Apache-2.0 */
/* Which products may work on bytes. */
#include "annotate.h"
#include "builder.h"

#include <criterion/criterion.h>

#define DEPTH   4
#define COLUMNS 6

static bool is_product_with_bias(int64_t n, int64_t trans_b)
{
        struct builder *b = builder_new_of_x(17, DIMS(-1, DEPTH));
        struct sl_graph *graph;
        bool is_product;

        builder_random(b, "w", 2, trans_b ? (int64_t[]){COLUMNS, DEPTH} : (int64_t[]){DEPTH, COLUMNS});
        builder_random(b, "b", DIMS(n));
        builder_attr_int(b, builder_node(b, "Gemm", "x,w,b", "y"), "transB", trans_b);
        builder_output(b, "y");
        graph = builder_import(b);
        is_product = sl_annotate_is_product(graph, 0);
        sl_graph_free(graph);
        builder_free(b);
        return is_product;
}

/* One that Gemm repeats has no unit of its own for each channel. */
Test(annotate, a_bias_has_a_number_for_each_output_channel)
{
        for (int64_t trans_b = 0; trans_b < 2; trans_b++) {
                cr_expect(is_product_with_bias(COLUMNS, trans_b));
                cr_expect_not(is_product_with_bias(1, trans_b));
        }
}
