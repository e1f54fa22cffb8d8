/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an offline job computes (offline_rule.h), of requests and of a host that each test makes up, tick by tick.
 */
#include "offline_rule.h"

#include <criterion/criterion.h>

#define TICKS_A_SECOND (1000000000ull / OFFLINE_TICK_NS)
#define CORES          2u

/* One after the other: what requests take while the job rests and while it computes, how many end in a tick, and which share of the
 * cores others use. */
struct host {
        uint64_t rests_ns, computes_ns, requests;
        double used;
        struct offline_counts counts;
};

static struct offline_rule rule;

static void begin(enum offline_rule_kind kind)
{
        offline_rule_begin(&rule, kind, "no-runtime-of-this-name");
        rule.n_cores = CORES;
}

/* Return: the share of ticks in which it computed. */
static double pass(struct host *host, uint32_t seconds)
{
        uint32_t n = seconds * TICKS_A_SECOND, computed = 0;

        for (uint32_t tick = 0; tick < n; tick++) {
                computed += rule.computes;
                for (uint64_t i = 0; i < host->requests; i++)
                        sl_histogram_record(&host->counts.online, rule.computes ? host->computes_ns : host->rests_ns);
                host->counts.at_ns += OFFLINE_TICK_NS;
                host->counts.host_busy_ns += (uint64_t)(host->used * CORES * OFFLINE_TICK_NS);
                if (rule.computes) {
                        host->counts.host_busy_ns += OFFLINE_TICK_NS; /* the job's own core */
                        host->counts.background_ns += OFFLINE_TICK_NS;
                }
                offline_rule_learn(&rule, &host->counts);
        }
        return (double)computed / n;
}

Test(offline_rule, starling_computes_nine_tenths_beside_requests_that_feel_nothing)
{
        struct host host = {.rests_ns = 100000, .computes_ns = 102000, .requests = 50};

        begin(OFFLINE_RULE_STARLING);
        pass(&host, 30);
        cr_expect_float_eq(pass(&host, 20), 0.9, 0.05);
}

Test(offline_rule, starling_gives_way_to_requests_that_feel_it_and_comes_back)
{
        struct host host = {.rests_ns = 100000, .computes_ns = 130000, .requests = 50};

        begin(OFFLINE_RULE_STARLING);
        pass(&host, 30);
        cr_expect_leq(pass(&host, 20), 0.2);
        host.computes_ns = 100000;
        pass(&host, 100);
        cr_expect_geq(pass(&host, 20), 0.8);
}

Test(offline_rule, starling_computes_all_the_time_where_nobody_asks_and_half_where_few_do)
{
        struct host host = {.rests_ns = 100000, .computes_ns = 100000};

        begin(OFFLINE_RULE_STARLING);
        pass(&host, 5);
        cr_expect_eq(pass(&host, 20), 1.0);
        host.requests = 1;
        pass(&host, 2);
        cr_expect_float_eq(pass(&host, 3), 0.5, 0.11);
}

Test(offline_rule, starling_learns_again_of_few_requests_what_it_has_forgotten)
{
        struct host host = {.rests_ns = 100000, .computes_ns = 130000, .requests = 50};

        begin(OFFLINE_RULE_STARLING);
        pass(&host, 30);
        host.computes_ns = 100000;
        host.requests = 2;
        pass(&host, 120);
        cr_expect_geq(pass(&host, 20), 0.5);
}

Test(offline_rule, infaas_pauses_where_others_use_more_than_two_fifths)
{
        struct host host = {.rests_ns = 100000, .computes_ns = 100000, .requests = 50, .used = 0.35};

        begin(OFFLINE_RULE_INFAAS);
        pass(&host, 3);
        cr_expect_eq(pass(&host, 10), 1.0, "what it computes itself does not count");
        host.used = 0.45;
        pass(&host, 3);
        cr_expect_eq(pass(&host, 10), 0.0);
}

Test(offline_rule, infaas_pauses_where_requests_take_longer_than_before_the_job)
{
        struct host host = {.rests_ns = 100000, .computes_ns = 100000, .requests = 50, .used = 0.1};

        begin(OFFLINE_RULE_INFAAS);
        rule.computes = false;
        pass(&host, 3);
        cr_expect_eq(pass(&host, 10), 1.0);
        host.rests_ns = host.computes_ns = 120000;
        pass(&host, 3);
        cr_expect_eq(pass(&host, 10), 0.0);
}
