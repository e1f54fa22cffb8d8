/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If, Loop and Scan. A body is imported by an importer of its own into a graph of its own; a name that it does not make is looked
 * up in the outer graphs, and becomes a constant of the body or a further input of the node. An If whose way is known (decide.c) is
 * no node: the nodes of its branch are the outer graph's.
 *
 * A Loop's body is imported for the shapes that its first round gets. Where that turns out to be too narrow it is imported again,
 * for canonical forms and what is folded depend on shapes.
 */
#include "control.h"
#include "import/importer.h"

#include <stdlib.h>
#include <string.h>

/* Two rounds narrow what is carried, the last one knows nothing but ranks. */
#define ROUNDS_MAX 3

/* Imports of nodes in all rounds of all bodies, for each node that a file may have. */
#define IMPORTS_PER_NODE 8

uint32_t sl_import_capture(struct sl_importer *im, uint32_t outer_value)
{
        const struct sl_value *outer = &im->outer->graph->values[outer_value];
        uint32_t value = SL_VALUE_NONE;

        for (uint32_t i = 0; i < im->captures->n; i++)
                if (im->captures->items[i].outer == outer_value)
                        return im->captures->items[i].value;
        if (im->graph->n_values >= im->limits->values || sl_vocabulary_of(im->outer, outer_value))
                return SL_VALUE_NONE;
        if (outer->kind == SL_VALUE_CONSTANT) {
                const struct sl_value constant = *outer;

                return sl_graph_add_constant(im->graph, constant.name, &constant.tensor, constant.data, &value) < 0 ? SL_VALUE_NONE
                                                                                                                    : value;
        }
        if (im->captures->n == SL_NODE_INPUTS_MAX)
                return SL_VALUE_NONE;
        if (sl_graph_add_value(im->graph, outer->name, SL_VALUE_INPUT, &outer->tensor, &value) < 0)
                return SL_VALUE_NONE;
        im->captures->items[im->captures->n++] = (struct sl_capture){.outer = outer_value, .value = value};
        return value;
}

bool sl_import_knows(const struct sl_importer *im, const char *name)
{
        while (im && !sl_symbols_find(&im->symbols, name))
                im = im->outer;
        return im;
}

uint32_t sl_import_find(struct sl_importer *im, const char *name)
{
        const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, name);
        uint32_t value;

        if (symbol)
                return symbol->value;
        value = im->outer ? sl_import_find(im->outer, name) : SL_VALUE_NONE;
        if (value == SL_VALUE_NONE || im->graph == im->outer->graph)
                return value;
        return sl_import_capture(im, value);
}

int sl_import_formals(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;

        if (proto->n_input != im->n_formals)
                return sl_error_set(
                        im->error, EBADMSG, "a body has %zu inputs, its node gives it %u", proto->n_input, im->n_formals);
        for (uint32_t i = 0; i < im->n_formals; i++) {
                const char *name = proto->input[i]->name ? proto->input[i]->name : "";
                struct sl_symbol *symbol = sl_symbols_find(&im->symbols, name);
                bool inlined = im->graph == im->outer->graph; /* its values are there */
                int result =
                        inlined ? 0 : sl_graph_add_value(im->graph, name, SL_VALUE_INPUT, &im->formals[i], &im->formal_values[i]);

                if (result < 0)
                        return result;
                if (symbol)
                        symbol->value = im->formal_values[i];
        }
        return 0;
}

/* One body on its way: what the importer of the outer graph needs of it afterwards. */
struct body {
        const Onnx__GraphProto *proto;
        struct sl_graph *graph;
        struct sl_captures captures;
        struct sl_tensor formals[SL_NODE_INPUTS_MAX];
        uint32_t formal_values[SL_NODE_INPUTS_MAX];
        uint32_t n_formals;
};

static struct sl_importer importer_of(struct sl_importer *im, struct body *body)
{
        struct sl_importer inner = *im;

        inner.proto = body->proto;
        inner.outer = im;
        inner.symbols = (struct sl_symbols){0};
        inner.captures = &body->captures;
        inner.formals = body->formals;
        inner.formal_values = body->formal_values;
        inner.n_formals = body->n_formals;
        inner.depth = im->depth + 1;
        return inner;
}

