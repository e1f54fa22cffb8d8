/* SPDX-License-Identifier: Apache-2.0 */
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
#include "performance.h"
#include "placement.h"
#include "rehearsal.h"
#include "trial.h"

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

SL_DEFINE_CLEANUP(struct sl_trial *, sl_trial_free)
SL_DEFINE_CLEANUP(struct sl_performance *, sl_performance_free)

struct contender {
        uint32_t algorithm;
        double guess;    /* the backend's, as below */
        double measured; /* logarithms of seconds, summed over batch sizes: all of them count the same */
        double error;
        double microseconds; /* at the smallest batch; 0: not timed */
};

/* The algorithms of one node of the source, the best guess first. */
struct contest {
        uint32_t n;
        struct contender contenders[SL_ALGORITHM_COUNT];
        bool follows;     /* the first is what the base plan takes: it is not timed */
        bool checked;     /* those that are too inexact on the model's activations are out */
        uint32_t n_sizes; /* that measured says something about */
        uint32_t n_runs;  /* of each algorithm, at the size that has the fewest */
        uint64_t shape;   /* equal for nodes that differ in nothing but their data */
};

struct tuner {
        const struct sl_tuning *tuning;
        const struct sl_program *programs;
        uint32_t n_programs;
        struct sl_choice *choices; /* of each node of the source */
        struct contest *contests;
        uint32_t n_choices;
        uint32_t *nodes;  /* of program p: the node that stands for source node i, at p * n_choices + i */
        uint32_t *equals; /* source nodes that have a choice, those of one shape behind each other */
        uint32_t n_equals;
        struct sl_core_figures core;
        struct sl_node_desc desc; /* too large for the stack of a deep call */
};

/* What the options say of the core; where they say nothing, what is typical. */
static struct sl_core_figures read_core(const struct sl_lower_options *options)
{
        const struct sl_core_figures *typical = &sl_core_figures_typical;

