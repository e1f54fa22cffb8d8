/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_print.h"
#include "node_profile.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE_BYTES 160

static void shape_text(const struct sl_tensor *tensor, char text[SHAPE_BYTES])
{
        size_t used = 0;

        text[0] = 0;
        for (uint32_t i = 0; i < tensor->shape.rank; i++)
                used += (size_t)snprintf(text + used, SHAPE_BYTES - used, "%s%lld", i ? "x" : "", (long long)tensor->shape.dims[i]);
        if (tensor->layout != SL_LAYOUT_PLAIN)
                snprintf(text + used, SHAPE_BYTES - used, " last");
}

static double gflops(uint64_t multiply_adds, double ns)
{
        return ns > 0 ? 2.0 * (double)multiply_adds / ns : 0;
}

static double share_of_peak(const struct sl_node_profile *profile, uint64_t multiply_adds, double ns)
{
        return profile->peak_flops > 0 ? gflops(multiply_adds, ns) * 1e9 / profile->peak_flops : 0;
}

static double sum_ns(const struct sl_node_profile *profile)
{
        double sum = 0;

        for (uint64_t i = 0; i < profile->n_steps; i++)
                sum += profile->step_ns[i];
        return sum;
}

/* Of one kind: operator, algorithm and backend. */
struct kind {
        const struct sl_step_info *like;
        uint64_t steps, multiply_adds, bytes;
        double ns;
};

static bool same_kind(const struct sl_step_info *a, const struct sl_step_info *b)
{
        return !strcmp(a->operator_name, b->operator_name) && !strcmp(a->algorithm, b->algorithm) &&
               !strcmp(a->backend, b->backend);
}

static int slowest_kind_first(const void *a, const void *b)
{
        double left = ((const struct kind *)a)->ns, right = ((const struct kind *)b)->ns;

        return (left < right) - (left > right);
}

/* The array is the caller's to free; NULL without memory. */
static struct kind *collect_kinds(const struct sl_node_profile *profile, uint64_t *ret_n)
{
        struct kind *kinds = calloc(profile->n_steps, sizeof(*kinds));
        uint64_t n = 0;

        for (uint64_t i = 0; kinds && i < profile->n_steps; i++) {
                uint64_t k = 0;

                while (k < n && !same_kind(kinds[k].like, &profile->steps[i]))
                        k++;
                n += k == n;
                kinds[k].like = &profile->steps[i];
                kinds[k].steps++;
                kinds[k].multiply_adds += profile->steps[i].multiply_adds;
                kinds[k].bytes += profile->steps[i].bytes;
                kinds[k].ns += profile->step_ns[i];
        }
        if (kinds)
                qsort(kinds, n, sizeof(*kinds), slowest_kind_first);
        *ret_n = n;
        return kinds;
}

static void print_rates(const struct sl_node_profile *profile, uint64_t multiply_adds, uint64_t bytes, double ns, FILE *stream)
{
        fprintf(stream, "%10.1f %6.2f %9.1f %6.2f %8.2f %7.2f", ns / 1e3, 100 * ns / sum_ns(profile), gflops(multiply_adds, ns),
                share_of_peak(profile, multiply_adds, ns), (double)bytes / 1e6, ns > 0 ? (double)bytes / ns : 0);
}

#define RATES "        us      %%   GFLOP/s   peak       MB    GB/s"

static void print_kinds(const struct sl_node_profile *profile, FILE *stream)
{
        uint64_t n;
        struct kind *kinds = collect_kinds(profile, &n);

        fprintf(stream, RATES "  steps  operator\n");
        for (uint64_t i = 0; kinds && i < n; i++) {
                print_rates(profile, kinds[i].multiply_adds, kinds[i].bytes, kinds[i].ns, stream);
                fprintf(stream, "  %5llu  %s %s (%s)\n", (unsigned long long)kinds[i].steps, kinds[i].like->operator_name,
                        kinds[i].like->algorithm, kinds[i].like->backend);
        }
        free(kinds);
}

struct ranked {
        uint64_t step;
        double ns;
};

static int slowest_first(const void *a, const void *b)
{
        const struct ranked *left = a, *right = b;

        return left->ns != right->ns ? (left->ns < right->ns ? 1 : -1) : (left->step > right->step) - (left->step < right->step);
}

