/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed constants of a plan of any size: once for all that run it, however many ask for them at once, within a bound, and out of
 * what a lender has. What is packed is compared with what the backend packs here.
 */
#include "backend.h"
#include "op.h"
#include "packed_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define INNER   16
#define COLUMNS 24
#define FLOATS  (INNER * COLUMNS)
#define WEIGHTS 12
#define THREADS 6

struct product {
        struct sl_node_desc node;
        struct sl_packed packed;
};

static void product_init(struct product *product)
{
        memset(product, 0, sizeof(*product));
        product->node = (struct sl_node_desc){.op = SL_OP_MATMUL, .n_inputs = 2, .n_outputs = 1};
        product->node.inputs[0] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {40, INNER}}};
        product->node.inputs[1] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {INNER, COLUMNS}}};
        cr_assert_eq(sl_op_infer(&product->node, NULL), 0);
        cr_assert_eq(sl_attrs_set_int(&product->node.attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_BLOCKED), 0);
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &product->node, 1, &product->packed), 0);
        cr_assert_gt(product->packed.data_bytes, 0u);
}

static const void *find(struct sl_packed_store *store, const struct product *product, const float *weights)
{
        return sl_packed_store_find(store, &sl_backend_cpu, &product->node, 1, &product->packed, weights);
}

struct lender {
        uint64_t left;
        _Atomic uint64_t taken, given;
};

static bool lend(void *context, uint64_t bytes)
{
        struct lender *lender = context;

        if (bytes > lender->left)
                return false;
        lender->left -= bytes;
        lender->taken += bytes;
        return true;
}

static void give_back(void *context, uint64_t bytes)
{
        struct lender *lender = context;

        lender->left += bytes;
        lender->given += bytes;
}

static struct sl_packed_store *new_store(uint64_t bytes_max, struct lender *lender)
{
        struct sl_packed_store *store;

        cr_assert_eq(sl_packed_store_new(NULL, bytes_max, &store), 0);
        sl_packed_store_lend(store, &(struct sl_packed_lender){.take = lend, .give = give_back, .context = lender});
        return store;
}

static atomic_uint n_repacked, n_asking;

/* The first one takes until all threads are about to ask for it. */
static int repack_counted(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index,
        const struct sl_packed *packed, const void *source, void *to)
{
        if (atomic_fetch_add(&n_repacked, 1) == 0)
                for (int looks = 0; looks < 100 || atomic_load(&n_asking) < THREADS; looks++)
                        sched_yield();
        return sl_backend_cpu.planner->repack(target, node, index, packed, source, to);
}

struct crowd {
        struct sl_packed_store *store;
        const struct sl_backend *backend;
        const struct product *product;
        pthread_barrier_t start;
        float weights[WEIGHTS][FLOATS];
        const void *found[THREADS][WEIGHTS];
};

struct asker {
        struct crowd *crowd;
        uint32_t number;
};

static void *ask_all(void *context)
{
        const struct asker *asker = context;
        struct crowd *crowd = asker->crowd;

        pthread_barrier_wait(&crowd->start);
        atomic_fetch_add(&n_asking, 1);
        for (uint32_t i = 0; i < WEIGHTS; i++)
                crowd->found[asker->number][i] = sl_packed_store_find(
                        crowd->store, crowd->backend, &crowd->product->node, 1, &crowd->product->packed, crowd->weights[i]);
        return NULL;
}

