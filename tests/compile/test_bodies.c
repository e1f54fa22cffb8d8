/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of If, Loop and Scan are compiled like the graph around them: what they make is what the reference evaluation makes, on
 * the kernels of the backend, with one copy of their weights, within what one run may take.
 */
#include "bodies_model.h"
#include "cpu/base/isa.h"
#include "evaluate.h"
#include "executable.h"
#include "format.h"
#include "lower.h"
#include "ref/live.h"
#include "stop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t draw(uint64_t *state, uint32_t n)
{
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(*state >> 33) % n;
}

/* Inputs of the model, drawn or as given; outputs with room. */
struct ports {
        void *inputs[SL_PLAN_PORTS_MAX], *outputs[SL_PLAN_PORTS_MAX];
        struct sl_open_output open[SL_PLAN_PORTS_MAX];
};

static void ports_make(struct ports *ports, const struct sl_plan_info *info, uint64_t *state)
{
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                struct sl_shape shape = info->inputs[i].shape;
                uint64_t n;

                if (info->inputs[i].batch_axis == 0)
                        shape.dims[0] = 1;
                n = sl_shape_elements(&shape);
                ports->inputs[i] = calloc(n + 1, 8);
                for (uint64_t e = 0; e < n; e++) {
                        if (info->inputs[i].dtype == SL_DTYPE_F32)
                                ((float *)ports->inputs[i])[e] = (float)draw(state, 2001) / 1000.0f - 1.0f;
                        else if (info->inputs[i].dtype == SL_DTYPE_I64)
                                ((int64_t *)ports->inputs[i])[e] = draw(state, 5);
                        else
                                ((uint8_t *)ports->inputs[i])[e] = (uint8_t)draw(state, 2);
                }
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                ports->outputs[i] = calloc(1, MODEL_ROOM);
                ports->open[i].capacity_bytes = MODEL_ROOM;
        }
}

static void ports_free(struct ports *ports)
{
        for (uint32_t i = 0; i < SL_PLAN_PORTS_MAX; i++) {
                free(ports->inputs[i]);
                free(ports->outputs[i]);
        }
}

static int run(struct model *m, struct ports *ports)
{
        m->error.text[0] = 0;
        return sl_instance_run_open(m->instance, 1, (const void *const *)ports->inputs, ports->outputs, ports->open, &m->error);
}

static void expect_near(const struct sl_live *wanted, const void *got, const char *what)
{
        uint64_t n = sl_shape_elements(&wanted->tensor.shape);

        if (wanted->tensor.dtype != SL_DTYPE_F32) {
                cr_assert_arr_eq(wanted->data, got, sl_tensor_bytes(&wanted->tensor), "%s", what);
                return;
        }
        for (uint64_t i = 0; i < n; i++) {
                float a = ((const float *)wanted->data)[i], b = ((const float *)got)[i];

                cr_assert(fabsf(a - b) <= 1e-4f * (1 + fabsf(a)), "%s: element %llu is %g, wants %g", what, (unsigned long long)i,
                        (double)b, (double)a);
        }
}

static void expect_as_evaluated(struct model *m, const struct ports *ports, const char *what)
{
        const struct sl_plan_info *info = sl_plan_info(m->plan);
        struct sl_live outputs[SL_PLAN_PORTS_MAX] = {0};
        struct sl_pool pool = {.limit_bytes = 1 << 26};
        struct sl_graph *special;

        cr_assert_eq(sl_graph_specialise(m->graph, 1, &special, &m->error), 0, "%s", m->error.text);
        cr_assert_eq(sl_graph_evaluate_open(special, (const void *const *)ports->inputs, &pool, outputs, &m->error), 0, "%s: %s",
                what, m->error.text);
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                if (sl_port_is_open(&info->outputs[i]))
                        cr_assert(sl_shape_equal(&outputs[i].tensor.shape, &ports->open[i].shape), "%s", what);
                expect_near(&outputs[i], ports->outputs[i], what);
                sl_live_drop(&pool, &outputs[i]);
        }
        sl_graph_free(special);
}

