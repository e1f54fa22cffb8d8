/* SPDX-License-Identifier: Apache-2.0 */
#include "tune.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base_plan.h"
#include "exactness.h"
#include "graph.h"
#include "lower_options.h"
#include "node_alone.h"
#include "node_run.h"
#include "placement.h"
#include "program.h"
#include "reference_run.h"
#include "timed_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Rounds of timing: in each, every algorithm of a node runs once. */
#define QUICK_ROUNDS 4
#define FULL_ROUNDS  24

/* By how much another must be faster than the first guess: what two plans that are the same differ by. Of few runs it takes more.
 */
#define MARGIN      0.03
#define MARGIN_RUNS 8

/* Microseconds that a clock cannot tell from none. */
#define GRAIN 1e-3

SL_DEFINE_CLEANUP(struct sl_node_run *, sl_node_run_free)
SL_DEFINE_CLEANUP(struct sl_timed_runs *, sl_timed_runs_free)

struct candidate {
        uint32_t algorithm;
        double guess;    /* the backend's, as below */
        double measured; /* logarithms of seconds, summed over batch sizes: all of them count the same */
        double error;
        double microseconds; /* at the smallest batch; 0: not timed */
};

/* The algorithms of one node of the source, the best guess first. */
struct candidates {
        uint32_t n;
        struct candidate list[SL_ALGORITHM_COUNT];
        bool follows;     /* the first is what the base plan takes, or merged plans do: it is not timed */
        bool checked;     /* those that are too inexact on the model's activations are out */
        uint32_t n_sizes; /* that measured says something about */
        uint32_t n_runs;  /* of each algorithm, at the size that has the fewest */
        uint64_t shape;   /* equal for nodes that differ in nothing but their data */
};

struct tuner {
        const struct sl_tuning *tuning;
        const struct sl_program *programs;
        uint32_t n_programs;
        struct sl_step_choice *choices; /* of each node of the source */
        struct candidates *candidates;
        uint32_t n_choices;
        uint32_t *nodes;  /* of program p: the node that stands for source node i, at p * n_choices + i */
        uint32_t *equals; /* source nodes that have a choice, those of one shape behind each other */
        uint32_t n_equals;
        struct sl_target target;
        struct sl_node_desc desc; /* too large for the stack of a deep call */
};

static uint32_t node_of(const struct tuner *tuner, uint32_t program, uint32_t origin)
{
        return tuner->nodes[(size_t)program * tuner->n_choices + origin];
}

/* Fills tuner->desc with the node at one batch size, computed by @algorithm. False when there is no such node. */
static bool describe(struct tuner *tuner, uint32_t program, uint32_t origin, uint32_t algorithm)
{
        uint32_t node = node_of(tuner, program, origin);

        return node != SL_VALUE_NONE && sl_graph_describe(tuner->programs[program].placement->graph, node, &tuner->desc) == 0 &&
               sl_attrs_set_int(&tuner->desc.attrs, SL_ATTR_ALGORITHM, algorithm) == 0;
}

static const struct sl_backend *backend_of(const struct tuner *tuner, uint32_t program, uint32_t origin)
{
        return tuner->programs[program].placement->backends[node_of(tuner, program, origin)];
}

/* The smallest has listed the algorithm itself. */
static bool fits_larger_sizes(struct tuner *tuner, uint32_t origin, uint32_t algorithm)
{
        for (uint32_t p = 1; p < tuner->n_programs; p++) {
                if (!describe(tuner, p, origin, algorithm) ||
                        !backend_of(tuner, p, origin)->planner->supports(&tuner->target, &tuner->desc))
                        return false;
        }
        return true;
}

static struct candidate *find_candidate(struct candidates *candidates, uint32_t algorithm)
{
        for (uint32_t i = 0; i < candidates->n; i++) {
                if (candidates->list[i].algorithm == algorithm)
                        return &candidates->list[i];
        }
        return NULL;
}

static int by_guess(const void *a, const void *b)
{
        const struct candidate *left = a, *right = b;

        return (left->guess > right->guess) - (left->guess < right->guess);
}

