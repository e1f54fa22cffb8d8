/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that are laid out (forest.c), and how they become the constants of starling.Trees (forest_tables.c).
 */
#pragma once

#include "import/forest.h"

/* A node of the table before it is known how many bits its column takes. */
struct sl_forest_slot {
        int64_t key;
        uint32_t column, offset, item;
};

struct sl_forest_pending {
        uint32_t item, slot;
};

struct sl_forest_layout {
        struct sl_importer *im;
        const struct sl_onnx_node *node;
        const struct sl_forest *forest;
        bool wide; /* keys of float64 */
        int64_t features;
        struct sl_forest_slot *slots;
        uint32_t n_slots, room;
        uint8_t *seen;
        uint32_t *sides;   /* feature * 2 + side of all that items look at, sorted */
        uint32_t *numbers; /* of the column of each, + 1; 0: none looks at this side */
        uint32_t n_sides, n_columns;
        bool refused; /* a table was larger than the limits allow */
        struct sl_forest_pending *stack;
        uint32_t n_stack, stack_room;
        int64_t *cuts; /* of the node that is being laid out */
};

/* The number of the column that looks at the feature, with a NaN below all numbers (@low) or above. */
uint32_t sl_forest_column(struct sl_forest_layout *l, uint32_t feature, bool low);

/* The table of the first slot of each tree, for the caller to fill. NULL: no memory, or refused. */
int32_t *sl_forest_add_roots(struct sl_forest_layout *l, struct sl_draft *draft);

/* All other tables, from the slots of all trees. Return: 0; -ENOMEM: no memory, or refused. */
int sl_forest_write_tables(struct sl_forest_layout *l, struct sl_draft *draft, const int32_t *roots);
