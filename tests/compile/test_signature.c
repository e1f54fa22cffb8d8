/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with open dimensions: its signature, and its plan once they have sizes.
 */
#include "base/error.h"
#include "builder.h"
#include "compile.h"
#include "lower_options.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* NULL: the plan is not wanted. */
static int compile(struct builder *b, const char *option, struct sl_plan **ret_plan, struct sl_error *error)
{
        char path[] = "/tmp/starling-signature-XXXXXX";
        struct sl_lower_options options;
        size_t n_bytes;
        const uint8_t *bytes = builder_pack(b, &n_bytes);
        int fd = mkstemp(path), plan_fd = memfd_create("plan", MFD_CLOEXEC), r;

        cr_assert(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
        close(fd);
        builder_free(b);
        sl_lower_options_init(&options);
        cr_assert_eq(option ? sl_lower_options_parse(&options, option, error) : 0, 0, "%s", error->text);
        r = sl_compile_here(path, &options, -1, plan_fd, error);
        unlink(path);
        if (r == 0 && ret_plan)
                cr_assert_eq(sl_plan_open(plan_fd, ret_plan, error), 0, "%s", error->text);
        close(plan_fd);
        return r;
}

static struct sl_plan *plan_of(struct builder *b, const char *option, struct sl_error *error)
{
        struct sl_plan *plan = NULL;

        (void)compile(b, option, &plan, error);
        return plan;
}

static int code_of(struct builder *b, const char *option, struct sl_error *error)
{
        return compile(b, option, NULL, error);
}

/* x [N, M, 3] + z [N, M, 1]. */
static struct sl_plan *plan_with(const char *option, struct sl_error *error)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_input(b, "z", SL_DTYPE_F32, DIMS(-1, -2, 1));
        builder_node(b, "Add", "x,z", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, 3));
        return plan_of(b, option, error);
}

Test(signature, says_which_dimensions_are_open)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_with(NULL, &error);

        cr_assert(plan, "%s", error.text);
        const struct sl_plan_info *info = sl_plan_info(plan);

        cr_assert_eq(info->n_symbols, 1);
        cr_assert_str_eq(info->symbols[0], "M");
        cr_assert_eq(info->n_batches, 0);
        cr_assert_eq(info->inputs[0].batch_axis, 0);
        cr_assert_eq(info->inputs[0].shape.dims[1], SL_DIM_UNKNOWN);
        cr_assert_eq(info->inputs[0].symbols[1], 0);
        cr_assert_eq(info->inputs[0].symbols[2], SL_PORT_NO_SYMBOL);
        cr_assert_eq(info->inputs[1].batch_axis, 0);
        cr_assert_eq(info->inputs[1].symbols[1], 0);
        cr_assert_eq(info->outputs[0].batch_axis, 0);
        cr_assert_eq(info->outputs[0].shape.dims[1], SL_DIM_UNKNOWN);
        cr_assert_eq(info->outputs[0].shape.dims[2], 3);
        sl_plan_free(plan);
}

Test(signature, cannot_be_run)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_with(NULL, &error);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 32, &instance, &error), -EINVAL);
        cr_assert(strstr(error.text, "M"), "%s", error.text);
        sl_plan_free(plan);
}

Test(signature, becomes_a_plan_when_every_open_dimension_has_a_size)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_with("shapes=M=5", &error);
        float x[15], z[5], y[15];
        struct sl_instance *instance;

        cr_assert(plan, "%s", error.text);
        cr_assert_eq(sl_plan_info(plan)->n_symbols, 0);
        cr_assert_eq(sl_plan_info(plan)->inputs[0].shape.dims[1], 5);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%s", error.text);
        fill_random(x, 15, 1);
        fill_random(z, 5, 2);
        cr_assert_eq(sl_instance_run(instance, 1, (const void *[]){x, z}, (void *[]){y}), 0);
        for (int i = 0; i < 15; i++)
                cr_assert_eq(y[i], x[i] + z[i / 3]);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

/* y = the running sum of x along axis 0, in which what leads meets. */
static struct builder *running_sum(uint32_t rank, const int64_t *dims)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, rank, dims);
        builder_ints(b, "axis", 0, NULL, (int64_t[]){0});
        builder_node(b, "CumSum", "x,axis", "y");
        builder_output(b, "y");
        return b;
}