/* The guess at one batch size. */
static void add_guesses(struct tuner *tuner, uint32_t program, uint32_t origin, struct candidates *candidates)
{
        uint32_t all[SL_ALGORITHM_COUNT], n = 0;
        double seconds[SL_ALGORITHM_COUNT];

        if (describe(tuner, program, origin, SL_ALGORITHM_AUTO))
                n = backend_of(tuner, program, origin)->planner->algorithms(&tuner->target, &tuner->desc, all, seconds);
        for (uint32_t i = 0; i < n; i++) {
                struct candidate *candidate = find_candidate(candidates, all[i]);

                if (candidate)
                        candidate->guess += log(seconds[i]);
        }
}

static void put_first(struct candidates *candidates, const struct candidate *found)
{
        struct candidate first = *found;

        memmove(candidates->list + 1, candidates->list, (size_t)(found - candidates->list) * sizeof(first));
        candidates->list[0] = first;
        candidates->follows = true;
}

/* What the base takes for the node becomes the first, if it can be taken here. */
static void follow_base(const struct tuner *tuner, uint32_t origin, struct candidates *candidates)
{
        const struct sl_node *node = &tuner->programs[0].placement->graph->nodes[node_of(tuner, 0, origin)];
        uint32_t wanted = candidates->n ? sl_base_plan_algorithm(tuner->tuning->base, node->name, node->op) : SL_ALGORITHM_AUTO;
        const struct candidate *found = find_candidate(candidates, wanted);

        if (found)
                put_first(candidates, found);
}

/* A product of K lanes is blocked, and so is that of one then, unless another algorithm is much faster. */
static void follow_lanes(const struct tuner *tuner, uint32_t origin, struct candidates *candidates)
{
        const struct sl_node *node = &tuner->programs[0].placement->graph->nodes[node_of(tuner, 0, origin)];
        const struct candidate *blocked = find_candidate(candidates, SL_ALGORITHM_BLOCKED);
        uint32_t n_guesses = tuner->n_programs > 1 ? 2 : 1;

        if (tuner->tuning->options->laned && (node->op == SL_OP_GEMM || node->op == SL_OP_MATMUL) && blocked &&
                blocked->guess <= candidates->list[0].guess + n_guesses * log1p(SL_LANED_MARGIN))
                put_first(candidates, blocked);
}

/* What is fast at one batch may be slow at another, so both ends of the ladder are asked. */
static void list_candidates(struct tuner *tuner, uint32_t origin, struct candidates *candidates)
{
        uint32_t all[SL_ALGORITHM_COUNT], n;
        double seconds[SL_ALGORITHM_COUNT];

        if (!describe(tuner, 0, origin, SL_ALGORITHM_AUTO))
                return;
        candidates->shape = XXH3_64bits(&tuner->desc, sizeof(tuner->desc));
        n = backend_of(tuner, 0, origin)->planner->algorithms(&tuner->target, &tuner->desc, all, seconds);
        for (uint32_t i = 0; i < n; i++) {
                if (!fits_larger_sizes(tuner, origin, all[i]))
                        continue;
                candidates->list[candidates->n].algorithm = all[i];
                candidates->list[candidates->n++].guess = log(seconds[i]);
        }
        if (tuner->n_programs > 1)
                add_guesses(tuner, tuner->n_programs - 1, origin, candidates);
        qsort(candidates->list, candidates->n, sizeof(candidates->list[0]), by_guess);
        follow_lanes(tuner, origin, candidates);
        follow_base(tuner, origin, candidates);
}

static void pass_over(struct sl_step_choice *choice, enum sl_choice_reason reason, uint32_t algorithm, double error)
{
        if (choice->passed_over != SL_ALGORITHM_AUTO)
                return;
        choice->reason = reason;
        choice->passed_over = algorithm;
        choice->relative_error = isfinite(error) ? (float)error : HUGE_VALF;
}

/* The options rule it out, which is noted. */
static bool is_ruled_out(const struct tuner *tuner, const struct candidate *candidate, struct sl_step_choice *choice)
{
        bool out = sl_algorithm_is_approximate(candidate->algorithm) && !tuner->tuning->options->winograd;

        if (out)
                pass_over(choice, SL_CHOICE_RULED_OUT, candidate->algorithm, 0);
        return out;
}

