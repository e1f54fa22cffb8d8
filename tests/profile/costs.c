/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of costs out of profiles: a figure of one worker stands in one cell, a pair has what its largest batch had, and what nobody
 * has measured is unknown.
 */
#include "costs.h"
#include "base/error.h"
#include "profile_costs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MEMORY (1ull << 30)

static struct sl_profile_list list;
static struct sl_error error;

static void add_worker(const struct sl_worker_profile *profile)
{
        cr_assert_eq(sl_profile_list_add(&list, profile), 0);
}

static void add(const char *device, const char *model, const char *precision, uint64_t batch, const char *beside, double figure)
{
        struct sl_worker_profile profile;

        sl_worker_profile_init(&profile);
        strcpy(profile.device, device);
        strcpy(profile.model, model);
        strcpy(profile.precision, precision);
        strcpy(profile.beside, beside);
        strcpy(profile.origin, "measured");
        profile.batch = batch;
        profile.latency_p50_ns = *beside ? 1 : figure;
        profile.slowdown = *beside ? figure : 1;
        profile.weights_bytes = 1000;
        add_worker(&profile);
}

/* One more like the last, with a team. */
static void add_team(uint64_t threads, double latency_ns)
{
        struct sl_worker_profile profile = list.items[list.n - 1];

        profile.threads = threads;
        profile.latency_p50_ns = latency_ns;
        add_worker(&profile);
}

Test(profile_costs, each_worker_has_its_cell_and_each_pair_its_largest_batch)
{
        struct sl_costs *costs;

        add("cpu:0", "lenet", "fp32", 8, "", 800);
        add("cpu:0", "lenet", "fp32", 1, "", 100);
        add("cpu:1", "lenet", "bf16", 1, "", 60);
        add("cpu:0", "lenet", "fp32", 8, "lenet bf16 8", 1.75);
        add("cpu:0", "lenet", "fp32", 1, "lenet bf16 1", 1.25);
        add("cpu:0", "lenet", "fp32", 1, "lenet bf16 1 + lenet fp32 1", 3);
        cr_assert_eq(sl_profile_costs(&list, false, MEMORY, &costs, &error), 0, "%s", error.text);

        uint32_t zero = sl_costs_find_device(costs, "cpu:0"), one = sl_costs_find_device(costs, "cpu:1");
        uint32_t plain = sl_costs_find_model(costs, "lenet"), half = sl_costs_find_model(costs, "lenet bf16");

        cr_assert(zero != SL_COST_NONE && one != SL_COST_NONE && plain != SL_COST_NONE && half != SL_COST_NONE);
        cr_expect_eq(sl_costs_worker(costs, zero, plain, 8)->latency_ns, 800);
        cr_expect_eq(sl_costs_worker(costs, zero, plain, 1)->latency_ns, 100);
        cr_expect_eq(sl_costs_worker(costs, zero, plain, 1)->source, SL_COST_MEASURED);
        cr_expect_eq(sl_costs_worker(costs, one, half, 1)->latency_ns, 60);
        cr_expect_null(sl_costs_worker(costs, one, plain, 1), "nobody has measured it");
        cr_expect_eq(*sl_costs_pair(costs, zero, plain, half), 1.75);
        cr_expect_eq(*sl_costs_pair(costs, zero, plain, plain), 0, "a combination of three is no pair");
        cr_expect_eq(costs->devices[one].memory_of, zero, "lets of one host share its memory");
        cr_expect_eq(costs->models[plain].weights_bytes, 1000);
        sl_costs_free(costs);
        sl_profile_list_deinit(&list);
}

Test(profile_costs, of_teams_the_smallest_counts)
{
        struct sl_costs *costs;
        uint32_t device, model;

        add("cpu:0-3", "lenet", "fp32", 1, "", 100);
        add_team(2, 60);
        add("cpu:0-3", "lenet", "fp32", 8, "", 1);
        list.items[list.n - 1].threads = 4;
        list.items[list.n - 1].latency_p50_ns = 300;
        add_team(2, 500);
        cr_assert_eq(sl_profile_costs(&list, false, MEMORY, &costs, &error), 0, "%s", error.text);
        device = sl_costs_find_device(costs, "cpu:0-3");
        model = sl_costs_find_model(costs, "lenet");
        cr_expect_eq(sl_costs_worker(costs, device, model, 1)->latency_ns, 100, "that of one thread");
        cr_expect_eq(sl_costs_worker(costs, device, model, 8)->latency_ns, 500, "nobody has measured one thread");
        sl_costs_free(costs);
        sl_profile_list_deinit(&list);
}

