/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences and optionals that are known when a model is loaded: lists of values of the graph, which no node makes. Operators that
 * make, change and read them are settled at import; what is left are the tensors. All importers of a model share the lists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_importer;
struct sl_onnx_node;

struct sl_sequence {
        bool optional;    /* of one value, of one sequence, or of nothing */
        uint32_t inner;   /* of an optional: 1 and the place of the sequence that it holds; else 0 */
        uint32_t n;       /* values */
        uint32_t *values; /* SL_VALUE_* of the graph in which the sequence was found */
};

struct sl_sequences {
        uint32_t n, room;
        uint64_t n_values; /* of all, which the limit of a graph's values bounds */
        struct sl_sequence *items;
};

void sl_sequences_deinit(struct sl_sequences *sequences);

/* 1 and the place of the sequence or optional of that name, here or in a graph around this one; 0 of none. */
uint32_t sl_import_find_sequence(struct sl_importer *im, const char *name);

/* An optional that holds @value. -E2BIG, -ENOMEM. */
int sl_import_held(struct sl_importer *im, uint32_t value, uint32_t *ret_sequence);

/* Output @output of the node is that sequence. */
void sl_import_bind_sequence(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t output, uint32_t sequence);
