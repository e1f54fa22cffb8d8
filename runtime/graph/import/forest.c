/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees laid out: each tree from its root downwards, the children of a node side by side, behind it. What a comparison of the file
 * lets through is a set of intervals of keys; a node of the table cuts at one key, so one interval that begins or ends nowhere is
 * one node, and any other set (equality, members) a search over its ends, whose outcomes are jumps to the one place where each
 * child lies.
 *
 * Invariant: an item is laid out once at most; one that is met again is refused, so that time and memory stay in proportion to the
 * file.
 */
#include "import/forest.h"

#include "import/forest_cuts.h"
#include "import/forest_layout.h"
#include "shape/trees.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

int sl_forest_init(struct sl_forest *forest, uint32_t n_items, uint32_t n_roots, uint32_t n_entries, uint32_t n_members)
{
        *forest = (struct sl_forest){.n_items = n_items, .n_roots = n_roots, .n_entries = n_entries, .n_members = n_members};
        forest->items = calloc((size_t)n_items + 1, sizeof(*forest->items));
        forest->roots = calloc((size_t)n_roots + 1, sizeof(*forest->roots));
        forest->entries = calloc((size_t)n_entries + 1, sizeof(*forest->entries));
        forest->members = calloc((size_t)n_members + 1, sizeof(*forest->members));
        return forest->items && forest->roots && forest->entries && forest->members ? 0 : -ENOMEM;
}

void sl_forest_deinit(struct sl_forest *forest)
{
        free(forest->items);
        free(forest->roots);
        free(forest->entries);
        free(forest->members);
        free(forest->base);
}

static void layout_deinit(struct sl_forest_layout *l)
{
        free(l->slots);
        free(l->seen);
        free(l->sides);
        free(l->numbers);
        free(l->stack);
        free(l->cuts);
}

static int refuse_item(const struct sl_forest_layout *l, uint32_t item, const char *what)
{
        return sl_error_set(l->im->error, EBADMSG, "node \"%s\" (%s): node %u of its trees %s", l->node->name,
                l->node->proto->op_type, item, what);
}

static int grow(void **array, uint32_t *room, uint32_t wanted, size_t bytes)
{
        uint64_t more = (uint64_t)*room + *room / 2 + 64;
        void *larger;

        if (wanted <= *room)
                return 0;
        if (more > INT32_MAX)
                return -E2BIG;
        more = more < wanted ? wanted : more;
        larger = realloc(*array, more * bytes);
        if (!larger)
                return -ENOMEM;
        *array = larger;
        *room = (uint32_t)more;
        return 0;
}

/* Leaves, until something else is put there. */
static int add_slots(struct sl_forest_layout *l, uint32_t count, uint32_t *ret_first)
{
        int result = grow((void **)&l->slots, &l->room, l->n_slots + count, sizeof(*l->slots));

        if (result < 0)
                return result;
        *ret_first = l->n_slots;
        for (uint32_t i = 0; i < count; i++)
                l->slots[l->n_slots++] = (struct sl_forest_slot){.key = SL_TREE_NEVER_64, .item = UINT32_MAX};
        return 0;
}

static int push(struct sl_forest_layout *l, uint32_t item, uint32_t slot)
{
        int result = grow((void **)&l->stack, &l->stack_room, l->n_stack + 1, sizeof(*l->stack));

        if (result < 0)
                return result;
        /* A leaf of one entry is as small as what leads to it. */
        if (l->seen[item] && (l->forest->items[item].mode != SL_BRANCH_LEAF || l->forest->items[item].count > 1))
                return refuse_item(l, item, "is led to twice");
        l->seen[item] = 1;
        l->stack[l->n_stack++] = (struct sl_forest_pending){item, slot};
        return 0;
}

uint32_t sl_forest_column(struct sl_forest_layout *l, uint32_t feature, bool low)
{
        uint32_t side = 2 * feature + low, first = 0, end = l->n_sides;

        while (end - first > 1) {
                uint32_t middle = first + (end - first) / 2;

                *(l->sides[middle] <= side ? &first : &end) = middle;
        }
        if (!l->numbers[first])
                l->numbers[first] = ++l->n_columns;
        return l->numbers[first] - 1;
}

