/* SPDX-License-Identifier: Apache-2.0 */
#include "score.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "dataset.h"
#include "graph.h"
#include "greatest.h"
#include "runner.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define INPUTS_MAX 64
#define SUM_ERROR  1e-3
#define Z_95       1.959963984540054

SL_DEFINE_CLEANUP(struct sl_runner *, sl_runner_free)

struct scoring {
        const struct sl_graph *graph;
        const struct sl_dataset *samples;
        const struct sl_score_options *options;
        struct sl_runner *runner;
        float *floats;
        uint64_t n_floats;
        struct sl_score score;
};

static int check_labels(const struct scoring *scoring, struct sl_error *error)
{
        const int64_t *labels = scoring->options->labels;

        for (uint64_t i = 0; labels && i < sl_dataset_count(scoring->samples); i++)
                if (labels[i] < 0 || (uint64_t)labels[i] >= scoring->score.classes)
                        return sl_error_set(error, EINVAL,
                                "label %" PRIi64 " of sample %" PRIu64 ": output \"%s\" has classes 0 to %" PRIu64, labels[i], i,
                                scoring->graph->values[scoring->graph->outputs[0]].name, scoring->score.classes - 1);
        return 0;
}

/* The elements of one sample. */
static uint64_t elements_of(const struct sl_value *port)
{
        uint64_t elements = 1;

        for (uint32_t i = 1; i < port->tensor.shape.rank; i++)
                elements *= (uint64_t)port->tensor.shape.dims[i];
        return elements;
}

static int check_sample(const struct scoring *scoring, uint64_t sample, const void *const *inputs, struct sl_error *error)
{
        for (uint32_t i = 0; i < scoring->graph->n_inputs; i++) {
                const struct sl_value *port = &scoring->graph->values[scoring->graph->inputs[i]];
                const float *data = inputs[i];
                uint64_t n = port->tensor.dtype == SL_DTYPE_F32 ? elements_of(port) : 0;

                for (uint64_t k = 0; k < n; k++)
                        if (!isfinite(data[k]))
                                return sl_error_set(error, EINVAL, "sample %" PRIu64 ": element %" PRIu64 " of input \"%s\" is %g",
                                        sample, k, port->name, (double)data[k]);
        }
        return 0;
}

static void look_at_row(struct scoring *scoring)
{
        double sum = 0;
        bool inside = true;

        for (uint64_t i = 0; i < scoring->score.classes; i++) {
                sum += (double)scoring->floats[i];
                inside &= scoring->floats[i] >= 0 && scoring->floats[i] <= 1;
        }
        scoring->score.probabilities &= inside && sum <= 1 + SUM_ERROR;
        scoring->score.sums_to_one &= inside && fabs(sum - 1) <= SUM_ERROR;
}

static int score_sample(struct scoring *scoring, uint64_t sample, struct sl_error *error)
{
        const void *inputs[INPUTS_MAX];
        uint64_t class;
        int r;

        sl_dataset_at(scoring->samples, sample, inputs);
        r = check_sample(scoring, sample, inputs, error);
        if (r < 0)
                return r;
        r = sl_runner_run(scoring->runner, inputs, scoring->floats, error);
        if (r < 0)
                return sl_error_prefix(error, r, "sample %" PRIu64, sample);
        for (uint64_t i = 0; i < scoring->n_floats; i++)
                if (!isfinite(scoring->floats[i]))
                        return sl_error_set(error, EINVAL, "sample %" PRIu64 ": output \"%s\" is not finite", sample,
                                sl_runner_output_of(scoring->runner, i));
        look_at_row(scoring);
        class = sl_greatest(scoring->floats, scoring->score.classes);
        scoring->score.samples++;
        scoring->score.right += scoring->options->labels && scoring->options->labels[sample] == (int64_t) class;
        if (scoring->options->classes)
                scoring->options->classes[sample] = (int32_t) class;
        return 0;
}

int sl_score(const struct sl_graph *graph, const struct sl_dataset *samples, const struct sl_score_options *options,
        struct sl_score *ret_score, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_runner_free) struct sl_runner *runner = NULL;
        SL_CLEANUP(sl_cleanup_free) float *floats = NULL;
        struct scoring scoring = {
                .graph = graph, .samples = samples, .options = options, .score = {.probabilities = true, .sums_to_one = true}};
        int r = sl_runner_new(graph, options->lowering, &runner, error);

        if (r < 0)
                return r;
        scoring.runner = runner;
        scoring.score.classes = sl_runner_classes(runner);
        if (!scoring.score.classes)
                return sl_error_set(error, EINVAL, "output \"%s\" is no row of float32, one number for each class",
                        graph->values[graph->outputs[0]].name);
        scoring.n_floats = sl_runner_floats(runner);
        scoring.floats = floats = calloc(scoring.n_floats, sizeof(*floats));
        if (!floats)
                return sl_error_set(error, ENOMEM, "no memory for results");
        r = check_labels(&scoring, error);
        for (uint64_t i = options->first; i < sl_dataset_count(samples) && r == 0; i++)
                r = score_sample(&scoring, i, error);
        if (r == 0)
                *ret_score = scoring.score;
        return r;
}

void sl_score_interval(uint64_t right, uint64_t samples, double *ret_low, double *ret_high)
{
        double n = (double)samples, share = samples ? (double)right / n : 0.5, z2 = Z_95 * Z_95;
        double centre = samples ? (share + z2 / (2 * n)) / (1 + z2 / n) : 0.5;
        double half = samples ? Z_95 / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) : 0.5;

        *ret_low = centre > half ? centre - half : 0;
        *ret_high = centre + half < 1 ? centre + half : 1;
}
