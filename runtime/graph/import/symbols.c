/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array: add all, sort once, then search. */
#include "import/symbols.h"

#include "base/error.h"
#include "graph.h"

#include <stdlib.h>
#include <string.h>

int sl_symbols_init(struct sl_symbols *symbols, uint32_t capacity)
{
        *symbols = (struct sl_symbols){.items = calloc((size_t)capacity + 1, sizeof(*symbols->items)), .capacity = capacity};
        return symbols->items ? 0 : -ENOMEM;
}

void sl_symbols_deinit(struct sl_symbols *symbols)
{
        free(symbols->items);
        *symbols = (struct sl_symbols){0};
}

void sl_symbols_add(struct sl_symbols *symbols, const char *name, uint32_t node)
{
        if (symbols->n < symbols->capacity)
                symbols->items[symbols->n++] = (struct sl_symbol){.name = name, .node = node, .value = SL_VALUE_NONE};
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct sl_symbol *)a)->name, ((const struct sl_symbol *)b)->name);
}

int sl_symbols_sort(struct sl_symbols *symbols, struct sl_error *error)
{
        qsort(symbols->items, symbols->n, sizeof(*symbols->items), by_name);
        for (uint32_t i = 1; i < symbols->n; i++)
                if (!strcmp(symbols->items[i - 1].name, symbols->items[i].name))
                        return sl_error_set(error, EBADMSG, "value \"%s\" is made twice", symbols->items[i].name);
        return 0;
}

struct sl_symbol *sl_symbols_find(const struct sl_symbols *symbols, const char *name)
{
        struct sl_symbol wanted = {.name = name};

        return bsearch(&wanted, symbols->items, symbols->n, sizeof(*symbols->items), by_name);
}