Test(packed_store, threads_that_ask_at_once_get_the_same_bytes_packed_once, .timeout = 60)
{
        static struct crowd crowd;
        struct sl_planner planner = *sl_backend_cpu.planner;
        struct sl_backend backend = sl_backend_cpu;
        struct lender lender = {.left = 1 << 20};
        struct asker askers[THREADS];
        pthread_t threads[THREADS];
        struct product product;
        void *expected;

        product_init(&product);
        planner.repack = repack_counted;
        backend.planner = &planner;
        crowd.store = new_store(1 << 20, &lender);
        crowd.backend = &backend;
        crowd.product = &product;
        for (uint32_t i = 0; i < WEIGHTS * FLOATS; i++)
                crowd.weights[i / FLOATS][i % FLOATS] = (float)i;
        pthread_barrier_init(&crowd.start, NULL, THREADS);
        for (uint32_t i = 0; i < THREADS; i++) {
                askers[i] = (struct asker){.crowd = &crowd, .number = i};
                cr_assert_eq(pthread_create(&threads[i], NULL, ask_all, &askers[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(atomic_load(&n_repacked), (unsigned)WEIGHTS);
        cr_expect_eq(sl_packed_store_bytes(crowd.store), WEIGHTS * product.packed.data_bytes);
        cr_expect_eq(lender.taken - lender.given, WEIGHTS * product.packed.data_bytes);
        expected = aligned_alloc(64, (product.packed.data_bytes + 63) / 64 * 64);
        for (uint32_t i = 0; i < WEIGHTS; i++) {
                memset(expected, 0, product.packed.data_bytes);
                cr_assert_eq(
                        sl_backend_cpu.planner->repack(NULL, &product.node, 1, &product.packed, crowd.weights[i], expected), 0);
                for (uint32_t k = 0; k < THREADS; k++)
                        cr_assert_eq(crowd.found[k][i], crowd.found[0][i]);
                cr_assert_arr_eq(crowd.found[0][i], expected, product.packed.data_bytes);
        }
        free(expected);
        sl_packed_store_free(crowd.store);
        cr_expect_eq(lender.given, lender.taken, "all is given back");
        pthread_barrier_destroy(&crowd.start);
}

Test(packed_store, has_a_bound_and_asks_its_lender)
{
        static float weights[3][FLOATS];
        struct product product;
        struct lender lender;
        struct sl_packed_store *store;
        uint64_t each;

        product_init(&product);
        each = product.packed.data_bytes;
        for (int lends = 0; lends < 2; lends++) {
                lender = (struct lender){.left = lends ? 2 * each : UINT64_MAX};
                store = new_store(lends ? UINT64_MAX : 2 * each, &lender);
                cr_assert(find(store, &product, weights[0]));
                cr_assert(find(store, &product, weights[1]));
                cr_expect_null(find(store, &product, weights[2]));
                cr_expect_eq(sl_packed_store_bytes(store), 2 * each);
                cr_expect_eq(lender.taken, 2 * each);
                cr_expect(find(store, &product, weights[0]), "what is there is found");
                sl_packed_store_free(store);
                cr_expect_eq(lender.given, 2 * each);
        }
}

static int repack_never(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index,
        const struct sl_packed *packed, const void *source, void *to)
{
        (void)target, (void)node, (void)index, (void)packed, (void)source, (void)to;
        return -ENOTSUP;
}

Test(packed_store, what_cannot_be_packed_takes_nothing)
{
        static float weights[FLOATS];
        struct sl_planner planner = *sl_backend_cpu.planner;
        struct sl_backend backend = sl_backend_cpu;
        struct lender lender = {.left = 1 << 20};
        struct sl_packed_store *store = new_store(1 << 20, &lender);
        struct product product;

        product_init(&product);
        planner.repack = repack_never;
        backend.planner = &planner;
        for (int i = 0; i < 3; i++)
                cr_expect_null(sl_packed_store_find(store, &backend, &product.node, 1, &product.packed, weights));
        cr_expect_eq(sl_packed_store_bytes(store), 0u);
        cr_expect_eq(lender.left, 1u << 20);
        cr_expect(find(store, &product, weights), "and can be tried again");
        sl_packed_store_free(store);
}

/* As its form says, and nothing else. */
static int repack_marked(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index,
        const struct sl_packed *packed, const void *source, void *to)
{
        (void)target, (void)node, (void)index, (void)source;
        memset(to, packed->form[packed->form_bytes - 1], packed->data_bytes);
        return 0;
}

Test(packed_store, forms_of_one_constant_are_told_apart_by_all_that_they_say)
{
        static const struct sl_packed forms[] = {{.data_bytes = 64, .form_bytes = 2, .form = {1, 2}},
                {.data_bytes = 64, .form_bytes = 2, .form = {1, 3}}, {.data_bytes = 64, .form_bytes = 1, .form = {1}},
                {.data_bytes = 128, .form_bytes = 2, .form = {1, 2}}};
        static float weights[FLOATS];
        struct sl_planner planner = *sl_backend_cpu.planner;
        struct sl_backend backend = sl_backend_cpu;
        struct lender lender = {.left = 1 << 20};
        struct sl_packed_store *store = new_store(1 << 20, &lender);
        struct sl_node_desc *node = calloc(1, sizeof(*node));

        planner.repack = repack_marked;
        backend.planner = &planner;
        for (int again = 0; again < 2; again++)
                for (uint32_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
                        const uint8_t *data = sl_packed_store_find(store, &backend, node, 1, &forms[i], weights);

                        for (uint64_t k = 0; k < forms[i].data_bytes; k++)
                                cr_assert_eq(data[k], forms[i].form[forms[i].form_bytes - 1]);
                }
        cr_expect_eq(sl_packed_store_bytes(store), 64u + 64 + 64 + 128);
        free(node);
        sl_packed_store_free(store);
}
