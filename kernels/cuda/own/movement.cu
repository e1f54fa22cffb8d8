/* SPDX-License-Identifier: Apache-2.0 */
/* Elements to other places, whatever they mean. Indices that come from the data are checked before they are used. */
#include "device.cuh"

struct alignas(16) quad {
        uint64_t low, high;
};

template <typename T> static __device__ T load_unit(const T *from)
{
        T unit;

        if (is_aligned(from, sizeof(T)))
                return *from;
        for (uint32_t k = 0; k < sizeof(T); k++)
                reinterpret_cast<uint8_t *>(&unit)[k] = reinterpret_cast<const uint8_t *>(from)[k];
        return unit;
}

/* Of a unit of several elements, client memory knows the elements' alignment alone. */
template <typename T> static __device__ void store_unit(T *to, const T &unit)
{
        if (is_aligned(to, sizeof(T))) {
                *to = unit;
                return;
        }
        for (uint32_t k = 0; k < sizeof(T); k++)
                reinterpret_cast<uint8_t *>(to)[k] = reinterpret_cast<const uint8_t *>(&unit)[k];
}

template <typename T> static __device__ void copy_units(const sl_own_copy &a)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t left = i;
                int64_t out = 0, in = 0;

#pragma unroll
                for (int d = 0; d < SL_OWN_DIMS; d++) {
                        uint32_t at = left;

                        if (d >= a.n_dims)
                                break;
                        left = divide(&at, a.dims[d]);
                        out += (int64_t)at * a.out_strides[d];
                        in += (int64_t)at * a.in_strides[d];
                }
                store_unit(static_cast<T *>(a.out) + out, load_unit(static_cast<const T *>(a.in) + in));
        }
}

SL_KERNEL(copy_1, sl_own_copy)
{
        copy_units<uint8_t>(a);
}

SL_KERNEL(copy_2, sl_own_copy)
{
        copy_units<uint16_t>(a);
}

SL_KERNEL(copy_4, sl_own_copy)
{
        copy_units<uint32_t>(a);
}

SL_KERNEL(copy_8, sl_own_copy)
{
        copy_units<uint64_t>(a);
}

SL_KERNEL(copy_16, sl_own_copy)
{
        copy_units<quad>(a);
}

/* Which matrix of a transpose a tile is in, and where. */
struct tile {
        uint32_t row, column;
        uint64_t out, in;
};

static __device__ tile tile_of(const sl_own_transpose &a, uint32_t i)
{
        uint32_t column = i, rest = divide(&column, a.column_tiles), row = rest, outer = divide(&row, a.row_tiles);
        tile t = {row * SL_OWN_TILE, column * SL_OWN_TILE, 0, 0};

        for (uint32_t d = 0; d < a.n_outer; d++) {
                uint32_t at = outer;

                outer = divide(&at, a.outer[d]);
                t.out += at * a.out_strides[d];
                t.in += at * a.in_strides[d];
        }
        return t;
}

/* Tiles go through shared memory, so that both sides are read and written row by row. Threads: 32 columns, 8 rows. */
template <typename T> static __device__ void transpose(const sl_own_transpose &a)
{
        __shared__ T held[SL_OWN_TILE][SL_OWN_TILE + 1];
        uint32_t x = threadIdx.x % SL_OWN_TILE, y = threadIdx.x / SL_OWN_TILE, step = blockDim.x / SL_OWN_TILE;

        for (uint32_t i = blockIdx.x; i < a.n_tiles; i += gridDim.x) {
                tile t = tile_of(a, i);

                for (uint32_t k = y; k < SL_OWN_TILE; k += step)
                        if (t.row + x < a.rows && t.column + k < a.columns)
                                held[k][x] =
                                        static_cast<const T *>(a.in)[t.in + (uint64_t)(t.column + k) * a.in_stride + t.row + x];
                __syncthreads();
                for (uint32_t k = y; k < SL_OWN_TILE; k += step)
                        if (t.row + k < a.rows && t.column + x < a.columns)
                                static_cast<T *>(a.out)[t.out + (uint64_t)(t.row + k) * a.out_stride + t.column + x] = held[x][k];
                __syncthreads();
        }
}

