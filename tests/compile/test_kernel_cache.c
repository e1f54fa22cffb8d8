/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps whose shapes are data-dependent run on kernels of `cpu` from the second time on that a shape comes, make what the reference
 * makes, and there is a bound to what is kept.
 */
#include "backend.h"
#include "bodies_model.h"
#include "evaluate.h"
#include "kernel_cache.h"
#include "op.h"
#include "ref/live.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS    24
#define INNER   16
#define COLUMNS 20

static void describe_product(int64_t rows, struct sl_node_desc *desc)
{
        memset(desc, 0, sizeof(*desc));
        *desc = (struct sl_node_desc){.op = SL_OP_MATMUL, .n_inputs = 2, .n_outputs = 1};
        desc->inputs[0] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {rows, INNER}}};
        desc->inputs[1] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {INNER, COLUMNS}}};
        cr_assert_eq(sl_op_infer(desc, NULL), 0);
}

static bool find(struct sl_kernel_cache *cache, int64_t rows)
{
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        struct sl_node_desc *desc = malloc(sizeof(*desc));
        bool found;

        describe_product(rows, desc);
        found = sl_kernel_cache_find(cache, desc, sl_op_work(desc), &kernel);
        cr_assert(!found || (kernel.backend == &sl_backend_cpu && kernel.kernel));
        free(desc);
        return found;
}

Test(kernel_cache, a_shape_that_comes_again_gets_a_kernel)
{
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, &cache), 0);
        cr_assert(!find(cache, ROWS));
        cr_assert_eq(sl_kernel_cache_count(cache), 0u);
        cr_assert(find(cache, ROWS));
        cr_assert(find(cache, ROWS));
        cr_assert(!find(cache, ROWS + 1));
        cr_assert_eq(sl_kernel_cache_count(cache), 1u);
        sl_kernel_cache_free(cache);
}

Test(kernel_cache, what_is_little_work_is_left_to_ref)
{
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, &cache), 0);
        for (int i = 0; i < 3; i++)
                cr_assert(!find(cache, 1));
        sl_kernel_cache_free(cache);
}

Test(kernel_cache, the_kernel_used_longest_ago_goes)
{
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, &cache), 0);
        find(cache, 10);
        for (int64_t rows = 11; rows < 11 + 2 * SL_KERNEL_CACHE_MAX; rows++) {
                find(cache, rows);
                cr_assert(find(cache, rows));
                cr_assert(find(cache, 10), "after %lld", (long long)rows);
        }
        cr_assert_eq(sl_kernel_cache_count(cache), (uint32_t)SL_KERNEL_CACHE_MAX);
        cr_assert(!find(cache, 11));
        sl_kernel_cache_free(cache);
}

/* y = relu(rows of x that are kept times w) */
static void build_chosen(struct model *m)
{
        struct builder *b = builder_new(16);
        Onnx__NodeProto *node;

        *m = (struct model){.b = b};
        builder_input(b, "x", SL_DTYPE_F32, DIMS(ROWS, INNER));
        builder_input(b, "kept", SL_DTYPE_BOOL, DIMS(ROWS));
        node = builder_node(b, "Compress", "x,kept", "chosen");
        builder_attr_int(b, node, "axis", 0);
        builder_random(b, "w", DIMS(INNER, COLUMNS));
        builder_node(b, "MatMul", "chosen,w", "product");
        builder_node(b, "Softmax", "product", "soft");
        builder_node(b, "Relu", "soft", "y");
        builder_output(b, "y");
        model_import(m);
        model_compile(m);
}

static void expect_as_evaluated(struct model *m, const struct sl_graph *special, const void *const *inputs)
{
        float *y = calloc(ROWS, COLUMNS * sizeof(float));
        struct sl_open_output open = {.capacity_bytes = ROWS * COLUMNS * sizeof(float)};
        struct sl_pool pool = {.limit_bytes = 1 << 20};
        struct sl_live wanted = {0};

        cr_assert_eq(sl_instance_run_open(m->instance, 1, inputs, &(void *){y}, &open, &m->error), 0, "%s", m->error.text);
        cr_assert_eq(sl_graph_evaluate_open(special, inputs, &pool, &wanted, &m->error), 0, "%s", m->error.text);
        cr_assert(sl_shape_equal(&wanted.tensor.shape, &open.shape));
        for (uint64_t i = 0; i < sl_shape_elements(&open.shape); i++)
                cr_assert_float_eq(y[i], ((const float *)wanted.data)[i], 1e-5);
        sl_live_drop(&pool, &wanted);
        free(y);
}

Test(kernel_cache, shapes_that_come_and_go_make_what_the_reference_makes)
{
        float x[ROWS * INNER];
        uint8_t kept[ROWS];
        const void *inputs[] = {x, kept};
        struct sl_graph *special;
        struct model m;

        build_chosen(&m);
        cr_assert_eq(sl_graph_specialise(m.graph, 1, &special, &m.error), 0, "%s", m.error.text);
        for (uint32_t run = 0; run < 120; run++) {
                uint32_t n = run * 7 % (ROWS + 1);

                fill_random(x, ROWS * INNER, run);
                for (uint32_t i = 0; i < ROWS; i++)
                        kept[i] = i < n;
                expect_as_evaluated(&m, special, inputs);
        }
        sl_graph_free(special);
        model_end(&m);
}
