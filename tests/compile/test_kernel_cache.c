/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps whose shapes are data-dependent run on kernels of `cpu` from the second time on that a shape comes, make what the reference
 * makes, and there is a bound to what is kept.
 */
#include "backend.h"
#include "base/clock.h"
#include "bodies_model.h"
#include "cpu/gemm/gemm.h"
#include "cpu/onednn/primitive.h"
#include "evaluate.h"
#include "kernel_cache.h"
#include "op.h"
#include "packed_store.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWS    24
#define INNER   16
#define COLUMNS 20

static struct sl_packed_store *new_store(uint64_t bytes_max)
{
        struct sl_packed_store *store;

        cr_assert_eq(sl_packed_store_new(NULL, bytes_max, &store), 0);
        return store;
}

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
        found = sl_kernel_cache_find(cache, &(struct sl_dynamic_wish){.node = desc, .work = sl_op_work(desc)}, &kernel);
        cr_assert(!found || (kernel.backend == &sl_backend_cpu && kernel.kernel));
        free(desc);
        return found;
}

Test(kernel_cache, a_shape_that_comes_again_gets_a_kernel)
{
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, NULL, &cache), 0);
        cr_assert(!find(cache, ROWS));
        cr_assert_eq(sl_kernel_cache_count(cache), 0u);
        cr_assert(find(cache, ROWS));
        cr_assert(find(cache, ROWS));
        cr_assert(!find(cache, ROWS + 1));
        cr_assert_eq(sl_kernel_cache_count(cache), 1u);
        sl_kernel_cache_free(cache);
}

/* As `ref` would take @ns for the next call. */
static bool find_after(struct sl_kernel_cache *cache, int64_t rows, uint64_t ns)
{
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        struct sl_node_desc *desc = malloc(sizeof(*desc));
        bool found;

        describe_product(rows, desc);
        found = sl_kernel_cache_find(cache, &(struct sl_dynamic_wish){.node = desc, .work = sl_op_work(desc)}, &kernel);
        cr_assert(found || kernel.spent_ns, "somebody asks what it takes");
        if (!found)
                *kernel.spent_ns += ns;
        free(desc);
        return found;
}