/* Its error, which is known by now, is too large, which is noted. */
static bool is_inexact(const struct tuner *tuner, const struct candidate *candidate, struct sl_step_choice *choice)
{
        bool inexact = sl_algorithm_is_approximate(candidate->algorithm) &&
                       !(candidate->error <= tuner->tuning->options->max_relative_error);

        if (inexact)
                pass_over(choice, SL_CHOICE_INEXACT, candidate->algorithm, candidate->error);
        return inexact;
}

/* The constants of the node at the smallest batch, as they lie. */
static void gather_constants(const struct tuner *tuner, uint32_t origin, const void *constants[SL_NODE_INPUTS_MAX])
{
        const struct sl_graph *graph = tuner->programs[0].placement->graph;
        const struct sl_node *node = &graph->nodes[node_of(tuner, 0, origin)];

        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                constants[i] = i < node->n_inputs && sl_graph_is_constant(graph, node->inputs[i])
                                       ? graph->values[node->inputs[i]].data
                                       : NULL;
}

/* The error on a part of the node, where there was no reference run. */
static int sample_error(struct tuner *tuner, uint32_t origin, struct candidate *candidate)
{
        const void *constants[SL_NODE_INPUTS_MAX];
        int r = -ENOTSUP;

        gather_constants(tuner, origin, constants);
        if (describe(tuner, 0, origin, candidate->algorithm))
                r = sl_exactness_sample(backend_of(tuner, 0, origin), &tuner->desc, constants, &candidate->error);
        if (r < 0)
                candidate->error = HUGE_VAL;
        return r == -ENOMEM ? r : 0;
}

/* The first that may be taken, as with `tune: off`. */
static int guess_algorithm(struct tuner *tuner, uint32_t origin)
{
        struct candidates *candidates = &tuner->candidates[origin];
        struct sl_step_choice *choice = &tuner->choices[origin];

        for (uint32_t i = 0; i < candidates->n; i++) {
                struct candidate *candidate = &candidates->list[i];
                bool approximate = sl_algorithm_is_approximate(candidate->algorithm);

                if (is_ruled_out(tuner, candidate, choice))
                        continue;
                if (approximate && !candidates->checked && sample_error(tuner, origin, candidate) < 0)
                        return -ENOMEM;
                if (is_inexact(tuner, candidate, choice))
                        continue;
                choice->algorithm = candidate->algorithm;
                if (approximate)
                        choice->relative_error = (float)candidate->error;
                if (choice->reason == SL_CHOICE_NONE)
                        choice->reason = candidates->follows && tuner->tuning->base ? SL_CHOICE_BASE : SL_CHOICE_GUESS;
                return 0;
        }
        return 0;
}

/* The error on the activations that reach the node in the reference run. */
static int measure_error(
        struct tuner *tuner, uint32_t origin, const struct sl_reference_node *reference, struct candidate *candidate)
{
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *run = NULL;
        int r;

        candidate->error = HUGE_VAL;
        if (!describe(tuner, 0, origin, candidate->algorithm))
                return -ENOTSUP;
        if (tuner->desc.outputs[0].dtype == SL_DTYPE_BF16)
                return sl_exactness_widened(
                        backend_of(tuner, 0, origin), &tuner->desc, reference->constants, reference->inputs, &candidate->error);
        if (tuner->desc.outputs[0].dtype != SL_DTYPE_F32)
                return -ENOTSUP;
        r = sl_node_run_new(backend_of(tuner, 0, origin), &tuner->desc, reference->constants, &run, NULL);
        if (r == 0)
                r = sl_node_run_once(run, reference->inputs);
        if (r == 0)
                candidate->error = sl_exactness_compare(sl_node_run_output(run, 0), sl_node_run_output(reference->run, 0),
                        sl_shape_elements(&tuner->desc.outputs[0].shape));
        return r;
}