Test(profile_costs, a_model_in_one_precision_may_have_its_name_alone)
{
        struct sl_costs *costs;
        char name[sizeof(((struct sl_worker_profile *)0)->model)] = "";

        memset(name, 'n', sizeof(name) - 1);
        add("cpu:0", name, "bf16", 1, "", 60);
        add("cpu:0", "lenet", "int8", 1, "", 50);
        add("cpu:0", "lenet", "int8", 1, "lenet int8 1", 1.5);
        cr_assert_eq(sl_profile_costs(&list, false, MEMORY, &costs, &error), 0, "%s", error.text);
        cr_expect_eq(sl_costs_find_model(costs, name), SL_COST_NONE);
        sl_costs_free(costs);
        cr_assert_eq(sl_profile_costs(&list, true, MEMORY, &costs, &error), 0, "%s", error.text);

        uint32_t large = sl_costs_find_model(costs, name), lenet = sl_costs_find_model(costs, "lenet");

        cr_assert(large != SL_COST_NONE && lenet != SL_COST_NONE);
        cr_expect_eq(sl_costs_worker(costs, 0, large, 1)->latency_ns, 60);
        cr_expect_eq(*sl_costs_pair(costs, 0, lenet, lenet), 1.5);
        sl_costs_free(costs);
        sl_profile_list_deinit(&list);
}

Test(profile_costs, each_core_of_a_large_host_is_a_device)
{
        struct sl_costs *costs;
        char device[32];

        for (int core = 0; core < 1024; core++) {
                snprintf(device, sizeof(device), "cpu:%d", core);
                add(device, "lenet", "fp32", 1, "", 100 + core);
        }
        cr_assert_eq(sl_profile_costs(&list, false, MEMORY, &costs, &error), 0, "%s", error.text);
        cr_expect_eq(costs->n_devices, 1024);
        cr_expect_eq(sl_costs_worker(costs, sl_costs_find_device(costs, "cpu:1023"), 0, 1)->latency_ns, 1123);
        sl_costs_free(costs);
        sl_profile_list_deinit(&list);
}

Test(profile_costs, no_profiles_are_no_costs)
{
        struct sl_costs *costs;

        cr_expect_eq(sl_profile_costs(&list, false, MEMORY, &costs, &error), -EINVAL);
        cr_expect_neq(error.text[0], 0);
}

/* Workers of one thread, a team of two where nobody has measured one thread, and a let of another host. */
Test(profile_costs, as_many_workers_compute_at_once_as_a_let_has_cores_for)
{
        static const struct {
                const char *device;
                uint32_t units;
        } lets[] = {{"cpu:0", 1}, {"cpu:0-1", 2}, {"cpu:1000+1002-1005", 5}, {"cpu:2-5", 2}, {"V100", 0}};
        struct sl_costs *costs;

        for (size_t i = 0; i < sizeof(lets) / sizeof(lets[0]); i++)
                add(lets[i].device, "lenet", "fp32", 8, "", 800);
        list.items[3].threads = 2;
        add("cpu:0-1", "lenet", "fp32", 8, "", 800);
        add_team(2, 500);
        cr_assert_eq(sl_profile_costs(&list, false, MEMORY, &costs, &error), 0, "%s", error.text);
        for (size_t i = 0; i < sizeof(lets) / sizeof(lets[0]); i++) {
                uint32_t device = sl_costs_find_device(costs, lets[i].device);

                cr_assert_neq(device, SL_COST_NONE);
                cr_expect_eq(costs->classes[costs->devices[device].class_index].units, lets[i].units, "%s: %u", lets[i].device,
                        costs->classes[costs->devices[device].class_index].units);
        }
        sl_costs_free(costs);
        sl_profile_list_deinit(&list);
}
