/* SPDX-License-Identifier: Apache-2.0 */
/* Many elements become one. Floats are added up in float32, integers wrap in 64 bits. */
#include "group.cuh"

static __device__ uint32_t offset_in(uint32_t i, uint32_t n, const sl_own_divisor *dims, const uint32_t *strides)
{
        uint32_t offset = 0;

        for (uint32_t d = 0; d < n; d++) {
                uint32_t at = i;

                i = divide(&at, dims[d]);
                offset += at * strides[d];
        }
        return offset;
}

/* A NaN stays. */
struct take_larger {
        template <typename T> __device__ T operator()(T x, T y) const
        {
                return y != y || y > x ? y : x;
        }
};

struct take_smaller {
        template <typename T> __device__ T operator()(T x, T y) const
        {
                return y != y || y < x ? y : x;
        }
};

static __device__ float start_of(uint32_t kind)
{
        switch (kind) {
        case SL_OWN_REDUCE_MAX:
                return -INFINITY;
        case SL_OWN_REDUCE_MIN:
                return INFINITY;
        default:
                return kind == SL_OWN_REDUCE_PROD;
        }
}

static __device__ float take(const sl_own_reduce &a, float before, float x, float largest)
{
        switch (a.kind) {
        case SL_OWN_REDUCE_MAX:
                return take_larger()(before, x);
        case SL_OWN_REDUCE_MIN:
                return take_smaller()(before, x);
        case SL_OWN_REDUCE_PROD:
                return before * x;
        case SL_OWN_REDUCE_L1:
                return before + fabsf(x);
        case SL_OWN_REDUCE_L2:
        case SL_OWN_REDUCE_SUM_SQUARE:
                return before + x * x;
        case SL_OWN_REDUCE_LOG_SUM_EXP:
                return before + expf(x - largest);
        case SL_OWN_REDUCE_POWERS:
                return before + powf(fabsf(x), a.p);
        default:
                return before + x;
        }
}

template <int G, typename T> static __device__ T combine_kind(uint32_t kind, T x)
{
        if (kind == SL_OWN_REDUCE_MAX)
                return combine<G>(x, take_larger());
        if (kind == SL_OWN_REDUCE_MIN)
                return combine<G>(x, take_smaller());
        return kind == SL_OWN_REDUCE_PROD ? combine<G>(x, multiply()) : combine<G>(x, add_up());
}

static __device__ float finish(const sl_own_reduce &a, float x, float largest)
{
        switch (a.kind) {
        case SL_OWN_REDUCE_MEAN:
                return x / (float)a.count;
        case SL_OWN_REDUCE_L2:
                return sqrtf(x);
        case SL_OWN_REDUCE_LOG_SUM:
                return logf(x);
        case SL_OWN_REDUCE_LOG_SUM_EXP:
                return largest + logf(x);
        case SL_OWN_REDUCE_POWERS:
                return powf(x, 1 / a.p);
        default:
                return x;
        }
}

template <typename T, int G, int V, typename F> static __device__ void for_each(const sl_own_reduce &a, uint32_t base, F each)
{
        const T *in = static_cast<const T *>(a.in) + base;

        for (uint32_t i = group_lane<G>() * V; i < a.count; i += G * V) {
                uint32_t at = V > 1 ? i : offset_in(i, a.n_goes, a.goes, a.go_strides);
                pack<T, V> loaded = *reinterpret_cast<const pack<T, V> *>(in + at);

#pragma unroll
                for (int v = 0; v < V; v++)
                        each(widen(loaded.at[v]));
        }
}

template <typename T, int G, int V> static __device__ void run_reduce(const sl_own_reduce &a)
{
        for (uint32_t i = group_first<G>(); i < a.results; i += group_step<G>()) {
                uint32_t base = offset_in(i, a.n_stays, a.stays, a.stay_strides);
                float result = start_of(a.kind), largest = -INFINITY;

                if (a.kind == SL_OWN_REDUCE_LOG_SUM_EXP) {
                        for_each<T, G, V>(a, base, [&](float x) { largest = fmaxf(largest, x); });
                        largest = combine<G>(largest, larger());
                        largest = isinf(largest) || isnan(largest) ? 0 : largest;
                }
                for_each<T, G, V>(a, base, [&](float x) { result = take(a, result, x, largest); });
                result = combine_kind<G>(a.kind, result);
                if (group_lane<G>() == 0)
                        narrow(finish(a, result, largest), static_cast<T *>(a.out) + i);
        }
}

