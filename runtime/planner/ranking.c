/* SPDX-License-Identifier: Apache-2.0 */
#include "ranking.h"

#include "allocation_bench.h"
#include "base/error.h"
#include "matrix.h"
#include "problem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ranking {
        struct sl_bench bench;
        struct sl_bench *behind;
        const struct sl_problem *problem;
        enum sl_objective objective;
        uint32_t n, max;
        struct sl_matrix *matrices[SL_RANKING_MAX]; /* in the order of @ranked, and spare ones behind */
        struct sl_ranked ranked[SL_RANKING_MAX];
};

/* Equal matrices have equal scores, so that only those are compared. */
static bool is_known(const struct ranking *ranking, const struct sl_matrix *matrix, double score)
{
        for (uint32_t i = 0; i < ranking->n; i++)
                if (ranking->ranked[i].score == score && sl_matrix_equal(ranking->matrices[i], matrix))
                        return true;
        return false;
}

static void insert(struct ranking *ranking, const struct sl_matrix *matrix, const struct sl_ranked *ranked)
{
        uint32_t at = ranking->n;
        struct sl_matrix *own;

        if (ranking->n < ranking->max)
                ranking->n++;
        else
                at--;
        own = ranking->matrices[at];
        sl_matrix_copy(own, matrix);
        for (; at && ranking->ranked[at - 1].score < ranked->score; at--) {
                ranking->ranked[at] = ranking->ranked[at - 1];
                ranking->matrices[at] = ranking->matrices[at - 1];
        }
        ranking->matrices[at] = own;
        ranking->ranked[at] = *ranked;
        ranking->ranked[at].matrix = own;
}

static int run(struct sl_bench *bench, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        struct ranking *ranking = (struct ranking *)bench;
        int r = sl_bench_run(ranking->behind, matrix, calibration, ret_result, error);
        double score;

        if (r < 0 || ret_result->throughput <= 0)
                return r;
        score = sl_objective_score(ranking->objective, calibration->load, ranking->problem, matrix, ret_result);
        if (ranking->n == ranking->max && score <= ranking->ranked[ranking->n - 1].score)
                return 0;
        if (!is_known(ranking, matrix, score))
                insert(ranking, matrix,
                        &(struct sl_ranked){
                                .score = score, .throughput = ret_result->throughput, .latency_ns = ret_result->latency_ns});
        return 0;
}

static void ranking_free(struct sl_bench *bench)
{
        struct ranking *ranking = (struct ranking *)bench;

        for (uint32_t i = 0; ranking && i < ranking->max; i++)
                sl_matrix_free(ranking->matrices[i]);
        free(ranking);
}

static const struct sl_bench_ops ops = {.name = "ranking", .run = run, .free = ranking_free};

int sl_ranking_new(struct sl_bench *behind, const struct sl_problem *problem, enum sl_objective objective, uint32_t n,
        struct sl_bench **ret_bench, struct sl_error *error)
{
        struct ranking *ranking = calloc(1, sizeof(*ranking));

        if (!ranking)
                return sl_error_set(error, ENOMEM, "no memory for the best allocations");
        ranking->bench.ops = &ops;
        ranking->behind = behind;
        ranking->problem = problem;
        ranking->objective = objective;
        ranking->max = n;
        for (uint32_t i = 0; i < n; i++) {
                ranking->matrices[i] = sl_matrix_new(problem->costs->n_devices, problem->costs->n_models);
                if (!ranking->matrices[i]) {
                        ranking_free(&ranking->bench);
                        return sl_error_set(error, ENOMEM, "no memory for the best allocations");
                }
        }
        *ret_bench = &ranking->bench;
        return 0;
}

const struct sl_ranked *sl_ranking(const struct sl_bench *bench, uint32_t *ret_n)
{
        const struct ranking *ranking = (const struct ranking *)bench;

        *ret_n = ranking->n;
        return ranking->ranked;
}
