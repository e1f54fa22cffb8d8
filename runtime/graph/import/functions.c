/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call's copies get the names of the values that the call gives and takes; every other name of the function gets a prefix that
 * no name of the file has. An attribute that refers to one of the function becomes that of the call, or the function's default, or
 * none. Copies are owned by the model from the moment that they are in a list of nodes, so that the parser's free() finds them all.
 */
#include "import/functions.h"

#include "import/importer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_DEEP_MAX 32
#define PORTS_MAX      1024
#define BYTES_MAX      (64ull << 20)
#define SALTS_MAX      64

struct inliner {
        struct sl_importer *im;
        const Onnx__FunctionProto **sorted;
        const Onnx__FunctionProto *open[CALLS_DEEP_MAX]; /* calls that are being replaced, the outermost first */
        uint32_t depth, salt;
        uint64_t n_copies, n_bytes, n_calls;
};

/* One call, while its copies are made. */
struct call {
        const Onnx__FunctionProto *function;
        const Onnx__NodeProto *node;
        char prefix[40];
};

struct list {
        Onnx__NodeProto **nodes;
        size_t n, room;
};

static const char *text_of(const char *text)
{
        return text ? text : "";
}

static const char *domain_of(const char *domain)
{
        return domain && strcmp(domain, "ai.onnx") ? domain : "";
}

static int compare(const char *domain, const char *name, const char *overload, const Onnx__FunctionProto *f)
{
        int order = strcmp(name, text_of(f->name));

        order = order ? order : strcmp(domain_of(domain), domain_of(f->domain));
        return order ? order : strcmp(text_of(overload), text_of(f->overload));
}

static int by_name(const void *a, const void *b)
{
        const Onnx__FunctionProto *one = *(const Onnx__FunctionProto *const *)a;

        return compare(one->domain, text_of(one->name), one->overload, *(const Onnx__FunctionProto *const *)b);
}

static int by_call(const void *key, const void *item)
{
        const Onnx__NodeProto *node = key;

        return compare(node->domain, text_of(node->op_type), node->overload, *(const Onnx__FunctionProto *const *)item);
}

static const Onnx__FunctionProto *find_function(const struct inliner *x, const Onnx__NodeProto *node)
{
        const Onnx__FunctionProto **found = bsearch(node, x->sorted, x->im->model->n_functions, sizeof(*x->sorted), by_call);

        return found ? *found : NULL;
}

static int refuse(const struct inliner *x, int code, const Onnx__FunctionProto *f, const char *what)
{
        return sl_error_set(x->im->error, code, "function \"%s\" of domain \"%s\" %s", text_of(f->name), text_of(f->domain), what);
}

static int no_memory(const struct inliner *x)
{
        return sl_error_set(x->im->error, ENOMEM, "no memory for the copies of a function's nodes");
}

/* Takes @node over, whatever becomes of it. */
static int append(const struct inliner *x, struct list *list, Onnx__NodeProto *node)
{
        size_t room = list->n < list->room ? list->room : list->room ? 2 * list->room : 64;
        Onnx__NodeProto **grown = room == list->room ? list->nodes : realloc(list->nodes, room * sizeof(void *));

        if (!grown) {
                onnx__node_proto__free_unpacked(node, NULL);
                return no_memory(x);
        }
        list->nodes = grown;
        list->room = room;
        list->nodes[list->n++] = node;
        return 0;
}

static int note_opset(struct inliner *x, const Onnx__NodeProto *node, int64_t opset)
{
        struct sl_function_opsets *opsets = &x->im->function_opsets;
        size_t room = opsets->n < opsets->room ? opsets->room : opsets->room ? 2 * opsets->room : 64;
        struct sl_function_opset *grown =
                room == opsets->room ? opsets->items : realloc(opsets->items, room * sizeof(*opsets->items));

        if (!grown)
                return no_memory(x);
        opsets->items = grown;
        opsets->room = room;
        opsets->items[opsets->n++] = (struct sl_function_opset){.node = node, .opset = opset};
        return 0;
}