static void print_step(const struct sl_node_profile *profile, uint64_t step, FILE *stream)
{
        const struct sl_step_info *info = &profile->steps[step];
        char shape[SHAPE_BYTES];

        shape_text(&info->out, shape);
        print_rates(profile, info->multiply_adds, info->bytes, profile->step_ns[step], stream);
        fprintf(stream, "  %5llu  %s %s (%s) %s \"%s\"", (unsigned long long)step, info->operator_name, info->algorithm,
                info->backend, shape, info->name);
        if (info->depth)
                fprintf(stream, " in \"%s\"", info->around);
        fputc('\n', stream);
}

static void print_steps(const struct sl_node_profile *profile, FILE *stream)
{
        struct ranked *ranked = calloc(profile->n_steps, sizeof(*ranked));

        fprintf(stream, "\n" RATES "   step  operator, shape, name\n");
        for (uint64_t i = 0; ranked && i < profile->n_steps; i++)
                ranked[i] = (struct ranked){i, profile->step_ns[i]};
        if (ranked)
                qsort(ranked, profile->n_steps, sizeof(*ranked), slowest_first);
        for (uint64_t i = 0; ranked && i < profile->n_steps; i++)
                print_step(profile, ranked[i].step, stream);
        free(ranked);
}

void profile_print_text(const struct sl_node_profile *profile, bool nodes, FILE *stream)
{
        uint64_t multiply_adds = 0;

        for (uint64_t i = 0; i < profile->n_steps; i++)
                multiply_adds += profile->steps[i].multiply_adds;
        fprintf(stream,
                "batch %u, %llu steps, median of %llu runs: %.3f ms, %.1f GFLOP/s, %.2f of the peak of %.1f (steps: %.3f ms)\n\n",
                profile->batch, (unsigned long long)profile->n_steps, (unsigned long long)profile->n_runs, profile->run_ns / 1e6,
                gflops(multiply_adds, profile->run_ns), share_of_peak(profile, multiply_adds, profile->run_ns),
                profile->peak_flops / 1e9, sum_ns(profile) / 1e6);
        print_kinds(profile, stream);
        if (nodes)
                print_steps(profile, stream);
}

static json_t *step_json(const struct sl_node_profile *profile, uint64_t step)
{
        const struct sl_step_info *info = &profile->steps[step];
        char shape[SHAPE_BYTES];

        shape_text(&info->out, shape);
        return json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:I, s:I, s:f, s:f}", "step", (json_int_t)step, "name",
                info->name, "in", info->around, "operator", info->operator_name, "algorithm", info->algorithm, "backend",
                info->backend, "shape", shape, "ns", profile->step_ns[step], "multiply_adds", (json_int_t)info->multiply_adds,
                "bytes", (json_int_t)info->bytes, "gflops", gflops(info->multiply_adds, profile->step_ns[step]), "share_of_peak",
                share_of_peak(profile, info->multiply_adds, profile->step_ns[step]));
}

/* Takes the object over, which is NULL without memory. */
static int dump(json_t *object, FILE *stream)
{
        int r = object ? json_dumpf(object, stream, JSON_INDENT(1)) : -1;

        if (object && r == 0)
                fputc('\n', stream);
        json_decref(object);
        return !object ? -ENOMEM : r < 0 ? -EIO : 0;
}

int profile_print_json(const struct sl_node_profile *profile, FILE *stream)
{
        json_t *steps = json_array();

        for (uint64_t i = 0; i < profile->n_steps; i++)
                json_array_append_new(steps, step_json(profile, i));
        return dump(json_pack("{s:i, s:I, s:f, s:f, s:f, s:o}", "batch", (int)profile->batch, "runs", (json_int_t)profile->n_runs,
                            "run_ns", profile->run_ns, "steps_ns", sum_ns(profile), "peak_gflops", profile->peak_flops / 1e9,
                            "steps", steps),
                stream);
}

int profile_print_trace(const struct sl_node_profile *profile, FILE *stream)
{
        json_t *events = json_array();
        double at_us = 0;

        for (uint64_t i = 0; i < profile->n_steps; i++) {
                const struct sl_step_info *info = &profile->steps[i];
                double us = profile->step_ns[i] / 1e3;

                json_array_append_new(
                        events, json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:o}", "name",
                                        info->name[0] ? info->name : info->operator_name, "cat", info->operator_name, "ph", "X",
                                        "ts", at_us, "dur", us, "pid", 1, "tid", 1, "args", step_json(profile, i)));
                at_us += us;
        }
        return dump(json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ns"), stream);
}
