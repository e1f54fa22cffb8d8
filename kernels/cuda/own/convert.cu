/* SPDX-License-Identifier: Apache-2.0 */
/* From one type to another: casts, comparisons, choices. */
#include "device.cuh"

/* Towards zero; what is out of range becomes the nearest limit of an integer type, NaN becomes 0 (and true). */
static __device__ int64_t saturate(double value, uint32_t dtype)
{
        double most = dtype == SL_DTYPE_U8    ? 255.0
                      : dtype == SL_DTYPE_I8  ? 127.0
                      : dtype == SL_DTYPE_U16 ? 65535.0
                      : dtype == SL_DTYPE_I16 ? 32767.0
                      : dtype == SL_DTYPE_U32 ? 4294967295.0
                                              : 2147483647.0;
        double least = is_unsigned(dtype) ? 0 : -most - 1;

        if (dtype == SL_DTYPE_BOOL)
                return value != 0;
        if (isnan(value))
                return 0;
        if (dtype == SL_DTYPE_U64)
                return value >= 18446744073709551616.0 ? -1 : value <= 0 ? 0 : (int64_t)(uint64_t)value;
        if (dtype == SL_DTYPE_I64) {
                if (value >= 9223372036854775808.0)
                        return INT64_MAX;
                return value < -9223372036854775808.0 ? INT64_MIN : (int64_t)value;
        }
        return value >= most ? (int64_t)most : value <= least ? (int64_t)least : (int64_t)value;
}

static __device__ void cast_float(const sl_own_cast &a, uint32_t i)
{
        double value = a.from == SL_DTYPE_F64 ? static_cast<const double *>(a.in)[i] : (double)load_float(a.in, i, a.from);

        if (a.to == SL_DTYPE_F64)
                static_cast<double *>(a.out)[i] = value;
        else if (is_float(a.to))
                store_float(a.out, i, a.to, (float)value);
        else
                store_integer(a.out, i, a.to, saturate(value, a.to));
}

static __device__ void cast_integer(const sl_own_cast &a, uint32_t i)
{
        int64_t value = load_integer(a.in, i, a.from);

        if (a.to == SL_DTYPE_F64)
                static_cast<double *>(a.out)[i] = is_unsigned(a.from) ? (double)(uint64_t)value : (double)value;
        else if (is_float(a.to))
                store_float(a.out, i, a.to, is_unsigned(a.from) ? (float)(uint64_t)value : (float)value);
        else
                store_integer(a.out, i, a.to, value);
}

SL_KERNEL(cast, sl_own_cast)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                if (is_float(a.from))
                        cast_float(a, i);
                else
                        cast_integer(a, i);
        }
}

/* Between float32 and a half, either way: 8 elements of a thread. */
template <typename From, typename To> static __device__ void cast_packs(const sl_own_cast &a)
{
        bool wide = is_aligned(a.in, sizeof(pack<From, 4>)) && is_aligned(a.out, sizeof(pack<To, 4>));
        uint32_t whole = wide ? a.elements / 4 : 0;

        for (uint32_t i = thread_first(); i < whole; i += thread_step()) {
                pack<From, 4> from = static_cast<const pack<From, 4> *>(a.in)[i];
                pack<To, 4> to;

#pragma unroll
                for (int k = 0; k < 4; k++)
                        narrow(widen(from.at[k]), &to.at[k]);
                static_cast<pack<To, 4> *>(a.out)[i] = to;
        }
        for (uint32_t i = whole * 4 + thread_first(); i < a.elements; i += thread_step())
                narrow(widen(static_cast<const From *>(a.in)[i]), static_cast<To *>(a.out) + i);
}

SL_KERNEL(cast_f32_f16, sl_own_cast)
{
        cast_packs<float, half_t>(a);
}

SL_KERNEL(cast_f32_bf16, sl_own_cast)
{
        cast_packs<float, bfloat_t>(a);
}

SL_KERNEL(cast_f16_f32, sl_own_cast)
{
        cast_packs<half_t, float>(a);
}

SL_KERNEL(cast_bf16_f32, sl_own_cast)
{
        cast_packs<bfloat_t, float>(a);
}

