#include "tune.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base_plan.h"
#include "exactness.h"
#include "graph.h"
#include "lower.h"
#include "lower_options.h"
#include "placement.h"
#include "rehearsal.h"
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define QUICK_SECONDS 0.004 /* of timing one candidate */
#define FULL_SECONDS  0.05
#define SWEEP_BYTES   (6u << 20) /* more than a core's second cache */

SL_DEFINE_CLEANUP(struct sl_trial *, sl_trial_free)

struct timing {
        uint64_t key; /* of the node and its algorithm */
        double microseconds;
};

struct tuner {
        const struct sl_lower_options *options;
        const struct sl_base_plan *base;
        const struct sl_program *programs;
        uint32_t n_programs;
        struct sl_choice *choices; /* of each node of the source */
        uint32_t n_choices;
        uint32_t *nodes; /* of program p: the node that stands for source node i, at p * n_choices + i */
        struct timing *timings;
        uint32_t n_timings, timings_room;
        uint64_t until_ns;
        struct sl_trial_sweep sweep;
        struct sl_node_desc desc; /* too large for the stack of a deep call */
};

struct candidates {
        uint32_t n;
        uint32_t algorithms[SL_ALGORITHM_COUNT]; /* the backend's first guess first */
};

static bool is_approximate(uint32_t algorithm)
{
        return algorithm == SL_ALGORITHM_WINOGRAD_2 || algorithm == SL_ALGORITHM_WINOGRAD_4;
}

static uint32_t node_of(const struct tuner *tuner, uint32_t program, uint32_t origin)
{
        return tuner->nodes[(size_t)program * tuner->n_choices + origin];
}

/* Fills tuner->desc with the node at one batch size, computed by @algorithm. False when there is no such node. */
static bool describe(struct tuner *tuner, uint32_t program, uint32_t origin, uint32_t algorithm)
{
        uint32_t node = node_of(tuner, program, origin);

        memset(&tuner->desc, 0, sizeof(tuner->desc));
        return node != SL_VALUE_NONE && sl_graph_describe(tuner->programs[program].placement->graph, node, &tuner->desc) == 0 &&
               sl_attrs_set_int(&tuner->desc.attrs, SL_ATTR_ALGORITHM, algorithm) == 0;
}

static const struct sl_backend *backend_of(const struct tuner *tuner, uint32_t program, uint32_t origin)
{
        return tuner->programs[program].placement->backends[node_of(tuner, program, origin)];
}

static bool fits_all_sizes(struct tuner *tuner, uint32_t origin, uint32_t algorithm)
{
        for (uint32_t p = 0; p < tuner->n_programs; p++) {
                if (!describe(tuner, p, origin, algorithm) || !backend_of(tuner, p, origin)->supports(&tuner->desc))
                        return false;
        }
        return true;
}

static void list_candidates(struct tuner *tuner, uint32_t origin, struct candidates *candidates)
{
        uint32_t all[SL_ALGORITHM_COUNT], n;

        candidates->n = 0;
        if (!describe(tuner, 0, origin, SL_ALGORITHM_AUTO))
                return;
        n = backend_of(tuner, 0, origin)->algorithms(&tuner->desc, all);
        for (uint32_t i = 0; i < n; i++) {
                if (fits_all_sizes(tuner, origin, all[i]))
                        candidates->algorithms[candidates->n++] = all[i];
        }
}

/* What the base takes for the node, if it can be taken here: then it becomes the first candidate. */
static bool follow_base(const struct tuner *tuner, uint32_t origin, struct candidates *candidates)
{
        const struct sl_node *node = &tuner->programs[0].placement->graph->nodes[node_of(tuner, 0, origin)];
        uint32_t wanted = candidates->n ? sl_base_plan_algorithm(tuner->base, node->name, node->op) : SL_ALGORITHM_AUTO;
        uint32_t at = 0;

        while (at < candidates->n && candidates->algorithms[at] != wanted)
                at++;
        if (at == candidates->n)
                return false;
        memmove(candidates->algorithms + 1, candidates->algorithms, at * sizeof(*candidates->algorithms));
        candidates->algorithms[0] = wanted;
        return true;
}

static void pass_over(struct sl_choice *choice, enum sl_choice_reason reason, uint32_t algorithm, double error)
{
        if (choice->passed_over != SL_ALGORITHM_AUTO)
                return;
        choice->reason = reason;
        choice->passed_over = algorithm;
        choice->relative_error = isfinite(error) ? (float)error : HUGE_VALF;
}

/* The constants of the node at the smallest batch. */
static void gather_constants(const struct tuner *tuner, uint32_t origin, const void *constants[SL_NODE_INPUTS_MAX])
{
        const struct sl_graph *graph = tuner->programs[0].placement->graph;
        const struct sl_node *node = &graph->nodes[node_of(tuner, 0, origin)];

        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                constants[i] = i < node->n_inputs ? sl_graph_constant(graph, node->inputs[i]) : NULL;
}

