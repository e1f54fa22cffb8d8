/* SPDX-License-Identifier: Apache-2.0 */
#include "branches.h"

#include "base/cleanup.h"
#include "chains.h"
#include "graph.h"
#include "schedule.h"
#include "target.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_MAX  SL_CHAIN_STEPS_MAX
#define LOOK_AHEAD 32   /* steps behind the first one of a group */
#define MARGIN     0.05 /* by which a group must be sooner: travel between caches is not reckoned */
#define LIMITS_MAX (GROUP_MAX * (SL_TEAM_SIZE_COUNT + 2))

struct touch {
        uint64_t storage; /* place and index */
        bool writes;
};

/* Of the steps as they came. */
struct touches {
        struct touch *list;
        uint32_t *first; /* of each step, and the end */
};

struct arrangement {
        struct sl_schedule *schedule;
        const struct sl_graph *graph;
        const struct sl_core_figures *core;
        uint32_t widest;
        struct touches touches;
        uint32_t *numbers; /* of the steps, in the order at hand: as they came */
        uint32_t *ends;    /* of the group that begins there; 0: none does */
};

/* How a team of one size computes a group. */
struct formation {
        struct sl_split splits[GROUP_MAX];
        double seconds;
};

/* Some steps, one behind the other, and a size of team. */
struct group {
        const struct sl_step *steps;
        uint32_t n, size; /* index of the size */
        double call;      /* seconds */
};

/* ---- which steps may stand side by side ---- */

static void add_touch(struct arrangement *arrangement, uint32_t value, bool writes, uint32_t *n)
{
        const struct sl_storage *storage;

        if (value == SL_VALUE_NONE)
                return;
        storage = &arrangement->schedule->storages[value];
        if (storage->place != SL_PLACE_NONE && storage->place != SL_PLACE_CONSTANT)
                arrangement->touches.list[(*n)++] =
                        (struct touch){.storage = (uint64_t)storage->place << 32 | storage->index, .writes = writes};
}

static void list_step(struct arrangement *arrangement, const struct sl_step *step, uint32_t *n)
{
        const struct sl_node *node;

        if (step->node == SL_VALUE_NONE) {
                add_touch(arrangement, step->copy_value, false, n);
                return;
        }
        node = &arrangement->graph->nodes[step->node];
        for (uint32_t i = 0; i < node->n_inputs; i++)
                add_touch(arrangement, node->inputs[i], false, n);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                add_touch(arrangement, node->outputs[i], true, n);
}

static uint32_t count_operands(const struct arrangement *arrangement)
{
        uint32_t n = 0;

        for (uint32_t s = 0; s < arrangement->schedule->n_steps; s++) {
                uint32_t node = arrangement->schedule->steps[s].node;

                n += node == SL_VALUE_NONE ? 1
                                           : arrangement->graph->nodes[node].n_inputs + arrangement->graph->nodes[node].n_outputs;
        }
        return n;
}

static int list_touches(struct arrangement *arrangement)
{
        uint32_t n_steps = arrangement->schedule->n_steps, n = 0;

        arrangement->touches.list = calloc(count_operands(arrangement) + 1u, sizeof(*arrangement->touches.list));
        arrangement->touches.first = calloc(n_steps + 1u, sizeof(*arrangement->touches.first));
        arrangement->numbers = calloc(n_steps + 1u, sizeof(*arrangement->numbers));
        arrangement->ends = calloc(n_steps + 1u, sizeof(*arrangement->ends));
        if (!arrangement->touches.list || !arrangement->touches.first || !arrangement->numbers || !arrangement->ends)
                return -ENOMEM;
        for (uint32_t s = 0; s < n_steps; s++) {
                arrangement->numbers[s] = s;
                list_step(arrangement, &arrangement->schedule->steps[s], &n);
                arrangement->touches.first[s + 1] = n;
        }
        return 0;
}

static void arrangement_deinit(struct arrangement *arrangement)
{
        free(arrangement->touches.list);
        free(arrangement->touches.first);
        free(arrangement->numbers);
        free(arrangement->ends);
}