Test(signature, what_leads_is_no_batch_when_what_lies_along_it_meets)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_of(running_sum(DIMS(-1, -2, 3)), NULL, &error);
        const struct sl_plan_info *info;

        cr_assert(plan, "%s", error.text);
        info = sl_plan_info(plan);
        cr_assert_eq(info->n_symbols, 2);
        cr_assert_str_eq(info->symbols[1], "N");
        cr_assert_eq(info->n_batches, 0);
        cr_assert_eq(info->inputs[0].batch_axis, SL_PORT_NO_BATCH);
        cr_assert_eq(info->inputs[0].symbols[0], 1);
        sl_plan_free(plan);
}

Test(signature, a_plan_for_the_size_1_of_what_is_no_batch_says_that_it_may_have_others)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_of(running_sum(DIMS(-1, 3)), NULL, &error);
        struct sl_instance *instance;
        const struct sl_plan_info *info;
        float x[3] = {1, 2, 3}, y[3];

        cr_assert(plan, "%s", error.text);
        info = sl_plan_info(plan);
        cr_assert_eq(info->n_symbols, 1);
        cr_assert_str_eq(info->symbols[0], "N");
        cr_assert_not(info->batchable);
        cr_assert_eq(info->n_batches, 1);
        cr_assert_eq(info->inputs[0].batch_axis, SL_PORT_NO_BATCH);
        cr_assert_eq(info->inputs[0].shape.dims[0], 1);
        cr_assert_eq(info->inputs[0].symbols[0], 0);
        cr_assert_eq(info->inputs[0].symbols[1], SL_PORT_NO_SYMBOL);
        cr_assert_neq(info->outputs[0].symbols[0], SL_PORT_NO_SYMBOL);
        cr_assert_eq(info->outputs[0].symbols[1], SL_PORT_NO_SYMBOL);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, 1, (const void *[]){x}, (void *[]){y}), 0);
        cr_assert_eq(memcmp(x, y, sizeof(x)), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

/* y [@rows, 3] = x [N, 3] as if N were @rows. */
static struct builder *reshaped(int64_t rows, int64_t columns)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3));
        builder_ints(b, "shape", DIMS(2), (int64_t[]){rows, columns});
        builder_node(b, "Reshape", "x,shape", "y");
        builder_output(b, "y");
        return b;
}

Test(signature, a_batch_that_the_graph_fixes_is_fixed)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_of(reshaped(1, 3), NULL, &error);

        cr_assert(plan, "%s", error.text);
        cr_assert_eq(sl_plan_info(plan)->n_symbols, 0);
        cr_assert_eq(sl_plan_info(plan)->inputs[0].shape.dims[0], 1);
        cr_assert_eq(sl_plan_info(plan)->inputs[0].batch_axis, SL_PORT_NO_BATCH);
        sl_plan_free(plan);
}

Test(signature, what_cannot_be_1_has_a_signature_alone)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_of(reshaped(2, -1), NULL, &error);

        cr_assert(plan, "%s", error.text);
        cr_assert_eq(sl_plan_info(plan)->n_symbols, 1);
        cr_assert_eq(sl_plan_info(plan)->n_batches, 0);
        sl_plan_free(plan);
}

/* y [M] = x [1, M] without its first dimension, whatever the file declares. */
static const struct sl_port *computed_output(struct builder *b, struct sl_plan **ret_plan)
{
        struct sl_error error = {""};

        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, -2));
        builder_ints(b, "axes", DIMS(1), (int64_t[]){0});
        builder_node(b, "Squeeze", "x,axes", "y");
        *ret_plan = plan_of(b, NULL, &error);
        cr_assert(*ret_plan, "%s", error.text);
        return &sl_plan_info(*ret_plan)->outputs[0];
}

Test(signature, outputs_have_the_rank_that_is_computed)
{
        struct builder *wrong = builder_new(13), *silent = builder_new(13);
        const struct sl_port *output;
        struct sl_plan *plan;

        builder_declare_output(wrong, "y", SL_DTYPE_F32, DIMS(1, 2));
        builder_output(silent, "y");
        for (int i = 0; i < 2; i++) {
                output = computed_output(i ? silent : wrong, &plan);
                cr_expect_eq(output->shape.rank, 1);
                cr_expect_eq(output->shape.dims[0], SL_DIM_UNKNOWN);
                cr_expect_eq(output->dtype, SL_DTYPE_F32);
                sl_plan_free(plan);
        }
}

