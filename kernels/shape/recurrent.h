/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recurrent layer (LSTM, GRU, RNN): one reading of its attributes and shapes for shape rules and kernels. Pure; any thread.
 * Tensors are as ONNX has them: X [steps, batch, inputs] (LAYOUT 1: [batch, steps, inputs]), W [directions, gates * hidden,
 * inputs], R [directions, gates * hidden, hidden], B [directions, 2 * gates * hidden], P [directions, 3 * hidden].
 */
#pragma once

#include "node.h"

struct sl_error;

enum { SL_RNN_X, SL_RNN_W, SL_RNN_R, SL_RNN_B, SL_RNN_LENGTHS, SL_RNN_H, SL_RNN_C, SL_RNN_P };

/* Functions of a gate. The words of import are in this order. */
enum sl_gate {
        SL_GATE_RELU,
        SL_GATE_TANH,
        SL_GATE_SIGMOID,
        SL_GATE_AFFINE,
        SL_GATE_LEAKY_RELU,
        SL_GATE_THRESHOLDED_RELU,
        SL_GATE_SCALED_TANH,
        SL_GATE_HARD_SIGMOID,
        SL_GATE_ELU,
        SL_GATE_SOFTSIGN,
        SL_GATE_SOFTPLUS,
        SL_GATE_COUNT,
};

#define SL_RNN_GATES_MAX 4

struct sl_recurrence {
        int64_t steps, batch, inputs, hidden; /* may be SL_DIM_BATCH or SL_DIM_UNKNOWN in a graph */
        uint32_t directions, gates, functions;
        uint32_t backward; /* the first direction runs from the last step to the first */
        uint32_t batch_first, input_forget, linear_before_reset;
        double clip; /* 0: none */
        struct {
                uint32_t kind; /* enum sl_gate */
                double alpha, beta;
        } function[2][3]; /* of a direction: f, g, h as in ONNX */
};

int sl_recurrence_read(const struct sl_node_desc *node, struct sl_recurrence *ret_recurrence, struct sl_error *error);