SL_KERNEL(transpose_1, sl_own_transpose)
{
        transpose<uint8_t>(a);
}

SL_KERNEL(transpose_2, sl_own_transpose)
{
        transpose<uint16_t>(a);
}

SL_KERNEL(transpose_4, sl_own_transpose)
{
        transpose<uint32_t>(a);
}

SL_KERNEL(transpose_8, sl_own_transpose)
{
        transpose<uint64_t>(a);
}

/* Where place @i of a padded dimension comes from; -1: from nowhere. */
static __device__ int32_t pad_source(uint32_t mode, int32_t i, int32_t size)
{
        if (i >= 0 && i < size)
                return i;
        switch (mode) {
        case SL_OWN_PAD_REFLECT:
                return i < 0 ? -i : 2 * (size - 1) - i;
        case SL_OWN_PAD_EDGE:
                return i < 0 ? 0 : size - 1;
        case SL_OWN_PAD_WRAP:
                return (i % size + size) % size;
        default:
                return -1;
        }
}

SL_KERNEL(pad, sl_own_pad)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t left = i, from = 0;
                bool inside = true;

                for (uint32_t d = 0; d < a.n_dims; d++) {
                        uint32_t at = left;
                        int32_t source;

                        left = divide(&at, a.dims[d]);
                        source = pad_source(a.mode, (int32_t)at - a.begin[d], a.sizes[d]);
                        inside = inside && source >= 0;
                        from += (uint32_t)source * a.strides[d];
                }
                store_bits(a.out, i, a.bytes, inside ? load_bits(a.in, from, a.bytes) : a.value);
        }
}

SL_KERNEL(fill, sl_own_fill)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step())
                store_bits(a.out, i, a.bytes, a.value);
}

SL_KERNEL(values, sl_own_values)
{
        if (thread_first() < a.count)
                static_cast<int64_t *>(a.out)[thread_first()] = a.values[thread_first()];
}

/* The place that an index of the data means; out of range it sets the error word, and place 0 of something is never read. */
static __device__ bool check_index(
        const void *indices, uint32_t i, uint32_t dtype, uint32_t limit, uint32_t *error, uint32_t *ret_at)
{
        int64_t index = load_integer(indices, i, dtype);

        if (index < -(int64_t)limit || index >= (int64_t)limit) {
                atomicExch(error, 1u);
                return false;
        }
        *ret_at = (uint32_t)(index < 0 ? index + limit : index);
        return true;
}

template <typename T> static __device__ void gather(const sl_own_gather &a)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t within = i, index = divide(&within, a.row), outer = divide(&index, a.n_indices), at;

                if (check_index(a.indices, index, a.index_dtype, a.limit, a.error, &at))
                        store_unit(static_cast<T *>(a.out) + i,
                                load_unit(
                                        static_cast<const T *>(a.in) + ((uint64_t)outer * a.limit + at) * a.row.divisor + within));
        }
}

SL_KERNEL(gather_1, sl_own_gather)
{
        gather<uint8_t>(a);
}

SL_KERNEL(gather_2, sl_own_gather)
{
        gather<uint16_t>(a);
}

SL_KERNEL(gather_4, sl_own_gather)
{
        gather<uint32_t>(a);
}

SL_KERNEL(gather_8, sl_own_gather)
{
        gather<uint64_t>(a);
}

SL_KERNEL(gather_16, sl_own_gather)
{
        gather<quad>(a);
}

SL_KERNEL(gather_elements, sl_own_gather_elements)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t left = i, from = 0, index;

                if (!check_index(a.indices, i, a.index_dtype, a.limit, a.error, &index))
                        continue;
                for (uint32_t d = 0; d < a.n_dims; d++) {
                        uint32_t at = left;

                        left = divide(&at, a.dims[d]);
                        from += (d == a.axis ? index : at) * a.strides[d];
                }
                store_bits(a.out, a.scatter ? from : i, a.bytes, load_bits(a.in, a.scatter ? i : from, a.bytes));
        }
}

