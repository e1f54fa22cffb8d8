/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of shape rules and kernels share: a node is built from literals, inferred, and run on a backend.
 */
#pragma once

#include "backend.h"
#include "base/error.h"
#include "op.h"

#include <criterion/criterion.h>

#define N SL_DIM_BATCH
#define U SL_DIM_UNKNOWN

/* SHAPE(2, 3) is [2,3]; SCALAR is []. */
#define SHAPE(...) ((struct sl_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})
#define SCALAR     ((struct sl_shape){.rank = 0})

/* A new node without inputs and with one output. */
struct sl_node_desc bench_node(enum sl_op op);

/* Adds an input. */
void bench_input(struct sl_node_desc *node, enum sl_dtype dtype, struct sl_shape shape);

/* BENCH_INTS(&node, SL_ATTR_PADS, 0, 1) sets an integer list. */
#define BENCH_INTS(node, id, ...)                                                                                                  \
        cr_assert_eq(sl_attrs_set_ints(&(node)->attrs, id, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8), 0)

/* Infers and expects output @index to have that shape. */
void bench_expect_shape(struct sl_node_desc *node, uint32_t index, struct sl_shape want);

/* Infers and expects -@code with a text that contains @part. */
void bench_expect_error(struct sl_node_desc *node, int code, const char *part);

/* Infers, compiles for `ref`, and launches; the result of the launch. */
int bench_run(struct sl_node_desc *node, const void *const *inputs, void *const *outputs);

/* Runs and expects output 0 to have these elements, within @tolerance for floats. */
void bench_expect_floats(struct sl_node_desc *node, const void *const *inputs, const float *want, size_t n_want, double tolerance);
void bench_expect_bytes(struct sl_node_desc *node, const void *const *inputs, const void *want, size_t n_bytes);

#define INPUTS(...) ((const void *const[]){__VA_ARGS__})
#define FLOATS(...) ((const float[]){__VA_ARGS__})
#define EXPECT_FLOATS(node, inputs, ...)                                                                                           \
        bench_expect_floats(node, inputs, FLOATS(__VA_ARGS__), sizeof(FLOATS(__VA_ARGS__)) / 4, 1e-6)
#define EXPECT_ELEMENTS(node, inputs, type, ...)                                                                                   \
        bench_expect_bytes(node, inputs, (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}))
