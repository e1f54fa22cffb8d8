/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/measure.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "cpu/base/isa.h"
#include "cpu/base/operator.h"
#include "cpu/calibrate.h"
#include "cpu/gemm/gemm.h"
#include "cpu/measure_team.h"
#include "target.h"

#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The matrix that comes from memory: 32 MiB with 4,096 columns, far more than a L2 cache holds. */
#define DEPTH   2048
#define COLUMNS SL_MEASURED_COLUMNS
#define FLOATS  ((int64_t)DEPTH * COLUMNS)

/* The one that lies in the cache, by many rows. */
#define NEAR_DEPTH   256
#define NEAR_COLUMNS 128
#define NEAR_ROWS    224

/* As many as pass by a matrix together without hiding what it takes to come; and some that do not. */
#define FEW_ROWS     8
#define PASSING_ROWS 4

#define RUNS_MAX 15

#define ROUNDS_MAX (SL_MEASURED_RUNS < RUNS_MAX ? 1 : 4)
#define AGREEMENT  0.05

/* Pieces of the matrix that are read once from memory, of 3 MiB where it has 32: more than stays in an L2 cache. */
#define PIECE_COLUMNS (COLUMNS / 32 * 3)
#define PIECES        10

struct bench {
        float *matrix, *rows, *result; /* packed; DEPTH for each of FEW_ROWS, or NEAR_DEPTH of NEAR_ROWS; what they become */
        int64_t n;                     /* floats that a loop over the matrix reads */
        struct sl_gemm_reading reading;
};

