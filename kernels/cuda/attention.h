/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.RowAttention as products of cuBLASLt around a Softmax of ours, whose scores are float32 whatever the rows are. Pure.
 */
#pragma once

#include "cuda/recipe.h"

/* Can the recipe be made? */
bool sl_cuda_attention_fits(const struct sl_node_desc *node);

/* Adds its steps. Return: 0; -ENOTSUP; -ENOMEM. */
int sl_cuda_attention_make(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool tf32);
