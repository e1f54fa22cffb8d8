/* SPDX-License-Identifier: Apache-2.0 */
/* starling.Trees on `cpu`: tables that lead outside make no kernel, and a row has the same bits among any others. */
#include "cpu/ml/trees.h"
#include "backend.h"
#include "base/error.h"
#include "cpu/base/isa.h"
#include "op.h"
#include "shape/trees.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define TREES    37
#define DEPTH    6
#define OF_TREE  ((2 << DEPTH) - 1)
#define NODES    (TREES * OF_TREE + 1)
#define FEATURES 5
#define ROWS     203

/* Full trees, each in the order of a heap, over columns of both sides. */
struct tables {
        int32_t columns[2 * FEATURES], nodes[2 * NODES], roots[TREES], targets[TREES];
        float weights[NODES], splits[NODES], x[ROWS * FEATURES];
};

static uint32_t next(uint32_t *seed)
{
        *seed = *seed * 1664525u + 1013904223u;
        return *seed >> 8;
}

static void fill(struct tables *t)
{
        uint32_t seed = 5;

        memset(t, 0, sizeof(*t));
        for (int i = 0; i < 2 * FEATURES; i++)
                t->columns[i] = i;
        for (int i = 0; i < ROWS * FEATURES; i++)
                t->x[i] = next(&seed) % 19 ? (float)(next(&seed) % 1000) / 500 - 1 : NAN;
        for (int i = 0; i < NODES; i++) {
                int within = i % OF_TREE;
                bool leaf = within >= OF_TREE / 2 || i == NODES - 1;
                float split = (float)(next(&seed) % 1000) / 500 - 1;

                t->splits[i] = split;
                t->nodes[2 * i] = leaf ? SL_TREE_NEVER_32 : sl_tree_key_32(split, false);
                t->nodes[2 * i + 1] = leaf ? 0 : (int32_t)(next(&seed) % (2 * FEATURES) | (uint32_t)(within + 1) << 4);
                t->weights[i] = (float)(next(&seed) % 1000) / 7;
        }
        for (int i = 0; i < TREES; i++) {
                t->roots[i] = i * OF_TREE;
                t->targets[i] = i % 2;
        }
}

static struct sl_node_desc node_of(int64_t rows, enum sl_tree_sum sum)
{
        struct sl_node_desc node = {.op = SL_OP_TREES, .n_inputs = 6, .n_outputs = 1};
        struct sl_error error;

        node.inputs[0] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {rows, FEATURES}}};
        node.inputs[1] = (struct sl_tensor){.dtype = SL_DTYPE_I32, .shape = {.rank = 1, .dims = {2 * FEATURES}}};
        node.inputs[2] = (struct sl_tensor){.dtype = SL_DTYPE_I32, .shape = {.rank = 2, .dims = {NODES, 2}}};
        node.inputs[3] = (struct sl_tensor){.dtype = SL_DTYPE_I32, .shape = {.rank = 1, .dims = {TREES}}};
        node.inputs[4] = node.inputs[3];
        node.inputs[5] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 1, .dims = {NODES}}};
        sl_attrs_set_int(&node.attrs, SL_ATTR_COLUMN_BITS, 4);
        sl_attrs_set_int(&node.attrs, SL_ATTR_LENGTH, 2);
        sl_attrs_set_int(&node.attrs, SL_ATTR_VISITS, TREES * (DEPTH + 1));
        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, sum);
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        return node;
}

static int compile(
        const struct sl_backend *backend, const struct tables *t, const struct sl_node_desc *node, struct sl_kernel **ret_kernel)
{
        const void *constants[] = {NULL, t->columns, t->nodes, t->roots, t->targets, t->weights};
        struct sl_error error;

        return backend->runner->compile(NULL, &(struct sl_kernel_source){.node = node, .constants = constants}, ret_kernel, &error);
}