static void set_branch(
        struct sl_forest_layout *l, uint32_t slot, const struct sl_forest_item *item, int64_t cut, bool nan_low, uint32_t pair)
{
        l->slots[slot].key = cut;
        l->slots[slot].column = sl_forest_column(l, item->feature, nan_low);
        l->slots[slot].offset = pair - slot;
}

/* One cut: what is at most the cut goes to the second of the pair. */
static int lay_branch(
        struct sl_forest_layout *l, const struct sl_forest_item *item, const struct sl_forest_cuts *set, uint32_t slot)
{
        uint32_t pair;
        int result = add_slots(l, 2, &pair);

        if (result < 0)
                return result;
        set_branch(l, slot, item, set->cuts[0], sl_forest_cuts_of_nan(set) == 0, pair);
        result = push(l, set->first ? item->no : item->yes, pair);
        return result < 0 ? result : push(l, set->first ? item->yes : item->no, pair + 1);
}

/* Nodes that jump: to `yes` or `no`, which lie side by side behind the search. */
#define JUMP_YES (UINT32_MAX - 1)
#define JUMP_NO  (UINT32_MAX - 2)

/* A search over the cuts [first, end); its outcomes are jumps that have no offset yet. Cuts are halved, so it is not deep. */
static int lay_search(struct sl_forest_layout *l, const struct sl_forest_item *item, const struct sl_forest_cuts *set,
        uint32_t first, uint32_t end, uint32_t slot)
{
        uint32_t middle = first + (end - first) / 2, pair;
        int result;

        if (first == end) {
                l->slots[slot].item = sl_forest_cuts_lead_to_yes(set, first) ? JUMP_YES : JUMP_NO;
                return 0;
        }
        result = add_slots(l, 2, &pair);
        if (result < 0)
                return result;
        set_branch(l, slot, item, set->cuts[middle], sl_forest_cuts_of_nan(set) <= middle, pair);
        result = lay_search(l, item, set, middle + 1, end, pair);
        return result < 0 ? result : lay_search(l, item, set, first, middle, pair + 1);
}

static int lay_jumps(struct sl_forest_layout *l, const struct sl_forest_item *item, const struct sl_forest_cuts *set, uint32_t slot)
{
        uint32_t before = l->n_slots, pair;
        int result = lay_search(l, item, set, 0, set->n, slot);

        if (result == 0)
                result = add_slots(l, 2, &pair);
        if (result < 0)
                return result;
        for (uint32_t i = slot; i < pair; i = i < before ? before : i + 1) {
                uint32_t jump = l->slots[i].item;

                if (jump != JUMP_YES && jump != JUMP_NO)
                        continue;
                l->slots[i].item = UINT32_MAX;
                l->slots[i].column = sl_forest_column(l, item->feature, false);
                l->slots[i].offset = pair + (jump == JUMP_NO) - i;
        }
        result = push(l, item->no, pair + 1);
        return result < 0 ? result : push(l, item->yes, pair);
}

static int lay_item(struct sl_forest_layout *l, struct sl_forest_pending at)
{
        const struct sl_forest_item *item = &l->forest->items[at.item];
        struct sl_forest_cuts set;

        if (item->mode == SL_BRANCH_LEAF) {
                l->slots[at.slot].item = at.item;
                return 0;
        }
        l->im->contradicts = item->feature >= l->features;
        if (l->im->contradicts)
                return sl_error_set(l->im->error, -sl_import_misfit_status(l->im, -EBADMSG),
                        "node \"%s\" (%s): its trees look at feature %u of %" PRId64, l->node->name, l->node->proto->op_type,
                        item->feature, l->features);
        if (item->yes >= l->forest->n_items || item->no >= l->forest->n_items)
                return refuse_item(l, at.item, "leads nowhere");
        set = sl_forest_cuts_of(l->forest, item, l->wide, l->cuts);
        return set.n == 1 ? lay_branch(l, item, &set, at.slot) : lay_jumps(l, item, &set, at.slot);
}

static int lay_tree(struct sl_forest_layout *l, uint32_t root, int32_t *ret_slot)
{
        uint32_t slot;
        int result = add_slots(l, 1, &slot);

        if (result == 0)
                result = push(l, root, slot);
        *ret_slot = (int32_t)slot;
        while (result == 0 && l->n_stack)
                result = lay_item(l, l->stack[--l->n_stack]);
        return result;
}

