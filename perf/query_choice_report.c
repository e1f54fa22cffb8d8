/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "machine.h"
#include "query_choice.h"
#include "query_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *quantiles_json(const struct sl_histogram *latencies)
{
        return json_pack("{s:I, s:o, s:o, s:o, s:I}", "n", (json_int_t)sl_counter_read(&latencies->count), "p50_ns",
                sl_query_quantile_json(latencies, 0.5), "p99_ns", sl_query_quantile_json(latencies, 0.99), "p999_ns",
                sl_query_quantile_json(latencies, 0.999), "max_ns", (json_int_t)sl_counter_read(&latencies->max_ns));
}

static json_t *choice_json(const struct sl_query_choice_bench *bench, const struct sl_query_choice *turns)
{
        json_t *list = json_array();

        for (uint32_t t = 0; t < bench->turns; t++)
                json_array_append_new(
                        list, json_pack("{s:o, s:o, s:o, s:I, s:I}", "choices", quantiles_json(&turns[t].choices), "renewals",
                                      quantiles_json(&turns[t].renewals), "brute_force", quantiles_json(&turns[t].brute),
                                      "rewritten", (json_int_t)turns[t].rewritten, "wrong", (json_int_t)turns[t].wrong));
        return json_pack("{s:s, s:o, s:o, s:I, s:f, s:o}", "benchmark", "query-choice", "command",
                sl_query_command_json(bench->argc, bench->argv), "machine", sl_machine_json(), "variants",
                (json_int_t)bench->variants, "seconds", (double)bench->turn_ns / SL_NS_PER_SECOND, "turns", list);
}

static void print_choice(const struct sl_query_choice_bench *bench, const struct sl_query_choice *turns)
{
        char machine[200];

        sl_machine_line(machine, sizeof(machine));
        printf("starling bench query --choice %" PRIu32 " on %s\n\n  %-12s %10s %9s %9s %9s\n", bench->variants, machine, "turn",
                "n", "p50 ns", "p99 ns", "max ns");
        for (uint32_t t = 0; t < bench->turns; t++) {
                const struct sl_histogram *const rows[] = {&turns[t].choices, &turns[t].renewals, &turns[t].brute};
                static const char *const names[] = {"choices", "renewals", "brute force"};

                for (uint32_t i = 0; i < 3; i++)
                        printf("  %-12s %10" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "\n", names[i],
                                sl_counter_read(&rows[i]->count), sl_histogram_quantile(rows[i], 0.5),
                                sl_histogram_quantile(rows[i], 0.99), sl_counter_read(&rows[i]->max_ns));
                printf("  the page was rewritten %" PRIu64 " times; %" PRIu64 " choices were wrong\n", turns[t].rewritten,
                        turns[t].wrong);
        }
}

int sl_query_report_choice(const struct sl_query_choice_bench *bench)
{
        struct sl_query_choice *turns = aligned_alloc(64, bench->turns * sizeof(*turns));
        int r = turns ? 0 : -ENOMEM;

        for (uint32_t t = 0; t < bench->turns && r == 0; t++)
                r = sl_query_choice_run(bench->variants, bench->turn_ns, bench->seed + t, &turns[t]);
        if (r == 0 && bench->json)
                r = sl_query_print_json(choice_json(bench, turns));
        else if (r == 0)
                print_choice(bench, turns);
        free(turns);
        return r;
}
