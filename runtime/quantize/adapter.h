/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network whose first input or first output differs from a task's gets nodes before and behind it, and then has the task's
 * signature. They are nodes as any others: compiled with it, and written with it as ONNX.
 *
 *     before   x * scale + offset   where the network wants another range of values
 *              Resize               another height or width: linear, half_pixel, as PyTorch's bilinear without antialias
 *              Transpose            channels last where the task has them first, or the other way round
 *     behind   Slice                one class more than the task: the first is the background, and goes
 *              Softmax              logits where the task has probabilities
 *
 * All other differences are refused. One owner thread, the graph's.
 */
#pragma once

#include "tensor.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;

#define SL_ADAPTER_PORTS_MAX 64
#define SL_ADAPTER_TEXT      160

/* The inputs and outputs of a task, in their order; leading dimensions are SL_DIM_BATCH. */
struct sl_task_ports {
        uint32_t n_inputs, n_outputs;
        struct sl_tensor inputs[SL_ADAPTER_PORTS_MAX], outputs[SL_ADAPTER_PORTS_MAX];
};

/* Those of a graph. Return: 0; -E2BIG more than SL_ADAPTER_PORTS_MAX of one kind. */
int sl_task_ports_of(const struct sl_graph *graph, struct sl_task_ports *ret_ports, struct sl_error *error);

struct sl_adapter_wish {
        const float *scale, *offset; /* one, or one of each of the task's channels */
        uint32_t n_scale, n_offset;  /* 0: none */
        bool softmax;                /* what the network gives are logits */
};

/*
 * @ret_text: what was added, "Resize 224x224 -> 299x299, Softmax"; "" nothing, and the graph is as it was. Return: 0; -EINVAL what
 * cannot be adapted, with port, value and limit; -ENOTSUP the graph has bodies; -ENOMEM; what inference says.
 */
int sl_adapt(struct sl_graph *graph, const struct sl_task_ports *task, const struct sl_adapter_wish *wish,
        char ret_text[SL_ADAPTER_TEXT], struct sl_error *error);
