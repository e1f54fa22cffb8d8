/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A joint value that is wanted in a form is made from one that is there: from another form by a Transpose between two views, where
 * one of them stands for nothing, and from lanes apart by a Concat. That choice is fixed, so that a rehearsal costs what is done.
 */
#include "merge/weave.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "merge/weave_apart.h"

#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_weave *, sl_weave_free)

static uint32_t *entries_new(uint64_t n)
{
        uint32_t *entries = malloc((n + 1) * sizeof(*entries));

        if (entries)
                memset(entries, 0xff, (n + 1) * sizeof(*entries));
        return entries;
}

int sl_weave_new(const struct sl_match *match, struct sl_graph *graph, struct sl_error *error, struct sl_weave **ret_weave)
{
        SL_CLEANUP(sl_cleanup_sl_weave_free) struct sl_weave *weave = calloc(1, sizeof(*weave));

        if (!weave)
                return -ENOMEM;
        weave->match = match;
        weave->sizes = match->graphs[0];
        weave->graph = graph;
        weave->lanes = match->n_graphs;
        weave->error = error;
        weave->forms = entries_new((uint64_t)match->graphs[0]->n_values * SL_FORM_APART);
        weave->apart = calloc(weave->lanes, sizeof(*weave->apart));
        if (!weave->forms || !weave->apart)
                return -ENOMEM;
        for (uint32_t g = 0; g < weave->lanes; g++) {
                weave->apart[g] = entries_new(match->graphs[g]->n_values);
                if (!weave->apart[g])
                        return -ENOMEM;
        }
        *ret_weave = sl_take(weave);
        return 0;
}

struct sl_weave *sl_weave_free(struct sl_weave *weave)
{
        if (!weave)
                return NULL;
        for (uint32_t g = 0; weave->apart && g < weave->lanes; g++)
                free(weave->apart[g]);
        free(weave->apart);
        free(weave->forms);
        if (weave->rehearsal)
                sl_graph_free(weave->graph);
        free(weave);
        return NULL;
}

int sl_weave_rehearse(struct sl_weave *weave)
{
        if (weave->rehearsal)
                weave->graph = sl_graph_free(weave->graph);
        weave->rehearsal = true;
        for (uint32_t i = 0; i < weave->n_touched; i++)
                weave->forms[weave->touched[i]] = SL_VALUE_NONE;
        weave->n_touched = 0;
        return sl_graph_new(&weave->graph);
}

struct sl_weave_step sl_weave_step_of(const struct sl_weave *weave, uint32_t node)
{
        const struct sl_node *from = &weave->match->graphs[0]->nodes[node];

        return (struct sl_weave_step){.op = from->op, .name = from->name, .attrs = from->attrs, .epilogue = from->epilogue};
}

/* @learned: what inference cannot know while the batch is open. */
static int add_learned(
        struct sl_weave *weave, const struct sl_weave_step *step, const struct sl_shape *learned, uint32_t *ret_values)
{
        const struct sl_tensor nothing = {.dtype = SL_DTYPE_F32};
        uint32_t n_outputs = step->n_outputs ? step->n_outputs : 1, node;
        int r = 0;

        for (uint32_t i = 0; i < n_outputs && r == 0; i++)
                r = sl_graph_add_value(weave->graph, step->name, SL_VALUE_COMPUTED, &nothing, &ret_values[i]);
        if (r == 0)
                r = sl_graph_add_node(
                        weave->graph, step->op, step->name, step->inputs, step->n_inputs, ret_values, n_outputs, &node);
        if (r < 0)
                return sl_error_set(weave->error, -r, "no room for node \"%s\" of the merged graph", step->name);
        if (learned)
                weave->graph->values[ret_values[0]].learned = *learned;
        weave->graph->nodes[node].attrs = step->attrs;
        weave->graph->nodes[node].epilogue = step->epilogue;
        r = sl_graph_infer_node(weave->graph, node, weave->error);
        return r == 0 || r == -ENOMEM ? r : -ENOTSUP;
}

int sl_weave_add(struct sl_weave *weave, const struct sl_weave_step *step, uint32_t *ret_values)
{
        return add_learned(weave, step, NULL, ret_values);
}

/* A dimension that is open in both keeps its place by a 0; one more may be what is left over. */
static int settle_dims(const struct sl_shape *from, const struct sl_shape *to, int64_t ret_dims[SL_RANK_MAX])
{
        bool rest = false;

        for (uint32_t i = 0; i < to->rank; i++) {
                ret_dims[i] = to->dims[i];
                if (to->dims[i] == 0)
                        return -ENOTSUP;
                if (to->dims[i] > 0)
                        continue;
                if (i < from->rank && from->dims[i] == to->dims[i] && to->dims[i] == SL_DIM_BATCH) {
                        ret_dims[i] = 0;
                        continue;
                }
                if (rest)
                        return -ENOTSUP;
                rest = true;
                ret_dims[i] = -1;
        }
        return 0;
}

