/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms in which constants lie in a plan: filters for cuDNN with the channels of a pixel side by side, as in the image, and
 * those of products of bytes as float32, or as int8 with the total of each filter behind them. Pure.
 */
#pragma once

#include "cuda/recipe.h"
#include "kernel_source.h"

#include <stdbool.h>

/* That of input @index of a node which is computed in that way; data_bytes 0: as it is. */
void sl_cuda_form_of(const struct sl_node_desc *node, enum sl_cuda_way way, uint32_t index, struct sl_packed *ret_packed);
bool sl_cuda_form_is(const struct sl_node_desc *node, enum sl_cuda_way way, uint32_t index, const struct sl_packed *packed);

/* @plain may lie at any address. -ENOTSUP: @packed is no form of it. */
int sl_cuda_form_repack(const struct sl_tensor *tensor, const struct sl_packed *packed, const void *plain, void *ret_data);