static int compare_sides(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Both sides of each feature that is looked at, once; feature 0 always. */
static void collect_sides(struct sl_forest_layout *l)
{
        uint32_t n = 1, kept = 0;

        for (uint32_t i = 0; i < l->forest->n_items; i++)
                if (l->forest->items[i].mode != SL_BRANCH_LEAF && l->forest->items[i].feature < l->features)
                        l->sides[n++] = 2 * l->forest->items[i].feature;
        qsort(l->sides, n, sizeof(*l->sides), compare_sides);
        for (uint32_t i = 0; i < n; i++)
                if (!kept || l->sides[i] != l->sides[kept - 1])
                        l->sides[kept++] = l->sides[i];
        l->n_sides = 2 * kept;
        for (uint32_t i = kept; i-- > 0;) {
                l->sides[2 * i + 1] = l->sides[i] + 1;
                l->sides[2 * i] = l->sides[i];
        }
}

static int layout_init(struct sl_forest_layout *l)
{
        size_t sides = 2 * (size_t)l->forest->n_items + 2;

        l->seen = calloc((size_t)l->forest->n_items + 1, 1);
        l->sides = calloc(sides, sizeof(*l->sides));
        l->numbers = calloc(sides, sizeof(*l->numbers));
        l->cuts = calloc(sl_forest_cuts_max(l->forest), sizeof(*l->cuts));
        if (!l->seen || !l->sides || !l->numbers || !l->cuts)
                return -ENOMEM;
        collect_sides(l);
        return 0;
}

static int lay_trees(struct sl_forest_layout *l, int32_t *roots)
{
        uint32_t last;
        int result = 0;

        for (uint32_t t = 0; t < l->forest->n_roots && result == 0; t++)
                result = lay_tree(l, l->forest->roots[t], &roots[t]);
        /* Behind the last place that a jump leads to lies another one, as behind any first child. */
        return result < 0 ? result : add_slots(l, 1, &last);
}

int sl_forest_emit(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_forest *forest, uint32_t rows,
        uint32_t to, uint32_t *ret_scores)
{
        const struct sl_tensor *x = &im->graph->values[rows].tensor;
        struct sl_draft draft = {.op = SL_OP_TREES, .n_inputs = 9, .n_outputs = 1, .inputs = {rows}};
        struct sl_forest_layout l = {.im = im, .node = node, .forest = forest, .wide = x->dtype == SL_DTYPE_F64};
        int32_t *roots;
        int result;

        if (x->shape.rank == 2 && x->shape.dims[1] < 0)
                return sl_import_unsettled(im, node, "how many features there are is not known");
        if (x->shape.rank != 2 || x->shape.dims[1] < 1 || x->shape.dims[1] > INT32_MAX / 2)
                return sl_import_misfit(im, node, "it wants rows of features");
        l.features = x->shape.dims[1];
        for (uint32_t i = 1; i < 9; i++)
                draft.inputs[i] = SL_VALUE_NONE;
        result = layout_init(&l);
        roots = result == 0 ? sl_forest_add_roots(&l, &draft) : NULL;
        if (result == 0)
                result = roots ? lay_trees(&l, roots) : -ENOMEM;
        if (result == 0)
                result = sl_forest_write_tables(&l, &draft, roots);
        layout_deinit(&l);
        while (draft.inputs[draft.n_inputs - 1] == SL_VALUE_NONE)
                draft.n_inputs--;
        if (result == 0)
                result = sl_attrs_set_int(&draft.attrs, SL_ATTR_MODE, forest->sum);
        if (result == 0)
                result = sl_attrs_set_int(&draft.attrs, SL_ATTR_LENGTH, forest->n_targets);
        if (result == 0)
                result = sl_attrs_set_int(&draft.attrs, SL_ATTR_TO, to);
        if (result == -E2BIG || l.refused)
                return sl_error_set(im->error, E2BIG, "node \"%s\" (%s): its trees take more memory than the limits allow",
                        node->name, node->proto->op_type);
        return result < 0 ? result : sl_import_emit_step(im, node, &draft, ret_scores);
}
