/* SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include "base/bytes.h"
#include "bench.h"
#include "cores.h"
#include "latencies.h"
#include "pair.h"
#include "report.h"
#include "ticks.h"

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BLOCKS       SL_FLOOR_BLOCKS
#define BLOCK_ROUNDS 100u
#define THE_END      UINT32_MAX

/* Odd values go there, even ones come back: in one word, or in a word of each direction. */
struct lines {
        alignas(128) _Atomic uint32_t there;
        alignas(128) _Atomic uint32_t back;
};

static _Atomic uint32_t *back_of(struct lines *lines, bool apart)
{
        return apart ? &lines->back : &lines->there;
}

static int answer(void *memory, void *argument)
{
        struct lines *lines = memory;
        _Atomic uint32_t *back = back_of(lines, *(const bool *)argument);
        uint32_t expected = 1, seen;

        for (;;) {
                while ((seen = atomic_load_explicit(&lines->there, memory_order_acquire)) != expected) {
                        if (seen == THE_END)
                                return 0;
                        sl_relax();
                }
                atomic_store_explicit(back, expected + 1, memory_order_release);
                expected += 2;
        }
}

static uint32_t play_block(_Atomic uint32_t *there, _Atomic uint32_t *back, uint32_t turn)
{
        for (uint32_t i = 0; i < BLOCK_ROUNDS; i++) {
                atomic_store_explicit(there, turn + 1, memory_order_release);
                turn += 2;
                while (atomic_load_explicit(back, memory_order_acquire) != turn)
                        sl_relax();
        }
        return turn;
}

static int play(struct sl_pair *pair, bool apart, uint32_t blocks, struct sl_latencies *samples)
{
        struct lines *lines = pair->memory;
        _Atomic uint32_t *back = back_of(lines, apart);
        uint32_t turn = 0, warm_up = blocks / 15;

        for (uint32_t block = 0; block < warm_up + blocks; block++) {
                uint64_t start = sl_ticks();

                turn = play_block(&lines->there, back, turn);
                if (block >= warm_up)
                        sl_latencies_add(samples, sl_ticks() - start);
        }
        atomic_store_explicit(&lines->there, THE_END, memory_order_release);
        return sl_pair_end(pair);
}

static int measure(const int cpus[2], bool apart, uint32_t blocks, double *ret_ns)
{
        struct sl_latencies samples;
        struct sl_pair pair;
        int r = sl_latencies_init(&samples);

        if (r == 0)
                r = sl_pair_start(&pair, cpus, sizeof(struct lines), answer, &apart);
        if (r == 0)
                r = play(&pair, apart, blocks, &samples);
        if (r == 0) {
                *ret_ns = sl_latencies_at(&samples, 0.5) / BLOCK_ROUNDS * sl_ticks_scale();
        }
        sl_latencies_deinit(&samples);
        return r;
}

int sl_floor_measure(const int cpus[2], double *ret_floor_ns)
{
        return measure(cpus, false, BLOCKS, ret_floor_ns);
}

int sl_floor_estimate(const int cpus[2], double *ret_floor_ns)
{
        return measure(cpus, false, (BLOCKS + 9) / 10, ret_floor_ns);
}

int sl_floor_measure_two_lines(const int cpus[2], double *ret_ns)
{
        return measure(cpus, true, BLOCKS, ret_ns);
}

int sl_bench_floor(int argc, char **argv)
{
        int cpus[2] = {-1, -1};
        bool json = false;
        double floor_ns, two_lines_ns;
        int code = sl_bench_options(argc, argv, cpus, &json);

        if (code)
                return code;
        int r = cpus[0] < 0 ? sl_cores_pick(cpus) : 0;
        if (r == 0)
                r = sl_floor_measure(cpus, &floor_ns);
        if (r == 0)
                r = sl_floor_measure_two_lines(cpus, &two_lines_ns);
        if (r < 0) {
                fprintf(stderr, "starling bench floor: %s\n",
                        r == -ENOTSUP ? "it needs two CPUs, this process may run on one" : strerror(-r));
                return 1;
        }

        struct sl_report report;

        sl_report_init(&report, "floor", argc, argv);
        sl_report_number(&report, "floor_ns", SL_UNIT_NS, floor_ns, NULL, 0);
        sl_report_number(&report, "floor_two_lines_ns", SL_UNIT_NS, two_lines_ns, NULL, 0);
        sl_report_print(&report, json, floor_ns);
        return 0;
}
