/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the passes that recognise several nodes as one have in common: looking backwards from a value, whatever the order in which
 * an exporter wrote the operands of a sum or a product. Private to this folder. Pure.
 */
#pragma once

#include "op.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_graph;

/* The node of operator @op that makes @value, or SL_VALUE_NONE. */
uint32_t sl_match_made(const struct sl_graph *graph, uint32_t value, uint32_t op);

/* A float32 constant of one element. */
bool sl_match_scalar(const struct sl_graph *graph, uint32_t value, double *ret_scalar);

/* @a and @b differ by rounding to float32 at most. */
bool sl_match_close(double a, double b);

/* Add or Mul (as @op says) of something and a scalar makes @value. */
bool sl_match_with_scalar(const struct sl_graph *graph, uint32_t value, uint32_t op, uint32_t *ret_other, double *ret_scalar);

/* Add or Mul (as @op says) makes @value of two operands, which come in both orders: false for any @order but 0 and 1. */
bool sl_match_operands(const struct sl_graph *graph, uint32_t value, uint32_t op, int order, uint32_t *ret_a, uint32_t *ret_b);

/*
 * @value as a product: a number and at most @room factors. Products and quotients by a number are looked through where nothing
 * else uses them (@value itself may have any users). Returns how many factors there are; 0 when there are too many.
 */
#define SL_MATCH_FACTORS_MAX 4
uint32_t sl_match_product(
        const struct sl_graph *graph, uint32_t value, double *ret_number, uint32_t ret_factors[SL_MATCH_FACTORS_MAX]);

/* The node becomes @op over these inputs, without attributes and epilogue; its output stays. -ENOMEM. */
int sl_match_become(struct sl_graph *graph, uint32_t node, uint32_t op, const uint32_t *inputs, uint32_t n_inputs);
