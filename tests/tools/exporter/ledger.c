/* SPDX-License-Identifier: Apache-2.0 */
/* Series over scrapes: counters never go back, gauges are of now. */
#include "ledger.h"

#include "page_scope.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4u

static struct ledger *ledger;
static uint64_t *values;
static uint32_t batches, batch_max; /* places of a counter and of a gauge among the values of a worker */

static uint32_t place_of(enum metric_scope scope, const char *name)
{
        uint32_t at = 0;

        for (size_t i = 0; i < metric_table_rows; i++) {
                if (metric_table[i].scope != scope)
                        continue;
                if (strcmp(metric_table[i].name, name) == 0)
                        return at;
                at += metric_width(&metric_table[i]);
        }
        cr_assert_fail("no %s", name);
        return 0;
}

static void set_up(void)
{
        ledger = ledger_new(SCOPE_WORKER, SLOTS);
        cr_assert_not_null(ledger);
        values = calloc(ledger_width(ledger), sizeof(*values));
        batches = place_of(SCOPE_WORKER, "starling_worker_batches");
        batch_max = place_of(SCOPE_WORKER, "starling_worker_batch_max");
}

static void tear_down(void)
{
        ledger_free(ledger);
        free(values);
}

TestSuite(exporter_ledger, .init = set_up, .fini = tear_down);

static void put(uint32_t slot, const char *labels, uint64_t counter, uint64_t gauge)
{
        values[batches] = counter;
        values[batch_max] = gauge;
        cr_assert_eq(ledger_put(ledger, slot, labels, values), 0);
}

static uint32_t find(const char *labels)
{
        for (uint32_t i = 0; i < ledger_count(ledger); i++)
                if (strcmp(ledger_labels(ledger, i), labels) == 0)
                        return i;
        cr_assert_fail("no series %s", labels);
        return 0;
}

static void expect(const char *labels, uint64_t counter, uint64_t gauge)
{
        uint32_t series = find(labels);

        cr_expect(ledger_is_present(ledger, series), "%s", labels);
        cr_expect_eq(ledger_value(ledger, series, batches), counter, "%s", labels);
        cr_expect_eq(ledger_value(ledger, series, batch_max), gauge, "%s", labels);
}

Test(exporter_ledger, slots_of_the_same_labels_are_one_series)
{
        ledger_begin(ledger);
        put(0, "a", 10, 1);
        put(2, "a", 5, 2);
        put(3, "b", 7, 4);
        ledger_end(ledger);
        expect("a", 15, 3);
        expect("b", 7, 4);
        cr_expect_eq(ledger_count(ledger), 2);
}

Test(exporter_ledger, what_a_slot_counted_stays_when_it_is_given_back)
{
        ledger_begin(ledger);
        put(0, "a", 1000, 1);
        put(1, "a", 400, 1);
        ledger_end(ledger);
        ledger_begin(ledger);
        put(0, "a", 1001, 1);
        ledger_end(ledger);
        expect("a", 1401, 1);
}

Test(exporter_ledger, a_slot_that_is_used_again_goes_on_from_what_it_counted)
{
        ledger_begin(ledger);
        put(0, "a", 1000, 1);
        ledger_end(ledger);
        ledger_begin(ledger);
        put(0, "a", 3, 2);
        ledger_end(ledger);
        expect("a", 1003, 2);
        ledger_begin(ledger);
        put(0, "b", 5, 2);
        ledger_end(ledger);
        expect("b", 5, 2);
        cr_expect_not(ledger_is_present(ledger, find("a")), "nobody has these labels now");
        ledger_begin(ledger);
        put(0, "b", 6, 2);
        put(1, "a", 1, 9);
        ledger_end(ledger);
        expect("a", 1004, 9);
        expect("b", 6, 2);
}

Test(exporter_ledger, a_slot_that_cannot_be_read_is_as_it_was)
{
        ledger_begin(ledger);
        put(0, "a", 10, 1);
        ledger_end(ledger);
        ledger_begin(ledger);
        ledger_keep(ledger, 0);
        ledger_keep(ledger, 1);
        ledger_end(ledger);
        expect("a", 10, 1);
        cr_expect_eq(ledger_count(ledger), 1);
}

Test(exporter_ledger, names_that_come_and_go_take_no_more_and_more_memory)
{
        char labels[32];

        for (uint32_t i = 0; i < 1000; i++) {
                snprintf(labels, sizeof(labels), "name-%u", i);
                ledger_begin(ledger);
                put(0, "stays", i, 1);
                put(1 + i % 3, labels, 1, 1);
                ledger_end(ledger);
                expect(labels, 1, 1);
        }
        expect("stays", 999, 1);
        cr_expect_leq(ledger_count(ledger), 2 * SLOTS);
}

Test(exporter_ledger, histograms_are_counters)
{
        struct ledger *models = ledger_new(SCOPE_MODEL, 2);
        uint64_t *many = calloc(ledger_width(models), sizeof(*many));

        for (uint32_t i = 0; i < ledger_width(models); i++)
                many[i] = 100;
        ledger_begin(models);
        cr_assert_eq(ledger_put(models, 0, "m", many), 0);
        ledger_end(models);
        ledger_begin(models);
        ledger_end(models);
        memset(many, 0, ledger_width(models) * sizeof(*many));
        ledger_begin(models);
        cr_assert_eq(ledger_put(models, 1, "m", many), 0);
        ledger_end(models);
        for (uint32_t i = 0; i < BUCKETS + 1; i++)
                cr_expect_eq(ledger_value(models, 0, place_of(SCOPE_MODEL, "starling_inference_duration_seconds") + i), 100,
                        "value %u", i);
        free(many);
        ledger_free(models);
}

static void put_worker(const char *labels, uint64_t counter)
{
        const struct ledger_labels owned = {.all = labels, .owner_bytes = (size_t)(strchr(labels, '@') - labels)};

        values[batches] = counter;
        values[batch_max] = 8;
        ledger_begin(ledger);
        cr_assert_eq(ledger_put_owned(ledger, 0, &owned, values), 0);
        ledger_end(ledger);
}

/* A worker whose process ended may go on in another place, and come back: what it counts it counts once. */
Test(exporter_ledger, a_slot_that_goes_on_in_another_place_counts_nothing_twice)
{
        put_worker("lenet@0", 1000);
        put_worker("lenet@1", 1500);
        expect("lenet@1", 500, 8);
        cr_expect_eq(ledger_value(ledger, find("lenet@0"), batches), 1000);
        put_worker("lenet@0", 1600);
        expect("lenet@0", 1100, 8);
        cr_expect_eq(ledger_value(ledger, find("lenet@1"), batches), 500);
        put_worker("lenet@1", 5); /* another one, from zero on */
        expect("lenet@1", 505, 8);
        put_worker("other@1", 7);
        expect("other@1", 7, 8);
        cr_expect_eq(ledger_value(ledger, find("lenet@0"), batches), 1100);
}
