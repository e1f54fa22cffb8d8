/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images in either layout: pools, normalisation by channel, resizing. Compiled without fused multiply-adds: where a pixel is looked
 * for must not depend on how a product was rounded.
 */
#include "functions.cuh"

#include "shape/resize.h"

static __device__ float widen(uint8_t x)
{
        return x;
}

static __device__ float widen(int8_t x)
{
        return x;
}

static __device__ void narrow(float x, uint8_t *to)
{
        *to = (uint8_t)fmaxf(x, 0);
}

static __device__ void narrow(float x, int8_t *to)
{
        *to = (int8_t)fmaxf(x, -128);
}

/* Taps [first, last) of a window that begins at @start fall into the image. */
struct taps {
        int32_t start, first, last;
};

/* Taps below @limit. */
static __device__ int32_t taps_below(int32_t start, int32_t dilation, int32_t kernel, int32_t limit)
{
        int32_t distance = limit - start, n = distance > 0 ? (distance - 1) / dilation + 1 : 0;

        return n < kernel ? n : kernel;
}

static __device__ taps taps_at(const sl_own_window &w, int d, uint32_t position)
{
        int32_t start = (int32_t)position * w.stride[d] - w.pad_begin[d];

        return {start, taps_below(start, w.dilation[d], w.kernel[d], 0),
                taps_below(start, w.dilation[d], w.kernel[d], w.in_size[d])};
}

/* What an average divides by: taps in the image, or in the image and its padding, but not beyond. */
static __device__ float taps_counted(const sl_own_pool &a, int d, const taps &t)
{
        int32_t within;

        if (!a.padding_too)
                return (float)(t.last - t.first);
        within = (a.window.in_size[d] + a.window.pad_end[d] - t.start - 1) / a.window.dilation[d] + 1;
        return (float)(within < a.window.kernel[d] ? within : a.window.kernel[d]);
}

/* What the window has seen so far. */
struct seen {
        float value;
        int32_t place;
};

static __device__ void see(const sl_own_pool &a, seen *s, float v, int32_t place)
{
        if (a.kind == SL_OWN_POOL_AVERAGE) {
                s->value += v;
        } else if (a.kind == SL_OWN_POOL_POWERS) {
                s->value += powf(fabsf(v), a.p);
        } else if (s->place < 0 || isnan(v) || v > s->value) {
                s->value = isnan(s->value) ? s->value : v;
                s->place = place;
        }
}

static __device__ int64_t place_of(const sl_own_pool &a, int32_t place)
{
        int32_t x = place % a.window.in_size[2], y = place / a.window.in_size[2] % a.window.in_size[1],
                z = place / a.window.in_size[2] / a.window.in_size[1];

        return a.by_columns && place >= 0 ? ((int64_t)x * a.window.in_size[1] + y) * a.window.in_size[0] + z : place;
}

/* V channels that lie side by side, at one place of the output. @apart: elements from a pixel to the next. */
template <typename T, int V>
static __device__ void pool_window(const sl_own_pool &a, const taps t[SL_OWN_SPATIAL], const T *image, uint32_t apart, seen s[V])
{
        for (int v = 0; v < V; v++)
                s[v] = {a.kind == SL_OWN_POOL_MAX ? -INFINITY : 0, -1};
        for (int32_t z = t[0].first; z < t[0].last; z++)
                for (int32_t y = t[1].first; y < t[1].last; y++)
                        for (int32_t x = t[2].first; x < t[2].last; x++) {
                                int32_t row = (t[0].start + z * a.window.dilation[0]) * a.window.in_size[1] + t[1].start +
                                              y * a.window.dilation[1];
                                int32_t place = row * a.window.in_size[2] + t[2].start + x * a.window.dilation[2];
                                pack<T, V> loaded = *reinterpret_cast<const pack<T, V> *>(image + (uint64_t)place * apart);

#pragma unroll
                                for (int v = 0; v < V; v++)
                                        see(a, &s[v], widen(loaded.at[v]), place);
                        }
}

