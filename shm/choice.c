/* SPDX-License-Identifier: Apache-2.0 */
#include "choice.h"

#include <stddef.h>

#define NONE        UINT32_MAX
#define EQUALS_KEPT 64u /* of more the others are looked for once more */
#define CHEAP       1.1 /* times what the cheapest costs: measured costs of equals differ by their noise */

/* What a query is looked at with: its candidates, and how exact accuracy has to be in this round. */
struct look {
        const struct sl_needs *needs;
        const struct sl_candidate *candidates;
        uint32_t n;
        double accuracy;
        enum sl_candidate_state state;
        bool is_calm; /* only those that are not interfered with */
        uint64_t turn;
};

static uint64_t answer_ns(const struct sl_candidate *c)
{
        return (c->state == SL_CANDIDATE_UNLOADED ? c->load_ns : c->wait_ns) + c->service_ns;
}

/* The least that it may take to be promised in time: whether it still takes longer the next answer says. */
static uint64_t least_ns(const struct sl_candidate *c)
{
        return c->service_ns >> c->doubt;
}

static bool is_known(const struct sl_candidate *c)
{
        return c->service_ns && (c->state != SL_CANDIDATE_UNLOADED || c->load_ns);
}

static bool is_cheap(const struct sl_needs *needs, const struct sl_candidate *c)
{
        return needs->cost <= 0 || c->cost <= needs->cost;
}

static bool is_fast(const struct sl_needs *needs, const struct sl_candidate *c)
{
        return !needs->latency_ns || (is_known(c) && answer_ns(c) - c->service_ns + least_ns(c) <= needs->latency_ns);
}

static bool suits(const struct look *look, const struct sl_candidate *c)
{
        return c->state == look->state && c->accuracy >= look->accuracy && !(look->is_calm && c->is_interfered) &&
               is_cheap(look->needs, c) && is_fast(look->needs, c);
}

/* Whole service times that go before it. */
static uint64_t rounds(const struct sl_candidate *c)
{
        return c->wait_ns / (c->service_ns ? c->service_ns : 1);
}

/* ---- of those that suit ---- */

static double greatest_accuracy(const struct look *look)
{
        double greatest = -1;

        for (uint32_t i = 0; i < look->n; i++)
                if (suits(look, &look->candidates[i]) && look->candidates[i].accuracy > greatest)
                        greatest = look->candidates[i].accuracy;
        return greatest;
}

/* Of those of at least @accuracy. Negative: there is none. */
static double least_cost(const struct look *look, double accuracy)
{
        const struct sl_candidate *end = look->candidates + look->n;
        double least = -1;

        for (const struct sl_candidate *c = look->candidates; c < end; c++)
                if ((least < 0 || c->cost < least) && c->accuracy >= accuracy && suits(look, c))
                        least = c->cost;
        return least;
}

static bool is_among(const struct look *look, const struct sl_candidate *c, double accuracy, double cost)
{
        return c->cost <= cost && c->accuracy >= accuracy && suits(look, c);
}

/* Of those that wait @best service times the one after @skip others. */
static uint32_t equal_at(const struct look *look, double accuracy, double cost, uint64_t best, uint64_t skip)
{
        for (uint32_t i = 0; i < look->n; i++)
                if (is_among(look, &look->candidates[i], accuracy, cost) && rounds(&look->candidates[i]) == best && !skip--)
                        return i;
        return NONE;
}

/* Among those of at least @accuracy that cost at most @cost: the shortest wait in service times; of equals by turn. */
static uint32_t least_waiting(const struct look *look, double accuracy, double cost)
{
        uint32_t equals[EQUALS_KEPT], count = 0;
        uint64_t best = UINT64_MAX, skip;

        for (uint32_t i = 0; i < look->n; i++) {
                const struct sl_candidate *c = &look->candidates[i];
                uint64_t before;

                if (!is_among(look, c, accuracy, cost))
                        continue;
                before = rounds(c);
                if (before > best)
                        continue;
                count = before < best ? 0 : count;
                best = before;
                if (count < EQUALS_KEPT)
                        equals[count] = i;
                count++;
        }
        skip = count ? look->turn % count : 0;
        if (!count)
                return NONE;
        return skip < EQUALS_KEPT ? equals[skip] : equal_at(look, accuracy, cost, best, skip);
}