static void take_back(struct sl_importer *im, struct sl_importer *inner)
{
        im->constant_bytes = inner->constant_bytes;
        im->budget = inner->budget;
        im->n_imports = inner->n_imports;
        im->n_decisions = inner->n_decisions;
        im->contradicts = inner->contradicts;
        sl_symbols_deinit(&inner->symbols);
}

static int import_body(struct sl_importer *im, struct body *body)
{
        struct sl_importer inner = importer_of(im, body);
        int result = sl_graph_new(&inner.graph);

        if (result < 0)
                return result;
        body->graph = inner.graph;
        body->captures.n = 0;
        inner.graph->opset = im->graph->opset;
        result = sl_import_contents(&inner);
        take_back(im, &inner);
        return result;
}

/* The branch of an If as nodes of the outer graph. */
static int import_inline(struct sl_importer *im, const struct sl_onnx_node *node, const Onnx__GraphProto *proto)
{
        struct body body = {.proto = proto};
        struct sl_importer inner = importer_of(im, &body);
        int result = 0;

        if (proto->n_output < node->proto->n_output)
                result = sl_import_wrong(im, node, "a branch has fewer outputs than the node");
        if (result == 0)
                result = sl_import_contents(&inner);
        for (size_t i = 0; i < node->proto->n_output && result == 0; i++) {
                const char *name = proto->output[i]->name ? proto->output[i]->name : "";
                uint32_t value = sl_import_find(&inner, name), sequence = sl_import_find_sequence(&inner, name);
                struct sl_symbol *symbol = sl_symbols_find(&im->symbols, node->proto->output[i]);

                if (sequence)
                        sl_import_bind_sequence(im, node, (uint32_t)i, sequence);
                else if (value == SL_VALUE_NONE)
                        result = sl_import_refuse(im, node, "an output of its branch is computed by nothing");
                else if (symbol)
                        symbol->value = value;
        }
        take_back(im, &inner);
        return result;
}

static int find_body(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, const Onnx__GraphProto **ret_proto)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);

        if (!attr || !attr->g)
                return sl_import_wrong(im, node, "it lacks a body");
        if (im->depth + 1 > SL_GRAPH_DEPTH_MAX)
                return sl_error_set(
                        im->error, E2BIG, "node \"%s\": bodies are nested deeper than %d levels", node->name, SL_GRAPH_DEPTH_MAX);
        *ret_proto = attr->g;
        return 0;
}

int sl_import_inline(struct sl_importer *im, const struct sl_onnx_node *node, const char *attribute, const uint32_t *inputs,
        uint32_t n_inputs, uint32_t *ret_outputs, uint32_t n_outputs)
{
        struct body body = {.n_formals = n_inputs};
        struct sl_importer inner;
        int result = find_body(im, node, attribute, &body.proto);

        if (result == 0 && body.proto->n_output != n_outputs)
                result = sl_import_wrong(im, node, "its body has another number of outputs than it wants");
        if (result < 0)
                return result;
        memcpy(body.formal_values, inputs, n_inputs * sizeof(*inputs));
        inner = importer_of(im, &body);
        result = sl_import_contents(&inner);
        for (uint32_t i = 0; i < n_outputs && result == 0; i++) {
                ret_outputs[i] = sl_import_find(&inner, body.proto->output[i]->name ? body.proto->output[i]->name : "");
                if (ret_outputs[i] == SL_VALUE_NONE)
                        result = sl_import_refuse(im, node, "an output of its body is no tensor, or is computed by nothing");
        }
        take_back(im, &inner);
        return result;
}

/* What either body captures is an input of both. */
static int add_captures(
        struct sl_importer *im, const struct sl_onnx_node *node, struct body *bodies, uint32_t n_bodies, struct sl_draft *draft)
{
        for (uint32_t b = 0; b < n_bodies; b++)
                for (uint32_t i = 0; i < bodies[b].captures.n; i++) {
                        uint32_t outer = bodies[b].captures.items[i].outer, at = draft->n_given;

                        while (at < draft->n_inputs && draft->inputs[at] != outer)
                                at++;
                        if (at < draft->n_inputs)
                                continue;
                        if (at == SL_NODE_INPUTS_MAX)
                                return sl_import_refuse(im, node, "its bodies read too many values of the graph around them");
                        draft->inputs[draft->n_inputs++] = outer;
                }
        return 0;
}