/* Twice, for what one run leaves must not reach the next. */
static void run_and_compare(struct model *m, uint64_t *state, const char *what)
{
        for (int again = 0; again < 2; again++) {
                struct ports ports = {.inputs = {NULL}};

                ports_make(&ports, sl_plan_info(m->plan), state);
                cr_assert_eq(run(m, &ports), 0, "%s: %s", what, m->error.text);
                expect_as_evaluated(m, &ports, what);
                ports_free(&ports);
        }
}

/* What a random model looks like. */
struct taste {
        bool scan;
        int64_t rows, width, rounds; /* of what is carried; of a Scan or a Loop whose trips are constant */
        bool counted, stops, branches, collects;
        bool counts; /* where something is no zero, which says how large it is when it is known */
        int64_t in_axis, out_axis;
        int64_t backwards_in, backwards_out;
};

/* A small number of what @of holds, between static shapes. */
static void build_count(struct builder *body, const char *of, const char *result)
{
        builder_node(body, "NonZero", of, "places");
        builder_attr_int(body, builder_node(body, "Cast", "places", "indices"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
        builder_node(body, "ReduceSum", "indices", "sum");
        builder_floats(body, "small", 0, NULL, (float[]){0.001f});
        builder_node(body, "Mul", "sum,small", result);
}

/* h' = tanh(h w + x) (or relu of another product, in odd rounds), and a row for each round. */
static void build_cell(struct builder *body, struct builder *then, struct builder *other, const struct taste *taste, const char *x)
{
        Onnx__NodeProto *node;

        builder_random(body, "w", DIMS(taste->width, taste->width));
        builder_node(body, "MatMul", "h,w", taste->counts ? "pure" : "product");
        if (taste->counts) {
                build_count(body, "h", "count");
                builder_node(body, "Add", "pure,count", "product");
        }
        if (taste->branches) {
                builder_node(then, "Tanh", "product", "t");
                builder_output(then, "t");
                builder_random(other, "v", DIMS(taste->width, taste->width));
                builder_node(other, "MatMul", "product,v", taste->counts ? "unmoved" : "second");
                if (taste->counts) {
                        build_count(other, "product", "others");
                        builder_node(other, "Add", "unmoved,others", "second");
                }
                builder_node(other, "Relu", "second", "e");
                builder_output(other, "e");
                builder_node(body, "ReduceMax", "h", "most");
                builder_floats(body, "zero", 0, NULL, (float[]){0});
                builder_node(body, "ReduceMax", "most", "peak");
                builder_attr_int(body, body->graph.node[body->graph.n_node - 1], "keepdims", 0);
                builder_node(body, "Greater", "peak,zero", "positive");
                node = builder_node(body, "If", "positive", "gated");
                builder_attr_graph(body, node, "then_branch", then);
                builder_attr_graph(body, node, "else_branch", other);
        } else {
                builder_node(body, "Tanh", "product", "gated");
        }
        node = builder_node(body, "Add", x, "next");
        if (taste->collects)
                builder_node(body, "Neg", "next", "row");
        (void)node;
}

static void build_loop(struct model *m, const struct taste *taste)
{
        struct builder *body = m->bodies[0], *b = m->b;
        Onnx__NodeProto *node;

        builder_input(body, "i", SL_DTYPE_I64, DIMS());
        builder_input(body, "go", SL_DTYPE_BOOL, DIMS());
        builder_input(body, "h", SL_DTYPE_F32, DIMS(taste->rows, taste->width));
        builder_input(body, "n", SL_DTYPE_I64, DIMS());
        build_cell(body, m->bodies[1], m->bodies[2], taste, "gated,x");
        builder_ints(body, "one", DIMS(), (int64_t[]){1});
        builder_node(body, "Add", "n,one", "n1");
        if (taste->stops) {
                builder_ints(body, "three", DIMS(), (int64_t[]){3});
                builder_node(body, "Less", "i,three", "on");
        } else {
                builder_node(body, "Identity", "go", "on");
        }
        builder_output(body, "on");
        builder_output(body, "next");
        builder_output(body, "n1");
        if (taste->collects)
                builder_output(body, "row");
        builder_input(b, "h0", SL_DTYPE_F32, DIMS(taste->rows, taste->width));
        builder_input(b, "x", SL_DTYPE_F32, DIMS(taste->rows, taste->width));
        builder_ints(b, "n0", DIMS(), (int64_t[]){7});
        if (taste->counted)
                builder_ints(b, "trips", DIMS(), (int64_t[]){taste->rounds});
        else
                builder_input(b, "trips", SL_DTYPE_I64, DIMS());
        node = builder_node(b, "Loop", "trips,,h0,n0", taste->collects ? "y,n,all" : "y,n");
        builder_attr_graph(b, node, "body", body);
        builder_output(b, "y");
        builder_output(b, "n");
        if (taste->collects)
                builder_output(b, "all");
}

static void build_scan(struct model *m, const struct taste *taste)
{
        struct builder *body = m->bodies[0], *b = m->b;
        int64_t dims[3] = {taste->rows, taste->width};
        Onnx__NodeProto *node;

        builder_input(body, "h", SL_DTYPE_F32, DIMS(taste->rows, taste->width));
        builder_input(body, "s", SL_DTYPE_F32, DIMS(taste->rows, taste->width));
        build_cell(body, m->bodies[1], m->bodies[2], taste, "gated,s");
        builder_output(body, "next");
        if (taste->collects)
                builder_output(body, "row");
        for (int64_t i = 2; i > taste->in_axis; i--)
                dims[i] = dims[i - 1];
        dims[taste->in_axis] = taste->rounds;
        builder_input(b, "h0", SL_DTYPE_F32, DIMS(taste->rows, taste->width));
        builder_input(b, "x", SL_DTYPE_F32, 3, dims);
        node = builder_node(b, "Scan", "h0,x", taste->collects ? "y,all" : "y");
        builder_attr_graph(b, node, "body", body);
        builder_attr_int(b, node, "num_scan_inputs", 1);
        builder_attr_ints(b, node, "scan_input_axes", 1, &taste->in_axis);
        builder_attr_ints(b, node, "scan_input_directions", 1, &taste->backwards_in);
        if (taste->collects) {
                builder_attr_ints(b, node, "scan_output_axes", 1, &taste->out_axis);
                builder_attr_ints(b, node, "scan_output_directions", 1, &taste->backwards_out);
        }
        builder_output(b, "y");
        if (taste->collects)
                builder_output(b, "all");
}

static void build(struct model *m, const struct taste *taste)
{
        *m = (struct model){.b = builder_new(16)};
        for (int i = 0; i < 3; i++)
                m->bodies[i] = builder_new(16);
        if (taste->scan)
                build_scan(m, taste);
        else
                build_loop(m, taste);
        model_import(m);
}

/* Empty rows have no maximum. */
static struct taste draw_taste(uint64_t *state)
{
        static const int64_t sizes[] = {0, 1, 2, 5, 17};
        struct taste taste = {.scan = draw(state, 2),
                .rows = sizes[draw(state, 4)],
                .width = sizes[1 + draw(state, 4)],
                .rounds = draw(state, 6),
                .counted = draw(state, 2),
                .stops = draw(state, 3) == 0,
                .branches = draw(state, 2),
                .counts = draw(state, 3) == 0,
                .collects = draw(state, 2),
                .in_axis = draw(state, 3),
                .out_axis = draw(state, 3),
                .backwards_in = draw(state, 2),
                .backwards_out = draw(state, 2)};

        taste.branches = taste.branches && taste.rows;
        return taste;
}

Test(bodies, random_loops_and_scans_make_what_the_reference_makes)
{
        uint64_t state = 11;

        for (int i = 0; i < 250; i++) {
                struct taste taste = draw_taste(&state);
                struct model m;
                char what[160];

                snprintf(what, sizeof(what), "%s of %lld rounds over [%lld,%lld]%s%s%s%s%s, axes %lld %lld, backwards %lld %lld",
                        taste.scan ? "Scan" : "Loop", (long long)taste.rounds, (long long)taste.rows, (long long)taste.width,
                        taste.counted ? ", counted" : "", taste.stops ? ", stops" : "", taste.branches ? ", branches" : "",
                        taste.counts ? ", counts" : "", taste.collects ? ", collects" : "", (long long)taste.in_axis,
                        (long long)taste.out_axis, (long long)taste.backwards_in, (long long)taste.backwards_out);
                build(&m, &taste);
                model_compile(&m);
                run_and_compare(&m, &state, what);
                model_end(&m);
        }
}

static const struct taste lstm_like = {.rows = 2, .width = 64, .rounds = 5, .counted = true, .branches = true, .collects = true};

/* All but the control itself, which has no kernel, and copies of single elements. */
Test(bodies, nodes_in_bodies_run_on_kernels_of_the_backend)
{
        struct sl_step_info info;
        uint32_t products = 0, deep = 0;
        struct model m;

        build(&m, &lstm_like);
        model_compile(&m);
        for (uint64_t i = 0; i < sl_plan_steps(m.plan, 1); i++) {
                cr_assert_eq(sl_plan_step_info(m.plan, 1, i, &info), 0);
                if (strcmp(info.operator_name, "MatMul"))
                        continue;
                cr_assert_str_eq(info.backend, "cpu");
                cr_assert(info.depth == 1 ? !strcmp(info.around, "y,n,all") : !strcmp(info.around, "gated"), "%s", info.around);
                products++;
                deep += info.depth == 2;
        }
        cr_assert_eq(products, 2u);
        cr_assert_eq(deep, 1u);
        cr_assert_eq(sl_plan_step_info(m.plan, 1, sl_plan_steps(m.plan, 1), &info), -EINVAL);
        model_end(&m);
}

Test(bodies, what_has_static_shapes_takes_nothing_from_the_pool)
{
        struct ports ports = {.inputs = {NULL}};
        uint64_t state = 3;
        struct model m;

        build(&m, &lstm_like);
        m.options.dynamic_bytes_max = 1;
        model_compile(&m);
        ports_make(&ports, sl_plan_info(m.plan), &state);
        cr_assert_eq(run(&m, &ports), 0, "%s", m.error.text);
        expect_as_evaluated(&m, &ports, "Loop");
        ports_free(&ports);
        model_end(&m);
}

/* Each weight is there once, in the form of its kernel alone. */
Test(bodies, weights_of_bodies_are_packed_once)
{
        uint64_t each = sizeof(float) * 64 * 64;
        struct model m;

        build(&m, &lstm_like);
        model_compile(&m);
        cr_assert_geq(sl_plan_info(m.plan)->weights_bytes, 2 * each);
        cr_assert_lt(sl_plan_info(m.plan)->weights_bytes, 3 * each);
        model_end(&m);
}

Test(bodies, steps_rounds_and_work_of_static_bodies_are_counted)
{
        struct taste taste = {.rows = 2, .width = 17};
        struct ports ports = {.inputs = {NULL}};
        uint64_t state = 5;
        struct model m;

        build(&m, &taste);
        m.options.dynamic_steps_max = 100;
        model_compile(&m);
        ports_make(&ports, sl_plan_info(m.plan), &state);
        *(int64_t *)ports.inputs[2] = 30; /* with four steps each */
        cr_assert_eq(run(&m, &ports), -E2BIG);
        cr_assert(strstr(m.error.text, "limit of steps"), "%s", m.error.text);
        *(int64_t *)ports.inputs[2] = 2;
        cr_assert_eq(run(&m, &ports), 0, "%s", m.error.text);
        sl_instance_free(m.instance);
        sl_plan_free(m.plan);
        m.options.dynamic_steps_max = 1 << 20;
        m.options.work_max = 1e5;
        model_compile(&m);
        *(int64_t *)ports.inputs[2] = 1000;
        cr_assert_eq(run(&m, &ports), -E2BIG);
        cr_assert(strstr(m.error.text, "elementary steps"), "%s", m.error.text);
        ports_free(&ports);
        model_end(&m);
}

/* Of rounds without end. */
Test(bodies, a_deadline_and_a_verdict_end_static_rounds)
{
        struct taste taste = {.rows = 2, .width = 17};
        struct ports ports = {.inputs = {NULL}};
        _Atomic int32_t verdict = -ECANCELED;
        uint64_t state = 5;
        struct model m;

        build(&m, &taste);
        m.options.dynamic_steps_max = UINT32_MAX;
        m.options.work_max = 1e18;
        model_compile(&m);
        ports_make(&ports, sl_plan_info(m.plan), &state);
        *(int64_t *)ports.inputs[2] = INT64_MAX;
        sl_instance_watch(m.instance, &(struct sl_stop){.deadline_ns = sl_clock_ns() + SL_NS_PER_MS});
        cr_assert_eq(run(&m, &ports), -ETIME, "%s", m.error.text);
        sl_instance_watch(m.instance, &(struct sl_stop){.verdict = &verdict});
        cr_assert_eq(run(&m, &ports), -ECANCELED, "%s", m.error.text);
        sl_instance_watch(m.instance, NULL);
        *(int64_t *)ports.inputs[2] = 3;
        cr_assert_eq(run(&m, &ports), 0, "%s", m.error.text);
        expect_as_evaluated(&m, &ports, "Loop");
        ports_free(&ports);
        model_end(&m);
}

/* A step in a body has the time of all its rounds; the one around it is left with its own. */
Test(bodies, times_of_steps_in_bodies_are_theirs_alone)
{
        struct ports ports = {.inputs = {NULL}};
        uint64_t state = 3, n, sum = 0, before, taken;
        uint64_t *step_ns;
        struct model m;

        build(&m, &lstm_like);
        model_compile(&m);
        ports_make(&ports, sl_plan_info(m.plan), &state);
        n = sl_plan_steps(m.plan, 1);
        step_ns = calloc(n, sizeof(*step_ns));
        before = sl_clock_ns();
        cr_assert_eq(sl_instance_run_timed(m.instance, 1, (const void *const *)ports.inputs, ports.outputs, step_ns), 0);
        taken = sl_clock_ns() - before;
        for (uint64_t i = 0; i < n; i++)
                sum += step_ns[i];
        cr_assert_leq(sum, taken);
        free(step_ns);
        ports_free(&ports);
        model_end(&m);
}

/* Floats are tuned in their bodies too. */
Test(bodies, tuning_times_what_is_in_bodies)
{
        struct sl_lowered *lowered = NULL;
        uint32_t n_timed = 0;
        struct model m;

        if (!sl_cpu_has_avx2())
                cr_skip_test("without AVX2 there is one algorithm");
        build(&m, &lstm_like);
        m.options.tune = SL_TUNE_QUICK;
        cr_assert_eq(sl_lowered_new(m.graph, &m.options, &lowered, &m.error), 0, "%s", m.error.text);
        for (uint32_t i = m.graph->n_nodes; i < lowered->n_choices; i++)
                n_timed += lowered->choices[i].n_timed > 1;
        cr_assert_gt(n_timed, 0u);
        sl_lowered_free(lowered);
        model_end(&m);
}

static void try_forged(const uint8_t *bytes, uint64_t n_bytes, const struct sl_plan_info *info, struct ports *ports)
{
        struct sl_plan *plan = NULL;
        struct sl_instance *instance = NULL;

        if (plan_open_bytes(bytes, n_bytes, &plan) < 0)
                return;
        if (!memcmp(info->inputs, sl_plan_info(plan)->inputs, sizeof(info->inputs)) &&
                !memcmp(info->outputs, sl_plan_info(plan)->outputs, sizeof(info->outputs)) &&
                info->n_inputs == sl_plan_info(plan)->n_inputs && info->n_outputs == sl_plan_info(plan)->n_outputs &&
                sl_instance_new(plan, 1, &instance, NULL) == 0)
                (void)sl_instance_run_open(instance, 1, (const void *const *)ports->inputs, ports->outputs, ports->open, NULL);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

static void forge(const struct taste *taste, int times)
{
        struct ports ports = {.inputs = {NULL}};
        uint64_t state = 7, n_bytes, first;
        struct model m;
        uint8_t *bytes;
        int fd;

        build(&m, taste);
        m.options.dynamic_bytes_max = 1 << 16;
        m.options.dynamic_steps_max = 1000;
        model_compile(&m);
        ports_make(&ports, sl_plan_info(m.plan), &state);
        fd = model_plan_fd(&m);
        bytes = plan_read(fd, &n_bytes);
        first = ((const struct sl_plan_header *)bytes)->sections[SL_PLAN_SECTION_PROGRAMS].offset;
        for (int i = 0; i < times; i++) {
                uint64_t at = first + draw(&state, (uint32_t)(n_bytes - first));
                uint8_t before = bytes[at];

                bytes[at] = (uint8_t)(i % 2 ? before ^ (1u << draw(&state, 8)) : draw(&state, 8));
                plan_seal(bytes, n_bytes);
                try_forged(bytes, n_bytes, sl_plan_info(m.plan), &ports);
                bytes[at] = before;
        }
        free(bytes);
        close(fd);
        ports_free(&ports);
        model_end(&m);
}

Test(bodies, a_forged_loop_is_refused_or_runs_within_its_memory)
{
        forge(&(struct taste){.rows = 2, .width = 5, .rounds = 3, .counted = true, .branches = true, .collects = true}, 2500);
}

Test(bodies, a_forged_scan_is_refused_or_runs_within_its_memory)
{
        forge(&(struct taste){.scan = true, .rows = 2, .width = 5, .rounds = 3, .collects = true, .in_axis = 1, .out_axis = 2},
                2500);
}

/* A plan of a Loop with an If inside, changed by hand. */
struct forgery {
        struct model m;
        uint8_t *bytes;
        uint64_t n_bytes, n_steps;
        struct sl_plan_program *programs; /* the model, the Loop's body, two branches */
        struct sl_plan_step *steps;
        struct sl_plan_operand *operands;
};

static struct sl_plan_step *step_of(struct forgery *forgery, uint32_t op)
{
        for (uint64_t i = 0; i < forgery->n_steps; i++)
                if (forgery->steps[i].op == op)
                        return &forgery->steps[i];
        cr_assert_fail("no step of this operator");
        return NULL;
}

static void forgery_read(struct forgery *forgery)
{
        const struct sl_plan_header *header;
        int fd;

        fd = model_plan_fd(&forgery->m);
        forgery->bytes = plan_read(fd, &forgery->n_bytes);
        header = (const void *)forgery->bytes;
        forgery->programs = (void *)(forgery->bytes + header->sections[SL_PLAN_SECTION_PROGRAMS].offset);
        forgery->steps = (void *)(forgery->bytes + header->sections[SL_PLAN_SECTION_STEPS].offset);
        forgery->operands = (void *)(forgery->bytes + header->sections[SL_PLAN_SECTION_OPERANDS].offset);
        forgery->n_steps = header->sections[SL_PLAN_SECTION_STEPS].count;
        close(fd);
}

static void forgery_begin(struct forgery *forgery, const struct taste *taste)
{
        build(&forgery->m, taste);
        forgery_read(forgery);
}

/* Opens, and makes an instance. */
static int forgery_end(struct forgery *forgery)
{
        struct sl_instance *instance = NULL;
        struct sl_plan *plan = NULL;
        int r;

        plan_seal(forgery->bytes, forgery->n_bytes);
        r = plan_open_bytes(forgery->bytes, forgery->n_bytes, &plan);
        if (r == 0)
                r = sl_instance_new(plan, 1, &instance, NULL);
        sl_instance_free(instance);
        sl_plan_free(plan);
        free(forgery->bytes);
        model_end(&forgery->m);
        return r;
}

Test(bodies, a_plan_that_nobody_changed_is_taken)
{
        struct forgery forgery = {.n_bytes = 0};

        forgery_begin(&forgery, &lstm_like);
        cr_assert_eq(forgery_end(&forgery), 0);
}

/* y = c ? relu(c ? relu(x) : -x) : -(...): the first If's bodies fit the second as well. */
static void build_twins(struct model *m)
{
        struct builder *b = builder_new(16);

        *m = (struct model){.b = b};
        builder_input(b, "c", SL_DTYPE_BOOL, DIMS());
        builder_input(b, "x", SL_DTYPE_F32, DIMS(3, 4));
        for (int i = 0; i < 4; i += 2) {
                const char *from = i ? "first" : "x", *to = i ? "second" : "first";
                Onnx__NodeProto *node;

                m->bodies[i] = builder_new(16);
                m->bodies[i + 1] = builder_new(16);
                builder_node(m->bodies[i], "Relu", from, "t");
                builder_output(m->bodies[i], "t");
                builder_node(m->bodies[i + 1], "Neg", from, "e");
                builder_output(m->bodies[i + 1], "e");
                node = builder_node(b, "If", "c", to);
                builder_attr_graph(b, node, "then_branch", m->bodies[i]);
                builder_attr_graph(b, node, "else_branch", m->bodies[i + 1]);
        }
        builder_output(b, "second");
        model_import(m);
}

Test(bodies, a_body_of_two_steps_is_refused)
{
        struct forgery forgery = {.n_bytes = 0};
        struct sl_plan_step *first, *second;

        build_twins(&forgery.m);
        forgery_read(&forgery);
        first = step_of(&forgery, SL_OP_IF);
        second = first + 1;
        cr_assert_eq(second->op, SL_OP_IF);
        cr_assert_eq(second->first_body, first->first_body + 2);
        second->first_body = first->first_body;
        cr_assert_eq(forgery_end(&forgery), -EBADMSG);
}

Test(bodies, a_body_whose_workspace_leaves_the_scratch_of_its_step_is_refused)
{
        struct forgery forgery = {.n_bytes = 0};

        forgery_begin(&forgery, &lstm_like);
        forgery.programs[1].workspace_bytes = step_of(&forgery, SL_OP_LOOP)->scratch_bytes + 64;
        cr_assert_eq(forgery_end(&forgery), -EBADMSG);
}

/* The places of what is carried lie behind the workspace of the body: the file may not say that there is less. */
Test(bodies, a_step_without_room_for_what_it_carries_is_refused)
{
        struct forgery forgery = {.n_bytes = 0};

        forgery_begin(&forgery, &lstm_like);
        step_of(&forgery, SL_OP_LOOP)->scratch_bytes -= 64;
        cr_assert_eq(forgery_end(&forgery), -EBADMSG);
}

Test(bodies, a_step_of_a_body_that_reads_beyond_its_port_is_refused)
{
        struct forgery forgery = {.n_bytes = 0};
        uint64_t port;

        forgery_begin(&forgery, &lstm_like);
        port = forgery.programs[1].first_operand + 2;
        cr_assert_eq(forgery.operands[port].tensor.shape.dims[1], 64);
        forgery.operands[port].tensor.shape.dims[1] = 63;
        cr_assert_eq(forgery_end(&forgery), -EBADMSG);
}

Test(bodies, a_port_under_another_number_is_refused)
{
        struct forgery forgery = {.n_bytes = 0};

        forgery_begin(&forgery, &lstm_like);
        forgery.operands[forgery.programs[1].first_operand].index = 1;
        cr_assert_eq(forgery_end(&forgery), -EBADMSG);
}

Test(bodies, ports_of_a_program_that_is_no_body_are_refused)
{
        struct forgery forgery = {.n_bytes = 0};

        forgery_begin(&forgery, &lstm_like);
        forgery.programs[0].n_inputs = 1ull << 60;
        cr_assert_eq(forgery_end(&forgery), -EBADMSG);
}