static struct look calm_of(const struct look *look)
{
        struct look calm = *look;

        calm.is_calm = true;
        return calm;
}

/* The cheap ones of at least @accuracy, then the one that waits least; where time counts, of calm ones if there are any. */
static uint32_t cheap_of(const struct look *look, double accuracy)
{
        struct look calm = calm_of(look);
        double least = look->needs->latency_ns ? least_cost(&calm, accuracy) : -1;

        if (least >= 0)
                return least_waiting(&calm, accuracy, least * CHEAP);
        least = least_cost(look, accuracy);
        return least < 0 ? NONE : least_waiting(look, accuracy, least * CHEAP);
}

static uint32_t pick_starling(const struct look *look)
{
        bool is_asked = look->needs->accuracy > 0 && look->accuracy >= look->needs->accuracy;
        double accuracy = is_asked ? look->accuracy : greatest_accuracy(look);

        return accuracy < 0 ? NONE : cheap_of(look, accuracy);
}

/* The first that is not beaten, by what @is_better says of two. */
static uint32_t first_best(const struct look *look, bool (*is_better)(const struct sl_candidate *, const struct sl_candidate *))
{
        uint32_t best = NONE;

        for (uint32_t i = 0; i < look->n; i++)
                if (suits(look, &look->candidates[i]) && (best == NONE || is_better(&look->candidates[i], &look->candidates[best])))
                        best = i;
        return best;
}

static bool waits_less(const struct sl_candidate *a, const struct sl_candidate *b)
{
        return a->wait_ns < b->wait_ns;
}

static bool costs_less(const struct sl_candidate *a, const struct sl_candidate *b)
{
        return a->cost < b->cost;
}

static bool is_more_accurate(const struct sl_candidate *a, const struct sl_candidate *b)
{
        return a->accuracy > b->accuracy;
}

static bool answers_sooner(const struct sl_candidate *a, const struct sl_candidate *b)
{
        return answer_ns(a) < answer_ns(b);
}

static uint32_t pick_infaas(const struct look *look)
{
        struct look calm = calm_of(look);
        uint32_t number = first_best(&calm, waits_less);

        return number == NONE ? first_best(look, waits_less) : number;
}

static uint32_t pick_cheapest(const struct look *look)
{
        return first_best(look, costs_less);
}

static uint32_t pick_accurate(const struct look *look)
{
        return first_best(look, is_more_accurate);
}

static const struct {
        const char *name;
        uint32_t (*pick)(const struct look *look);
        bool degrades; /* to accuracy_least */
} policies[] = {
        [SL_CHOICE_starling] = {"starling", pick_starling, true},
        [SL_CHOICE_infaas] = {"infaas", pick_infaas, false},
        [SL_CHOICE_cheapest] = {"cheapest", pick_cheapest, false},
        [SL_CHOICE_accurate] = {"accurate", pick_accurate, false},
};
_Static_assert(sizeof(policies) / sizeof(*policies) == SL_CHOICE_POLICY_COUNT, "each policy has its row");

const char *sl_choice_policy_name(uint32_t policy)
{
        return policy < SL_CHOICE_POLICY_COUNT ? policies[policy].name : NULL;
}

/* ---- when none suits ---- */

static double shortfall(const struct sl_needs *needs, const struct sl_candidate *c)
{
        double sum = 0;

        if (c->accuracy < needs->accuracy)
                sum += (needs->accuracy - c->accuracy) / needs->accuracy;
        if (needs->cost > 0 && c->cost > needs->cost)
                sum += (c->cost - needs->cost) / needs->cost;
        if (needs->latency_ns && is_known(c) && answer_ns(c) > needs->latency_ns)
                sum += (double)(answer_ns(c) - needs->latency_ns) / (double)needs->latency_ns;
        if (needs->latency_ns && !is_known(c))
                sum += 1;
        return sum;
}

static uint32_t closest(const struct look *look)
{
        uint32_t best = NONE;

        for (uint32_t i = 0; i < look->n; i++)
                if (look->candidates[i].state == SL_CANDIDATE_SERVES &&
                        (best == NONE ||
                                shortfall(look->needs, &look->candidates[i]) < shortfall(look->needs, &look->candidates[best])))
                        best = i;
        return best;
}

