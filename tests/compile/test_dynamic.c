/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans whose shapes, or whose paths, depend on the data of a request: what they make is what the reference evaluation makes, and
 * what they take has limits.
 */
#include "bodies_model.h"
#include "cpu/base/isa.h"
#include "evaluate.h"
#include "format.h"
#include "lower.h"
#include "ref/live.h"
#include "stop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM 1024

/* Runs the plan; output 0 goes to @ret_data, its shape to @ret_open. */
static int run(struct model *m, const void *const *inputs, void *ret_data, struct sl_open_output *ret_open)
{
        *ret_open = (struct sl_open_output){.capacity_bytes = ROOM};
        m->error.text[0] = 0;
        return sl_instance_run_open(m->instance, 1, inputs, &ret_data, ret_open, &m->error);
}

/* The same from the reference evaluation must be there already in @got. */
static void expect_as_evaluated(struct model *m, const void *const *inputs, const void *got, const struct sl_open_output *open)
{
        struct sl_pool pool = {.limit_bytes = 1 << 20};
        struct sl_live output = {0};
        struct sl_graph *special;

        cr_assert_eq(sl_graph_specialise(m->graph, 1, &special, &m->error), 0, "%s", m->error.text);
        cr_assert_eq(sl_graph_evaluate_open(special, inputs, &pool, &output, &m->error), 0, "%s", m->error.text);
        cr_assert(sl_shape_equal(&output.tensor.shape, &open->shape));
        cr_assert_arr_eq(output.data, got, sl_tensor_bytes(&output.tensor));
        sl_live_drop(&pool, &output);
        cr_assert_eq(pool.used_bytes, 0u);
        sl_graph_free(special);
}

/*
 * y = a Loop of n rounds over v, which is x at first: in rounds below 2 v stays, then x is added to it, and each time x is put
 * behind. The If inside reads x of the outermost graph and v of the Loop's body.
 */
static void build_nested(struct model *m)
{
        struct builder *then = builder_new(16), *other = builder_new(16), *body = builder_new(16), *b = builder_new(16);
        Onnx__NodeProto *node;

        *m = (struct model){.b = b, .bodies = {then, other, body}};
        builder_node(then, "Identity", "v", "kept");
        builder_output(then, "kept");
        builder_node(other, "ReduceSum", "x", "sum");
        builder_node(other, "Add", "v,sum", "added");
        builder_output(other, "added");
        builder_input(body, "i", SL_DTYPE_I64, DIMS());
        builder_input(body, "go", SL_DTYPE_BOOL, DIMS());
        builder_input(body, "v", SL_DTYPE_F32, DIMS(-1));
        builder_ints(body, "two", DIMS(), (int64_t[]){2});
        builder_node(body, "Less", "i,two", "early");
        node = builder_node(body, "If", "early", "w");
        builder_attr_graph(body, node, "then_branch", then);
        builder_attr_graph(body, node, "else_branch", other);
        node = builder_node(body, "Concat", "w,x", "longer");
        builder_attr_int(body, node, "axis", 0);
        builder_node(body, "Identity", "go", "goes_on");
        builder_output(body, "goes_on");
        builder_output(body, "longer");
        builder_input(b, "x", SL_DTYPE_F32, DIMS(2));
        builder_input(b, "n", SL_DTYPE_I64, DIMS());
        node = builder_node(b, "Loop", "n,,x", "y");
        builder_attr_graph(b, node, "body", body);
        builder_output(b, "y");
        model_import(m);
}

Test(dynamic, bodies_read_the_graphs_around_them_and_carry_what_grows)
{
        static const float wanted[] = {4, 5, 4, 5, 4, 5, 1, 2};
        float x[2] = {1, 2}, y[ROOM / 4];
        int64_t n = 3;
        const void *inputs[] = {x, &n};
        struct sl_open_output open;
        struct model m;

        build_nested(&m);
        model_compile(&m);
        cr_assert_eq(run(&m, inputs, y, &open), 0, "%s", m.error.text);
        cr_assert_eq(open.shape.dims[0], 8);
        cr_assert_arr_eq(y, wanted, sizeof(wanted));
        expect_as_evaluated(&m, inputs, y, &open);
        model_end(&m);
}