static int by_value(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

/* Of this thread alone: time in which others had the core does not count. */
static double now_seconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Median seconds of @runs, the first of which is not counted. */
static double median(const struct bench *bench, void (*run)(const struct bench *bench), int runs)
{
        double seconds[RUNS_MAX];

        runs = runs < SL_MEASURED_RUNS ? runs : SL_MEASURED_RUNS;
        run(bench);
        for (int i = 0; i < runs; i++) {
                double start = now_seconds();

                run(bench);
                seconds[i] = now_seconds() - start;
        }
        qsort(seconds, (size_t)runs, sizeof(*seconds), by_value);
        return seconds[runs / 2];
}

static void multiply(const struct bench *bench, int64_t rows, int64_t depth, int64_t columns, bool streams)
{
        sl_gemm_run(&(struct sl_gemm){.a = bench->rows,
                .b = bench->matrix,
                .c = bench->result,
                .rows = rows,
                .depth = depth,
                .columns = columns,
                .a_stride = depth,
                .c_stride = columns,
                .streams = streams,
                .reading = bench->reading});
}

static void run_near_product(const struct bench *bench)
{
        for (int i = 0; i < 8; i++)
                multiply(bench, NEAR_ROWS, NEAR_DEPTH, NEAR_COLUMNS, false);
}

static void run_product(const struct bench *bench)
{
        multiply(bench, FEW_ROWS, DEPTH, COLUMNS, true);
}

static void run_row(const struct bench *bench)
{
        multiply(bench, 1, DEPTH, COLUMNS, true);
}

SL_CPU_CLONES static void scale(int64_t n, float *restrict to, const float *restrict from)
{
        for (int64_t i = 0; i < n; i++)
                to[i] = from[i] * 1.5f;
}

/* From one half of what is walked to the other. */
static void run_walk(const struct bench *bench)
{
        scale(bench->n / 2, bench->matrix + bench->n / 2, bench->matrix);
}

static void run_near_walk(const struct bench *bench)
{
        for (int i = 0; i < 16; i++)
                run_walk(bench);
}

/* The product of `flops` in another precision, as a network that is planned for @target would have it: @result of its output. */
static double near_rate(uint32_t op, uint32_t x, uint32_t weights, uint32_t result, const struct sl_target *target)
{
        struct sl_node_desc node = {.op = op,
                .n_inputs = op == SL_OP_QUANTIZED_MATMUL ? 3 : 2,
                .n_outputs = 1,
                .inputs = {{.dtype = x, .shape = {2, {NEAR_ROWS, NEAR_DEPTH}}},
                        {.dtype = weights, .shape = {2, {NEAR_DEPTH, NEAR_COLUMNS}}}, {.dtype = SL_DTYPE_F32, .shape = {1, {1}}}},
                .outputs = {{.dtype = result, .shape = {2, {NEAR_ROWS, NEAR_COLUMNS}}}}};
        double seconds = sl_attrs_set_int(&node.attrs, SL_ATTR_TO, result) ? 0 : sl_cpu_time_node(&node, target);

        return seconds > 0 ? 2.0 * NEAR_ROWS * NEAR_DEPTH * NEAR_COLUMNS / seconds : 0;
}

/* Of bytes, on a core that seems to be so many times as fast by tiles of AMX as without. */
static double bytes_rate(double gain)
{
        struct sl_target target = sl_target_typical;

        target.core.tiles = gain * target.core.bytes;
        return near_rate(SL_OP_QUANTIZED_MATMUL, SL_DTYPE_U8, SL_DTYPE_I8, SL_DTYPE_U8, &target);
}

/* What there is no kernel for is computed as float32 is, and without tiles of AMX as with VNNI. */
static void measure_precisions(struct sl_core_figures *figures)
{
        double bytes = bytes_rate(0.5), tiles = sl_cpu_has_amx() ? bytes_rate(2) : bytes;
        double bf16 = near_rate(SL_OP_MATMUL, SL_DTYPE_BF16, SL_DTYPE_BF16, SL_DTYPE_BF16, NULL);

        figures->bytes = sl_cpu_two_digits(bytes > 0 ? bytes : figures->flops);
        figures->tiles = sl_cpu_two_digits(tiles > 0 ? tiles : figures->flops);
        figures->bf16 = sl_cpu_two_digits(bf16 > 0 ? bf16 : figures->flops);
}

/* Out of all caches: the last one of some processors holds all of the matrix. */
static void forget_matrix(const struct bench *bench)
{
        for (int64_t i = 0; i < FLOATS; i += SL_LINE_BYTES / (int64_t)sizeof(float))
                _mm_clflush(bench->matrix + i);
        _mm_mfence();
}

static double piece_seconds(const struct bench *bench, int64_t piece, int64_t rows, struct sl_gemm_reading reading)
{
        struct bench part = *bench;
        double start = now_seconds();

        part.matrix += piece * PIECE_COLUMNS * DEPTH;
        part.reading = reading;
        multiply(&part, rows, DEPTH, PIECE_COLUMNS, true);
        return now_seconds() - start;
}

/* What so many rows gain that read so: above 1 it is faster. Pieces are read one way and the other way in turns. */
static double gain(const struct bench *bench, int64_t rows, struct sl_gemm_reading reading)
{
        double gains[PIECES / 2];

        forget_matrix(bench);
        for (int64_t i = 0; i < PIECES / 2; i++)
                gains[i] = piece_seconds(bench, 2 * i, rows, (struct sl_gemm_reading){0}) /
                           piece_seconds(bench, 2 * i + 1, rows, reading);
        qsort(gains, PIECES / 2, sizeof(*gains), by_value);
        return gains[PIECES / 4];
}

static void measure_reading(struct bench *bench, struct sl_core_figures *figures)
{
        figures->abreast = sl_cpu_two_digits(gain(bench, 1, (struct sl_gemm_reading){.abreast = true}));
        figures->fetched = sl_cpu_two_digits(gain(bench, PASSING_ROWS, (struct sl_gemm_reading){.fetched = true}));
        bench->reading = sl_gemm_reading(figures);
        figures->stream = sizeof(float) * (double)FLOATS / median(bench, run_row, 7);
}

static void measure_once(struct bench *bench, struct sl_core_figures *figures)
{
        const double bytes = sizeof(float) * (double)FLOATS;

        figures->flops = 8 * 2.0 * NEAR_ROWS * NEAR_DEPTH * NEAR_COLUMNS / median(bench, run_near_product, RUNS_MAX);
        measure_reading(bench, figures);
        figures->weights = bytes / median(bench, run_product, 7);
        bench->n = 4 * sl_cpu_l2_bytes() / (int64_t)sizeof(float);
        bench->n = bench->n < FLOATS ? bench->n : FLOATS;
        figures->far = sizeof(float) * (double)bench->n / median(bench, run_walk, 9);
        bench->n = sl_cpu_l2_bytes() / 4 / (int64_t)sizeof(float);
        bench->n = bench->n < FLOATS ? bench->n : FLOATS;
        figures->near = 16 * sizeof(float) * (double)bench->n / median(bench, run_near_walk, RUNS_MAX);
}

static void keep_larger(double *known, double other)
{
        *known = other > *known ? other : *known;
}

/*
 * Whoever shares the core's units or the memory makes a rate smaller, and nobody makes it larger: of all rounds the largest counts.
 * That is known when two rounds agree on what a core computes.
 */
static void measure_all(struct bench *bench, struct sl_core_figures *figures)
{
        measure_once(bench, figures);
        for (int round = 1; round < ROUNDS_MAX; round++) {
                struct sl_core_figures other = *figures;
                bool agree;

                measure_once(bench, &other);
                agree = fabs(other.flops - figures->flops) <= AGREEMENT * figures->flops;
                keep_larger(&figures->flops, other.flops);
                keep_larger(&figures->stream, other.stream);
                keep_larger(&figures->weights, other.weights);
                keep_larger(&figures->far, other.far);
                keep_larger(&figures->near, other.near);
                if (agree)
                        return;
        }
}

int sl_cpu_measure(struct sl_target *ret_target)
{
        SL_CLEANUP(sl_cleanup_free) float *matrix = NULL, *rows = NULL, *result = NULL;
        struct sl_core_figures figures = sl_target_typical.core;
        struct bench bench;

        if (!sl_cpu_has_avx2())
                return -ENOTSUP;
        matrix = aligned_alloc(64, FLOATS * sizeof(float));
        rows = calloc(NEAR_ROWS * NEAR_DEPTH, sizeof(float));
        result = calloc(
                FEW_ROWS * COLUMNS > NEAR_ROWS * NEAR_COLUMNS ? FEW_ROWS * COLUMNS : NEAR_ROWS * NEAR_COLUMNS, sizeof(float));
        if (!matrix || !rows || !result)
                return -ENOMEM;
        memset(matrix, 0, FLOATS * sizeof(float));
        bench = (struct bench){.matrix = matrix, .rows = rows, .result = result};
        measure_all(&bench, &figures);
        sl_cpu_measure_team(
                &(struct sl_team_bench){.matrix = matrix, .row = rows, .result = result, .depth = DEPTH, .columns = COLUMNS},
                &figures);
        measure_precisions(&figures);
        figures.flops = sl_cpu_two_digits(figures.flops);
        figures.weights = sl_cpu_two_digits(figures.weights);
        figures.stream = sl_cpu_two_digits(figures.stream);
        figures.shared = sl_cpu_two_digits(figures.shared);
        figures.barrier = sl_cpu_two_digits(figures.barrier);
        figures.far = sl_cpu_two_digits(figures.far);
        figures.near = sl_cpu_two_digits(figures.near);
        ret_target->core = figures;
        return 0;
}