/* The first candidate that may be taken, as with `tune: off`. */
static int guess(struct tuner *tuner, uint32_t origin, struct candidates *candidates, struct sl_choice *choice)
{
        const void *constants[SL_NODE_INPUTS_MAX];
        bool follows;

        if (!candidates->n)
                return 0;
        follows = follow_base(tuner, origin, candidates);
        gather_constants(tuner, origin, constants);
        for (uint32_t i = 0; i < candidates->n; i++) {
                uint32_t algorithm = candidates->algorithms[i];
                double error = 0;

                if (is_approximate(algorithm) && !tuner->options->winograd) {
                        pass_over(choice, SL_CHOICE_RULED_OUT, algorithm, 0);
                        continue;
                }
                if (is_approximate(algorithm)) {
                        int r = describe(tuner, 0, origin, algorithm)
                                        ? sl_exactness_sample(backend_of(tuner, 0, origin), &tuner->desc, constants, &error)
                                        : -ENOTSUP;

                        if (r == -ENOMEM)
                                return r;
                        if (r < 0 || !(error <= tuner->options->max_relative_error)) {
                                pass_over(choice, SL_CHOICE_INEXACT, algorithm, r < 0 ? HUGE_VAL : error);
                                continue;
                        }
                        choice->relative_error = (float)error;
                }
                choice->algorithm = algorithm;
                if (choice->reason == SL_CHOICE_NONE)
                        choice->reason = follows ? SL_CHOICE_BASE : SL_CHOICE_GUESS;
                return 0;
        }
        return 0;
}

static struct timing *find_timing(const struct tuner *tuner, uint64_t key)
{
        for (uint32_t i = 0; i < tuner->n_timings; i++) {
                if (tuner->timings[i].key == key)
                        return &tuner->timings[i];
        }
        return NULL;
}

static int remember(struct tuner *tuner, uint64_t key, double microseconds)
{
        if (tuner->n_timings == tuner->timings_room) {
                uint32_t room = tuner->timings_room * 2 + 64;
                struct timing *grown = reallocarray(tuner->timings, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                tuner->timings = grown;
                tuner->timings_room = room;
        }
        tuner->timings[tuner->n_timings++] = (struct timing){key, microseconds};
        return 0;
}

/* tuner->desc, on seeded activations; nodes of equal shapes take equally long. */
static int time_described(struct tuner *tuner, const struct sl_backend *backend, const void *const *constants, double *ret_us)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        uint64_t key = XXH3_64bits(&tuner->desc, sizeof(tuner->desc));
        const struct timing *known = find_timing(tuner, key);
        int r;

        if (known) {
                *ret_us = known->microseconds;
                return 0;
        }
        r = sl_trial_new(backend, &tuner->desc, constants, &trial, NULL);
        if (r == 0)
                r = sl_trial_time(
                        trial, NULL, &tuner->sweep, tuner->options->tune == SL_TUNE_FULL ? FULL_SECONDS : QUICK_SECONDS, ret_us);
        return r < 0 ? r : remember(tuner, key, *ret_us);
}

/* The error on the activations that reach the node in the rehearsal. */
static int measure_error(
        struct tuner *tuner, uint32_t origin, uint32_t algorithm, const struct sl_rehearsed *rehearsed, double *ret_error)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        int r;

        if (!describe(tuner, 0, origin, algorithm) || tuner->desc.outputs[0].dtype != SL_DTYPE_F32)
                return -ENOTSUP;
        r = sl_trial_new(backend_of(tuner, 0, origin), &tuner->desc, rehearsed->constants, &trial, NULL);
        if (r == 0)
                r = sl_trial_run(trial, rehearsed->inputs);
        if (r == 0)
                *ret_error = sl_exactness_compare(sl_trial_output(trial, 0), sl_trial_output(rehearsed->trial, 0),
                        sl_shape_elements(&tuner->desc.outputs[0].shape));
        return r;
}

struct measured {
        uint32_t algorithm;
        double error, small_us, large_us; /* at the smallest and the largest batch */
};

static int time_at(
        struct tuner *tuner, uint32_t program, uint32_t origin, uint32_t algorithm, const void *const *constants, double *ret_us)
{
        if (!describe(tuner, program, origin, algorithm))
                return -ENOTSUP;
        return time_described(tuner, backend_of(tuner, program, origin), constants, ret_us);
}

/* Those within the error bound, timed. What cannot be run alone is left out. */
static int measure_candidates(struct tuner *tuner, uint32_t origin, const struct candidates *candidates,
        const struct sl_rehearsed *rehearsed, struct sl_choice *choice, struct measured *measured, uint32_t *ret_n)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < candidates->n; i++) {
                struct measured *here = &measured[n];
                int r = 0;

                *here = (struct measured){.algorithm = candidates->algorithms[i]};
                if (is_approximate(here->algorithm) && !tuner->options->winograd)
                        continue;
                if (is_approximate(here->algorithm))
                        r = measure_error(tuner, origin, here->algorithm, rehearsed, &here->error);
                if (r == 0 && !(here->error <= tuner->options->max_relative_error)) {
                        pass_over(choice, SL_CHOICE_INEXACT, here->algorithm, here->error);
                        continue;
                }
                if (r == 0)
                        r = time_at(tuner, 0, origin, here->algorithm, rehearsed->constants, &here->small_us);
                if (r == 0)
                        r = time_at(tuner, tuner->n_programs - 1, origin, here->algorithm, rehearsed->constants, &here->large_us);
                if (r == -ENOMEM)
                        return r;
                n += r == 0;
        }
        *ret_n = n;
        return 0;
}