/* A loop without a round hands on memory of the caller, which the plan copies. */
Test(dynamic, no_round_at_all_leaves_what_is_carried)
{
        float x[2] = {1, 2}, y[ROOM / 4];
        int64_t n = 0;
        const void *inputs[] = {x, &n};
        struct sl_open_output open;
        struct model m;

        build_nested(&m);
        model_compile(&m);
        cr_assert_eq(run(&m, inputs, y, &open), 0, "%s", m.error.text);
        cr_assert_eq(open.shape.dims[0], 2);
        cr_assert_arr_eq(y, x, sizeof(x));
        model_end(&m);
}

Test(dynamic, memory_and_steps_have_limits_that_the_error_names)
{
        float x[2] = {1, 2}, y[ROOM / 4];
        int64_t n = 1 << 20;
        const void *inputs[] = {x, &n};
        struct sl_open_output open;
        struct model m;

        build_nested(&m);
        m.options.dynamic_bytes_max = 1 << 16;
        m.options.dynamic_steps_max = 50;
        model_compile(&m);
        cr_assert_eq(run(&m, inputs, y, &open), -E2BIG);
        cr_assert(strstr(m.error.text, "limit of steps"), "%s", m.error.text);
        /* The instance is as good as before. */
        n = 1;
        cr_assert_eq(run(&m, inputs, y, &open), 0, "%s", m.error.text);
        cr_assert_eq(open.shape.dims[0], 4);
        sl_instance_free(m.instance);
        sl_plan_free(m.plan);
        m.options.dynamic_steps_max = 1 << 30;
        model_compile(&m);
        n = 1 << 20;
        cr_assert_eq(run(&m, inputs, y, &open), -ENOMEM);
        cr_assert(strstr(m.error.text, "dynamic_bytes_max is 65536"), "%s", m.error.text);
        model_end(&m);
}

/* Without a look at the clock and at the verdict the rounds go on until memory ends them. */
Test(dynamic, a_deadline_and_a_verdict_end_a_loop_between_its_rounds)
{
        float x[2] = {1, 2}, y[ROOM / 4];
        int64_t n = INT64_MAX;
        const void *inputs[] = {x, &n};
        _Atomic int32_t verdict = -ECANCELED;
        struct sl_open_output open;
        struct model m;

        build_nested(&m);
        m.options.dynamic_bytes_max = 1 << 20;
        m.options.dynamic_steps_max = 4000000000;
        model_compile(&m);
        sl_instance_watch(m.instance, &(struct sl_stop){.deadline_ns = sl_clock_ns() + SL_NS_PER_MS});
        cr_assert_eq(run(&m, inputs, y, &open), -ETIME, "%s", m.error.text);
        sl_instance_watch(m.instance, &(struct sl_stop){.verdict = &verdict});
        cr_assert_eq(run(&m, inputs, y, &open), -ECANCELED, "%s", m.error.text);
        /* The instance is as good as before. */
        sl_instance_watch(m.instance, NULL);
        n = 1;
        cr_assert_eq(run(&m, inputs, y, &open), 0, "%s", m.error.text);
        cr_assert_eq(open.shape.dims[0], 4);
        model_end(&m);
}

Test(dynamic, an_output_that_does_not_fit_is_not_written)
{
        float x[2] = {1, 2}, y[ROOM / 4] = {0};
        int64_t n = 200;
        const void *inputs[] = {x, &n};
        struct sl_open_output open;
        struct model m;

        build_nested(&m);
        model_compile(&m);
        cr_assert_eq(run(&m, inputs, y, &open), -EMSGSIZE);
        cr_assert_eq(open.shape.dims[0], 402);
        cr_assert_eq(y[0], 0);
        model_end(&m);
}

