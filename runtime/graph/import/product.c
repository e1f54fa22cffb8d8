/* SPDX-License-Identifier: Apache-2.0 */
#include "import/product.h"

#include <math.h>

int64_t sl_product_size(const struct sl_contracted *pair, uint8_t label)
{
        return pair[sl_term_has(&pair[0].term, label) ? 0 : 1].sizes[label];
}

struct sl_term sl_product_labels(
        const struct sl_contracted *pair, const struct sl_term *keep, enum sl_product_kind kind, const struct sl_term *order)
{
        struct sl_term term = {.count = 0};

        for (uint32_t i = 0; i < order->count; i++) {
                uint8_t label = order->labels[i];
                bool a = sl_term_has(&pair[0].term, label), b = sl_term_has(&pair[1].term, label);
                enum sl_product_kind own = a && b ? sl_term_has(keep, label) ? SL_PRODUCT_BATCH : SL_PRODUCT_INNER
                                           : a    ? SL_PRODUCT_ROWS
                                                  : SL_PRODUCT_COLUMNS;

                if ((a || b) && own == kind)
                        sl_term_append(&term, label);
        }
        return term;
}

static struct sl_term joined(const struct sl_term *a, const struct sl_term *b, const struct sl_term *c)
{
        const struct sl_term *const parts[] = {a, b, c};
        struct sl_term all = {.count = 0};

        for (uint32_t p = 0; p < 3; p++)
                for (uint32_t i = 0; parts[p] && i < parts[p]->count && all.count < SL_TERM_LABELS_MAX; i++)
                        sl_term_append(&all, parts[p]->labels[i]);
        return all;
}

struct sl_term sl_product_left(const struct sl_product *p)
{
        return joined(&p->kinds[SL_PRODUCT_BATCH], &p->kinds[SL_PRODUCT_ROWS], &p->kinds[SL_PRODUCT_INNER]);
}

struct sl_term sl_product_right(const struct sl_product *p)
{
        return joined(&p->kinds[SL_PRODUCT_BATCH], &p->kinds[SL_PRODUCT_INNER], &p->kinds[SL_PRODUCT_COLUMNS]);
}

struct sl_term sl_product_made(const struct sl_product *p)
{
        return joined(&p->kinds[SL_PRODUCT_BATCH], &p->kinds[SL_PRODUCT_ROWS], &p->kinds[SL_PRODUCT_COLUMNS]);
}

/* Elements that a Transpose from one order to another moves: none where only dimensions of 1 change places. */
static double moved(const struct sl_contracted *pair, const struct sl_term *from, const struct sl_term *to)
{
        double elements = 1;
        bool turned = false;

        for (uint32_t i = 0, k = 0; i < from->count; i++) {
                int64_t size = sl_product_size(pair, from->labels[i]);

                if (size == 1)
                        continue;
                while (k < to->count && sl_product_size(pair, to->labels[k]) == 1)
                        k++;
                turned |= k == to->count || to->labels[k++] != from->labels[i];
                elements *= size < 0 ? SL_PRODUCT_NOMINAL_SIZE : (double)size;
        }
        return turned ? elements : 0;
}

/* Constants are turned while the model is compiled. */
static double cost_of(
        const struct sl_importer *im, const struct sl_contracted *pair, const struct sl_product *p, const struct sl_term *out)
{
        struct sl_term sides[2] = {sl_product_left(p), sl_product_right(p)}, made = sl_product_made(p);
        double cost = out ? moved(pair, &made, out) : 0;

        for (uint32_t k = 0; k < 2; k++)
                if (!sl_graph_is_constant(im->graph, pair[k].value))
                        cost += moved(pair, &pair[k].term, &sides[k]);
        return cost;
}