static __device__ float pooled(const sl_own_pool &a, const seen &s, float count)
{
        if (a.kind == SL_OWN_POOL_AVERAGE)
                return count > 0 ? s.value / count : 0;
        return a.kind == SL_OWN_POOL_POWERS ? powf(s.value, 1 / a.p) : s.value;
}

template <typename T, int V> static __device__ void pool_at(const sl_own_pool &a, uint32_t i)
{
        uint32_t channel = i, rest = i, plane, size = (uint32_t)(a.window.in_size[0] * a.window.in_size[1] * a.window.in_size[2]);
        float count = 1;
        taps t[SL_OWN_SPATIAL];
        pack<T, V> result;
        const T *image;
        seen s[V];

        if (a.channels_last)
                rest = divide(&channel, a.channels);
        for (int d = SL_OWN_SPATIAL - 1; d >= 0; d--) {
                uint32_t at = rest;

                rest = divide(&at, a.window.out_size[d]);
                t[d] = taps_at(a.window, d, at);
                count *= taps_counted(a, d, t[d]);
        }
        plane = rest;
        image = static_cast<const T *>(a.in) + (uint64_t)plane * size * (a.channels_last ? a.channels.divisor : 1);
        pool_window<T, V>(a, t, image + (a.channels_last ? channel : 0), a.channels_last ? a.channels.divisor : 1, s);
#pragma unroll
        for (int v = 0; v < V; v++)
                narrow(pooled(a, s[v], count), &result.at[v]);
        *reinterpret_cast<pack<T, V> *>(static_cast<T *>(a.out) + i) = result;
        if (a.places)
                a.places[i] = (int64_t)plane * size + place_of(a, s[0].place);
}

template <typename T> static __device__ void pool(const sl_own_pool &a)
{
        constexpr int wide = 16 / sizeof(T) < 8 ? 16 / sizeof(T) : 8;

        if (a.vector == wide && is_aligned(a.in, wide * sizeof(T)) && is_aligned(a.out, wide * sizeof(T)))
                for (uint32_t i = thread_first(); i < a.results / wide; i += thread_step())
                        pool_at<T, wide>(a, i * wide);
        else
                for (uint32_t i = thread_first(); i < a.results; i += thread_step())
                        pool_at<T, 1>(a, i);
}

SL_KERNEL(pool_f32, sl_own_pool)
{
        pool<float>(a);
}

SL_KERNEL(pool_f16, sl_own_pool)
{
        pool<half_t>(a);
}

SL_KERNEL(pool_bf16, sl_own_pool)
{
        pool<bfloat_t>(a);
}

SL_KERNEL(pool_u8, sl_own_pool)
{
        pool<uint8_t>(a);
}

SL_KERNEL(pool_i8, sl_own_pool)
{
        pool<int8_t>(a);
}

static __device__ float scaled(const sl_own_scale &a, float x, uint32_t c)
{
        float y = (x - load_float(a.statistics[2], c, a.dtypes[2])) /
                          sqrtf(load_float(a.statistics[3], c, a.dtypes[3]) + a.epsilon) *
                          load_float(a.statistics[0], c, a.dtypes[0]) +
                  load_float(a.statistics[1], c, a.dtypes[1]);

        return a.active ? apply(a.activation, y, 0) : y;
}

template <typename T, int V> static __device__ void scale_at(const sl_own_scale &a, uint32_t i)
{
        uint32_t low = i, high = divide(&low, a.channels_last ? a.channels : a.inner), channel = high, sample;
        pack<T, V> x = *reinterpret_cast<const pack<T, V> *>(static_cast<const T *>(a.in) + i), y;
        uint64_t to;

        if (a.channels_last) {
                channel = low + a.first;
                to = (uint64_t)high * a.out_channels + channel;
        } else {
                sample = divide(&channel, a.channels);
                channel += a.first;
                to = ((uint64_t)sample * a.out_channels + channel) * a.inner.divisor + low;
        }
#pragma unroll
        for (int v = 0; v < V; v++)
                narrow(scaled(a, widen(x.at[v]), a.channels_last ? channel + v : channel), &y.at[v]);
        *reinterpret_cast<pack<T, V> *>(static_cast<T *>(a.out) + to) = y;
}

