/* SPDX-License-Identifier: Apache-2.0 */
#include "pass_bench.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* Infinite where one of them has NaN. */
static float relative_error(const float *a, const float *b, size_t n)
{
        float worst = 0, largest = 0;

        for (size_t i = 0; i < n; i++) {
                worst = fmaxf(worst, isnan(a[i] - b[i]) ? INFINITY : fabsf(a[i] - b[i]));
                largest = fmaxf(largest, fabsf(b[i]));
        }
        return largest > 0 ? worst / largest : worst;
}

struct sl_graph *run_pass(struct builder *b, pass_fn pass, size_t n_in, size_t n_out)
{
        struct sl_graph *before = builder_import(b), *after = builder_import(b);
        struct sl_error error = {0};
        float *input = builder_alloc(b, n_in * sizeof(float));
        float *want = builder_alloc(b, n_out * sizeof(float)), *got = builder_alloc(b, n_out * sizeof(float));

        cr_assert_eq(pass(after, &error), 0, "%s", error.text);
        cr_assert_eq(sl_graph_check(after, &error), 0, "%s", error.text);
        fill_random(input, n_in, 7);
        evaluate_floats(before, BATCH, input, want, n_out);
        evaluate_floats(after, BATCH, input, got, n_out);
        float error_seen = relative_error(got, want, n_out);

        cr_assert(error_seen <= 1e-6f, "relative error %g", error_seen);
        sl_graph_free(before);
        return after;
}

void expect_text(const struct sl_graph *graph, const char *wanted)
{
        char *printed = print_graph(graph);

        cr_assert_str_eq(printed, wanted, "%s", printed);
        free(printed);
}