Test(dynamic, a_scan_puts_its_rows_along_any_axis_and_backwards)
{
        static const float x[6] = {1, 2, 3, 4, 5, 6}, wanted[6] = {5, 3, 1, 6, 4, 2};
        struct builder *body = builder_new(16), *b = builder_new(16);
        struct model m = {.b = b, .bodies = {body}};
        Onnx__NodeProto *node;
        const void *inputs[] = {x};
        struct sl_open_output open;
        float y[ROOM / 4];

        builder_input(body, "row", SL_DTYPE_F32, DIMS(2));
        builder_node(body, "Relu", "row", "kept");
        builder_output(body, "kept");
        builder_input(b, "x", SL_DTYPE_F32, DIMS(3, 2));
        node = builder_node(b, "Scan", "x", "y");
        builder_attr_graph(b, node, "body", body);
        builder_attr_int(b, node, "num_scan_inputs", 1);
        builder_attr_ints(b, node, "scan_output_axes", 1, (int64_t[]){1});
        builder_attr_ints(b, node, "scan_output_directions", 1, (int64_t[]){1});
        builder_output(b, "y");
        model_import(&m);
        model_compile(&m);
        cr_assert_eq(run(&m, inputs, y, &open), 0, "%s", m.error.text);
        cr_assert_arr_eq(y, wanted, sizeof(wanted));
        model_end(&m);
}

/* Scales apply to what is cropped, so that the request says how large the result is. */
Test(dynamic, a_crop_of_a_request_decides_what_its_scales_make)
{
        static const float rois[][4] = {{0, 0, 1, 1}, {0, 0.25f, 0.5f, 1}, {0, 0, 0.5f, 0.25f}};
        static const int64_t wanted[][2] = {{4, 8}, {2, 6}, {2, 2}};
        struct builder *b = builder_new(19);
        struct model m = {.b = b};
        struct sl_open_output open;
        float x[2 * 4 * 4], y[ROOM / 4];
        Onnx__NodeProto *node;

        fill_random(x, 2 * 4 * 4, 1);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 2, 4, 4));
        builder_input(b, "roi", SL_DTYPE_F32, DIMS(4));
        builder_floats(b, "scales", DIMS(2), (float[]){1, 2});
        node = builder_node(b, "Resize", "x,roi,scales", "y");
        builder_attr_string(b, node, "mode", "linear");
        builder_attr_string(b, node, "coordinate_transformation_mode", "tf_crop_and_resize");
        builder_attr_ints(b, node, "axes", DIMS(2, 3));
        builder_output(b, "y");
        model_import(&m);
        model_compile(&m);
        for (size_t i = 0; i < sizeof(rois) / sizeof(*rois); i++) {
                const void *inputs[] = {x, rois[i]};

                cr_assert_eq(run(&m, inputs, y, &open), 0, "%s", m.error.text);
                cr_assert_eq(open.shape.dims[2], wanted[i][0]);
                cr_assert_eq(open.shape.dims[3], wanted[i][1]);
                expect_as_evaluated(&m, inputs, y, &open);
        }
        model_end(&m);
}

/* The branch that is taken is known while the file is read: its nodes are the graph's own. */
Test(dynamic, an_if_of_a_constant_is_no_node)
{
        struct builder *then = builder_new(16), *other = builder_new(16), *b = builder_new(16);
        struct model m = {.b = b, .bodies = {then, other}};
        Onnx__NodeProto *node;

        builder_node(then, "Neg", "x", "t");
        builder_output(then, "t");
        builder_node(other, "Abs", "x", "e");
        builder_output(other, "e");
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_ints(b, "rank", DIMS(), (int64_t[]){2});
        builder_ints(b, "two", DIMS(), (int64_t[]){2});
        builder_node(b, "Equal", "rank,two", "same");
        node = builder_node(b, "If", "same", "y");
        builder_attr_graph(b, node, "then_branch", then);
        builder_attr_graph(b, node, "else_branch", other);
        builder_output(b, "y");
        model_import(&m);
        cr_assert_eq(count_ops(m.graph, SL_OP_IF), 0);
        cr_assert_eq(count_ops(m.graph, SL_OP_NEG), 1);
        cr_assert_eq(count_ops(m.graph, SL_OP_ABS), 0);
        model_compile(&m);
        cr_assert(!sl_plan_is_dynamic(m.plan));
        cr_assert(sl_plan_info(m.plan)->batchable);
        model_end(&m);
}