        return (struct sl_core_figures){.flops = options->core_flops > 0 ? options->core_flops : typical->flops,
                .weights = options->core_weights > 0 ? options->core_weights : typical->weights,
                .stream = options->core_stream > 0 ? options->core_stream : typical->stream,
                .far = options->core_far > 0 ? options->core_far : typical->far,
                .near = options->core_near > 0 ? options->core_near : typical->near};
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

/* The smallest has listed the algorithm itself. */
static bool fits_larger_sizes(struct tuner *tuner, uint32_t origin, uint32_t algorithm)
{
        for (uint32_t p = 1; p < tuner->n_programs; p++) {
                if (!describe(tuner, p, origin, algorithm) || !backend_of(tuner, p, origin)->supports(&tuner->desc))
                        return false;
        }
        return true;
}

static struct contender *find_contender(struct contest *contest, uint32_t algorithm)
{
        for (uint32_t i = 0; i < contest->n; i++) {
                if (contest->contenders[i].algorithm == algorithm)
                        return &contest->contenders[i];
        }
        return NULL;
}

static int by_guess(const void *a, const void *b)
{
        const struct contender *left = a, *right = b;

        return (left->guess > right->guess) - (left->guess < right->guess);
}

/* The guess at one batch size. */
static void add_guesses(struct tuner *tuner, uint32_t program, uint32_t origin, struct contest *contest)
{
        uint32_t all[SL_ALGORITHM_COUNT], n = 0;
        double seconds[SL_ALGORITHM_COUNT];

        if (describe(tuner, program, origin, SL_ALGORITHM_AUTO))
                n = backend_of(tuner, program, origin)->algorithms(&tuner->desc, &tuner->core, all, seconds);
        for (uint32_t i = 0; i < n; i++) {
                struct contender *contender = find_contender(contest, all[i]);

                if (contender)
                        contender->guess += log(seconds[i]);
        }
}

/* What the base takes for the node becomes the first, if it can be taken here. */
static void follow_base(const struct tuner *tuner, uint32_t origin, struct contest *contest)
{
        const struct sl_node *node = &tuner->programs[0].placement->graph->nodes[node_of(tuner, 0, origin)];
        uint32_t wanted = contest->n ? sl_base_plan_algorithm(tuner->tuning->base, node->name, node->op) : SL_ALGORITHM_AUTO;
        const struct contender *found = find_contender(contest, wanted);

        if (!found)
                return;
        struct contender first = *found;

        memmove(contest->contenders + 1, contest->contenders, (size_t)(found - contest->contenders) * sizeof(first));
        contest->contenders[0] = first;
        contest->follows = true;
}

/* What is fast at one batch may be slow at another, so both ends of the ladder are asked. */
static void list_contenders(struct tuner *tuner, uint32_t origin, struct contest *contest)
{
        uint32_t all[SL_ALGORITHM_COUNT], n;
        double seconds[SL_ALGORITHM_COUNT];

        if (!describe(tuner, 0, origin, SL_ALGORITHM_AUTO))
                return;
        contest->shape = XXH3_64bits(&tuner->desc, sizeof(tuner->desc));
        n = backend_of(tuner, 0, origin)->algorithms(&tuner->desc, &tuner->core, all, seconds);
        for (uint32_t i = 0; i < n; i++) {
                if (!fits_larger_sizes(tuner, origin, all[i]))
                        continue;
                contest->contenders[contest->n].algorithm = all[i];
                contest->contenders[contest->n++].guess = log(seconds[i]);
        }
        if (tuner->n_programs > 1)
                add_guesses(tuner, tuner->n_programs - 1, origin, contest);
        qsort(contest->contenders, contest->n, sizeof(contest->contenders[0]), by_guess);
        follow_base(tuner, origin, contest);
}

static void pass_over(struct sl_choice *choice, enum sl_choice_reason reason, uint32_t algorithm, double error)
{
        if (choice->passed_over != SL_ALGORITHM_AUTO)
                return;
        choice->reason = reason;
        choice->passed_over = algorithm;
        choice->relative_error = isfinite(error) ? (float)error : HUGE_VALF;
}

/* The options rule it out, which is noted. */
static bool is_ruled_out(const struct tuner *tuner, const struct contender *contender, struct sl_choice *choice)
{
        bool out = sl_algorithm_is_approximate(contender->algorithm) && !tuner->tuning->options->winograd;

        if (out)
                pass_over(choice, SL_CHOICE_RULED_OUT, contender->algorithm, 0);
        return out;
}

/* Its error, which is known by now, is too large, which is noted. */
static bool is_inexact(const struct tuner *tuner, const struct contender *contender, struct sl_choice *choice)
{
        bool inexact = sl_algorithm_is_approximate(contender->algorithm) &&
                       !(contender->error <= tuner->tuning->options->max_relative_error);

        if (inexact)
                pass_over(choice, SL_CHOICE_INEXACT, contender->algorithm, contender->error);
        return inexact;
}

/* The constants of the node at the smallest batch. */
static void gather_constants(const struct tuner *tuner, uint32_t origin, const void *constants[SL_NODE_INPUTS_MAX])
{
        const struct sl_graph *graph = tuner->programs[0].placement->graph;
        const struct sl_node *node = &graph->nodes[node_of(tuner, 0, origin)];

        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                constants[i] = i < node->n_inputs ? sl_graph_constant(graph, node->inputs[i]) : NULL;
}

/* The error on a part of the node, where the model was not rehearsed. */
static int sample_error(struct tuner *tuner, uint32_t origin, struct contender *contender)
{
        const void *constants[SL_NODE_INPUTS_MAX];
        int r = -ENOTSUP;

        gather_constants(tuner, origin, constants);
        if (describe(tuner, 0, origin, contender->algorithm))
                r = sl_exactness_sample(backend_of(tuner, 0, origin), &tuner->desc, constants, &contender->error);
        if (r < 0)
                contender->error = HUGE_VAL;
        return r == -ENOMEM ? r : 0;
}

/* The first that may be taken, as with `tune: off`. */
static int guess(struct tuner *tuner, uint32_t origin)
{
        struct contest *contest = &tuner->contests[origin];
        struct sl_choice *choice = &tuner->choices[origin];

        for (uint32_t i = 0; i < contest->n; i++) {
                struct contender *contender = &contest->contenders[i];
                bool approximate = sl_algorithm_is_approximate(contender->algorithm);

                if (is_ruled_out(tuner, contender, choice))
                        continue;
                if (approximate && !contest->checked && sample_error(tuner, origin, contender) < 0)
                        return -ENOMEM;
                if (is_inexact(tuner, contender, choice))
                        continue;
                choice->algorithm = contender->algorithm;
                if (approximate)
                        choice->relative_error = (float)contender->error;
                if (choice->reason == SL_CHOICE_NONE)
                        choice->reason = contest->follows ? SL_CHOICE_BASE : SL_CHOICE_GUESS;
                return 0;
        }
        return 0;
}

/* The error on the activations that reach the node in the rehearsal. */
static int measure_error(struct tuner *tuner, uint32_t origin, const struct sl_rehearsed *rehearsed, struct contender *contender)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        int r;

