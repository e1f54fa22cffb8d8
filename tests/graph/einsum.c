/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum as sums and products: random equations, over random sizes, with the batch open or not, make what the operator's own kernel
 * makes of the same equation; and unless it takes a diagonal or sums nothing, no Einsum is left.
 */
#include "backend.h"
#include "base/error.h"
#include "builder.h"
#include "evaluate.h"
#include "op.h"
#include "pass.h"
#include "ref/kernels.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERANDS_MAX 4
#define LETTERS      6

/* Label 'a' is the batch where that is open: an operand that has it leads with it. */
struct equation {
        char text[128];
        uint32_t n_operands;
        char labels[OPERANDS_MAX + 1][8]; /* the last is the output's */
        int64_t sizes[LETTERS];
        bool ones[OPERANDS_MAX][8]; /* of a dimension that is repeated along its label */
        bool open, diagonal, empty;
};

static uint32_t draw(uint64_t *state, uint32_t n)
{
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(*state >> 33) % n;
}

static void draw_operand(uint64_t *state, struct equation *e, uint32_t k)
{
        uint32_t rank = draw(state, 5);

        for (uint32_t i = 0; i < rank; i++) {
                char label = (char)('a' + draw(state, LETTERS));
                bool twice = strchr(e->labels[k], label) != NULL;

                if ((twice && draw(state, 12)) || (e->open && label == 'a'))
                        continue;
                e->diagonal |= twice;
                e->labels[k][strlen(e->labels[k])] = label;
        }
        if (!e->open || (k && draw(state, 2)))
                return;
        memmove(e->labels[k] + 1, e->labels[k], 6);
        e->labels[k][0] = 'a';
}

static void draw_output(uint64_t *state, struct equation *e)
{
        char *out = e->labels[e->n_operands];

        for (char label = 'a'; label < 'a' + LETTERS; label++) {
                bool there = false;

                for (uint32_t k = 0; k < e->n_operands; k++)
                        there |= strchr(e->labels[k], label) != NULL;
                if (there && draw(state, 3))
                        out[strlen(out)] = label;
        }
        for (size_t n = strlen(out); n > 1; n--) {
                uint32_t other = draw(state, (uint32_t)n);
                char last = out[n - 1];

                out[n - 1] = out[other];
                out[other] = last;
        }
}

static struct equation draw_equation(uint64_t *state)
{
        static const int64_t sizes[] = {1, 2, 3, 5};
        struct equation e = {.n_operands = 1 + draw(state, OPERANDS_MAX), .open = draw(state, 2)};
        char *text = e.text;

        for (uint32_t i = 0; i < LETTERS; i++)
                e.sizes[i] = draw(state, 40) ? sizes[draw(state, 4)] : 0;
        for (uint32_t k = 0; k < e.n_operands; k++) {
                draw_operand(state, &e, k);
                for (uint32_t i = 0; e.labels[k][i]; i++) {
                        bool batch = e.open && e.labels[k][i] == 'a';

                        e.ones[k][i] = !batch && draw(state, 8) == 0;
                        e.empty |= !batch && !e.ones[k][i] && !e.sizes[e.labels[k][i] - 'a'];
                }
                text += sprintf(text, "%s%s", k ? "," : "", e.labels[k]);
        }
        draw_output(state, &e);
        sprintf(text, "->%s", e.labels[e.n_operands]);
        return e;
}

static void shape_of(const struct equation *e, uint32_t k, int64_t batch, struct sl_shape *ret_shape)
{
        ret_shape->rank = (uint32_t)strlen(e->labels[k]);
        for (uint32_t i = 0; i < ret_shape->rank; i++) {
                char label = e->labels[k][i];

                ret_shape->dims[i] = e->ones[k][i] ? 1 : e->open && label == 'a' ? batch : e->sizes[label - 'a'];
        }
}

static struct sl_graph *import(const struct equation *e, struct builder *b)
{
        char inputs[32] = "";
        struct sl_error error = {""};
        struct sl_graph *graph;

        for (uint32_t k = 0; k < e->n_operands; k++) {
                char name[2] = {(char)('p' + k), 0};
                struct sl_shape shape;

                shape_of(e, k, -1, &shape);
                builder_input(b, name, SL_DTYPE_F32, shape.rank, shape.dims);
                strcat(strcat(inputs, k ? "," : ""), name);
        }
        builder_attr_string(b, builder_node(b, "Einsum", inputs, "y"), "equation", e->text);
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0, "%s: %s",
                e->text, error.text);
        return graph;
}

/* The operator itself. Returns its output, which is the caller's to free. */
static float *reference(const struct equation *e, int64_t batch, const void *const *inputs, uint64_t *ret_n)
{
        struct sl_node_desc *desc = calloc(1, sizeof(*desc));
        int64_t parts[OPERANDS_MAX + 1] = {0};
        struct sl_error error = {""};
        void *output;

        desc->op = SL_OP_EINSUM;
        desc->n_inputs = e->n_operands;
        desc->n_outputs = 1;
        for (uint32_t k = 0; k <= e->n_operands; k++)
                for (uint32_t i = 0; e->labels[k][i]; i++)
                        parts[k] |= (int64_t)e->labels[k][i] << (8 * i);
        cr_assert_eq(sl_attrs_set_ints(&desc->attrs, SL_ATTR_EQUATION, parts, e->n_operands + 1), 0);
        for (uint32_t k = 0; k < e->n_operands; k++) {
                desc->inputs[k].dtype = SL_DTYPE_F32;
                shape_of(e, k, batch, &desc->inputs[k].shape);
        }
        cr_assert_eq(sl_op_infer(desc, &error), 0, "%s: %s", e->text, error.text);
        *ret_n = sl_shape_elements(&desc->outputs[0].shape);
        output = calloc(*ret_n + 1, sizeof(float));
        cr_assert_eq(sl_ref_run(desc, &(struct sl_binding){.inputs = inputs, .outputs = &output}), 0);
        free(desc);
        return output;
}