template <typename T> static __device__ void run_reduce_of(const sl_own_reduce &a)
{
        constexpr int wide = 16 / sizeof(T);
        bool aligned = a.vector == wide && is_aligned(a.in, 16);

        if (a.group == 1)
                run_reduce<T, 1, 1>(a);
        else if (a.group == 32 && aligned)
                run_reduce<T, 32, wide>(a);
        else if (a.group == 32)
                run_reduce<T, 32, 1>(a);
        else if (aligned)
                run_reduce<T, 256, wide>(a);
        else
                run_reduce<T, 256, 1>(a);
}

SL_KERNEL(reduce_f32, sl_own_reduce)
{
        run_reduce_of<float>(a);
}

SL_KERNEL(reduce_f16, sl_own_reduce)
{
        run_reduce_of<half_t>(a);
}

SL_KERNEL(reduce_bf16, sl_own_reduce)
{
        run_reduce_of<bfloat_t>(a);
}

static __device__ uint64_t magnitude(uint64_t x)
{
        return x;
}

static __device__ uint64_t magnitude(int64_t x)
{
        return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

/* Each element less the mean of those that go, over their deviation. */
template <typename T> static __device__ void run_standardize(const sl_own_reduce &a)
{
        for (uint32_t i = group_first<256>(); i < a.results; i += group_step<256>()) {
                uint32_t base = offset_in(i, a.n_stays, a.stays, a.stay_strides);
                float mean = 0, squares = 0, deviation;

                for_each<T, 256, 1>(a, base, [&](float x) { mean += x; });
                mean = combine<256>(mean, add_up()) / (float)a.count;
                for_each<T, 256, 1>(a, base, [&](float x) { squares += (x - mean) * (x - mean); });
                deviation = sqrtf(combine<256>(squares, add_up()) / (float)a.count) + 1e-9f;
                for (uint32_t k = group_lane<256>(); k < a.count; k += 256) {
                        uint32_t at = base + offset_in(k, a.n_goes, a.goes, a.go_strides);

                        narrow((widen(static_cast<const T *>(a.in)[at]) - mean) / deviation, static_cast<T *>(a.out) + at);
                }
        }
}

SL_KERNEL(standardize_f32, sl_own_reduce)
{
        run_standardize<float>(a);
}

SL_KERNEL(standardize_f16, sl_own_reduce)
{
        run_standardize<half_t>(a);
}

SL_KERNEL(standardize_bf16, sl_own_reduce)
{
        run_standardize<bfloat_t>(a);
}

SL_KERNEL(hardmax, sl_own_hardmax)
{
        for (uint32_t i = thread_first(); i < a.lines; i += thread_step()) {
                uint32_t within = i, outer = divide(&within, a.inner), best = 0;
                uint32_t first = outer * a.size * a.inner.divisor + within;
                float most = load_float(a.in, first, a.dtype);

                for (uint32_t k = 1; k < a.size; k++) {
                        float x = load_float(a.in, first + k * a.inner.divisor, a.dtype);

                        if (x > most) {
                                most = x;
                                best = k;
                        }
                }
                for (uint32_t k = 0; k < a.size; k++)
                        store_float(a.out, first + k * a.inner.divisor, a.dtype, k == best);
        }
}

/* T: with or without a sign. */
template <typename T> static __device__ T take_integer(uint32_t kind, T before, T x)
{
        switch (kind) {
        case SL_OWN_REDUCE_MAX:
                return before > x ? before : x;
        case SL_OWN_REDUCE_MIN:
                return before < x ? before : x;
        case SL_OWN_REDUCE_PROD:
                return (T)((uint64_t)before * (uint64_t)x);
        case SL_OWN_REDUCE_L1:
                return (T)((uint64_t)before + magnitude(x));
        case SL_OWN_REDUCE_SUM_SQUARE:
                return (T)((uint64_t)before + (uint64_t)x * (uint64_t)x);
        default:
                return (T)((uint64_t)before + (uint64_t)x);
        }
}

template <typename T> static __device__ T integer_start(uint32_t kind, uint32_t dtype)
{
        uint32_t bits = dtype == SL_DTYPE_BOOL                           ? 1
                        : dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_I8   ? 8
                        : dtype == SL_DTYPE_U16 || dtype == SL_DTYPE_I16 ? 16
                        : dtype == SL_DTYPE_U32 || dtype == SL_DTYPE_I32 ? 32
                                                                         : 64;
        uint64_t most = (is_unsigned(dtype) ? UINT64_MAX : INT64_MAX) >> (64 - bits);

        if (kind == SL_OWN_REDUCE_MAX)
                return is_unsigned(dtype) ? 0 : (T)~most;
        if (kind == SL_OWN_REDUCE_MIN)
                return (T)most;
        return kind == SL_OWN_REDUCE_PROD;
}

template <typename T> static __device__ void reduce_integers(const sl_own_reduce &a)
{
        for (uint32_t i = group_first<32>(); i < a.results; i += group_step<32>()) {
                uint32_t base = offset_in(i, a.n_stays, a.stays, a.stay_strides);
                T result = integer_start<T>(a.kind, a.dtype);

                for (uint32_t k = group_lane<32>(); k < a.count; k += 32)
                        result = take_integer<T>(a.kind, result,
                                (T)load_integer(a.in, base + offset_in(k, a.n_goes, a.goes, a.go_strides), a.dtype));
                if (a.kind == SL_OWN_REDUCE_MAX || a.kind == SL_OWN_REDUCE_MIN)
                        result = combine_kind<32>(a.kind, result);
                else
                        result = (T)combine_kind<32>(a.kind, (uint64_t)result);
                if (a.kind == SL_OWN_REDUCE_MEAN && a.count)
                        result /= (T)a.count;
                if (group_lane<32>() == 0)
                        store_integer(a.out, i, a.dtype, (int64_t)result);
        }
}

SL_KERNEL(reduce_integers, sl_own_reduce)
{
        if (is_unsigned(a.dtype))
                reduce_integers<uint64_t>(a);
        else
                reduce_integers<int64_t>(a);
}

/* An element and its place. */
template <typename T> struct found {
        T value;
        uint32_t at;
};

/* A NaN comes before all numbers. */
template <typename T> static __device__ bool precedes(T x, T y, bool largest)
{
        if (x != x || y != y)
                return x != x && y == y;
        return largest ? x > y : x < y;
}

template <typename T> static __device__ bool is_better(const sl_own_arg &a, const found<T> &x, const found<T> &y)
{
        if (precedes(x.value, y.value, a.largest))
                return true;
        if (precedes(y.value, x.value, a.largest))
                return false;
        return a.last ? x.at > y.at : x.at < y.at;
}

template <typename T> static __device__ found<T> best_of_warp(const sl_own_arg &a, found<T> best)
{
        for (int mask = warpSize / 2; mask; mask /= 2) {
                found<T> other = {__shfl_xor_sync(0xffffffffu, best.value, mask), __shfl_xor_sync(0xffffffffu, best.at, mask)};

                if (is_better(a, other, best))
                        best = other;
        }
        return best;
}

template <typename T> static __device__ T load_as(const sl_own_arg &a, uint32_t i);

template <> __device__ float load_as<float>(const sl_own_arg &a, uint32_t i)
{
        return load_float(a.in, i, a.dtype);
}

template <> __device__ int64_t load_as<int64_t>(const sl_own_arg &a, uint32_t i)
{
        return load_integer(a.in, i, a.dtype);
}

/* A warp, or a thread, for each line. */
template <typename T, int G> static __device__ void run_arg(const sl_own_arg &a)
{
        for (uint32_t line = group_first<G>(); line < a.lines; line += group_step<G>()) {
                uint32_t within = line, outer = divide(&within, a.inner), base = outer * a.size * a.inner.divisor + within;
                uint32_t lane = group_lane<G>() < a.size ? group_lane<G>() : 0;
                found<T> best = {load_as<T>(a, base + lane * a.inner.divisor), lane};

                for (uint32_t k = lane + G; k < a.size; k += G) {
                        found<T> other = {load_as<T>(a, base + k * a.inner.divisor), k};

                        if (is_better(a, other, best))
                                best = other;
                }
                if constexpr (G > 1)
                        best = best_of_warp(a, best);
                if (group_lane<G>() == 0)
                        a.out[line] = best.at;
        }
}

template <typename T> static __device__ void run_arg_of(const sl_own_arg &a)
{
        if (a.group == 1)
                run_arg<T, 1>(a);
        else
                run_arg<T, 32>(a);
}

SL_KERNEL(arg_floats, sl_own_arg)
{
        run_arg_of<float>(a);
}

SL_KERNEL(arg_integers, sl_own_arg)
{
        run_arg_of<int64_t>(a);
}
