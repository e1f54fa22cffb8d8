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

/* @name: of those that are neither one core nor all of them. */
static void show_let(struct sl_stats *stats, struct sl_let *let, const char *name)
{
        struct sl_let_stats shown = {
                .n_cores = (uint32_t)CPU_COUNT(&let->cpus), .at_once = let->turns.at_once, .for_one = let->turns.for_one};

        if (let->turns.for_one)
                snprintf(shown.name, sizeof(shown.name), "core %d", sl_first_core(&let->cpus));
        else
                snprintf(shown.name, sizeof(shown.name), "%s", name);
        sl_cores_text(&let->cpus, shown.cores, sizeof(shown.cores));
        sl_stats_let_add(stats, &shown, &let->stats);
}

static void show_lets(struct sl_stats *stats, struct sl_lets *lets)
{
        show_let(stats, &lets->shared, "worker cores");
        for (uint32_t i = 0; i < lets->n_single; i++)
                show_let(stats, &lets->single[i], NULL);
}

static struct sl_let *lets_alloc(uint32_t n)
{
        size_t bytes = n * sizeof(struct sl_let);
        struct sl_let *lets = aligned_alloc(alignof(struct sl_let), bytes);

        return lets ? memset(lets, 0, bytes) : NULL;
}

int sl_lets_new(const cpu_set_t *worker_cpus, const cpu_set_t *dispatcher_cpus, uint32_t usable, struct sl_stats *stats,
        struct sl_lets **ret_lets)
{
        struct sl_lets *lets = aligned_alloc(alignof(struct sl_lets), sizeof(*lets));
        struct sl_let *single = lets_alloc((uint32_t)CPU_COUNT(worker_cpus) + 1);

        if (!lets || !single) {
                free(lets);
                free(single);
                return -ENOMEM;
        }
        memset(lets, 0, sizeof(*lets));
        lets->single = single;
        lets->stats = stats;
        lets->allowed = *worker_cpus;
        if (CPU_COUNT(worker_cpus) == 0)
                sched_getaffinity(0, sizeof(lets->allowed), &lets->allowed);
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
        if (!lets)
                return NULL;
        for (uint32_t i = 0; i < lets->n_named; i++)
                free(lets->named[i]);
        free(lets->single);
        free(lets);
        return NULL;
}

bool sl_lets_allow(const struct sl_lets *lets, const cpu_set_t *cores)
{
        cpu_set_t both;

        CPU_AND(&both, &lets->allowed, cores);
        return CPU_EQUAL(&both, cores);
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

/* Return: NULL where no more can be made. */
static struct sl_let *named_let(struct sl_lets *lets, const cpu_set_t *cores)
{
        char text[64], name[80];
        struct sl_let *let;

        if (CPU_EQUAL(&lets->allowed, cores))
                return &lets->shared;
        for (uint32_t i = 0; i < lets->n_named; i++)
                if (CPU_EQUAL(&lets->named[i]->cpus, cores))
                        return lets->named[i];
        let = lets->n_named < SL_LETS_NAMED_MAX ? lets_alloc(1) : NULL;
        if (!let)
                return NULL;
        shared_let_init(let, cores, 1);
        lets->named[lets->n_named++] = let;
        snprintf(name, sizeof(name), "cores %s", sl_cores_text(cores, text, sizeof(text)));
        if (lets->stats)
                show_let(lets->stats, let, name);
        return let;
}

struct sl_let *sl_lets_assign(struct sl_lets *lets, const cpu_set_t *cores, struct sl_let *const *leaving, uint32_t n_leaving)
{
        struct sl_let *let = NULL;

        if (CPU_COUNT(cores))
                let = named_let(lets, cores);
        else if (lets->enough && lets->n_single)
                let = least_used(lets, leaving, n_leaving);
        let = let ? let : &lets->shared;
        change_workers(let, 1);
        return let;
}

void sl_lets_return(struct sl_let *let)
{
        change_workers(let, -1);
}
