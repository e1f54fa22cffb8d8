/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product of matrices, or of stacks of them, as cuBLASLt computes it: out = relu(alpha * left * right + beta * addend + bias).
 * Everything is row-major here; lengths, strides and steps are in elements. Of int8 the result is int32, left * right alone, its
 * right matrix is turned, and depth and columns are multiples of 4, as are all rows. Plain values; pure.
 */
#pragma once

#include "node.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_cuda_product {
        uint32_t type, out_type; /* enum sl_dtype, of the factors and the bias; of the addend and the result */
        int64_t rows, depth, columns, batch;
        bool left_turned, right_turned;          /* stored as depth x rows, as columns x depth */
        int64_t left_row, right_row, out_row;    /* from one stored row to the next */
        int64_t left_step, right_step, out_step; /* from one matrix of the stack to the next; 0: it is the same one */
        int64_t bias_step;
        float alpha, beta;
        bool has_bias, has_addend, has_relu; /* the bias is a row, the addend lies as the result does */
        bool tf32;
};

/* A node as a product, and what it leaves to others. */
#define SL_CUDA_BEHIND UINT32_MAX
struct sl_cuda_product_node {
        struct sl_cuda_product product;
        uint32_t addend; /* which input is added; of a Gemm that may be input 2; SL_CUDA_BEHIND: input 2 is none of the product's */
        bool spread[2];  /* a stack of factors whose leading dimensions are first to be expanded to the result's */
};

/*
 * Of a MatMul or a Gemm of float32, float16 or bfloat16. What of the epilogue is no Relu is left out, and is then to be computed
 * behind it; so is all of it, with input 2 of a Gemm, where that is broadcast as no epilogue has it. False: it is something else,
 * nothing of it, or of a form that cuBLASLt does not take.
 */
bool sl_cuda_product_read(const struct sl_node_desc *node, struct sl_cuda_product_node *ret_product);

/* The shape to which factor @i is expanded. */
struct sl_shape sl_cuda_product_spread(const struct sl_node_desc *node, uint32_t i);
