/* SPDX-License-Identifier: Apache-2.0 */
#include "scaler_rules.h"

#include <math.h>
#include <stddef.h>

struct step {
        uint32_t kind;
        int32_t n;
        double cost;
};

static const struct sl_scale_kind *kind_at(const struct sl_scale_room *room, uint32_t k)
{
        return &room->problem->kinds[k];
}

/* The cheapest so far; what does not fit is none. */
static void offer(const struct sl_scale_room *room, uint32_t k, double lacking, struct step *best)
{
        const struct sl_scale_kind *kind = kind_at(room, k);
        double n = ceil(lacking / kind->rate), cost = n * (kind->cost + room->problem->lambda * kind->load_s);

        if (cost < best->cost && n <= sl_scale_room_for(room, k))
                *best = (struct step){.kind = k, .n = (int32_t)n, .cost = cost};
}

/* A variant that runs, or one of its architecture that does more; any where none runs. */
static bool is_way_up(const struct sl_scale_room *room, const struct sl_scale_need *need, uint32_t k)
{
        bool any_runs = false;

        if (!sl_scale_suits(need, kind_at(room, k)))
                return false;
        for (uint32_t v = need->first; v < need->first + need->n; v++) {
                const struct sl_scale_kind *running = kind_at(room, v);

                if (!running->n || !sl_scale_suits(need, running))
                        continue;
                if (v == k || (running->architecture == kind_at(room, k)->architecture && kind_at(room, k)->rate > running->rate))
                        return true;
                any_runs = true;
        }
        return !any_runs;
}

static bool scale_up(struct sl_scale_room *room, const struct sl_scale_need *need, double lacking)
{
        struct step best = {.cost = INFINITY};

        for (uint32_t k = need->first; k < need->first + need->n; k++)
                if (is_way_up(room, need, k))
                        offer(room, k, lacking, &best);
        if (isinf(best.cost))
                return false;
        sl_scale_room_add(room, best.kind, best.n);
        return true;
}

/* Cheaper ones of its architecture for an instance of @v, without which so much is lacking; they cost less than that. */
static struct step find_downgrade(const struct sl_scale_room *room, const struct sl_scale_need *need, uint32_t v, double lacking)
{
        struct step best = {.cost = INFINITY};

        for (uint32_t k = need->first; k < need->first + need->n; k++) {
                const struct sl_scale_kind *kind = kind_at(room, k);
                double n = ceil(lacking / kind->rate);

                if (k == v || kind->architecture != kind_at(room, v)->architecture || kind->cost >= kind_at(room, v)->cost ||
                        n * kind->cost >= kind_at(room, v)->cost || !sl_scale_suits(need, kind))
                        continue;
                offer(room, k, lacking, &best);
        }
        return best;
}

/* Return: an instance of @v has gone. */
static bool look_down(struct sl_scale_room *room, const struct sl_scale_need *need, uint32_t v, double spare, double since_s,
        struct sl_scaler_kind *memory)
{
        const struct sl_scale_kind *kind = kind_at(room, v);
        struct step downgrade = {.cost = INFINITY};
        double without = sl_scale_suits(need, kind) ? spare - kind->rate : spare;

        if (without < 0)
                downgrade = find_downgrade(room, need, v, -without);
        if (!kind->n || (without < 0 && isinf(downgrade.cost))) {
                memory->spare_s = 0;
                return false;
        }
        memory->spare_s += since_s;
        if (memory->spare_s < kind->load_s)
                return false;
        memory->spare_s = 0;
        if (without < 0)
                sl_scale_room_add(room, downgrade.kind, downgrade.n);
        sl_scale_room_add(room, v, -1);
        return true;
}

static enum sl_scale_verdict scale_need(struct sl_scale_room *room, const struct sl_scale_need *need, double since_s,
        struct sl_scaler_kind *kinds, struct sl_scaler_need *memory)
{
        double capacity = sl_scale_capacity(room->problem, need, NULL);
        bool shrinks = false;

        memory->required = room->problem->slack * need->load;
        if (capacity < memory->required) {
                for (uint32_t k = need->first; k < need->first + need->n; k++)
                        kinds[k].spare_s = 0;
                return scale_up(room, need, memory->required - capacity) ? SL_SCALE_GROWS : SL_SCALE_LACKS;
        }
        for (uint32_t k = need->first; k < need->first + need->n && !shrinks; k++)
                shrinks = look_down(room, need, k, capacity - memory->required, since_s, &kinds[k]);
        return shrinks ? SL_SCALE_SHRINKS : SL_SCALE_STEADY;
}

uint32_t sl_infaas_scale(struct sl_scale_room *room, double since_s, struct sl_scaler_memory *memory)
{
        uint32_t lacking = 0;

        for (uint32_t i = 0; i < room->problem->n_needs; i++) {
                memory->needs[i].verdict = scale_need(room, &room->problem->needs[i], since_s, memory->kinds, &memory->needs[i]);
                lacking += memory->needs[i].verdict == SL_SCALE_LACKS;
        }
        return lacking;
}