static int set_text(const struct inliner *x, char **field, const char *text)
{
        char *copy = strdup(text);

        if (!copy)
                return no_memory(x);
        free(*field);
        *field = copy;
        return 0;
}

/* A deep copy of a message. */
static int copy_message(struct inliner *x, const ProtobufCMessage *message, void **ret_copy)
{
        size_t bytes = protobuf_c_message_get_packed_size(message);
        uint8_t *packed;

        x->n_bytes += bytes;
        if (x->n_bytes > BYTES_MAX)
                return sl_error_set(x->im->error, E2BIG, "the calls of functions want copies of more than %llu bytes", BYTES_MAX);
        packed = malloc(bytes + 1);
        if (!packed)
                return no_memory(x);
        protobuf_c_message_pack(message, packed);
        *ret_copy = protobuf_c_message_unpack(message->descriptor, NULL, bytes, packed);
        free(packed);
        return *ret_copy ? 0 : no_memory(x);
}

/* The name of one of the function's values, where the call stands. */
static int rename_value(const struct inliner *x, const struct call *call, char **name)
{
        const Onnx__FunctionProto *f = call->function;
        char *longer;

        if (!*name || !**name)
                return 0;
        for (size_t i = 0; i < f->n_input; i++)
                if (!strcmp(f->input[i], *name))
                        return set_text(x, name, i < call->node->n_input ? call->node->input[i] : "");
        for (size_t i = 0; i < f->n_output; i++)
                if (!strcmp(f->output[i], *name) && i < call->node->n_output && *call->node->output[i])
                        return set_text(x, name, call->node->output[i]);
        if (asprintf(&longer, "%s%s", call->prefix, *name) < 0)
                return no_memory(x);
        free(*name);
        *name = longer;
        return 0;
}

static const Onnx__AttributeProto *find_attribute(Onnx__AttributeProto *const *attributes, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (attributes[i]->name && !strcmp(attributes[i]->name, name))
                        return attributes[i];
        return NULL;
}

/* What the attribute refers to, as a copy; NULL: neither the call nor the function says anything of it. */
static int follow_reference(
        struct inliner *x, const struct call *call, const Onnx__AttributeProto *attr, Onnx__AttributeProto **ret_attr)
{
        const Onnx__FunctionProto *f = call->function;
        const Onnx__AttributeProto *from = find_attribute(call->node->attribute, call->node->n_attribute, attr->ref_attr_name);
        int result;

        *ret_attr = NULL;
        from = from ? from : find_attribute(f->attribute_proto, f->n_attribute_proto, attr->ref_attr_name);
        if (!from)
                return 0;
        if (attr->has_type && from->has_type && attr->type != from->type)
                return sl_error_set(x->im->error, EBADMSG, "function \"%s\" of domain \"%s\": attribute %s has type %d, wants %d",
                        text_of(f->name), text_of(f->domain), attr->ref_attr_name, from->type, attr->type);
        result = copy_message(x, &from->base, (void **)ret_attr);
        return result < 0 ? result : set_text(x, &(*ret_attr)->name, text_of(attr->name));
}

static int settle_nodes(struct inliner *x, const struct call *call, Onnx__NodeProto **nodes, size_t n);

static int settle_graph(struct inliner *x, const struct call *call, Onnx__GraphProto *graph)
{
        int result = 0;

        for (size_t i = 0; i < graph->n_input && result == 0; i++)
                result = rename_value(x, call, &graph->input[i]->name);
        for (size_t i = 0; i < graph->n_output && result == 0; i++)
                result = rename_value(x, call, &graph->output[i]->name);
        for (size_t i = 0; i < graph->n_initializer && result == 0; i++)
                result = rename_value(x, call, &graph->initializer[i]->name);
        for (size_t i = 0; i < graph->n_sparse_initializer && result == 0; i++)
                if (graph->sparse_initializer[i]->values)
                        result = rename_value(x, call, &graph->sparse_initializer[i]->values->name);
        return result < 0 ? result : settle_nodes(x, call, graph->node, graph->n_node);
}

