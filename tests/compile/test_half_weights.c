/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option `weights`: results are those of the rounded weights, the plan is smaller by what is said, and a weight that float16 has
 * no room for keeps its node in float32.
 */
#include "base/error.h"
#include "cpu/base/float16.h"
#include "cpu/base/isa.h"
#include "evaluate.h"
#include "figures.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INPUTS = 48, HIDDEN = 96, CLASSES = 40 };

struct model {
        struct network net;
        float *first, *second; /* the matrices */
        struct sl_lower_options options;
};

static void model_init(struct model *m, uint32_t weights)
{
        uint32_t x, first, second, hidden;

        network_init(&m->net);
        x = network_input(&m->net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, INPUTS));
        first = network_weights(&m->net, DIMS(INPUTS, HIDDEN));
        second = network_weights(&m->net, DIMS(HIDDEN, CLASSES));
        hidden = network_apply(&m->net, SL_OP_RELU, network_node(&m->net, SL_OP_MATMUL, VALUES(x, first), 0, NULL));
        network_output(&m->net, network_node(&m->net, SL_OP_GEMM, VALUES(hidden, second), 0, NULL));
        network_finish(&m->net);
        m->first = (float *)sl_graph_constant(m->net.graph, first);
        m->second = (float *)sl_graph_constant(m->net.graph, second);
        sl_lower_options_init(&m->options);
        m->options.weights = weights;
}

static void run(const struct model *m, const float *x, float *ret_y)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);
        const void *inputs[] = {x};
        void *outputs[] = {ret_y};
        struct sl_instance *instance;
        struct sl_lowered *lowered;
        struct sl_error error = {""};
        struct sl_plan *plan;

        cr_assert_eq(sl_lower_rewrite(m->net.graph, &m->options, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_new_in(m->net.graph, &m->options, NULL, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_new(plan, 4, &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, 4, inputs, outputs), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
        close(fd);
}

static void round_all(float *weights, uint64_t n)
{
        for (uint64_t i = 0; i < n; i++)
                weights[i] = sl_widen_f16(sl_narrow_f16(weights[i]));
}

static float *random_rows(struct model *m)
{
        float *x = aligned_alloc(64, 4 * INPUTS * sizeof(*x));

        for (uint32_t i = 0; i < 4 * INPUTS; i++)
                x[i] = network_random(&m->net);
        return x;
}

Test(half_weights, results_are_those_of_the_rounded_weights)
{
        float *got = aligned_alloc(64, 4 * CLASSES * sizeof(*got)), *want = aligned_alloc(64, 4 * CLASSES * sizeof(*want)), *x;
        struct model halves, rounded;

        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        model_init(&halves, SL_WEIGHTS_F16);
        model_init(&rounded, SL_WEIGHTS_FP32);
        x = random_rows(&halves);
        round_all(rounded.first, INPUTS * HIDDEN);
        round_all(rounded.second, HIDDEN * CLASSES);
        rounded.options.backend = 1; /* ref */
        run(&halves, x, got);
        run(&rounded, x, want);
        for (uint32_t i = 0; i < 4 * CLASSES; i++)
                cr_expect_float_eq(got[i], want[i], 1e-5f, "element %u is %g, not %g", i, (double)got[i], (double)want[i]);
        free(x);
        free(got);
        free(want);
        network_deinit(&halves.net);
        network_deinit(&rounded.net);
}

static void figures_of(struct model *m, struct sl_compile_figures *ret_figures)
{
        struct sl_error error = {""};

        cr_assert_eq(sl_lower_rewrite(m->net.graph, &m->options, &error), 0, "%s", error.text);
        cr_assert_eq(sl_compile_figures(m->net.graph, &m->options, ret_figures, &error), 0, "%s", error.text);
}

static uint64_t saved_bytes(const struct sl_compile_figures *figures)
{
        uint64_t saved = 0;

        for (uint32_t i = 0; i < figures->n_nodes; i++)
                saved += figures->nodes[i].saved_bytes;
        return saved;
}

Test(half_weights, what_is_said_to_be_saved_is_what_the_plan_lacks)
{
        static const uint32_t kinds[] = {SL_WEIGHTS_F16, SL_WEIGHTS_BF16};
        struct sl_compile_figures whole, halves;
        struct model m;

        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        model_init(&m, SL_WEIGHTS_FP32);
        figures_of(&m, &whole);
        network_deinit(&m.net);
        cr_expect_eq(saved_bytes(&whole), 0);
        for (size_t i = 0; i < 2; i++) {
                model_init(&m, kinds[i]);
                figures_of(&m, &halves);
                cr_expect_eq(saved_bytes(&halves), 2 * (INPUTS * HIDDEN + HIDDEN * 48)); /* 40 columns lie in 48 */
                cr_expect_eq(whole.weights_bytes - halves.weights_bytes, saved_bytes(&halves));
                sl_compile_figures_free(&halves);
                network_deinit(&m.net);
        }
        sl_compile_figures_free(&whole);
}

Test(half_weights, a_weight_that_float16_has_no_room_for_keeps_its_node_in_float32)
{
        struct sl_compile_figures figures;
        struct model m;
        uint32_t whole = 0, halves = 0;

        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        model_init(&m, SL_WEIGHTS_F16);
        m.first[7] = -65520.0f;
        figures_of(&m, &figures);
        for (uint32_t i = 0; i < figures.n_nodes; i++) {
                whole += strcmp(figures.nodes[i].weights, "fp32") == 0 && strcmp(figures.nodes[i].operator, "MatMul") == 0;
                halves += strcmp(figures.nodes[i].weights, "f16") == 0 && strcmp(figures.nodes[i].operator, "Gemm") == 0;
        }
        cr_expect_eq(whole, 1);
        cr_expect_eq(halves, 1);
        cr_expect_eq(saved_bytes(&figures), 2 * HIDDEN * 48);
        sl_compile_figures_free(&figures);
        network_deinit(&m.net);

        model_init(&m, SL_WEIGHTS_BF16);
        m.first[7] = -65520.0f;
        figures_of(&m, &figures);
        cr_expect_eq(saved_bytes(&figures), 2 * (INPUTS * HIDDEN + HIDDEN * 48));
        sl_compile_figures_free(&figures);
        network_deinit(&m.net);
}

/* A mean over the pixels, and what squeezes and excites behind it; the convolution in front is over more than one pixel. */
Test(half_weights, filters_over_one_pixel_lie_in_halves_and_others_do_not)
{
        enum { CHANNELS = 64, SQUEEZED = 32 };
        struct sl_compile_figures figures;
        uint32_t image, mean, squeezed;
        struct model m;

        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        network_init(&m.net);
        image = network_input(&m.net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, CHANNELS, 6, 6));
        image = network_node(&m.net, SL_OP_CONV, VALUES(image, network_weights(&m.net, DIMS(CHANNELS, CHANNELS, 1, 1))), 0, NULL);
        mean = network_apply(&m.net, SL_OP_GLOBAL_AVERAGE_POOL, image);
        squeezed = network_node(&m.net, SL_OP_CONV, VALUES(mean, network_weights(&m.net, DIMS(SQUEEZED, CHANNELS, 1, 1))), 0, NULL);
        network_output(&m.net, squeezed);
        network_finish(&m.net);
        sl_lower_options_init(&m.options);
        m.options.weights = SL_WEIGHTS_F16;
        figures_of(&m, &figures);
        cr_expect_eq(saved_bytes(&figures), 2 * CHANNELS * SQUEEZED);
        sl_compile_figures_free(&figures);
        network_deinit(&m.net);
}