static int set_body_inputs(struct sl_importer *im, struct body *body, const struct sl_draft *draft)
{
        uint32_t inputs[SL_NODE_INPUTS_MAX], n = body->n_formals;

        memcpy(inputs, body->formal_values, n * sizeof(*inputs));
        for (uint32_t i = draft->n_given; i < draft->n_inputs; i++) {
                const struct sl_value *outer = &im->graph->values[draft->inputs[i]];
                uint32_t value = SL_VALUE_NONE;

                for (uint32_t k = 0; k < body->captures.n; k++)
                        if (body->captures.items[k].outer == draft->inputs[i])
                                value = body->captures.items[k].value;
                if (value == SL_VALUE_NONE &&
                        sl_graph_add_value(body->graph, outer->name, SL_VALUE_INPUT, &outer->tensor, &value) < 0)
                        return -ENOMEM;
                inputs[n++] = value;
        }
        return sl_graph_set_ports(body->graph, inputs, n, body->graph->outputs, body->graph->n_outputs);
}

static struct sl_symbol *symbol_of_output(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t i)
{
        const char *name = i < node->proto->n_output ? node->proto->output[i] : "";

        return *name ? sl_symbols_find(&im->symbols, name) : NULL;
}

static int emit(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t outputs[SL_NODE_OUTPUTS_MAX];

        for (uint32_t i = 0; i < draft->n_outputs; i++) {
                struct sl_symbol *symbol = symbol_of_output(im, node, i);
                const struct sl_tensor nothing = {0};
                int result = 0;

                if (im->graph->n_values >= im->limits->values)
                        return sl_error_set(im->error, E2BIG, "more than %u values", im->limits->values);
                result =
                        sl_graph_add_value(im->graph, symbol ? symbol->name : node->name, SL_VALUE_COMPUTED, &nothing, &outputs[i]);
                if (result < 0)
                        return result;
                if (symbol)
                        symbol->value = outputs[i];
        }
        return sl_import_emit(im, node, draft, outputs);
}

/* Hands the bodies to the node. */
static int finish(
        struct sl_importer *im, const struct sl_onnx_node *node, struct body *bodies, uint32_t n_bodies, struct sl_draft *draft)
{
        int result = 0;

        if (draft->n_outputs > SL_NODE_OUTPUTS_MAX || node->proto->n_output > draft->n_outputs)
                return sl_import_refuse(im, node, "more outputs than its body makes, or than 16");
        for (uint32_t b = 0; b < n_bodies && result == 0; b++)
                result = set_body_inputs(im, &bodies[b], draft);
        if (result < 0)
                return result;
        for (uint32_t b = 0; b < n_bodies; b++) {
                draft->bodies[draft->n_bodies++] = bodies[b].graph;
                bodies[b].graph = NULL;
        }
        result = emit(im, node, draft);
        /* What the node did not take. */
        for (uint32_t b = 0; b < draft->n_bodies; b++)
                sl_graph_free(draft->bodies[b]);
        return result;
}

static void free_bodies(struct body *bodies, uint32_t n_bodies)
{
        for (uint32_t b = 0; bodies && b < n_bodies; b++)
                sl_graph_free(bodies[b].graph);
        free(bodies);
}

/*
 * Shapes that do not fit each other; what Starling lacks is refused by its name, in whatever branch it stands. Where sizes are
 * unknown only what is so at all of them.
 */
static bool contradicts_itself(const struct sl_importer *im, int result)
{
        return result == -ERANGE || (result == -EBADMSG && (im->contradicts || !im->limits->sizes_unknown));
}

/* Branch @b cannot be for these shapes, and nobody but the data say that it is not taken. */
static int stand_in(struct sl_importer *im, const struct sl_onnx_node *node, struct body bodies[2], uint32_t b, int failure)
{
        const struct body *other = &bodies[1 - b];
        struct body *body = &bodies[b];
        uint32_t capture;

        body->graph = sl_graph_free(body->graph);
        if (!sl_import_can_fail_like(other->graph, &other->captures, &capture))
                return failure;
        im->error->text[0] = 0;
        body->captures.n = 1;
        body->captures.items[0] = other->captures.items[capture];
        return sl_import_fail_like(other->graph, node->name, &body->captures.items[0], &body->graph, im->error);
}

