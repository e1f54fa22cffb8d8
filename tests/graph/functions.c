/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a model defines itself: what becomes of their calls, and what is refused.
 */
#include "base/error.h"
#include "builder.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* The outputs of @body are those of the function; @inputs with commas between. A body lives as long as the model. */
static Onnx__FunctionProto *define(
        struct builder *b, struct builder *body, const char *name, const char *inputs, const char *attributes)
{
        Onnx__FunctionProto *f = builder_alloc(b, sizeof(*f));
        void **more = builder_alloc(b, (b->model.n_functions + 1) * sizeof(*more));
        Onnx__NodeProto *ports = builder_node(body, "ports", inputs, "y");

        body->graph.n_node--;
        onnx__function_proto__init(f);
        f->name = (char *)name;
        f->domain = (char *)"local";
        f->n_node = body->graph.n_node;
        f->node = body->graph.node;
        f->n_input = ports->n_input;
        f->input = ports->input;
        f->n_output = 1;
        f->output = ports->output;
        f->n_opset_import = body->model.n_opset_import;
        f->opset_import = body->model.opset_import;
        if (*attributes) {
                f->n_attribute = 1;
                f->attribute = builder_alloc(b, sizeof(char *));
                f->attribute[0] = (char *)attributes;
        }
        if (b->model.n_functions)
                memcpy(more, b->model.functions, b->model.n_functions * sizeof(*more));
        more[b->model.n_functions++] = f;
        b->model.functions = (Onnx__FunctionProto **)more;
        return f;
}

static Onnx__NodeProto *call(struct builder *b, const char *name, const char *inputs, const char *outputs)
{
        Onnx__NodeProto *node = builder_node(b, name, inputs, outputs);

        node->domain = (char *)"local";
        return node;
}

static struct builder *model(int64_t opset)
{
        struct builder *b = builder_new_of_x(opset, DIMS(-1, 4));

        builder_output(b, "y");
        return b;
}

static void expect_graph(struct builder *b, const char *wanted)
{
        struct sl_graph *graph = builder_import(b);

        expect_text(graph, wanted);
        sl_graph_free(graph);
}

static void refer(struct builder *b, Onnx__NodeProto *node, const char *name, const char *to)
{
        Onnx__AttributeProto *attr;

        builder_attr_float(b, node, name, 0);
        attr = node->attribute[node->n_attribute - 1];
        attr->has_f = false;
        attr->ref_attr_name = (char *)to;
}

Test(functions, are_their_nodes_where_they_are_called)
{
        struct builder *b = model(17), *twice = builder_new(17), *four = builder_new(17);

        builder_node(twice, "Add", "a,a", "y");
        define(b, twice, "Twice", "a", "");
        call(four, "Twice", "x", "t");
        call(four, "Twice", "t", "y");
        define(b, four, "Four", "x", "");
        call(b, "Four", "x", "h");
        builder_node(b, "Relu", "h", "y");
        expect_graph(b, "h/t/y = Add(x [N,4], x [N,4]) -> call0.0.t [N,4]\n"
                        "h/y/y = Add(call0.0.t [N,4], call0.0.t [N,4]) -> h [N,4]\n"
                        "y = Relu(h [N,4]) -> y [N,4]\n");
        builder_free(b);
        builder_free(twice);
        builder_free(four);
}

Test(functions, take_attributes_of_the_call_or_their_defaults_or_none)
{
        struct builder *b = model(17), *leaky = builder_new(17);
        Onnx__FunctionProto *f;
        Onnx__NodeProto *node;

        refer(leaky, builder_node(leaky, "LeakyRelu", "a", "y"), "alpha", "slope");
        f = define(b, leaky, "Leaky", "a", "slope");
        builder_attr_float(b, call(b, "Leaky", "x", "u"), "slope", 0.5f);
        call(b, "Leaky", "u", "y");
        expect_graph(b, "u/y = LeakyRelu(x [N,4]) {alpha=0.5} -> u [N,4]\n"
                        "y/y = LeakyRelu(u [N,4]) -> y [N,4]\n");
        node = builder_node(leaky, "ports", "a", "none");
        builder_attr_float(leaky, node, "slope", 0.25f);
        f->attribute_proto = node->attribute;
        f->n_attribute_proto = 1;
        expect_graph(b, "u/y = LeakyRelu(x [N,4]) {alpha=0.5} -> u [N,4]\n"
                        "y/y = LeakyRelu(u [N,4]) {alpha=0.25} -> y [N,4]\n");
        builder_free(b);
        builder_free(leaky);
}