static void predict_on(
        const struct sl_backend *backend, enum sl_tree_sum sum, const struct tables *t, int64_t rows, const float *x, float *out)
{
        const void *inputs[] = {x, t->columns, t->nodes, t->roots, t->targets, t->weights};
        struct sl_node_desc node = node_of(rows, sum);
        struct sl_kernel *kernel;

        cr_assert_eq(compile(backend, t, &node, &kernel), 0);
        struct sl_binding binding = {.inputs = inputs,
                .outputs = (void *[]){out},
                .scratch = aligned_alloc(64, (backend->runner->scratch_bytes(kernel) + 63) / 64 * 64)};
        cr_assert_eq(backend->runner->launch(kernel, &binding), 0);
        free(binding.scratch);
        backend->runner->kernel_free(kernel);
}

static void predict(const struct tables *t, int64_t rows, const float *x, float *out)
{
        predict_on(&sl_backend_cpu, SL_TREE_SUM, t, rows, x, out);
}

Test(trees, a_row_has_the_same_bits_among_any_others)
{
        struct tables *t = malloc(sizeof(*t));
        float all[2 * ROWS], some[2 * ROWS];

        fill(t);
        predict(t, ROWS, t->x, all);
        for (int64_t n = 1; n < 20; n += 3)
                for (int64_t first = 0; first + n <= ROWS; first += 31) {
                        predict(t, n, t->x + first * FEATURES, some);
                        cr_assert_arr_eq(some, all + 2 * first, (size_t)(2 * n) * sizeof(float));
                }
        free(t);
}

/* By the numbers themselves: a NaN is larger than all, or in a column of the other side smaller. */
static int leaf_of(const struct tables *t, const float *x, int at)
{
        while (t->nodes[2 * at] != SL_TREE_NEVER_32) {
                int32_t word = t->nodes[2 * at + 1], column = word & 15;
                float value = x[column / 2];

                at += (word >> 4) + (isnan(value) ? column & 1 : value <= t->splits[at]);
        }
        return at;
}

static const float edges[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-130f};
#define N_EDGES (sizeof(edges) / sizeof(edges[0]))

/* Of all leaves that a row comes to; the least and the most leave a NaN out, and are 0 of nothing else. */
static double wanted_of(const struct tables *t, const float *x, int target, enum sl_tree_sum how)
{
        double sum = how == SL_TREE_MIN ? INFINITY : how == SL_TREE_MAX ? -INFINITY : 0;
        bool any = how < SL_TREE_MIN;

        for (int i = target; i < TREES; i += 2) {
                double weight = (double)t->weights[leaf_of(t, x, t->roots[i])];

                if (how < SL_TREE_MIN)
                        sum += weight;
                else if (!isnan(weight) && (how == SL_TREE_MIN ? weight <= sum : weight >= sum))
                        sum = weight;
                any = any || !isnan(weight);
        }
        return !any ? 0 : how == SL_TREE_AVERAGE ? sum / TREES : sum;
}

static void expect_sums(const struct sl_backend *backend, const struct tables *t, enum sl_tree_sum how)
{
        float got[2 * ROWS];

        predict_on(backend, how, t, ROWS, t->x, got);
        for (int i = 0; i < 2 * ROWS; i++) {
                double wanted = wanted_of(t, t->x + i / 2 * FEATURES, i % 2, how), difference = (double)got[i] - wanted;
                bool same = isnan(wanted) ? isnan(got[i]) : isinf(wanted) ? (double)got[i] == wanted : fabs(difference) <= 1e-2;

                cr_expect(same, "%s, sum %d, row %d: %g, expected %g", backend->name, (int)how, i / 2, (double)got[i], wanted);
        }
}