/* @ret_only: where sizes are unknown, and one branch is for none of them, the other: what is behind the If has its shapes. */
static int import_branches(
        struct sl_importer *im, const struct sl_onnx_node *node, struct body bodies[2], const Onnx__GraphProto **ret_only)
{
        int results[2] = {import_body(im, &bodies[0]), 0};

        if (results[0] < 0 && !contradicts_itself(im, results[0]))
                return results[0];
        im->contradicts = false;
        results[1] = import_body(im, &bodies[1]);
        if (results[1] < 0 && (results[0] < 0 || !contradicts_itself(im, results[1])))
                return results[1];
        im->contradicts = false;
        for (uint32_t b = 0; b < 2; b++) {
                if (results[b] == 0)
                        continue;
                if (!im->limits->sizes_unknown)
                        return stand_in(im, node, bodies, b, results[b]);
                im->error->text[0] = 0;
                *ret_only = bodies[1 - b].proto;
        }
        return 0;
}

static int import_if(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const Onnx__GraphProto *protos[2] = {0}, *only = NULL;
        struct body *bodies;
        int result = find_body(im, node, "else_branch", &protos[0]);

        if (result == 0)
                result = find_body(im, node, "then_branch", &protos[1]);
        if (result < 0)
                return result;
        if (draft->n_inputs != 1)
                return sl_import_wrong(im, node, "it wants one input");
        result = sl_import_decide(im, node, draft->inputs[0]);
        if (result < 0)
                return result;
        if (result != SL_IMPORT_UNDECIDED)
                return import_inline(im, node, protos[result]);
        result = 0;
        bodies = calloc(2, sizeof(*bodies));
        if (!bodies)
                return -ENOMEM;
        bodies[0].proto = protos[1];
        bodies[1].proto = protos[0];
        result = import_branches(im, node, bodies, &only);
        if (result == 0 && only)
                result = import_inline(im, node, only);
        else if (result == 0)
                result = add_captures(im, node, bodies, 2, draft);
        if (result == 0 && !only) {
                draft->n_outputs = bodies[0].graph->n_outputs;
                result = finish(im, node, bodies, 2, draft);
        }
        free_bodies(bodies, 2);
        return result;
}

static void set_formals(struct sl_importer *im, const struct sl_draft *draft, struct body *body)
{
        body->n_formals = draft->n_given;
        for (uint32_t i = 0; i < draft->n_given; i++)
                if (draft->inputs[i] != SL_VALUE_NONE)
                        body->formals[i] = im->graph->values[draft->inputs[i]].tensor;
        if (draft->op == SL_OP_LOOP) {
                body->formals[0] = (struct sl_tensor){.dtype = SL_DTYPE_I64};
                body->formals[1] = (struct sl_tensor){.dtype = SL_DTYPE_BOOL};
        }
}

/* The slices of what is scanned. */
static int slice_formals(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_draft *draft, uint32_t first, struct body *body)
{
        for (uint32_t i = first; i < draft->n_given; i++) {
                struct sl_shape *shape = &body->formals[i].shape;
                int64_t axis = sl_attrs_ints(&draft->attrs, SL_ATTR_SCAN_INPUT_AXES, i - first, 0);

                axis += axis < 0 ? shape->rank : 0;
                if (axis < 0 || axis >= shape->rank)
                        return sl_import_wrong(im, node, "an axis in scan_input_axes is outside the input's rank");
                for (uint32_t d = (uint32_t)axis; d + 1 < shape->rank; d++)
                        shape->dims[d] = shape->dims[d + 1];
                shape->rank--;
        }
        return 0;
}

/* Did inference find that a round may get wider shapes than the body was imported for? Takes them as the next formals. */
static bool too_narrow(struct body *body, bool forget)
{
        bool narrow = false;

        for (uint32_t i = 0; i < body->n_formals; i++) {
                const struct sl_shape *wide = &body->graph->values[body->formal_values[i]].tensor.shape;
                struct sl_shape *shape = &body->formals[i].shape;

                for (uint32_t d = 0; d < shape->rank && d < wide->rank; d++) {
                        if (shape->dims[d] == SL_DIM_UNKNOWN || wide->dims[d] != SL_DIM_UNKNOWN)
                                continue;
                        shape->dims[d] = SL_DIM_UNKNOWN;
                        narrow = true;
                }
        }
        for (uint32_t i = 0; i < body->n_formals && narrow && forget; i++)
                for (uint32_t d = 0; d < body->formals[i].shape.rank; d++)
                        body->formals[i].shape.dims[d] = SL_DIM_UNKNOWN;
        return narrow;
}

