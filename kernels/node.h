/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operator with everything that decides what it computes: id, attributes, the tensors that go in and come out, and the
 * epilogue that a fusion pass attached to it. A node holds no data and no pointers; values are numbered by the graph.
 */
#pragma once

#include "attr.h"
#include "tensor.h"

#define SL_NODE_INPUTS_MAX  64 /* Concat and Sum take many */
#define SL_NODE_OUTPUTS_MAX 16

/*
 * The epilogue runs on each element of output 0, in this order: + residual (the node's last input), then the activation.
 * The bias of Conv, Gemm and MatMul is their ordinary input 2.
 */
enum sl_activation {
        SL_ACT_NONE,
        SL_ACT_RELU,
        SL_ACT_CLIP, /* act_a = minimum, act_b = maximum */
        SL_ACT_SIGMOID,
        SL_ACT_TANH,
        SL_ACT_LEAKY_RELU, /* act_a = slope */
        SL_ACT_GELU_ERF,
        SL_ACT_HARD_SWISH,
        SL_ACT_SWISH, /* x * sigmoid(act_a * x) */
        SL_ACT_ELU,   /* act_a = alpha */
};

struct sl_epilogue {
        uint32_t activation; /* enum sl_activation */
        float act_a, act_b;
        uint32_t has_residual; /* the last input is added first; same shape as output 0 */
};

/*
 * How a node is computed, where a backend has several ways: its ALGORITHM attribute, which the compiler sets. AUTO (or no
 * attribute) is the backend's own rule, which never takes an approximate one.
 */
enum sl_algorithm {
        SL_ALGORITHM_AUTO,
        SL_ALGORITHM_DIRECT,     /* oneDNN's convolution or matrix product */
        SL_ALGORITHM_BLOCKED,    /* own loops over packed blocks: grouped, depthwise and small convolutions, matrix products */
        SL_ALGORITHM_WINOGRAD_2, /* F(2x2, 3x3): approximate */
        SL_ALGORITHM_WINOGRAD_4, /* F(4x4, 3x3): approximate */
        SL_ALGORITHM_COUNT,
};

/* Whether its result differs by more than the order of sums. */
static inline bool sl_algorithm_is_approximate(uint32_t algorithm)
{
        return algorithm == SL_ALGORITHM_WINOGRAD_2 || algorithm == SL_ALGORITHM_WINOGRAD_4;
}

/* What a kernel sees: shapes and types are final, layouts are chosen. Absent optional inputs have dtype SL_DTYPE_NONE. */
struct sl_node_desc {
        uint32_t op; /* enum sl_op */
        uint32_t n_inputs, n_outputs;
        struct sl_attrs attrs;
        struct sl_epilogue epilogue;
        struct sl_tensor inputs[SL_NODE_INPUTS_MAX];
        struct sl_tensor outputs[SL_NODE_OUTPUTS_MAX];
};
