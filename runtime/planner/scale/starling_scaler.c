/* SPDX-License-Identifier: Apache-2.0 */
#include "arrival_rate.h"
#include "covering.h"
#include "scaler_rules.h"

#include <math.h>
#include <stddef.h>

#define SPAN_LEAST_S 1.0 /* what was required is remembered at least so long */
#define WORTH        1e-9

#define OVERLOADED_SLACK 1.05 /* of what runs, where that does not do */

static const struct sl_scale_kind *kinds_of(const struct sl_scale_room *room, const struct sl_scale_need *need)
{
        return &room->problem->kinds[need->first];
}

/* When what is asked for now would serve: that of the fastest to load, as long as nothing is known of what is taken. */
static double least_load_s(const struct sl_scale_room *room, const struct sl_scale_need *need)
{
        double least = INFINITY;

        for (uint32_t i = 0; i < need->n; i++)
                if (sl_scale_suits(need, &kinds_of(room, need)[i]))
                        least = fmin(least, kinds_of(room, need)[i].load_s);
        return isinf(least) ? 0 : least;
}

static double required_in(const struct sl_scale_room *room, const struct sl_scale_need *need, double seconds)
{
        double forecast = sl_arrival_forecast(need->load, need->trend, need->burst, seconds);

        return fmax(room->problem->slack * need->load, forecast);
}

/* ---- what was required lately ---- */

static double span_of(const struct sl_scale_room *room, const struct sl_scale_need *need)
{
        double span = SPAN_LEAST_S;

        for (uint32_t i = 0; i < need->n; i++)
                if (kinds_of(room, need)[i].n)
                        span = fmax(span, kinds_of(room, need)[i].load_s);
        return span;
}

static void hold(struct sl_scaler_need *memory, double since_s, double span_s)
{
        memory->span_s += since_s;
        if (memory->span_s >= span_s) {
                memory->held[1] = memory->span_s < 2 * span_s ? memory->held[0] : 0;
                memory->held[0] = 0;
                memory->span_s = 0;
        }
        memory->held[0] = fmax(memory->held[0], memory->required);
}

/* ---- one need ---- */

/* The objective's value of going over to @count. */
static double cost_of(const struct sl_scale_room *room, const struct sl_scale_need *need, const uint32_t *count)
{
        double cost = 0;

        for (uint32_t i = 0; i < need->n; i++) {
                const struct sl_scale_kind *kind = &kinds_of(room, need)[i];
                double change = (double)count[i] - kind->n;

                cost += change * (kind->cost + (change > 0 ? room->problem->lambda * kind->load_s : 0));
        }
        return cost;
}

static void go_over(struct sl_scale_room *room, const struct sl_scale_need *need, const uint32_t *count)
{
        for (uint32_t i = 0; i < need->n; i++)
                sl_scale_room_add(room, need->first + i, (int32_t)count[i] - (int32_t)kinds_of(room, need)[i].n);
}

static double slowest_new_s(const struct sl_scale_room *room, const struct sl_scale_need *need, const uint32_t *count)
{
        double slowest = 0;

        for (uint32_t i = 0; i < need->n; i++)
                if (count[i] > kinds_of(room, need)[i].n)
                        slowest = fmax(slowest, kinds_of(room, need)[i].load_s);
        return slowest;
}

/* All that runs and suits stays, and what adds most for its share of what is scarce comes, as long as it fits. */
static void take_what_there_is(struct sl_scale_room *room, const struct sl_scale_need *need, double lacking)
{
        while (lacking > 0) {
                uint32_t best = need->n;

                for (uint32_t i = 0; i < need->n; i++)
                        if (sl_scale_suits(need, &kinds_of(room, need)[i]) && sl_scale_room_for(room, need->first + i) &&
                                (best == need->n || kinds_of(room, need)[i].rate > kinds_of(room, need)[best].rate))
                                best = i;
                if (best == need->n)
                        return;
                sl_scale_room_add(room, need->first + best, 1);
                lacking -= kinds_of(room, need)[best].rate;
        }
}

/*
 * It requires more than what runs: for when that would serve, if it can be, else for less. A plan that takes longer to load than
 * was looked ahead is looked at once more, as far ahead as that.
 */
