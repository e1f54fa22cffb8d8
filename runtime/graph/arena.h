/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a graph: many small pieces and a few large ones, freed at once; and things made elsewhere (mapped files,
 * buffers of the parser) that live as long. One owner thread, the graph's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_graph_arena;

/* NULL when there is no memory. */
struct sl_graph_arena *sl_graph_arena_new(void);
struct sl_graph_arena *sl_graph_arena_free(struct sl_graph_arena *arena);

/* Zeroed, 64-byte aligned; NULL when there is no memory. The caller has checked that @bytes is a size to be afforded. */
void *sl_graph_arena_alloc(struct sl_graph_arena *arena, uint64_t bytes);

/* An aligned copy of what lies elsewhere and does not change; the same one each time. NULL when there is no memory. */
const void *sl_graph_arena_align(struct sl_graph_arena *arena, const void *source, uint64_t bytes);
void sl_graph_arena_drop_copies(struct sl_graph_arena *arena);

/* The arena calls release(pointer, bytes) when it is freed. On -ENOMEM the caller still owns @pointer. */
int sl_graph_arena_adopt(struct sl_graph_arena *arena, void *pointer, size_t bytes, void (*release)(void *pointer, size_t bytes));
