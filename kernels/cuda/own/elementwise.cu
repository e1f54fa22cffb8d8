/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of elements, one after the other over operands that are broadcast. Floats of up to 32 bits compute in float32. Which
 * function a step has is the same for all threads, so that its branch costs little beside the memory; what is rare, and long, is
 * not inlined.
 */
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
        return x > lambd ? x - bias : isnan(x) ? x : 0;
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
                return x > s.a || isnan(x) ? x : 0;
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

/* The places of element @i in the dimensions of the output, the innermost first. */
struct place {
        uint32_t at[SL_OWN_DIMS];
};

static __device__ place place_of(const sl_own_chain &a, uint32_t i)
{
        place p;

#pragma unroll
        for (int d = 0; d < SL_OWN_DIMS; d++) {
                uint32_t rest = i;

                if (d < a.n_dims)
                        i = divide(&rest, a.dims[d]);
                p.at[d] = d < a.n_dims ? rest : 0;
        }
        return p;
}

static __device__ uint32_t offset_of(const sl_own_chain &a, const place &p, uint32_t operand)
{
        uint32_t offset = 0;

#pragma unroll
        for (int d = 0; d < SL_OWN_DIMS; d++)
                if (d < a.n_dims)
                        offset += p.at[d] * a.operands[operand].strides[d];
        return offset;
}

/* V elements of an operand, or one that stands for all of them. */
template <typename T, int V> static __device__ void load_operand(const sl_own_chain &a, const place &p, uint32_t operand, float x[V])
{
        const T *from = static_cast<const T *>(a.operands[operand].data) + offset_of(a, p, operand);

        if (V > 1 && a.operands[operand].strides[0] == 0) {
                float one = widen(*from);

                for (int k = 0; k < V; k++)
                        x[k] = one;
        } else {
                pack<T, V> loaded = *reinterpret_cast<const pack<T, V> *>(from);

                for (int k = 0; k < V; k++)
                        x[k] = widen(loaded.at[k]);
        }
}

template <typename T, int V> static __device__ void run_one(const sl_own_chain &a, uint32_t first)
{
        place p = place_of(a, first);
        float x[V], y[V] = {};
        pack<T, V> result;

        load_operand<T, V>(a, p, 0, x);
        for (uint32_t s = 0; s < a.n_steps; s++) {
                if (a.steps[s].operand)
                        load_operand<T, V>(a, p, a.steps[s].operand, y);
#pragma unroll
                for (int k = 0; k < V; k++)
                        x[k] = apply(a.steps[s], x[k], y[k]);
        }
#pragma unroll
        for (int k = 0; k < V; k++)
                narrow(x[k], &result.at[k]);
        *reinterpret_cast<pack<T, V> *>(static_cast<T *>(a.out) + first) = result;
}

/* What is left over of one dimension goes element by element. */
template <typename T, int V> static __device__ void run_chain(const sl_own_chain &a)
{
        uint32_t whole = a.elements / V;

        for (uint32_t i = thread_first(); i < whole; i += thread_step())
                run_one<T, V>(a, i * V);
        if (V > 1 && thread_first() < a.elements - whole * V)
                run_one<T, 1>(a, whole * V + thread_first());
}

/* Client memory may lie at any element. */
static __device__ bool all_aligned(const sl_own_chain &a, uint32_t bytes)
{
        bool aligned = is_aligned(a.out, bytes);

        for (uint32_t k = 0; k < a.n_operands; k++)
                aligned = aligned && is_aligned(a.operands[k].data, bytes);
        return aligned;
}

template <typename T> static __device__ void run_chain_of(const sl_own_chain &a)
{
        constexpr int wide = 16 / sizeof(T);

        if (a.vector == wide && all_aligned(a, 16))
                run_chain<T, wide>(a);
        else
                run_chain<T, 1>(a);
}

SL_KERNEL(chain_f32, sl_own_chain)
{
        run_chain_of<float>(a);
}

SL_KERNEL(chain_f16, sl_own_chain)
{
        run_chain_of<half_t>(a);
}

SL_KERNEL(chain_bf16, sl_own_chain)
{
        run_chain_of<bfloat_t>(a);
}

/* Integers compute in 64 bits, which wrap. A division by zero gives 0. */
static __device__ uint64_t quotient_of(uint64_t x, uint64_t y, bool is_unsigned)
{
        if (!y)
                return 0;
        if (is_unsigned)
                return x / y;
        return y == UINT64_MAX ? -x : (uint64_t)((int64_t)x / (int64_t)y);
}

