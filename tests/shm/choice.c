/* SPDX-License-Identifier: Apache-2.0 */
/* Which variant answers: every rule of choice.h, against its text done by sorting, over thousands of made fleets. */
#include "choice.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define FLEETS       20000
#define VARIANTS_MAX 12

static uint64_t draw(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state >> 11;
}

/* Few values of each kind, so that equals are common. */
static struct sl_candidate draw_candidate(uint64_t *state)
{
        static const double costs[] = {1, 1.05, 1.2, 2, 4};

        return (struct sl_candidate){
                .state = (enum sl_candidate_state)(draw(state) % 3 ? SL_CANDIDATE_SERVES : draw(state) % 4),
                .accuracy = 0.5 + 0.1 * (double)(draw(state) % 5),
                .cost = costs[draw(state) % 5],
                .service_ns = draw(state) % 8 ? 1000 * (1 + draw(state) % 4) : 0,
                .wait_ns = draw(state) % 2 ? 0 : 500 * (draw(state) % 16),
                .load_ns = draw(state) % 3 ? 5000 * (1 + draw(state) % 3) : 0,
                .is_interfered = draw(state) % 3 == 0,
                .doubt = draw(state) % 4 ? 0 : (uint32_t)(draw(state) % 3),
        };
}

static struct sl_needs draw_needs(uint64_t *state)
{
        struct sl_needs needs = {.closest = draw(state) % 4 == 0};

        if (draw(state) % 3)
                needs.accuracy = 0.5 + 0.1 * (double)(draw(state) % 6); /* some variant's own, or above all */
        if (needs.accuracy > 0 && draw(state) % 2)
                needs.accuracy_least = needs.accuracy - 0.2;
        if (draw(state) % 2)
                needs.latency_ns = 1000 * (1 + draw(state) % 8);
        if (draw(state) % 3 == 0)
                needs.cost = 1 + (double)(draw(state) % 3);
        return needs;
}

/* ---- the rules once more, by lists that are filtered and sorted ---- */

struct list {
        uint32_t n, of[VARIANTS_MAX];
};

static uint64_t expected_ns(const struct sl_candidate *c)
{
        return c->service_ns + (c->state == SL_CANDIDATE_UNLOADED ? c->load_ns : c->wait_ns);
}

static bool is_promised(const struct sl_candidate *c, uint64_t latency_ns)
{
        if (!latency_ns)
                return true;
        if (!c->service_ns || (c->state == SL_CANDIDATE_UNLOADED && !c->load_ns))
                return false;
        uint64_t sooner_ns = 0; /* all services are whole thousands: a half and a quarter are exact */

        for (uint32_t i = 0; i < c->doubt; i++)
                sooner_ns += (c->service_ns - sooner_ns) / 2;
        return expected_ns(c) - sooner_ns <= latency_ns;
}

static struct list filter(
        const struct sl_candidate *all, uint32_t n, const struct sl_needs *needs, enum sl_candidate_state state, double accuracy)
{
        struct list list = {0};

        for (uint32_t i = 0; i < n; i++)
                if (all[i].state == state && all[i].accuracy >= accuracy && (needs->cost == 0 || all[i].cost <= needs->cost) &&
                        is_promised(&all[i], needs->latency_ns))
                        list.of[list.n++] = i;
        return list;
}

static const struct sl_candidate *sorted_fleet;

static int by_accuracy(const void *a, const void *b)
{
        double x = sorted_fleet[*(const uint32_t *)a].accuracy, y = sorted_fleet[*(const uint32_t *)b].accuracy;

        return (x < y) - (x > y);
}

static int by_cost(const void *a, const void *b)
{
        double x = sorted_fleet[*(const uint32_t *)a].cost, y = sorted_fleet[*(const uint32_t *)b].cost;

        return (x > y) - (x < y);
}

static uint64_t turns_before(uint32_t i)
{
        return sorted_fleet[i].service_ns ? sorted_fleet[i].wait_ns / sorted_fleet[i].service_ns : sorted_fleet[i].wait_ns;
}