struct sl_product sl_product_choose(const struct sl_importer *im, const struct sl_contracted *pair, const struct sl_term *keep,
        const struct sl_term *out, double *ret_cost)
{
        const struct sl_term *const orders[] = {&pair[0].term, &pair[1].term, keep};
        struct sl_product best = {0};

        *ret_cost = HUGE_VAL;
        for (uint32_t i = 0; i < 3 * 3 * 3 * 3; i++) {
                struct sl_product p;
                double cost;
                bool whole = true;

                for (uint32_t kind = 0, n = i; kind < SL_PRODUCT_KINDS; kind++, n /= 3) {
                        p.kinds[kind] = sl_product_labels(pair, keep, kind, orders[n % 3]);
                        whole = whole && (kind != SL_PRODUCT_ROWS || n % 3 != 1) && (kind != SL_PRODUCT_COLUMNS || n % 3 != 0) &&
                                (kind != SL_PRODUCT_INNER || n % 3 != 2);
                }
                if (!whole)
                        continue;
                cost = cost_of(im, pair, &p, out);
                if (cost < *ret_cost) {
                        *ret_cost = cost;
                        best = p;
                }
        }
        return best;
}

/* The product of sizes; -1: one is open. */
static int64_t extent_of(const struct sl_contracted *pair, const struct sl_term *labels)
{
        int64_t extent = 1;

        for (uint32_t i = 0; i < labels->count; i++) {
                int64_t size = sl_product_size(pair, labels->labels[i]);

                if (size < 0 || __builtin_mul_overflow(extent, size, &extent))
                        return -1;
        }
        return extent;
}

/* A Reshape finds out one size by itself. */
static bool is_reshape(const int64_t *dims, uint32_t count)
{
        uint32_t open = 0;

        for (uint32_t i = 0; i < count; i++)
                open += dims[i] < 0;
        return open <= 1;
}

static void keep_dims(struct sl_product_shape *shape, uint32_t count)
{
        for (uint32_t i = 0; i < count && shape->count < SL_TERM_LABELS_MAX + 1; i++)
                shape->dims[shape->count++] = 0;
}

static void merge_dims(const struct sl_contracted *pair, const struct sl_term *labels, struct sl_product_shape *shape)
{
        shape->dims[shape->count++] = extent_of(pair, labels);
        shape->changes |= labels->count != 1;
}

static void split_dims(const struct sl_contracted *pair, const struct sl_term *labels, struct sl_product_shape *shape)
{
        for (uint32_t i = 0; i < labels->count && shape->count < SL_TERM_LABELS_MAX + 1; i++) {
                int64_t size = sl_product_size(pair, labels->labels[i]);

                shape->dims[shape->count++] = size < 0 ? -1 : size;
        }
        shape->changes |= labels->count != 1;
}

/* Rows stay apart where there is no batch: then the right side is one matrix. */
static bool rows_stay(const struct sl_product *p)
{
        return !p->kinds[SL_PRODUCT_BATCH].count && p->kinds[SL_PRODUCT_ROWS].count;
}

struct sl_product_shape sl_product_shape_left(const struct sl_contracted *pair, const struct sl_product *p)
{
        struct sl_product_shape shape = {.count = 0};

        keep_dims(&shape, p->kinds[SL_PRODUCT_BATCH].count);
        if (rows_stay(p))
                keep_dims(&shape, p->kinds[SL_PRODUCT_ROWS].count);
        else
                merge_dims(pair, &p->kinds[SL_PRODUCT_ROWS], &shape);
        merge_dims(pair, &p->kinds[SL_PRODUCT_INNER], &shape);
        return shape;
}

struct sl_product_shape sl_product_shape_right(const struct sl_contracted *pair, const struct sl_product *p)
{
        struct sl_product_shape shape = {.count = 0};

        keep_dims(&shape, p->kinds[SL_PRODUCT_BATCH].count);
        merge_dims(pair, &p->kinds[SL_PRODUCT_INNER], &shape);
        merge_dims(pair, &p->kinds[SL_PRODUCT_COLUMNS], &shape);
        return shape;
}

struct sl_product_shape sl_product_shape_made(const struct sl_contracted *pair, const struct sl_product *p)
{
        struct sl_product_shape shape = {.count = 0};

        keep_dims(&shape, p->kinds[SL_PRODUCT_BATCH].count);
        if (rows_stay(p))
                keep_dims(&shape, p->kinds[SL_PRODUCT_ROWS].count);
        else
                split_dims(pair, &p->kinds[SL_PRODUCT_ROWS], &shape);
        split_dims(pair, &p->kinds[SL_PRODUCT_COLUMNS], &shape);
        return shape;
}

bool sl_product_fits(const struct sl_product_shape *shape)
{
        return shape->count <= SL_RANK_MAX && (!shape->changes || is_reshape(shape->dims, shape->count));
}