template <typename T> static __device__ void scale(const sl_own_scale &a)
{
        constexpr int wide = 16 / sizeof(T);

        if (a.vector == wide && is_aligned(a.in, 16) && is_aligned(a.out, 16))
                for (uint32_t i = thread_first(); i < a.elements / wide; i += thread_step())
                        scale_at<T, wide>(a, i * wide);
        else
                for (uint32_t i = thread_first(); i < a.elements; i += thread_step())
                        scale_at<T, 1>(a, i);
}

SL_KERNEL(scale_f32, sl_own_scale)
{
        scale<float>(a);
}

SL_KERNEL(scale_f16, sl_own_scale)
{
        scale<half_t>(a);
}

SL_KERNEL(scale_bf16, sl_own_scale)
{
        scale<bfloat_t>(a);
}

template <typename T> static __device__ void lrn(const sl_own_lrn &a)
{
        const T *in = static_cast<const T *>(a.in);
        uint32_t apart = a.channels_last ? 1 : a.inner.divisor;

        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t channel = i, below, above;
                float squares = 0;

                if (!a.channels_last)
                        channel = divide(&channel, a.inner);
                divide(&channel, a.channels);
                below = channel < (uint32_t)a.before ? channel : (uint32_t)a.before;
                above = a.channels.divisor - 1 - channel;
                above = above < (uint32_t)a.after ? above : (uint32_t)a.after;
                for (uint32_t k = 0; k <= below + above; k++) {
                        float x = widen(in[i - (uint64_t)below * apart + (uint64_t)k * apart]);

                        squares += x * x;
                }
                narrow(widen(in[i]) / powf(a.bias + a.alpha * squares, a.beta), static_cast<T *>(a.out) + i);
        }
}

SL_KERNEL(lrn_f32, sl_own_lrn)
{
        lrn<float>(a);
}

SL_KERNEL(lrn_f16, sl_own_lrn)
{
        lrn<half_t>(a);
}

SL_KERNEL(lrn_bf16, sl_own_lrn)
{
        lrn<bfloat_t>(a);
}

/* Where place @at of the output lies in the input (shape/resize.c). */
static __device__ float source_of(const sl_own_resize &a, const sl_own_resize_axis &axis, uint32_t at)
{
        float x = (float)at, in = (float)axis.in, out = (float)axis.out.divisor, scale = axis.scale;

        switch (a.transform) {
        case SL_RESIZE_HALF_PIXEL_SYMMETRIC:
                return in / 2 * (1 - out / axis.extent) + (x + 0.5f) / scale - 0.5f;
        case SL_RESIZE_PYTORCH_HALF_PIXEL:
                return out > 1 ? (x + 0.5f) / scale - 0.5f : 0;
        case SL_RESIZE_ALIGN_CORNERS:
                return out == 1 ? 0 : x * (in - 1) / (axis.extent - 1);
        case SL_RESIZE_ASYMMETRIC:
                return x / scale;
        case SL_RESIZE_TF_HALF_PIXEL_FOR_NN:
                return (x + 0.5f) / scale;
        case SL_RESIZE_TF_CROP_AND_RESIZE:
                return out > 1 ? axis.crop_start * (in - 1) + x * (axis.crop_end - axis.crop_start) * (in - 1) / (out - 1)
                               : 0.5f * (axis.crop_start + axis.crop_end) * (in - 1);
        default:
                return (x + 0.5f) / scale - 0.5f;
        }
}

static __device__ uint32_t clamp(float x, uint32_t limit)
{
        return x <= 0 || isnan(x) ? 0 : x >= (float)(limit - 1) ? limit - 1 : (uint32_t)x;
}