/* Both batch sizes count the same, whatever they take. */
static void take_fastest(const struct measured *measured, uint32_t n, struct sl_choice *choice)
{
        double small = HUGE_VAL, large = HUGE_VAL, best = HUGE_VAL;
        uint32_t winner = 0;

        for (uint32_t i = 0; i < n; i++) {
                small = fmin(small, measured[i].small_us);
                large = fmin(large, measured[i].large_us);
        }
        for (uint32_t i = 0; i < n; i++) {
                double cost = measured[i].small_us / small + measured[i].large_us / large;

                if (cost < best) {
                        best = cost;
                        winner = i;
                }
        }
        choice->algorithm = measured[winner].algorithm;
        choice->reason = SL_CHOICE_FASTEST;
        choice->n_timed = n;
        choice->relative_error = (float)measured[winner].error;
        choice->microseconds = (float)measured[winner].small_us;
        choice->runner_up_microseconds = HUGE_VALF;
        for (uint32_t i = 0; i < n; i++) {
                if (i != winner)
                        choice->runner_up_microseconds = fminf(choice->runner_up_microseconds, (float)measured[i].small_us);
        }
}

static int visit(void *context, const struct sl_rehearsed *rehearsed)
{
        struct tuner *tuner = context;
        uint32_t origin = tuner->programs[0].placement->origins[rehearsed->node];
        struct measured measured[SL_ALGORITHM_COUNT];
        struct candidates candidates;
        uint32_t n;
        int r;

        if (sl_clock_ns() > tuner->until_ns)
                return 1;
        if (origin == SL_VALUE_NONE)
                return 0;
        list_candidates(tuner, origin, &candidates);
        if (candidates.n < 2 || follow_base(tuner, origin, &candidates))
                return 0;
        r = measure_candidates(tuner, origin, &candidates, rehearsed, &tuner->choices[origin], measured, &n);
        if (r == 0 && n > 1)
                take_fastest(measured, n, &tuner->choices[origin]);
        return r;
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

static bool has_choice(struct tuner *tuner)
{
        for (uint32_t i = 0; i < tuner->n_choices; i++) {
                struct candidates candidates;

                list_candidates(tuner, i, &candidates);
                if (candidates.n >= 2 && !follow_base(tuner, i, &candidates))
                        return true;
        }
        return false;
}

static int rehearse(struct tuner *tuner)
{
        SL_CLEANUP(sl_cleanup_free) uint8_t *bytes = malloc(SWEEP_BYTES);
        int r;

        if (!bytes)
                return -ENOMEM;
        memset(bytes, 1, SWEEP_BYTES);
        tuner->sweep = (struct sl_trial_sweep){bytes, SWEEP_BYTES};
        r = sl_rehearse(tuner->programs[0].placement, visit, tuner);
        tuner->sweep = (struct sl_trial_sweep){0};
        return r;
}

static int choose(struct tuner *tuner)
{
        int r = 0;

        if (tuner->options->tune != SL_TUNE_OFF && has_choice(tuner))
                r = rehearse(tuner);
        for (uint32_t i = 0; i < tuner->n_choices && r >= 0; i++) {
                struct sl_choice *choice = &tuner->choices[i];
                struct candidates candidates;

                if (choice->reason != SL_CHOICE_FASTEST) {
                        *choice = (struct sl_choice){0};
                        list_candidates(tuner, i, &candidates);
                        r = guess(tuner, i, &candidates, choice);
                }
                if (r >= 0 && choice->algorithm != SL_ALGORITHM_AUTO)
                        r = set_algorithm(tuner, i, choice->algorithm);
        }
        return r < 0 ? r : 0;
}

int sl_tune(struct sl_program *programs, uint32_t n_programs, const struct sl_lower_options *options,
        const struct sl_base_plan *base, struct sl_choice *choices, uint32_t n_choices, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct tuner *tuner = calloc(1, sizeof(*tuner));
        SL_CLEANUP(sl_cleanup_free) uint32_t *nodes = calloc((size_t)n_programs * n_choices + 1, sizeof(*nodes));
        int r;

        if (!tuner || !nodes)
                return sl_error_set(error, ENOMEM, "no memory to choose the algorithms of %u nodes", n_choices);
        *tuner = (struct tuner){.options = options,
                .base = base,
                .programs = programs,
                .n_programs = n_programs,
                .choices = choices,
                .n_choices = n_choices,
                .nodes = nodes,
                .until_ns = sl_clock_ns() + options->tune_seconds * SL_NS_PER_SECOND};
        index_nodes(tuner);
        r = choose(tuner);
        free(tuner->timings);
        return r < 0 ? sl_error_set(error, -r, "no memory to choose the algorithms of %u nodes", n_choices) : 0;
}