/* Do steps at two places of the order touch something that one of them writes? */
static bool need_order(const struct arrangement *arrangement, uint32_t a, uint32_t b)
{
        const struct touches *touches = &arrangement->touches;
        uint32_t of_a = arrangement->numbers[a], of_b = arrangement->numbers[b];

        for (uint32_t i = touches->first[of_a]; i < touches->first[of_a + 1]; i++)
                for (uint32_t k = touches->first[of_b]; k < touches->first[of_b + 1]; k++)
                        if (touches->list[i].storage == touches->list[k].storage &&
                                (touches->list[i].writes || touches->list[k].writes))
                                return true;
        return false;
}

static bool may_stand(const struct sl_step *step)
{
        return step->node != SL_VALUE_NONE && !step->dynamic && step->seconds.whole > 0;
}

static bool may_pass(const struct arrangement *arrangement, uint32_t from, uint32_t to)
{
        for (uint32_t s = to; s < from; s++)
                if (need_order(arrangement, s, from))
                        return false;
        return true;
}

/* Steps that may stand beside @head, which is the first of them. A dynamic one is passed by nobody. */
static uint32_t find_group(const struct arrangement *arrangement, uint32_t head, uint32_t members[GROUP_MAX])
{
        const struct sl_schedule *schedule = arrangement->schedule;
        uint32_t n = 1, end = head + LOOK_AHEAD < schedule->n_steps ? head + LOOK_AHEAD : schedule->n_steps;

        members[0] = head;
        for (uint32_t s = head + 1; s < end && n < GROUP_MAX && !schedule->steps[s].dynamic; s++)
                if (may_stand(&schedule->steps[s]) && schedule->steps[s].backend == schedule->steps[head].backend &&
                        may_pass(arrangement, s, head))
                        members[n++] = s;
        return n;
}

/* ---- how a team computes them ---- */

/* With at most the members of size @size; NONE: whole. */
static double seconds_of(const struct sl_step *step, uint32_t size)
{
        return step->splits[size].members > 1 && step->seconds.team[size] > 0 ? step->seconds.team[size] : step->seconds.whole;
}

/* One after the other on the whole team; steps that touch nothing of each other's need one call. */
static double seconds_apart(const struct group *group)
{
        double seconds = 0;
        uint32_t calls = 0;

        for (uint32_t i = 0; i < group->n; i++) {
                seconds += seconds_of(&group->steps[i], group->size);
                calls += group->steps[i].splits[group->size].members > 1;
        }
        return seconds - (calls > 1 ? (calls - 1) * group->call : 0);
}

/* Members who compute whole steps, one or more each. */
struct lanes {
        uint32_t n;
        double loads[GROUP_MAX];
        uint32_t of[GROUP_MAX]; /* of each step: its lane, or GROUP_MAX */
};

static void put_in_lane(struct lanes *lanes, uint32_t step, double seconds, double limit)
{
        uint32_t lane = 0;

        while (lane < lanes->n && lanes->loads[lane] + seconds > limit)
                lane++;
        if (lane == lanes->n)
                lanes->loads[lanes->n++] = 0;
        lanes->loads[lane] += seconds;
        lanes->of[step] = lane;
}

/* The fewest members that end it by @limit. False: none do. */
static bool fewest_members(const struct group *group, const struct sl_step *step, double limit, struct sl_split *ret_split)
{
        for (uint32_t i = 0; i <= group->size; i++)
                if (step->splits[i].members > 1 && step->seconds.team[i] > 0 && step->seconds.team[i] <= limit) {
                        *ret_split = step->splits[i];
                        return true;
                }
        return false;
}

/* All of it by @limit. False: the team is too small. */
static bool form(const struct group *group, double limit, struct formation *formation)
{
        struct lanes lanes = {.n = 0};
        uint32_t taken = 0, members = sl_team_size_at(group->size);

        formation->seconds = 0;
        for (uint32_t i = 0; i < group->n; i++) {
                const struct sl_step *step = &group->steps[i];

                lanes.of[i] = GROUP_MAX;
                if (step->seconds.whole + group->call <= limit) {
                        put_in_lane(&lanes, i, step->seconds.whole, limit - group->call);
                        continue;
                }
                if (!fewest_members(group, step, limit, &formation->splits[i]))
                        return false;
                formation->splits[i].first = (uint8_t)taken;
                taken += formation->splits[i].members;
                if (taken > members)
                        return false;
        }
        for (uint32_t i = 0; i < group->n; i++)
                if (lanes.of[i] < GROUP_MAX)
                        formation->splits[i] = (struct sl_split){SL_AXIS_NONE, 1, (uint8_t)(taken + lanes.of[i]), 0};
        formation->splits[0].begins = 1;
        formation->seconds = limit;
        return taken + lanes.n <= members;
}