/* Strikes out what may not be taken. */
static int check_candidates(struct tuner *tuner, uint32_t origin, const struct sl_reference_node *reference)
{
        struct candidates *candidates = &tuner->candidates[origin];
        struct sl_step_choice *choice = &tuner->choices[origin];
        uint32_t n = 0;

        for (uint32_t i = 0; i < candidates->n; i++) {
                struct candidate *candidate = &candidates->list[i];
                bool approximate = sl_algorithm_is_approximate(candidate->algorithm);

                if (is_ruled_out(tuner, candidate, choice))
                        continue;
                if (approximate && measure_error(tuner, origin, reference, candidate) == -ENOMEM)
                        return -ENOMEM;
                if (!is_inexact(tuner, candidate, choice))
                        candidates->list[n++] = *candidate;
        }
        candidates->n = n;
        candidates->checked = true;
        return 0;
}

static bool is_open(const struct candidates *candidates)
{
        return candidates->n > 1 && !candidates->follows;
}

static int check_node(void *context, const struct sl_reference_node *reference)
{
        struct tuner *tuner = context;
        uint32_t origin = tuner->programs[0].placement->origins[reference->node];

        if (tuner->tuning->clock() > tuner->tuning->until_ns)
                return 1;
        return origin < tuner->n_choices && is_open(&tuner->candidates[origin]) ? check_candidates(tuner, origin, reference) : 0;
}

static bool has_choice(const struct candidates *candidates)
{
        return candidates->checked && is_open(candidates);
}

static int by_shape(const void *a, const void *b, void *context)
{
        const struct candidates *candidates = context;
        uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

        if (candidates[i].shape != candidates[k].shape)
                return candidates[i].shape < candidates[k].shape ? -1 : 1;
        return (i > k) - (i < k);
}

/* Of equal shape are only nodes for which the same algorithms are left. */
static void sort_by_shape(struct tuner *tuner)
{
        tuner->n_equals = 0;
        for (uint32_t i = 0; i < tuner->n_choices; i++) {
                struct candidates *candidates = &tuner->candidates[i];

                for (uint32_t k = 0; k < candidates->n; k++)
                        candidates->shape =
                                XXH3_64bits_withSeed(&candidates->list[k].algorithm, sizeof(uint32_t), candidates->shape);
                if (has_choice(candidates))
                        tuner->equals[tuner->n_equals++] = i;
        }
        qsort_r(tuner->equals, tuner->n_equals, sizeof(*tuner->equals), by_shape, tuner->candidates);
}

static void list_timed_nodes(const struct tuner *tuner, uint32_t program, struct sl_timed_node *timed_nodes)
{
        for (uint32_t i = 0; i < tuner->n_equals; i++) {
                const struct candidates *candidates = &tuner->candidates[tuner->equals[i]];
                struct sl_timed_node *timed_node = &timed_nodes[node_of(tuner, program, tuner->equals[i])];

                timed_node->n_algorithms = candidates->n;
                for (uint32_t k = 0; k < candidates->n; k++)
                        timed_node->algorithms[k] = candidates->list[k].algorithm;
        }
}

static bool is_timed(const struct sl_timed_node *timed_node)
{
        for (uint32_t i = 0; i < timed_node->n_algorithms; i++) {
                if (!isfinite(timed_node->microseconds[i]))
                        return false;
        }
        return timed_node->n_algorithms > 0;
}

/* Nodes of one shape decide together: the shortest time of all. @equals: @n of them, @runs of the whole model. */
static void count_times(struct tuner *tuner, uint32_t program, const uint32_t *equals, uint32_t n,
        const struct sl_timed_node *timed_nodes, uint32_t runs)
{
        double least[SL_ALGORITHM_COUNT];
        uint32_t n_timed = 0;

        for (uint32_t k = 0; k < SL_ALGORITHM_COUNT; k++)
                least[k] = INFINITY;
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_timed_node *timed_node = &timed_nodes[node_of(tuner, program, equals[i])];

                n_timed += is_timed(timed_node);
                for (uint32_t k = 0; k < timed_node->n_algorithms && is_timed(timed_node); k++)
                        least[k] = fmin(least[k], timed_node->microseconds[k]);
        }
        for (uint32_t i = 0; i < n && n_timed; i++) {
                struct candidates *candidates = &tuner->candidates[equals[i]];
                uint32_t own_runs = n_timed * (runs / candidates->n);

                candidates->n_runs = candidates->n_sizes++ && candidates->n_runs < own_runs ? candidates->n_runs : own_runs;
                for (uint32_t k = 0; k < candidates->n; k++) {
                        candidates->list[k].measured += log(least[k] + GRAIN);
                        if (program == 0)
                                candidates->list[k].microseconds = least[k];
                }
        }
}