/* Of a plan that can be run, and of a signature; a name that no input has is another model's. */
Test(signature, says_which_sizes_are_of_a_dimension_of_the_model)
{
        static const struct {
                const char *option;
                uint32_t taken;
        } rows[] = {{"shapes=M=7", 1}, {"shapes=width=2", 0}, {"shapes=width=2,M=7", 2}, {"shapes=M=7,width=2,N=3", 5},
                {"shapes=N=3", 1}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_error error = {""};
                struct sl_plan *plan = plan_with(rows[i].option, &error);

                cr_assert(plan, "%s", error.text);
                cr_expect_eq(sl_plan_info(plan)->sizes_taken, rows[i].taken, "%s", rows[i].option);
                sl_plan_free(plan);
        }
}

/* Rows of 77 times 3, which none of the sizes that a load tries gives. */
static struct builder *rows_of_77(void)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, -2, 3));
        builder_ints(b, "shape", DIMS(2), (int64_t[]){-1, 231});
        builder_random(b, "w", DIMS(231, 2));
        builder_node(b, "Reshape", "x,shape", "rows");
        builder_node(b, "MatMul", "rows,w", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(2, 2));
        return b;
}

Test(signature, sizes_that_no_load_tries_stay_for_requests_to_say)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_of(rows_of_77(), NULL, &error);

        cr_assert(plan, "%s", error.text);
        cr_expect_eq(sl_plan_info(plan)->n_symbols, 1);
        sl_plan_free(plan);
        plan = plan_of(rows_of_77(), "shapes=M=77", &error);
        cr_assert(plan, "%s", error.text);
        sl_plan_free(plan);
        cr_expect_eq(code_of(rows_of_77(), "shapes=M=78", &error), -ERANGE, "%s", error.text);
        cr_expect(strstr(error.text, "rows"), "%s", error.text);
}

struct two {
        const char *op;
        int64_t x[2], z[2];
};

static struct builder *of_two(const struct two *two)
{
        struct builder *b = builder_new(13);
        Onnx__NodeProto *node;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(two->x[0], two->x[1]));
        builder_input(b, "z", SL_DTYPE_F32, DIMS(two->z[0], two->z[1]));
        node = builder_node(b, two->op, "x,z", "y");
        if (!strcmp(two->op, "Concat"))
                builder_attr_int(b, node, "axis", 0);
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, 3));
        return b;
}

/* N, the batch, and M are open. */
Test(signature, sizes_that_the_file_says_and_that_contradict_each_other_are_refused_whatever_is_open)
{
        static const struct two rows[] = {
                {"Add", {-1, 3}, {-2, 5}},
                {"Less", {3, -2}, {2, -3}},
                {"MatMul", {-1, 4}, {7, -2}},
                {"Gemm", {-1, 4}, {7, -2}},
                {"Concat", {-1, 3}, {-2, 5}},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_error error = {""};

                cr_expect_eq(code_of(of_two(&rows[i]), NULL, &error), -ENOTSUP, "%zu: %s", i, error.text);
                cr_expect(strstr(error.text, "no sizes of its open dimensions suit it: node \"y\""), "%zu: %s", i, error.text);
        }
}

/* A node that no height and width suit, at the top or in a body: y of x [1,3,N,M]. */
static void contradict(struct builder *b, const char *op, const char *input, const char *output)
{
        Onnx__NodeProto *node;
        char inputs[64];

        snprintf(inputs, sizeof(inputs), "%s,w", input);
        if (!strcmp(op, "Conv")) {
                builder_random(b, "w", DIMS(8, 4, 3, 3));
        } else if (!strcmp(op, "Reshape")) {
                builder_ints(b, "w", DIMS(2), (int64_t[]){2, 5});
        } else if (!strcmp(op, "BatchNormalization")) {
                builder_random(b, "w", DIMS(4));
                snprintf(inputs, sizeof(inputs), "%s,w,w,w,w", input);
        } else if (!strcmp(op, "Split")) {
                builder_ints(b, "w", DIMS(1), (int64_t[]){2});
        } else if (!strcmp(op, "Split of equal parts")) {
                char outputs[64];

                snprintf(outputs, sizeof(outputs), "%s,%s_rest", output, output);
                builder_attr_int(b, builder_node(b, "Split", input, outputs), "axis", 1);
                return;
        } else if (!strcmp(op, "Squeeze")) {
                builder_ints(b, "w", DIMS(1), (int64_t[]){1});
        } else {
                snprintf(inputs, sizeof(inputs), "%s", input);
        }
        node = builder_node(b, op, inputs, output);
        if (!strcmp(op, "Transpose"))
                builder_attr_ints(b, node, "perm", 3, (int64_t[]){0, 2, 1});
        if (!strcmp(op, "Split"))
                builder_attr_int(b, node, "axis", 1);
}

