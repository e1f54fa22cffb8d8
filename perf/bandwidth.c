/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench bandwidth`: how much of the memory's bandwidth kernels reach that wait for their weights. The yardstick is a
 * read of the same memory that does nothing else, by one core and by a team of two, in the fastest of several ways; it and the
 * kernels are measured in turns, and each figure is the median of the ratios of neighbours in time.
 *
 * From some number of rows on a core has no time to multiply at that rate: beside the share of the read stands the share of what
 * read and multiplications allow together, whichever of the two takes longer.
 */
#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "bench.h"
#include "cold_node.h"
#include "cores.h"
#include "cpu/base/isa.h"
#include "op.h"
#include "peak.h"
#include "report.h"
#include "target.h"
#include "team.h"

#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES ((size_t)768 << 20)
#define TURN_BYTES   ((double)(192u << 20)) /* that a turn reads, or more */
#define ROUNDS       9
#define GOAL         0.85

/* Key, operator, rows or steps, depth or inputs, columns or cells, what the weights lie in. */
#define CASES(X)                                                                                                                   \
        X(row_768x768, MATMUL, 1, 768, 768, F32)                                                                                   \
        X(row_768x3072, MATMUL, 1, 768, 3072, F32)                                                                                 \
        X(row_1024x1024, MATMUL, 1, 1024, 1024, F32)                                                                               \
        X(row_4096x4096, MATMUL, 1, 4096, 4096, F32)                                                                               \
        X(row_4096x4096_f16, MATMUL, 1, 4096, 4096, F16)                                                                           \
        X(row_4096x4096_bf16, MATMUL, 1, 4096, 4096, BF16)                                                                         \
        X(vgg_fc6, GEMM, 1, 25088, 4096, F32)                                                                                      \
        X(vgg_fc7, GEMM, 1, 4096, 4096, F32)                                                                                       \
        X(vgg_fc8, GEMM, 1, 4096, 1000, F32)                                                                                       \
        X(vgg_fc6_f16, GEMM, 1, 25088, 4096, F16)                                                                                  \
        X(rows_2_768x3072, MATMUL, 2, 768, 3072, F32)                                                                              \
        X(rows_4_768x3072, MATMUL, 4, 768, 3072, F32)                                                                              \
        X(rows_8_768x3072, MATMUL, 8, 768, 3072, F32)                                                                              \
        X(rows_4_768x3072_f16, MATMUL, 4, 768, 3072, F16)                                                                          \
        X(bert_16_768x768, MATMUL, 16, 768, 768, F32)                                                                              \
        X(bert_16_768x3072, MATMUL, 16, 768, 3072, F32)                                                                            \
        X(bert_16_3072x768, MATMUL, 16, 3072, 768, F32)                                                                            \
        X(bert_16_768x3072_f16, MATMUL, 16, 768, 3072, F16)                                                                        \
        X(xlnet_128_768x3072, MATMUL, 128, 768, 3072, F32)                                                                         \
        X(xlnet_128_768x3072_f16, MATMUL, 128, 768, 3072, F16)                                                                     \
        X(lstm_8_2048, LSTM, 8, 2048, 2048, F32)                                                                                   \
        X(lstm_8_2048_f16, LSTM, 8, 2048, 2048, F16)                                                                               \
        X(gru_8_2048, GRU, 8, 2048, 2048, F32)                                                                                     \
        X(gru_8_2048_f16, GRU, 8, 2048, 2048, F16)

static const struct bench_case {
        const char *key, *limit_key, *team_key, *team_limit_key;
        uint32_t op;
        int64_t rows, depth, columns;
        uint32_t weights; /* enum sl_dtype */
} cases[] = {
#define X(key, op, rows, depth, columns, weights)                                                                                  \
        {#key, #key "_limit", #key "_team", #key "_team_limit", SL_OP_##op, rows, depth, columns, SL_DTYPE_##weights},
        CASES(X)
#undef X
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

/* A read of one member's memory: so many streams side by side, fetched ahead by so much. */
struct read {
        const char *from;
        size_t bytes; /* a multiple of 64 lines for each stream */
        int streams;
        size_t ahead;
        float result;
};

/* Side by side: stream s reads its own run of the memory. */
__attribute__((target("avx2"))) static void read_all(struct read *r)
{
        const size_t each = r->bytes / (size_t)r->streams;
        __m256 sums[8];

        for (int i = 0; i < 8; i++)
                sums[i] = _mm256_setzero_ps();
        for (size_t at = 0; at < each; at += 256)
                for (int stream = 0; stream < r->streams; stream++) {
                        const char *from = r->from + (size_t)stream * each + at;

                        for (int line = 0; line < 4 && r->ahead; line++)
                                _mm_prefetch(from + r->ahead + line * 64, _MM_HINT_T0);
#pragma GCC unroll 8
                        for (int i = 0; i < 8; i++)
                                sums[i] = _mm256_add_ps(sums[i], _mm256_load_ps((const float *)(from + 32 * i)));
                }
        for (int i = 1; i < 8; i++)
                sums[0] = _mm256_add_ps(sums[0], sums[i]);
        r->result = _mm256_cvtss_f32(sums[0]);
}

/* The ways to read: streams, and how far ahead. */
static const struct read ways[] = {{.streams = 1}, {.streams = 4}, {.streams = 1, .ahead = 2048}, {.streams = 4, .ahead = 2048},
        {.streams = 4, .ahead = 4096}, {.streams = 8, .ahead = 1024}};

#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

struct bandwidth {
        struct sl_target target; /* this processor */
        struct sl_cold_memory memory;
        struct sl_team *team;
        struct sl_cold_node *nodes[N_CASES];
        const struct read *way;
        size_t at;    /* where the next read begins */
        double flops; /* of a core in registers */
};

struct team_read {
        struct read reads[SL_COLD_MEMBERS_MAX];
};

static void read_part(void *context, uint32_t index, uint32_t member)
{
        struct team_read *team_read = context;

        (void)member;
        read_all(&team_read->reads[index]);
}

/* Bytes a second of one turn, by so many members, each with a run of its own. */
static double read_turn(struct bandwidth *b, const struct read *way, uint32_t members)
{
        size_t each = (size_t)TURN_BYTES / members;
        struct team_read team_read;
        uint64_t start;

        if (b->at + (size_t)TURN_BYTES > b->memory.n_bytes)
                b->at = 0;
        for (uint32_t i = 0; i < members; i++) {
                team_read.reads[i] = *way;
                team_read.reads[i].from = b->memory.bytes + b->at + i * each;
                team_read.reads[i].bytes = each;
        }
        b->at += (size_t)TURN_BYTES;
        start = sl_clock_ns();
        if (members == 1)
                read_all(&team_read.reads[0]);
        else
                sl_team_run(b->team, members, read_part, &team_read);
        return TURN_BYTES / ((double)(sl_clock_ns() - start) * 1e-9);
}

/* The same of a node. NaN: its kernel failed. */
static double node_turn(struct bandwidth *b, struct sl_cold_node *node, bool by_team)
{
        uint64_t start = sl_clock_ns();
        double bytes = 0;

        for (; bytes < TURN_BYTES; bytes += sl_cold_node_bytes(node))
                if (sl_cold_node_launch(node, by_team ? b->team : NULL))
                        return NAN;
        return bytes / ((double)(sl_clock_ns() - start) * 1e-9);
}

static int describe(const struct bench_case *c, struct sl_node_desc *node)
{
        const struct sl_tensor rows = {.dtype = SL_DTYPE_F32, .shape = {2, {c->rows, c->depth}}};
        int64_t gates = c->op == SL_OP_LSTM ? 4 : 3;
        int r;

        *node = (struct sl_node_desc){.op = c->op, .n_inputs = 2, .n_outputs = 1};
        node->inputs[0] = rows;
        node->inputs[1] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {2, {c->depth, c->columns}}};
        r = c->weights == SL_DTYPE_F32 ? 0 : sl_attrs_set_int(&node->attrs, SL_ATTR_WEIGHTS, c->weights);
        if (r < 0 || c->op == SL_OP_MATMUL || c->op == SL_OP_GEMM)
                return r;
        node->n_inputs = 3;
        node->inputs[0].shape = (struct sl_shape){3, {c->rows, 1, c->depth}};
        node->inputs[1].shape = (struct sl_shape){3, {1, gates * c->columns, c->depth}};
        node->inputs[2] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {3, {1, gates * c->columns, c->columns}}};
        return sl_attrs_set_int(&node->attrs, SL_ATTR_HIDDEN_SIZE, c->columns);
}

static int make_nodes(struct bandwidth *b, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_node_desc *node = calloc(1, sizeof(*node));
        int r = node ? 0 : -ENOMEM;

        for (size_t i = 0; i < N_CASES && r == 0; i++) {
                r = describe(&cases[i], node);
                r = r < 0 ? r : sl_cold_node_new(node, &b->target, &b->memory, &b->nodes[i], error);
                if (r < 0)
                        sl_error_prefix(error, r, "%s", cases[i].key);
        }
        return r;
}

static int by_value(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

static double median(double values[ROUNDS])
{
        qsort(values, ROUNDS, sizeof(*values), by_value);
        return values[ROUNDS / 2];
}

/* The fastest way by the medians of turns that all of them take one after the other. */
static void choose_way(struct bandwidth *b)
{
        double speeds[N_WAYS][ROUNDS], best = 0;

        for (int round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < N_WAYS; i++)
                        speeds[i][round] = read_turn(b, &ways[i], 1);
        for (size_t i = 0; i < N_WAYS; i++) {
                double speed = median(speeds[i]);

                b->way = speed > best ? &ways[i] : b->way;
                best = speed > best ? speed : best;
        }
}

/* Multiply-adds for each byte of weights that a launch reads. */
static double flops_of_byte(const struct bench_case *c)
{
        bool is_product = c->op == SL_OP_MATMUL || c->op == SL_OP_GEMM;

        return 2.0 * (is_product ? (double)c->rows : 1) / (double)sl_dtype_bytes(c->weights);
}

struct shares {
        double of_read, of_limit;
};

/* A case beside reads of its own turns: what it reaches of them. */
static struct shares measure_case(struct bandwidth *b, size_t index, uint32_t members)
{
        double shares[ROUNDS], of_limit[ROUNDS];

        (void)node_turn(b, b->nodes[index], members > 1);
        for (int round = 0; round < ROUNDS; round++) {
                double before = read_turn(b, b->way, members), speed = node_turn(b, b->nodes[index], members > 1);
                double read = (before + read_turn(b, b->way, members)) / 2;

                shares[round] = speed / read;
                of_limit[round] = speed / fmin(read, members * b->flops / flops_of_byte(&cases[index]));
        }
        return (struct shares){median(shares), median(of_limit)};
}

static void report_yardstick(struct bandwidth *b, struct sl_report *report)
{
        double one[ROUNDS], two[ROUNDS];

        for (int round = 0; round < ROUNDS; round++) {
                one[round] = read_turn(b, b->way, 1);
                two[round] = read_turn(b, b->way, 2);
        }
        sl_report_text(
                report, "read", "%d streams, %zu bytes ahead, of %zu MiB", b->way->streams, b->way->ahead, b->memory.n_bytes >> 20);
        sl_report_number(report, "multiplications_per_second", SL_UNIT_PER_SECOND, b->flops, NULL, 0);
        sl_report_number(report, "read_bytes_per_second", SL_UNIT_PER_SECOND, median(one), NULL, 0);
        sl_report_number(report, "read_bytes_per_second_team", SL_UNIT_PER_SECOND, median(two), NULL, 0);
}

static void report_cases(struct bandwidth *b, struct sl_report *report)
{
        for (size_t i = 0; i < N_CASES && !sl_bench_interrupted(); i++) {
                struct shares one = measure_case(b, i, 1), two = measure_case(b, i, 2);

                sl_report_number(report, cases[i].key, SL_UNIT_SHARE, one.of_read, NULL, 0);
                sl_report_number(report, cases[i].limit_key, SL_UNIT_SHARE, one.of_limit, ">= 85 %", one.of_limit >= GOAL);
                sl_report_number(report, cases[i].team_key, SL_UNIT_SHARE, two.of_read, NULL, 0);
                sl_report_number(report, cases[i].team_limit_key, SL_UNIT_SHARE, two.of_limit, ">= 85 %", two.of_limit >= GOAL);
        }
}

static void bandwidth_deinit(struct bandwidth *b)
{
        for (size_t i = 0; i < N_CASES; i++)
                sl_cold_node_free(b->nodes[i]);
        sl_team_free(b->team);
        sl_cold_memory_deinit(&b->memory);
}

static int prepare(struct bandwidth *b, int cpus[2], struct sl_error *error)
{
        const struct sl_team_options options = {.size = 2, .cpus = cpus, .spin_ns = SL_TEAM_SPIN_NS};
        int r = 0;

        if (!sl_cpu_has_avx2())
                return sl_error_set(error, ENOTSUP, "it needs AVX2");
        if (cpus[0] < 0)
                r = sl_cores_pick(cpus);
        if (r < 0)
                return sl_error_set(error, -r, "it needs two CPUs, this process may run on one");
        r = sl_backend_cpu.planner->measure(&b->target);
        if (r < 0)
                return sl_error_set(error, -r, "what a core reaches is not measured: %s", strerror(-r));
        (void)sl_cores_pin(cpus[0]);
        r = sl_cold_memory_init(&b->memory, MEMORY_BYTES);
        if (r < 0)
                return sl_error_set(error, -r, "no memory for %zu MiB", MEMORY_BYTES >> 20);
        r = sl_team_new(&options, &b->team, error);
        return r < 0 ? r : make_nodes(b, error);
}

int sl_bench_bandwidth(int argc, char **argv)
{
        struct bandwidth bandwidth = {.way = ways};
        struct sl_error error = {""};
        int cpus[2] = {-1, -1}, code, r;
        struct sl_report report;
        bool json = false;

        code = sl_bench_options(argc, argv, cpus, &json);
        if (code)
                return code;
        r = prepare(&bandwidth, cpus, &error);
        if (r == 0) {
                sl_report_init(&report, "bandwidth", argc, argv);
                bandwidth.flops = sl_peak_flops();
                choose_way(&bandwidth);
                report_yardstick(&bandwidth, &report);
                report_cases(&bandwidth, &report);
                sl_report_print(&report, json, 0);
        } else {
                fprintf(stderr, "starling bench bandwidth: %s\n", error.text[0] ? error.text : strerror(-r));
        }
        bandwidth_deinit(&bandwidth);
        return r < 0;
}
