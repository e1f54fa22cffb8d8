/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM, GRU and RNN as one product of cuBLASLt, of the inputs of all steps by the weights of all gates, and own kernels that go
 * from step to step. Pure.
 */
#pragma once

#include "cuda/recipe.h"

/* Can the recipe be made? */
bool sl_cuda_recurrent_fits(const struct sl_node_desc *node);

/* Adds its steps. Return: 0; -ENOTSUP; -ENOMEM. */
int sl_cuda_recurrent_make(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool tf32);