        contender->error = HUGE_VAL;
        if (!describe(tuner, 0, origin, contender->algorithm) || tuner->desc.outputs[0].dtype != SL_DTYPE_F32)
                return -ENOTSUP;
        r = sl_trial_new(backend_of(tuner, 0, origin), &tuner->desc, rehearsed->constants, &trial, NULL);
        if (r == 0)
                r = sl_trial_run(trial, rehearsed->inputs);
        if (r == 0)
                contender->error = sl_exactness_compare(sl_trial_output(trial, 0), sl_trial_output(rehearsed->trial, 0),
                        sl_shape_elements(&tuner->desc.outputs[0].shape));
        return r;
}

/* Strikes out what may not be taken. */
static int check(struct tuner *tuner, uint32_t origin, const struct sl_rehearsed *rehearsed)
{
        struct contest *contest = &tuner->contests[origin];
        struct sl_choice *choice = &tuner->choices[origin];
        uint32_t n = 0;

        for (uint32_t i = 0; i < contest->n; i++) {
                struct contender *contender = &contest->contenders[i];
                bool approximate = sl_algorithm_is_approximate(contender->algorithm);

                if (is_ruled_out(tuner, contender, choice))
                        continue;
                if (approximate && measure_error(tuner, origin, rehearsed, contender) == -ENOMEM)
                        return -ENOMEM;
                if (!is_inexact(tuner, contender, choice))
                        contest->contenders[n++] = *contender;
        }
        contest->n = n;
        contest->checked = true;
        return 0;
}

static bool is_open(const struct contest *contest)
{
        return contest->n > 1 && !contest->follows;
}

static int visit(void *context, const struct sl_rehearsed *rehearsed)
{
        struct tuner *tuner = context;
        uint32_t origin = tuner->programs[0].placement->origins[rehearsed->node];

        if (tuner->tuning->clock() > tuner->tuning->until_ns)
                return 1;
        return origin < tuner->n_choices && is_open(&tuner->contests[origin]) ? check(tuner, origin, rehearsed) : 0;
}

static bool has_choice(const struct contest *contest)
{
        return contest->checked && is_open(contest);
}

static int by_shape(const void *a, const void *b, void *context)
{
        const struct contest *contests = context;
        uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

        if (contests[i].shape != contests[k].shape)
                return contests[i].shape < contests[k].shape ? -1 : 1;
        return (i > k) - (i < k);
}

