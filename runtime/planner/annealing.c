/* SPDX-License-Identifier: Apache-2.0 */
#include "annealing.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "draw.h"
#include "matrix.h"
#include "problem.h"
#include "search.h"

#include <math.h>

#define HOT  0.1   /* of the best score: a loss that is taken with probability 1 / e at the start */
#define COLD 0.001 /* and at the end */

#define STEPS_MAX 3

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

/* One or two entries of a column, and what they were. */
struct step {
        uint32_t model, device, other, was, other_was;
};

static bool entry_change(const struct sl_search *search, struct sl_draw *draw, struct sl_matrix *matrix, struct step *step)
{
        uint32_t batches[SL_COST_BATCHES_MAX + 1];
        uint32_t n = sl_search_values(search, matrix, step->device, step->model, batches);

        if (n)
                *sl_matrix_entry(matrix, step->device, step->model) = batches[sl_draw_below(draw, n)];
        return n;
}

static bool worker_move(const struct sl_search *search, struct sl_matrix *matrix, struct step *step)
{
        if (step->device == step->other || !step->was == !step->other_was ||
                !sl_problem_allows(search->problem, step->device, step->model, step->other_was) ||
                !sl_problem_allows(search->problem, step->other, step->model, step->was))
                return false;
        *sl_matrix_entry(matrix, step->device, step->model) = step->other_was;
        *sl_matrix_entry(matrix, step->other, step->model) = step->was;
        return true;
}

static bool step_take(const struct sl_search *search, struct sl_draw *draw, struct sl_matrix *matrix, struct step *step)
{
        step->model = sl_draw_below(draw, matrix->n_models);
        step->device = sl_draw_below(draw, matrix->n_devices);
        step->other = sl_draw_below(draw, matrix->n_devices);
        step->was = sl_matrix_batch(matrix, step->device, step->model);
        step->other_was = sl_matrix_batch(matrix, step->other, step->model);
        return sl_draw_below(draw, 2) ? worker_move(search, matrix, step) : entry_change(search, draw, matrix, step);
}

/* Return: how many of @steps were taken. */
static uint32_t steps_take(const struct sl_search *search, struct sl_draw *draw, struct sl_matrix *matrix, struct step *steps)
{
        uint32_t wanted = 1 + sl_draw_below(draw, STEPS_MAX), n = 0;

        for (uint32_t i = 0; i < wanted; i++)
                n += step_take(search, draw, matrix, &steps[n]);
        return n;
}

static void steps_undo(struct sl_matrix *matrix, const struct step *steps, uint32_t n)
{
        while (n--) {
                *sl_matrix_entry(matrix, steps[n].other, steps[n].model) = steps[n].other_was;
                *sl_matrix_entry(matrix, steps[n].device, steps[n].model) = steps[n].was;
        }
}

static bool is_taken(struct sl_draw *draw, double score, double before, double best, double heat)
{
        return score >= before || sl_draw_share(draw) < exp((score - before) / (heat * fmax(fabs(best), 1e-300)));
}

int sl_annealing(struct sl_search *search, const struct sl_annealing_options *options, struct sl_matrix *matrix, double *ret_score,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *at = sl_matrix_new(matrix->n_devices, matrix->n_models);
        struct sl_draw draw = {.state = options->seed};
        double score, best;
        int r = at ? sl_search_score(search, matrix, &best, error) : sl_error_set(error, ENOMEM, "allocation: out of memory");

        if (r < 0)
                return r;
        sl_matrix_copy(at, matrix);
        double here = best;
        for (uint32_t i = 1; i < options->benches && sl_search_goes_on(search, matrix, best); i++) {
                struct step steps[STEPS_MAX];
                uint32_t n = steps_take(search, &draw, at, steps);

                bool fits = sl_matrix_fits(search->problem, at);
                r = fits ? sl_search_score(search, at, &score, error) : 0;
                if (r < 0)
                        return r;
                if (!fits || !is_taken(&draw, score, here, best, HOT * pow(COLD / HOT, (double)i / options->benches))) {
                        steps_undo(at, steps, n);
                        continue;
                }
                here = score;
                if (score > best) {
                        best = score;
                        sl_matrix_copy(matrix, at);
                }
        }
        *ret_score = best;
        return 0;
}