Test(functions, refuse_an_attribute_of_another_type_or_that_they_do_not_have)
{
        struct builder *b = model(17), *leaky = builder_new(17);
        Onnx__NodeProto *node = call(b, "Leaky", "x", "y");

        refer(leaky, builder_node(leaky, "LeakyRelu", "a", "y"), "alpha", "slope");
        define(b, leaky, "Leaky", "a", "slope");
        builder_attr_int(b, node, "slope", 1);
        builder_expect(b, -EBADMSG, "function \"Leaky\" of domain \"local\": attribute slope has type 2, wants 1");
        node->n_attribute = 0;
        builder_attr_int(b, node, "steep", 1);
        builder_expect(b, -EBADMSG, "node \"y\": attribute steep, which function \"Leaky\" of domain \"local\" has not");
        builder_free(b);
        builder_free(leaky);
}

/* Squeeze has its axes as an attribute in opset 11, as an input in 13. */
Test(functions, mean_what_the_opset_that_they_import_says)
{
        struct builder *b = builder_new_of_x(17, DIMS(-1, 1, 4)), *old = builder_new(11);

        builder_output(b, "y");
        builder_attr_ints(old, builder_node(old, "Squeeze", "a", "y"), "axes", DIMS(1));
        define(b, old, "Flat", "a", "");
        call(b, "Flat", "x", "s");
        builder_node(b, "Softmax", "s", "y");
        expect_graph(b, "s/y = Squeeze(x [N,1,4]) {axes=[1]} -> s [N,4]\n"
                        "y = Softmax(s [N,4]) {axis=1} -> y [N,4]\n");
        old->model.opset_import[0]->version = 99;
        builder_expect(b, -ENOTSUP, "function \"Flat\" of domain \"local\": opset 99 of domain ai.onnx, supported are 1 to 28");
        builder_free(b);
        builder_free(old);
}

/* What is left out is left out inside as well, and an input that comes back is passed on. */
Test(functions, know_inputs_that_are_left_out_and_those_that_come_back)
{
        struct builder *b = model(17), *clip = builder_new(17), *same = builder_new(17);

        builder_node(clip, "Clip", "a,low", "y");
        define(b, clip, "Least", "a,low", "");
        define(b, same, "Same", "y", "");
        call(b, "Least", "x", "c");
        call(b, "Same", "c", "y");
        expect_graph(b, "c/y = Clip(x [N,4]) -> c [N,4]\n"
                        "y = Identity(c [N,4]) -> y [N,4]\n");
        builder_free(b);
        builder_free(clip);
        builder_free(same);
}

Test(functions, keep_the_names_of_their_values_apart_from_all_that_the_file_has)
{
        struct builder *b = model(17), *f = builder_new(17);

        builder_node(f, "Neg", "a", "t");
        builder_node(f, "Abs", "t", "y");
        define(b, f, "F", "a", "");
        call(b, "F", "x", "call0.0.t");
        call(b, "F", "call0.0.t", "y");
        expect_graph(b, "call0.0.t/t = Neg(x [N,4]) -> call1.0.t [N,4]\n"
                        "call0.0.t/y = Abs(call1.0.t [N,4]) -> call0.0.t [N,4]\n"
                        "y/t = Neg(call0.0.t [N,4]) -> call1.1.t [N,4]\n"
                        "y/y = Abs(call1.1.t [N,4]) -> y [N,4]\n");
        builder_free(b);
        builder_free(f);
}

