/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: the lists below are tables */
/*
 * The own kernels, by family: a .cu file, compiled and loaded as one. Each kernel has one argument, a struct of arguments.h.
 */
#pragma once

#define SL_OWN_FAMILIES(X)                                                                                                         \
        X(elementwise)                                                                                                             \
        X(movement) X(convert) X(lines) X(reduce) X(image) X(select) X(ensemble) X(bytes) X(recurrent) X(convolve) X(attention)

/* family, kernel, its argument */
#define SL_OWN_KERNELS(X)                                                                                                          \
        X(elementwise, chain_f32, struct sl_own_chain)                                                                             \
        X(elementwise, chain_f16, struct sl_own_chain)                                                                             \
        X(elementwise, chain_bf16, struct sl_own_chain)                                                                            \
        X(elementwise, integers, struct sl_own_chain)                                                                              \
        X(movement, copy_1, struct sl_own_copy)                                                                                    \
        X(movement, copy_2, struct sl_own_copy)                                                                                    \
        X(movement, copy_4, struct sl_own_copy)                                                                                    \
        X(movement, copy_8, struct sl_own_copy)                                                                                    \
        X(movement, copy_16, struct sl_own_copy)                                                                                   \
        X(movement, transpose_1, struct sl_own_transpose)                                                                          \
        X(movement, transpose_2, struct sl_own_transpose)                                                                          \
        X(movement, transpose_4, struct sl_own_transpose)                                                                          \
        X(movement, transpose_8, struct sl_own_transpose)                                                                          \
        X(movement, pad, struct sl_own_pad)                                                                                        \
        X(movement, fill, struct sl_own_fill)                                                                                      \
        X(movement, values, struct sl_own_values)                                                                                  \
        X(movement, gather_1, struct sl_own_gather)                                                                                \
        X(movement, gather_2, struct sl_own_gather)                                                                                \
        X(movement, gather_4, struct sl_own_gather)                                                                                \
        X(movement, gather_8, struct sl_own_gather)                                                                                \
        X(movement, gather_16, struct sl_own_gather)                                                                               \
        X(movement, gather_elements, struct sl_own_gather_elements)                                                                \
        X(movement, gather_nd, struct sl_own_gather_nd)                                                                            \
        X(movement, scatter_elements, struct sl_own_gather_elements)                                                               \
        X(movement, scatter_rows, struct sl_own_gather_nd)                                                                         \
        X(movement, one_hot, struct sl_own_one_hot)                                                                                \
        X(movement, reverse, struct sl_own_reverse)                                                                                \
        X(movement, shuffle, struct sl_own_shuffle)                                                                                \
        X(movement, triangle, struct sl_own_triangle)                                                                              \
        X(convert, cast, struct sl_own_cast)                                                                                       \
        X(convert, cast_f32_f16, struct sl_own_cast)                                                                               \
        X(convert, cast_f32_bf16, struct sl_own_cast)                                                                              \
        X(convert, cast_f16_f32, struct sl_own_cast)                                                                               \
        X(convert, cast_bf16_f32, struct sl_own_cast)                                                                              \
        X(convert, test, struct sl_own_chain)                                                                                      \
        X(convert, where_1, struct sl_own_chain)                                                                                   \
        X(convert, where_2, struct sl_own_chain)                                                                                   \
        X(convert, where_4, struct sl_own_chain)                                                                                   \
        X(convert, where_8, struct sl_own_chain)                                                                                   \
        X(lines, lines_f32, struct sl_own_lines)                                                                                   \
        X(lines, lines_f16, struct sl_own_lines)                                                                                   \
        X(lines, lines_bf16, struct sl_own_lines)                                                                                  \
        X(reduce, reduce_f32, struct sl_own_reduce)                                                                                \
        X(reduce, reduce_f16, struct sl_own_reduce)                                                                                \
        X(reduce, reduce_bf16, struct sl_own_reduce)                                                                               \
        X(reduce, reduce_integers, struct sl_own_reduce)                                                                           \
        X(reduce, standardize_f32, struct sl_own_reduce)                                                                           \
        X(reduce, standardize_f16, struct sl_own_reduce)                                                                           \
        X(reduce, standardize_bf16, struct sl_own_reduce)                                                                          \
        X(reduce, hardmax, struct sl_own_hardmax)                                                                                  \
        X(reduce, arg_floats, struct sl_own_arg)                                                                                   \
        X(reduce, arg_integers, struct sl_own_arg)                                                                                 \
        X(image, pool_f32, struct sl_own_pool)                                                                                     \
        X(image, pool_f16, struct sl_own_pool)                                                                                     \
        X(image, pool_bf16, struct sl_own_pool)                                                                                    \
        X(image, pool_u8, struct sl_own_pool)                                                                                      \
        X(image, pool_i8, struct sl_own_pool)                                                                                      \
        X(image, scale_f32, struct sl_own_scale)                                                                                   \
        X(image, scale_f16, struct sl_own_scale)                                                                                   \
        X(image, scale_bf16, struct sl_own_scale)                                                                                  \
        X(image, lrn_f32, struct sl_own_lrn)                                                                                       \
        X(image, lrn_f16, struct sl_own_lrn)                                                                                       \
        X(image, lrn_bf16, struct sl_own_lrn)                                                                                      \
        X(image, resize, struct sl_own_resize)                                                                                     \
        X(image, resize_filter, struct sl_own_resize)                                                                              \
        X(image, grid_sample, struct sl_own_grid_sample)                                                                           \
        X(select, top_k, struct sl_own_top_k)                                                                                      \
        X(select, cum_sum, struct sl_own_cum_sum)                                                                                  \
        X(select, nms, struct sl_own_nms)                                                                                          \
        X(select, nms_rows, struct sl_own_nms)                                                                                     \
        X(ensemble, combine_elements, struct sl_own_combine)                                                                       \
        X(ensemble, combine_votes, struct sl_own_combine)                                                                          \
        X(ensemble, combine_geometric, struct sl_own_combine)                                                                      \
        X(ensemble, processors, struct sl_own_processors)                                                                          \
        X(bytes, quantize, struct sl_own_quantize)                                                                                 \
        X(bytes, dequantize, struct sl_own_quantize)                                                                               \
        X(bytes, quantized_add, struct sl_own_quantized_add)                                                                       \
        X(bytes, shift, struct sl_own_shift)                                                                                       \
        X(bytes, im2col, struct sl_own_im2col)                                                                                     \
        X(bytes, settle, struct sl_own_settle)                                                                                     \
        X(bytes, dynamic_range, struct sl_own_dynamic_quantize)                                                                    \
        X(bytes, dynamic_quantize, struct sl_own_dynamic_quantize)                                                                 \
        X(recurrent, recurrent_begin, struct sl_own_recurrent)                                                                     \
        X(recurrent, recurrent_f32, struct sl_own_recurrent)                                                                       \
        X(recurrent, recurrent_f16, struct sl_own_recurrent)                                                                       \
        X(recurrent, recurrent_bf16, struct sl_own_recurrent)                                                                      \
        X(attention, attention_f16_32, struct sl_own_attention)                                                                    \
        X(attention, attention_f16_64, struct sl_own_attention)                                                                    \
        X(attention, attention_f16_128, struct sl_own_attention)                                                                   \
        X(attention, attention_bf16_32, struct sl_own_attention)                                                                   \
        X(attention, attention_bf16_64, struct sl_own_attention)                                                                   \
        X(attention, attention_bf16_128, struct sl_own_attention)                                                                  \
        X(convolve, convolve_f32, struct sl_own_convolve)                                                                          \
        X(convolve, convolve_f16, struct sl_own_convolve)                                                                          \
        X(convolve, convolve_bf16, struct sl_own_convolve)

enum sl_own_family {
#define X(family) SL_OWN_FAMILY_##family,
        SL_OWN_FAMILIES(X)
#undef X
        SL_OWN_FAMILY_COUNT,
};

enum sl_own_kernel {
#define X(family, name, argument) SL_OWN_KERNEL_##name,
        SL_OWN_KERNELS(X)
#undef X
        SL_OWN_KERNEL_COUNT,
};
