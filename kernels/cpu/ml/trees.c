/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.Trees. The numbers that the trees look at become keys once for each row; then lanes walk (trees.h): the rows of a block
 * tree by tree, so that a tree is read from its cache for all of them, or, where there are few rows, each row through many trees.
 * Sums are kept in double.
 *
 * The tables come from a plan file that is not trusted: check() looks at all of them when the kernel is made, and they do not
 * change.
 */
#include "cpu/ml/trees.h"
#include "cpu/base/isa.h"
#include "cpu/ml/loops.h"
#include "shape/trees.h"

#include "base/bytes.h"

#include <errno.h>

#define ROWS_LEAST 16 /* with fewer, walks are those of one row in many trees */
#define ROWS_MOST  1024
#define GRAIN      64 /* rows of a block come in multiples of it */

struct trees {
        struct sl_tree_form form;
        bool rows_are_double, weights_are_double, out_is_double;
        int64_t block; /* rows */
        size_t sums_offset;
        sl_tree_walk_fn *walk;
};

/* One launch. */
struct pass {
        const struct trees *s;
        struct sl_tree_data data;
        struct sl_tree_walk walk;
        int64_t row_keys; /* elements from one row's keys to the next */
        double *sums;
        bool by_row; /* sums [rows][targets], else [targets][block] */
};

/* Half of a core's cache for the keys and sums of a block. */
static int64_t block_of(const struct trees *s)
{
        int64_t row = s->form.columns * (s->form.wide ? 8 : 4) + s->form.targets * (int64_t)sizeof(double);
        int64_t block = sl_cpu_l2_bytes() / 2 / row / GRAIN * GRAIN, rows = s->form.rows;

        block = block < GRAIN ? GRAIN : block > ROWS_MOST ? ROWS_MOST : block;
        rows = (int64_t)sl_align_up((uint64_t)rows, GRAIN);
        return rows < ROWS_LEAST ? 1 : rows < block ? rows : block;
}

static bool trees_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct trees *s = state;
        int64_t key_bytes;

        if (sl_tree_form_read(node, &s->form, NULL))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        /* Keys of a block are named by 31 bits. */
        if (s->form.columns > (INT32_MAX >> 11))
                return false;
        s->rows_are_double = node->inputs[0].dtype == SL_DTYPE_F64;
        s->weights_are_double = node->inputs[5].dtype == SL_DTYPE_F64;
        s->out_is_double = node->outputs[0].dtype == SL_DTYPE_F64;
        s->walk = s->form.wide ? sl_tree_walk_wide : sl_cpu_has_avx512() ? sl_tree_walk_narrow_avx512 : sl_tree_walk_narrow;
        s->block = s->form.rows < ROWS_LEAST ? 1 : block_of(s);
        key_bytes = s->form.wide ? 8 : 4;
        s->sums_offset = sl_align_up((uint64_t)(s->block * s->form.columns * key_bytes), SL_LINE_BYTES);
        sizes->scratch_bytes = s->sums_offset + (size_t)(s->block * s->form.targets) * sizeof(double);
        return true;
}

static int trees_check(const void *state, const void *const *constants)
{
        const struct trees *s = state;
        uint32_t n = s->form.has_lists ? 9 : s->form.has_base ? 7 : 6;
        struct sl_tree_data data;

        for (uint32_t i = 1; i < n; i++)
                if (!constants[i] && (i < 6 || (i == 6 && s->form.has_base) || i > 6))
                        return -ENOTSUP;
        data = sl_tree_data_of(constants, n);
        return sl_trees_check(&s->form, &data);
}

static SL_CPU_CLONES void keys_of_row(const float *x, const int32_t *columns, int64_t n, int32_t *keys)
{
        for (int64_t i = 0; i < n; i++)
                keys[i] = sl_tree_key_32(x[columns[i] >> 1], columns[i] & 1);
}

static void make_keys(const struct trees *s, const int32_t *columns, const void *x, int64_t row, void *keys)
{
        int64_t at = row * s->form.features;

        if (!s->form.wide) {
                keys_of_row((const float *)x + at, columns, s->form.columns, keys);
                return;
        }
        for (int64_t i = 0; i < s->form.columns; i++) {
                int64_t from = at + (columns[i] >> 1);
                bool low = columns[i] & 1;

                if (s->rows_are_double)
                        ((int64_t *)keys)[i] = sl_tree_key_64(((const double *)x)[from], low);
                else
                        ((int64_t *)keys)[i] = sl_tree_key_32(((const float *)x)[from], low);
        }
}

static double weight_at(const struct pass *p, int64_t i)
{
        return p->s->weights_are_double ? ((const double *)p->data.weights)[i] : (double)((const float *)p->data.weights)[i];
}

/* As ref: the least and the most of nothing is NaN. */
static double join(enum sl_tree_sum how, double sum, double weight)
{
        if (how == SL_TREE_MIN)
                return fmin(sum, weight);
        return how == SL_TREE_MAX ? fmax(sum, weight) : sum + weight;
}

static void add_list(const struct pass *p, int32_t leaf, double *sums)
{
        int32_t list = p->data.leaf_lists[leaf], start = p->data.list_starts[list], end = p->data.list_starts[list + 1];
        enum sl_tree_sum how = p->s->form.sum;

        if (!p->s->weights_are_double && how <= SL_TREE_AVERAGE && end - start == p->s->form.targets) {
                const float *weights = (const float *)p->data.weights + start;

                for (int32_t i = 0; i < end - start; i++)
                        sums[i] += (double)weights[i];
                return;
        }
        for (int32_t i = start; i < end; i++)
                sums[p->data.targets[i]] = join(how, sums[p->data.targets[i]], weight_at(p, i));
}

