/* SPDX-License-Identifier: Apache-2.0 */
#include "lets.h"

#include "cores.h"
#include "stats.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void single_let_init(struct sl_let *let, int core)
{
        *let = (struct sl_let){.turns = {.at_once = 1, .for_one = true}};
        CPU_SET(core, &let->cpus);
}

static void shared_let_init(struct sl_let *let, const cpu_set_t *cpus, uint32_t usable)
{
        uint32_t cores = (uint32_t)CPU_COUNT(cpus);

        *let = (struct sl_let){.cpus = *cpus, .turns.at_once = cores ? cores : usable};
        if (!let->turns.at_once)
                let->turns.at_once = 1;
}

static void show_let(struct sl_stats *stats, struct sl_let *let)
{
        struct sl_let_stats shown = {
                .n_cores = (uint32_t)CPU_COUNT(&let->cpus), .at_once = let->turns.at_once, .for_one = let->turns.for_one};

        if (let->turns.for_one)
                snprintf(shown.name, sizeof(shown.name), "core %d", sl_first_core(&let->cpus));
        else
                snprintf(shown.name, sizeof(shown.name), "worker cores");
        sl_cores_text(&let->cpus, shown.cores, sizeof(shown.cores));
        sl_stats_let_add(stats, &shown, &let->stats);
}

static void show_lets(struct sl_stats *stats, struct sl_lets *lets)
{
        show_let(stats, &lets->shared);
        for (uint32_t i = 0; i < lets->n_single; i++)
                show_let(stats, &lets->single[i]);
}

int sl_lets_new(const cpu_set_t *worker_cpus, const cpu_set_t *dispatcher_cpus, uint32_t usable, struct sl_stats *stats,
        struct sl_lets **ret_lets)
{
        size_t bytes = sizeof(struct sl_lets) + (size_t)CPU_COUNT(worker_cpus) * sizeof(struct sl_let);
        struct sl_lets *lets = aligned_alloc(alignof(struct sl_lets), bytes);

        if (!lets)
                return -ENOMEM;
        memset(lets, 0, bytes);
        shared_let_init(&lets->shared, worker_cpus, usable);
        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, worker_cpus) && !CPU_ISSET(core, dispatcher_cpus))
                        single_let_init(&lets->single[lets->n_single++], core);
        if (stats)
                show_lets(stats, lets);
        *ret_lets = lets;
        return 0;
}

struct sl_lets *sl_lets_free(struct sl_lets *lets)
{
        free(lets);
        return NULL;
}

void sl_lets_expect(struct sl_lets *lets, uint32_t workers)
{
        lets->enough = workers <= lets->n_single;
}

static uint32_t staying_workers(const struct sl_let *let, struct sl_let *const *leaving, uint32_t n_leaving)
{
        uint32_t n = let->n_assigned;

        for (uint32_t i = 0; i < n_leaving; i++)
                n -= leaving[i] == let;
        return n;
}

static struct sl_let *least_used(struct sl_lets *lets, struct sl_let *const *leaving, uint32_t n_leaving)
{
        struct sl_let *best = NULL;
        uint32_t fewest = UINT32_MAX;

        for (uint32_t i = 0; i < lets->n_single; i++) {
                uint32_t n = staying_workers(&lets->single[i], leaving, n_leaving);

                if (n < fewest) {
                        fewest = n;
                        best = &lets->single[i];
                }
        }
        return best;
}

static void change_workers(struct sl_let *let, int32_t change)
{
        let->n_assigned += (uint32_t)change;
        if (let->stats)
                sl_stats_let_workers(let->stats, let->n_assigned);
}

struct sl_let *sl_lets_assign(struct sl_lets *lets, struct sl_let *const *leaving, uint32_t n_leaving)
{
        struct sl_let *let = lets->enough && lets->n_single ? least_used(lets, leaving, n_leaving) : &lets->shared;

        change_workers(let, 1);
        return let;
}

void sl_lets_return(struct sl_let *let)
{
        change_workers(let, -1);
}
