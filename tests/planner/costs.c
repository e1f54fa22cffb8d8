/* SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"
#include "base/error.h"
#include "fleet.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

Test(costs, a_plain_fleet_and_thousands_of_random_ones_pass_the_check)
{
        struct sl_error error = {""};
        struct sl_costs *plain = plain_fleet(3, 4);

        cr_expect_eq(sl_costs_check(plain, &error), 0, "%s", error.text);
        sl_costs_free(plain);
        for (uint64_t seed = 1; seed < SL_ROUNDS(3000); seed++) {
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

/* Two cores, three and more workers; a GPU's units are no cores. */
Test(costs, workers_of_a_let_with_several_cores_share_these_when_they_are_more)
{
        static const double alone[] = {1, 1, 1.5, 2};
        const uint32_t beside[] = {0, 0, 0};
        struct sl_costs *costs = plain_fleet(1, 1);

        costs->classes[0].units = costs->classes[1].units = 2;
        cr_expect_eq(sl_costs_cores(costs, 0), 2);
        cr_expect_eq(sl_costs_cores(costs, 1), 1);
        for (uint32_t n = 0; n <= 3; n++) {
                cr_expect_float_eq(sl_costs_slowdown(costs, 0, 0, beside, n), alone[n], 1e-12, "beside %u", n);
                cr_expect_float_eq(sl_costs_slowdown(costs, 1, 0, beside, n), 1 + n, 1e-12, "on a GPU, beside %u", n);
        }
        *sl_costs_pair(costs, 0, 0, 0) = 1.25; /* what memory and caches make it */
        cr_expect_float_eq(sl_costs_slowdown(costs, 0, 0, beside, 1), 1.25, 1e-12);
        cr_expect_float_eq(sl_costs_slowdown(costs, 0, 0, beside, 2), 1.5 * 1.5, 1e-12);
        costs->classes[0].units = 1;
        cr_expect_float_eq(sl_costs_slowdown(costs, 0, 0, beside, 2), 1.5, 1e-12, "a pair was measured on the one core");
        sl_costs_free(costs);
}

/* One class of 8 units with sizes 2 and 4, one model, batches of 8, 16 and 32: base / units + 600 ns, times the batch over 8. */
static struct sl_costs *sized_costs(void)
{
        struct sl_costs *costs;

        cr_assert_eq(sl_costs_new_sized(1, 1, 1, 3, 2, &costs, NULL), 0);
        strcpy(costs->classes[0].name, "gpu");
        strcpy(costs->devices[0].name, "gpu0");
        strcpy(costs->models[0].name, "m0");
        costs->classes[0].kind = SL_DEVICE_GPU;
        costs->classes[0].units = 8;
        costs->classes[0].n_sizes = 2;
        costs->classes[0].sizes[0] = 2;
        costs->classes[0].sizes[1] = 4;
        for (uint32_t b = 0; b < 3; b++) {
                costs->batches[b] = 8u << b;
                for (uint32_t size = 0; size <= 2; size++)
                        *sl_costs_size_cell(costs, 0, size, 0, b) =
                                (struct sl_cost_cell){.latency_ns = (8000u / (2u << size) + 600) << b,
                                        .transfer_ns = 100u << b,
                                        .workspace_bytes = 10u << b};
        }
        return costs;
}

Test(costs, a_let_costs_what_its_size_was_measured_at_and_lies_between_the_others)
{
        struct sl_costs *costs = sized_costs();
        struct sl_cost_let let;
        struct sl_error error = {""};

        cr_assert_eq(sl_costs_check(costs, &error), 0, "%s", error.text);
        cr_expect_eq(sl_costs_cell(costs, 0, 0, 0)->latency_ns, 1600, "the whole device's");
        for (uint32_t units = 2; units <= 8; units++)
                for (uint32_t batch = 8; batch <= 32; batch++) {
                        bool known = units == 2 || units == 4 || units == 8, listed = batch == 8 || batch == 16 || batch == 32;

                        cr_assert(sl_costs_let(costs, 0, units, 0, batch, &let), "%u units, batch %u", units, batch);
                        cr_expect_float_eq(
                                let.latency_ns, (8000.0 / units + 600) * batch / 8, 1e-6, "%u units, batch %u", units, batch);
                        cr_expect_float_eq(let.transfer_ns, 12.5 * batch, 1e-9);
                        cr_expect_eq(let.workspace_bytes, batch == 8 ? 10 : batch <= 16 ? 20 : 40, "the next larger batch's");
                        cr_expect_eq(let.interpolated, !known || !listed, "%u units, batch %u", units, batch);
                }
        cr_expect_not(sl_costs_let(costs, 0, 1, 0, 8, &let), "smaller than all that is known");
        cr_expect_not(sl_costs_let(costs, 0, 9, 0, 8, &let));
        cr_expect_not(sl_costs_let(costs, 0, 4, 0, 7, &let));
        cr_expect_not(sl_costs_let(costs, 0, 4, 0, 33, &let));
        sl_costs_size_cell(costs, 0, 1, 0, 0)->latency_ns = 0;
        cr_expect(sl_costs_let(costs, 0, 4, 0, 8, &let) && let.interpolated, "between 2 units and 8");
        cr_expect_float_eq(let.latency_ns, 8000.0 / 4 + 600, 1e-6);
        sl_costs_free(costs);
}