/* Some splits are 0 and some infinite, and one value of three is at an edge; then some leaves are, too, and then all are NaN. */
Test(trees, numbers_at_the_edges_of_float_go_where_their_order_says)
{
        static const float splits[] = {0.0f, -0.0f, INFINITY, -INFINITY, 0x1p-149f};
        struct tables *t = malloc(sizeof(*t));
        uint32_t seed = 7;

        fill(t);
        for (int i = 0; i < ROWS * FEATURES; i++)
                if (next(&seed) % 3 == 0)
                        t->x[i] = edges[next(&seed) % N_EDGES];
        for (int i = 0; i < NODES; i++)
                if (t->nodes[2 * i] != SL_TREE_NEVER_32 && next(&seed) % 4 == 0) {
                        t->splits[i] = splits[next(&seed) % (sizeof(splits) / sizeof(splits[0]))];
                        t->nodes[2 * i] = sl_tree_key_32(t->splits[i], false);
                }
        for (int share = 0; share < 3; share++) {
                static const uint32_t one_in[] = {0, 60, 1};

                for (int i = 0; i < NODES && share; i++)
                        if (next(&seed) % one_in[share] == 0)
                                t->weights[i] = share == 1 ? edges[next(&seed) % N_EDGES] : NAN;
                for (enum sl_tree_sum how = SL_TREE_SUM; how <= SL_TREE_MAX; how++) {
                        expect_sums(&sl_backend_cpu, t, how);
                        expect_sums(&sl_backend_ref, t, how);
                }
        }
        free(t);
}

Test(trees, walks_end_at_the_same_leaves_whoever_walks)
{
        struct tables *t = malloc(sizeof(*t));
        int32_t keys[SL_TREE_WALKS * 2 * FEATURES], rows[SL_TREE_WALKS], plain[SL_TREE_WALKS], fast[SL_TREE_WALKS];
        struct sl_tree_walk walk = {.keys = keys, .column_bits = 4};

        if (!sl_cpu_has_avx512()) {
                free(t);
                cr_skip("this processor has no AVX-512");
        }
        fill(t);
        walk.nodes = t->nodes;
        for (int i = 0; i < SL_TREE_WALKS * 2 * FEATURES; i++)
                keys[i] = sl_tree_key_32(t->x[i / (2 * FEATURES) % ROWS * FEATURES + i % (2 * FEATURES) / 2], i & 1);
        for (int walks = 16; walks <= SL_TREE_WALKS; walks += 48) {
                for (int i = 0; i < walks; i++) {
                        plain[i] = fast[i] = t->roots[i % TREES];
                        rows[i] = i * 2 * FEATURES;
                }
                sl_tree_walk_narrow(&walk, plain, rows, walks);
                sl_tree_walk_narrow_avx512(&walk, fast, rows, walks);
                cr_assert_arr_eq(plain, fast, (size_t)walks * sizeof(*plain));
        }
        free(t);
}

static void expect_outside(struct tables *t, int32_t *place, int32_t value)
{
        struct sl_node_desc node = node_of(3, SL_TREE_SUM);
        struct sl_kernel *kernel = NULL;
        int32_t before = *place;

        *place = value;
        cr_expect_eq(compile(&sl_backend_cpu, t, &node, &kernel), -ERANGE);
        cr_expect_null(kernel);
        *place = before;
        cr_assert_eq(compile(&sl_backend_cpu, t, &node, &kernel), 0);
        sl_backend_cpu.runner->kernel_free(kernel);
}

Test(trees, tables_that_lead_outside_make_no_kernel)
{
        struct tables *t = malloc(sizeof(*t));
        int last = (TREES - 1) * OF_TREE;

        fill(t);
        expect_outside(t, &t->columns[3], 2 * FEATURES);
        expect_outside(t, &t->columns[3], -1);
        expect_outside(t, &t->nodes[2 * last + 1], NODES << 4);
        expect_outside(t, &t->nodes[2 * last + 1], -1);
        expect_outside(t, &t->nodes[1], 1 << 4 | 15);
        expect_outside(t, &t->nodes[2 * (NODES - 1)], 0);
        expect_outside(t, &t->nodes[1], 3 << 4);
        expect_outside(t, &t->roots[0], -1);
        expect_outside(t, &t->roots[TREES - 1], NODES);
        expect_outside(t, &t->targets[5], 2);
        expect_outside(t, &t->targets[5], -1);
        free(t);
}
