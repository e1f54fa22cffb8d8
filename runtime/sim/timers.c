/* SPDX-License-Identifier: Apache-2.0 */
#include "timers.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>

struct timer {
        uint64_t at_ns, number;
        uint32_t kind, worker;
};

struct sl_sim_timers {
        uint32_t n, most;
        uint64_t number;
        struct timer heap[];
};

int sl_sim_timers_new(uint32_t most, struct sl_sim_timers **ret_timers)
{
        struct sl_sim_timers *timers = calloc(1, sizeof(*timers) + most * sizeof(timers->heap[0]));

        if (!timers)
                return -ENOMEM;
        timers->most = most;
        *ret_timers = timers;
        return 0;
}

struct sl_sim_timers *sl_sim_timers_free(struct sl_sim_timers *timers)
{
        free(timers);
        return NULL;
}

static bool is_before(const struct timer *a, const struct timer *b)
{
        return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

void sl_sim_timers_add(struct sl_sim_timers *timers, uint64_t at_ns, uint32_t kind, uint32_t worker)
{
        struct timer timer = {.at_ns = at_ns, .number = timers->number++, .kind = kind, .worker = worker};
        uint32_t i = timers->n++;

        SL_ASSERT(i < timers->most);
        for (; i && is_before(&timer, &timers->heap[(i - 1) / 2]); i = (i - 1) / 2)
                timers->heap[i] = timers->heap[(i - 1) / 2];
        timers->heap[i] = timer;
}

uint64_t sl_sim_timers_next_ns(const struct sl_sim_timers *timers)
{
        return timers->n ? timers->heap[0].at_ns : UINT64_MAX;
}

static void sift_down(struct sl_sim_timers *timers, struct timer timer)
{
        uint32_t i = 0, child;

        while ((child = 2 * i + 1) < timers->n) {
                child += child + 1 < timers->n && is_before(&timers->heap[child + 1], &timers->heap[child]);
                if (!is_before(&timers->heap[child], &timer))
                        break;
                timers->heap[i] = timers->heap[child];
                i = child;
        }
        timers->heap[i] = timer;
}

bool sl_sim_timers_take(struct sl_sim_timers *timers, uint64_t now_ns, uint32_t *ret_kind, uint32_t *ret_worker)
{
        if (sl_sim_timers_next_ns(timers) > now_ns || !timers->n)
                return false;
        *ret_kind = timers->heap[0].kind;
        *ret_worker = timers->heap[0].worker;
        timers->n--;
        if (timers->n)
                sift_down(timers, timers->heap[timers->n]);
        return true;
}