/* Of equal shape are only nodes for which the same algorithms are left. */
static void sort_by_shape(struct tuner *tuner)
{
        tuner->n_equals = 0;
        for (uint32_t i = 0; i < tuner->n_choices; i++) {
                struct contest *contest = &tuner->contests[i];

                for (uint32_t k = 0; k < contest->n; k++)
                        contest->shape = XXH3_64bits_withSeed(&contest->contenders[k].algorithm, sizeof(uint32_t), contest->shape);
                if (has_choice(contest))
                        tuner->equals[tuner->n_equals++] = i;
        }
        qsort_r(tuner->equals, tuner->n_equals, sizeof(*tuner->equals), by_shape, tuner->contests);
}

static void hand_out_parts(const struct tuner *tuner, uint32_t program, struct sl_part *parts)
{
        for (uint32_t i = 0; i < tuner->n_equals; i++) {
                const struct contest *contest = &tuner->contests[tuner->equals[i]];
                struct sl_part *part = &parts[node_of(tuner, program, tuner->equals[i])];

                part->n_algorithms = contest->n;
                for (uint32_t k = 0; k < contest->n; k++)
                        part->algorithms[k] = contest->contenders[k].algorithm;
        }
}

static bool is_timed(const struct sl_part *part)
{
        for (uint32_t i = 0; i < part->n_algorithms; i++) {
                if (!isfinite(part->microseconds[i]))
                        return false;
        }
        return part->n_algorithms > 0;
}

/* Nodes of one shape decide together: the shortest time of all. @equals: @n of them, @runs of the whole model. */
static void count_times(
        struct tuner *tuner, uint32_t program, const uint32_t *equals, uint32_t n, const struct sl_part *parts, uint32_t runs)
{
        double least[SL_ALGORITHM_COUNT];
        uint32_t n_timed = 0;

        for (uint32_t k = 0; k < SL_ALGORITHM_COUNT; k++)
                least[k] = INFINITY;
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_part *part = &parts[node_of(tuner, program, equals[i])];

                n_timed += is_timed(part);
                for (uint32_t k = 0; k < part->n_algorithms && is_timed(part); k++)
                        least[k] = fmin(least[k], part->microseconds[k]);
        }
        for (uint32_t i = 0; i < n && n_timed; i++) {
                struct contest *contest = &tuner->contests[equals[i]];
                uint32_t own_runs = n_timed * (runs / contest->n);

                contest->n_runs = contest->n_sizes++ && contest->n_runs < own_runs ? contest->n_runs : own_runs;
                for (uint32_t k = 0; k < contest->n; k++) {
                        contest->contenders[k].measured += log(least[k] + GRAIN);
                        if (program == 0)
                                contest->contenders[k].microseconds = least[k];
                }
        }
}

static void count_all_times(struct tuner *tuner, uint32_t program, const struct sl_part *parts, uint32_t runs)
{
        for (uint32_t first = 0, end = 0; first < tuner->n_equals; first = end) {
                uint64_t shape = tuner->contests[tuner->equals[first]].shape;

                while (end < tuner->n_equals && tuner->contests[tuner->equals[end]].shape == shape)
                        end++;
                count_times(tuner, program, tuner->equals + first, end - first, parts, runs);
        }
}