static __device__ float nearest_of(uint32_t kind, float x)
{
        float below = floorf(x), behind = x - below;
        bool half = fabsf(behind - 0.5f) <= SL_RESIZE_HALF_ERROR;

        switch (kind) {
        case SL_RESIZE_PREFER_CEIL:
                return half || behind > 0.5f ? below + 1 : below;
        case SL_RESIZE_FLOOR:
                return below;
        case SL_RESIZE_CEIL:
                return ceilf(x);
        default:
                return half || behind < 0.5f ? below : below + 1;
        }
}

/* Of one axis: two places and their weights. */
struct pair {
        uint32_t at[2];
        float weight[2];
};

static __device__ pair pair_of(const sl_own_resize &a, const sl_own_resize_axis &axis, float x)
{
        float last = (float)(axis.in - 1), sum = 0;
        pair p;

        /* Farther outside than the filter reaches is all the same. */
        x = !(x > -1) ? -1 : x > last + 1 ? last + 1 : x;
        for (int k = 0; k < 2; k++) {
                float place = floorf(x) + (float)k, distance = fabsf(place - x);
                bool left_out = (place < 0 || place > last) && a.exclude_outside;

                p.at[k] = clamp(place, axis.in);
                p.weight[k] = distance < 1 && !left_out ? 1 - distance : 0;
                sum += p.weight[k];
        }
        for (int k = 0; k < 2 && sum != 0; k++)
                p.weight[k] /= sum;
        return p;
}

/* The pairs of all axes of element @i; false where it lies outside a crop. */
static __device__ bool find_pairs(const sl_own_resize &a, uint32_t i, pair pairs[SL_OWN_DIMS])
{
        for (uint32_t d = 0; d < a.n_axes; d++) {
                const sl_own_resize_axis &axis = a.axes[d];
                uint32_t at = i;
                float x;

                i = divide(&at, axis.out);
                pairs[d] = {{at, at}, {1, 0}};
                if (axis.keeps)
                        continue;
                x = source_of(a, axis, at);
                if (a.transform == SL_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0 && x <= (float)(axis.in - 1)))
                        return false;
                if (a.linear)
                        pairs[d] = pair_of(a, axis, x);
                else
                        pairs[d].at[0] = clamp(nearest_of(a.nearest, x), axis.in);
        }
        return true;
}

static __device__ float add_pairs(const sl_own_resize &a, const pair pairs[SL_OWN_DIMS])
{
        float sum = 0;

        for (uint32_t corner = 0; corner < 1u << a.n_axes; corner++) {
                uint32_t from = 0;
                float weight = 1;

                for (uint32_t d = 0; d < a.n_axes && weight != 0; d++) {
                        weight *= pairs[d].weight[corner >> d & 1];
                        from += pairs[d].at[corner >> d & 1] * a.axes[d].stride;
                }
                if (weight != 0)
                        sum += weight * load_float(a.in, from, a.dtype);
        }
        return sum;
}

SL_KERNEL(resize, sl_own_resize)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                pair pairs[SL_OWN_DIMS];
                uint32_t from = 0;

                if (!find_pairs(a, i, pairs)) {
                        store_bits(a.out, i, a.bytes, a.extrapolation);
                } else if (a.linear) {
                        store_float(a.out, i, a.dtype, add_pairs(a, pairs));
                } else {
                        for (uint32_t d = 0; d < a.n_axes; d++)
                                from += pairs[d].at[0] * a.axes[d].stride;
                        store_bits(a.out, i, a.bytes, load_bits(a.in, from, a.bytes));
                }
        }
}

/* Filters of more than two places. Of one axis: @count places from @begin on, around @x; of one that is kept place @at. */
struct span {
        float x, begin, scale;
        uint32_t count, at;
};

static __device__ float filter_at(const sl_own_resize &a, float x)
{
        float c = a.coefficient;

        x = fabsf(x);
        if (!a.cubic)
                return x < 1 ? 1 - x : 0;
        if (x <= 1)
                return ((c + 2) * x - (c + 3)) * x * x + 1;
        return x < 2 ? ((c * x - 5 * c) * x + 8 * c) * x - 4 * c : 0;
}