static const char *const contradictions[] = {
        "Conv", "Reshape", "BatchNormalization", "Split", "Split of equal parts", "Squeeze", "Transpose"};
#define N_CONTRADICTIONS (sizeof(contradictions) / sizeof(contradictions[0]))

static struct builder *of_image(void)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 3, -1, -2));
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(1, 3, -1, -2));
        return b;
}

static void expect_impossible_with(struct builder *b, const char *option, const char *op, const char *where)
{
        struct sl_error error = {""};
        char named[64];

        snprintf(named, sizeof(named), "%.*s", (int)strcspn(op, " "), op);
        cr_expect_eq(code_of(b, option, &error), -ENOTSUP, "%s in %s: %s", op, where, error.text);
        cr_expect(strstr(error.text, "no sizes of its open dimensions suit it: "), "%s in %s: %s", op, where, error.text);
        cr_expect(strstr(error.text, named), "%s in %s: %s", op, where, error.text);
}

static void expect_impossible(struct builder *b, const char *op, const char *where)
{
        expect_impossible_with(b, NULL, op, where);
}

Test(signature, nodes_that_refuse_what_the_file_says_are_refused_whatever_is_open)
{
        for (size_t i = 0; i < N_CONTRADICTIONS; i++) {
                struct builder *b = of_image();

                contradict(b, contradictions[i], "x", "y");
                expect_impossible(b, contradictions[i], "the graph");
        }
}

Test(signature, nodes_that_refuse_what_the_file_says_are_refused_where_some_sizes_are_given)
{
        struct builder *b = of_image();

        contradict(b, "Conv", "x", "y");
        expect_impossible_with(b, "shapes=M=32", "Conv", "the graph");
}

/* An operator that wants dimension M of its first operand to be a number, and shapes of both, where 0 is that number. */
struct wanting {
        const char *op;
        int64_t x[4], w[4], y[4];
        uint32_t x_rank, w_rank, y_rank;
};

static const struct wanting wanting[] = {
        {"MatMul", {2, -2}, {0, 4}, {2, 4}, 2, 2, 2},
        {"Gemm", {2, -2}, {0, 4}, {2, 4}, 2, 2, 2},
        {"Add", {2, -2}, {0}, {2, -2}, 2, 1, 2},
        {"Sub", {2, -2}, {2, 0}, {2, -2}, 2, 2, 2},
        {"Concat", {2, -2}, {1, 0}, {3, -2}, 2, 2, 2},
        {"Conv", {1, -2, 8, 8}, {4, 0, 3, 3}, {1, 4, 6, 6}, 4, 4, 4},
        {"BatchNormalization", {1, -2, 8, 8}, {0}, {1, -2, 8, 8}, 4, 1, 4},
        {"RNN", {3, 1, -2}, {1, 3, 0}, {3, 1, 1, 3}, 3, 3, 4},
};
#define N_WANTING (sizeof(wanting) / sizeof(wanting[0]))

/* Its input is handed on by another operator. Of a Conv with two groups a weight has half of the channels. */
static void want(struct builder *b, const struct wanting *of, int64_t size, const char *suffix)
{
        char x[16], r[16], w[16], y[16], recurrence[16], inputs[96];
        bool grouped = !strcmp(of->op, "Conv");
        Onnx__NodeProto *node;
        int64_t shape[4];

        snprintf(x, sizeof(x), "x%s", suffix);
        snprintf(r, sizeof(r), "r%s", suffix);
        snprintf(w, sizeof(w), "w%s", suffix);
        snprintf(y, sizeof(y), "y%s", suffix);
        snprintf(recurrence, sizeof(recurrence), "h%s", suffix);
        snprintf(inputs, sizeof(inputs), "%s,%s", r, w);
        for (uint32_t i = 0; i < of->w_rank; i++)
                shape[i] = of->w[i] ? of->w[i] : grouped ? size / 2 : size;
        if (!strcmp(of->op, "BatchNormalization"))
                snprintf(inputs, sizeof(inputs), "%s,%s,%s,%s,%s", r, w, w, w, w);
        if (!strcmp(of->op, "RNN")) {
                builder_random(b, recurrence, DIMS(1, 3, 3));
                snprintf(inputs, sizeof(inputs), "%s,%s,%s", r, w, recurrence);
        }
        builder_input(b, x, SL_DTYPE_F32, of->x_rank, of->x);
        builder_random(b, w, of->w_rank, shape);
        builder_node(b, "Relu", x, r);
        node = builder_node(b, of->op, inputs, y);
        if (!strcmp(of->op, "Concat"))
                builder_attr_int(b, node, "axis", 0);
        if (grouped)
                builder_attr_int(b, node, "group", 2);
        if (!strcmp(of->op, "RNN"))
                builder_attr_int(b, node, "hidden_size", 3);
        builder_declare_output(b, y, SL_DTYPE_F32, of->y_rank, of->y);
}