/* Times all nodes at one batch size, at least one round unless the time is over. */
static int time_program(struct tuner *tuner, uint32_t program, uint64_t until_ns)
{
        const struct sl_placement *placement = tuner->programs[program].placement;
        SL_CLEANUP(sl_cleanup_free) struct sl_part *parts = calloc(placement->graph->n_nodes + 1u, sizeof(*parts));
        SL_CLEANUP(sl_cleanup_sl_performance_free) struct sl_performance *performance = NULL;
        uint32_t rounds = tuner->tuning->options->tune == SL_TUNE_FULL ? FULL_ROUNDS : QUICK_ROUNDS, most = 1, runs = 0;
        int r;

        if (!parts)
                return -ENOMEM;
        hand_out_parts(tuner, program, parts);
        r = sl_performance_new(placement, parts, tuner->tuning->clock, until_ns, &performance);
        for (uint32_t i = 0; i < tuner->n_equals; i++)
                most = tuner->contests[tuner->equals[i]].n > most ? tuner->contests[tuner->equals[i]].n : most;
        for (; runs < rounds * most && r == 0 && tuner->tuning->clock() < (runs < most ? tuner->tuning->until_ns : until_ns);
                runs++)
                r = sl_performance_run(performance);
        if (r == 0)
                count_all_times(tuner, program, parts, runs);
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
static void take_fastest(const struct contest *contest, struct sl_choice *choice)
{
        const struct contender *contenders = contest->contenders, *winner = &contenders[0];
        double margin = contest->n_sizes * log1p(MARGIN * (1 + (double)MARGIN_RUNS / contest->n_runs));

        for (uint32_t i = 1; i < contest->n; i++) {
                if (contenders[i].measured < winner->measured)
                        winner = &contenders[i];
        }
        choice->reason = SL_CHOICE_FASTEST;
        if (winner != &contenders[0] && contenders[0].measured - winner->measured < margin) {
                winner = &contenders[0];
                choice->reason = SL_CHOICE_AS_FAST;
        }
        choice->algorithm = winner->algorithm;
        choice->n_timed = contest->n;
        choice->relative_error = (float)winner->error;
        choice->microseconds = (float)winner->microseconds;
        choice->runner_up_microseconds = HUGE_VALF;
        for (uint32_t i = 0; i < contest->n; i++) {
                if (&contenders[i] != winner)
                        choice->runner_up_microseconds = fminf(choice->runner_up_microseconds, (float)contenders[i].microseconds);
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

static int rehearse(struct tuner *tuner)
{
        bool any = false;
        int r;

        for (uint32_t i = 0; i < tuner->n_choices && !any; i++)
                any = is_open(&tuner->contests[i]);
        if (!any)
                return 0;
        r = sl_rehearse(tuner->programs[0].placement, visit, tuner);
        if (r < 0)
                return r;
        sort_by_shape(tuner);
        return tuner->n_equals ? time_all(tuner) : 0;
}

static int choose(struct tuner *tuner)
{
        int r = 0;

        for (uint32_t i = 0; i < tuner->n_choices; i++)
                list_contenders(tuner, i, &tuner->contests[i]);
        if (tuner->tuning->options->tune != SL_TUNE_OFF)
                r = rehearse(tuner);
        for (uint32_t i = 0; i < tuner->n_choices && r >= 0; i++) {
                struct sl_choice *choice = &tuner->choices[i];

                if (tuner->contests[i].n_sizes)
                        take_fastest(&tuner->contests[i], choice);
                else
                        r = guess(tuner, i);
                if (r >= 0 && choice->algorithm != SL_ALGORITHM_AUTO)
                        r = set_algorithm(tuner, i, choice->algorithm);
        }
        return r < 0 ? r : 0;
}

int sl_tune(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning, struct sl_choice *choices,
        uint32_t n_choices, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct tuner *tuner = calloc(1, sizeof(*tuner));
        SL_CLEANUP(sl_cleanup_free) uint32_t *nodes = calloc((size_t)n_programs * n_choices + 1, sizeof(*nodes));
        SL_CLEANUP(sl_cleanup_free) uint32_t *equals = calloc(n_choices + 1u, sizeof(*equals));
        SL_CLEANUP(sl_cleanup_free) struct contest *contests = calloc(n_choices + 1u, sizeof(*contests));
        int r;

        if (!tuner || !nodes || !equals || !contests)
                return sl_error_set(error, ENOMEM, "no memory to choose the algorithms of %u nodes", n_choices);
        *tuner = (struct tuner){.tuning = tuning,
                .core = read_core(tuning->options),
                .programs = programs,
                .n_programs = n_programs,
                .choices = choices,
                .contests = contests,
                .n_choices = n_choices,
                .nodes = nodes,
                .equals = equals};
        memset(choices, 0, n_choices * sizeof(*choices));
        index_nodes(tuner);
        r = choose(tuner);
        return r < 0 ? sl_error_set(error, -r, "no memory to choose the algorithms of %u nodes", n_choices) : 0;
}