static __device__ float weight_of(const sl_own_resize &a, const sl_own_resize_axis &axis, const span &s, uint32_t k)
{
        float place = s.begin + (float)k;
        bool outside = place < 0 || place > (float)(axis.in - 1);

        return outside && a.exclude_outside ? 0 : filter_at(a, (place - s.x) * ((a.cubic ? 2.0f : 1.0f) / axis.support)) * s.scale;
}

static __device__ span span_of(const sl_own_resize &a, const sl_own_resize_axis &axis, float x)
{
        float last = (float)(axis.in - 1), sum = 0;
        span s;

        x = !(x > -axis.support) ? -axis.support : x > last + axis.support ? last + axis.support : x;
        s.x = x;
        s.begin = floorf(x - axis.support) + 1;
        s.count = (uint32_t)(ceilf(x + axis.support) - s.begin);
        s.scale = 1;
        s.at = 0;
        for (uint32_t k = 0; k < s.count; k++)
                sum += weight_of(a, axis, s, k);
        s.scale = sum != 0 ? 1 / sum : 1;
        return s;
}

/* The next taps, the innermost axis first; false behind the last ones. */
static __device__ bool next_taps(const sl_own_resize &a, const span spans[SL_OWN_DIMS], uint32_t taps[SL_OWN_DIMS])
{
        for (uint32_t d = 0; d < a.n_axes; d++) {
                if (++taps[d] < spans[d].count)
                        return true;
                taps[d] = 0;
        }
        return false;
}

/* Cubic, a weight of 0 counts: it makes a NaN of an infinity. */
static __device__ float add_taps(const sl_own_resize &a, const span spans[SL_OWN_DIMS])
{
        uint32_t taps[SL_OWN_DIMS] = {};
        float sum = 0;

        do {
                uint32_t from = 0;
                float weight = 1;

                for (uint32_t d = 0; d < a.n_axes && (weight != 0 || a.cubic); d++) {
                        uint32_t at = a.axes[d].keeps ? spans[d].at : clamp(spans[d].begin + (float)taps[d], a.axes[d].in);

                        weight *= a.axes[d].keeps ? 1 : weight_of(a, a.axes[d], spans[d], taps[d]);
                        from += at * a.axes[d].stride;
                }
                if (weight != 0 || a.cubic)
                        sum += weight * load_float(a.in, from, a.dtype);
        } while (next_taps(a, spans, taps));
        return sum;
}

SL_KERNEL(resize_filter, sl_own_resize)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                span spans[SL_OWN_DIMS];
                bool inside = true;
                uint32_t left = i;

                for (uint32_t d = 0; d < a.n_axes && inside; d++) {
                        uint32_t at = left;
                        float x;

                        left = divide(&at, a.axes[d].out);
                        spans[d] = {0, 0, 1, 1, at};
                        if (a.axes[d].keeps)
                                continue;
                        x = source_of(a, a.axes[d], at);
                        inside = a.transform != SL_RESIZE_TF_CROP_AND_RESIZE || (x >= 0 && x <= (float)(a.axes[d].in - 1));
                        spans[d] = span_of(a, a.axes[d], x);
                }
                if (inside)
                        store_float(a.out, i, a.dtype, add_taps(a, spans));
                else
                        store_bits(a.out, i, a.bytes, a.extrapolation);
        }
}

/* The place between the edges that mirrors at the edges lead to. */
static __device__ float mirror(float x, float low, float high)
{
        float range = high - low, distance = x < low ? low - x : x > high ? x - high : -1, times, rest;

        if (range <= 0)
                return low;
        if (distance < 0)
                return x;
        times = floorf(distance / range);
        rest = distance - times * range;
        if (x < low)
                return fmodf(times, 2) == 1 ? high - rest : low + rest;
        return fmodf(times, 2) == 1 ? low + rest : high - rest;
}

