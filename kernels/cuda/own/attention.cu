/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention whose scores never lie in memory: a warp has 16 queries, a block of four warps goes over the keys, 64 at a time, in
 * shared memory, and keeps for each query the largest score so far, the sum of its exponentials and the weighted sum of the values,
 * which are scaled again when a larger score comes. Products are those of tensor cores, of halves with float32 sums.
 *
 * Sources: Dao: FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023, algorithm 1.
 */
#include "device.cuh"

#define KEYS  64 /* in shared memory at once */
#define LOG2E 1.44269504f

/* Rows of up to D elements, each with 8 more behind it, so that rows of 8 begin in other banks. */
template <typename T, int D> struct rows_held {
        alignas(16) T at[KEYS][D + 8];
};

/* What is not there is 0. */
template <typename T, int D>
static __device__ void hold_rows(rows_held<T, D> &held, const T *from, uint32_t row, uint32_t n_rows, uint32_t columns)
{
        for (uint32_t i = threadIdx.x; i < KEYS * (D / 8); i += blockDim.x) {
                uint32_t key = i / (D / 8), column = i % (D / 8) * 8;
                const T *at = from + key * row + column;
                pack<T, 8> elements = {};

                if (key < n_rows && column < columns && is_aligned(at, 16))
                        elements = *reinterpret_cast<const pack<T, 8> *>(at);
                else if (key < n_rows && column < columns)
                        for (int k = 0; k < 8; k++)
                                elements.at[k] = at[k];
                *reinterpret_cast<pack<T, 8> *>(&held.at[key][column]) = elements;
        }
}

/* Of what is held. */
template <typename T> static __device__ uint32_t two_of(const T *at)
{
        return *reinterpret_cast<const uint32_t *>(at);
}

template <typename T> static __device__ uint32_t two(float x, float y)
{
        T low, high;

        narrow(x, &low);
        narrow(y, &high);
        return (uint32_t)high.bits << 16 | low.bits;
}

static __device__ void multiply_tile(float *sums, const uint32_t *left, const uint32_t *right, half_t)
{
        multiply_tile_f16(sums, left, right);
}

static __device__ void multiply_tile(float *sums, const uint32_t *left, const uint32_t *right, bfloat_t)
{
        multiply_tile_bf16(sums, left, right);
}

/* Where a thread of a warp is in the tiles of its products: it has rows @row and @row + 8, and two columns from @column on of
 * each 8. */
struct place {
        uint32_t row, column;
};

static __device__ place place_of()
{
        return {threadIdx.x % 32 / 4, threadIdx.x % 4 * 2};
}

/* 16 queries, as the left factors of products. @from: the first of them. */
template <typename T, int D>
static __device__ void take_queries(const sl_own_attention &a, const T *from, uint32_t first, uint32_t (*queries)[4])
{
        place p = place_of();

        for (int k = 0; k < D / 16; k++)
                for (int i = 0; i < 4; i++) {
                        uint32_t row = p.row + i % 2 * 8, column = k * 16 + i / 2 * 8 + p.column;
                        bool there = first + row < a.rows && column < a.depth;

                        const T *at = from + row * a.row[0] + column;

                        queries[k][i] = there ? (uint32_t)at[1].bits << 16 | at[0].bits : 0;
                }
}

/* What stays of 16 queries from one block of keys to the next: of rows p.row and p.row + 8. */
template <int D> struct course {
        float sums[D / 8][4], most[2], total[2];
};

/* scale * products + mask; keys that are not there count nothing. */
static __device__ void finish_scores(
        const sl_own_attention &a, uint32_t mask_at, uint32_t first_row, uint32_t first_key, float (*scores)[4])
{
        place p = place_of();

        for (int j = 0; j < KEYS / 8; j++)
                for (int i = 0; i < 4; i++) {
                        uint32_t key = first_key + j * 8 + p.column + i % 2, row = first_row + p.row + i / 2 * 8;
                        float score = scores[j][i] * a.scale;

                        if (a.mask && key < a.keys && row < a.rows)
                                score += load_float(
                                        a.mask, mask_at + row * a.mask_strides[2] + key * a.mask_strides[3], a.mask_dtype);
                        scores[j][i] = key < a.keys ? score : -INFINITY;
                }
}

