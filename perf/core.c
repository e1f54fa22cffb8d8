/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench core`: the figures by which algorithms are guessed, measured now, beside what the processor can do at most:
 * multiplies and adds in registers alone, reads and copies that do nothing else.
 */
#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bench.h"
#include "cores.h"
#include "cpu/calibrate.h"
#include "peak.h"
#include "report.h"

#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS         15
#define MEMORY_BYTES (32u << 20) /* as large as the matrix of `weights` and `stream` */

/* What a run works on, and where its result goes, so that it is computed. */
struct bench {
        float *memory;
        size_t bytes;
        float result;
};

__attribute__((target("avx2"))) static void read_all(struct bench *bench)
{
        __m256 sums[8], all = _mm256_setzero_ps();
        const float *at = bench->memory, *end = at + bench->bytes / sizeof(*at);

        for (int i = 0; i < 8; i++)
                sums[i] = all;
        for (; at < end; at += 64)
#pragma GCC unroll 8
                for (int i = 0; i < 8; i++)
                        sums[i] = _mm256_add_ps(sums[i], _mm256_load_ps(at + 8 * i));
        for (int i = 0; i < 8; i++)
                all = _mm256_add_ps(all, sums[i]);
        bench->result = _mm_cvtss_f32(_mm256_castps256_ps128(all));
}

static void copy_half(struct bench *bench)
{
        memcpy((char *)bench->memory + bench->bytes / 2, bench->memory, bench->bytes / 2);
        bench->result = bench->memory[bench->bytes / 8];
}

static void copy_half_often(struct bench *bench)
{
        for (int i = 0; i < 16; i++)
                copy_half(bench);
}

/* The shortest of several runs: a limit is what nothing disturbs. */
static double shortest_seconds(struct bench *bench, void (*run)(struct bench *bench))
{
        uint64_t least = UINT64_MAX;

        run(bench);
        for (int i = 0; i < RUNS; i++) {
                uint64_t start = sl_clock_ns(), taken;

                run(bench);
                taken = sl_clock_ns() - start;
                least = taken < least ? taken : least;
        }
        return (double)least * 1e-9;
}

struct limits {
        double flops, read, far, near;
};

static struct limits measure_limits(float *memory)
{
        struct bench bench = {.memory = memory, .bytes = MEMORY_BYTES};
        size_t l2_bytes = (size_t)sysconf(_SC_LEVEL2_CACHE_SIZE);
        struct limits limits;

        limits.flops = sl_peak_flops();
        limits.read = (double)bench.bytes / shortest_seconds(&bench, read_all);
        bench.bytes = 4 * l2_bytes < MEMORY_BYTES ? 4 * l2_bytes : MEMORY_BYTES;
        limits.far = (double)bench.bytes / shortest_seconds(&bench, copy_half);
        bench.bytes = l2_bytes / 4;
        limits.near = 16 * (double)bench.bytes / shortest_seconds(&bench, copy_half_often);
        return limits;
}

static void report_limit(struct sl_report *report, const char *key, double limit, const char *share_key, double figure)
{
        sl_report_number(report, key, SL_UNIT_PER_SECOND, limit, NULL, 0);
        sl_report_number(report, share_key, SL_UNIT_SHARE, figure / limit, NULL, 0);
}

static void report_figures(struct sl_report *report, struct sl_core_figures core)
{
        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT; i++) {
                struct sl_core_figure_info info = sl_core_figure_info(i);
                double value = *sl_core_figure(&core, i);

                if (strcmp(info.unit, "s") == 0)
                        sl_report_number(report, info.name, SL_UNIT_NS, value * 1e9, NULL, 0);
                else if (strcmp(info.unit, "share") == 0)
                        sl_report_number(report, info.name, SL_UNIT_SHARE, value, NULL, 0);
                else if (strcmp(info.unit, "operations") == 0)
                        sl_report_number(report, info.name, SL_UNIT_COUNT, value, NULL, 0);
                else
                        sl_report_number(report, info.name, SL_UNIT_PER_SECOND, value, NULL, 0);
        }
}

int sl_bench_core(int argc, char **argv)
{
        SL_CLEANUP(sl_cleanup_free) float *memory = aligned_alloc(64, MEMORY_BYTES);
        int cpus[2] = {-1, -1}, code, r = -ENOTSUP;
        struct sl_report report;
        struct sl_target target;
        struct limits limits;
        bool json = false;

        code = sl_bench_options(argc, argv, cpus, &json);
        if (code)
                return code;
        if (cpus[0] >= 0)
                (void)sl_cores_pin(cpus[0]);
        for (uint32_t i = 0; sl_backend_at(i) && r == -ENOTSUP; i++)
                r = sl_backend_at(i)->planner->measure ? sl_backend_at(i)->planner->measure(&target) : -ENOTSUP;
        if (r == 0)
                r = sl_cpu_calibrate(&target.core);
        if (r < 0 || !memory) {
                fprintf(stderr, "starling bench core: %s\n", r == -ENOTSUP ? "it needs AVX2" : strerror(ENOMEM));
                return 1;
        }
        memset(memory, 0, MEMORY_BYTES);
        limits = measure_limits(memory);
        sl_report_init(&report, "core", argc, argv);
        report_figures(&report, target.core);
        report_limit(&report, "limit_flops", limits.flops, "flops_of_limit", target.core.flops);
        report_limit(&report, "limit_read", limits.read, "stream_of_limit", target.core.stream);
        report_limit(&report, "limit_copy_far", limits.far, "far_of_limit", target.core.far);
        report_limit(&report, "limit_copy_near", limits.near, "near_of_limit", target.core.near);
        sl_report_print(&report, json, 0);
        return 0;
}
