/* SPDX-License-Identifier: Apache-2.0 */
#include "covering.h"

#include <math.h>
#include <string.h>

#define NODES 2000u
#define ITEMS (2 * SL_SCALE_KINDS_MAX)
/* Of doubles that add up to what is required. */
#define EXACT 1e-9

/* Instances of a kind that run, or that would be loaded. */
struct item {
        const struct sl_scale_kind *kind;
        uint32_t number; /* of the need's kinds */
        uint32_t most;
        bool is_new;
        double price;
};

struct search {
        const struct sl_scale_problem *problem;
        struct item items[ITEMS];
        double least[ITEMS + 1]; /* price of a request a second, of this item and those behind it */
        uint32_t n, nodes;
        uint32_t count[ITEMS], best_count[ITEMS];
        double best;
};

static double price_of_rate(const struct item *item)
{
        return item->price / item->kind->rate;
}

/* What runs first, so that what it holds is known when something comes; of both the best price first. */
static bool is_before(const struct item *a, const struct item *b)
{
        return a->is_new != b->is_new ? b->is_new : price_of_rate(a) < price_of_rate(b);
}

static void add_item(struct search *search, const struct item *item)
{
        uint32_t i = search->n++;

        for (; i && is_before(item, &search->items[i - 1]); i--)
                search->items[i] = search->items[i - 1];
        search->items[i] = *item;
}

static void take(const struct search *search, const struct item *item, uint32_t n, double free[SL_SCALE_RESOURCES])
{
        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                if (item->is_new || !search->problem->resources[i].both)
                        free[i] -= n * item->kind->resources[i];
}

static uint32_t most_of(const struct item *item, double lacking, const double free[SL_SCALE_RESOURCES])
{
        double wanted = ceil(lacking / item->kind->rate - EXACT);
        uint32_t most = wanted < item->most ? (uint32_t)fmax(wanted, 1) : item->most;
        uint32_t fit = item->is_new ? sl_scale_fit(item->kind, free) : most;

        return fit < most ? fit : most;
}

static void descend(struct search *search, uint32_t i, double lacking, double price, const double free[SL_SCALE_RESOURCES])
{
        if (lacking <= EXACT) {
                if (price < search->best) {
                        search->best = price;
                        memset(search->best_count, 0, sizeof(search->best_count));
                        memcpy(search->best_count, search->count, i * sizeof(*search->count));
                }
                return;
        }
        if (i == search->n || ++search->nodes > NODES || price + lacking * search->least[i] >= search->best)
                return;
        for (uint32_t n = most_of(&search->items[i], lacking, free) + 1; n-- > 0;) {
                double left[SL_SCALE_RESOURCES];

                memcpy(left, free, sizeof(left));
                take(search, &search->items[i], n, left);
                search->count[i] = n;
                descend(search, i + 1, lacking - n * search->items[i].kind->rate, price + n * search->items[i].price, left);
        }
}

static void list_items(struct search *search, const struct sl_scale_room *room, const struct sl_scale_need *need)
{
        for (uint32_t i = 0; i < need->n; i++) {
                const struct sl_scale_kind *kind = &room->problem->kinds[need->first + i];
                struct item item = {.kind = kind, .number = i, .most = kind->n, .price = kind->cost};

                if (!sl_scale_suits(need, kind))
                        continue;
                if (kind->n)
                        add_item(search, &item);
                if (kind->most > kind->n) {
                        item.is_new = true;
                        item.most = kind->most - kind->n;
                        item.price += room->problem->lambda * kind->load_s;
                        add_item(search, &item);
                }
        }
        search->least[search->n] = INFINITY;
        for (uint32_t i = search->n; i-- > 0;)
                search->least[i] = fmin(search->least[i + 1], price_of_rate(&search->items[i]));
}

/* A kind that stays in part must not come as well: of equal price it does not, and what runs is never dearer. */
double sl_scale_cover(
        const struct sl_scale_room *room, const struct sl_scale_need *need, double required, uint32_t ret_count[SL_SCALE_KINDS_MAX])
{
        struct search search = {.problem = room->problem, .best = INFINITY};
        double free[SL_SCALE_RESOURCES];

        memcpy(free, room->free, sizeof(free));
        for (uint32_t k = need->first; k < need->first + need->n; k++)
                for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                        if (!room->problem->resources[i].both && sl_scale_suits(need, &room->problem->kinds[k]))
                                free[i] += room->problem->kinds[k].n * room->problem->kinds[k].resources[i];
        list_items(&search, room, need);
        descend(&search, 0, required, 0, free);
        memset(ret_count, 0, SL_SCALE_KINDS_MAX * sizeof(*ret_count));
        for (uint32_t i = 0; i < search.n && isfinite(search.best); i++)
                ret_count[search.items[i].number] += search.best_count[i];
        return search.best;
}