static enum sl_scale_verdict grow(struct sl_scale_room *room, const struct sl_scale_need *need, double required, double capacity)
{
        const double wanted[] = {required, room->problem->slack * need->load, need->load};
        uint32_t count[SL_SCALE_KINDS_MAX];

        for (uint32_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
                uint32_t further[SL_SCALE_KINDS_MAX];
                double further_required;

                if (wanted[i] <= capacity && i)
                        break; /* what runs does as much */
                if (isinf(sl_scale_cover(room, need, wanted[i], count)))
                        continue;
                further_required = required_in(room, need, slowest_new_s(room, need, count));
                if (i == 0 && further_required > required && isfinite(sl_scale_cover(room, need, further_required, further)))
                        go_over(room, need, further);
                else
                        go_over(room, need, count);
                return i == 0 ? SL_SCALE_GROWS : SL_SCALE_LACKS;
        }
        take_what_there_is(room, need, required - capacity);
        return SL_SCALE_LACKS;
}

static enum sl_scale_verdict shrink(struct sl_scale_room *room, const struct sl_scale_need *need, double held)
{
        uint32_t count[SL_SCALE_KINDS_MAX];
        double least = INFINITY, price = 0;

        for (uint32_t i = 0; i < need->n; i++) {
                const struct sl_scale_kind *kind = &kinds_of(room, need)[i];

                price += kind->n * kind->cost;
                if (sl_scale_suits(need, kind))
                        least = fmin(least, kind->cost / kind->rate);
        }
        if (price <= held * least || isinf(sl_scale_cover(room, need, held, count)) || cost_of(room, need, count) > -WORTH)
                return SL_SCALE_STEADY;
        go_over(room, need, count);
        return SL_SCALE_SHRINKS;
}

/* ---- all ---- */

/* Which of those that wait for their turn lacks most; there is one. */
static uint32_t shortest(const struct sl_scale_room *room, const struct sl_scaler_memory *memory)
{
        const struct sl_scale_problem *problem = room->problem;
        uint32_t found = problem->n_needs;
        double least = INFINITY;

        for (uint32_t i = 0; i < problem->n_needs; i++) {
                double share;

                if (!memory->needs[i].waits)
                        continue;
                share = sl_scale_capacity(problem, &problem->needs[i], NULL) / memory->needs[i].required;
                if (share < least) {
                        least = share;
                        found = i;
                }
        }
        return found;
}

/* What it requires, and whether that is more than what runs. */
static void look_at_need(
        const struct sl_scale_room *room, const struct sl_scale_need *need, double since_s, struct sl_scaler_need *memory)
{
        double capacity = sl_scale_capacity(room->problem, need, NULL);

        memory->required = required_in(room, need, least_load_s(room, need));
        memory->kept_s = fmax(0, memory->kept_s - since_s);
        if (need->is_overloaded) {
                memory->required = fmax(memory->required, OVERLOADED_SLACK * capacity);
                memory->kept_s = span_of(room, need);
        }
        hold(memory, since_s, span_of(room, need));
        memory->waits = capacity < memory->required;
}

uint32_t sl_starling_scale(struct sl_scale_room *room, double since_s, struct sl_scaler_memory *memory)
{
        const struct sl_scale_problem *problem = room->problem;
        uint32_t lacking = 0, growing = 0;

        for (uint32_t i = 0; i < problem->n_needs; i++) {
                struct sl_scaler_need *its = &memory->needs[i];

                look_at_need(room, &problem->needs[i], since_s, its);
                growing += its->waits;
                if (!its->waits)
                        its->verdict = its->kept_s > 0 ? SL_SCALE_STEADY
                                                       : shrink(room, &problem->needs[i], fmax(its->held[0], its->held[1]));
        }
        for (uint32_t turn = 0; turn < growing; turn++) {
                uint32_t i = shortest(room, memory);

                memory->needs[i].waits = false;
                memory->needs[i].verdict = grow(
                        room, &problem->needs[i], memory->needs[i].required, sl_scale_capacity(problem, &problem->needs[i], NULL));
                lacking += memory->needs[i].verdict == SL_SCALE_LACKS;
        }
        return lacking;
}