/* -1, 0, 1 for less, equal, greater; 2 for numbers that have no order. */
template <typename T> static __device__ int order(T x, T y)
{
        return x == y ? 0 : x < y ? -1 : x > y ? 1 : 2;
}

static __device__ int order_of(const sl_own_chain &a, uint32_t x, uint32_t y)
{
        const void *left = a.operands[0].data, *right = a.operands[1].data;

        if (a.dtype == SL_DTYPE_F64)
                return order(static_cast<const double *>(left)[x], static_cast<const double *>(right)[y]);
        if (is_float(a.dtype))
                return order(load_float(left, x, a.dtype), load_float(right, y, a.dtype));
        if (is_unsigned(a.dtype))
                return order((uint64_t)load_integer(left, x, a.dtype), (uint64_t)load_integer(right, y, a.dtype));
        return order(load_integer(left, x, a.dtype), load_integer(right, y, a.dtype));
}

static __device__ bool holds(const sl_own_chain &a, uint32_t x, uint32_t y)
{
        int by = order_of(a, x, y);

        switch (a.steps[0].function) {
        case SL_OWN_EQUAL:
                return by == 0;
        case SL_OWN_GREATER:
                return by == 1;
        case SL_OWN_GREATER_OR_EQUAL:
                return by == 0 || by == 1;
        case SL_OWN_LESS:
                return by == -1;
        default:
                return by == -1 || by == 0;
        }
}

static __device__ bool holds_logic(const sl_own_chain &a, uint32_t x, uint32_t y)
{
        bool left = static_cast<const uint8_t *>(a.operands[0].data)[x], right = static_cast<const uint8_t *>(a.operands[1].data)[y];

        switch (a.steps[0].function) {
        case SL_OWN_AND:
                return left && right;
        case SL_OWN_OR:
                return left || right;
        default:
                return left != right;
        }
}

static __device__ bool is_special(const sl_own_chain &a, uint32_t x)
{
        const void *data = a.operands[0].data;
        double value = a.dtype == SL_DTYPE_F64 ? static_cast<const double *>(data)[x] : (double)load_float(data, x, a.dtype);

        if (a.steps[0].function == SL_OWN_IS_NAN)
                return isnan(value);
        return isinf(value) && (value < 0 ? a.steps[0].a : a.steps[0].b) != 0;
}

static __device__ uint32_t operand_at(const sl_own_chain &a, uint32_t i, uint32_t operand)
{
        uint32_t offset = 0;

        for (uint32_t d = 0; d < a.n_dims; d++) {
                uint32_t at = i;

                i = divide(&at, a.dims[d]);
                offset += at * a.operands[operand].strides[d];
        }
        return offset;
}

/* Booleans of numbers: the step says which test. */
SL_KERNEL(test, sl_own_chain)
{
        bool logic = a.steps[0].function == SL_OWN_AND || a.steps[0].function == SL_OWN_OR || a.steps[0].function == SL_OWN_XOR;

        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t x = operand_at(a, i, 0), y = a.n_operands > 1 ? operand_at(a, i, 1) : 0;
                bool result = a.n_operands == 1 ? is_special(a, x) : logic ? holds_logic(a, x, y) : holds(a, x, y);

                static_cast<uint8_t *>(a.out)[i] = result;
        }
}

template <typename T> static __device__ void choose(const sl_own_chain &a)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t from = static_cast<const uint8_t *>(a.operands[0].data)[operand_at(a, i, 0)] ? 1 : 2;

                static_cast<T *>(a.out)[i] = static_cast<const T *>(a.operands[from].data)[operand_at(a, i, from)];
        }
}

SL_KERNEL(where_1, sl_own_chain)
{
        choose<uint8_t>(a);
}

SL_KERNEL(where_2, sl_own_chain)
{
        choose<uint16_t>(a);
}

SL_KERNEL(where_4, sl_own_chain)
{
        choose<uint32_t>(a);
}

SL_KERNEL(where_8, sl_own_chain)
{
        choose<uint64_t>(a);
}
