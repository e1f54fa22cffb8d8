/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes are a set, so what they add to a signature is summed. Values have numbers in the order in which nodes make them,
 * behind the inputs of the graph; a constant has none.
 */
#include "merge/architecture.h"

#include "base/cleanup.h"
#include "graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define CONSTANT (UINT32_MAX - 1)

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
        return XXH3_64bits_withSeed(data, bytes, hash);
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
        return mix(hash, &number, sizeof(number));
}

static uint64_t mix_tensor(uint64_t hash, const struct sl_tensor *tensor)
{
        hash = mix_number(hash, tensor->dtype);
        hash = mix_number(hash, tensor->shape.rank);
        return mix(hash, tensor->shape.dims, tensor->shape.rank * sizeof(*tensor->shape.dims));
}

static size_t attr_bytes(const struct sl_attr *attr)
{
        bool list = attr->type == SL_ATTR_TYPE_INTS || attr->type == SL_ATTR_TYPE_FLOATS;

        return list ? attr->count * sizeof(*attr->ints) : sizeof(attr->i);
}

static uint64_t hash_attr(const struct sl_attr *attr)
{
        return mix(mix_number(mix_number(0, attr->id), attr->type), attr->ints, attr_bytes(attr));
}

static uint64_t mix_epilogue(uint64_t hash, const struct sl_epilogue *epilogue)
{
        const float numbers[] = {epilogue->act_a, epilogue->act_b};

        hash = mix_number(mix_number(hash, epilogue->activation), epilogue->has_residual);
        return mix(hash, numbers, sizeof(numbers));
}

static bool is_constant(const struct sl_graph *graph, uint32_t value)
{
        return value != SL_VALUE_NONE && graph->values[value].kind == SL_VALUE_CONSTANT;
}

static uint64_t mix_values(uint64_t hash, const struct sl_graph *graph, const uint32_t *values, uint32_t n)
{
        hash = mix_number(hash, n);
        for (uint32_t i = 0; i < n; i++) {
                hash = mix_number(hash, values[i] == SL_VALUE_NONE ? 0 : is_constant(graph, values[i]) ? 1 : 2);
                if (values[i] != SL_VALUE_NONE)
                        hash = mix_tensor(hash, &graph->values[values[i]].tensor);
        }
        return hash;
}

int sl_architecture_node(const struct sl_graph *graph, uint32_t index, uint64_t *ret_signature)
{
        const struct sl_node *node = &graph->nodes[index];
        uint64_t attrs = 0, hash = mix_epilogue(mix_number(0, node->op), &node->epilogue);

        for (uint32_t i = 0; i < node->attrs.count; i++)
                attrs += hash_attr(&node->attrs.items[i]);
        hash = mix_number(hash, attrs);
        hash = mix_values(hash, graph, node->inputs, node->n_inputs);
        hash = mix_values(hash, graph, node->outputs, node->n_outputs);
        for (uint32_t i = 0; i < node->n_bodies; i++) {
                struct sl_architecture body;
                int r = sl_architecture_of(node->bodies[i], &body);

                if (r < 0)
                        return r;
                hash = mix(hash, body.digest, sizeof(body.digest));
        }
        *ret_signature = hash;
        return 0;
}

/* A node whatever its sizes are. */
static uint64_t family_of(const struct sl_node *node)
{
        uint64_t hash = mix_number(mix_number(0, node->op), node->epilogue.activation);

        return mix_number(mix_number(hash, node->epilogue.has_residual), node->n_bodies);
}

struct numbering {
        const struct sl_graph *graph;
        uint32_t *numbers; /* of each value */
        uint32_t next;
        uint64_t digest[2], family[2];
};

static void add(struct numbering *n, uint64_t exact, uint64_t family)
{
        for (uint32_t i = 0; i < 2; i++) {
                n->digest[i] = mix_number(n->digest[i], exact + i);
                n->family[i] = mix_number(n->family[i], family + i);
        }
}

static uint32_t number_of(const struct numbering *n, uint32_t value)
{
        return value == SL_VALUE_NONE ? SL_VALUE_NONE : is_constant(n->graph, value) ? CONSTANT : n->numbers[value];
}

static int add_node(struct numbering *n, uint32_t index)
{
        const struct sl_node *node = &n->graph->nodes[index];
        uint64_t signature;
        int r = sl_architecture_node(n->graph, index, &signature);

        if (r < 0)
                return r;
        add(n, signature, family_of(node));
        for (uint32_t i = 0; i < node->n_inputs; i++)
                add(n, number_of(n, node->inputs[i]), number_of(n, node->inputs[i]));
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE)
                        n->numbers[node->outputs[i]] = n->next++;
        return 0;
}