static int infer_rounds(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, struct body *body)
{
        struct sl_control control = {.op = draft->op,
                .attrs = &draft->attrs,
                .n_inputs = draft->n_inputs,
                .n_outputs = draft->n_outputs,
                .n_bodies = 1,
                .bodies = &body->graph,
                .trips = SL_DIM_UNKNOWN};
        int result = set_body_inputs(im, body, draft);

        for (uint32_t i = 0; i < draft->n_inputs; i++)
                if (draft->inputs[i] != SL_VALUE_NONE)
                        control.inputs[i] = im->graph->values[draft->inputs[i]].tensor;
        if (result == 0 && draft->n_outputs > SL_NODE_OUTPUTS_MAX)
                return sl_import_refuse(im, node, "more than 16 outputs");
        if (result == 0)
                result = sl_control_infer(&control, im->error);
        im->contradicts = result == -EINVAL;
        if (result == -EINVAL)
                result = sl_import_misfit_status(im, -EBADMSG);
        return result < 0 ? sl_error_prefix(im->error, result, "node \"%s\" (%s)", node->name, sl_op_name(draft->op)) : 0;
}

static int import_round(
        struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, struct body *body, uint32_t n_leading)
{
        int result;

        sl_graph_free(body->graph);
        body->graph = NULL;
        draft->n_inputs = draft->n_given;
        result = import_body(im, body);
        if (result < 0)
                return result;
        if (body->graph->n_outputs < n_leading)
                return sl_import_wrong(im, node, "its body makes too little");
        draft->n_outputs = body->graph->n_outputs - n_leading;
        result = add_captures(im, node, body, 1, draft);
        return result < 0 ? result : infer_rounds(im, node, draft, body);
}

static int import_rounds(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t n_leading)
{
        struct body *body = calloc(1, sizeof(*body));
        bool again = true;
        int result = body ? 0 : -ENOMEM;

        if (result == 0)
                result = find_body(im, node, "body", &body->proto);
        if (result == 0)
                set_formals(im, draft, body);
        if (result == 0 && draft->op == SL_OP_SCAN)
                result = slice_formals(im, node, draft, (uint32_t)sl_attrs_int(&draft->attrs, SL_ATTR_CARRIED, 0), body);
        for (uint32_t round = 0; round < ROUNDS_MAX && again && result == 0; round++) {
                result = import_round(im, node, draft, body, n_leading);
                again = result == 0 && too_narrow(body, round > 0);
        }
        if (result == 0)
                result = finish(im, node, body, 1, draft);
        free_bodies(body, 1);
        return result;
}

static int import_loop(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        if (draft->n_inputs < 2)
                return sl_import_wrong(im, node, "it wants a trip count and a condition");
        if (sl_attrs_set_int(&draft->attrs, SL_ATTR_CARRIED, draft->n_inputs - 2) < 0)
                return -E2BIG;
        return import_rounds(im, node, draft, 1);
}

static int import_scan(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        static const struct {
                const char *name;
                uint32_t id;
        } lists[] = {
                {"num_scan_inputs", SL_ATTR_NUM_SCAN_INPUTS},
                {"scan_input_axes", SL_ATTR_SCAN_INPUT_AXES},
                {"scan_input_directions", SL_ATTR_SCAN_INPUT_DIRECTIONS},
                {"scan_output_axes", SL_ATTR_SCAN_OUTPUT_AXES},
                {"scan_output_directions", SL_ATTR_SCAN_OUTPUT_DIRECTIONS},
        };
        int64_t n_scanned;
        int result = 0;

        for (size_t i = 0; i < sizeof(lists) / sizeof(*lists) && result == 0; i++)
                result = sl_onnx_copy_attr(im, node, lists[i].name, lists[i].id, &draft->attrs);
        n_scanned = sl_attrs_int(&draft->attrs, SL_ATTR_NUM_SCAN_INPUTS, 0);
        if (result == 0 && (n_scanned < 1 || n_scanned > draft->n_inputs))
                return sl_import_wrong(im, node, "num_scan_inputs is none, or more than its inputs");
        if (result == 0)
                result = sl_attrs_set_int(&draft->attrs, SL_ATTR_CARRIED, draft->n_inputs - n_scanned);
        return result < 0 ? result : import_rounds(im, node, draft, 0);
}

