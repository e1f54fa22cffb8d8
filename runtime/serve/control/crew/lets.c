/* SPDX-License-Identifier: Apache-2.0 */
#include "lets.h"

#include "base/utf8.h"
#include "cores.h"
#include "stats.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_SHARED, KIND_SINGLE, KIND_NAMED, KIND_GPU };

/* Jobs on a GPU run beside each other, on streams of their own: as good as any number. */
#define GPU_AT_ONCE 1024

static void show_let(struct sl_stats *stats, struct sl_let *let)
{
        char cores[sizeof((struct sl_let_stats){0}.name) - sizeof("cores ") + 1];
        struct sl_let_stats shown = {
                .n_cores = (uint32_t)CPU_COUNT(&let->cpus), .at_once = let->turns.at_once, .for_one = let->turns.for_one};

        sl_cores_text(&let->cpus, shown.cores, sizeof(shown.cores));
        if (let->kind == KIND_GPU)
                snprintf(shown.name, sizeof(shown.name), "%s", let->gpu.name);
        else if (let->kind == KIND_SHARED)
                snprintf(shown.name, sizeof(shown.name), "worker cores");
        else
                snprintf(shown.name, sizeof(shown.name), "%s %s", let->kind == KIND_SINGLE ? "core" : "cores",
                        sl_utf8_fit(shown.cores, cores, sizeof(cores)));
        sl_stats_let_add(stats, &shown, &let->stats);
}

static struct sl_let *let_new(struct sl_lets *lets, enum kind kind, const cpu_set_t *cpus, uint32_t at_once)
{
        struct sl_let *let = lets->n < SL_LETS_MAX ? aligned_alloc(alignof(struct sl_let), sizeof(*let)) : NULL;

        if (!let)
                return NULL;
        memset(let, 0, sizeof(*let));
        *let = (struct sl_let){.cpus = *cpus,
                .kind = kind,
                .turns = {.at_once = at_once ? at_once : 1, .for_one = kind == KIND_SINGLE},
                .next = lets->all};
        lets->all = let;
        lets->n++;
        return let;
}

static struct sl_let *find(const struct sl_lets *lets, enum kind kind, const cpu_set_t *cpus, uint32_t at_once)
{
        struct sl_let *let = lets->all;

        while (let && (let->kind != kind || !CPU_EQUAL(&let->cpus, cpus) || let->turns.at_once != at_once))
                let = let->next;
        return let;
}

/* One that was there before, or a new one; NULL where no more can be made. */
static struct sl_let *let_of(struct sl_lets *lets, enum kind kind, const cpu_set_t *cpus, uint32_t at_once)
{
        struct sl_let *let = find(lets, kind, cpus, at_once);

        if (let)
                let->stale = false;
        else if ((let = let_new(lets, kind, cpus, at_once)) && lets->stats)
                show_let(lets->stats, let);
        return let;
}

bool sl_lets_allow(const struct sl_lets *lets, const cpu_set_t *cores)
{
        cpu_set_t both;

        CPU_AND(&both, &lets->allowed, cores);
        return CPU_EQUAL(&both, cores);
}

/* Of the cores that are there: all together, and each by itself; what has lost one is stale. Return: false without memory. */
static bool make_lets(struct sl_lets *lets, uint32_t usable)
{
        bool any = CPU_COUNT(&lets->configured) == 0;
        const cpu_set_t none = {0};
        struct sl_let *shared = let_of(lets, KIND_SHARED, any ? &none : &lets->allowed, usable ? usable : 1);

        for (struct sl_let *let = lets->all; let; let = let->next)
                let->stale = !sl_lets_allow(lets, &let->cpus) || (let->kind == KIND_SHARED && let != shared);
        lets->shared = shared ? shared : lets->shared;
        for (int core = 0; core < CPU_SETSIZE && !any; core++) {
                cpu_set_t one;

                CPU_ZERO(&one);
                CPU_SET(core, &one);
                if (CPU_ISSET(core, &lets->allowed) && !CPU_ISSET(core, &lets->dispatcher))
                        let_of(lets, KIND_SINGLE, &one, 1);
        }
        return lets->shared;
}