int sl_architecture_of(const struct sl_graph *graph, struct sl_architecture *ret_architecture)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *numbers = calloc(graph->n_values + 1u, sizeof(*numbers));
        struct numbering n = {.graph = graph, .numbers = numbers};
        int r = numbers ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < graph->n_inputs && r == 0; i++) {
                numbers[graph->inputs[i]] = n.next++;
                add(&n, mix_tensor(0, &graph->values[graph->inputs[i]].tensor), 0);
        }
        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++)
                r = graph->nodes[i].dead ? 0 : add_node(&n, i);
        for (uint32_t i = 0; i < graph->n_outputs && r == 0; i++)
                add(&n, number_of(&n, graph->outputs[i]), number_of(&n, graph->outputs[i]));
        if (r < 0)
                return r;
        memcpy(ret_architecture->digest, n.digest, sizeof(n.digest));
        memcpy(ret_architecture->family, n.family, sizeof(n.family));
        return 0;
}

static bool attrs_agree(const struct sl_attrs *here, const struct sl_attrs *there, char *why, size_t room)
{
        for (uint32_t i = 0; i < here->count; i++) {
                const struct sl_attr *a = &here->items[i], *b = sl_attrs_find(there, a->id);

                if (b && a->type == b->type && attr_bytes(a) == attr_bytes(b) && !memcmp(a->ints, b->ints, attr_bytes(a)))
                        continue;
                snprintf(why, room, "attribute %s differs", sl_attr_name(a->id));
                return false;
        }
        if (here->count != there->count)
                snprintf(why, room, "%u attributes here, %u there", here->count, there->count);
        return here->count == there->count;
}

static bool epilogues_agree(const struct sl_epilogue *a, const struct sl_epilogue *b)
{
        return a->activation == b->activation && a->has_residual == b->has_residual &&
               !memcmp(&a->act_a, &b->act_a, sizeof(float)) && !memcmp(&a->act_b, &b->act_b, sizeof(float));
}

struct port {
        const struct sl_graph *graph;
        uint32_t value;
};

static const char *kind_of(struct port port)
{
        return port.value == SL_VALUE_NONE ? "absent" : is_constant(port.graph, port.value) ? "constant" : "computed";
}

static bool ports_agree(struct port here, struct port there, const char *what, uint32_t index, char *why, size_t room)
{
        const struct sl_tensor *a, *b;
        char here_text[SL_SHAPE_TEXT_BYTES], there_text[SL_SHAPE_TEXT_BYTES];

        if (strcmp(kind_of(here), kind_of(there))) {
                snprintf(why, room, "%s %u is %s here, %s there", what, index, kind_of(here), kind_of(there));
                return false;
        }
        if (here.value == SL_VALUE_NONE)
                return true;
        a = &here.graph->values[here.value].tensor;
        b = &there.graph->values[there.value].tensor;
        if (a->dtype == b->dtype && sl_shape_equal(&a->shape, &b->shape))
                return true;
        snprintf(why, room, "%s %u is %s %s here, %s %s there", what, index, sl_dtype_name(a->dtype),
                sl_shape_print(&a->shape, here_text), sl_dtype_name(b->dtype), sl_shape_print(&b->shape, there_text));
        return false;
}

static bool bodies_agree(const struct sl_node *a, const struct sl_node *b)
{
        struct sl_architecture here, there;

        for (uint32_t i = 0; i < a->n_bodies && a->n_bodies == b->n_bodies; i++)
                if (sl_architecture_of(a->bodies[i], &here) < 0 || sl_architecture_of(b->bodies[i], &there) < 0 ||
                        memcmp(here.digest, there.digest, sizeof(here.digest)))
                        return false;
        return a->n_bodies == b->n_bodies;
}

bool sl_architecture_agrees(
        const struct sl_graph *here, uint32_t a_index, const struct sl_graph *there, uint32_t b_index, char *why, size_t room)
{
        const struct sl_node *a = &here->nodes[a_index], *b = &there->nodes[b_index];

        if (a->op != b->op) {
                snprintf(why, room, "%s here, %s there", sl_op_name(a->op), sl_op_name(b->op));
                return false;
        }
        if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs) {
                snprintf(why, room, "%u inputs and %u outputs here, %u and %u there", a->n_inputs, a->n_outputs, b->n_inputs,
                        b->n_outputs);
                return false;
        }
        if (!attrs_agree(&a->attrs, &b->attrs, why, room))
                return false;
        for (uint32_t i = 0; i < a->n_inputs; i++)
                if (!ports_agree((struct port){here, a->inputs[i]}, (struct port){there, b->inputs[i]}, "input", i, why, room))
                        return false;
        for (uint32_t i = 0; i < a->n_outputs; i++)
                if (!ports_agree((struct port){here, a->outputs[i]}, (struct port){there, b->outputs[i]}, "output", i, why, room))
                        return false;
        if (epilogues_agree(&a->epilogue, &b->epilogue) && bodies_agree(a, b))
                return true;
        snprintf(why, room, "epilogue or body differs");
        return false;
}