static int find_given(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        if (node->proto->n_input > SL_NODE_INPUTS_MAX)
                return sl_error_set(im->error, E2BIG, "node \"%s\": %zu inputs, at most %d", node->name, node->proto->n_input,
                        SL_NODE_INPUTS_MAX);
        for (uint32_t i = 0; i < node->proto->n_input; i++) {
                const char *name = node->proto->input[i];

                draft->inputs[i] = *name ? sl_import_find(im, name) : SL_VALUE_NONE;
                if (draft->inputs[i] == SL_VALUE_NONE && (*name || draft->op != SL_OP_LOOP || i > 1))
                        return sl_import_refuse(im, node, "an input is missing, or is an output that Starling does not compute");
                if (draft->inputs[i] != SL_VALUE_NONE && sl_vocabulary_of(im, draft->inputs[i]))
                        return sl_import_refuse(im, node, "it works on strings");
        }
        draft->n_inputs = draft->n_given = (uint32_t)node->proto->n_input;
        return 0;
}

bool sl_import_has_bodies(const Onnx__NodeProto *proto)
{
        int op = sl_op_find(proto->op_type);

        return op >= 0 && sl_op_has_bodies((uint32_t)op);
}

#define WITHOUT_BATCH "scan_input_directions" /* which no Scan of opset 8 has */

/* What a Scan of opset 8 becomes: the node, and what it leads to. */
struct batched {
        Onnx__NodeProto outer, inner;
        Onnx__GraphProto graph;
        Onnx__NodeProto *nodes[1];
        Onnx__AttributeProto attributes[4], *of_outer[2], *of_inner[3];
        Onnx__ValueInfoProto ports[SL_NODE_INPUTS_MAX + SL_NODE_OUTPUTS_MAX], *infos[SL_NODE_INPUTS_MAX + SL_NODE_OUTPUTS_MAX];
        char names[SL_NODE_INPUTS_MAX + SL_NODE_OUTPUTS_MAX][24], *texts[SL_NODE_INPUTS_MAX + SL_NODE_OUTPUTS_MAX];
        int64_t directions[SL_NODE_INPUTS_MAX];
};

static Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *proto, const char *name)
{
        for (size_t i = 0; i < proto->n_attribute; i++)
                if (proto->attribute[i]->name && !strcmp(proto->attribute[i]->name, name))
                        return proto->attribute[i];
        return NULL;
}

static void set_number(Onnx__AttributeProto *attribute, const char *name, int64_t number)
{
        onnx__attribute_proto__init(attribute);
        attribute->name = (char *)(uintptr_t)name;
        attribute->has_type = attribute->has_i = 1;
        attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        attribute->i = number;
}

static void set_node(Onnx__NodeProto *node, const Onnx__NodeProto *like, Onnx__AttributeProto **attributes, size_t n)
{
        onnx__node_proto__init(node);
        node->name = like->name;
        node->op_type = like->op_type;
        node->domain = like->domain;
        node->attribute = attributes;
        node->n_attribute = n;
}

/* The ports of the outer body, which the inner node reads and makes. */
static void name_ports(struct batched *b, size_t n_inputs, size_t n_outputs)
{
        for (size_t i = 0; i < n_inputs + n_outputs; i++) {
                snprintf(b->names[i], sizeof(b->names[i]), "starling.sample.%zu", i);
                onnx__value_info_proto__init(&b->ports[i]);
                b->ports[i].name = b->texts[i] = b->names[i];
                b->infos[i] = &b->ports[i];
        }
        onnx__graph_proto__init(&b->graph);
        b->graph.name = b->names[0];
        b->graph.input = b->infos;
        b->graph.n_input = n_inputs;
        b->graph.output = b->infos + n_inputs;
        b->graph.n_output = n_outputs;
        b->graph.node = b->nodes;
        b->graph.n_node = 1;
        b->nodes[0] = &b->inner;
        b->inner.input = b->texts;
        b->inner.n_input = n_inputs;
        b->inner.output = b->texts + n_inputs;
        b->inner.n_output = n_outputs;
}

