/* SPDX-License-Identifier: Apache-2.0 */
#include "slice.h"

#include "rules.h"

#include <inttypes.h>

/* What stands for "to the end" in the files of the exporters. */
#define FAR INT32_MAX

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
        return value < least ? least : value > most ? most : value;
}

static struct sl_slice resolve_known(int64_t dim, int64_t start, int64_t end, int64_t step)
{
        struct sl_slice slice = {.step = step};

        start += start < 0 ? dim : 0;
        end += end < 0 ? dim : 0;
        if (step > 0) {
                slice.first = clamp(start, 0, dim);
                end = clamp(end, 0, dim);
                slice.count = end > slice.first ? (end - slice.first - 1) / step + 1 : 0;
        } else {
                slice.first = clamp(start, 0, dim - 1);
                end = clamp(end, -1, dim - 1);
                /* -(step + 1) + 1 would overflow for the least integer: divide by the negative step instead. */
                slice.count = dim && end < slice.first ? (end - slice.first + 1) / step + 1 : 0;
        }
        return slice;
}

/* Of a dimension without a size only the whole, forwards or backwards, is known to keep it. */
static struct sl_slice resolve_symbolic(int64_t dim, int64_t start, int64_t end, int64_t step)
{
        bool forwards = step == 1 && start == 0 && end >= FAR;
        bool backwards = step == -1 && (start == -1 || start >= FAR) && end <= -FAR;

        return (struct sl_slice){.first = 0, .step = step, .count = forwards || backwards ? dim : SL_DIM_UNKNOWN};
}

static int64_t element(const struct sl_attr *list, uint32_t index, int64_t fallback)
{
        return list ? list->ints[index] : fallback;
}

static int check_length(const struct sl_attr *list, uint32_t count, struct sl_error *error)
{
        if (!list || (list->type == SL_ATTR_TYPE_INTS && list->count == count))
                return 0;
        return sl_error_set(
                error, EINVAL, "attribute %s has %u elements, the others have %u", sl_attr_name(list->id), list->count, count);
}

/* The attributes of a Slice; a list is NULL when it stands as an input, `pending` when that leaves dimensions unknown. */
struct slice_lists {
        const struct sl_attr *starts, *ends, *axes, *steps;
        bool pending;
        uint32_t count;
};

static int read_lists(const struct sl_node_desc *node, struct slice_lists *lists, struct sl_error *error)
{
        int r = sl_list_or_input(node, SL_ATTR_STARTS, 1, &lists->starts, error);

        r = r ? r : sl_list_or_input(node, SL_ATTR_ENDS, 2, &lists->ends, error);
        if (r)
                return r;
        lists->axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        lists->steps = sl_attrs_find(&node->attrs, SL_ATTR_STEPS);
        lists->pending = !lists->starts || !lists->ends || (!lists->steps && sl_input_present(node, 4));
        const struct sl_attr *any = lists->starts ? lists->starts : lists->ends ? lists->ends : lists->axes;
        lists->count = any ? any->count : node->inputs[0].shape.rank;
        r = check_length(lists->starts, lists->count, error);
        r = r ? r : check_length(lists->ends, lists->count, error);
        r = r ? r : check_length(lists->axes, lists->count, error);
        r = r ? r : check_length(lists->steps, lists->count, error);
        if (!r && lists->count > node->inputs[0].shape.rank)
                return sl_error_set(error, EINVAL, "attribute starts has %u elements, input 0 has rank %u", lists->count,
                        node->inputs[0].shape.rank);
        return r;
}

static int read_slice(const struct slice_lists *lists, uint32_t i, int64_t dim, struct sl_slice *ret_slice, struct sl_error *error)
{
        int64_t start = element(lists->starts, i, 0), end = element(lists->ends, i, 0), step = element(lists->steps, i, 1);

        if (!step)
                return sl_error_set(error, EINVAL, "attribute steps has the element 0");
        if (lists->pending)
                *ret_slice = (struct sl_slice){.step = 1, .count = SL_DIM_UNKNOWN};
        else if (sl_dim_known(dim))
                *ret_slice = resolve_known(dim, start, end, step);
        else
                *ret_slice = resolve_symbolic(dim, start, end, step);
        return 0;
}

int sl_slice_read(const struct sl_node_desc *node, struct sl_slice ret_slices[SL_RANK_MAX], struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool axes_pending = !sl_attrs_find(&node->attrs, SL_ATTR_AXES) && sl_input_present(node, 3);
        struct slice_lists lists;
        uint32_t mask = 0;
        int r = read_lists(node, &lists, error);

        if (!r && lists.axes)
                r = sl_axes_resolve(lists.axes, in->rank, &mask, error);
        for (uint32_t i = 0; i < in->rank; i++)
                ret_slices[i] = (struct sl_slice){.step = 1, .count = axes_pending ? SL_DIM_UNKNOWN : in->dims[i]};
        for (uint32_t i = 0; i < lists.count && !axes_pending && !r; i++) {
                int64_t axis = element(lists.axes, i, i);

                axis += axis < 0 ? in->rank : 0;
                r = read_slice(&lists, i, in->dims[axis], &ret_slices[axis], error);
        }
        return r;
}

int sl_pads_read(
        const struct sl_node_desc *node, int64_t ret_begin[SL_RANK_MAX], int64_t ret_end[SL_RANK_MAX], struct sl_error *error)
{
        const struct sl_attr *pads = sl_attrs_find(&node->attrs, SL_ATTR_PADS);
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t rank = node->inputs[0].shape.rank, mask, count = axes ? axes->count : rank;
        int r = axes ? sl_axes_resolve(axes, rank, &mask, error) : 0;

        if (r)
                return r;
        if (pads->type != SL_ATTR_TYPE_INTS || pads->count != 2 * count)
                return sl_error_set(error, EINVAL, "attribute pads has %u elements, wants %u", pads->count, 2 * count);
        for (uint32_t i = 0; i < rank; i++)
                ret_begin[i] = ret_end[i] = 0;
        for (uint32_t i = 0; i < count; i++) {
                int64_t axis = axes ? axes->ints[i] : i;

                axis += axis < 0 ? rank : 0;
                ret_begin[axis] = pads->ints[i];
                ret_end[axis] = pads->ints[count + i];
        }
        return 0;
}
