/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of PLAIN tensors over any axes, of the types that networks reduce; what reduce.c does faster comes there first. Axes
 * that stay and axes that go are merged and alternate. The innermost of them, and of what stays innermost the axis that goes just
 * outside of it, make a block of [count, inner] neighbours; the other axes that stay number the outputs' rows, the others that go
 * the blocks of each, which are joined.
 *
 * Where nothing stays innermost, a block is a row of count values: added up in lanes, or where it is short, sixteen rows at once;
 * which of both depends on the count alone, so that a row has the same bits among any others.
 * Else up to 64 columns pass by together. Floats add up in double and integers in 64 bits that wrap, so that nothing but the order
 * of a float's sum differs from `ref`. A maximum of floats is taken by comparing alone, which loses a NaN, and taken again with
 * care where there was one. LogSumExp looks for the largest number first.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/base/rows.h"
#include "cpu/base/vector_math.h"
#include "cpu/reduce/loops.h"
#include "shape/reduce.h"

#include <math.h>

#define COLUMNS  64
#define SHORT    32 /* rows of fewer values are not worth their lanes */
#define TOGETHER 16

struct axes {
        uint32_t rank;
        int64_t elements, sizes[SL_RANK_MAX], strides[SL_RANK_MAX];
};

struct fold;

/*
 * Sums of @width outputs: value i of output j lies at i * @row + j * @step, in each block. What has been added up, and the largest
 * that an exponential is taken from, are of the type's own.
 */
typedef void fold_fn(const struct fold *f, int64_t row, int64_t step, int width, const void *in, void *sums, void *largest);

/* From sums to results. */
typedef void finish_fn(const struct fold *f, int width, const void *sums, const void *largest, void *out);

struct fold {
        uint32_t op;
        struct axes rows, blocks;
        int64_t count, inner;
        int64_t members; /* values of one output */
        fold_fn *add;
        finish_fn *finish;
        int64_t bytes;
};

static void add_axis(struct axes *axes, int64_t size, int64_t stride)
{
        axes->sizes[axes->rank] = size;
        axes->strides[axes->rank++] = stride;
        axes->elements *= size;
}

static inline int64_t place_of(const struct axes *axes, int64_t index)
{
        int64_t at = 0;

        for (uint32_t d = axes->rank; d-- > 1; index /= axes->sizes[d])
                at += index % axes->sizes[d] * axes->strides[d];
        return axes->rank ? at + index * axes->strides[0] : 0;
}

static inline double finish_real(const struct fold *f, double sum, double largest)
{
        switch (f->op) {
        case SL_OP_REDUCE_MEAN:
                return sum / (double)f->members;
        case SL_OP_REDUCE_L2:
                return sqrt(sum);
        case SL_OP_REDUCE_LOG_SUM:
                return log(sum);
        case SL_OP_REDUCE_LOG_SUM_EXP:
                return largest + log(sum);
        default:
                return sum;
        }
}

static inline uint64_t finish_whole(const struct fold *f, uint64_t sum)
{
        return f->op == SL_OP_REDUCE_MEAN ? (uint64_t)((int64_t)sum / f->members) : sum;
}

/*
 * T: as it lies; V: as a number; M: an integer as wide, of masks; A: what adds up. STEP(a, v, l): a with value v more, l being the
 * largest. IS_ODD(v, M): STEP loses it, and CAREFUL does not. Bodies are inlined with constants, so that each has the loop that the
 * compiler makes best. CLONES: CLONED, or PLAIN for what is seldom run: compiled for the baseline alone, and without loops of its
 * own for short rows.
 */
