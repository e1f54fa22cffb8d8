/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to look at: for each view a table of an interval. Pure, but for the table's memory.
 */
#pragma once

#include "interval.h"
#include "table.h"

#define TOP_VIEWS(X)                                                                                                               \
        /* id     name       key  sorted by */                                                                                     \
        X(MODELS, "Models", 'm', 2)                                                                                                \
        X(WORKERS, "Workers", 'w', 0)                                                                                              \
        X(QUEUES, "Queues", 'u', 2)                                                                                                \
        X(LETS, "Lets", 'l', 0)                                                                                                    \
        X(CLIENTS, "Clients", 'c', 4)                                                                                              \
        X(MEMORY, "Memory", 'y', 1)

enum view {
#define X(id, name, key, column) VIEW_##id,
        TOP_VIEWS(X)
#undef X
                VIEWS
};

const char *view_name(enum view view);
char view_key(enum view view);
uint32_t view_sort_column(enum view view);

/* Fills @ret_table, which is the caller's to end. Return: 0, -ENOMEM. */
int view_fill(enum view view, const struct interval *interval, struct table *ret_table);
