/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.QuantizedConv and starling.QuantizedMatMul on the tensor cores that cuDNN and cuBLASLt have for int8:
 *
 *      x as int8                         uint8 less 128; where the zero point is not 0 then, with the padding,
 *                                        or as rows (im2col), those of its windows                            own kernels
 *      its product by w                  int32, exact                                                         cuDNN, cuBLASLt
 *      scale * (sum - zero * total + bias), ...    bytes, or float32; total: of the filter's weights          own kernels
 *
 * The totals lie behind the weights, in one constant. What is int8, has no zero point and needs no rows is read where it is. Pure.
 */
#pragma once

#include "cuda/recipe.h"

/* Wants channels, filters and columns in multiples of 4, one group, and a sum that int32 holds. */
bool sl_cuda_int8_fits(const struct sl_node_desc *node);

/* What cuDNN is to convolve: with its own padding only where that stands for 0. False: it does not fit, or is no convolution. */
bool sl_cuda_int8_convolution(const struct sl_node_desc *node, struct sl_cudnn_convolution *ret_convolution);

/* Are the rows of the convolution its pixels? Then cuBLASLt does all of it. */
bool sl_cuda_int8_is_pointwise(const struct sl_node_desc *node);

/* Where the totals begin in the constant. */
uint64_t sl_cuda_int8_totals_at(const struct sl_tensor *weights);

/*
 * Adds its steps, of SL_CUDA_WAY_INT8_CONVOLUTION, _ROWS or _PRODUCT. @workspace_bytes: of the convolution. Return: 0; -ENOTSUP;
 * -ENOMEM.
 */
int sl_cuda_int8_make(
        struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, enum sl_cuda_way way, uint64_t workspace_bytes);