#define DEFINE_FOLD(name, CLONES, T, V, M, A, LOAD, START, STEP, JOIN, IS_ODD, CAREFUL)                                            \
        enum { lanes_##name = (int)(128 / sizeof(A)) };                                                                            \
                                                                                                                                   \
        static inline __attribute__((always_inline)) int32_t lanes_of_##name(int64_t n, const T *x, A *sum, V largest)             \
        {                                                                                                                          \
                A lanes[lanes_##name];                                                                                             \
                M odd[lanes_##name] = {0};                                                                                         \
                int32_t any = 0;                                                                                                   \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                (void)largest;                                                                                                     \
                for (int j = 0; j < lanes_##name; j++)                                                                             \
                        lanes[j] = START;                                                                                          \
                for (; i + lanes_##name <= n; i += lanes_##name)                                                                   \
                        for (int j = 0; j < lanes_##name; j++) {                                                                   \
                                V v = LOAD(x[i + j]);                                                                              \
                                                                                                                                   \
                                odd[j] |= IS_ODD(v, M);                                                                            \
                                lanes[j] = STEP(lanes[j], v, largest);                                                             \
                        }                                                                                                          \
                for (; i < n; i++) {                                                                                               \
                        V v = LOAD(x[i]);                                                                                          \
                                                                                                                                   \
                        odd[0] |= IS_ODD(v, M);                                                                                    \
                        lanes[0] = STEP(lanes[0], v, largest);                                                                     \
                }                                                                                                                  \
                for (int j = 0; j < lanes_##name; j++)                                                                             \
                        any |= odd[j] != 0;                                                                                        \
                for (int half = lanes_##name / 2; half > 0; half /= 2)                                                             \
                        for (int j = 0; j < half; j++)                                                                             \
                                lanes[j] = JOIN(lanes[j], lanes[j + half]);                                                        \
                *sum = JOIN(*sum, lanes[0]);                                                                                       \
                return any;                                                                                                        \
        }                                                                                                                          \
                                                                                                                                   \
        static inline __attribute__((always_inline)) int32_t outputs_of_##name(const struct fold *f, int64_t count, int64_t row,   \
                int64_t step, int width, const T *x, A *sums, const V *largest, bool careful)                                      \
        {                                                                                                                          \
                A own[COLUMNS];                                                                                                    \
                M odd[COLUMNS];                                                                                                    \
                int32_t any = 0;                                                                                                   \
                                                                                                                                   \
                (void)largest;                                                                                                     \
                for (int j = 0; j < width; j++) {                                                                                  \
                        own[j] = START;                                                                                            \
                        odd[j] = 0;                                                                                                \
                }                                                                                                                  \
                for (int64_t b = 0; b < f->blocks.elements; b++) {                                                                 \
                        const T *block = x + place_of(&f->blocks, b);                                                              \
                                                                                                                                   \
                        for (int64_t i = 0; i < count; i++)                                                                        \
                                for (int j = 0; j < width; j++) {                                                                  \
                                        V v = LOAD(block[i * row + j * step]);                                                     \
                                                                                                                                   \
                                        odd[j] |= IS_ODD(v, M);                                                                    \
                                        own[j] = careful ? CAREFUL(own[j], v, largest[j]) : STEP(own[j], v, largest[j]);           \
                                }                                                                                                  \
                }                                                                                                                  \
                for (int j = 0; j < width; j++) {                                                                                  \
                        sums[j] = own[j];                                                                                          \
                        any |= odd[j] != 0;                                                                                        \
                }                                                                                                                  \
                return any;                                                                                                        \
        }                                                                                                                          \
                                                                                                                                   \
        static __attribute__((noinline, unused)) void careful_##name(                                                              \
                const struct fold *f, int64_t row, int64_t step, int width, const T *x, A *sums, const V *largest)                 \
        {                                                                                                                          \
                outputs_of_##name(f, f->count, row, step, width, x, sums, largest, true);                                          \
        }                                                                                                                          \
                                                                                                                                   \
        LEVELS_##CLONES static void name(                                                                                          \
                const struct fold *f, int64_t row, int64_t step, int width, const void *in, void *out, void *most)                 \
        {                                                                                                                          \
                const T *x = in;                                                                                                   \
                const V *largest = most;                                                                                           \
                A *sums = out;                                                                                                     \
                int32_t odd = 0;                                                                                                   \
                                                                                                                                   \
                if (width == 1 && row == 1 && f->count >= SHORT) {                                                                 \
                        *sums = START;                                                                                             \
                        for (int64_t b = 0; b < f->blocks.elements; b++)                                                           \
                                odd |= lanes_of_##name(f->count, x + place_of(&f->blocks, b), sums, *largest);                     \
                } else if (width == COLUMNS && step == 1) {                                                                        \
                        odd = outputs_of_##name(f, f->count, row, 1, COLUMNS, x, sums, largest, false);                            \
                } else if (HAS_ROWS_##CLONES && width == TOGETHER && row == 1 && step == 4 && f->count == 4) {                     \
                        odd = outputs_of_##name(f, 4, 1, 4, TOGETHER, x, sums, largest, false);                                    \
                } else if (HAS_ROWS_##CLONES && width == TOGETHER && row == 1) {                                                   \
                        odd = outputs_of_##name(f, f->count, 1, step, TOGETHER, x, sums, largest, false);                          \
                } else {                                                                                                           \
                        odd = outputs_of_##name(f, f->count, row, step, width, x, sums, largest, false);                           \
                }                                                                                                                  \
                if (odd)                                                                                                           \
                        careful_##name(f, row, step, width, x, sums, largest);                                                     \
        }

#define DEFINE_FINISH(name, T, A, RESULT)                                                                                          \
        static void name(const struct fold *f, int width, const void *sums, const void *largest, void *out)                        \
        {                                                                                                                          \
                (void)f;                                                                                                           \
                (void)largest;                                                                                                     \
                for (int j = 0; j < width; j++)                                                                                    \
                        ((T *)out)[j] = RESULT(f, ((const A *)sums)[j], largest, j);                                               \
        }

#define LEVELS_CLONED SL_CPU_CLONES
#define LEVELS_PLAIN
#define HAS_ROWS_CLONED true
#define HAS_ROWS_PLAIN  false
#define AS_IT_LIES(v)   (v)
#define NEVER(v, M)     0
#define IS_NAN(v, M)    ((v) != (v) ? (M)-1 : (M)0)

#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))

#define ADD_REAL(a, v, l)    ((a) + (double)(v))
#define ADD_SIZE(a, v, l)    ((a) + fabs((double)(v)))
#define ADD_SQUARE(a, v, l)  ((a) + (double)(v) * (double)(v))
#define TIMES_REAL(a, v, l)  ((a) * (double)(v))
#define ADD_EXP_F32(a, v, l) ((a) + (double)sl_exp((v) - (l)))
#define ADD_EXP_F64(a, v, l) ((a) + exp((v) - (l)))

/* Signed integers of any width wrap as these do. */
#define ADD_WHOLE(a, v, l)        ((a) + (uint64_t)(v))
#define ADD_WHOLE_SIZE(a, v, l)   ((a) + ((v) < 0 ? -(uint64_t)(v) : (uint64_t)(v)))
#define ADD_WHOLE_SQUARE(a, v, l) ((a) + (uint64_t)(v) * (uint64_t)(v))
#define TIMES_WHOLE(a, v, l)      ((a) * (uint64_t)(v))

#define GREATER(a, b)        ((b) > (a) ? (b) : (a))
#define SMALLER(a, b)        ((b) < (a) ? (b) : (a))
#define GREATER_OF(a, v, l)  GREATER(a, v)
#define SMALLER_OF(a, v, l)  SMALLER(a, v)
#define GREATER_NAN(a, v, l) ((v) != (v) || (v) > (a) ? (v) : (a))
#define SMALLER_NAN(a, v, l) ((v) != (v) || (v) < (a) ? (v) : (a))

#define DEFINE_REALS(name, CLONES, T, V, M, LOAD)                                                                                  \
        DEFINE_FOLD(sum_##name, CLONES, T, V, M, double, LOAD, 0, ADD_REAL, PLUS, NEVER, ADD_REAL)                                 \
        DEFINE_FOLD(size_##name, PLAIN, T, V, M, double, LOAD, 0, ADD_SIZE, PLUS, NEVER, ADD_SIZE)                                 \
        DEFINE_FOLD(square_##name, CLONES, T, V, M, double, LOAD, 0, ADD_SQUARE, PLUS, NEVER, ADD_SQUARE)                          \
        DEFINE_FOLD(product_##name, PLAIN, T, V, M, double, LOAD, 1, TIMES_REAL, TIMES, NEVER, TIMES_REAL)                         \
        DEFINE_FOLD(greatest_##name, CLONES, T, V, M, V, LOAD, (V)(-INFINITY), GREATER_OF, GREATER, IS_NAN, GREATER_NAN)           \
        DEFINE_FOLD(least_##name, CLONES, T, V, M, V, LOAD, (V)INFINITY, SMALLER_OF, SMALLER, IS_NAN, SMALLER_NAN)

DEFINE_REALS(f32, CLONED, float, float, int32_t, AS_IT_LIES)
DEFINE_REALS(f64, CLONED, double, double, int64_t, AS_IT_LIES)
DEFINE_REALS(f16, PLAIN, uint16_t, float, int32_t, sl_widen_f16)
DEFINE_REALS(bf16, PLAIN, uint16_t, float, int32_t, sl_widen_bf16)

#define DEFINE_WHOLES(name, CLONES, T)                                                                                             \
        DEFINE_FOLD(sum_##name, CLONES, T, T, T, uint64_t, AS_IT_LIES, 0, ADD_WHOLE, PLUS, NEVER, ADD_WHOLE)                       \
        DEFINE_FOLD(size_##name, PLAIN, T, T, T, uint64_t, AS_IT_LIES, 0, ADD_WHOLE_SIZE, PLUS, NEVER, ADD_WHOLE_SIZE)             \
        DEFINE_FOLD(square_##name, CLONES, T, T, T, uint64_t, AS_IT_LIES, 0, ADD_WHOLE_SQUARE, PLUS, NEVER, ADD_WHOLE_SQUARE)      \
        DEFINE_FOLD(product_##name, PLAIN, T, T, T, uint64_t, AS_IT_LIES, 1, TIMES_WHOLE, TIMES, NEVER, TIMES_WHOLE)

DEFINE_WHOLES(i32, CLONED, int32_t)
DEFINE_WHOLES(i64, CLONED, int64_t)

#define DEFINE_LIMITS(name, CLONES, T, LEAST, MOST)                                                                                \
        DEFINE_FOLD(greatest_##name, CLONES, T, T, T, T, AS_IT_LIES, LEAST, GREATER_OF, GREATER, NEVER, GREATER_OF)                \
        DEFINE_FOLD(least_##name, CLONES, T, T, T, T, AS_IT_LIES, MOST, SMALLER_OF, SMALLER, NEVER, SMALLER_OF)

DEFINE_LIMITS(i32, CLONED, int32_t, INT32_MIN, INT32_MAX)
DEFINE_LIMITS(i64, CLONED, int64_t, INT64_MIN, INT64_MAX)
DEFINE_LIMITS(u8, CLONED, uint8_t, 0, UINT8_MAX)
DEFINE_LIMITS(i8, PLAIN, int8_t, INT8_MIN, INT8_MAX)

/* The largest number keeps the exponentials in range; where it is none, or infinite, they have what range they have. */
#define DEFINE_LOG_SUM_EXP(name, V, ADD_EXP)                                                                                       \
        DEFINE_FOLD(exponents_##name, CLONED, V, V, int32_t, double, AS_IT_LIES, 0, ADD_EXP, PLUS, NEVER, ADD_EXP)                 \
                                                                                                                                   \
        static void log_sum_exp_##name(                                                                                            \
                const struct fold *f, int64_t row, int64_t step, int width, const void *in, void *sums, void *most)                \
        {                                                                                                                          \
                V *largest = most;                                                                                                 \
                                                                                                                                   \
                greatest_##name(f, row, step, width, in, largest, largest);                                                        \
                for (int j = 0; j < width; j++)                                                                                    \
                        largest[j] = __builtin_isfinite(largest[j]) ? largest[j] : 0;                                              \
                exponents_##name(f, row, step, width, in, sums, most);                                                             \
        }

DEFINE_LOG_SUM_EXP(f32, float, ADD_EXP_F32)
DEFINE_LOG_SUM_EXP(f64, double, ADD_EXP_F64)

#define REAL_F32(f, sum, largest, j)    ((float)finish_real(f, sum, (double)((const float *)(largest))[j]))
#define REAL_F64(f, sum, largest, j)    (finish_real(f, sum, ((const double *)(largest))[j]))
#define REAL_F16(f, sum, largest, j)    (sl_narrow_f16((float)finish_real(f, sum, 0)))
#define REAL_BF16(f, sum, largest, j)   (sl_narrow_bf16((float)finish_real(f, sum, 0)))
#define WHOLE_I32(f, sum, largest, j)   ((int32_t)finish_whole(f, sum))
#define WHOLE_I64(f, sum, largest, j)   ((int64_t)finish_whole(f, sum))
#define CHOSEN(f, sum, largest, j)      (sum)
#define CHOSEN_F16(f, sum, largest, j)  (sl_narrow_f16(sum))
#define CHOSEN_BF16(f, sum, largest, j) (sl_narrow_bf16(sum))

DEFINE_FINISH(finish_f32, float, double, REAL_F32)
DEFINE_FINISH(finish_f64, double, double, REAL_F64)
DEFINE_FINISH(finish_f16, uint16_t, double, REAL_F16)
DEFINE_FINISH(finish_bf16, uint16_t, double, REAL_BF16)
DEFINE_FINISH(finish_i32, int32_t, uint64_t, WHOLE_I32)
DEFINE_FINISH(finish_i64, int64_t, uint64_t, WHOLE_I64)
DEFINE_FINISH(chosen_f32, float, float, CHOSEN)
DEFINE_FINISH(chosen_f64, double, double, CHOSEN)
DEFINE_FINISH(chosen_i32, int32_t, int32_t, CHOSEN)
DEFINE_FINISH(chosen_i64, int64_t, int64_t, CHOSEN)
DEFINE_FINISH(chosen_u8, uint8_t, uint8_t, CHOSEN)
DEFINE_FINISH(chosen_i8, int8_t, int8_t, CHOSEN)
DEFINE_FINISH(chosen_f16, uint16_t, float, CHOSEN_F16)
DEFINE_FINISH(chosen_bf16, uint16_t, float, CHOSEN_BF16)

/* Of rows of a vector and more, whose extremes rows.h has; a NaN of one of them stays. */
#define DEFINE_OF_ROWS(name, T, START, OF_ROW, CAREFUL)                                                                            \
        static void name(const struct fold *f, int64_t row, int64_t step, int width, const void *in, void *sums, void *largest)    \
        {                                                                                                                          \
                (void)row, (void)largest;                                                                                          \
                for (int j = 0; j < width; j++) {                                                                                  \
                        T best = START;                                                                                            \
                                                                                                                                   \
                        for (int64_t b = 0; b < f->blocks.elements && best == best; b++) {                                         \
                                T own = OF_ROW((const T *)in + j * step + place_of(&f->blocks, b), f->count);                      \
                                                                                                                                   \
                                best = CAREFUL(best, own, 0);                                                                      \
                        }                                                                                                          \
                        ((T *)sums)[j] = best;                                                                                     \
                }                                                                                                                  \
        }

DEFINE_OF_ROWS(greatest_of_rows_f32, float, -INFINITY, sl_row_maximum, GREATER_NAN)
DEFINE_OF_ROWS(least_of_rows_f32, float, INFINITY, sl_row_minimum, SMALLER_NAN)
DEFINE_OF_ROWS(greatest_of_rows_f64, double, (double)-INFINITY, sl_row_maximum_f64, GREATER_NAN)
DEFINE_OF_ROWS(least_of_rows_f64, double, (double)INFINITY, sl_row_minimum_f64, SMALLER_NAN)

enum kind { SUM, SIZE, SQUARE, PRODUCT, GREATEST, LEAST, LOG_SUM_EXP, KINDS };

static const struct {
        fold_fn *add[KINDS];
        finish_fn *finish, *chosen;
} types[SL_DTYPE_LIMIT] = {
        [SL_DTYPE_F32] = {{sum_f32, size_f32, square_f32, product_f32, greatest_f32, least_f32, log_sum_exp_f32}, finish_f32,
                chosen_f32},
        [SL_DTYPE_F64] = {{sum_f64, size_f64, square_f64, product_f64, greatest_f64, least_f64, log_sum_exp_f64}, finish_f64,
                chosen_f64},
        [SL_DTYPE_F16] = {{sum_f16, size_f16, square_f16, product_f16, greatest_f16, least_f16}, finish_f16, chosen_f16},
        [SL_DTYPE_BF16] = {{sum_bf16, size_bf16, square_bf16, product_bf16, greatest_bf16, least_bf16}, finish_bf16, chosen_bf16},
        [SL_DTYPE_I32] = {{sum_i32, size_i32, square_i32, product_i32, greatest_i32, least_i32}, finish_i32, chosen_i32},
        [SL_DTYPE_I64] = {{sum_i64, size_i64, square_i64, product_i64, greatest_i64, least_i64}, finish_i64, chosen_i64},
        [SL_DTYPE_U8] = {{[GREATEST] = greatest_u8, [LEAST] = least_u8}, NULL, chosen_u8},
        [SL_DTYPE_I8] = {{[GREATEST] = greatest_i8, [LEAST] = least_i8}, NULL, chosen_i8},
        [SL_DTYPE_BOOL] = {{[GREATEST] = greatest_u8, [LEAST] = least_u8}, NULL, chosen_u8},
};

/* Of integers a square root and a logarithm are for `ref`. */
static enum kind kind_of(uint32_t op, uint32_t dtype)
{
        bool real = sl_dtype_is_float(dtype);

        switch (op) {
        case SL_OP_REDUCE_SUM:
        case SL_OP_REDUCE_MEAN:
                return SUM;
        case SL_OP_REDUCE_LOG_SUM:
                return real ? SUM : KINDS;
        case SL_OP_REDUCE_L1:
                return SIZE;
        case SL_OP_REDUCE_L2:
                return real ? SQUARE : KINDS;
        case SL_OP_REDUCE_SUM_SQUARE:
                return SQUARE;
        case SL_OP_REDUCE_PROD:
                return PRODUCT;
        case SL_OP_REDUCE_MAX:
                return GREATEST;
        case SL_OP_REDUCE_MIN:
                return LEAST;
        case SL_OP_REDUCE_LOG_SUM_EXP:
                return real ? LOG_SUM_EXP : KINDS;
        default:
                return KINDS;
        }
}

/* Runs of axes that stay or go, the outermost first; @ret_goes says of which kind run 0 is. */
static uint32_t list_runs(const struct sl_shape *shape, uint32_t mask, int64_t ret_sizes[SL_RANK_MAX], bool *ret_goes)
{
        uint32_t n = 0;
        bool goes = false;

        for (uint32_t d = 0; d < shape->rank; d++) {
                bool own = mask & 1u << d;

                if (shape->dims[d] == 1)
                        continue;
                if (n && own == goes) {
                        ret_sizes[n - 1] *= shape->dims[d];
                        continue;
                }
                if (!n)
                        *ret_goes = own;
                goes = own;
                ret_sizes[n++] = shape->dims[d];
        }
        return n;
}

static void split_axes(const struct sl_shape *shape, uint32_t mask, struct fold *f)
{
        int64_t sizes[SL_RANK_MAX], strides[SL_RANK_MAX], stride = 1;
        bool first_goes = false;
        uint32_t n = list_runs(shape, mask, sizes, &first_goes);

        f->rows.elements = f->blocks.elements = f->count = f->inner = f->members = 1;
        for (uint32_t i = n; i-- > 0; stride *= sizes[i]) {
                strides[i] = stride;
                f->members *= (i % 2 == 0) == first_goes ? sizes[i] : 1;
        }
        if (n && ((n - 1) % 2 == 0) != first_goes)
                f->inner = sizes[--n];
        if (n)
                f->count = sizes[--n];
        for (uint32_t i = 0; i < n; i++)
                add_axis((i % 2 == 0) == first_goes ? &f->blocks : &f->rows, sizes[i], strides[i]);
}

static bool fold_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        enum kind kind = kind_of(node->op, x->dtype);
        struct fold *f = state;
        uint32_t mask;

        (void)sizes;
        if (kind == KINDS || x->dtype != y->dtype || x->layout != SL_LAYOUT_PLAIN || y->layout != SL_LAYOUT_PLAIN ||
                sl_cpu_is_empty(x) || sl_reduced_axes(node, &mask, NULL))
                return false;
        f->op = node->op;
        f->add = types[x->dtype].add[kind];
        f->finish = kind == GREATEST || kind == LEAST ? types[x->dtype].chosen : types[x->dtype].finish;
        f->bytes = (int64_t)sl_dtype_bytes(x->dtype);
        split_axes(&x->shape, mask, f);
        if (f->inner == 1 && f->count >= TOGETHER && x->dtype == SL_DTYPE_F32 && (kind == GREATEST || kind == LEAST))
                f->add = kind == GREATEST ? greatest_of_rows_f32 : least_of_rows_f32;
        if (f->inner == 1 && f->count >= TOGETHER && x->dtype == SL_DTYPE_F64 && (kind == GREATEST || kind == LEAST))
                f->add = kind == GREATEST ? greatest_of_rows_f64 : least_of_rows_f64;
        return f->add;
}

/* @width outputs, the first of which begins at input element @at. */
static void fold_outputs(
        const struct fold *f, const struct sl_binding *binding, int64_t row, int64_t step, int width, int64_t at, int64_t to)
{
        double sums[COLUMNS], largest[COLUMNS];

        largest[0] = 0;
        f->add(f, row, step, width, (const char *)binding->inputs[0] + at * f->bytes, sums, largest);
        f->finish(f, width, sums, largest, (char *)binding->outputs[0] + to * f->bytes);
}

/* Nothing stays innermost: as many rows at once as lie one behind the other, where they are short. */
static void fold_rows(const struct fold *f, const struct sl_binding *binding, const struct sl_part *rows)
{
        const struct axes *axes = &f->rows;
        int64_t last = axes->rank ? axes->sizes[axes->rank - 1] : 1, step = axes->rank ? axes->strides[axes->rank - 1] : 0;

        for (int64_t r = rows->first, n; r < rows->end; r += n) {
                n = rows->end - r < last - r % last ? rows->end - r : last - r % last;
                n = f->count >= SHORT ? 1 : n < TOGETHER ? n : TOGETHER;
                fold_outputs(f, binding, 1, step, (int)n, place_of(axes, r), r);
        }
}

static int64_t inner_units(const struct fold *f)
{
        return (f->inner + COLUMNS - 1) / COLUMNS;
}

static int fold_run(const void *state, const struct sl_binding *binding)
{
        const struct fold *f = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, f->rows.elements);
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, inner_units(f));

        if (f->inner == 1) {
                if (columns.end > columns.first)
                        fold_rows(f, binding, &rows);
                return 0;
        }
        for (int64_t r = rows.first; r < rows.end; r++)
                for (int64_t c = columns.first * COLUMNS; c < columns.end * COLUMNS && c < f->inner; c += COLUMNS) {
                        int width = (int)(f->inner - c < COLUMNS ? f->inner - c : COLUMNS);

                        fold_outputs(f, binding, f->inner, 1, width, place_of(&f->rows, r) + c, r * f->inner + c);
                }
        return 0;
}

static int64_t fold_units(const void *state, uint32_t axis)
{
        const struct fold *f = state;

        return axis == SL_AXIS_ROWS ? f->rows.elements : inner_units(f);
}

/* Of inputs it is known where the rows lie one behind the other. */
static bool fold_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct fold *f = state;
        bool is_output = operand == SL_REACH_OUTPUT;

        if (part->axis == SL_AXIS_ROWS && is_output)
                return sl_reach_rows(part, f->inner * f->bytes, ret_reach);
        if (part->axis == SL_AXIS_ROWS)
                return f->blocks.elements == 1 && f->rows.rank == 1 &&
                       sl_reach_rows(part, f->count * f->inner * f->bytes, ret_reach);
        return sl_reach_columns(part, COLUMNS * f->bytes, f->inner * f->bytes,
                is_output ? f->rows.elements : f->rows.elements * f->blocks.elements * f->count, ret_reach);
}

const struct sl_cpu_loop sl_cpu_fold = {
        .state_bytes = sizeof(struct fold), .plan = fold_plan, .run = fold_run, .units = fold_units, .reach = fold_reach};
