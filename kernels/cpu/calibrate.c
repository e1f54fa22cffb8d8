/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/calibrate.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "cpu/algorithm.h"
#include "cpu/base/threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#define RUNS         (SL_MEASURED_RUNS < 7 ? SL_MEASURED_RUNS : 7)
#define RUN_SECONDS  1e-4 /* of one, in which the kernel runs as often as it takes: a clock is read for less than a thousandth */
#define FACTOR       4    /* beyond what is typical, something has gone wrong */
#define HALVINGS     24
#define N_INPUTS_MAX 4

/* A convolution of float32 over a square image with channels last; three channels come one behind the other. */
struct row {
        enum sl_core_figure figure;
        uint32_t algorithm;
        int64_t channels, filters, groups, side, kernel, stride;
        uint32_t activation;
        bool residual;
};

/* All lie in the L2 cache. A row may count on the figures of those before it. */
static const struct row rows[] = {
        {SL_CORE_FIGURE_store, SL_ALGORITHM_BLOCKED, 32, 256, 1, 14, 1, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_product, SL_ALGORITHM_BLOCKED, 128, 256, 1, 14, 1, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_light, SL_ALGORITHM_BLOCKED, 32, 256, 1, 14, 1, 1, SL_ACT_HARD_SWISH, false},
        {SL_CORE_FIGURE_heavy, SL_ALGORITHM_BLOCKED, 32, 256, 1, 14, 1, 1, SL_ACT_SIGMOID, false},
        {SL_CORE_FIGURE_first, SL_ALGORITHM_BLOCKED, 3, 64, 1, 56, 7, 2, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_frame, SL_ALGORITHM_BLOCKED, 64, 64, 1, 28, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_copied, SL_ALGORITHM_BLOCKED, 64, 64, 1, 7, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_winograd_2, SL_ALGORITHM_WINOGRAD_2, 64, 64, 1, 28, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_winograd_4, SL_ALGORITHM_WINOGRAD_4, 64, 64, 1, 28, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_winograd_strided, SL_ALGORITHM_WINOGRAD_2, 64, 64, 1, 28, 3, 2, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_depthwise, SL_ALGORITHM_BLOCKED, 1, 192, 192, 14, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_grouped, SL_ALGORITHM_BLOCKED, 4, 128, 32, 14, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_call, SL_ALGORITHM_DIRECT, 16, 16, 1, 1, 1, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_product, SL_ALGORITHM_DIRECT, 128, 256, 1, 14, 1, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_first, SL_ALGORITHM_DIRECT, 3, 64, 1, 56, 7, 2, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_depthwise, SL_ALGORITHM_DIRECT, 1, 192, 192, 14, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_groups_4, SL_ALGORITHM_DIRECT, 4, 128, 32, 14, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_groups_8, SL_ALGORITHM_DIRECT, 8, 128, 16, 14, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_groups_16, SL_ALGORITHM_DIRECT, 16, 128, 8, 14, 3, 1, SL_ACT_NONE, false},
        {SL_CORE_FIGURE_onednn_light, SL_ALGORITHM_DIRECT, 32, 256, 1, 14, 1, 1, SL_ACT_HARD_SWISH, false},
        {SL_CORE_FIGURE_onednn_heavy, SL_ALGORITHM_DIRECT, 32, 256, 1, 14, 1, 1, SL_ACT_SIGMOID, false},
        {SL_CORE_FIGURE_onednn_ragged, SL_ALGORITHM_DIRECT, 64, 72, 1, 14, 1, 1, SL_ACT_NONE, true},
};

/* A row's kernel with memory of its own. */
struct trial {
        struct sl_node_desc node;
        const struct sl_target *target; /* or NULL */
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        void *inputs[N_INPUTS_MAX], *weights, *output, *scratch;
        struct sl_kernel *kernel;
};

static double round_to(double value, int digits)
{
        double unit = pow(10, floor(log10(value)) + 1 - digits);

        return round(value / unit) * unit;
}

double sl_cpu_two_digits(double value)
{
        return round_to(value, 2);
}