/* References become what they refer to, and those to nothing go. */
static int settle_attributes(struct inliner *x, const struct call *call, Onnx__NodeProto *node)
{
        size_t n = node->n_attribute;
        int result = 0;

        node->n_attribute = 0;
        for (size_t i = 0; i < n; i++) {
                Onnx__AttributeProto *attr = node->attribute[i], *found = attr;
                bool refers = attr->ref_attr_name && *attr->ref_attr_name;

                if (result == 0 && refers)
                        result = follow_reference(x, call, attr, &found);
                else if (result == 0 && attr->g)
                        result = settle_graph(x, call, attr->g);
                if (found != attr)
                        onnx__attribute_proto__free_unpacked(attr, NULL);
                if (found)
                        node->attribute[node->n_attribute++] = found;
        }
        return result;
}

static int settle_node(struct inliner *x, const struct call *call, Onnx__NodeProto *node)
{
        int result = 0;

        for (size_t i = 0; i < node->n_input && result == 0; i++)
                result = rename_value(x, call, &node->input[i]);
        for (size_t i = 0; i < node->n_output && result == 0; i++)
                result = rename_value(x, call, &node->output[i]);
        return result < 0 ? result : settle_attributes(x, call, node);
}

static int settle_nodes(struct inliner *x, const struct call *call, Onnx__NodeProto **nodes, size_t n)
{
        int result = 0;

        for (size_t i = 0; i < n && result == 0; i++)
                result = settle_node(x, call, nodes[i]);
        return result;
}

/* The node is known as its function's, in the call's place. */
static int name_copy(const struct inliner *x, const struct call *call, Onnx__NodeProto *node)
{
        const char *outer = text_of(call->node->name);
        char *name;

        if (!*outer && call->node->n_output)
                outer = call->node->output[0];
        if (asprintf(&name, "%s/%s", outer, *text_of(node->name) ? node->name : text_of(node->op_type)) < 0)
                return no_memory(x);
        free(node->name);
        node->name = name;
        return 0;
}

static int check_call(const struct inliner *x, const struct call *call)
{
        const Onnx__FunctionProto *f = call->function;
        const Onnx__NodeProto *node = call->node;

        if (node->n_input > f->n_input || node->n_output > f->n_output)
                return sl_error_set(x->im->error, EBADMSG,
                        "node \"%s\": %zu inputs and %zu outputs, function \"%s\" of domain \"%s\" has %zu and %zu",
                        text_of(node->name), node->n_input, node->n_output, text_of(f->name), text_of(f->domain), f->n_input,
                        f->n_output);
        for (size_t i = 0; i < node->n_attribute; i++) {
                const char *name = text_of(node->attribute[i]->name);
                bool known = find_attribute(f->attribute_proto, f->n_attribute_proto, name);

                for (size_t k = 0; k < f->n_attribute && !known; k++)
                        known = !strcmp(f->attribute[k], name);
                if (!known)
                        return sl_error_set(x->im->error, EBADMSG,
                                "node \"%s\": attribute %s, which function \"%s\" of domain \"%s\" has not", text_of(node->name),
                                name, text_of(f->name), text_of(f->domain));
        }
        for (uint32_t i = 0; i < x->depth; i++)
                if (x->open[i] == f)
                        return refuse(x, EBADMSG, f, "calls itself");
        if (x->depth == CALLS_DEEP_MAX)
                return sl_error_set(x->im->error, E2BIG, "function \"%s\" of domain \"%s\": calls are nested deeper than %d",
                        text_of(f->name), text_of(f->domain), CALLS_DEEP_MAX);
        return 0;
}

/* Calls count too: one of a function without nodes takes time. */
static int count_copy(struct inliner *x, const Onnx__FunctionProto *f)
{
        if (++x->n_copies <= x->im->limits->nodes)
                return 0;
        return sl_error_set(x->im->error, E2BIG,
                "function \"%s\" of domain \"%s\": with it the calls of functions become more than %u nodes", text_of(f->name),
                text_of(f->domain), x->im->limits->nodes);
}

