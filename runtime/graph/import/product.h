/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a product of two labelled operands is written as a MatMul. Pure.
 *
 * A product of two has labels of four kinds: kept by both (batch), summed over (inner), kept of one alone (rows, columns). As a
 * MatMul it is [batch, rows, inner] times [batch, inner, columns]. Labels of the batch stay dimensions of their own, and so do rows
 * where there is no batch, so that an open size needs no name; the others are merged by a Reshape. Within a kind the labels may
 * have any order that both sides share: of the orders that the operands and the output have, that is taken which transposes the
 * fewest bytes.
 */
#pragma once

#include "import/contract.h"

/* What an open size counts as when bytes are compared. */
#define SL_PRODUCT_NOMINAL_SIZE 8

enum sl_product_kind { SL_PRODUCT_BATCH, SL_PRODUCT_ROWS, SL_PRODUCT_INNER, SL_PRODUCT_COLUMNS, SL_PRODUCT_KINDS };

/* One way to write the product: the labels of each kind in order. */
struct sl_product {
        struct sl_term kinds[SL_PRODUCT_KINDS];
};

/* How the dimensions of a side become those of a MatMul: 0 keeps one as it is. */
struct sl_product_shape {
        int64_t dims[SL_TERM_LABELS_MAX + 2];
        uint32_t count;
        bool changes;
};

/* The size of a label that one of the two has. */
int64_t sl_product_size(const struct sl_contracted *pair, uint8_t label);

/* The labels of one kind, in the order of @order. @keep: those that others want. */
struct sl_term sl_product_labels(
        const struct sl_contracted *pair, const struct sl_term *keep, enum sl_product_kind kind, const struct sl_term *order);

/* The cheapest of the orders that the operands and the output suggest for each kind. @out: NULL, any order will do. */
struct sl_product sl_product_choose(const struct sl_importer *im, const struct sl_contracted *pair, const struct sl_term *keep,
        const struct sl_term *out, double *ret_cost);

/* The labels of either side and of what is made, in order; their shapes in the MatMul. */
struct sl_term sl_product_left(const struct sl_product *p);
struct sl_term sl_product_right(const struct sl_product *p);
struct sl_term sl_product_made(const struct sl_product *p);
struct sl_product_shape sl_product_shape_left(const struct sl_contracted *pair, const struct sl_product *p);
struct sl_product_shape sl_product_shape_right(const struct sl_contracted *pair, const struct sl_product *p);
struct sl_product_shape sl_product_shape_made(const struct sl_contracted *pair, const struct sl_product *p);

/* No more dimensions than a tensor has, and no more than one open one where a Reshape is needed. */
bool sl_product_fits(const struct sl_product_shape *shape);