static void try_forged(const uint8_t *bytes, uint64_t n_bytes)
{
        static uint8_t y[1 << 16];
        float x[2] = {1, 2};
        int64_t n = 3;
        const void *inputs[SL_PLAN_PORTS_MAX] = {x, &n};
        void *outputs[SL_PLAN_PORTS_MAX] = {y};
        struct sl_open_output open[SL_PLAN_PORTS_MAX] = {{.capacity_bytes = ROOM}};
        struct sl_plan *plan = NULL;
        struct sl_instance *instance = NULL;

        if (plan_open_bytes(bytes, n_bytes, &plan) < 0)
                return;
        if (sl_plan_info(plan)->n_inputs == 2 && sl_plan_info(plan)->n_outputs == 1 &&
                sl_plan_info(plan)->inputs[0].shape.dims[0] == 2 && sl_plan_info(plan)->inputs[0].dtype == SL_DTYPE_F32 &&
                sl_plan_info(plan)->inputs[1].shape.rank == 0 && sl_instance_new(plan, 1, &instance, NULL) == 0)
                (void)sl_instance_run_open(instance, 1, inputs, outputs, open, NULL);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(dynamic, a_forged_plan_is_refused_or_runs_within_its_memory)
{
        struct model m;
        uint8_t *bytes;
        uint64_t state = 7, n_bytes;
        int fd;

        build_nested(&m);
        m.options.dynamic_bytes_max = 1 << 16;
        m.options.dynamic_steps_max = 1000;
        fd = model_plan_fd(&m);
        bytes = plan_read(fd, &n_bytes);
        for (int i = 0; i < 3000; i++) {
                const struct sl_plan_header *header = (const void *)bytes;
                uint64_t first = header->sections[SL_PLAN_SECTION_PROGRAMS].offset, at;
                uint8_t before;

                state = state * 6364136223846793005ull + 1442695040888963407ull;
                at = first + (state >> 33) % (n_bytes - first);
                before = bytes[at];
                bytes[at] = (uint8_t)(i % 2 ? before ^ (1u << (state >> 20) % 8) : (state >> 12) % 4);
                plan_seal(bytes, n_bytes);
                try_forged(bytes, n_bytes);
                bytes[at] = before;
        }
        free(bytes);
        close(fd);
        model_end(&m);
}

/* The steps of programs that would run themselves, or bodies that are too deep. */
Test(dynamic, a_body_that_runs_itself_is_refused)
{
        struct sl_plan *plan = NULL;
        struct model m;
        uint64_t n_bytes;
        uint8_t *bytes;
        int fd;

        build_nested(&m);
        fd = model_plan_fd(&m);
        bytes = plan_read(fd, &n_bytes);

        const struct sl_plan_header *header = (const void *)bytes;
        struct sl_plan_step *steps = (void *)(bytes + header->sections[SL_PLAN_SECTION_STEPS].offset);
        uint32_t found = 0;

        for (uint64_t i = 0; i < header->sections[SL_PLAN_SECTION_STEPS].count; i++)
                if (steps[i].op == SL_OP_IF) {
                        steps[i].first_body = 1;
                        found++;
                }
        cr_assert_eq(found, 1u);
        plan_seal(bytes, n_bytes);
        cr_assert_eq(plan_open_bytes(bytes, n_bytes, &plan), -EBADMSG);
        free(bytes);
        close(fd);
        model_end(&m);
}

/* What is data-dependent cannot be timed on its own; the product beside it, behind it in the file, is. */
Test(dynamic, tuning_passes_over_what_hangs_on_data)
{
        struct builder *b = builder_new(17);
        struct sl_lowered *lowered = NULL;
        struct model m = {.b = b};
        uint32_t n_timed = 0;

        if (!sl_cpu_has_avx2())
                cr_skip_test("without AVX2 there is one algorithm");
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 64));
        builder_node(b, "NonZero", "x", "where");
        builder_output(b, "where");
        builder_node(b, "Relu", "x", "positive");
        builder_random(b, "w", DIMS(64, 64));
        builder_node(b, "MatMul", "positive,w", "y");
        builder_output(b, "y");
        model_import(&m);
        m.options.tune = SL_TUNE_FULL;
        cr_assert_eq(sl_lowered_new(m.graph, &m.options, &lowered, &m.error), 0, "%s", m.error.text);
        for (uint32_t i = 0; i < m.graph->n_nodes; i++)
                n_timed += lowered->choices[i].n_timed > 1;
        cr_assert_eq(n_timed, 1u);
        sl_lowered_free(lowered);
        model_end(&m);
}

