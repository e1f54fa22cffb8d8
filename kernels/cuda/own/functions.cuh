/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of float32. Which one a step has is the same for all threads, so that its branch costs little beside the memory; what is
 * rare, and long, is not inlined.
 */
#pragma once

#include "device.cuh"

static __device__ float clip(float x, float least, float most)
{
        x = x < least ? least : x;
        return x > most ? most : x;
}

static __device__ float sigmoid(float x)
{
        return 1 / (1 + expf(-x));
}

static __device__ float softplus(float x)
{
        return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

static __device__ float gelu_tanh(float x)
{
        return 0.5f * x * (1 + tanhf(0.797884560802865356f * (x + 0.044715f * x * x * x)));
}

static __device__ float shrink(float x, float lambd, float bias)
{
        if (x < -lambd)
                return x + bias;
        return x > lambd ? x - bias : 0;
}

static __device__ float apply_inverse(const sl_own_step &s, float x)
{
        switch (s.function) {
        case SL_OWN_ACOS:
                return acosf(x);
        case SL_OWN_ACOSH:
                return acoshf(x);
        case SL_OWN_ASIN:
                return asinf(x);
        case SL_OWN_ASINH:
                return asinhf(x);
        case SL_OWN_ATAN:
                return atanf(x);
        default:
                return atanhf(x);
        }
}

static __device__ float apply_activation(const sl_own_step &s, float x)
{
        switch (s.function) {
        case SL_OWN_ELU:
                return x < 0 ? s.a * expm1f(x) : x;
        case SL_OWN_SOFTPLUS:
                return softplus(x);
        case SL_OWN_SELU:
                return s.b * (x > 0 ? x : s.a * expm1f(x));
        case SL_OWN_CELU:
                return x > 0 ? x : s.a * expm1f(x / s.a);
        case SL_OWN_MISH:
                return x * tanhf(softplus(x));
        case SL_OWN_THRESHOLDED_RELU:
                return x > s.a ? x : 0;
        case SL_OWN_SOFTSIGN:
                return x / (1 + fabsf(x));
        case SL_OWN_SHRINK:
                return shrink(x, s.a, s.b);
        default:
                return apply_inverse(s, x);
        }
}

/* @y: the operand's element, of a function of two. */
static __device__ __noinline__ float apply_rarer(const sl_own_step &s, float x, float y)
{
        switch (s.function) {
        case SL_OWN_LOG:
                return logf(x);
        case SL_OWN_FLOOR:
                return floorf(x);
        case SL_OWN_CEIL:
                return ceilf(x);
        case SL_OWN_ROUND:
                return rintf(x);
        case SL_OWN_SIGN:
                return isnan(x) ? x : (float)((x > 0) - (x < 0));
        case SL_OWN_SIN:
                return sinf(x);
        case SL_OWN_COS:
                return cosf(x);
        case SL_OWN_TAN:
                return tanf(x);
        case SL_OWN_COSH:
                return coshf(x);
        case SL_OWN_SINH:
                return sinhf(x);
        case SL_OWN_POW:
                return powf(x, y);
        case SL_OWN_MOD:
                return fmodf(x, y);
        default:
                return apply_activation(s, x);
        }
}

static __device__ float apply_binary(const sl_own_step &s, float x, float y)
{
        switch (s.function) {
        case SL_OWN_ADD:
                return x + y;
        case SL_OWN_SUB:
                return x - y;
        case SL_OWN_MUL:
                return x * y;
        case SL_OWN_DIV:
                return x / y;
        case SL_OWN_MIN:
                return isnan(x) || x < y ? x : y;
        case SL_OWN_MAX:
                return isnan(x) || x > y ? x : y;
        case SL_OWN_PRELU:
                return x < 0 ? x * y : x;
        default:
                return apply_rarer(s, x, y);
        }
}

static __device__ float apply(const sl_own_step &s, float x, float y)
{
        switch (s.function) {
        case SL_OWN_RELU:
                return x < 0 ? 0 : x;
        case SL_OWN_LEAKY_RELU:
                return x < 0 ? s.a * x : x;
        case SL_OWN_SIGMOID:
                return sigmoid(x);
        case SL_OWN_HARD_SIGMOID:
                return clip(s.a * x + s.b, 0, 1);
        case SL_OWN_HARD_SWISH:
                return x * clip(x / 6 + 0.5f, 0, 1);
        case SL_OWN_TANH:
                return tanhf(x);
        case SL_OWN_GELU:
                return 0.5f * x * (1 + erff(x * 0.707106781186547524f));
        case SL_OWN_GELU_TANH:
                return gelu_tanh(x);
        case SL_OWN_SWISH:
                return x * sigmoid(s.a * x);
        case SL_OWN_SCALE:
                return s.a * x + s.b;
        case SL_OWN_ERF:
                return erff(x);
        case SL_OWN_EXP:
                return expf(x);
        case SL_OWN_SQRT:
                return sqrtf(x);
        case SL_OWN_RECIPROCAL:
                return 1 / x;
        case SL_OWN_NEG:
                return -x;
        case SL_OWN_ABS:
                return fabsf(x);
        case SL_OWN_CLIP:
                return clip(x, s.a, s.b);
        default:
                return apply_binary(s, x, y);
        }
}
