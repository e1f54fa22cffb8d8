/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.QuantizedConv and starling.QuantizedMatMul where int8.h does not fit, on the tensor cores that cuDNN and cuBLASLt have
 * for float32:
 *
 *      x [bytes] - zero of x       float32, in scratch                                    own kernels
 *      their product by w          float32, in scratch; w lies in the plan as float32     cuDNN, cuBLASLt
 *      scale * (sum + bias), ...   bytes, or float32                                      own kernels
 *
 * Factors have 9 bits, so that rounding them to the 11 of TF32 changes none: sums up to 2^24 are exact. Pure.
 */
#pragma once

#include "cuda/recipe.h"

/* The convolution of floats in the middle, without an epilogue; false: there is none, or not over images in channels-last. */
bool sl_cuda_quantized_convolution(const struct sl_node_desc *node, struct sl_cudnn_convolution *ret_convolution);

/* The product of floats in the middle, of weights that may lie either way; false: there is none, or a dimension is none. */
bool sl_cuda_quantized_product(const struct sl_node_desc *node, struct sl_cuda_product *ret_product);

/* Can the recipe be made? */
bool sl_cuda_quantized_fits(const struct sl_node_desc *node);

/* Adds its steps. @workspace_bytes: of the convolution. Return: 0; -ENOTSUP; -ENOMEM. */
int sl_cuda_quantized_make(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, uint64_t workspace_bytes);

/*
 * Adds the last step, from @sums to the result: float32; with @totals int32, which lack what the zero point makes of those. Return:
 * 0; -ENOTSUP; -ENOMEM.
 */
int sl_cuda_quantized_settle(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_place *sums,
        const struct sl_cuda_place *totals);
