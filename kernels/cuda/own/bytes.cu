/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in few bits. What ONNX says in single precision (a division by the scale) is done so; ties go to even. */
#include "functions.cuh"

static __device__ uint32_t scale_of(const sl_own_quantize &a, uint32_t element)
{
        uint32_t within = element, row = divide(&within, a.inner), at = row, outer = divide(&at, a.size);

        if (!a.block)
                return 0;
        at = divide(&at, a.block_size);
        return a.blocks ? (outer * a.blocks + at) * a.inner.divisor + within : at;
}

/* What a scale is for: at most these limits. */
static __device__ void store_rounded(void *out, uint32_t i, uint32_t dtype, float value, int32_t zero)
{
        double least = dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_U16 ? 0 : dtype == SL_DTYPE_I8 ? -128 : -32768;
        double most = dtype == SL_DTYPE_U8 ? 255 : dtype == SL_DTYPE_I8 ? 127 : dtype == SL_DTYPE_U16 ? 65535 : 32767;
        double rounded = rint((double)value) + zero;

        if (dtype == SL_DTYPE_F32)
                static_cast<float *>(out)[i] = value;
        else
                store_integer(out, i, dtype, isnan(rounded) ? 0 : (int64_t)fmin(fmax(rounded, least), most));
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