/*
 * A Scan of opset 8 without lengths goes along dimension 1 of each sample: it is one of opset 9 over the samples, whose body is one
 * of opset 9 over what a sample has. Its states are those of samples, too.
 */
static int divide_batched(struct sl_importer *im, const struct sl_onnx_node *node, struct batched *b)
{
        const Onnx__NodeProto *proto = node->proto;
        Onnx__AttributeProto *body = find_attribute(proto, "body"), *directions = find_attribute(proto, "directions");
        Onnx__AttributeProto *scanned = find_attribute(proto, "num_scan_inputs");
        size_t n_inputs = proto->n_input ? proto->n_input - 1 : 0;

        if (!n_inputs || *proto->input[0])
                return sl_import_refuse(im, node, "the form of opset 8 with sequence lengths");
        if (!body || !body->g || !scanned || scanned->i < 1 || (uint64_t)scanned->i > n_inputs || n_inputs > SL_NODE_INPUTS_MAX ||
                proto->n_output > SL_NODE_OUTPUTS_MAX ||
                (directions && directions->n_ints && directions->n_ints != (size_t)scanned->i))
                return sl_import_wrong(im, node, "its body, num_scan_inputs or directions do not fit its inputs");
        for (size_t i = 0; directions && i < directions->n_ints; i++)
                b->directions[i] = directions->ints[i];
        set_number(&b->attributes[0], "num_scan_inputs", (int64_t)n_inputs);
        set_number(&b->attributes[2], "num_scan_inputs", scanned->i);
        onnx__attribute_proto__init(&b->attributes[1]);
        b->attributes[1].name = body->name;
        b->attributes[1].has_type = 1;
        b->attributes[1].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
        b->attributes[1].g = &b->graph;
        onnx__attribute_proto__init(&b->attributes[3]);
        b->attributes[3].name = (char *)(uintptr_t)WITHOUT_BATCH;
        b->attributes[3].has_type = 1;
        b->attributes[3].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        b->attributes[3].ints = b->directions;
        b->attributes[3].n_ints = (size_t)scanned->i;
        b->of_outer[0] = &b->attributes[0];
        b->of_outer[1] = &b->attributes[1];
        b->of_inner[0] = &b->attributes[2];
        b->of_inner[1] = body;
        b->of_inner[2] = &b->attributes[3];
        set_node(&b->outer, proto, b->of_outer, 2);
        set_node(&b->inner, proto, b->of_inner, 3);
        b->outer.input = proto->input + 1;
        b->outer.n_input = n_inputs;
        b->outer.output = proto->output;
        b->outer.n_output = proto->n_output;
        name_ports(b, n_inputs, proto->n_output);
        return 0;
}

static int import_batched(struct sl_importer *im, const struct sl_onnx_node *node)
{
        struct batched *b = calloc(1, sizeof(*b));
        struct sl_draft draft = {.op = SL_OP_SCAN};
        struct sl_onnx_node outer = *node;
        int result = b ? divide_batched(im, node, b) : -ENOMEM;

        if (result == 0) {
                outer.proto = &b->outer;
                result = find_given(im, &outer, &draft);
        }
        if (result == 0)
                result = import_scan(im, &outer, &draft);
        free(b);
        return result;
}

int sl_import_control(struct sl_importer *im, const struct sl_onnx_node *node)
{
        struct sl_draft draft = {.op = (uint32_t)sl_op_find(node->proto->op_type)};
        int result;

        if (draft.op == SL_OP_SCAN && im->graph->opset < 9 && !find_attribute(node->proto, WITHOUT_BATCH))
                return import_batched(im, node);
        result = find_given(im, node, &draft);
        if (result < 0)
                return result;
        if (draft.op == SL_OP_IF)
                return import_if(im, node, &draft);
        return draft.op == SL_OP_LOOP ? import_loop(im, node, &draft) : import_scan(im, node, &draft);
}

int sl_import_count(struct sl_importer *im)
{
        if (++im->n_imports <= (uint64_t)im->limits->nodes * IMPORTS_PER_NODE)
                return 0;
        return sl_error_set(im->error, E2BIG, "its bodies have to be imported for too many shapes: %u nodes, %d times",
                im->limits->nodes, IMPORTS_PER_NODE);
}