static void compare(const struct equation *e, const struct sl_graph *graph, int64_t batch, uint64_t *state)
{
        float *inputs[OPERANDS_MAX] = {NULL}, *wanted, *got;
        struct sl_error error = {""};
        struct sl_graph *special;
        uint64_t n;

        for (uint32_t k = 0; k < e->n_operands; k++) {
                struct sl_shape shape;

                shape_of(e, k, batch, &shape);
                inputs[k] = calloc(sl_shape_elements(&shape) + 1, sizeof(float));
                fill_random(inputs[k], sl_shape_elements(&shape), draw(state, 1 << 20));
        }
        wanted = reference(e, batch, (const void *const *)inputs, &n);
        got = calloc(n + 1, sizeof(*got));
        cr_assert_eq(sl_graph_specialise(graph, batch, &special, &error), 0, "%s: %s", e->text, error.text);
        cr_assert_eq(sl_shape_elements(&special->values[special->outputs[0]].tensor.shape), n, "%s", e->text);
        cr_assert_eq(
                sl_graph_evaluate(special, (const void *const *)inputs, &(void *){got}, &error), 0, "%s: %s", e->text, error.text);
        for (uint64_t i = 0; i < n; i++)
                cr_assert(fabsf(wanted[i] - got[i]) <= 1e-4f * (1 + fabsf(wanted[i])),
                        "%s at batch %lld: element %llu is %g, wants %g", e->text, (long long)batch, (unsigned long long)i,
                        (double)got[i], (double)wanted[i]);
        sl_graph_free(special);
        free(wanted);
        free(got);
        for (uint32_t k = 0; k < OPERANDS_MAX; k++)
                free(inputs[k]);
}

Test(einsum, random_equations_make_what_the_operator_makes)
{
        uint64_t state = 5;
        uint32_t n_lowered = 0;

        for (int i = 0; i < 3000; i++) {
                struct equation e = draw_equation(&state);
                struct builder *b = builder_new(17);
                struct sl_graph *graph = import(&e, b);
                uint32_t left = count_ops(graph, SL_OP_EINSUM);

                cr_assert(left == 0 || e.diagonal || e.empty, "%s stays", e.text);
                n_lowered += left == 0;
                compare(&e, graph, 1, &state);
                if (e.open)
                        compare(&e, graph, 3, &state);
                sl_graph_free(graph);
                builder_free(b);
        }
        cr_assert_gt(n_lowered, 2000u);
}

static struct sl_graph *import_shaped(
        struct builder *b, const char *equation, size_t n, const char *const *names, uint32_t rank, const int64_t (*dims)[5])
{
        char inputs[32] = "";

        for (size_t k = 0; k < n; k++) {
                builder_input(b, names[k], SL_DTYPE_F32, rank, dims[k]);
                strcat(strcat(inputs, k ? "," : ""), names[k]);
        }
        builder_attr_string(b, builder_node(b, "Einsum", inputs, "y"), "equation", equation);
        builder_output(b, "y");
        return builder_import(b);
}

static uint32_t transposed_elements(const struct sl_graph *graph)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].op == SL_OP_TRANSPOSE)
                        n += (uint32_t)sl_shape_elements(&graph->values[graph->nodes[i].outputs[0]].tensor.shape);
        return n;
}

/* Operands that lie as a MatMul wants them are not touched, whichever comes first. */
Test(einsum, the_order_that_transposes_the_fewest_bytes_is_taken)
{
        static const struct {
                const char *equation;
                uint32_t transposed;
                int64_t dims[2][5];
        } cases[] = {
                {"xyij,xyjk->xyik", 0, {{2, 3, 4, 5}, {2, 3, 5, 6}}},
                {"abjk,abij->abik", 0, {{2, 3, 4, 5}, {2, 3, 6, 4}}},           /* the operands change places */
                {"xyijc,xyckl->xyijkl", 0, {{2, 3, 4, 5, 6}, {2, 3, 6, 2, 3}}}, /* groups are merged, not turned */
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct builder *b = builder_new(17);
                struct sl_error error = {""};
                struct sl_graph *graph =
                        import_shaped(b, cases[i].equation, 2, (const char *const[]){"p", "q"}, i == 2 ? 5 : 4, cases[i].dims);

                cr_assert_eq(sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0, "%s",
                        error.text);
                cr_assert_eq(count_ops(graph, SL_OP_MATMUL), 1, "%s", cases[i].equation);
                cr_assert_eq(
                        transposed_elements(graph), cases[i].transposed, "%s: %u", cases[i].equation, transposed_elements(graph));
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* Protobuf has no bytes for it, and it says that one scalar stays what it is. */
Test(einsum, an_empty_equation_is_that_of_a_scalar)
{
        const float input = 3;
        float output = 0;
        struct builder *b = builder_new_of_x(17, 0, NULL);
        struct sl_graph *graph;

        builder_attr_string(b, builder_node(b, "Einsum", "x", "y"), "equation", "");
        builder_output(b, "y");
        graph = builder_import(b);
        evaluate_floats(graph, 1, &input, &output, 1);
        cr_expect_float_eq(output, input, 0);
        sl_graph_free(graph);
        builder_free(b);
}
