/* SPDX-License-Identifier: Apache-2.0 */
#include "bounded_greedy.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "draw.h"
#include "matrix.h"
#include "problem.h"
#include "search.h"

#include <stdbool.h>
#include <stdlib.h>

/* A neighbour, as what differs. */
struct change {
        uint32_t device, model, batch;
};

struct greedy {
        struct sl_search *search;
        const struct sl_bounded_greedy_options *options;
        struct sl_draw draw;
        struct change *neighs;
        uint32_t n_neighs;
        bool stopped;
};

static void neighborhood_collect(struct greedy *greedy, const struct sl_matrix *matrix)
{
        uint32_t batches[SL_COST_BATCHES_MAX + 1];

        greedy->n_neighs = 0;
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models; m++) {
                        uint32_t n = sl_search_values(greedy->search, matrix, d, m, batches);

                        for (uint32_t i = 0; i < n; i++)
                                greedy->neighs[greedy->n_neighs++] = (struct change){d, m, batches[i]};
                }
}

/* The first max_neighs of a random order. */
static void neighbours_draw(struct greedy *greedy)
{
        if (greedy->n_neighs <= greedy->options->max_neighs)
                return;
        for (uint32_t i = 0; i < greedy->options->max_neighs; i++) {
                uint32_t j = i + sl_draw_below(&greedy->draw, greedy->n_neighs - i);
                struct change drawn = greedy->neighs[j];

                greedy->neighs[j] = greedy->neighs[i];
                greedy->neighs[i] = drawn;
        }
        greedy->n_neighs = greedy->options->max_neighs;
}

static int neighbour_score(
        struct greedy *greedy, struct sl_matrix *matrix, const struct change *change, double *ret_score, struct sl_error *error)
{
        uint32_t *entry = sl_matrix_entry(matrix, change->device, change->model), before = *entry;

        *entry = change->batch;
        int r = sl_search_score(greedy->search, matrix, ret_score, error);
        *entry = before;
        return r;
}

/* One iteration; *@ret_better says whether it moved. */
static int iterate(struct greedy *greedy, struct sl_matrix *matrix, double *score, bool *ret_better, struct sl_error *error)
{
        const struct change *best = NULL;
        double best_score = *score;

        neighborhood_collect(greedy, matrix);
        neighbours_draw(greedy);
        for (uint32_t i = 0; i < greedy->n_neighs && !greedy->stopped; i++) {
                double neigh_score;
                int r = neighbour_score(greedy, matrix, &greedy->neighs[i], &neigh_score, error);

                if (r < 0)
                        return r;
                if (neigh_score > best_score) {
                        best = &greedy->neighs[i];
                        best_score = neigh_score;
                }
                greedy->stopped = !sl_search_goes_on(greedy->search, matrix, *score);
        }
        if (best)
                *sl_matrix_entry(matrix, best->device, best->model) = best->batch;
        *score = best_score;
        *ret_better = best;
        return 0;
}

uint32_t sl_bounded_greedy_iterations(const struct sl_bounded_greedy_options *options, uint32_t n_devices, uint32_t n_models)
{
        uint32_t more = n_devices > n_models ? n_devices - n_models : 0;

        return more > options->max_iter ? more : options->max_iter;
}

int sl_bounded_greedy(struct sl_search *search, const struct sl_bounded_greedy_options *options, struct sl_matrix *matrix,
        double *ret_score, struct sl_error *error)
{
        size_t most = (size_t)matrix->n_devices * matrix->n_models * (search->problem->costs->n_batches + 1);
        SL_CLEANUP(sl_cleanup_free) struct change *neighs = malloc(most * sizeof(*neighs));
        struct greedy greedy = {search, options, {options->seed}, neighs, 0, false};
        uint32_t max_iter = sl_bounded_greedy_iterations(options, matrix->n_devices, matrix->n_models);
        bool better = true;

        if (!neighs)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        int r = sl_search_score(search, matrix, ret_score, error);
        for (uint32_t i = 0; i < max_iter && better && !greedy.stopped && r == 0; i++)
                r = iterate(&greedy, matrix, ret_score, &better, error);
        return r;
}
