/* SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"
#include "base/error.h"
#include "fleet.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

Test(costs, a_plain_fleet_and_thousands_of_random_ones_pass_the_check)
{
        struct sl_error error = {""};
        struct sl_costs *plain = plain_fleet(3, 4);

        cr_expect_eq(sl_costs_check(plain, &error), 0, "%s", error.text);
        sl_costs_free(plain);
        for (uint64_t seed = 1; seed < 3000; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 8, 8);

                cr_expect_eq(sl_costs_check(costs, &error), 0, "seed %lu: %s", seed, error.text);
                sl_costs_free(costs);
        }
}

Test(costs, too_many_of_anything_end_in_one_error_and_take_no_memory)
{
        const uint32_t counts[][4] = {{1, 1000000, 1, 1}, {1, UINT32_MAX, UINT32_MAX, 1}, {1, 1, 5000, 1}, {1, 1, 1, 17},
                {1025, 1, 1, 1}, {1024, 1, 1024, 16}, {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}, {1, 4096, 1024, 1}};

        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
                struct sl_error error = {""};
                struct sl_costs *costs = NULL;
                int r = sl_costs_new(counts[i][0], counts[i][1], counts[i][2], counts[i][3], &costs, &error);

                cr_expect(r == -E2BIG || r == -EINVAL, "row %zu: %d", i, r);
                cr_expect(strncmp(error.text, "costs: ", 7) == 0 && !costs);
        }
}

/* What @spoil is to break is broken, and the error says @text. */
static void expect_refused(void (*spoil)(struct sl_costs *costs), const char *text)
{
        struct sl_error error = {""};
        struct sl_costs *costs = plain_fleet(2, 2);

        spoil(costs);
        cr_expect_eq(sl_costs_check(costs, &error), -EINVAL);
        cr_expect(strstr(error.text, text), "\"%s\" has no \"%s\"", error.text, text);
        sl_costs_free(costs);
}

static void spoil_batch(struct sl_costs *costs)
{
        costs->batches[2] = UINT32_MAX;
}

static void spoil_order(struct sl_costs *costs)
{
        costs->batches[1] = 8;
}

static void spoil_name(struct sl_costs *costs)
{
        strcpy(costs->devices[1].name, "gpu0");
}

static void spoil_latency(struct sl_costs *costs)
{
        sl_costs_cell(costs, 1, 1, 2)->latency_ns = UINT64_MAX;
}

static void spoil_workspace(struct sl_costs *costs)
{
        sl_costs_cell(costs, 1, 1, 2)->workspace_bytes = UINT64_MAX;
}

static void spoil_pair(struct sl_costs *costs)
{
        *sl_costs_pair(costs, 0, 1, 0) = NAN;
}

static void spoil_weights(struct sl_costs *costs)
{
        costs->models[1].weights_bytes = UINT64_MAX;
}

static void spoil_memory_of(struct sl_costs *costs)
{
        costs->devices[0].memory_of = 1;
        costs->devices[1].memory_of = 2;
}

static void spoil_class(struct sl_costs *costs)
{
        costs->devices[0].class_index = 7;
}

Test(costs, what_others_rely_on_is_checked_and_the_error_names_thing_value_and_limit)
{
        expect_refused(spoil_batch, "batch size 4294967295, from 1 to 65536");
        expect_refused(spoil_order, "batch size 8 behind 8: they ascend");
        expect_refused(spoil_name, "two devices are called \"gpu0\"");
        expect_refused(spoil_latency, "\"m1\" on \"gpu\", batch 32: nanoseconds 18446744073709551615, at most 3600000000000");
        expect_refused(spoil_workspace, "\"m1\" on \"gpu\", batch 32: workspace bytes 18446744073709551615");
        expect_refused(spoil_pair, "class \"cpu\": \"m1\" beside \"m0\" is slower by nan");
        expect_refused(spoil_weights, "model \"m1\" has weights of 18446744073709551615 bytes, at most 1125899906842624");
        expect_refused(spoil_memory_of, "device \"gpu0\" draws on the memory of row 1");
        expect_refused(spoil_class, "device \"gpu0\" is of class 7 of 2");
}

Test(costs, a_worker_is_found_by_its_batch_size_and_only_where_its_cost_is_known)
{
        struct sl_costs *costs = plain_fleet(1, 1);

        cr_expect_eq(sl_costs_worker(costs, 0, 0, 16)->latency_ns, 1600);
        cr_expect_eq(sl_costs_worker(costs, 1, 0, 16)->latency_ns, 16000);
        cr_expect_null(sl_costs_worker(costs, 0, 0, 12));
        sl_costs_cell(costs, 1, 0, 1)->latency_ns = 0;
        cr_expect_null(sl_costs_worker(costs, 0, 0, 16));
        sl_costs_free(costs);
}

Test(costs, copies_run_beside_computation_only_with_copy_engines)
{
        struct sl_costs *costs = plain_fleet(1, 1);
        struct sl_cost_cell *cell = sl_costs_cell(costs, 1, 0, 0);

        cell->transfer_ns = 300;
        cr_expect_eq(sl_costs_period_ns(costs, 0, cell), 1100);
        costs->classes[1].copy_engines = 2;
        cr_expect_eq(sl_costs_period_ns(costs, 0, cell), 800);
        cell->transfer_ns = 900;
        cr_expect_eq(sl_costs_period_ns(costs, 0, cell), 900);
        sl_costs_free(costs);
}

