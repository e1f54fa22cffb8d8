/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in few bits. What ONNX says in single precision (a division by the scale) is done so; ties go to even. */
#include "functions.cuh"
#include "group.cuh"

static __device__ uint32_t scale_of(const sl_own_quantize &a, uint32_t element)
{
        uint32_t within = element, row = divide(&within, a.inner), at = row, outer = divide(&at, a.size);

        if (!a.block)
                return 0;
        at = divide(&at, a.block_size);
        return a.blocks ? (outer * a.blocks + at) * a.inner.divisor + within : at;
}

static __device__ int64_t saturated(double value, uint32_t dtype)
{
        double least = dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_U16 ? 0 : dtype == SL_DTYPE_I8 ? -128 : -32768;
        double most = dtype == SL_DTYPE_U8 ? 255 : dtype == SL_DTYPE_I8 ? 127 : dtype == SL_DTYPE_U16 ? 65535 : 32767;

        return (int64_t)fmin(fmax(value, least), most); /* of a NaN the least */
}

/* What a scale is for: at most the limits of its type. */
static __device__ void store_rounded(void *out, uint32_t i, uint32_t dtype, float value, int32_t zero)
{
        if (dtype == SL_DTYPE_F32)
                static_cast<float *>(out)[i] = value;
        else
                store_integer(out, i, dtype, saturated(rint((double)value) + zero, dtype));
}

SL_KERNEL(quantize, sl_own_quantize)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t at = scale_of(a, i);
                float x = a.from == SL_DTYPE_I32 ? (float)static_cast<const int32_t *>(a.in)[i] : load_float(a.in, i, a.from);

                store_rounded(a.out, i, a.to, x / load_float(a.scale, at, a.scale_dtype),
                        a.zero ? (int32_t)load_integer(a.zero, at, a.to) : 0);
        }
}

SL_KERNEL(dequantize, sl_own_quantize)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t at = scale_of(a, i);
                int64_t x = load_integer(a.in, i, a.from) - (a.zero ? load_integer(a.zero, at, a.from) : 0);

                store_float(a.out, i, a.to, (float)x * load_float(a.scale, at, a.scale_dtype));
        }
}

SL_KERNEL(quantized_add, sl_own_quantized_add)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                float value = a.x_scale * (float)(load_integer(a.x, i, a.x_dtype) - a.x_zero);

                if (a.addend)
                        value += a.addend_scale * (float)(load_integer(a.addend, i, a.addend_dtype) - a.addend_zero);
                if (a.active)
                        value = apply(a.activation, value, 0);
                store_rounded(a.out, i, a.y_dtype, a.y_dtype == SL_DTYPE_F32 ? value : value / a.y_scale, a.y_zero);
        }
}

SL_KERNEL(shift, sl_own_shift)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step())
                a.out[i] = (float)(load_integer(a.in, i, a.dtype) - a.zero);
}

/* The pixel that a word of the output is of; -1: it lies outside the image. */
static __device__ int32_t pixel_of(const sl_own_im2col &a, uint32_t i)
{
        const sl_own_window &w = a.window;
        int32_t at[SL_OWN_SPATIAL], pixel = 0;
        uint32_t tap[SL_OWN_SPATIAL];

        for (int d = SL_OWN_SPATIAL - 1; d >= 0; d--) {
                tap[d] = i;
                i = divide(&tap[d], a.kernel[d]);
        }
        for (int d = SL_OWN_SPATIAL - 1; d >= 0; d--) {
                uint32_t place = i;

                i = divide(&place, w.out_size[d]);
                at[d] = (int32_t)place * w.stride[d] - w.pad_begin[d] + (int32_t)tap[d] * w.dilation[d];
                if (at[d] < 0 || at[d] >= w.in_size[d])
                        return -1;
        }
        pixel = (int32_t)i;
        for (int d = 0; d < SL_OWN_SPATIAL; d++)
                pixel = pixel * w.in_size[d] + at[d];
        return pixel;
}

SL_KERNEL(im2col, sl_own_im2col)
{
        for (uint32_t i = thread_first(); i < a.words; i += thread_step()) {
                uint32_t word = i, rest = divide(&word, a.channels);
                int32_t pixel = pixel_of(a, rest);

                a.out[i] = pixel < 0 ? a.zero : a.in[(uint32_t)pixel * a.channels.divisor + word] ^ a.flip;
        }
}

static __device__ double sum_of(const sl_own_settle &a, uint32_t i, uint32_t channel)
{
        if (a.sums_dtype == SL_DTYPE_F32)
                return rint((double)static_cast<const float *>(a.sums)[i]);
        return (double)(static_cast<const int32_t *>(a.sums)[i] - (a.totals ? (int64_t)a.x_zero * a.totals[channel] : 0));
}

/* In float64 as far as it goes: what is rounded once must not depend on how. */
SL_KERNEL(settle, sl_own_settle)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t channel = i;
                double value;

                divide(&channel, a.channels);
                value = (double)a.scales[channel * a.scale_step] * (sum_of(a, i, channel) + (a.bias ? a.bias[channel] : 0));
                if (a.addend && a.addend_dtype == SL_DTYPE_F32)
                        value += static_cast<const float *>(a.addend)[i];
                else if (a.addend)
                        value += a.addend_scale * (double)(load_integer(a.addend, i, a.addend_dtype) - a.addend_zero);
                if (a.active && a.activation.function == SL_OWN_RELU)
                        value = value < 0 ? 0 : value;
                else if (a.active)
                        value = apply(a.activation, (float)value, 0);
                if (a.y_dtype == SL_DTYPE_F32)
                        static_cast<float *>(a.out)[i] = (float)value;
                else
                        store_integer(a.out, i, a.y_dtype, saturated(rint(value / a.y_scale) + a.y_zero, a.y_dtype));
        }
}

struct smaller {
        __device__ float operator()(float x, float y) const
        {
                return fminf(x, y);
        }
};

/* Of a block: 0 and all of its elements. */
SL_KERNEL(dynamic_range, sl_own_dynamic_quantize)
{
        float least = 0, most = 0;

        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                least = a.in[i] < least ? a.in[i] : least;
                most = a.in[i] > most ? a.in[i] : most;
        }
        least = combine<256>(least, smaller());
        most = combine<256>(most, larger());
        if (threadIdx.x == 0) {
                a.ranges[2 * blockIdx.x] = least;
                a.ranges[2 * blockIdx.x + 1] = most;
        }
}

SL_KERNEL(dynamic_quantize, sl_own_dynamic_quantize)
{
        bool there = threadIdx.x < a.n_ranges;
        float least = combine<256>(there ? a.ranges[2 * threadIdx.x] : 0, smaller());
        float most = combine<256>(there ? a.ranges[2 * threadIdx.x + 1] : 0, larger());
        float scale = (most - least) / 255;
        int32_t zero = scale > 0 ? (int32_t)fminf(fmaxf(rintf(-least / scale), 0), 255) : 0;

        for (uint32_t i = thread_first(); i < a.elements; i += thread_step())
                store_rounded(a.out, i, SL_DTYPE_U8, scale > 0 ? a.in[i] / scale : 0, zero);
        if (thread_first())
                return;
        if (a.scale)
                *a.scale = scale;
        if (a.zero)
                *a.zero = (uint8_t)zero;
}
