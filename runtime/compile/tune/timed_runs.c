/* SPDX-License-Identifier: Apache-2.0 */
#include "timed_runs.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "graph.h"
#include "node_run.h"
#include "placement.h"
#include "run_buffers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

SL_DEFINE_CLEANUP(struct sl_timed_runs *, sl_timed_runs_free)

struct node_runs {
        struct sl_node_run *runs[SL_ALGORITHM_COUNT]; /* in the order of the node's algorithms; one where it has none */
};

struct sl_timed_runs {
        const struct sl_placement *placement;
        struct sl_timed_node *timed_nodes;
        sl_timed_runs_clock *clock;
        struct node_runs *node_runs; /* of each node */
        struct sl_run_buffers *buffers;
        uint32_t n_runs;
};

static uint32_t runs_of(const struct sl_timed_node *timed_node)
{
        if (timed_node->members)
                return SL_AXIS_COUNT;
        return timed_node->n_algorithms ? timed_node->n_algorithms : 1;
}

static int make_node_runs(struct sl_timed_runs *timed, uint32_t node)
{
        struct sl_timed_node *timed_node = &timed->timed_nodes[node];
        struct sl_run_node *current;
        int r = sl_run_buffers_enter(timed->buffers, node, &current);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (uint32_t i = 0; i < runs_of(timed_node) && r != -ENOMEM; i++) {
                timed_node->microseconds[i] = INFINITY;
                if (timed_node->members && i > 0)
                        continue;
                r = timed_node->n_algorithms ? sl_attrs_set_int(&current->desc.attrs, SL_ATTR_ALGORITHM, timed_node->algorithms[i])
                                             : 0;
                if (r == 0)
                        r = sl_node_run_new(timed->placement->backends[node], &current->desc, current->constants,
                                &timed->node_runs[node].runs[i], NULL);
        }
        sl_run_buffers_leave(timed->buffers, node, true);
        return r == -ENOMEM ? r : 0;
}

int sl_timed_runs_new(const struct sl_placement *placement, struct sl_timed_node *timed_nodes, sl_timed_runs_clock *clock,
        uint64_t until_ns, struct sl_timed_runs **ret_timed)
{
        SL_CLEANUP(sl_cleanup_sl_timed_runs_free) struct sl_timed_runs *timed = calloc(1, sizeof(*timed));
        uint32_t n = placement->graph->n_nodes;
        int r;

        if (!timed)
                return -ENOMEM;
        timed->placement = placement;
        timed->timed_nodes = timed_nodes;
        timed->clock = clock;
        timed->node_runs = calloc(n + 1u, sizeof(*timed->node_runs));
        r = timed->node_runs ? sl_run_buffers_new(placement, &timed->buffers) : -ENOMEM;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                if (placement->backends[i])
                        r = clock() > until_ns ? -ETIME : make_node_runs(timed, i);
        }
        if (r < 0)
                return r;
        *ret_timed = sl_take(timed);
        return 0;
}

struct sl_timed_runs *sl_timed_runs_free(struct sl_timed_runs *timed)
{
        if (!timed)
                return NULL;
        for (uint32_t i = 0; timed->node_runs && i < timed->placement->graph->n_nodes; i++) {
                for (uint32_t k = 0; k < SL_ALGORITHM_COUNT; k++)
                        sl_node_run_free(timed->node_runs[i].runs[k]);
        }
        free(timed->node_runs);
        sl_run_buffers_free(timed->buffers);
        free(timed);
        return NULL;
}

/* Each once in every n runs; whom it follows, and who follows it, changes from round to round. */
static uint32_t turn_of(uint32_t run, uint32_t node, uint32_t n)
{
        uint32_t mixed = (run / n * 2654435761u) ^ (node * 2246822519u);

        return (run % n + (mixed >> 16)) % n;
}

/* Its turn of the node: an algorithm, or an axis along which a team cuts it; computed whole where it cannot be cut so. */
static int launch(const struct sl_timed_runs *timed, uint32_t node, uint32_t turn, struct sl_node_run *run)
{
        struct sl_timed_node *timed_node = &timed->timed_nodes[node];
        double *least = &timed_node->microseconds[turn];
        uint64_t start, took;
        int r = -ENOTSUP;

        if (timed_node->members && turn != SL_AXIS_NONE) {
                r = sl_node_run_launch_parts(run, turn, timed_node->members, timed->clock, &took);
                if (r == -ENOTSUP)
                        return sl_node_run_launch(run);
        } else {
                start = timed->clock();
                r = sl_node_run_launch(run);
                took = timed->clock() - start;
        }
        if (r == 0)
                *least = fmin(*least, (double)took / (double)SL_NS_PER_US);
        return r;
}

/* What fails once is not asked again. */
static int time_node(struct sl_timed_runs *timed, uint32_t node, uint32_t turn, struct sl_run_node *current, bool *ret_done)
{
        struct sl_node_run **run = &timed->node_runs[node].runs[timed->timed_nodes[node].members ? 0 : turn];
        void *scratch;
        int r = sl_run_buffers_scratch(timed->buffers, sl_node_run_scratch_bytes(*run), &scratch);

        if (r == 0)
                r = sl_node_run_bind(*run, current->inputs, current->outputs, scratch);
        if (r < 0)
                return r;
        r = launch(timed, node, turn, *run);
        if (r < 0)
                *run = sl_node_run_free(*run);
        *ret_done = r == 0;
        return 0;
}

/* The next one that can run; how many there are: none can. */
static uint32_t find_turn(const struct sl_timed_runs *timed, uint32_t node, uint32_t turn)
{
        const struct node_runs *runs = &timed->node_runs[node];
        uint32_t n = runs_of(&timed->timed_nodes[node]);

        if (timed->timed_nodes[node].members)
                return runs->runs[0] ? turn : n;
        for (uint32_t tries = 0; tries < n; tries++, turn = (turn + 1) % n)
                if (runs->runs[turn])
                        return turn;
        return n;
}

int sl_timed_runs_next(struct sl_timed_runs *timed)
{
        int r = 0;

        sl_run_buffers_clear(timed->buffers);
        for (uint32_t i = 0; i < timed->placement->graph->n_nodes && r == 0; i++) {
                uint32_t n = runs_of(&timed->timed_nodes[i]), turn = turn_of(timed->n_runs, i, n);
                struct sl_run_node *current;
                bool done = false;

                turn = find_turn(timed, i, turn);
                if (turn == n)
                        continue;
                r = sl_run_buffers_enter(timed->buffers, i, &current);
                if (r == 0)
                        r = time_node(timed, i, turn, current, &done);
                sl_run_buffers_leave(timed->buffers, i, done);
        }
        timed->n_runs++;
        return r;
}