SL_KERNEL(gather_nd, sl_own_gather_nd)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t within = i, tuple = divide(&within, a.row), index = tuple, batch = divide(&index, a.n_indices);
                uint64_t far = (uint64_t)batch * a.batch_stride + within;
                bool inside = true;

                for (uint32_t d = 0; d < a.depth && inside; d++) {
                        uint32_t at = 0;

                        inside = check_index(a.indices, tuple * a.depth + d, a.index_dtype, a.limits[d], a.error, &at);
                        far += (uint64_t)at * a.strides[d];
                }
                if (inside)
                        store_bits(a.out, a.scatter ? far : i, a.bytes, load_bits(a.in, a.scatter ? i : far, a.bytes));
        }
}

/* Of a NaN and a number the NaN, as far as it was there first. */
static __device__ float reduce_floats(uint32_t kind, float before, float x)
{
        switch (kind) {
        case SL_OWN_SCATTER_ADD:
                return before + x;
        case SL_OWN_SCATTER_MUL:
                return before * x;
        case SL_OWN_SCATTER_MAX:
                return isnan(before) || before > x ? before : x;
        default:
                return isnan(before) || before < x ? before : x;
        }
}

static __device__ int64_t reduce_integers(uint32_t kind, int64_t before, int64_t x, bool without_sign)
{
        bool less = without_sign ? (uint64_t)before < (uint64_t)x : before < x;

        switch (kind) {
        case SL_OWN_SCATTER_ADD:
                return (int64_t)((uint64_t)before + (uint64_t)x);
        case SL_OWN_SCATTER_MUL:
                return (int64_t)((uint64_t)before * (uint64_t)x);
        case SL_OWN_SCATTER_MAX:
                return less ? x : before;
        default:
                return less ? before : x;
        }
}

static __device__ void reduce_into(void *out, uint32_t at, const void *in, uint32_t from, uint32_t kind, uint32_t dtype)
{
        if (is_float(dtype))
                store_float(out, at, dtype, reduce_floats(kind, load_float(out, at, dtype), load_float(in, from, dtype)));
        else
                store_integer(out, at, dtype,
                        reduce_integers(kind, load_integer(out, at, dtype), load_integer(in, from, dtype), is_unsigned(dtype)));
}

/* Elements meet along the axis alone: a thread has all places of it. */
SL_KERNEL(scatter_elements, sl_own_gather_elements)
{
        uint32_t lines = a.elements / a.dims[a.axis].divisor;

        for (uint32_t i = thread_first(); i < lines; i += thread_step()) {
                uint32_t left = i, from = 0, to = 0, step = 1, axis_step = 0, index;

                for (uint32_t d = 0; d < a.n_dims; d++) {
                        uint32_t at = left;

                        if (d == a.axis) {
                                axis_step = step;
                        } else {
                                left = divide(&at, a.dims[d]);
                                from += at * step;
                                to += at * a.strides[d];
                        }
                        step *= a.dims[d].divisor;
                }
                for (uint32_t k = 0; k < a.dims[a.axis].divisor; k++, from += axis_step)
                        if (check_index(a.indices, from, a.index_dtype, a.limit, a.error, &index))
                                reduce_into(a.out, to + index * a.strides[a.axis], a.in, from, a.reduction, a.dtype);
        }
}

/* A thread has one element of some of the rows, and goes through all that is added to any. */
SL_KERNEL(scatter_rows, sl_own_gather_nd)
{
        uint32_t n = a.row.divisor * a.owners, tuples = a.elements / a.row.divisor;

        for (uint32_t i = thread_first(); i < n; i += thread_step()) {
                uint32_t within = i, owner = divide(&within, a.row);

                for (uint32_t tuple = 0; tuple < tuples; tuple++) {
                        uint32_t far = 0, rest;
                        bool inside = true;

                        for (uint32_t d = 0; d < a.depth && inside; d++) {
                                uint32_t at = 0;

                                inside = check_index(a.indices, tuple * a.depth + d, a.index_dtype, a.limits[d], a.error, &at);
                                far += at * a.strides[d];
                        }
                        rest = far;
                        if (inside && divide(&rest, a.row) % a.owners == owner)
                                reduce_into(a.out, far + within, a.in, tuple * a.row.divisor + within, a.reduction, a.dtype);
                }
        }
}