static bool is_broadcast(const struct wanting *of)
{
        return !strcmp(of->op, "Add") || !strcmp(of->op, "Sub");
}

/* Sizes that no load tries. */
Test(signature, nodes_that_want_different_sizes_of_one_dimension_are_refused_and_those_that_want_the_same_are_not)
{
        for (size_t i = 0; i < N_WANTING * N_WANTING; i++) {
                const struct wanting *one = &wanting[i / N_WANTING], *other = &wanting[i % N_WANTING];
                struct builder *b = builder_new(13), *same = builder_new(13);
                struct sl_error error = {""};

                want(b, one, 10, "1");
                want(b, other, 14, "2");
                if (is_broadcast(one) && is_broadcast(other))
                        cr_expect_eq(code_of(b, NULL, &error), 0, "1 suits %s and %s: %s", one->op, other->op, error.text);
                else
                        expect_impossible(b, other->op, one->op);
                want(same, one, 10, "1");
                want(same, other, 10, "2");
                cr_expect_eq(code_of(same, NULL, &error), 0, "%s, %s: %s", one->op, other->op, error.text);
        }
}

/* Bodies of the model at hand, which outlive it. */
static struct builder *bodies[2];
static size_t n_bodies;

static struct builder *new_body(void)
{
        return bodies[n_bodies++] = builder_new(13);
}

static void free_bodies(void)
{
        while (n_bodies)
                builder_free(bodies[--n_bodies]);
}

/* Of one output and no inputs, which reads x. */
static struct builder *branch_of(const char *op)
{
        struct builder *body = new_body();

        if (op)
                contradict(body, op, "x", "branch");
        else
                builder_node(body, "Relu", "x", "branch");
        builder_output(body, "branch");
        return body;
}

static void add_if(struct builder *b, struct builder *then_branch, struct builder *else_branch)
{
        Onnx__NodeProto *node;

        builder_input(b, "c", SL_DTYPE_BOOL, 0, NULL);
        node = builder_node(b, "If", "c", "y");
        builder_attr_graph(b, node, "then_branch", then_branch);
        builder_attr_graph(b, node, "else_branch", else_branch);
}

Test(signature, branches_that_both_contradict_themselves_are_refused_whatever_is_open)
{
        for (size_t i = 0; i < N_CONTRADICTIONS; i++) {
                struct builder *b = of_image();

                add_if(b, branch_of(contradictions[i]), branch_of(contradictions[i]));
                expect_impossible(b, contradictions[i], "branches");
                free_bodies();
        }
}

/* A run of it ends with -ERANGE, and of the other one it is served. */
Test(signature, one_branch_that_contradicts_itself_is_served)
{
        for (size_t i = 0; i < 2 * N_CONTRADICTIONS; i++) {
                const char *op = contradictions[i / 2];
                struct builder *b = of_image(), *good = branch_of(NULL), *bad = branch_of(op);
                struct sl_error error = {""};

                add_if(b, i % 2 ? good : bad, i % 2 ? bad : good);
                cr_expect_eq(code_of(b, NULL, &error), 0, "%s in one branch: %s", op, error.text);
                free_bodies();
        }
}

/* What is behind such an If has the shapes of the branch that is left. */
Test(signature, a_node_behind_one_branch_that_contradicts_itself_is_looked_at)
{
        struct builder *b = of_image();

        b->graph.output[0]->name = "z";
        add_if(b, branch_of("Squeeze"), branch_of(NULL));
        builder_random(b, "weights", DIMS(8, 5, 3, 3));
        builder_node(b, "Conv", "y,weights", "z");
        expect_impossible(b, "Conv", "what follows an If");
        free_bodies();
}