/* The remainder has the sign of the divisor, or with @truncate, as C's, that of the dividend; of a division by zero it is 0. */
static __device__ uint64_t rest_of(uint64_t x, uint64_t y, bool is_unsigned, bool truncate)
{
        int64_t rest;

        if (!y || (!is_unsigned && y == UINT64_MAX))
                return 0;
        if (is_unsigned)
                return x % y;
        rest = (int64_t)x % (int64_t)y;
        if (!truncate && rest && (rest < 0) != ((int64_t)y < 0))
                rest += (int64_t)y;
        return (uint64_t)rest;
}

/* x^y that wraps; what is below 1 is 0. */
static __device__ uint64_t power_of(uint64_t x, uint64_t y, bool is_unsigned)
{
        uint64_t result = 1;

        if (!is_unsigned && (int64_t)y < 0)
                return x == 1 ? 1 : x == UINT64_MAX ? (y & 1 ? x : 1) : 0;
        for (; y; y >>= 1, x *= x)
                if (y & 1)
                        result *= x;
        return result;
}

static __device__ uint64_t apply_integer_rarer(const sl_own_chain &a, uint64_t x, uint64_t y)
{
        const sl_own_step &s = a.steps[0];
        bool natural = is_unsigned(a.dtype);

        switch (s.function) {
        case SL_OWN_POW:
                return power_of(x, y, natural);
        case SL_OWN_MOD:
                return rest_of(x, y, natural, s.a != 0);
        case SL_OWN_BIT_SHIFT:
                return y > 63 ? 0 : s.a != 0 ? x >> y : x << y;
        case SL_OWN_BITWISE_AND:
                return x & y;
        case SL_OWN_BITWISE_OR:
                return x | y;
        case SL_OWN_BITWISE_XOR:
                return x ^ y;
        case SL_OWN_PRELU:
                return !natural && (int64_t)x < 0 ? x * y : x;
        default:
                return quotient_of(x, y, natural);
        }
}

static __device__ uint64_t apply_integer_binary(const sl_own_chain &a, uint64_t x, uint64_t y)
{
        bool less = is_unsigned(a.dtype) ? x < y : (int64_t)x < (int64_t)y;

        switch (a.steps[0].function) {
        case SL_OWN_ADD:
                return x + y;
        case SL_OWN_SUB:
                return x - y;
        case SL_OWN_MUL:
                return x * y;
        case SL_OWN_MIN:
                return less ? x : y;
        case SL_OWN_MAX:
                return less ? y : x;
        default:
                return apply_integer_rarer(a, x, y);
        }
}

static __device__ uint64_t clip_integer(const sl_own_chain &a, uint64_t x)
{
        if (is_unsigned(a.dtype)) {
                x = x < (uint64_t)a.least ? (uint64_t)a.least : x;
                return x > (uint64_t)a.most ? (uint64_t)a.most : x;
        }
        if ((int64_t)x < a.least)
                x = (uint64_t)a.least;
        return (int64_t)x > a.most ? (uint64_t)a.most : x;
}

static __device__ uint64_t apply_integer(const sl_own_chain &a, uint64_t x, uint64_t y)
{
        bool negative = !is_unsigned(a.dtype) && (int64_t)x < 0;

        switch (a.steps[0].function) {
        case SL_OWN_RELU:
                return negative ? 0 : x;
        case SL_OWN_NEG:
                return -x;
        case SL_OWN_ABS:
                return negative ? -x : x;
        case SL_OWN_SIGN:
                return negative ? UINT64_MAX : x != 0;
        case SL_OWN_NOT:
                return !x;
        case SL_OWN_BITWISE_NOT:
                return ~x;
        case SL_OWN_CLIP:
                return clip_integer(a, x);
        default:
                return apply_integer_binary(a, x, y);
        }
}

/* One step, of integers of any width. */
SL_KERNEL(integers, sl_own_chain)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                place p = place_of(a, i);
                uint64_t x = (uint64_t)load_integer(a.operands[0].data, offset_of(a, p, 0), a.dtype), y = 0;

                if (a.steps[0].operand)
                        y = (uint64_t)load_integer(a.operands[1].data, offset_of(a, p, 1), a.dtype);
                store_integer(a.out, i, a.dtype, (int64_t)apply_integer(a, x, y));
        }
}
