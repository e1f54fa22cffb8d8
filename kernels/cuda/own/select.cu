/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TopK, NonMaxSuppression and running sums. What is chosen is sorted by keys: a number of 32 bits that has the order of the values,
 * and behind it the place, turned round, so that of equal ones the first is the best and no two keys are the same. Compiled without
 * fused multiply-adds: whether boxes overlap must not depend on how a product was rounded.
 */
#include "group.cuh"

/* Sources: Batcher: Sorting networks and their applications, 1968 (bitonic sort). The largest first; all threads of the block. */
static __device__ void sort_keys(uint64_t *keys, uint32_t n)
{
        for (uint32_t size = 2; size <= n; size *= 2)
                for (uint32_t apart = size / 2; apart; apart /= 2) {
                        __syncthreads();
                        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
                                uint32_t other = i ^ apart;

                                if (other <= i)
                                        continue;
                                uint64_t x = keys[i], y = keys[other];
                                if ((x < y) == !(i & size)) {
                                        keys[i] = y;
                                        keys[other] = x;
                                }
                        }
                }
        __syncthreads();
}

/* A NaN is larger than every number; both zeros are one. */
static __device__ uint32_t float_key(float x)
{
        uint32_t bits;

        if (isnan(x))
                return UINT32_MAX;
        x = x == 0 ? 0 : x;
        memcpy(&bits, &x, sizeof(bits));
        return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static __device__ uint32_t value_key(const sl_own_top_k &a, uint64_t i)
{
        uint32_t key;

        if (is_float(a.dtype))
                key = float_key(load_float(a.in, (uint32_t)i, a.dtype));
        else if (is_unsigned(a.dtype))
                key = (uint32_t)load_integer(a.in, (uint32_t)i, a.dtype);
        else
                key = (uint32_t)load_integer(a.in, (uint32_t)i, a.dtype) ^ 0x80000000;
        return a.largest ? key : ~key;
}

static __device__ uint64_t key_of(uint32_t value, uint32_t place)
{
        return (uint64_t)value << 32 | (UINT32_MAX - place);
}

static __device__ uint32_t place_of(uint64_t key)
{
        return UINT32_MAX - (uint32_t)key;
}

static __device__ void top_k_line(const sl_own_top_k &a, uint32_t line, uint64_t *keys)
{
        uint32_t within = line, outer = divide(&within, a.inner), kept = 0;
        uint64_t base = (uint64_t)outer * a.size * a.inner.divisor + within;

        for (uint32_t first = 0; first < a.size;) {
                uint32_t room = a.sorted - kept, chunk = a.size - first < room ? a.size - first : room;

                __syncthreads();
                for (uint32_t i = threadIdx.x; i < room; i += blockDim.x)
                        keys[kept + i] = i < chunk ? key_of(value_key(a, base + (uint64_t)(first + i) * a.inner.divisor), first + i) : 0;
                sort_keys(keys, a.sorted);
                first += chunk;
                kept = a.k < first ? a.k : first;
        }
        for (uint32_t i = threadIdx.x; i < a.k; i += blockDim.x) {
                uint64_t to = ((uint64_t)outer * a.k + i) * a.inner.divisor + within;
                uint32_t from = place_of(keys[i]);

                store_bits(a.out, to, a.bytes, load_bits(a.in, base + (uint64_t)from * a.inner.divisor, a.bytes));
                if (a.places)
                        a.places[to] = from;
        }
        __syncthreads();
}

SL_KERNEL(top_k, sl_own_top_k)
{
        SL_DYNAMIC_SHARED(uint64_t, keys);

        for (uint32_t line = blockIdx.x; line < a.lines; line += gridDim.x)
                top_k_line(a, line, keys);
}

/* Element k of a line, from the end that the sum begins at. */
static __device__ uint32_t sum_place(const sl_own_cum_sum &a, uint32_t line, uint32_t k)
{
        uint32_t within = line, outer = divide(&within, a.inner);

        return (outer * a.size + (a.reverse ? a.size - 1 - k : k)) * a.inner.divisor + within;
}

/* A thread has a line: neighbours are next to each other in memory where lines are columns. */
SL_KERNEL(cum_sum, sl_own_cum_sum)
{
        for (uint32_t line = thread_first(); line < a.lines; line += thread_step()) {
                float sum = 0;
                uint64_t whole = 0;

                for (uint32_t k = 0; k < a.size; k++) {
                        uint32_t at = sum_place(a, line, k);

                        if (is_float(a.dtype)) {
                                float next = sum + load_float(a.in, at, a.dtype);

                                store_float(a.out, at, a.dtype, a.exclusive ? sum : next);
                                sum = next;
                        } else {
                                uint64_t next = whole + (uint64_t)load_integer(a.in, at, a.dtype);

                                store_integer(a.out, at, a.dtype, (int64_t)(a.exclusive ? whole : next));
                                whole = next;
                        }
                }
        }
}

struct box {
        float low[2], high[2];
};

static __device__ box box_at(const sl_own_nms &a, uint32_t image, uint32_t i)
{
        const float *b = a.boxes + ((uint64_t)image * a.n_boxes + i) * 4;
        box made;

        for (int k = 0; k < 2; k++) {
                float one = a.centred ? b[k] - b[k + 2] / 2 : b[k], other = a.centred ? b[k] + b[k + 2] / 2 : b[k + 2];

                made.low[k] = one < other ? one : other;
                made.high[k] = one < other ? other : one;
        }
        return made;
}

static __device__ float area_of(const box &b)
{
        return (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
}

static __device__ bool overlap(const box &x, const box &y, float threshold)
{
        float shared = 1;

        for (int k = 0; k < 2; k++) {
                float low = x.low[k] > y.low[k] ? x.low[k] : y.low[k], high = x.high[k] < y.high[k] ? x.high[k] : y.high[k];

                if (!(high > low))
                        return false;
                shared *= high - low;
        }
        return shared / (area_of(x) + area_of(y) - shared) > threshold;
}

struct smaller {
        __device__ uint32_t operator()(uint32_t x, uint32_t y) const
        {
                return x < y ? x : y;
        }
};

/* The candidates of a class, the best first; how many there are. */
static __device__ uint32_t sort_candidates(const sl_own_nms &a, uint32_t line, uint64_t *keys)
{
        const float *scores = a.scores + (uint64_t)line * a.n_boxes;
        float least = a.least ? *a.least : -INFINITY;
        uint32_t n = 0;

        for (uint32_t i = threadIdx.x; i < a.padded; i += blockDim.x) {
                bool wanted = i < a.n_boxes && scores[i] > least;

                keys[i] = wanted ? key_of(float_key(scores[i]), i) : 0;
                n += wanted;
        }
        sort_keys(keys, a.padded);
        return combine<256>(n, add_up());
}

/* The first candidate from @first on that nobody has suppressed; @n: there is none. */
static __device__ uint32_t next_candidate(const uint8_t *suppressed, uint32_t first, uint32_t n)
{
        for (uint32_t base = first; base < n; base += blockDim.x) {
                uint32_t i = base + threadIdx.x, found = combine<256>(i < n && !suppressed[i] ? i : n, smaller());

                if (found < n)
                        return found;
        }
        return n;
}

SL_KERNEL(nms, sl_own_nms)
{
        for (uint32_t line = blockIdx.x; line < a.n_all; line += gridDim.x) {
                uint32_t within = line, image = divide(&within, a.classes), count = 0, n;
                uint64_t *keys = a.keys + (uint64_t)line * a.padded;
                uint8_t *suppressed = a.suppressed + (uint64_t)line * a.n_boxes;
                float threshold = a.overlap ? *a.overlap : 0;

                n = sort_candidates(a, line, keys);
                for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
                        suppressed[i] = 0;
                __syncthreads();
                for (uint32_t i = next_candidate(suppressed, 0, n); i < n && count < a.most; i = next_candidate(suppressed, i + 1, n)) {
                        box best = box_at(a, image, place_of(keys[i]));

                        if (threadIdx.x == 0)
                                a.kept[(uint64_t)line * a.most + count] = place_of(keys[i]);
                        count++;
                        for (uint32_t k = i + 1 + threadIdx.x; k < n; k += blockDim.x)
                                if (!suppressed[k] && overlap(box_at(a, image, place_of(keys[k])), best, threshold))
                                        suppressed[k] = 1;
                        __syncthreads();
                }
                if (threadIdx.x == 0)
                        a.counts[line] = count;
                __syncthreads();
        }
}

/* One block: what each class has kept goes behind what those before it have; rows that are left are 0. */
SL_KERNEL(nms_rows, sl_own_nms)
{
        uint32_t before = 0;

        for (uint32_t line = 0; line < a.n_all; line++) {
                uint32_t within = line, image = divide(&within, a.classes), count = a.counts[line];

                for (uint32_t i = threadIdx.x; i < count && before + i < a.room; i += blockDim.x) {
                        int64_t *row = a.out + 3 * (uint64_t)(before + i);

                        row[0] = image;
                        row[1] = within;
                        row[2] = a.kept[(uint64_t)line * a.most + i];
                }
                before = before + count < a.room ? before + count : a.room;
        }
        for (uint32_t i = 3 * before + threadIdx.x; i < 3 * a.room; i += blockDim.x)
                a.out[i] = 0;
        if (threadIdx.x == 0 && a.made)
                *a.made = before;
}
