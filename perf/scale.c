/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale: what a look of each scaler takes for 100 architectures of 8 kinds, each a need of its own on shared resources: where all
 * loads have changed, where one has, and where none has. Medians of LOOKS.
 */
#include "base/clock.h"
#include "base/split_mix.h"
#include "scaler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEEDS 100u
#define KINDS 8u
#define LOOKS 301u

struct fleet {
        struct sl_scale_need needs[NEEDS];
        struct sl_scale_kind kinds[NEEDS * KINDS];
        struct sl_scaler_need need_words[NEEDS];
        struct sl_scaler_kind kind_words[NEEDS * KINDS];
        struct sl_scale_problem problem;
        uint64_t seed;
};

static double between(struct fleet *fleet, double least, double most)
{
        double share = (double)(sl_split_mix_next(&fleet->seed) >> 11) * 0x1p-53;

        return least * pow(most / least, share);
}

/* Faster kinds cost more, and less by the request: as of cores, batches and devices. */
static void make(struct fleet *fleet)
{
        memset(fleet, 0, sizeof(*fleet));
        fleet->seed = 1;
        fleet->problem = (struct sl_scale_problem){.needs = fleet->needs,
                .kinds = fleet->kinds,
                .n_needs = NEEDS,
                .n_kinds = NEEDS * KINDS,
                .resources = {{4000, false}, {4e6, true}, {INFINITY, false}, {INFINITY, false}},
                .slack = 1.05,
                .lambda = 0.1};
        for (uint32_t i = 0; i < NEEDS; i++) {
                fleet->needs[i] = (struct sl_scale_need){.load = between(fleet, 1, 300), .first = i * KINDS, .n = KINDS};
                for (uint32_t k = 0; k < KINDS; k++) {
                        double rate = between(fleet, 5, 800);

                        fleet->kinds[i * KINDS + k] = (struct sl_scale_kind){.architecture = 0,
                                .cost = pow(rate, 0.7) * between(fleet, 0.7, 1.4),
                                .load_s = between(fleet, 0.02, 10),
                                .rate = rate,
                                .resources = {1 + k / 3, between(fleet, 10, 500)},
                                .most = 64};
                }
        }
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static void change_load(struct fleet *fleet, uint32_t need)
{
        fleet->needs[need].load = fmax(1, fmin(300, fleet->needs[need].load * between(fleet, 0.7, 1.4)));
}

/* Of a look after @changed loads have changed, nanoseconds. */
static void measure(enum sl_scaler scaler, uint32_t changed)
{
        static struct fleet fleet;
        struct sl_scaler_memory memory = {fleet.need_words, fleet.kind_words};
        uint64_t took[LOOKS], begun_ns;
        int32_t change[NEEDS * KINDS];
        uint64_t changes = 0;

        make(&fleet);
        for (uint32_t i = 0; i < LOOKS; i++) {
                for (uint32_t n = 0; n < changed; n++)
                        change_load(&fleet, (i + n) % NEEDS);
                begun_ns = sl_clock_ns();
                sl_scaler_look(scaler, &fleet.problem, 1, &memory, change);
                took[i] = sl_clock_ns() - begun_ns;
                for (uint32_t k = 0; k < NEEDS * KINDS; k++) {
                        fleet.kinds[k].n = (uint32_t)((int32_t)fleet.kinds[k].n + change[k]);
                        changes += change[k] != 0;
                }
        }
        qsort(took, LOOKS, sizeof(*took), compare);
        printf("%-10s %14u %12.1f %12.1f %16.1f\n", sl_scaler_name(scaler), changed, (double)took[LOOKS / 2] / 1e3,
                (double)took[LOOKS - 1] / 1e3, (double)changes / LOOKS);
}

int main(void)
{
        static const uint32_t changed[] = {NEEDS, 1, 0};

        printf("%-10s %14s %12s %12s %16s\n", "scaler", "loads changed", "median (us)", "worst (us)", "changes a look");
        for (uint32_t s = 0; s < SL_SCALER_COUNT; s++)
                for (uint32_t i = 0; i < sizeof(changed) / sizeof(*changed); i++)
                        measure(s, changed[i]);
        return 0;
}
