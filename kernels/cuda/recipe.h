/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node is computed on a GPU: convolutions of cuDNN, products of cuBLASLt and own kernels, one after the other, and where the
 * operands of each lie. The planner and the runner make the same recipe of the same node and way, so that a plan file has the way
 * and no recipe. No device and no library is asked.
 */
#pragma once

#include "cuda/cudnn/convolution.h"
#include "cuda/own/own.h"
#include "cuda/product.h"
#include "node.h"

#include <stdbool.h>
#include <stdint.h>

/* The numbers are part of the plan file. */
enum sl_cuda_way {
        SL_CUDA_WAY_OWN,
        SL_CUDA_WAY_CONVOLUTION, /* of cuDNN, with the bias, the residual and a Relu */
        SL_CUDA_WAY_BARE,        /* the same without them; own kernels do the rest */
        SL_CUDA_WAY_PRODUCT,
        SL_CUDA_WAY_ATTENTION,
        SL_CUDA_WAY_RECURRENT,
        SL_CUDA_WAY_BYTES_CONVOLUTION, /* of bytes as float32 (quantized.h) */
        SL_CUDA_WAY_BYTES_PRODUCT,
        SL_CUDA_WAY_INT8_CONVOLUTION, /* of bytes as int8 (int8.h) */
        SL_CUDA_WAY_INT8_ROWS,        /* such a convolution as a product of cuBLASLt */
        SL_CUDA_WAY_INT8_PRODUCT,
        SL_CUDA_WAY_FUSED_ATTENTION, /* by an own kernel, which keeps no scores */
        SL_CUDA_WAY_COUNT,
};

enum sl_cuda_place_kind { SL_CUDA_NOWHERE, SL_CUDA_INPUT, SL_CUDA_OUTPUT, SL_CUDA_SCRATCH };

struct sl_cuda_place {
        uint32_t kind; /* enum sl_cuda_place_kind */
        uint32_t index;
        uint64_t bytes; /* behind its beginning */
};

enum sl_cuda_step_kind { SL_CUDA_CONVOLVE, SL_CUDA_MULTIPLY, SL_CUDA_OWN };

/* Operands of a product, and how many a convolution has: its are numbered by enum sl_cudnn_operand, less 1. */
enum { SL_CUDA_LEFT, SL_CUDA_RIGHT, SL_CUDA_BIAS, SL_CUDA_ADDEND, SL_CUDA_OUT, SL_CUDA_PLACES };

struct sl_cuda_step {
        uint32_t kind; /* enum sl_cuda_step_kind */
        struct sl_cudnn_convolution convolution;
        struct sl_cuda_product product;
        struct sl_own_plan own;
        uint32_t n_inputs, n_outputs; /* of an own step, whose places are its inputs, then its outputs */
        struct sl_cuda_place *places;
};

struct sl_cuda_recipe {
        uint32_t n_steps, room;
        struct sl_cuda_step *steps;
        uint64_t kept_bytes;      /* scratch that steps leave to each other */
        uint64_t workspace_bytes; /* that a step may use behind it */
        bool checks;              /* it reads indices, and may find one out of range */
};

/* The first way to be tried. Pure. */
enum sl_cuda_way sl_cuda_way_of(const struct sl_node_desc *node);

/* What cuDNN is to plan for a node: with its epilogue, where it is no convolution of bytes. */
struct sl_cuda_asked {
        struct sl_cudnn_convolution convolution;
        bool tf32; /* rounding to TF32 is allowed, or changes nothing */
};

/* @tf32: it is allowed. False: a way without a convolution, or none of the node. Pure. */
bool sl_cuda_asked_read(const struct sl_node_desc *node, enum sl_cuda_way way, bool tf32, struct sl_cuda_asked *ret_asked);

/*
 * @workspace_bytes: of the convolution, which cuDNN's plan says. Return: 0, it is to be deinitialised; -ENOTSUP the node cannot be
 * computed so; -ENOMEM.
 */
int sl_cuda_recipe_make(const struct sl_node_desc *node, enum sl_cuda_way way, uint64_t workspace_bytes, bool tf32,
        struct sl_cuda_recipe *ret_recipe);
void sl_cuda_recipe_deinit(struct sl_cuda_recipe *recipe);

/* Of scratch that lies at any multiple of 64. Pure. */
uint64_t sl_cuda_recipe_scratch(const struct sl_cuda_recipe *recipe);

/* ---- for who makes one; NULL, -ENOMEM: no memory ---- */

struct sl_cuda_step *sl_cuda_recipe_add(struct sl_cuda_recipe *recipe, enum sl_cuda_step_kind kind, uint32_t n_places);
struct sl_cuda_step *sl_cuda_recipe_multiply(struct sl_cuda_recipe *recipe, const struct sl_cuda_product *product);

/* An own step of @node, whose inputs, then outputs, lie at @places; NULL: where those of the node at hand do. -ENOTSUP. */
int sl_cuda_recipe_own(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_place *places);

/* An own step by what @plan makes of @node, over operands at @places: @n_inputs, then @n_outputs. Return: 0; what @plan says;
 * -ENOMEM. */
int sl_cuda_recipe_planned(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node,
        int (*plan)(const struct sl_node_desc *node, struct sl_own_plan *ret_plan), const struct sl_cuda_place *places,
        uint32_t n_inputs, uint32_t n_outputs);

/* Where so many bytes of scratch begin that steps leave to each other. */
uint64_t sl_cuda_recipe_keep(struct sl_cuda_recipe *recipe, uint64_t bytes);