static struct sl_tensor image(int64_t channels, int64_t side)
{
        return (struct sl_tensor){
                .dtype = SL_DTYPE_F32, .layout = SL_LAYOUT_CHANNELS_LAST, .shape = {4, {1, channels, side, side}}};
}

static int describe(const struct row *row, struct sl_node_desc *node)
{
        int64_t pad = row->kernel / 2;
        int r;

        node->op = SL_OP_CONV;
        node->n_inputs = row->residual ? 4 : 2;
        node->n_outputs = 1;
        node->epilogue.activation = row->activation;
        node->epilogue.has_residual = row->residual;
        node->inputs[0] = image(row->channels * row->groups, row->side);
        if (row->channels == 3)
                node->inputs[0].layout = SL_LAYOUT_PLAIN;
        node->inputs[1] =
                (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {4, {row->filters, row->channels, row->kernel, row->kernel}}};
        node->outputs[0] = image(row->filters, (row->side - 1) / row->stride + 1);
        if (row->residual)
                node->inputs[3] = node->outputs[0];
        r = sl_attrs_set_int(&node->attrs, SL_ATTR_GROUP, row->groups);
        r = r ? r : sl_attrs_set_int(&node->attrs, SL_ATTR_ALGORITHM, row->algorithm);
        r = r ? r : sl_attrs_set_ints(&node->attrs, SL_ATTR_KERNEL_SHAPE, (const int64_t[]){row->kernel, row->kernel}, 2);
        r = r ? r : sl_attrs_set_ints(&node->attrs, SL_ATTR_STRIDES, (const int64_t[]){row->stride, row->stride}, 2);
        return r ? r : sl_attrs_set_ints(&node->attrs, SL_ATTR_PADS, (const int64_t[]){pad, pad, pad, pad}, 4);
}

/* Small numbers: neither zeros nor what becomes one. */
static void *take_floats(uint64_t bytes)
{
        float *floats = aligned_alloc(SL_LINE_BYTES, sl_align_up(bytes + 1, SL_LINE_BYTES));

        for (uint64_t i = 0; floats && i < bytes / sizeof(*floats); i++)
                floats[i] = (float)(i % 17) / 16.0f - 0.5f;
        return floats;
}

static int take_memory(struct trial *trial)
{
        const struct sl_node_desc *node = &trial->node;

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (node->inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                trial->inputs[i] = take_floats(sl_tensor_bytes(&node->inputs[i]));
                if (!trial->inputs[i])
                        return -ENOMEM;
        }
        trial->output = take_floats(sl_tensor_bytes(&node->outputs[0]));
        return trial->output ? 0 : -ENOMEM;
}

static int pack_weights(struct trial *trial)
{
        const struct sl_planner *planner = sl_backend_cpu.planner;
        int r = planner->pack(NULL, &trial->node, 1, &trial->packed[1]);

        if (r < 0 || !trial->packed[1].data_bytes)
                return r;
        trial->weights = take_floats(trial->packed[1].data_bytes);
        return trial->weights ? planner->repack(NULL, &trial->node, 1, &trial->packed[1], trial->inputs[1], trial->weights)
                              : -ENOMEM;
}

/* Of the node that it has. */
static int trial_init(struct trial *trial)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        const struct sl_kernel_source source = {
                .node = &trial->node, .packed = trial->packed, .constants = constants, .target = trial->target};
        int r;

        if (!sl_backend_cpu.planner->supports(NULL, &trial->node))
                return -ENOTSUP;
        r = take_memory(trial);
        r = r ? r : pack_weights(trial);
        constants[1] = trial->weights ? trial->weights : trial->inputs[1];
        constants[2] = trial->inputs[2];
        r = r ? r : sl_backend_cpu.runner->compile(NULL, &source, &trial->kernel, NULL);
        if (r < 0)
                return r;
        trial->scratch = take_floats(sl_backend_cpu.runner->scratch_bytes(trial->kernel));
        return trial->scratch ? 0 : -ENOMEM;
}