enum { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

/* The index that stands for @i along dimension @d, or -1 for none. */
static __device__ int32_t grid_index(const sl_own_grid_sample &a, uint32_t d, float i)
{
        float last = (float)(a.size[d] - 1);

        if (!(i >= 0 && i <= last)) {
                if (a.padding == GRID_ZEROS || isnan(i) || isinf(i))
                        return -1;
                i = a.padding == GRID_BORDER ? i : mirror(i, a.corners ? 0 : -0.5f, a.corners ? last : last + 0.5f);
                i = fminf(fmaxf(i, 0), last);
        }
        return (int32_t)i;
}

/* From [-1, 1] to pixels, brought into the image as the padding says. */
static __device__ float grid_pixel(const sl_own_grid_sample &a, uint32_t d, float x)
{
        float size = (float)a.size[d], low = a.corners ? 0 : -0.5f, high = a.corners ? size - 1 : size - 0.5f;

        x = a.corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
        if (a.mode == GRID_NEAREST)
                x = rintf(x);
        if (x < low || x > high) {
                if (a.padding == GRID_BORDER)
                        x = fminf(fmaxf(x, 0), size - 1);
                else if (a.padding == GRID_REFLECTION)
                        x = mirror(x, low, high);
        }
        return x;
}

static __device__ float grid_weight(const sl_own_grid_sample &a, float distance)
{
        const float c = -0.75f;

        distance = fabsf(distance);
        if (a.mode == GRID_LINEAR)
                return distance < 1 ? 1 - distance : 0;
        if (distance <= 1)
                return ((c + 2) * distance - (c + 3)) * distance * distance + 1;
        return distance < 2 ? ((c * distance - 5 * c) * distance + 8 * c) * distance - 4 * c : 0;
}

/* Up to four places along one dimension, and their weights. */
struct grid_taps {
        int32_t n, at[4];
        float weight[4];
};

static __device__ grid_taps grid_taps_at(const sl_own_grid_sample &a, uint32_t d, float x)
{
        bool single = SL_OWN_SPATIAL - d > a.rank || a.mode == GRID_NEAREST, finite = !isnan(x) && !isinf(x);
        float begin = single ? x : floorf(x) - (a.mode == GRID_CUBIC ? 1 : 0);
        grid_taps t = {finite ? single ? 1 : a.mode == GRID_CUBIC ? 4 : 2 : 0, {}, {}};

        for (int32_t k = 0; k < t.n; k++) {
                t.at[k] = grid_index(a, d, begin + (float)k);
                t.weight[k] = t.at[k] < 0 ? 0 : single ? 1 : grid_weight(a, x - (begin + (float)k));
        }
        return t;
}

static __device__ float grid_sum(const sl_own_grid_sample &a, uint32_t plane, const grid_taps t[SL_OWN_SPATIAL])
{
        uint32_t base = plane * (uint32_t)(a.size[0] * a.size[1] * a.size[2]);
        float sum = 0;

        for (int32_t z = 0; z < t[0].n; z++)
                for (int32_t y = 0; y < t[1].n; y++)
                        for (int32_t x = 0; x < t[2].n; x++) {
                                float weight = t[0].weight[z] * t[1].weight[y] * t[2].weight[x];
                                int32_t row = t[0].at[z] * a.size[1] + t[1].at[y];

                                if (t[0].weight[z] != 0 && t[1].weight[y] != 0 && t[2].weight[x] != 0)
                                        sum += weight * load_float(a.in, base + (uint32_t)(row * a.size[2] + t[2].at[x]), a.dtype);
                        }
        return sum;
}

/* The grid names the last dimension first. */
SL_KERNEL(grid_sample, sl_own_grid_sample)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t position = i, plane = divide(&position, a.positions), channel = plane, n = divide(&channel, a.channels);
                grid_taps t[SL_OWN_SPATIAL];

                for (uint32_t d = 0; d < SL_OWN_SPATIAL; d++) {
                        bool there = SL_OWN_SPATIAL - d <= a.rank;
                        uint32_t at = (n * a.positions.divisor + position) * a.rank + SL_OWN_SPATIAL - 1 - d;

                        t[d] = grid_taps_at(a, d, there ? grid_pixel(a, d, load_float(a.grid, at, a.grid_dtype)) : 0);
                }
                store_float(a.out, i, a.dtype, grid_sum(a, plane, t));
        }
}