static struct builder *contradicting_round(const char *op)
{
        struct builder *body = new_body();

        builder_input(body, "i", SL_DTYPE_I64, 0, NULL);
        builder_input(body, "go", SL_DTYPE_BOOL, 0, NULL);
        builder_input(body, "state", SL_DTYPE_F32, DIMS(1, 3, -1, -2));
        builder_node(body, "Identity", "go", "more");
        contradict(body, op, "state", "bad");
        builder_node(body, "Relu", "state", "next");
        builder_output(body, "more");
        builder_output(body, "next");
        builder_output(body, "bad");
        return body;
}

Test(signature, a_loop_whose_body_contradicts_itself_is_refused_whatever_is_open)
{
        for (size_t i = 0; i < N_CONTRADICTIONS; i++) {
                struct builder *b = of_image();

                builder_input(b, "trips", SL_DTYPE_I64, 0, NULL);
                builder_attr_graph(
                        b, builder_node(b, "Loop", "trips,,x", "y,rows"), "body", contradicting_round(contradictions[i]));
                expect_impossible(b, contradictions[i], "a Loop");
                free_bodies();
        }
}

/* A slice of [5,3,N,M] is [3,N,M], whose first dimension is 3. */
Test(signature, a_scan_whose_body_contradicts_itself_is_refused_whatever_is_open)
{
        struct builder *b = builder_new(13), *body = new_body();
        Onnx__NodeProto *node;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(5, 3, -1, -2));
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(5, 3, -1, -2));
        builder_input(body, "row", SL_DTYPE_F32, DIMS(3, -1, -2));
        builder_ints(body, "axes", DIMS(1), (int64_t[]){0});
        builder_node(body, "Squeeze", "row,axes", "squeezed");
        builder_output(body, "squeezed");
        node = builder_node(b, "Scan", "x", "y");
        builder_attr_int(b, node, "num_scan_inputs", 1);
        builder_attr_graph(b, node, "body", body);
        expect_impossible(b, "Squeeze", "a Scan");
        free_bodies();
}

/* Elements of [N,3] make [2,5] for no N, and [2,6] for 4; of [N,0] nothing but what is empty. */
Test(signature, a_reshape_of_open_dimensions_is_refused_where_no_size_makes_its_elements)
{
        static const struct {
                int64_t known, shape[2];
                bool possible;
        } rows[] = {{3, {2, 5}, false}, {3, {2, 6}, true}, {0, {2, 5}, false}, {0, {0, 5}, true}, {1, {7, 11}, true},
                {3, {-1, 5}, true}, {4, {2, 6}, true}, {8, {2, 6}, false}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct builder *b = builder_new(14);
                struct sl_error error = {""};
                int code;

                builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, rows[i].known));
                builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2));
                builder_ints(b, "w", DIMS(2), rows[i].shape);
                builder_attr_int(b, builder_node(b, "Reshape", "x,w", "y"), "allowzero", rows[i].shape[0] == 0);
                code = code_of(b, NULL, &error);
                cr_expect_eq(code, rows[i].possible ? 0 : -ENOTSUP, "row %zu: %d, %s", i, code, error.text);
        }
}

/* Sizes that differ from each other are tried by no load. */
Test(signature, sizes_that_contradict_each_other_only_where_they_are_equal_stay_for_requests_to_say)
{
        static const struct two rows[] = {
                {"Add", {-1, 77}, {-1, -2}},
                {"MatMul", {-1, 77}, {-2, -3}},
        };
        struct builder *b = builder_new(13);
        struct sl_error error = {""};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                cr_expect_eq(code_of(of_two(&rows[i]), NULL, &error), 0, "%zu: %s", i, error.text);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3));
        builder_input(b, "z", SL_DTYPE_F32, DIMS(-2, 3));
        builder_random(b, "w", DIMS(77, 3));
        builder_attr_int(b, builder_node(b, "Concat", "x,z", "rows"), "axis", 0);
        builder_node(b, "Add", "rows,w", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(77, 3));
        cr_expect_eq(code_of(b, NULL, &error), 0, "%s", error.text);
}

static struct builder *unknown_operator(struct builder *b)
{
        builder_node(b, "Relu", "x", "h");
        builder_node(b, "Unheard", "h", "y");
        return b;
}

