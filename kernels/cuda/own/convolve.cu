/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions by plain loops, for what cuDNN is not asked or has no plan: three spatial dimensions, filters that are computed,
 * transposed ones. A thread has a result.
 */
#include "device.cuh"

/* Which result: the image, the filter, and the place along each dimension. */
struct spot {
        uint32_t n, filter, at[SL_OWN_SPATIAL];
};

static __device__ spot spot_of(const sl_own_convolve &a, uint32_t i)
{
        spot s;

        if (a.channels_last) {
                s.filter = i;
                i = divide(&s.filter, a.filters);
        }
        for (int d = SL_OWN_SPATIAL - 1; d >= 0; d--) {
                s.at[d] = i;
                i = divide(&s.at[d], a.window.out_size[d]);
        }
        if (!a.channels_last) {
                s.filter = i;
                i = divide(&s.filter, a.filters);
        }
        s.n = i;
        return s;
}

/* Where tap @k of a result at @at lies in the image; -1: nowhere. */
static __device__ int32_t source_of(const sl_own_convolve &a, int d, uint32_t at, int32_t k)
{
        const sl_own_window &w = a.window;
        int32_t from = a.transposed ? (int32_t)at + w.pad_begin[d] - k * w.dilation[d]
                                    : (int32_t)at * w.stride[d] - w.pad_begin[d] + k * w.dilation[d];

        if (a.transposed) {
                if (from < 0 || from % w.stride[d])
                        return -1;
                from /= w.stride[d];
        }
        return from < w.in_size[d] ? from : -1;
}

/* Over the channels of the filter's group, at one pixel and one tap. */
template <typename T> static __device__ float add_channels(const sl_own_convolve &a, const spot &s, int32_t pixel, int32_t tap)
{
        uint32_t first = a.lanes ? s.filter % a.lanes : s.filter / a.group_filters * a.group_channels;
        uint32_t within = s.filter % a.group_filters, apart = a.lanes ? a.lanes : 1;
        uint32_t pixels = (uint32_t)(a.window.in_size[0] * a.window.in_size[1] * a.window.in_size[2]);
        uint32_t taps = (uint32_t)(a.window.kernel[0] * a.window.kernel[1] * a.window.kernel[2]);
        const T *x = static_cast<const T *>(a.x), *w = static_cast<const T *>(a.w);
        float sum = 0;

        for (uint32_t c = 0; c < a.group_channels; c++) {
                uint32_t row = a.transposed ? (first + c) * a.group_filters + within : s.filter * a.group_channels + c;
                uint32_t channel = first + c * apart;
                uint32_t at = a.channels_last ? (s.n * pixels + (uint32_t)pixel) * a.channels + channel
                                              : (s.n * a.channels + channel) * pixels + (uint32_t)pixel;

                sum += widen(x[at]) * widen(w[row * taps + (uint32_t)tap]);
        }
        return sum;
}

template <typename T> static __device__ float convolve_at(const sl_own_convolve &a, const spot &s)
{
        const sl_own_window &w = a.window;
        float sum = a.bias ? widen(static_cast<const T *>(a.bias)[s.filter]) : 0;

        for (int32_t z = 0; z < w.kernel[0]; z++) {
                int32_t in_z = source_of(a, 0, s.at[0], z);

                for (int32_t y = 0; y < w.kernel[1] && in_z >= 0; y++) {
                        int32_t in_y = source_of(a, 1, s.at[1], y);

                        for (int32_t x = 0; x < w.kernel[2] && in_y >= 0; x++) {
                                int32_t in_x = source_of(a, 2, s.at[2], x);

                                if (in_x >= 0)
                                        sum += add_channels<T>(a, s, (in_z * w.in_size[1] + in_y) * w.in_size[2] + in_x,
                                                (z * w.kernel[1] + y) * w.kernel[2] + x);
                        }
                }
        }
        return sum;
}

template <typename T> static __device__ void run_convolve(const sl_own_convolve &a)
{
        for (uint32_t i = thread_first(); i < a.results; i += thread_step())
                narrow(convolve_at<T>(a, spot_of(a, i)), static_cast<T *>(a.out) + i);
}

SL_KERNEL(convolve_f32, sl_own_convolve)
{
        run_convolve<float>(a);
}

SL_KERNEL(convolve_f16, sl_own_convolve)
{
        run_convolve<half_t>(a);
}

SL_KERNEL(convolve_bf16, sl_own_convolve)
{
        run_convolve<bfloat_t>(a);
}