static int64_t opset_of(const struct inliner *x, const Onnx__FunctionProto *f)
{
        for (size_t i = 0; i < f->n_opset_import; i++)
                if (!*domain_of(text_of(f->opset_import[i]->domain)))
                        return f->opset_import[i]->version;
        return x->im->graph->opset;
}

static int place(struct inliner *x, Onnx__NodeProto *node, int64_t opset, struct list *list);

static int place_copy(struct inliner *x, const struct call *call, const Onnx__NodeProto *from, int64_t opset, struct list *list)
{
        Onnx__NodeProto *node;
        int result = count_copy(x, call->function);

        if (result == 0)
                result = copy_message(x, &from->base, (void **)&node);
        if (result < 0)
                return result;
        result = settle_node(x, call, node);
        if (result == 0)
                result = name_copy(x, call, node);
        if (result == 0)
                return place(x, node, opset, list);
        onnx__node_proto__free_unpacked(node, NULL);
        return result;
}

/* An input that is an output as well is passed on by nobody else. */
static int pass_on(struct inliner *x, const struct call *call, int64_t opset, struct list *list)
{
        const Onnx__FunctionProto *f = call->function;
        char *type = (char *)"Identity";
        int result = 0;

        for (size_t o = 0; o < f->n_output && o < call->node->n_output && result == 0; o++)
                for (size_t i = 0; i < f->n_input && result == 0; i++) {
                        char *from = i < call->node->n_input ? call->node->input[i] : (char *)"", *to = call->node->output[o];
                        Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *copy;

                        if (!*to || strcmp(f->output[o], f->input[i]))
                                continue;
                        if (!*from)
                                return refuse(x, EBADMSG, f, "gives back an input that its call leaves out");
                        node.op_type = type;
                        node.n_input = node.n_output = 1;
                        node.input = &from;
                        node.output = &to;
                        result = count_copy(x, f);
                        if (result == 0)
                                result = copy_message(x, &node.base, (void **)&copy);
                        if (result == 0)
                                result = place(x, copy, opset, list);
                }
        return result;
}

static int replace_call(struct inliner *x, const Onnx__NodeProto *node, const Onnx__FunctionProto *f, struct list *list)
{
        struct call call = {.function = f, .node = node};
        int64_t opset = opset_of(x, f);
        int result = check_call(x, &call);

        if (result == 0)
                result = count_copy(x, f);
        if (result < 0)
                return result;
        snprintf(call.prefix, sizeof(call.prefix), "call%u.%" PRIu64 ".", x->salt, x->n_calls++);
        x->open[x->depth++] = f;
        for (size_t i = 0; i < f->n_node && result == 0; i++)
                result = place_copy(x, &call, f->node[i], opset, list);
        if (result == 0)
                result = pass_on(x, &call, opset, list);
        x->depth--;
        return result;
}

/* The nodes of a graph, of which all stay owned by it. */
static int replace_in(struct inliner *x, Onnx__GraphProto *graph)
{
        Onnx__NodeProto **nodes = graph->node;
        size_t n = graph->n_node;
        struct list list = {.n = 0};
        int result = 0;

        for (size_t i = 0; i < n; i++) {
                int placed = result == 0 ? place(x, nodes[i], 0, &list) : append(x, &list, nodes[i]);

                result = result == 0 ? placed : result;
        }
        free(nodes);
        graph->node = list.nodes;
        graph->n_node = list.n;
        return result;
}

/* Takes @node over. @opset: of the function that it comes from, 0 of none. */
static int place(struct inliner *x, Onnx__NodeProto *node, int64_t opset, struct list *list)
{
        const Onnx__FunctionProto *f = find_function(x, node);
        int result = 0;

        if (f) {
                result = replace_call(x, node, f, list);
                onnx__node_proto__free_unpacked(node, NULL);
                return result;
        }
        for (size_t i = 0; i < node->n_attribute && result == 0; i++)
                if (node->attribute[i]->g)
                        result = replace_in(x, node->attribute[i]->g);
        if (result == 0 && opset)
                result = note_opset(x, node, opset);
        if (result < 0) {
                onnx__node_proto__free_unpacked(node, NULL);
                return result;
        }
        return append(x, list, node);
}

