/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax and normalisations: a line is read twice or three times, which its size lets a cache answer, and written once. Sums are
 * of float32.
 */
#include "group.cuh"

static __device__ uint64_t line_at(const sl_own_lines &a, uint32_t line)
{
        uint32_t within = line, outer = divide(&within, a.inner);

        return (uint64_t)outer * a.size * a.inner.divisor + within;
}

/* Calls @each with element k and its value, for all of this thread's. */
template <typename T, int G, int V, typename F> static __device__ void for_each(const sl_own_lines &a, uint64_t at, F each)
{
        const T *in = static_cast<const T *>(a.in) + at;

        for (uint32_t k = group_lane<G>() * V; k < a.size; k += G * V) {
                pack<T, V> loaded = *reinterpret_cast<const pack<T, V> *>(in + (uint64_t)k * a.inner.divisor);

#pragma unroll
                for (int v = 0; v < V; v++)
                        each(k + v, widen(loaded.at[v]));
        }
}

/* Element k becomes what @each makes of it. */
template <typename T, int G, int V, typename F> static __device__ void rewrite(const sl_own_lines &a, uint64_t at, F each)
{
        const T *in = static_cast<const T *>(a.in) + at;
        T *out = static_cast<T *>(a.out) + at;

        for (uint32_t k = group_lane<G>() * V; k < a.size; k += G * V) {
                uint64_t place = (uint64_t)k * a.inner.divisor;
                pack<T, V> loaded = *reinterpret_cast<const pack<T, V> *>(in + place), result;

#pragma unroll
                for (int v = 0; v < V; v++)
                        narrow(each(k + v, widen(loaded.at[v])), &result.at[v]);
                *reinterpret_cast<pack<T, V> *>(out + place) = result;
        }
}

template <typename T, int G, int V> static __device__ void softmax_line(const sl_own_lines &a, uint32_t line)
{
        uint64_t at = line_at(a, line);
        float largest = -INFINITY, sum = 0;

        for_each<T, G, V>(a, at, [&](uint32_t, float x) { largest = fmaxf(largest, x); });
        largest = combine<G>(largest, larger());
        for_each<T, G, V>(a, at, [&](uint32_t, float x) { sum += expf(x - largest); });
        sum = combine<G>(sum, add_up());
        if (a.kind == SL_OWN_LOG_SOFTMAX) {
                float logarithm = logf(sum);

                rewrite<T, G, V>(a, at, [&](uint32_t, float x) { return x - largest - logarithm; });
        } else {
                rewrite<T, G, V>(a, at, [&](uint32_t, float x) { return expf(x - largest) / sum; });
        }
}

/* The mean, and one over the root of the variance; or of the mean square. */
template <typename T, int G, int V>
static __device__ void moments(const sl_own_lines &a, uint64_t at, float *ret_mean, float *ret_factor)
{
        float sum = 0, squares = 0, mean = 0;

        if (a.kind == SL_OWN_LAYER_NORM) {
                for_each<T, G, V>(a, at, [&](uint32_t, float x) { sum += x; });
                mean = combine<G>(sum, add_up()) / (float)a.size;
        }
        for_each<T, G, V>(a, at, [&](uint32_t, float x) { squares += (x - mean) * (x - mean); });
        squares = combine<G>(squares, add_up()) / (float)a.size;
        *ret_mean = mean;
        *ret_factor = 1 / sqrtf(squares + a.epsilon);
}

template <typename T, int G, int V> static __device__ void normalise_line(const sl_own_lines &a, uint32_t line)
{
        uint32_t first = line;
        uint64_t at = line_at(a, line);
        float mean, factor;

        divide(&first, a.lines_modulo);
        first *= a.line_step;
        moments<T, G, V>(a, at, &mean, &factor);
        if (group_lane<G>() == 0 && a.mean)
                store_float(a.mean, line, a.mean_dtype, mean);
        if (group_lane<G>() == 0 && a.deviation)
                store_float(a.deviation, line, a.mean_dtype, factor);
        rewrite<T, G, V>(a, at, [&](uint32_t k, float x) {
                uint32_t place = first + divide(&k, a.k_divisor) * a.k_step;
                float y = (x - mean) * factor * load_float(a.scale, place, a.scale_dtype);

                return a.shift ? y + load_float(a.shift, place, a.shift_dtype) : y;
        });
}

template <typename T, int G, int V> static __device__ void shorten_line(const sl_own_lines &a, uint32_t line)
{
        uint64_t at = line_at(a, line);
        float norm = 0;

        for_each<T, G, V>(a, at, [&](uint32_t, float x) { norm += a.absolute ? fabsf(x) : x * x; });
        norm = combine<G>(norm, add_up());
        norm = a.absolute ? norm : sqrtf(norm);
        rewrite<T, G, V>(a, at, [&](uint32_t, float x) { return norm == 0 ? 0 : x / norm; });
}

template <typename T, int G, int V> static __device__ void run_lines(const sl_own_lines &a)
{
        for (uint32_t line = group_first<G>(); line < a.lines; line += group_step<G>()) {
                if (a.kind == SL_OWN_SOFTMAX || a.kind == SL_OWN_LOG_SOFTMAX)
                        softmax_line<T, G, V>(a, line);
                else if (a.kind == SL_OWN_LP_NORM)
                        shorten_line<T, G, V>(a, line);
                else
                        normalise_line<T, G, V>(a, line);
        }
}

template <typename T> static __device__ void run_lines_of(const sl_own_lines &a)
{
        constexpr int wide = 16 / sizeof(T);
        bool aligned = a.vector == wide && is_aligned(a.in, 16) && is_aligned(a.out, 16);

        if (a.group == 1)
                run_lines<T, 1, 1>(a);
        else if (a.group == 32 && aligned)
                run_lines<T, 32, wide>(a);
        else if (a.group == 32)
                run_lines<T, 32, 1>(a);
        else if (aligned)
                run_lines<T, 256, wide>(a);
        else
                run_lines<T, 256, 1>(a);
}

SL_KERNEL(lines_f32, sl_own_lines)
{
        run_lines_of<float>(a);
}

SL_KERNEL(lines_f16, sl_own_lines)
{
        run_lines_of<half_t>(a);
}

SL_KERNEL(lines_bf16, sl_own_lines)
{
        run_lines_of<bfloat_t>(a);
}