int sl_lets_new(const cpu_set_t *worker_cpus, const cpu_set_t *dispatcher_cpus, uint32_t usable, struct sl_stats *stats,
        struct sl_lets **ret_lets)
{
        struct sl_lets *lets = calloc(1, sizeof(*lets));

        if (!lets)
                return -ENOMEM;
        *lets = (struct sl_lets){
                .configured = *worker_cpus, .allowed = *worker_cpus, .dispatcher = *dispatcher_cpus, .stats = stats};
        if (CPU_COUNT(worker_cpus) == 0)
                sched_getaffinity(0, sizeof(lets->allowed), &lets->allowed);
        else
                usable = (uint32_t)CPU_COUNT(worker_cpus);
        if (!make_lets(lets, usable)) {
                sl_lets_free(lets);
                return -ENOMEM;
        }
        *ret_lets = lets;
        return 0;
}

struct sl_lets *sl_lets_free(struct sl_lets *lets)
{
        while (lets && lets->all) {
                struct sl_let *let = lets->all;

                lets->all = let->next;
                free(let);
        }
        free(lets);
        return NULL;
}

/* A process that has no core of those that are configured runs where it can. */
bool sl_lets_update(struct sl_lets *lets, const cpu_set_t *usable)
{
        cpu_set_t allowed = *usable;

        if (CPU_COUNT(&lets->configured))
                CPU_AND(&allowed, usable, &lets->configured);
        if (CPU_COUNT(&allowed) == 0)
                allowed = *usable;
        if (CPU_EQUAL(&allowed, &lets->allowed))
                return false;
        lets->allowed = allowed;
        make_lets(lets, (uint32_t)CPU_COUNT(&allowed));
        return true;
}

void sl_lets_fit(const struct sl_lets *lets, const struct sl_worker_set *set, struct sl_worker_set *ret_set)
{
        struct sl_worker_set fit = {.n = 0};

        for (uint32_t i = 0; i < set->n; i++) {
                struct sl_worker_wish wish = set->wishes[i];

                CPU_AND(&wish.cores, &set->wishes[i].cores, &lets->allowed);
                if (CPU_COUNT(&wish.cores) || !CPU_COUNT(&set->wishes[i].cores))
                        fit.wishes[fit.n++] = wish;
        }
        if (!fit.n && set->n) {
                fit.wishes[fit.n] = set->wishes[0];
                CPU_ZERO(&fit.wishes[fit.n++].cores);
        }
        *ret_set = fit;
}

/* Of @cores those that this process has at this moment, but @others. False: there are none. */
static bool leave_out(const cpu_set_t *cores, const cpu_set_t *others, cpu_set_t *ret_cores)
{
        cpu_set_t usable;

        if (sched_getaffinity(0, sizeof(usable), &usable) < 0)
                return false;
        CPU_AND(&usable, &usable, cores);
        CPU_AND(ret_cores, &usable, others);
        CPU_XOR(ret_cores, ret_cores, &usable);
        return CPU_COUNT(ret_cores);
}

cpu_set_t sl_lets_start_cores(const struct sl_lets *lets, const cpu_set_t *cores, bool background)
{
        const cpu_set_t none = {0};
        cpu_set_t quiet;

        cores = cores ? cores : &lets->allowed;
        if (background && CPU_COUNT(cores) && CPU_COUNT(&lets->dispatcher) &&
                (leave_out(cores, &lets->dispatcher, &quiet) || leave_out(&lets->allowed, &lets->dispatcher, &quiet)))
                return quiet;
        return cores == &lets->allowed ? none : *cores;
}

void sl_lets_expect(struct sl_lets *lets, uint32_t workers)
{
        lets->expected = workers;
}

void sl_lets_expect_further(struct sl_lets *lets, uint32_t workers)
{
        lets->further = workers;
}