static void trial_deinit(struct trial *trial)
{
        sl_backend_cpu.runner->kernel_free(trial->kernel);
        for (uint32_t i = 0; i < N_INPUTS_MAX; i++)
                free(trial->inputs[i]);
        free(trial->weights);
        free(trial->output);
        free(trial->scratch);
}

/* Of this thread alone: time in which others had the core does not count. */
static double now_seconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double run_times(const struct trial *trial, uint32_t times)
{
        const void *inputs[N_INPUTS_MAX] = {
                trial->inputs[0], trial->weights ? trial->weights : trial->inputs[1], trial->inputs[2], trial->inputs[3]};
        void *outputs[] = {trial->output};
        const struct sl_binding binding = {.inputs = inputs, .outputs = outputs, .scratch = trial->scratch};
        double start = now_seconds();

        for (uint32_t i = 0; i < times; i++)
                (void)sl_backend_cpu.runner->launch(trial->kernel, &binding);
        return (now_seconds() - start) / times;
}

static int by_value(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

/* The median; what is taken first, to warm up, says how often it runs for one. */
static double time_trial(const struct trial *trial)
{
        double seconds[RUNS], once;
        uint32_t times;

        run_times(trial, 1);
        once = run_times(trial, 2);
        times = once > 0 && once < RUN_SECONDS ? (uint32_t)(RUN_SECONDS / once) + 1 : 1;
        for (uint32_t i = 0; i < RUNS; i++)
                seconds[i] = run_times(trial, times);
        qsort(seconds, RUNS, sizeof(*seconds), by_value);
        return seconds[RUNS / 2];
}

/* What the row's node should take by its algorithm; 0: that is not among those that it has. */
static double estimate(const struct row *row, const struct sl_node_desc *node, const struct sl_core_figures *figures)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT];
        double seconds[SL_ALGORITHM_COUNT];
        uint32_t n = sl_algorithm_list(node, figures, true, algorithms, seconds);

        for (uint32_t i = 0; i < n; i++)
                if (algorithms[i] == row->algorithm)
                        return seconds[i];
        return 0;
}

/*
 * An estimate rises, or falls, with the figure: the value at which it is what was measured, halving the range that holds it. Here
 * the weights lie in the L2 cache, as they do not within a network.
 */
static void solve(const struct row *row, const struct sl_node_desc *node, double measured, struct sl_core_figures *figures)
{
        struct sl_core_figures here = *figures;
        double *figure = sl_core_figure(&here, row->figure), typical = *figure;
        double low = typical / FACTOR, high = typical * FACTOR, at_low, at_high;

        here.weights = here.stream = here.near;
        *figure = low;
        at_low = estimate(row, node, &here);
        *figure = high;
        at_high = estimate(row, node, &here);
        if (at_low == at_high)
                return;
        for (int i = 0; i < HALVINGS; i++) {
                *figure = sqrt(low * high);
                if ((estimate(row, node, &here) < measured) == (at_low < at_high))
                        low = *figure;
                else
                        high = *figure;
        }
        *sl_core_figure(figures, row->figure) = round_to(*figure, 3);
}

int sl_cpu_calibrate(struct sl_core_figures *figures)
{
        int r = 0;

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && r != -ENOMEM; i++) {
                SL_CLEANUP(sl_cleanup_free) struct trial *trial = calloc(1, sizeof(*trial));

                if (!trial)
                        return -ENOMEM;
                r = describe(&rows[i], &trial->node);
                r = r ? r : trial_init(trial);
                if (r == 0)
                        solve(&rows[i], &trial->node, time_trial(trial), figures);
                trial_deinit(trial);
        }
        return r == -ENOMEM ? r : 0;
}

double sl_cpu_time_node(const struct sl_node_desc *node, const struct sl_target *target)
{
        SL_CLEANUP(sl_cleanup_free) struct trial *trial = calloc(1, sizeof(*trial));
        double seconds;

        if (!trial)
                return 0;
        sl_cpu_use_one_thread();
        trial->node = *node;
        trial->target = target;
        seconds = trial_init(trial) == 0 ? time_trial(trial) : 0;
        trial_deinit(trial);
        return seconds;
}
