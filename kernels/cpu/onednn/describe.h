/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators as calls of oneDNN: a function for each kind of them turns a node into the spec of a primitive and says which input is
 * which of its arguments; below are the parts that they share. Pure, so what supports() promises is what compile() does; any
 * thread.
 */
#pragma once

#include "cpu/base/operator.h"
#include "cpu/onednn/evened.h"
#include "cpu/onednn/primitive.h"

struct sl_cpu_call {
        struct sl_primitive_spec spec;
        int8_t input_of[SL_ARGUMENT_COUNT]; /* node input of each argument; -1: none */
        int summand;                        /* node input that is copied into the result before the run; 0: none */
        int scales;                         /* node input that is spec.scales, a constant; 0: none */
        struct sl_tensor turned;            /* if it has a type: input 0 is first turned into this layout, in scratch */
        struct sl_evening evening;          /* if it has pixels: that is how it is turned, and the weights are evened */
};

/* Fills @call (zeroed, input_of all -1 except SOURCE, which is 0). False: not a node for oneDNN. */
typedef bool sl_cpu_describe(const struct sl_node_desc *node, struct sl_cpu_call *call);

sl_cpu_describe sl_cpu_describe_convolution;
sl_cpu_describe sl_cpu_describe_gemm;
sl_cpu_describe sl_cpu_describe_matmul;
sl_cpu_describe sl_cpu_describe_pool;
sl_cpu_describe sl_cpu_describe_response; /* LRN */
sl_cpu_describe sl_cpu_describe_function;
sl_cpu_describe sl_cpu_describe_quantized_convolution;
sl_cpu_describe sl_cpu_describe_quantized_matmul;

/* The tensor in its own layout. */
struct sl_strided sl_describe_tensor(const struct sl_tensor *tensor);

/* A dense row-major tensor. */
struct sl_strided sl_describe_dense(uint32_t dtype, uint32_t rank, const int64_t *dims);

/* The next step adds node input @input, seen as @addend. False: no room for one more. */
bool sl_describe_add(struct sl_cpu_call *call, const struct sl_strided *addend, uint32_t input);

/* The next step is y = a * y + b. */
bool sl_describe_linear(struct sl_cpu_call *call, float a, float b);

/* Weights of a convolution; oneDNN sees groups as a dimension of their own in front: [O, I, k...] is [G, O/G, I, k...]. */
struct sl_strided sl_describe_filters(const struct sl_tensor *weights, int64_t groups);

/* The window of a convolution. */
struct sl_window;
void sl_describe_window(const struct sl_window *window, struct sl_primitive_spec *spec);

/* The same call for evened channels, where that matters: of packed weights alone, since plain ones lead to code that does not mind.
 */
void sl_describe_evened(const struct sl_node_desc *node, struct sl_cpu_call *call);

/* The next step is the activation of the node's epilogue. */
bool sl_describe_activation(const struct sl_node_desc *node, struct sl_cpu_call *call);

/* The same in a pass of our own over the result. False: oneDNN's are as good. */
bool sl_describe_behind(const struct sl_node_desc *node, struct sl_cpu_call *call);

/* The steps of the node's epilogue, of which there are no more behind it. call->spec.result is set already; the residual is seen
 * with the same dimensions. */
bool sl_describe_epilogue(const struct sl_node_desc *node, struct sl_cpu_call *call);

/*
 * The same call with the residual copied into the result first and summed onto: a pass over memory more, but right in all of the
 * oneDNN's kernels. The residual is the last addend. False: there is none.
 */
bool sl_describe_sum(const struct sl_node_desc *node, struct sl_cpu_call *call);