static int check_function(const struct inliner *x, const Onnx__FunctionProto *f)
{
        int64_t opset = opset_of(x, f);

        if (!*text_of(f->name))
                return refuse(x, EBADMSG, f, "has no name");
        if (f->n_input > PORTS_MAX || f->n_output > PORTS_MAX)
                return sl_error_set(x->im->error, E2BIG, "function \"%s\" of domain \"%s\": %zu inputs and %zu outputs, at most %d",
                        f->name, text_of(f->domain), f->n_input, f->n_output, PORTS_MAX);
        if (opset < SL_IMPORT_OPSET_MIN || opset > SL_IMPORT_OPSET_MAX)
                return sl_error_set(x->im->error, ENOTSUP,
                        "function \"%s\" of domain \"%s\": opset %" PRId64 " of domain ai.onnx, supported are %d to %d", f->name,
                        text_of(f->domain), opset, SL_IMPORT_OPSET_MIN, SL_IMPORT_OPSET_MAX);
        return 0;
}

static int sort_functions(struct inliner *x)
{
        size_t n = x->im->model->n_functions;
        int result = 0;

        x->sorted = calloc(n, sizeof(*x->sorted));
        if (!x->sorted)
                return no_memory(x);
        for (size_t i = 0; i < n && result == 0; i++) {
                x->sorted[i] = x->im->model->functions[i];
                result = check_function(x, x->sorted[i]);
        }
        if (result < 0)
                return result;
        qsort(x->sorted, n, sizeof(*x->sorted), by_name);
        for (size_t i = 1; i < n; i++)
                if (!by_name(&x->sorted[i - 1], &x->sorted[i]))
                        return refuse(x, EBADMSG, x->sorted[i], "is defined twice");
        return 0;
}

/* New names must be none that the file has, whatever it calls its values. */
static int choose_salt(struct inliner *x)
{
        char text[16];

        for (; x->salt < SALTS_MAX; x->salt++) {
                snprintf(text, sizeof(text), "call%u.", x->salt);
                if (!memmem(x->im->file.bytes, x->im->file.n_bytes, text, strlen(text)))
                        return 0;
        }
        return sl_error_set(x->im->error, E2BIG, "the file has values named \"call0.\" to \"call%d.\"", SALTS_MAX - 1);
}

static int by_address(const void *a, const void *b)
{
        uintptr_t one = (uintptr_t)((const struct sl_function_opset *)a)->node;
        uintptr_t other = (uintptr_t)((const struct sl_function_opset *)b)->node;

        return (one > other) - (one < other);
}

int sl_import_functions(struct sl_importer *im)
{
        struct inliner x = {.im = im};
        int result = 0;

        if (!im->model->n_functions)
                return 0;
        result = choose_salt(&x);
        if (result == 0)
                result = sort_functions(&x);
        if (result == 0)
                result = replace_in(&x, im->model->graph);
        free(x.sorted);
        if (result == 0 && im->function_opsets.n)
                qsort(im->function_opsets.items, im->function_opsets.n, sizeof(*im->function_opsets.items), by_address);
        return result;
}

int64_t sl_function_opset_of(const struct sl_function_opsets *opsets, const Onnx__NodeProto *node, int64_t fallback)
{
        const struct sl_function_opset wanted = {.node = node};
        const struct sl_function_opset *found =
                opsets->n ? bsearch(&wanted, opsets->items, opsets->n, sizeof(wanted), by_address) : NULL;

        return found ? found->opset : fallback;
}

void sl_function_opsets_deinit(struct sl_function_opsets *opsets)
{
        free(opsets->items);
        *opsets = (struct sl_function_opsets){0};
}