/* The leaves @at of rows that lie one behind another, in tree @tree. */
static SL_CPU_CLONES void add_rows(const struct pass *p, int64_t tree, const int32_t *at, int64_t row, int64_t n)
{
        double *sums = p->sums + (p->by_row ? row * p->s->form.targets : p->data.targets[tree] * p->s->block + row);
        const float *weights = p->data.weights;

        if (p->by_row) {
                for (int64_t i = 0; i < n; i++, sums += p->s->form.targets)
                        add_list(p, at[i], sums);
                return;
        }
        if (!p->s->weights_are_double && p->s->form.sum <= SL_TREE_AVERAGE) {
                for (int64_t i = 0; i < n; i++)
                        sums[i] += (double)weights[at[i]];
                return;
        }
        for (int64_t i = 0; i < n; i++)
                sums[i] = join(p->s->form.sum, sums[i], weight_at(p, at[i]));
}

static void walk_rows(const struct pass *p, int64_t tree, int64_t n)
{
        int32_t at[SL_TREE_WALKS], rows[SL_TREE_WALKS];

        for (int64_t row = 0; row < n; row += SL_TREE_WALKS) {
                int64_t here = n - row < SL_TREE_WALKS ? n - row : SL_TREE_WALKS;
                int walks = (int)sl_align_up((uint64_t)here, 16);

                for (int i = 0; i < walks; i++) {
                        at[i] = p->data.roots[tree];
                        rows[i] = (int32_t)((row + (i < here ? i : 0)) * p->row_keys);
                }
                p->s->walk(&p->walk, at, rows, walks);
                add_rows(p, tree, at, row, here);
        }
}

static void walk_trees(const struct pass *p)
{
        const int32_t rows[SL_TREE_WALKS] = {0};
        int32_t at[SL_TREE_WALKS];

        for (int64_t tree = 0; tree < p->s->form.trees; tree += SL_TREE_WALKS) {
                int64_t here = p->s->form.trees - tree < SL_TREE_WALKS ? p->s->form.trees - tree : SL_TREE_WALKS;
                int walks = (int)sl_align_up((uint64_t)here, 16);

                for (int i = 0; i < walks; i++)
                        at[i] = p->data.roots[tree + (i < here ? i : 0)];
                p->s->walk(&p->walk, at, rows, walks);
                for (int i = 0; i < here; i++) {
                        if (p->by_row)
                                add_list(p, at[i], p->sums);
                        else
                                add_rows(p, tree + i, at + i, 0, 1);
                }
        }
}

static void store(const struct pass *p, int64_t row, int64_t i, void *out)
{
        const struct sl_tree_form *f = &p->s->form;

        for (int64_t t = 0; t < f->targets; t++) {
                double sum = p->by_row ? p->sums[i * f->targets + t] : p->sums[t * p->s->block + i];

                if (f->sum >= SL_TREE_MIN && isnan(sum))
                        sum = 0;
                if (f->sum == SL_TREE_AVERAGE)
                        sum /= (double)f->trees;
                if (f->has_base)
                        sum += p->s->weights_are_double ? ((const double *)p->data.base)[t]
                                                        : (double)((const float *)p->data.base)[t];
                if (p->s->out_is_double)
                        ((double *)out)[(row + i) * f->targets + t] = sum;
                else
                        ((float *)out)[(row + i) * f->targets + t] = (float)sum;
        }
}

static int trees_run(const void *state, const struct sl_binding *binding)
{
        const struct trees *s = state;
        uint32_t n_inputs = s->form.has_lists ? 9 : s->form.has_base ? 7 : 6;
        struct pass p = {.s = s, .data = sl_tree_data_of(binding->inputs, n_inputs), .row_keys = s->form.columns};
        size_t key_bytes = s->form.wide ? 8 : 4;

        p.walk = (struct sl_tree_walk){p.data.nodes, binding->scratch, s->form.column_bits};
        p.sums = (double *)((char *)binding->scratch + s->sums_offset);
        p.by_row = s->form.has_lists;
        for (int64_t row = 0; row < s->form.rows; row += s->block) {
                int64_t n = s->form.rows - row < s->block ? s->form.rows - row : s->block;

                for (int64_t i = 0; i < n; i++)
                        make_keys(s, p.data.columns, binding->inputs[0], row + i,
                                (char *)binding->scratch + (size_t)(i * p.row_keys) * key_bytes);
                for (int64_t i = 0; i < s->block * s->form.targets; i++)
                        p.sums[i] = s->form.sum >= SL_TREE_MIN ? (double)NAN : 0;
                for (int64_t tree = 0; tree < s->form.trees && s->block > 1; tree++)
                        walk_rows(&p, tree, n);
                if (s->block == 1)
                        walk_trees(&p);
                for (int64_t i = 0; i < n; i++)
                        store(&p, row, i, binding->outputs[0]);
        }
        return 0;
}

const struct sl_cpu_loop sl_cpu_trees = {
        .state_bytes = sizeof(struct trees), .plan = trees_plan, .run = trees_run, .check = trees_check};
