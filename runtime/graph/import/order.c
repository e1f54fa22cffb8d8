/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A depth-first walk from each node of the file to what it needs, with a stack of its own: hostile chains are long. A node in
 * progress that is met again closes a cycle.
 */
#include "import/importer.h"

#include <stdlib.h>

enum state { UNSEEN, IN_PROGRESS, DONE };

struct visit {
        uint32_t node;
        size_t next_input;
};

struct walk {
        struct sl_importer *im;
        uint8_t *states;
        struct visit *stack;
        uint32_t depth;
        uint32_t *order, n_ordered;
};

static const char *name_of(const Onnx__NodeProto *node)
{
        if (node->name && *node->name)
                return node->name;
        return node->n_output && node->output[0] ? node->output[0] : "";
}

/* The node that makes the input, or SL_SYMBOL_NO_NODE for inputs and constants of the graph. */
static int find_source(struct walk *walk, const Onnx__NodeProto *node, const char *input, uint32_t *ret_node)
{
        const struct sl_symbol *symbol;

        *ret_node = SL_SYMBOL_NO_NODE;
        if (!*input)
                return 0;
        symbol = sl_symbols_find(&walk->im->symbols, input);
        if (!symbol && sl_import_knows(walk->im, input))
                return 0;
        if (!symbol)
                return sl_error_set(walk->im->error, EBADMSG, "node \"%s\": input \"%s\" is made by nothing", name_of(node), input);
        *ret_node = symbol->node;
        return 0;
}

static void enter(struct walk *walk, uint32_t node)
{
        walk->states[node] = IN_PROGRESS;
        walk->stack[walk->depth++] = (struct visit){.node = node};
}

static int step(struct walk *walk)
{
        struct visit *top = &walk->stack[walk->depth - 1];
        const Onnx__NodeProto *node = walk->im->proto->node[top->node];
        uint32_t source;
        int result;

        if (top->next_input == node->n_input) {
                walk->states[top->node] = DONE;
                walk->order[walk->n_ordered++] = top->node;
                walk->depth--;
                return 0;
        }
        result = find_source(walk, node, node->input[top->next_input++], &source);
        if (result < 0 || source == SL_SYMBOL_NO_NODE || walk->states[source] == DONE)
                return result;
        if (walk->states[source] == IN_PROGRESS)
                return sl_error_set(walk->im->error, EBADMSG, "node \"%s\" is part of a cycle", name_of(node));
        enter(walk, source);
        return 0;
}

static int walk_all(struct walk *walk)
{
        int result = 0;

        for (uint32_t i = 0; i < walk->im->proto->n_node && result == 0; i++) {
                if (walk->states[i] == UNSEEN)
                        enter(walk, i);
                while (walk->depth && result == 0)
                        result = step(walk);
        }
        return result;
}

int sl_import_order(struct sl_importer *im, uint32_t *ret_order)
{
        size_t n = im->proto->n_node;
        struct walk walk = {
                .im = im,
                .states = calloc(n + 1, 1),
                .stack = calloc(n + 1, sizeof(*walk.stack)),
                .order = ret_order,
        };
        int result = walk.states && walk.stack ? walk_all(&walk) : -ENOMEM;

        free(walk.states);
        free(walk.stack);
        return result;
}
