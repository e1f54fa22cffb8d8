/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of an ONNX graph and what they stand for. Built once, sorted, searched; sorting instead of hashing, so that
 * no choice of names makes it slow. One owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;

#define SL_SYMBOL_NO_NODE UINT32_MAX

struct sl_symbol {
        const char *name;  /* of the parsed file, which outlives the table */
        uint32_t node;     /* index in the file of the node that makes it, or SL_SYMBOL_NO_NODE */
        uint32_t value;    /* in the graph; SL_VALUE_NONE until it has been made, or of what is no tensor */
        uint32_t sequence; /* 1 and its place among the sequences; 0 of a tensor (sequence.h) */
};

struct sl_symbols {
        struct sl_symbol *items;
        uint32_t n, capacity;
};

/* Room for @capacity names. -ENOMEM. */
int sl_symbols_init(struct sl_symbols *symbols, uint32_t capacity);
void sl_symbols_deinit(struct sl_symbols *symbols);

/* Within the capacity. */
void sl_symbols_add(struct sl_symbols *symbols, const char *name, uint32_t node);

/* After the last sl_symbols_add(). -EBADMSG when a name stands for two things. */
int sl_symbols_sort(struct sl_symbols *symbols, struct sl_error *error);

/* NULL when there is none of that name. */
struct sl_symbol *sl_symbols_find(const struct sl_symbols *symbols, const char *name);