/* Sizes of which no two may differ where both are written the same. */
static bool is_known(const struct sl_shape *shape)
{
        for (uint32_t i = 0; i < shape->rank; i++)
                if (shape->dims[i] == SL_DIM_UNKNOWN)
                        return false;
        return true;
}

int sl_weave_reshape(struct sl_weave *weave, uint32_t value, const struct sl_shape *shape, uint32_t *ret_value)
{
        const struct sl_value *from = &weave->graph->values[value];
        struct sl_weave_step step = {.op = SL_OP_RESHAPE, .name = from->name, .n_inputs = 1, .inputs = {value}};
        int64_t dims[SL_RANK_MAX];

        if (is_known(shape) && sl_shape_equal(&from->tensor.shape, shape)) {
                *ret_value = value;
                return 0;
        }
        if (settle_dims(&from->tensor.shape, shape, dims) < 0 ||
                sl_attrs_set_ints(&step.attrs, SL_ATTR_SHAPE, dims, shape->rank) < 0)
                return -ENOTSUP;
        return add_learned(weave, &step, shape, ret_value);
}

int sl_weave_shape(const struct sl_weave *weave, uint32_t joint, uint32_t form, struct sl_shape *ret_shape)
{
        *ret_shape = weave->sizes->values[joint].tensor.shape;
        if (form == SL_FORM_LANE)
                return sl_weave_open_shape(weave, joint, 0, ret_shape);
        form = form == SL_FORM_INNER ? 1 : form;
        if (form >= ret_shape->rank || ret_shape->dims[form] <= 0 || ret_shape->dims[form] > INT32_MAX)
                return -ENOTSUP;
        ret_shape->dims[form] *= weave->lanes;
        return 0;
}

int sl_weave_open_shape(const struct sl_weave *weave, uint32_t joint, uint32_t axis, struct sl_shape *ret_shape)
{
        const struct sl_shape *shape = &weave->sizes->values[joint].tensor.shape;

        if (shape->rank >= SL_RANK_MAX || axis > shape->rank)
                return -ENOTSUP;
        *ret_shape = (struct sl_shape){.rank = shape->rank + 1};
        for (uint32_t i = 0; i < shape->rank; i++) {
                if (shape->dims[i] == SL_DIM_UNKNOWN)
                        return -ENOTSUP;
                ret_shape->dims[i + (i >= axis)] = shape->dims[i];
        }
        ret_shape->dims[axis] = weave->lanes;
        return 0;
}

static uint32_t *entry_of(const struct sl_weave *weave, uint32_t joint, uint32_t form)
{
        return &weave->forms[(uint64_t)joint * SL_FORM_APART + form];
}

/* What inference does not find in the merged node is known of the node that it stands for. */
static void learn(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t value)
{
        struct sl_value *made = &weave->graph->values[value];
        struct sl_shape shape;

        if (sl_weave_shape(weave, joint, form, &shape) < 0 || shape.rank != made->tensor.shape.rank)
                return;
        made->learned = shape;
        for (uint32_t i = 0; i < shape.rank; i++)
                if (made->tensor.shape.dims[i] == SL_DIM_UNKNOWN)
                        made->tensor.shape.dims[i] = shape.dims[i];
}

void sl_weave_set(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t value)
{
        uint32_t *entry = entry_of(weave, joint, form);

        learn(weave, joint, form, value);

        *entry = value;
        if (weave->rehearsal && weave->n_touched < SL_WEAVE_TOUCHED_MAX)
                weave->touched[weave->n_touched++] = (uint32_t)(entry - weave->forms);
}

/* The axis that stands at @from moves to @to. */
static int move_axis(struct sl_weave *weave, uint32_t value, uint32_t from, uint32_t to, uint32_t *ret_value)
{
        const struct sl_value *moved = &weave->graph->values[value];
        struct sl_weave_step step = {.op = SL_OP_TRANSPOSE, .name = moved->name, .n_inputs = 1, .inputs = {value}};
        uint32_t rank = moved->tensor.shape.rank;
        int64_t perm[SL_RANK_MAX];

        for (uint32_t i = 0, next = 0; i < rank; i++) {
                next += next == from;
                perm[i] = i == to ? from : next++;
        }
        if (sl_attrs_set_ints(&step.attrs, SL_ATTR_PERM, perm, rank) < 0)
                return -ENOTSUP;
        return sl_weave_add(weave, &step, ret_value);
}

/* Before which axis K stands in a form that is not folded. */
static uint32_t open_axis(uint32_t form)
{
        return form == SL_FORM_INNER ? 2 : form;
}

/* ReshapeAndTranspose: from open at one axis to open at the other, between views that open and fold. */
static int turn(struct sl_weave *weave, uint32_t joint, uint32_t value, uint32_t from, uint32_t to, uint32_t *ret_value)
{
        struct sl_shape open, folded;
        int r = sl_weave_open_shape(weave, joint, open_axis(from), &open);

        if (r == 0)
                r = sl_weave_shape(weave, joint, to, &folded);
        if (r == 0)
                r = sl_weave_reshape(weave, value, &open, &value);
        if (r == 0)
                r = move_axis(weave, value, open_axis(from), open_axis(to), &value);
        if (r == 0)
                r = sl_weave_reshape(weave, value, &folded, ret_value);
        weave->n_turns++;
        return r;
}