static int by_turns(const void *a, const void *b)
{
        uint64_t x = turns_before(*(const uint32_t *)a), y = turns_before(*(const uint32_t *)b);

        return (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static void sort(struct list *list, int (*compare)(const void *, const void *))
{
        qsort(list->of, list->n, sizeof(*list->of), compare);
}

/* The first of the sorted list and its equals stay. */
static void keep_equal(struct list *list, int (*compare)(const void *, const void *))
{
        uint32_t n = 0;

        sort(list, compare);
        while (n < list->n && compare(&list->of[n], &list->of[0]) == 0)
                n++;
        list->n = n;
}

static void keep_cheap(struct list *list)
{
        uint32_t n = 0;

        sort(list, by_cost);
        while (n < list->n && sorted_fleet[list->of[n]].cost <= 1.1 * sorted_fleet[list->of[0]].cost)
                n++;
        list->n = n;
}

/* All stay where none is calm. */
static void keep_calm(struct list *list)
{
        struct list calm = {0};

        for (uint32_t i = 0; i < list->n; i++)
                if (!sorted_fleet[list->of[i]].is_interfered)
                        calm.of[calm.n++] = list->of[i];
        if (calm.n)
                *list = calm;
}

/* Return: what `starling` has to choose of @list; UINT32_MAX: it is empty. */
static uint32_t oracle(struct list list, bool by_the_most_accurate, bool in_time, uint64_t turn)
{
        if (!list.n)
                return UINT32_MAX;
        if (by_the_most_accurate)
                keep_equal(&list, by_accuracy);
        if (in_time)
                keep_calm(&list);
        keep_cheap(&list);
        keep_equal(&list, by_turns);
        sort(&list, by_number);
        return list.of[turn % list.n];
}

static uint32_t soonest(const struct sl_candidate *all, const struct list *list)
{
        uint32_t best = UINT32_MAX;

        for (uint32_t i = list->n; i-- > 0;)
                if (best == UINT32_MAX || expected_ns(&all[list->of[i]]) <= expected_ns(&all[best]))
                        best = list->of[i];
        return best;
}

static uint32_t expect(const struct sl_candidate *all, uint32_t n, const struct sl_needs *needs, uint64_t turn, enum sl_met *met)
{
        struct list list = filter(all, n, needs, SL_CANDIDATE_SERVES, needs->accuracy);
        uint32_t chosen = oracle(list, needs->accuracy == 0, needs->latency_ns, turn);

        *met = SL_MET_ALL;
        if (chosen == UINT32_MAX && needs->accuracy_least > 0) {
                *met = SL_MET_LEAST;
                chosen = oracle(filter(all, n, needs, SL_CANDIDATE_SERVES, needs->accuracy_least), true, needs->latency_ns, turn);
        }
        if (chosen == UINT32_MAX) {
                *met = SL_MET_ALL;
                list = filter(all, n, needs, SL_CANDIDATE_UNLOADED, needs->accuracy);
                chosen = soonest(all, &list);
        }
        if (chosen == UINT32_MAX && needs->accuracy_least > 0) {
                *met = SL_MET_LEAST;
                list = filter(all, n, needs, SL_CANDIDATE_UNLOADED, needs->accuracy_least);
                chosen = soonest(all, &list);
        }
        return chosen;
}

static bool is_there(const struct sl_candidate *all, uint32_t n, enum sl_candidate_state state)
{
        for (uint32_t i = 0; i < n; i++)
                if (all[i].state == state)
                        return true;
        return false;
}

Test(choice, starling_chooses_as_its_rule_says_in_any_fleet)
{
        uint64_t state = 88172645463325252ull;
        uint32_t found = 0, degraded = 0, loads = 0, refused = 0;

        for (uint32_t round = 0; round < FLEETS; round++) {
                uint32_t n = (uint32_t)(draw(&state) % (VARIANTS_MAX + 1));
                struct sl_candidate all[VARIANTS_MAX];
                struct sl_needs needs = draw_needs(&state);
                uint64_t turn = draw(&state);
                struct sl_choice choice;
                enum sl_met met;

                for (uint32_t i = 0; i < n; i++)
                        all[i] = draw_candidate(&state);
                sorted_fleet = all;
                uint32_t wanted = expect(all, n, &needs, turn, &met);
                bool chosen = sl_choose(SL_CHOICE_starling, &needs, all, n, turn, &choice);

                if (wanted != UINT32_MAX) {
                        cr_assert(chosen, "round %u", round);
                        cr_assert_eq(choice.number, wanted, "round %u: %u, wants %u", round, choice.number, wanted);
                        cr_assert_eq(choice.met, met, "round %u", round);
                        found++;
                        degraded += met == SL_MET_LEAST;
                        loads += all[wanted].state == SL_CANDIDATE_UNLOADED;
                } else if (needs.closest && is_there(all, n, SL_CANDIDATE_SERVES)) {
                        cr_assert(chosen && choice.met == SL_MET_CLOSEST, "round %u", round);
                        cr_assert_eq(all[choice.number].state, SL_CANDIDATE_SERVES);
                } else {
                        cr_assert_not(chosen, "round %u", round);
                        cr_assert_neq(choice.lack, SL_LACK_NOTHING);
                        refused++;
                }
        }
        cr_expect(found > 1000 && degraded > 100 && loads > 100 && refused > 100, "%u %u %u %u", found, degraded, loads, refused);
}

/* Of `infaas`, `cheapest` and `accurate` the first of those that suit than which none is better. */
Test(choice, other_policies_choose_the_best_of_what_suits)
{
        uint64_t state = 362436069ull;

        for (uint32_t round = 0; round < FLEETS / 4; round++) {
                uint32_t n = (uint32_t)(1 + draw(&state) % VARIANTS_MAX);
                struct sl_candidate all[VARIANTS_MAX];
                struct sl_needs needs = draw_needs(&state);

                for (uint32_t i = 0; i < n; i++)
                        all[i] = draw_candidate(&state);
                struct list list = filter(all, n, &needs, SL_CANDIDATE_SERVES, needs.accuracy);

                for (uint32_t policy = SL_CHOICE_infaas; policy < SL_CHOICE_POLICY_COUNT && list.n; policy++) {
                        struct sl_choice choice;

                        cr_assert(sl_choose((enum sl_choice_policy)policy, &needs, all, n, 0, &choice));
                        for (uint32_t i = 0; i < list.n; i++) {
                                const struct sl_candidate *a = &all[choice.number], *b = &all[list.of[i]];

                                cr_assert(policy != SL_CHOICE_infaas || a->is_interfered < b->is_interfered ||
                                          (a->is_interfered == b->is_interfered && a->wait_ns <= b->wait_ns));
                                cr_assert(policy != SL_CHOICE_cheapest || a->cost <= b->cost);
                                cr_assert(policy != SL_CHOICE_accurate || a->accuracy >= b->accuracy);
                        }
                        cr_assert_eq(choice.met, SL_MET_ALL);
                        cr_assert_eq(all[choice.number].state, SL_CANDIDATE_SERVES);
                        cr_assert_geq(all[choice.number].accuracy, needs.accuracy);
                }
        }
}

static const struct sl_candidate three[] = {
        {.state = SL_CANDIDATE_SERVES, .accuracy = 0.9, .cost = 1, .service_ns = 1000},
        {.state = SL_CANDIDATE_SERVES, .accuracy = 0.95, .cost = 2, .service_ns = 5000, .wait_ns = 7000},
        {.state = SL_CANDIDATE_UNLOADED, .accuracy = 0.99, .cost = 4, .service_ns = 20000, .load_ns = 1000000},
};

static struct sl_choice refuse(const struct sl_needs *needs)
{
        struct sl_choice choice;

        cr_assert_not(sl_choose(SL_CHOICE_starling, needs, three, 3, 0, &choice));
        return choice;
}

Test(choice, what_is_lacking_is_told_with_the_nearest_variant)
{
        struct sl_choice choice = refuse(&(struct sl_needs){.accuracy = 0.995});

        cr_expect(choice.lack == SL_LACK_ACCURACY && choice.number == 2);
        choice = refuse(&(struct sl_needs){.accuracy = 0.92, .cost = 1.5});
        cr_expect(choice.lack == SL_LACK_COST && choice.number == 1);
        choice = refuse(&(struct sl_needs){.accuracy = 0.92, .latency_ns = 4000});
        cr_expect(choice.lack == SL_LACK_LATENCY && choice.number == 1);
        choice = refuse(&(struct sl_needs){.accuracy = 0.92, .latency_ns = 8000});
        cr_expect(choice.lack == SL_LACK_ROOM && choice.number == 1);
        choice = refuse(&(struct sl_needs){.accuracy = 0.97, .latency_ns = 30000});
        cr_expect(choice.lack == SL_LACK_LOAD && choice.number == 2);
        struct sl_candidate busy_or_unloaded[] = {three[2], three[1]};

        busy_or_unloaded[1].wait_ns = 90000;
        cr_assert_not(sl_choose(SL_CHOICE_starling, &(struct sl_needs){.latency_ns = 30000}, busy_or_unloaded, 2, 0, &choice));
        cr_expect(choice.lack == SL_LACK_ROOM && choice.number == 1, "one that is busy is nearer than one that is not loaded");
        cr_assert_not(sl_choose(SL_CHOICE_starling, &(struct sl_needs){0}, NULL, 0, 0, &choice));
        cr_expect(choice.lack == SL_LACK_VARIANTS && choice.number == UINT32_MAX);
}

Test(choice, the_closest_misses_by_the_smallest_share)
{
        struct sl_choice choice;

        /* 0.9 misses 0.96 by 6 %; 0.95 by 1 %, and 12 us miss 10 us by 20 %. */
        cr_assert(sl_choose(SL_CHOICE_starling, &(struct sl_needs){.accuracy = 0.96, .latency_ns = 10000, .closest = true}, three,
                3, 0, &choice));
        cr_expect(choice.number == 0 && choice.met == SL_MET_CLOSEST);
        cr_assert(sl_choose(SL_CHOICE_starling, &(struct sl_needs){.accuracy = 0.96, .latency_ns = 12000, .closest = true}, three,
                3, 0, &choice));
        cr_expect(choice.number == 1);
}

Test(choice, equal_variants_get_equal_shares)
{
        struct sl_candidate equal[4];
        uint32_t shares[4] = {0};
        struct sl_choice choice;

        for (uint32_t i = 0; i < 4; i++)
                equal[i] = (struct sl_candidate){.state = SL_CANDIDATE_SERVES,
                        .accuracy = 0.9,
                        .cost = 1 + 0.02 * i,
                        .service_ns = 1000,
                        .wait_ns = 100 * i};
        for (uint64_t turn = 0; turn < 400; turn++) {
                cr_assert(sl_choose(SL_CHOICE_starling, &(struct sl_needs){.accuracy = 0.8}, equal, 4, turn, &choice));
                shares[choice.number]++;
        }
        for (uint32_t i = 0; i < 4; i++)
                cr_expect_eq(shares[i], 100);
}

/* More than are kept in one go. */
Test(choice, hundreds_of_equals_get_equal_shares)
{
        static struct sl_candidate equal[300];
        static uint32_t shares[300];
        struct sl_choice choice;

        for (uint32_t i = 0; i < 300; i++)
                equal[i] = (struct sl_candidate){
                        .state = SL_CANDIDATE_SERVES, .accuracy = i % 3 ? 0.9 : 0.7, .cost = 1, .service_ns = 1000, .wait_ns = i};
        for (uint64_t turn = 0; turn < 400; turn++) {
                cr_assert(sl_choose(SL_CHOICE_starling, &(struct sl_needs){.accuracy = 0.8}, equal, 300, turn, &choice));
                shares[choice.number]++;
        }
        for (uint32_t i = 0; i < 300; i++)
                cr_expect_eq(shares[i], i % 3 ? 2u : 0u, "%u: %u", i, shares[i]);
}