/* How far a candidate gets: the number of needs that it fulfils in the order of enum sl_lack. */
static enum sl_lack lacks(const struct look *look, const struct sl_candidate *c)
{
        if (c->state == SL_CANDIDATE_OUT)
                return SL_LACK_VARIANTS;
        if (c->accuracy < look->accuracy)
                return SL_LACK_ACCURACY;
        if (!is_cheap(look->needs, c))
                return SL_LACK_COST;
        if (look->needs->latency_ns && (!c->service_ns || least_ns(c) > look->needs->latency_ns))
                return SL_LACK_LATENCY;
        return c->state == SL_CANDIDATE_UNLOADED ? SL_LACK_LOAD : SL_LACK_ROOM;
}

/* Of two that lack the same, is @a nearer? */
static bool is_nearer(enum sl_lack lack, const struct sl_candidate *a, const struct sl_candidate *b)
{
        switch (lack) {
        case SL_LACK_ACCURACY:
                return a->accuracy > b->accuracy;
        case SL_LACK_COST:
                return a->cost < b->cost;
        case SL_LACK_LATENCY:
                return a->service_ns && (!b->service_ns || a->service_ns < b->service_ns);
        case SL_LACK_ROOM:
        case SL_LACK_LOAD:
                return answer_ns(a) < answer_ns(b);
        case SL_LACK_NOTHING:
        case SL_LACK_VARIANTS:
                break;
        }
        return false;
}

/* What is lacking is what the candidates that get farthest lack: of one that is busy before one that is not loaded. */
static void explain(const struct look *look, struct sl_choice *choice)
{
        static const uint8_t order[] = {
                [SL_LACK_VARIANTS] = 0,
                [SL_LACK_ACCURACY] = 1,
                [SL_LACK_COST] = 2,
                [SL_LACK_LATENCY] = 3,
                [SL_LACK_LOAD] = 4,
                [SL_LACK_ROOM] = 5,
        };

        *choice = (struct sl_choice){.number = NONE, .lack = SL_LACK_VARIANTS};
        for (uint32_t i = 0; i < look->n; i++) {
                enum sl_lack lack = lacks(look, &look->candidates[i]);

                if (lack == SL_LACK_VARIANTS || order[lack] < order[choice->lack])
                        continue;
                if (lack == choice->lack && !is_nearer(lack, &look->candidates[i], &look->candidates[choice->number]))
                        continue;
                choice->lack = lack;
                choice->number = i;
        }
}

static bool take(struct sl_choice *choice, uint32_t number, enum sl_met met)
{
        if (number == NONE)
                return false;
        *choice = (struct sl_choice){number, met, SL_LACK_NOTHING};
        return true;
}

bool sl_choose(enum sl_choice_policy policy, const struct sl_needs *needs, const struct sl_candidate *candidates, uint32_t n,
        uint64_t turn, struct sl_choice *ret_choice)
{
        bool degrades = policies[policy].degrades && needs->accuracy_least > 0 && needs->accuracy_least < needs->accuracy;
        struct look look = {.needs = needs,
                .candidates = candidates,
                .n = n,
                .accuracy = needs->accuracy,
                .state = SL_CANDIDATE_SERVES,
                .turn = turn};

        if (take(ret_choice, policies[policy].pick(&look), SL_MET_ALL))
                return true;
        look.accuracy = degrades ? needs->accuracy_least : needs->accuracy;
        if (degrades && take(ret_choice, policies[policy].pick(&look), SL_MET_LEAST))
                return true;
        look.state = SL_CANDIDATE_UNLOADED;
        look.accuracy = needs->accuracy;
        if (take(ret_choice, first_best(&look, answers_sooner), SL_MET_ALL))
                return true;
        look.accuracy = needs->accuracy_least;
        if (degrades && take(ret_choice, first_best(&look, answers_sooner), SL_MET_LEAST))
                return true;
        if (needs->closest && take(ret_choice, closest(&look), SL_MET_CLOSEST))
                return true;
        look.accuracy = degrades ? needs->accuracy_least : needs->accuracy;
        explain(&look, ret_choice);
        return false;
}