/* A branch inside a function reads the function's values, and calls another one. */
Test(functions, are_replaced_in_bodies_too)
{
        struct builder *b = model(17), *twice = builder_new(17), *choose = builder_new(17), *yes = builder_new(17),
                       *no = builder_new(17);
        Onnx__NodeProto *node;

        builder_node(twice, "Add", "a,a", "y");
        define(b, twice, "Twice", "a", "");
        call(yes, "Twice", "v", "r");
        builder_output(yes, "r");
        builder_node(no, "Neg", "v", "r");
        builder_output(no, "r");
        node = builder_node(choose, "If", "c", "y");
        builder_attr_graph(choose, node, "then_branch", yes);
        builder_attr_graph(choose, node, "else_branch", no);
        define(b, choose, "Choose", "v,c", "");
        builder_raw(b, "on", SL_DTYPE_BOOL, 0, NULL, (uint8_t[]){1});
        call(b, "Choose", "x,on", "h");
        builder_node(b, "Relu", "h", "y");
        expect_graph(b, "r/y = Add(x [N,4], x [N,4]) -> call0.0.r [N,4]\n"
                        "y = Relu(call0.0.r [N,4]) -> y [N,4]\n");
        builder_free(b);
        builder_free(twice);
        builder_free(choose);
        builder_free(yes);
        builder_free(no);
}

Test(functions, refuse_to_call_themselves)
{
        struct builder *b = model(17), *one = builder_new(17), *other = builder_new(17);

        call(one, "Other", "a", "y");
        call(other, "One", "a", "y");
        define(b, one, "One", "a", "");
        define(b, other, "Other", "a", "");
        call(b, "One", "x", "y");
        builder_expect(b, -EBADMSG, "function \"One\" of domain \"local\" calls itself");
        builder_free(b);
        builder_free(one);
        builder_free(other);
}

/* Each calls the next one ten times; the last one does nothing, or little. */
static struct builder *doubling(struct builder *bodies[9], const char *last)
{
        static const char *const names[] = {"F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8"};
        struct builder *b = model(17);

        for (uint32_t i = 0; i < 9; i++) {
                bodies[i] = builder_new(17);
                for (uint32_t k = 0; k < 10 && i < 8; k++) {
                        char *to = builder_alloc(bodies[i], 8);

                        snprintf(to, 8, "t%u", k);
                        call(bodies[i], names[i + 1], "a", k < 9 ? to : "y");
                }
                if (i == 8)
                        builder_node(bodies[i], last, "a", "y");
                define(b, bodies[i], names[i], "a", "");
        }
        call(b, "F0", "x", "y");
        return b;
}

Test(functions, end_before_they_have_grown_beyond_what_a_file_may_have)
{
        struct builder *bodies[9], *b = doubling(bodies, "Relu");

        builder_expect(b, -E2BIG, "with it the calls of functions become more than ");
        bodies[8]->graph.n_node = 0;
        b->model.functions[8]->n_node = 0;
        builder_expect(b, -E2BIG, "with it the calls of functions become more than ");
        builder_free(b);
        for (uint32_t i = 0; i < 9; i++)
                builder_free(bodies[i]);
}

Test(functions, refuse_calls_that_do_not_fit_and_names_that_come_twice)
{
        struct builder *b = model(17), *f = builder_new(17);

        builder_node(f, "Relu", "a", "y");
        define(b, f, "F", "a", "");
        call(b, "F", "x,x", "y");
        builder_expect(b, -EBADMSG, "node \"y\": 2 inputs and 1 outputs, function \"F\" of domain \"local\" has 1 and 1");
        define(b, f, "F", "a", "");
        builder_expect(b, -EBADMSG, "function \"F\" of domain \"local\" is defined twice");
        b->model.functions[1]->overload = (char *)"other";
        b->graph.node[0]->n_input = 1;
        b->graph.node[0]->overload = (char *)"third";
        builder_expect(b, -ENOTSUP, "operator F of domain local, opset 17: the domain is not supported");
        b->graph.node[0]->overload = (char *)"other";
        expect_graph(b, "y/y = Relu(x [N,4]) -> y [N,4]\n");
        builder_free(b);
        builder_free(f);
}
