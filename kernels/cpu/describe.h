/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the specs of several operators share. Pure; any thread.
 */
#pragma once

#include "cpu/operator.h"

/* The tensor in its own layout. */
struct sl_strided sl_describe_tensor(const struct sl_tensor *tensor);

/* A dense row-major tensor. */
struct sl_strided sl_describe_dense(uint32_t dtype, uint32_t rank, const int64_t *dims);

/* The next step adds node input @input, seen as @addend. False: no room for one more. */
bool sl_describe_add(struct sl_cpu_call *call, const struct sl_strided *addend, uint32_t input);

/* The next step is y = a * y + b. */
bool sl_describe_linear(struct sl_cpu_call *call, float a, float b);

/* Weights of a convolution; the library sees groups as a dimension of their own in front: [O, I, k...] is [G, O/G, I, k...]. */
struct sl_strided sl_describe_filters(const struct sl_tensor *weights, int64_t groups);

/* The window of a convolution. */
struct sl_window;
void sl_describe_window(const struct sl_window *window, struct sl_primitive_spec *spec);

/* The next step is the activation of the node's epilogue. */
bool sl_describe_activation(const struct sl_node_desc *node, struct sl_cpu_call *call);

/* The steps of the node's epilogue. call->spec.result is set already; the residual is seen with the same dimensions. */
bool sl_describe_epilogue(const struct sl_node_desc *node, struct sl_cpu_call *call);

/*
 * The same call with the residual copied into the result first and summed onto: a pass over memory more, but right in all of the
 * library's kernels. The residual is the last addend. False: there is none.
 */
bool sl_describe_sum(const struct sl_node_desc *node, struct sl_cpu_call *call);

/* The input of the operator itself (not the epilogue's residual), or NULL when it is absent. */
const struct sl_tensor *sl_describe_input(const struct sl_node_desc *node, uint32_t index);
