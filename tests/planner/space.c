/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"
#include "bounded_greedy.h"
#include "fleet.h"
#include "matrix.h"
#include "problem.h"
#include "search.h"

#include <criterion/criterion.h>
#include <math.h>

/* 8 models, 4 GPUs and 1 CPU, 5 batch sizes. */
Test(space, the_papers_worked_example)
{
        cr_expect_float_eq(sl_space_matrices(5, 5, 8) / 1e31, 1.3, 0.05);
        cr_expect_eq(sl_space_neighbours(5, 5, 8, 8), 232);
        cr_expect_eq(sl_space_neighbours(5, 5, 8, 0), 240);
        cr_expect_eq(sl_space_neighbours(5, 5, 8, 5), 235, "what the text's F <= D would give");
        cr_expect_eq(sl_space_changes(5, 5, 8, 8), 192);
}

Test(space, a_million_devices_are_infinitely_many_matrices)
{
        cr_expect(isinf(sl_space_matrices(1000000, 5, 8)));
        cr_expect_eq(sl_space_neighbours(1000000, 5, 8, 0), 48000000);
}

/* Counted one by one, in every matrix of 2 devices, 2 models and 2 batch sizes. */
Test(space, equations_count_what_is_there)
{
        uint32_t valid = 0;

        for (uint32_t i = 0; i < 81; i++) {
                struct sl_matrix *matrix = sl_matrix_new(2, 2);
                uint32_t neighbours = 0;

                for (uint32_t j = 0, rest = i; j < 4; j++, rest /= 3)
                        matrix->entries[j] = rest % 3;
                if (!sl_matrix_workers_of(matrix, 0) || !sl_matrix_workers_of(matrix, 1)) {
                        sl_matrix_free(matrix);
                        continue;
                }
                valid++;
                uint32_t forbidden = sl_space_forbidden(matrix);
                for (uint32_t j = 0; j < 4; j++)
                        for (uint32_t v = 0, before = matrix->entries[j]; v < 3; v++, matrix->entries[j] = before) {
                                matrix->entries[j] = v;
                                neighbours += sl_matrix_workers_of(matrix, 0) && sl_matrix_workers_of(matrix, 1);
                        }
                cr_expect_eq(sl_space_neighbours(2, 2, 2, forbidden), neighbours);
                cr_expect_eq(sl_space_changes(2, 2, 2, forbidden), neighbours - 4);
                sl_matrix_free(matrix);
        }
        cr_expect_eq((double)valid, sl_space_matrices(2, 2, 2));
}

Test(space, the_neighbourhood_of_the_greedy_is_equation_2_without_the_matrix)
{
        struct sl_costs *costs = plain_fleet(4, 8);
        struct sl_problem problem = {.costs = costs};
        struct sl_search search = {.problem = &problem};
        struct sl_matrix *matrix = sl_matrix_new(5, 8);
        uint32_t batches[SL_COST_BATCHES_MAX + 1], n = 0;

        for (uint32_t m = 0; m < 8; m++)
                *sl_matrix_entry(matrix, m % 5, m) = 8;
        *sl_matrix_entry(matrix, 4, 0) = 16;
        for (uint32_t d = 0; d < 5; d++)
                for (uint32_t m = 0; m < 8; m++)
                        n += sl_search_values(&search, matrix, d, m, batches);
        cr_expect_eq(sl_space_forbidden(matrix), 7);
        cr_expect_eq(n, sl_space_changes(5, 3, 8, 7));
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(space, iterations_are_d_minus_m_only_where_that_is_more)
{
        const struct sl_bounded_greedy_options options = {.max_neighs = SL_MAX_NEIGHS, .max_iter = SL_MAX_ITER};

        cr_expect_eq(sl_bounded_greedy_iterations(&options, 13, 1), 12);
        cr_expect_eq(sl_bounded_greedy_iterations(&options, 17, 1), 16);
        cr_expect_eq(sl_bounded_greedy_iterations(&options, 17, 4), 13);
        cr_expect_eq(sl_bounded_greedy_iterations(&options, 9, 1), 10);
        cr_expect_eq(sl_bounded_greedy_iterations(&options, 13, 4), 10);
        cr_expect_eq(sl_bounded_greedy_iterations(&options, 5, 36), 10);
}