Test(costs, lets_are_slowed_down_by_what_both_use_of_caches_and_memory)
{
        struct sl_costs *costs = sized_costs();
        const double c[5] = {0.5, 1, 2, 4, 0.9};
        const struct sl_cost_running small = {0, 8, 2}, large = {0, 24, 4};

        cr_expect_float_eq(sl_costs_let_slowdown(costs, 0, &small, &large), 1, 1e-12, "nothing is known");
        memcpy(costs->classes[0].interference, c, sizeof(c));
        for (uint32_t b = 0; b < 3; b++) {
                sl_costs_cell(costs, 0, 0, b)->l2_use = 0.1 * (b + 1);
                sl_costs_cell(costs, 0, 0, b)->memory_use = 0.2 * (b + 1);
        }
        /* A batch of 8 on a quarter of the device: 0.025 and 0.05; one of 24 on a half, between 0.2 and 0.3: 0.125 and 0.25. */
        cr_expect_float_eq(sl_costs_let_slowdown(costs, 0, &small, &large), 0.5 * 0.025 + 0.125 + 2 * 0.05 + 4 * 0.25 + 0.9, 1e-12);
        cr_expect_float_eq(sl_costs_let_slowdown(costs, 0, &large, &small), 0.5 * 0.125 + 0.025 + 2 * 0.25 + 4 * 0.05 + 0.9, 1e-12);
        costs->classes[0].interference[4] = -3;
        cr_expect_float_eq(sl_costs_let_slowdown(costs, 0, &small, &large), 1, 1e-12, "nothing is faster beside another");
        sl_costs_free(costs);
}

Test(costs, sizes_that_cannot_be_are_refused)
{
        static const struct {
                uint32_t n, sizes[3];
                double coefficient;
                const char *text;
        } rows[] = {
                {3, {1, 2, 4}, 0, "3 sizes, there is room for 2"},
                {2, {2, 8}, 0, "size 8, from 3 to below its 8 units"},
                {2, {4, 4}, 0, "size 4, from 5"},
                {2, {0, 4}, 0, "size 0, from 1"},
                {2, {2, 4}, 1001, "interference of 1001"},
                {2, {2, 4}, (double)NAN, "interference of"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct sl_costs *costs = sized_costs();
                struct sl_error error = {""};

                costs->classes[0].n_sizes = rows[i].n;
                memcpy(costs->classes[0].sizes, rows[i].sizes, sizeof(rows[i].sizes));
                costs->classes[0].interference[3] = rows[i].coefficient;
                cr_expect_eq(sl_costs_check(costs, &error), -EINVAL);
                cr_expect(strstr(error.text, rows[i].text), "row %zu: %s", i, error.text);
                sl_costs_free(costs);
        }
        struct sl_costs *costs = sized_costs();
        struct sl_error error = {""};
        sl_costs_cell(costs, 0, 0, 1)->memory_use = 1.5;
        cr_expect_eq(sl_costs_check(costs, &error), -EINVAL);
        cr_expect(strstr(error.text, "1.5 of the memory's bandwidth, from 0 to 1"), "%s", error.text);
        sl_costs_cell(costs, 0, 0, 1)->memory_use = 0;
        sl_costs_size_cell(costs, 0, 0, 0, 1)->latency_ns = UINT64_MAX;
        cr_expect_eq(sl_costs_check(costs, &error), -EINVAL, "of a let");
        sl_costs_free(costs);
}

Test(costs, another_fleet_keeps_what_lets_cost)
{
        struct sl_costs *costs = sized_costs(), *made;
        const uint32_t devices[] = {0, 0}, models[] = {0};
        struct sl_cost_let a, b;

        cr_assert_eq(sl_costs_select(costs, devices, 2, models, 1, &made, NULL), 0);
        for (uint32_t units = 2; units <= 8; units++) {
                cr_assert(sl_costs_let(costs, 0, units, 0, 16, &a) && sl_costs_let(made, 0, units, 0, 16, &b));
                cr_expect_float_eq(a.latency_ns, b.latency_ns, 1e-9);
        }
        sl_costs_free(made);
        sl_costs_free(costs);
}