static struct builder *unknown_domain(struct builder *b)
{
        builder_node(b, "Relu", "x", "y")->domain = (char *)"com.example";
        return b;
}

/* Behind what fits none of the sizes that are tried. */
static struct builder *unknown_behind_a_misfit(struct builder *b)
{
        builder_ints(b, "shape", DIMS(2), (int64_t[]){-1, 231});
        builder_node(b, "Reshape", "x,shape", "h");
        return unknown_operator(b);
}

/* Of the last unknown_in_a_loop(); freed behind the model that has it. */
static struct builder *loop_body;

static struct builder *unknown_in_a_loop(struct builder *b)
{
        struct builder *body = loop_body = builder_new(13);
        Onnx__NodeProto *node;

        builder_input(body, "i", SL_DTYPE_I64, DIMS());
        builder_input(body, "go", SL_DTYPE_BOOL, DIMS());
        builder_input(body, "v", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_node(body, "Unheard", "v", "w");
        builder_node(body, "Identity", "go", "goes_on");
        builder_output(body, "goes_on");
        builder_output(body, "w");
        node = builder_node(b, "Loop", ",,x", "y");
        builder_attr_graph(b, node, "body", body);
        return b;
}

static struct builder *training(struct builder *b)
{
        builder_raw(b, "ratio", SL_DTYPE_F32, DIMS(), &(float){0.5f});
        builder_raw(b, "training", SL_DTYPE_BOOL, DIMS(), &(bool){true});
        builder_node(b, "Dropout", "x,ratio,training", "y");
        return b;
}

/* How many elements are not 0 only the data say. */
static struct builder *rank_of_data(struct builder *b)
{
        builder_node(b, "NonZero", "x", "places");
        builder_node(b, "Squeeze", "places", "y");
        return b;
}

static struct builder *missing_weights(struct builder *b)
{
        Onnx__TensorProto *weights = builder_random(b, "w", DIMS(3, 3));
        Onnx__StringStringEntryProto *location = builder_alloc(b, sizeof(*location));

        onnx__string_string_entry_proto__init(location);
        location->key = (char *)"location";
        location->value = (char *)"missing.bin";
        weights->external_data = builder_alloc(b, sizeof(void *));
        weights->external_data[0] = location;
        weights->n_external_data = 1;
        weights->has_raw_data = 0;
        weights->has_data_location = 1;
        weights->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        builder_node(b, "MatMul", "x,w", "y");
        return b;
}

static struct builder *input_that_nothing_makes(struct builder *b)
{
        builder_node(b, "MatMul", "x,nothing", "y");
        return b;
}

Test(signature, what_a_model_lacks_at_any_size_is_said_before_it_has_one)
{
        static const struct {
                struct builder *(*add)(struct builder *b);
                int code;
                const char *text;
        } rows[] = {
                {unknown_operator, -ENOTSUP,
                        "node \"y\": operator Unheard of domain ai.onnx, opset 13: the operator is not supported"},
                {unknown_domain, -ENOTSUP,
                        "node \"y\": operator Relu of domain com.example, opset 13: the domain is not supported"},
                {unknown_behind_a_misfit, -ENOTSUP, "operator Unheard"},
                {unknown_in_a_loop, -ENOTSUP, "operator Unheard"},
                {training, -ENOTSUP, "node \"y\": operator Dropout of domain ai.onnx, opset 13: training mode is not supported"},
                {rank_of_data, -ENOTSUP, "Squeeze"},
                {missing_weights, -ENOENT, "missing.bin"},
                {input_that_nothing_makes, -EBADMSG, "nothing"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct builder *both[] = {builder_new_of_x(13, DIMS(-1, 4, 3)), builder_new_of_x(13, DIMS(-1, -2, 3))};

                for (int k = 0; k < 2; k++) { /* the batch alone is open, and another dimension as well */
                        struct sl_error error = {""};

                        rows[i].add(both[k]);
                        builder_declare_output(both[k], "y", SL_DTYPE_F32, DIMS(-1, -3, 3));
                        cr_expect_eq(code_of(both[k], NULL, &error), rows[i].code, "%s, %d: %s", rows[i].text, k, error.text);
                        cr_expect(strstr(error.text, rows[i].text), "%s, %d: %s", rows[i].text, k, error.text);
                        loop_body = builder_free(loop_body);
                }
        }
}
