/* SPDX-License-Identifier: Apache-2.0 */
#include "dominated.h"

#include <stdio.h>

static bool is_profiled(const struct registered *candidate)
{
        return candidate->state == REGISTERED_MADE && candidate->n_points > 0;
}

bool registered_dominates(const struct registered *a, const struct registered *b)
{
        bool better = a->accuracy > b->accuracy || a->weights_bytes < b->weights_bytes;
        uint32_t common = 0;

        if (a->accuracy < b->accuracy || a->weights_bytes > b->weights_bytes)
                return false;
        for (uint32_t i = 0; i < b->n_points; i++) {
                const struct registered_point *mine = registered_point_of(a, b->points[i].batch, b->points[i].threads);

                if (!mine)
                        continue;
                if (mine->latency_ns > b->points[i].latency_ns)
                        return false;
                better |= mine->latency_ns < b->points[i].latency_ns;
                common++;
        }
        return common && better;
}

/* Alike throughout. */
static bool is_equal(const struct registered *a, const struct registered *b)
{
        if (a->accuracy < b->accuracy || a->accuracy > b->accuracy || a->weights_bytes < b->weights_bytes ||
                a->weights_bytes > b->weights_bytes || a->n_points != b->n_points)
                return false;
        for (uint32_t i = 0; i < b->n_points; i++) {
                const struct registered_point *mine = registered_point_of(a, b->points[i].batch, b->points[i].threads);

                if (!mine || mine->latency_ns < b->points[i].latency_ns || mine->latency_ns > b->points[i].latency_ns)
                        return false;
        }
        return true;
}

static bool is_beaten(const struct registered *candidates, uint32_t n, uint32_t i, uint32_t *ret_by)
{
        for (uint32_t k = 0; k < n; k++) {
                if (k == i || !is_profiled(&candidates[k]))
                        continue;
                if (registered_dominates(&candidates[k], &candidates[i]) || (k < i && is_equal(&candidates[k], &candidates[i]))) {
                        *ret_by = k;
                        return true;
                }
        }
        return false;
}

/* One that dominates and is not dominated: better and better ones come to an end. */
static uint32_t find_best(const struct registered *candidates, uint32_t n, uint32_t i)
{
        uint32_t by = i;

        for (uint32_t steps = 0; steps < n && is_beaten(candidates, n, i, &by); steps++)
                i = by;
        return i;
}

void registered_leave_out(struct registered *candidates, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                struct registered *candidate = &candidates[i];
                uint32_t by = is_profiled(candidate) ? find_best(candidates, n, i) : i;

                if (by != i)
                        snprintf(candidate->reason, sizeof(candidate->reason),
                                "%.200s is no less accurate, never slower and no larger", candidates[by].name);
        }
}
