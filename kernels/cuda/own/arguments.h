/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the own kernels, as the host writes them and the device reads them: C and CUDA C++. Counts and offsets are in
 * elements and below 2^31. Pointers are addresses on the device.
 */
#pragma once

#include <stdint.h>

#define SL_OWN_DIMS     8
#define SL_OWN_OPERANDS 8
#define SL_OWN_STEPS    10

/*
 * Division of numbers below 2^31: (mulhi(n, multiplier) + n) >> shift.
 * Sources: Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994, section 4.
 */
struct sl_own_divisor {
        uint32_t divisor, multiplier, shift;
};

/* Functions of an element, or of it and an operand's, by the operators that they are; and those that only epilogues have. */
#define SL_OWN_UNARY(X)                                                                                                            \
        X(RELU) X(LEAKY_RELU) X(ELU) X(SIGMOID) X(HARD_SIGMOID) X(HARD_SWISH) X(TANH) X(SOFTPLUS) X(GELU) X(ERF) X(EXP) X(LOG)     \
        X(SQRT) X(RECIPROCAL) X(NEG) X(ABS) X(FLOOR) X(CEIL) X(ROUND) X(SIGN) X(SIN) X(COS) X(CLIP) X(ACOS) X(ACOSH) X(ASIN)       \
        X(ASINH) X(ATAN) X(ATANH) X(COSH) X(SINH) X(TAN) X(SELU) X(CELU) X(MISH) X(THRESHOLDED_RELU) X(SOFTSIGN) X(SHRINK)         \
        X(NOT) X(BITWISE_NOT)
#define SL_OWN_BINARY(X)                                                                                                           \
        X(ADD) X(SUB) X(MUL) X(DIV) X(POW) X(MIN) X(MAX) X(PRELU) X(MOD) X(BIT_SHIFT) X(BITWISE_AND) X(BITWISE_OR) X(BITWISE_XOR)

enum sl_own_function {
#define X(id) SL_OWN_##id,
        SL_OWN_UNARY(X) SL_OWN_BINARY(X)
#undef X
        SL_OWN_GELU_TANH,
        SL_OWN_SWISH,
        SL_OWN_SCALE, /* a * x + b */
        SL_OWN_FUNCTION_COUNT,
};

struct sl_own_step {
        uint32_t function; /* enum sl_own_function */
        uint32_t operand;  /* of a function of two */
        float a, b;
};

struct sl_own_operand {
        const void *data;
        uint32_t strides[SL_OWN_DIMS];
};

/*
 * Each element of the output is operand 0's, through the steps in turn. Dimensions are those of the output, the innermost first,
 * and it is dense. @vector: elements that a thread may take at once; the innermost dimension and all strides are multiples of it,
 * or 0, or 1 for the innermost.
 */
struct sl_own_chain {
        void *out;
        uint32_t elements, n_dims, n_operands, n_steps, vector, dtype;
        int64_t least, most; /* of a CLIP of integers */
        struct sl_own_divisor dims[SL_OWN_DIMS];
        struct sl_own_operand operands[SL_OWN_OPERANDS];
        struct sl_own_step steps[SL_OWN_STEPS];
};