/* Cores that a worker may have for itself. */
static uint32_t count_single(const struct sl_lets *lets)
{
        uint32_t n = 0;

        for (const struct sl_let *let = lets->all; let; let = let->next)
                n += let->kind == KIND_SINGLE && !let->stale;
        return n;
}

uint32_t sl_lets_each(const struct sl_lets *lets)
{
        uint32_t single = count_single(lets), expected = lets->expected + lets->further, all = (uint32_t)CPU_COUNT(&lets->allowed);

        if (single > expected)
                return single - expected + 1;
        return all ? all : 1;
}

static uint32_t staying_workers(const struct sl_let *let, struct sl_let *const *leaving, uint32_t n_leaving)
{
        uint32_t n = let->n_assigned;

        for (uint32_t i = 0; i < n_leaving; i++)
                n -= leaving[i] == let;
        return n;
}

/* No worker is on its cores, whichever let that has. */
static bool is_idle(const struct sl_lets *lets, const struct sl_let *let)
{
        for (const struct sl_let *other = lets->all; other; other = other->next) {
                cpu_set_t both;

                CPU_AND(&both, &let->cpus, &other->cpus);
                if (other->n_assigned && CPU_COUNT(&both))
                        return false;
        }
        return true;
}

static bool has_room_for_each(const struct sl_lets *lets)
{
        return lets->expected + lets->further <= count_single(lets);
}

/* NULL where there are not enough for all. Of those with as few workers the lowest core, which was made first. */
static struct sl_let *least_used(const struct sl_lets *lets, struct sl_let *const *leaving, uint32_t n_leaving)
{
        struct sl_let *best = NULL;
        uint32_t fewest = UINT32_MAX;

        for (struct sl_let *let = lets->all; let; let = let->next) {
                uint32_t n;

                if (let->kind != KIND_SINGLE || let->stale)
                        continue;
                n = staying_workers(let, leaving, n_leaving);
                if (n < fewest || (n == fewest && let->left <= best->left)) {
                        fewest = n;
                        best = let;
                }
        }
        return best;
}

bool sl_lets_have_idle(const struct sl_lets *lets, const struct sl_let *let)
{
        const struct sl_let *next;

        if (let->kind != KIND_SINGLE || !has_room_for_each(lets))
                return false;
        next = least_used(lets, NULL, 0);
        return next && is_idle(lets, next);
}

void sl_lets_note_departure(struct sl_lets *lets, struct sl_let *let)
{
        let->left = ++lets->n_left;
}

static void change_workers(struct sl_let *let, int32_t change)
{
        let->n_assigned += (uint32_t)change;
        if (let->stats)
                sl_stats_let_workers(let->stats, let->n_assigned);
}

struct sl_let *sl_lets_assign(struct sl_lets *lets, const cpu_set_t *cores, struct sl_let *const *leaving, uint32_t n_leaving)
{
        struct sl_let *let = NULL;

        if (CPU_COUNT(cores) == 0)
                let = has_room_for_each(lets) ? least_used(lets, leaving, n_leaving) : NULL;
        else if (!CPU_EQUAL(&lets->allowed, cores))
                let = let_of(lets, KIND_NAMED, cores, (uint32_t)CPU_COUNT(cores));
        let = let ? let : lets->shared;
        change_workers(let, 1);
        return let;
}

struct sl_let *sl_lets_assign_gpu(struct sl_lets *lets, const struct sl_gpu_let *gpu)
{
        const cpu_set_t none = {0};
        struct sl_let *let = lets->all;

        while (let && strcmp(let->gpu.name, gpu->name) != 0)
                let = let->next;
        if (!let && (let = let_new(lets, KIND_GPU, &none, GPU_AT_ONCE))) {
                let->gpu = *gpu;
                if (lets->stats)
                        show_let(lets->stats, let);
        }
        if (let)
                change_workers(let, 1);
        return let;
}

void sl_lets_return(struct sl_let *let)
{
        change_workers(let, -1);
}