static void count_all_times(struct tuner *tuner, uint32_t program, const struct sl_timed_node *timed_nodes, uint32_t runs)
{
        for (uint32_t first = 0, end = 0; first < tuner->n_equals; first = end) {
                uint64_t shape = tuner->candidates[tuner->equals[first]].shape;

                while (end < tuner->n_equals && tuner->candidates[tuner->equals[end]].shape == shape)
                        end++;
                count_times(tuner, program, tuner->equals + first, end - first, timed_nodes, runs);
        }
}

/* Times all nodes at one batch size, at least one round unless the time is over. */
static int time_program(struct tuner *tuner, uint32_t program, uint64_t until_ns)
{
        const struct sl_placement *placement = tuner->programs[program].placement;
        SL_CLEANUP(sl_cleanup_free)
        struct sl_timed_node *timed_nodes = calloc(placement->graph->n_nodes + 1u, sizeof(*timed_nodes));
        SL_CLEANUP(sl_cleanup_sl_timed_runs_free) struct sl_timed_runs *timed = NULL;
        uint32_t rounds = tuner->tuning->options->tune == SL_TUNE_FULL ? FULL_ROUNDS : QUICK_ROUNDS, most = 1, runs = 0;
        int r;

        if (!timed_nodes)
                return -ENOMEM;
        list_timed_nodes(tuner, program, timed_nodes);
        r = sl_timed_runs_new(placement, timed_nodes, tuner->tuning->clock, until_ns, &timed);
        for (uint32_t i = 0; i < tuner->n_equals; i++)
                most = tuner->candidates[tuner->equals[i]].n > most ? tuner->candidates[tuner->equals[i]].n : most;
        for (; runs < rounds * most && r == 0 && tuner->tuning->clock() < (runs < most ? tuner->tuning->until_ns : until_ns);
                runs++)
                r = sl_timed_runs_next(timed);
        if (r == 0)
                count_all_times(tuner, program, timed_nodes, runs);
        /* Every algorithm has weights of its own there: a model that just fits is not timed. */
        return r == -ETIME || r == -ENOMEM ? 0 : r;
}

/* `quick` times both ends of the ladder, `full` every size; each gets an equal share of what time is left. */
static int time_all(struct tuner *tuner)
{
        uint32_t step = tuner->tuning->options->tune == SL_TUNE_FULL || tuner->n_programs < 3 ? 1 : tuner->n_programs - 1;
        uint32_t left = (tuner->n_programs - 1) / step + 1;
        int r = 0;

        for (uint32_t p = 0; p < tuner->n_programs && r == 0; p += step, left--) {
                uint64_t now = tuner->tuning->clock();

                if (now >= tuner->tuning->until_ns)
                        break;
                r = time_program(tuner, p, now + (tuner->tuning->until_ns - now) / left);
        }
        return r;
}

/* Another than the first guess must be clearly faster: what is not better stays as it would be without a clock. */
static void take_fastest(const struct candidates *candidates, struct sl_step_choice *choice)
{
        const struct candidate *list = candidates->list, *best = &list[0];
        double margin = candidates->n_sizes * log1p(MARGIN * (1 + (double)MARGIN_RUNS / candidates->n_runs));

        for (uint32_t i = 1; i < candidates->n; i++) {
                if (list[i].measured < best->measured)
                        best = &list[i];
        }
        choice->reason = SL_CHOICE_FASTEST;
        if (best != &list[0] && list[0].measured - best->measured < margin) {
                best = &list[0];
                choice->reason = SL_CHOICE_AS_FAST;
        }
        choice->algorithm = best->algorithm;
        choice->n_timed = candidates->n;
        choice->relative_error = (float)best->error;
        choice->microseconds = (float)best->microseconds;
        choice->runner_up_microseconds = HUGE_VALF;
        for (uint32_t i = 0; i < candidates->n; i++) {
                if (&list[i] != best)
                        choice->runner_up_microseconds = fminf(choice->runner_up_microseconds, (float)list[i].microseconds);
        }
}