static int declare(struct sl_weave *weave, uint32_t joint, const struct sl_shape *shape, uint32_t *ret_value)
{
        const struct sl_value *value = &weave->sizes->values[joint];
        struct sl_tensor tensor = {.dtype = value->tensor.dtype, .shape = *shape};

        return sl_graph_add_value(weave->graph, value->name, SL_VALUE_INPUT, &tensor, ret_value);
}

/* A joint value of which some form is there already. */
static int make_form(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t *ret_value)
{
        for (uint32_t from = 0; from < SL_FORM_APART; from++)
                if (*entry_of(weave, joint, from) != SL_VALUE_NONE)
                        return turn(weave, joint, *entry_of(weave, joint, from), from, form, ret_value);
        weave->n_turns++;
        return sl_weave_join(weave, joint, form, ret_value);
}

int sl_weave_get(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t *ret_value)
{
        struct sl_shape shape;
        int r = sl_weave_shape(weave, joint, form, &shape);

        if (r < 0)
                return r;
        *ret_value = *entry_of(weave, joint, form);
        if (*ret_value != SL_VALUE_NONE)
                return 0;
        r = weave->rehearsal ? declare(weave, joint, &shape, ret_value) : make_form(weave, joint, form, ret_value);
        if (r == 0)
                sl_weave_set(weave, joint, form, *ret_value);
        return r;
}

int sl_weave_get_open(struct sl_weave *weave, uint32_t joint, uint32_t axis, uint32_t *ret_value)
{
        struct sl_shape shape;
        uint32_t folded;
        int r = sl_weave_open_shape(weave, joint, axis, &shape);

        if (r == 0)
                r = sl_weave_get(weave, joint, axis, &folded);
        return r < 0 || axis == SL_FORM_LANE ? (*ret_value = folded, r) : sl_weave_reshape(weave, folded, &shape, ret_value);
}

int sl_weave_set_lane(struct sl_weave *weave, uint32_t joint, uint32_t value)
{
        struct sl_shape shape;
        int r = sl_weave_open_shape(weave, joint, 0, &shape);

        if (r == 0)
                r = sl_weave_reshape(weave, value, &shape, &value);
        if (r == 0)
                sl_weave_set(weave, joint, SL_FORM_LANE, value);
        return r;
}

int sl_weave_set_open(struct sl_weave *weave, uint32_t joint, uint32_t axis, uint32_t value)
{
        struct sl_shape shape;
        int r = sl_weave_shape(weave, joint, axis, &shape);

        if (r == 0 && axis != SL_FORM_LANE)
                r = sl_weave_reshape(weave, value, &shape, &value);
        if (r == 0)
                sl_weave_set(weave, joint, axis, value);
        return r;
}

int sl_weave_get_apart(struct sl_weave *weave, uint32_t joint)
{
        if (weave->apart[0][weave->match->lane_of[0][joint]] != SL_VALUE_NONE)
                return 0;
        for (uint32_t form = 0; form < SL_FORM_APART; form++)
                if (*entry_of(weave, joint, form) != SL_VALUE_NONE) {
                        weave->n_turns++;
                        return sl_weave_part(weave, joint, form, *entry_of(weave, joint, form));
                }
        return -EINVAL;
}

static int rehearse_join(struct sl_weave *weave, uint32_t joint, uint32_t to)
{
        uint32_t value;
        int r = 0;

        for (uint32_t g = 0; g < weave->lanes && r == 0; g++)
                r = declare(
                        weave, joint, &weave->sizes->values[joint].tensor.shape, &weave->apart[g][weave->match->lane_of[g][joint]]);
        if (r == 0)
                r = sl_weave_join(weave, joint, to, &value);
        for (uint32_t g = 0; g < weave->lanes; g++)
                weave->apart[g][weave->match->lane_of[g][joint]] = SL_VALUE_NONE;
        return r;
}

int sl_weave_turn(struct sl_weave *weave, uint32_t joint, uint32_t from, uint32_t to)
{
        struct sl_shape shape;
        uint32_t value;
        int r;

        if (from == SL_FORM_APART)
                return rehearse_join(weave, joint, to);
        r = sl_weave_shape(weave, joint, from, &shape);
        if (r == 0)
                r = declare(weave, joint, &shape, &value);
        if (r == 0 && to != SL_FORM_APART)
                return turn(weave, joint, value, from, to, &value);
        if (r == 0)
                r = sl_weave_part(weave, joint, from, value);
        for (uint32_t g = 0; g < weave->lanes; g++)
                weave->apart[g][weave->match->lane_of[g][joint]] = SL_VALUE_NONE;
        return r;
}