static int compare_seconds(const void *a, const void *b)
{
        const double *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

/* All ends that some step can have, and the sums of whole ones, ascending: the limit of the best formation is among them. */
static uint32_t list_limits(const struct group *group, double limits[LIMITS_MAX])
{
        double sum = group->call;
        uint32_t n = 0;

        for (uint32_t i = 0; i < group->n; i++) {
                const struct sl_step *step = &group->steps[i];

                sum += step->seconds.whole;
                limits[n++] = sum;
                for (uint32_t k = 0; k <= group->size; k++)
                        if (step->splits[k].members > 1 && step->seconds.team[k] > 0)
                                limits[n++] = step->seconds.team[k];
                limits[n++] = step->seconds.whole + group->call;
        }
        qsort(limits, n, sizeof(*limits), compare_seconds);
        return n;
}

static bool best_formation(const struct group *group, struct formation *formation)
{
        double limits[LIMITS_MAX];
        uint32_t n = list_limits(group, limits), low = 0, high = n;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (form(group, limits[middle], formation))
                        high = middle;
                else
                        low = middle + 1;
        }
        return low < n && form(group, limits[low], formation);
}

/* ---- groups in the order of steps ---- */

static void move_step(struct arrangement *arrangement, uint32_t from, uint32_t to)
{
        struct sl_step *steps = arrangement->schedule->steps, step = steps[from];
        uint32_t number = arrangement->numbers[from];

        memmove(&steps[to + 1], &steps[to], (from - to) * sizeof(*steps));
        memmove(&arrangement->numbers[to + 1], &arrangement->numbers[to], (from - to) * sizeof(*arrangement->numbers));
        steps[to] = step;
        arrangement->numbers[to] = number;
}

/* For each size of team; which of them gain. */
static uint32_t form_teams(const struct arrangement *arrangement, const struct sl_step *steps, uint32_t n,
        struct formation formations[SL_TEAM_SIZE_COUNT])
{
        uint32_t gains = 0;

        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT && sl_team_size_at(i) <= arrangement->widest; i++) {
                const struct group group = {
                        .steps = steps, .n = n, .size = i, .call = sl_core_team_call(arrangement->core, sl_team_size_at(i))};

                if (best_formation(&group, &formations[i]) && formations[i].seconds < (1 - MARGIN) * seconds_apart(&group))
                        gains |= 1u << i;
        }
        return gains;
}

static void split_group(struct sl_step *steps, uint32_t n, uint32_t gains, const struct formation formations[SL_TEAM_SIZE_COUNT])
{
        for (uint32_t size = 0; size < SL_TEAM_SIZE_COUNT; size++)
                for (uint32_t i = 0; gains >> size & 1 && i < n; i++)
                        steps[i].splits[size] = formations[size].splits[i];
}

/* Of the largest team: steps that touch nothing of each other's are one chain, when they are neighbours that share no bytes. */
static bool saves_calls(const struct arrangement *arrangement, const struct sl_step *steps, uint32_t n)
{
        uint32_t cut = 0;

        for (uint32_t i = 0; i < n; i++)
                cut += sl_split_for(steps[i].splits, arrangement->widest).members > 1;
        return cut > 1;
}

/* Steps from @head on that stand side by side from now on; 1: it alone. */
static uint32_t arrange_group(struct arrangement *arrangement, uint32_t head, struct formation formations[SL_TEAM_SIZE_COUNT])
{
        struct sl_step *steps = arrangement->schedule->steps, candidates[GROUP_MAX];
        uint32_t members[GROUP_MAX], n = may_stand(&steps[head]) ? find_group(arrangement, head, members) : 1, gains;

        for (uint32_t i = 0; i < n && n > 1; i++)
                candidates[i] = steps[members[i]];
        gains = n > 1 ? form_teams(arrangement, candidates, n, formations) : 0;
        if (!gains && (n == 1 || !saves_calls(arrangement, candidates, n)))
                return 1;
        for (uint32_t i = 1; i < n; i++)
                move_step(arrangement, members[i], head + i);
        split_group(&steps[head], n, gains, formations);
        arrangement->ends[head] = head + n - 1;
        return n;
}