/* y = If(flag): Relu(x), else x @ w, whose @rows the columns of x have to be. */
static void build_choice(struct model *m, int64_t rows)
{
        struct builder *then = builder_new(16), *other = builder_new(16), *b = builder_new(16);
        Onnx__NodeProto *node;

        *m = (struct model){.b = b, .bodies = {then, other}};
        builder_node(then, "Relu", "x", "positive");
        builder_output(then, "positive");
        builder_random(other, "w", DIMS(rows, 3));
        builder_node(other, "MatMul", "x,w", "product");
        builder_output(other, "product");
        builder_input(b, "flag", SL_DTYPE_BOOL, DIMS());
        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 3));
        node = builder_node(b, "If", "flag", "y");
        builder_attr_graph(b, node, "then_branch", then);
        builder_attr_graph(b, node, "else_branch", other);
        builder_output(b, "y");
}

/* A network for another rate of sampling, say, which is in the file and fits no input of this size. */
Test(dynamic, a_branch_that_cannot_be_for_these_sizes_fails_when_it_is_taken)
{
        static const float wanted[] = {1, 0, 3, 0, 5, 0};
        float x[] = {1, -2, 3, -4, 5, -6}, y[ROOM / 4];
        const uint8_t yes = 1, no = 0;
        struct sl_open_output open;
        struct model m;

        build_choice(&m, 5);
        model_import(&m);
        model_compile(&m);
        cr_assert_eq(run(&m, (const void *[]){&yes, x}, y, &open), 0, "%s", m.error.text);
        cr_assert_arr_eq(y, wanted, sizeof(wanted));
        cr_assert_eq(run(&m, (const void *[]){&no, x}, y, &open), -ERANGE);
        cr_assert_eq(run(&m, (const void *[]){&yes, x}, y, &open), 0, "%s", m.error.text);
        model_end(&m);
        build_choice(&m, 3);
        model_import(&m);
        model_compile(&m);
        cr_assert_eq(run(&m, (const void *[]){&no, x}, y, &open), 0, "%s", m.error.text);
        model_end(&m);
}

Test(dynamic, an_operator_that_is_unknown_is_refused_in_whatever_branch_it_stands)
{
        struct model m;

        build_choice(&m, 3);
        m.bodies[1]->graph.node[0]->op_type = (char *)"Trilobite";
        builder_expect(m.b, -ENOTSUP, "node \"product\": operator Trilobite");
        model_end(&m);
}

Test(dynamic, a_file_of_which_no_branch_can_be_is_refused)
{
        struct model m;

        build_choice(&m, 5);
        m.bodies[0]->graph.node[0] = m.bodies[1]->graph.node[0];
        m.bodies[0]->graph.output[0]->name = (char *)"product";
        m.bodies[0]->graph.initializer = m.bodies[1]->graph.initializer;
        m.bodies[0]->graph.n_initializer = 1;
        builder_expect(m.b, -EBADMSG, "MatMul: input 0 has 3 columns, input 1 has 5 rows");
        model_end(&m);
}