/* Scores become exponentials, less the largest so far, and what was added up becomes that, too. */
template <int D> static __device__ void soften(course<D> &c, float (*scores)[4])
{
        for (int half = 0; half < 2; half++) {
                float most = c.most[half], base, again, total = 0;

                for (int j = 0; j < KEYS / 8; j++)
                        most = fmaxf(most, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
                base = most == -INFINITY ? 0 : most; /* nothing has counted yet */
                again = exp2f((c.most[half] - base) * LOG2E);
                for (int j = 0; j < KEYS / 8; j++)
                        for (int i = 2 * half; i < 2 * half + 2; i++) {
                                scores[j][i] = exp2f((scores[j][i] - base) * LOG2E);
                                total += scores[j][i];
                        }
                for (int j = 0; j < D / 8; j++) {
                        c.sums[j][2 * half] *= again;
                        c.sums[j][2 * half + 1] *= again;
                }
                c.total[half] = c.total[half] * again + total;
                c.most[half] = most;
        }
}

/* Queries by the keys that are held. */
template <typename T, int D>
static __device__ void score(const rows_held<T, D> &keys, const uint32_t (*queries)[4], float (*scores)[4])
{
        place p = place_of();

        for (int j = 0; j < KEYS / 8; j++) {
                for (int i = 0; i < 4; i++)
                        scores[j][i] = 0;
                for (int k = 0; k < D / 16; k++) {
                        const T *key = &keys.at[j * 8 + p.row][k * 16 + p.column];
                        const uint32_t right[2] = {two_of(key), two_of(key + 8)};

                        multiply_tile(scores[j], queries[k], right, T());
                }
        }
}

/* Weights by the values that are held. The places of a thread in a product's result are those in the left factor of another. */
template <typename T, int D> static __device__ void weigh(const rows_held<T, D> &values, const float (*weights)[4], course<D> &c)
{
        uint32_t lane = threadIdx.x % 32;

        for (int k = 0; k < KEYS / 16; k++) {
                const float *low = weights[2 * k], *high = weights[2 * k + 1];
                const uint32_t left[4] = {
                        two<T>(low[0], low[1]), two<T>(low[2], low[3]), two<T>(high[0], high[1]), two<T>(high[2], high[3])};

                for (int j = 0; j < D / 16; j++) {
                        uint32_t right[4];

                        turn_tiles(right, &values.at[k * 16 + lane % 16][j * 16 + lane / 16 * 8]);
                        multiply_tile(c.sums[2 * j], left, right, T());
                        multiply_tile(c.sums[2 * j + 1], left, right + 2, T());
                }
        }
}

template <typename T> static __device__ void store_two(T *to, float x, float y)
{
        uint32_t both = two<T>(x, y);

        if (is_aligned(to, 4)) {
                *reinterpret_cast<uint32_t *>(to) = both;
        } else {
                to[0].bits = (uint16_t)both;
                to[1].bits = (uint16_t)(both >> 16);
        }
}

template <typename T, int D> static __device__ void store_rows(const sl_own_attention &a, course<D> &c, T *to, uint32_t first_row)
{
        place p = place_of();

        for (int half = 0; half < 2; half++) {
                float total = c.total[half];
                uint32_t row = p.row + half * 8;

                total += __shfl_xor_sync(0xffffffffu, total, 1);
                total += __shfl_xor_sync(0xffffffffu, total, 2);
                bool none = a.guard && !(total > 0);

                for (int j = 0; j < D / 8; j++) { /* of constant length, so that sums stay in registers */
                        float x = c.sums[j][2 * half] / total, y = c.sums[j][2 * half + 1] / total;

                        if ((uint32_t)j * 8 < a.width && first_row + row < a.rows)
                                store_two(to + row * a.out_row + j * 8 + p.column, none ? 0 : x, none ? 0 : y);
                }
        }
}

template <typename T, int D> static __device__ void run_attention(const sl_own_attention &a)
{
        __shared__ rows_held<T, D> keys, values;

        for (uint32_t task = blockIdx.x; task < a.tasks; task += gridDim.x) {
                uint32_t tile = task, head = divide(&tile, a.tiles), sample = divide(&head, a.heads);
                uint32_t first = (tile * SL_OWN_ATTENTION_WARPS + threadIdx.x / 32) * SL_OWN_QUERIES;
                uint32_t mask_at = sample * a.mask_strides[0] + head * a.mask_strides[1];
                const T *key = static_cast<const T *>(a.k) + sample * a.keys * a.row[1] + a.first[1] + head * a.depth;
                const T *value = static_cast<const T *>(a.v) + sample * a.keys * a.row[2] + a.first[2] + head * a.width;
                const T *query = static_cast<const T *>(a.q) + (sample * a.rows + first) * a.row[0] + a.first[0] + head * a.depth;
                uint32_t queries[D / 16][4];
                course<D> c = {{{0}}, {-INFINITY, -INFINITY}, {0, 0}};

                take_queries<T, D>(a, query, first, queries);
                for (uint32_t at = 0; at < a.keys; at += KEYS) {
                        float scores[KEYS / 8][4];

                        __syncthreads();
                        hold_rows<T, D>(keys, key + at * a.row[1], a.row[1], a.keys - at, a.depth);
                        hold_rows<T, D>(values, value + at * a.row[2], a.row[2], a.keys - at, a.width);
                        __syncthreads();
                        score<T, D>(keys, queries, scores);
                        finish_scores(a, mask_at, first, at, scores);
                        soften<D>(c, scores);
                        weigh<T, D>(values, scores, c);
                }
                store_rows<T, D>(a, c, static_cast<T *>(a.out) + (sample * a.rows + first) * a.out_row + head * a.width, first);
        }
}

SL_KERNEL(attention_f16_32, sl_own_attention)
{
        run_attention<half_t, 32>(a);
}

SL_KERNEL(attention_f16_64, sl_own_attention)
{
        run_attention<half_t, 64>(a);
}

SL_KERNEL(attention_f16_128, sl_own_attention)
{
        run_attention<half_t, 128>(a);
}

SL_KERNEL(attention_bf16_32, sl_own_attention)
{
        run_attention<bfloat_t, 32>(a);
}

SL_KERNEL(attention_bf16_64, sl_own_attention)
{
        run_attention<bfloat_t, 64>(a);
}

SL_KERNEL(attention_bf16_128, sl_own_attention)
{
        run_attention<bfloat_t, 128>(a);
}
