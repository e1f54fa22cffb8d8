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

static void count_floats(const struct sl_graph *graph, int64_t batch, size_t *ret_in, size_t *ret_out)
{
        struct sl_graph *special;
        struct sl_error error = {0};

        cr_assert_eq(sl_graph_specialise(graph, batch, &special, &error), 0, "%s", error.text);
        *ret_in = sl_tensor_bytes(&special->values[special->inputs[0]].tensor) / sizeof(float);
        *ret_out = sl_tensor_bytes(&special->values[special->outputs[0]].tensor) / sizeof(float);
        sl_graph_free(special);
}

static void expect_same(struct builder *b, const struct sl_graph *before, const struct sl_graph *after, int64_t batch)
{
        size_t n_in, n_out;

        count_floats(before, batch, &n_in, &n_out);
        float *input = builder_alloc(b, n_in * sizeof(float));
        float *want = builder_alloc(b, n_out * sizeof(float)), *got = builder_alloc(b, n_out * sizeof(float));

        fill_random(input, n_in, 7);
        evaluate_floats(before, batch, input, want, n_out);
        evaluate_floats(after, batch, input, got, n_out);
        float error_seen = relative_error(got, want, n_out);

        cr_assert(error_seen <= 1e-6f, "batch %d: relative error %g", (int)batch, error_seen);
}

struct sl_graph *run_pass(struct builder *b, pass_fn pass)
{
        struct sl_graph *before = builder_import(b), *after = builder_import(b);
        struct sl_error error = {0};

        cr_assert_eq(pass(after, &error), 0, "%s", error.text);
        cr_assert_eq(sl_graph_check(after, &error), 0, "%s", error.text);
        for (int64_t batch = 1; batch <= BATCH_MAX; batch++)
                expect_same(b, before, after, batch);
        sl_graph_free(before);
        return after;
}

void expect_text(const struct sl_graph *graph, const char *wanted)
{
        char *printed = print_graph(graph);

        cr_assert_str_eq(printed, wanted, "%s", printed);
        free(printed);
}

void expect_after(struct builder *b, pass_fn pass, const char *wanted)
{
        struct sl_graph *graph = run_pass(b, pass);

        expect_text(graph, wanted);
        sl_graph_free(graph);
        builder_free(b);
}

void expect_ops_after(struct builder *b, pass_fn pass, uint32_t op, uint32_t n)
{
        struct sl_graph *graph = run_pass(b, pass);

        cr_expect_eq(count_ops(graph, op), n);
        sl_graph_free(graph);
        builder_free(b);
}