Test(costs, slow_downs_add_up_over_what_runs_beside)
{
        struct sl_costs *costs = plain_fleet(1, 3);
        const uint32_t beside[] = {1, 2};

        cr_expect_float_eq(sl_costs_slowdown(costs, 1, 0, beside, 0), 1, 1e-12);
        cr_expect_float_eq(sl_costs_slowdown(costs, 1, 0, beside, 2), 3, 1e-12);
        *sl_costs_pair(costs, 1, 0, 2) = 1.25;
        cr_expect_float_eq(sl_costs_slowdown(costs, 1, 0, beside, 2), 2.25, 1e-12);
        cr_expect_float_eq(sl_costs_slowdown(costs, 0, 0, beside, 2), 3, 1e-12);
        *sl_costs_pair(costs, 1, 0, 1) = 0.5;
        *sl_costs_pair(costs, 1, 0, 2) = 0.5;
        cr_expect_float_eq(sl_costs_slowdown(costs, 1, 0, beside, 2), 1, 1e-12);
        sl_costs_free(costs);
}

Test(costs, a_selection_has_the_rows_and_columns_in_the_order_given)
{
        struct sl_costs *costs = plain_fleet(2, 3), *made = NULL;
        const uint32_t devices[] = {2, 0, 0, 0}, models[] = {2, 0};
        struct sl_error error = {""};

        sl_costs_cell(costs, 1, 2, 1)->latency_ns = 77;
        *sl_costs_pair(costs, 1, 2, 0) = 1.5;
        cr_assert_eq(sl_costs_select(costs, devices, 4, models, 2, &made, &error), 0, "%s", error.text);
        cr_expect_str_eq(made->devices[0].name, "cpu");
        cr_expect_str_eq(made->devices[1].name, "gpu0");
        cr_expect_str_eq(made->devices[3].name, "gpu0.3");
        cr_expect_eq(made->devices[3].memory_of, 3);
        cr_expect_eq(sl_costs_worker(made, 1, 0, 16)->latency_ns, 77);
        cr_expect_float_eq(*sl_costs_pair(made, 1, 0, 1), 1.5, 1e-12);
        sl_costs_free(made);
        cr_expect_eq(sl_costs_select(costs, (uint32_t[]){3}, 1, models, 2, &made, &error), -EINVAL);
        sl_costs_free(costs);
}

Test(costs, a_let_draws_on_the_memory_of_its_own_copy_of_the_device)
{
        struct sl_costs *costs = plain_fleet(2, 1), *made = NULL;

        costs->devices[1].memory_of = 0;
        cr_assert_eq(sl_costs_select(costs, (uint32_t[]){0, 1, 0, 1}, 4, (uint32_t[]){0}, 1, &made, NULL), 0);
        for (uint32_t d = 0; d < 4; d++)
                cr_expect_eq(made->devices[d].memory_of, d & 2);
        sl_costs_free(made);
        cr_assert_eq(sl_costs_select(costs, (uint32_t[]){1}, 1, (uint32_t[]){0}, 1, &made, NULL), 0);
        cr_expect_eq(made->devices[0].memory_of, 0);
        sl_costs_free(made);
        sl_costs_free(costs);
}

Test(costs, lets_without_their_device_share_its_memory)
{
        struct sl_costs *costs = plain_fleet(3, 1), *made = NULL;

        costs->devices[1].memory_of = costs->devices[2].memory_of = 0;
        costs->devices[1].memory_bytes = costs->devices[2].memory_bytes = 0;
        cr_assert_eq(sl_costs_select(costs, (uint32_t[]){3, 2, 1, 2}, 4, (uint32_t[]){0}, 1, &made, NULL), 0);
        cr_expect_eq(made->devices[0].memory_of, 0);
        cr_expect_eq(made->devices[1].memory_of, 1);
        cr_expect_eq(made->devices[1].memory_bytes, 1000);
        cr_expect_eq(made->devices[2].memory_of, 1);
        cr_expect_eq(made->devices[3].memory_of, 3, "the second of them is of another device");
        cr_expect_eq(made->devices[3].memory_bytes, 1000);
        sl_costs_free(made);
        sl_costs_free(costs);
}

Test(costs, one_more_of_a_selection_has_a_name_that_is_free)
{
        struct sl_costs *costs = plain_fleet(1, 1), *two = NULL, *three = NULL;

        cr_assert_eq(sl_costs_select(costs, (uint32_t[]){0, 0}, 2, (uint32_t[]){0}, 1, &two, NULL), 0);
        cr_assert_eq(sl_costs_select(two, (uint32_t[]){0, 1, 0}, 3, (uint32_t[]){0}, 1, &three, NULL), 0);
        cr_expect_str_eq(three->devices[1].name, "gpu0.2");
        cr_expect_str_eq(three->devices[2].name, "gpu0.3");
        sl_costs_free(three);
        sl_costs_free(two);
        sl_costs_free(costs);
}

Test(costs, one_more_of_a_device_with_a_long_name_has_a_name)
{
        struct sl_costs *costs = plain_fleet(1, 1), *made = NULL;
        struct sl_error error = {""};

        memset(costs->devices[0].name, 'g', SL_COST_NAME_BYTES - 1);
        cr_assert_eq(sl_costs_select(costs, (uint32_t[]){0, 0, 0}, 3, (uint32_t[]){0}, 1, &made, &error), 0, "%s", error.text);
        cr_expect_str_neq(made->devices[1].name, made->devices[2].name);
        cr_expect_eq(strncmp(made->devices[1].name, costs->devices[0].name, 50), 0);
        sl_costs_free(made);
        sl_costs_free(costs);
}
