/* SPDX-License-Identifier: Apache-2.0 */
#include "scale_oracle.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cbc.h"
#include "scale.h"

#include <math.h>
#include <stdlib.h>

/* Columns: for each kind what comes, then for each what goes. */
struct programme {
        const struct sl_scale_problem *problem;
        struct sl_cbc cbc;
        Cbc_Model *model;
        int n; /* of the row under way */
        int *cols;
        double *coefs;
};

static void kind_add(struct programme *programme, uint32_t kind, double coef)
{
        programme->cols[programme->n] = (int)kind;
        programme->coefs[programme->n++] = coef;
        programme->cols[programme->n] = (int)(programme->problem->n_kinds + kind);
        programme->coefs[programme->n++] = -coef;
}

static void row_end(struct programme *programme, char sense, double rhs)
{
        programme->cbc.add_row(programme->model, "", programme->n, programme->cols, programme->coefs, sense, rhs);
        programme->n = 0;
}

/* (2) and (4) are bounds. */
static void cols_put(struct programme *programme)
{
        const struct sl_scale_problem *problem = programme->problem;

        for (uint32_t i = 0; i < problem->n_needs; i++)
                for (uint32_t k = problem->needs[i].first; k < problem->needs[i].first + problem->needs[i].n; k++) {
                        const struct sl_scale_kind *kind = &problem->kinds[k];
                        double room = kind->most > kind->n ? kind->most - kind->n : 0;

                        programme->cbc.add_col(programme->model, "up", 0, sl_scale_suits(&problem->needs[i], kind) ? room : 0,
                                kind->cost + problem->lambda * kind->load_s, 1, 0, NULL, NULL);
                }
        for (uint32_t k = 0; k < problem->n_kinds; k++)
                programme->cbc.add_col(programme->model, "down", 0, problem->kinds[k].n, -problem->kinds[k].cost, 1, 0, NULL, NULL);
}

static void need_row(struct programme *programme, const struct sl_scale_need *need)
{
        const struct sl_scale_problem *problem = programme->problem;
        double load = problem->slack * need->load, unit = load > 0 ? load : 1;

        for (uint32_t k = need->first; k < need->first + need->n; k++)
                if (sl_scale_suits(need, &problem->kinds[k]))
                        kind_add(programme, k, problem->kinds[k].rate / unit);
        row_end(programme, 'G', (load - sl_scale_capacity(problem, need, NULL)) / unit);
}

static void resource_row(struct programme *programme, uint32_t resource)
{
        const struct sl_scale_problem *problem = programme->problem;
        double total = problem->resources[resource].total, held = 0, unit = total > 0 ? total : 1;

        if (isinf(total))
                return;
        for (uint32_t k = 0; k < problem->n_kinds; k++) {
                held += problem->kinds[k].n * problem->kinds[k].resources[resource];
                kind_add(programme, k, problem->kinds[k].resources[resource] / unit);
        }
        row_end(programme, 'L', (total - held) / unit);
}

static int programme_solve(struct programme *programme, int32_t *ret_change, struct sl_error *error)
{
        const struct sl_scale_problem *problem = programme->problem;
        const double *found;

        cols_put(programme);
        for (uint32_t i = 0; i < problem->n_needs; i++)
                need_row(programme, &problem->needs[i]);
        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                resource_row(programme, i);
        programme->cbc.set_log_level(programme->model, 0);
        programme->cbc.solve(programme->model);
        if (!programme->cbc.is_optimal(programme->model))
                return sl_error_set(error, ENOSPC, "oracle: no instances of %u kinds satisfy %u needs within the resources",
                        problem->n_kinds, problem->n_needs);
        found = programme->cbc.solution(programme->model);
        for (uint32_t k = 0; k < problem->n_kinds; k++)
                ret_change[k] = (int32_t)(lround(found[k]) - lround(found[problem->n_kinds + k]));
        return 0;
}

int sl_scale_oracle(const struct sl_scale_problem *problem, int32_t *ret_change, struct sl_error *error)
{
        size_t n_cols = 2 * (size_t)problem->n_kinds + 1;
        SL_CLEANUP(sl_cleanup_free) int *cols = malloc(n_cols * sizeof(*cols));
        SL_CLEANUP(sl_cleanup_free) double *coefs = malloc(n_cols * sizeof(*coefs));
        struct programme programme = {.problem = problem, .cols = cols, .coefs = coefs};

        if (!cols || !coefs)
                return sl_error_set(error, ENOMEM, "oracle: out of memory");
        int r = sl_cbc_open(&programme.cbc, error);
        if (r < 0)
                return r;
        programme.model = programme.cbc.new_model();
        r = programme_solve(&programme, ret_change, error);
        programme.cbc.delete_model(programme.model);
        sl_cbc_close(&programme.cbc);
        return r;
}
