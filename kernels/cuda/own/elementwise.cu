/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of elements, one after the other over operands that are broadcast. Floats of up to 32 bits compute in float32.
 */
#include "functions.cuh"

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