/* ---- lifetimes ---- */

/* What a block of copies at the end is read by, whatever the order. */
static void keep_last(const struct sl_block *before, uint32_t n_steps, struct sl_block *block)
{
        if (before->last >= n_steps)
                block->last = before->last;
}

static void live_in(struct arrangement *arrangement, uint32_t step, uint32_t first, uint32_t last)
{
        const struct touches *touches = &arrangement->touches;
        uint32_t number = arrangement->numbers[step];

        for (uint32_t i = touches->first[number]; i < touches->first[number + 1]; i++) {
                struct sl_block *block;

                if (touches->list[i].storage >> 32 != SL_PLACE_WORKSPACE)
                        continue;
                block = &arrangement->schedule->blocks[(uint32_t)touches->list[i].storage];
                block->first = first < block->first ? first : block->first;
                block->last = last > block->last ? last : block->last;
        }
}

/* Whatever is touched in a group is alive in all of it. */
static void live_again(struct arrangement *arrangement, const struct sl_block *before)
{
        struct sl_schedule *schedule = arrangement->schedule;

        for (uint32_t i = 0; i < schedule->n_blocks; i++) {
                schedule->blocks[i].first = UINT32_MAX;
                schedule->blocks[i].last = 0;
        }
        for (uint32_t s = 0, end; s < schedule->n_steps; s = end + 1) {
                end = arrangement->ends[s] ? arrangement->ends[s] : s;
                for (uint32_t i = s; i <= end; i++)
                        live_in(arrangement, i, s, end);
        }
        for (uint32_t i = 0; i < schedule->n_blocks; i++)
                keep_last(&before[i], schedule->n_steps, &schedule->blocks[i]);
}

/* ---- all of it ---- */

static bool takes_more(const struct sl_block *before, const struct sl_schedule *schedule)
{
        uint64_t then = 0, now = 0;

        return sl_memory_lower_bound(before, schedule->n_blocks, &then) < 0 ||
               sl_memory_lower_bound(schedule->blocks, schedule->n_blocks, &now) < 0 ||
               (double)now > (1 + SL_BRANCHES_BYTES_SHARE) * (double)then;
}

static bool arrange_groups(struct arrangement *arrangement, struct formation formations[SL_TEAM_SIZE_COUNT])
{
        bool any = false;

        for (uint32_t s = 0, n; s < arrangement->schedule->n_steps; s += n) {
                n = arrange_group(arrangement, s, formations);
                any = any || n > 1;
        }
        return any;
}

static void *copy_of(const void *table, size_t bytes)
{
        void *copy = malloc(bytes + 1);

        return copy ? memcpy(copy, table, bytes) : NULL;
}

static int arrange(struct arrangement *arrangement)
{
        struct sl_schedule *schedule = arrangement->schedule;
        size_t steps_bytes = schedule->n_steps * sizeof(*schedule->steps),
               blocks_bytes = schedule->n_blocks * sizeof(*schedule->blocks);
        SL_CLEANUP(sl_cleanup_free) struct sl_step *steps = copy_of(schedule->steps, steps_bytes);
        SL_CLEANUP(sl_cleanup_free) struct sl_block *blocks = copy_of(schedule->blocks, blocks_bytes);
        SL_CLEANUP(sl_cleanup_free) struct formation *formations = calloc(SL_TEAM_SIZE_COUNT, sizeof(*formations));

        if (!steps || !blocks || !formations || list_touches(arrangement) < 0)
                return -ENOMEM;
        if (!arrange_groups(arrangement, formations))
                return 0;
        live_again(arrangement, blocks);
        if (!takes_more(blocks, schedule))
                return 0;
        memcpy(schedule->steps, steps, steps_bytes);
        memcpy(schedule->blocks, blocks, blocks_bytes);
        return 0;
}

int sl_branches_arrange(
        struct sl_schedule *schedule, const struct sl_graph *graph, const struct sl_core_figures *core, uint32_t widest)
{
        struct arrangement arrangement = {.schedule = schedule, .graph = graph, .core = core, .widest = widest};
        int r = widest > 1 ? arrange(&arrangement) : 0;

        arrangement_deinit(&arrangement);
        return r;
}