/* Where a kernel takes no longer than `ref` is thought to, there is one at once. */
Test(kernel_cache, an_eager_one_compiles_what_ref_has_taken_as_long_for)
{
        struct sl_packed_store *store = new_store(1 << 20);
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        cr_expect(find(cache, ROWS), "what one takes is not known before");
        if (!find_after(cache, 4, 0)) {
                for (int i = 0; i < 100; i++)
                        cr_assert(!find_after(cache, 4, 0), "it has taken no time");
                cr_expect(!find_after(cache, 4, 60 * SL_NS_PER_SECOND));
        }
        cr_expect(find_after(cache, 4, 0));
        cr_expect_eq(sl_kernel_cache_count(cache), 2u);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

#define WAITED_NS (SL_NS_PER_SECOND / 2)

static int compile_late(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        const struct timespec waited = {.tv_nsec = WAITED_NS};

        nanosleep(&waited, NULL);
        return sl_backend_cpu.runner->compile(session, source, ret_kernel, error);
}

/* While a kernel is made others may have the processor: that is no time that it costs. */
Test(kernel_cache, what_a_kernel_waits_for_the_processor_is_not_what_it_takes)
{
        struct sl_runner runner = *sl_backend_cpu.runner;
        struct sl_backend backend = sl_backend_cpu;
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        struct sl_node_desc *desc = malloc(sizeof(*desc));
        struct sl_packed_store *store = new_store(1 << 20);
        struct sl_kernel_cache *cache;

        runner.compile = compile_late;
        backend.runner = &runner;
        cr_assert_eq(sl_kernel_cache_new(&backend, NULL, store, &cache), 0);
        describe_product(ROWS, desc);
        for (int i = 0; i < 2; i++) { /* the first kernel shows what one takes; what oneDNN makes once is no part of the second */
                desc->inputs[0].shape.dims[0] = ROWS + i;
                cr_assert(sl_kernel_cache_find(
                        cache, &(struct sl_dynamic_wish){.node = desc, .work = sl_op_work(desc), .at_once = true}, &kernel));
        }
        desc->inputs[0].shape.dims[0] = 4;
        struct sl_dynamic_wish wish = {.node = desc, .work = sl_op_work(desc)};

        kernel.spent_ns = NULL;
        if (!sl_kernel_cache_find(cache, &wish, &kernel)) {
                *kernel.spent_ns += WAITED_NS / 2;
                cr_expect(sl_kernel_cache_find(cache, &wish, &kernel), "`ref` has taken longer than a kernel");
        }
        free(desc);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

/* Those of a set make room for each other; the others stay. */
Test(kernel_cache, an_eager_one_keeps_what_is_used)
{
        struct sl_packed_store *store = new_store(1 << 20);
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        cr_assert(find(cache, ROWS));
        for (int64_t rows = 1000; rows < 1000 + 2 * SL_KERNEL_CACHE_EAGER_MAX; rows++) {
                (void)find(cache, rows);
                cr_assert(find(cache, ROWS), "after %lld", (long long)rows);
        }
        cr_expect_leq(sl_kernel_cache_count(cache), (uint32_t)SL_KERNEL_CACHE_EAGER_MAX);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

/* Of a product without constants, for which oneDNN generates code. */
static bool find_at_once(struct sl_kernel_cache *cache, int64_t rows)
{
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        struct sl_node_desc *desc = malloc(sizeof(*desc));
        bool found;

        describe_product(rows, desc);
        found = sl_kernel_cache_find(
                cache, &(struct sl_dynamic_wish){.node = desc, .work = sl_op_work(desc), .at_once = true}, &kernel);
        free(desc);
        return found;
}

/* As many as have room in bytes, which are fewer than there are places for. */
Test(kernel_cache, kernels_take_so_many_bytes_at_most)
{
        const int64_t n = SL_KERNEL_CACHE_BYTES_MAX / SL_PRIMITIVE_BYTES;
        struct sl_packed_store *store = new_store(1 << 20);
        struct sl_kernel_cache *cache;

        cr_assert_lt(n, (int64_t)SL_KERNEL_CACHE_EAGER_MAX);
        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        for (int64_t rows = 1000; rows < 1000 + n + 40; rows++) {
                cr_assert(find_at_once(cache, rows));
                cr_assert(find_at_once(cache, ROWS), "after %lld", (long long)rows);
                cr_assert_leq(sl_kernel_cache_bytes(cache), (uint64_t)SL_KERNEL_CACHE_BYTES_MAX);
        }
        cr_expect_leq(sl_kernel_cache_count(cache), (uint32_t)n);
        cr_expect_geq(sl_kernel_cache_count(cache), (uint32_t)n / 4 * 3);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

/* The product of all rows by @weights, as a plan of any size finds it: the constant's data, packed, or NULL. */
static const void *find_packed(struct sl_kernel_cache *cache, int64_t rows, const float *weights)
{
        const void *constants[] = {NULL, weights};
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        struct sl_node_desc *desc = malloc(sizeof(*desc));

        describe_product(rows, desc);
        cr_assert(sl_kernel_cache_find(cache,
                &(struct sl_dynamic_wish){.node = desc, .constants = constants, .work = sl_op_work(desc), .at_once = true},
                &kernel));
        free(desc);
        return kernel.packed[1];
}

/* Whatever sizes come, a constant has one form there, and another constant its own. */
Test(kernel_cache, weights_are_packed_once_for_all_sizes)
{
        float weights[INNER * COLUMNS], others[INNER * COLUMNS];
        struct sl_packed_store *store = new_store(1 << 20);
        struct sl_kernel_cache *cache;
        const void *packed;
        uint64_t bytes;

        for (int i = 0; i < INNER * COLUMNS; i++)
                others[i] = weights[i] = (float)i;
        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        packed = find_packed(cache, ROWS, weights);
        bytes = sl_packed_store_bytes(store);
        cr_assert(packed && packed != weights);
        cr_expect_geq(bytes, sizeof(weights));
        for (int64_t rows = 1; rows < 200; rows++)
                cr_assert_eq(find_packed(cache, rows, weights), packed, "%lld rows", (long long)rows);
        cr_expect_eq(sl_packed_store_bytes(store), bytes);
        cr_expect_neq(find_packed(cache, ROWS, others), packed);
        cr_expect_eq(sl_packed_store_bytes(store), 2 * bytes);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

/* What one instance has packed is there for the next one, and outlives it. */
Test(kernel_cache, weights_are_packed_once_for_all_instances)
{
        struct sl_packed_store *store = new_store(1 << 20);
        float weights[INNER * COLUMNS] = {1};
        struct sl_kernel_cache *first, *second;
        const float *packed;
        uint64_t bytes;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &first), 0);
        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &second), 0);
        packed = find_packed(first, ROWS, weights);
        bytes = sl_packed_store_bytes(store);
        sl_kernel_cache_free(first);
        cr_expect_eq(find_packed(second, ROWS, weights), packed);
        cr_expect_eq(packed[0], 1.0f);
        cr_expect_eq(sl_packed_store_bytes(store), bytes);
        sl_kernel_cache_free(second);
        sl_packed_store_free(store);
}

/* oneDNN's kernel, for a matrix that some node has made, takes longer; of an operator that was never seen nothing is known. */
Test(kernel_cache, a_quick_one_makes_no_kernel_that_is_not_known_to_be_made_quickly)
{
        for (int made = 0; made < 2; made++) {
                struct sl_packed_store *store = new_store(1 << 20);
                struct sl_kernel_cache *cache;

                cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
                if (made)
                        cr_assert(find(cache, ROWS));
                sl_kernel_cache_be_quick(cache);
                for (int64_t rows = ROWS + 1; rows < ROWS + 20; rows++)
                        cr_expect(!find(cache, rows));
                cr_expect_eq(sl_kernel_cache_count(cache), (uint32_t)made);
                cr_expect_eq(find(cache, ROWS), made, "what was made before stays");
                sl_kernel_cache_free(cache);
                sl_packed_store_free(store);
        }
}

/* An own loop is planned in a microsecond, but where this thread has to wait for the processor: once in some tries it has not. */
Test(kernel_cache, a_quick_one_makes_those_that_are)
{
        float weights[INNER * COLUMNS] = {0};
        bool found = false;

        for (int i = 0; i < 200 && !found; i++) {
                const void *constants[] = {NULL, weights};
                struct sl_dynamic_kernel kernel = {.backend = NULL};
                struct sl_node_desc *desc = malloc(sizeof(*desc));
                struct sl_packed_store *store = new_store(1 << 20);
                struct sl_kernel_cache *cache;

                cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
                cr_assert(find_packed(cache, ROWS, weights));
                sl_kernel_cache_be_quick(cache);
                describe_product(ROWS + 1, desc);
                found = sl_kernel_cache_find(cache,
                        &(struct sl_dynamic_wish){.node = desc, .constants = constants, .work = sl_op_work(desc), .at_once = true},
                        &kernel);
                free(desc);
                sl_kernel_cache_free(cache);
                sl_packed_store_free(store);
        }
        cr_expect(found);
}

/* However many there are, each is found again; and a matrix that some node has made is none of them. */
Test(kernel_cache, each_constant_has_its_own_packed_weights)
{
        static float weights[300][INNER * COLUMNS];
        const float *packed[300];
        struct sl_packed_store *store = new_store(16 << 20);
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        for (int i = 0; i < 300; i++) {
                weights[i][0] = (float)i;
                packed[i] = find_packed(cache, ROWS, weights[i]);
        }
        for (int i = 0; i < 300; i++) {
                cr_assert_eq(find_packed(cache, ROWS, weights[i]), packed[i]);
                cr_assert_eq(packed[i][0], (float)i);
        }
        cr_expect_null(find_packed(cache, ROWS, NULL));
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

/* Beyond the bound kernels read weights as they are. */
Test(kernel_cache, weights_that_have_no_room_stay_plain)
{
        float weights[INNER * COLUMNS] = {0};
        struct sl_packed_store *store = new_store(INNER * COLUMNS * sizeof(float) - 1);
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        cr_expect_null(find_packed(cache, ROWS, weights));
        cr_expect_eq(sl_packed_store_bytes(store), 0u);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

/* A kernel that reads packed weights is none for a constant that cannot be packed. */
Test(kernel_cache, a_second_constant_that_has_no_room_is_left_to_ref)
{
        float weights[INNER * COLUMNS] = {0}, others[INNER * COLUMNS] = {0};
        const void *constants[] = {NULL, others};
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        struct sl_node_desc *desc = malloc(sizeof(*desc));
        struct sl_packed_store *store = new_store(2 * sl_gemm_packed_floats(INNER, COLUMNS) * sizeof(float) - 1);
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, store, &cache), 0);
        cr_assert(find_packed(cache, ROWS, weights));
        describe_product(ROWS, desc);
        cr_expect(!sl_kernel_cache_find(cache,
                &(struct sl_dynamic_wish){.node = desc, .constants = constants, .work = sl_op_work(desc), .at_once = true},
                &kernel));
        free(desc);
        sl_kernel_cache_free(cache);
        sl_packed_store_free(store);
}

Test(kernel_cache, what_is_little_work_is_left_to_ref)
{
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, NULL, &cache), 0);
        for (int i = 0; i < 3; i++)
                cr_assert(!find(cache, 1));
        sl_kernel_cache_free(cache);
}

Test(kernel_cache, the_kernel_used_longest_ago_goes)
{
        struct sl_kernel_cache *cache;

        cr_assert_eq(sl_kernel_cache_new(&sl_backend_cpu, NULL, NULL, &cache), 0);
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
