/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the rows of contrib.c, by family. Private to this folder. */
#pragma once

#include "import/attend.h"
#include "import/canonical.h"

#define SL_CONTRIB(name) int sl_contrib_##name(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)

/* contrib_gelu.c */
SL_CONTRIB(bias_gelu);
SL_CONTRIB(fast_gelu);
SL_CONTRIB(quick_gelu);

/* contrib_product.c */
SL_CONTRIB(fused_conv);
SL_CONTRIB(fused_gemm);
SL_CONTRIB(fused_matmul);

/* contrib_norm.c */
SL_CONTRIB(skip_layer_norm);
SL_CONTRIB(skip_rms_norm);
SL_CONTRIB(embed_layer_norm);

/* contrib_attention.c */
SL_CONTRIB(attention);
SL_CONTRIB(multi_head_attention);

/* contrib_rotary.c, contrib_gqa.c */
SL_CONTRIB(rotary_embedding);
SL_CONTRIB(group_query_attention);

/* Queries, keys and values that lie side by side in @product, [batch, rows, width]. */
void sl_contrib_attend_to_product(struct sl_expansion *x, struct sl_attend *attend, uint32_t product);

/* The outputs of a node whose caches are one tensor; refuses the attributes of caches that nobody here has. */
void sl_contrib_attend_with_past(struct sl_expansion *x, struct sl_attend *attend, uint32_t past, uint32_t mask, uint32_t bias);

/*
 * contrib_qlinear.c: bytes as floats; @zero may be left out, @axis is that of the scales where there are several. The names of the
 * operators without QLinear.
 */
uint32_t sl_contrib_dequantized(struct sl_expansion *x, uint32_t value, uint32_t scale, uint32_t zero, int64_t axis);
SL_CONTRIB(qlinear_add);
SL_CONTRIB(qlinear_mul);
SL_CONTRIB(qlinear_unary);
SL_CONTRIB(qlinear_pool);
SL_CONTRIB(qlinear_where);
SL_CONTRIB(qlinear_concat);
SL_CONTRIB(qlinear_softmax);
SL_CONTRIB(qgemm);

/* contrib_nhwc.c: an image in the other layout */
uint32_t sl_contrib_channels_first(struct sl_expansion *x, uint32_t value);
uint32_t sl_contrib_channels_last(struct sl_expansion *x, uint32_t value);
SL_CONTRIB(nhwc_conv);
SL_CONTRIB(nhwc_max_pool);
SL_CONTRIB(qlinear_conv);

/* contrib_dynamic.c */
SL_CONTRIB(matmul_integer_to_float);
SL_CONTRIB(dynamic_quantize_matmul);
SL_CONTRIB(dynamic_quantize_lstm);
SL_CONTRIB(qattention);

/* contrib_blocks.c */
SL_CONTRIB(gather_block_quantized);
SL_CONTRIB(matmul_nbits);