SL_KERNEL(one_hot, sl_own_one_hot)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t within = i, place = divide(&within, a.inner), outer = divide(&place, a.depth);
                uint32_t at = outer * a.inner.divisor + within;
                double index = is_float(a.index_dtype) ? (double)load_float(a.indices, at, a.index_dtype)
                                                       : (double)load_integer(a.indices, at, a.index_dtype);
                bool on = index == (double)place || index == (double)place - a.depth.divisor;

                store_bits(a.out, i, a.bytes, load_bits(a.values, on, a.bytes));
        }
}

SL_KERNEL(reverse, sl_own_reverse)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t within = i, row = divide(&within, a.row), from;
                uint32_t step = a.time_first ? row / a.batch : row % a.steps,
                         sequence = a.time_first ? row % a.batch : row / a.steps;
                int64_t length = a.lengths[sequence];

                if (length < 0 || length > (int64_t)a.steps) {
                        atomicExch(a.error, 1u);
                        continue;
                }
                from = step < (uint32_t)length ? (uint32_t)length - 1 - step : step;
                row = a.time_first ? from * a.batch + sequence : sequence * a.steps + from;
                store_bits(a.out, i, a.bytes, load_bits(a.in, row * a.row.divisor + within, a.bytes));
        }
}

/* Which of the tensors side by side has the channel, which becomes one of its own. */
static __device__ uint32_t tensor_of(const uint32_t channels[SL_OWN_SHUFFLE_TENSORS], uint32_t *channel)
{
        uint32_t i = 0;

        while (i + 1 < SL_OWN_SHUFFLE_TENSORS && *channel >= channels[i])
                *channel -= channels[i++];
        return i;
}

static __device__ uint64_t shuffle_place(const sl_own_shuffle &a, uint32_t n, uint32_t channels, uint32_t channel, uint32_t within)
{
        uint64_t inner = a.inner.divisor;

        return a.channels_last ? (n * inner + within) * channels + channel : ((uint64_t)n * channels + channel) * inner + within;
}

SL_KERNEL(shuffle, sl_own_shuffle)
{
        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t low = i, rest = divide(&low, a.channels_last ? a.channels : a.inner), high = rest;
                uint32_t n = divide(&high, a.channels_last ? a.inner : a.channels);
                uint32_t to = a.channels_last ? low : high, within = a.channels_last ? high : low, group = to, out, in;
                uint32_t from = divide(&group, a.group);

                from += group * (a.channels.divisor / a.group.divisor);
                out = tensor_of(a.out_channels, &to);
                in = tensor_of(a.in_channels, &from);
                store_bits(a.out[out], shuffle_place(a, n, a.out_channels[out], to, within), a.bytes,
                        load_bits(a.in[in], shuffle_place(a, n, a.in_channels[in], from, within), a.bytes));
        }
}

static __device__ uint64_t one_of(uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return 0x3f800000;
        case SL_DTYPE_F16:
                return 0x3c00;
        case SL_DTYPE_BF16:
                return 0x3f80;
        case SL_DTYPE_F64:
                return 0x3ff0000000000000;
        default:
                return 1;
        }
}

static __device__ uint32_t bytes_of(uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_U8:
        case SL_DTYPE_I8:
        case SL_DTYPE_BOOL:
                return 1;
        case SL_DTYPE_U16:
        case SL_DTYPE_I16:
        case SL_DTYPE_F16:
        case SL_DTYPE_BF16:
                return 2;
        case SL_DTYPE_F32:
        case SL_DTYPE_I32:
        case SL_DTYPE_U32:
                return 4;
        default:
                return 8;
        }
}

SL_KERNEL(triangle, sl_own_triangle)
{
        uint32_t bytes = bytes_of(a.dtype);

        for (uint32_t i = thread_first(); i < a.elements; i += thread_step()) {
                uint32_t column = i, row = divide(&column, a.columns);

                divide(&row, a.rows);
                int64_t right = (int64_t)column - row;
                if (!a.in)
                        store_bits(a.out, i, bytes, right == a.diagonal ? one_of(a.dtype) : 0);
                else if (a.upper ? right >= a.diagonal : right <= a.diagonal)
                        store_bits(a.out, i, bytes, load_bits(a.in, i, bytes));
                else
                        store_bits(a.out, i, bytes, 0);
        }
}