static void index_nodes(struct tuner *tuner)
{
        for (size_t i = 0; i < (size_t)tuner->n_programs * tuner->n_choices; i++)
                tuner->nodes[i] = SL_VALUE_NONE;
        for (uint32_t p = 0; p < tuner->n_programs; p++) {
                const struct sl_placement *placement = tuner->programs[p].placement;

                for (uint32_t i = 0; i < placement->graph->n_nodes; i++) {
                        if (placement->origins[i] < tuner->n_choices && placement->backends[i])
                                tuner->nodes[(size_t)p * tuner->n_choices + placement->origins[i]] = i;
                }
        }
}

static int set_algorithm(struct tuner *tuner, uint32_t origin, uint32_t algorithm)
{
        for (uint32_t p = 0; p < tuner->n_programs; p++) {
                struct sl_node *node = &tuner->programs[p].placement->graph->nodes[node_of(tuner, p, origin)];
                int r = sl_attrs_set_int(&node->attrs, SL_ATTR_ALGORITHM, algorithm);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int run_reference(struct tuner *tuner)
{
        bool any = false;
        int r;

        for (uint32_t i = 0; i < tuner->n_choices && !any; i++)
                any = is_open(&tuner->candidates[i]);
        if (!any)
                return 0;
        r = sl_reference_run(tuner->programs[0].placement, check_node, tuner);
        if (r < 0)
                return r;
        sort_by_shape(tuner);
        return tuner->n_equals ? time_all(tuner) : 0;
}

static int choose(struct tuner *tuner)
{
        int r = 0;

        for (uint32_t i = 0; i < tuner->n_choices; i++)
                list_candidates(tuner, i, &tuner->candidates[i]);
        if (tuner->tuning->options->tune != SL_TUNE_OFF)
                r = run_reference(tuner);
        for (uint32_t i = 0; i < tuner->n_choices && r >= 0; i++) {
                struct sl_step_choice *choice = &tuner->choices[i];

                if (tuner->candidates[i].n_sizes)
                        take_fastest(&tuner->candidates[i], choice);
                else
                        r = guess_algorithm(tuner, i);
                if (r >= 0 && choice->algorithm != SL_ALGORITHM_AUTO)
                        r = set_algorithm(tuner, i, choice->algorithm);
        }
        return r < 0 ? r : 0;
}

int sl_tune(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning, struct sl_step_choice *choices,
        uint32_t n_choices, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct tuner *tuner = calloc(1, sizeof(*tuner));
        SL_CLEANUP(sl_cleanup_free) uint32_t *nodes = calloc((size_t)n_programs * n_choices + 1, sizeof(*nodes));
        SL_CLEANUP(sl_cleanup_free) uint32_t *equals = calloc(n_choices + 1u, sizeof(*equals));
        SL_CLEANUP(sl_cleanup_free) struct candidates *candidates = calloc(n_choices + 1u, sizeof(*candidates));
        int r;

        if (!tuner || !nodes || !equals || !candidates)
                return sl_error_set(error, ENOMEM, "no memory to choose the algorithms of %u nodes", n_choices);
        *tuner = (struct tuner){.tuning = tuning,
                .target = sl_lower_options_target(tuning->options),
                .programs = programs,
                .n_programs = n_programs,
                .choices = choices,
                .candidates = candidates,
                .n_choices = n_choices,
                .nodes = nodes,
                .equals = equals};
        memset(choices, 0, n_choices * sizeof(*choices));
        index_nodes(tuner);
        r = choose(tuner);
        return r < 0 ? sl_error_set(error, -r, "no memory to choose the algorithms of %u nodes", n_choices) : 0;
}
