/* SPDX-License-Identifier: Apache-2.0 */
#include "recurrent.h"

#include "rules.h"

#include <inttypes.h>

/* Everything is counted in 32 bits, so that products of two sizes never overflow. */
#define SIZE_MAX_OF_RNN INT32_MAX

static void read_form(const struct sl_node_desc *node, struct sl_recurrence *r)
{
        int64_t direction = sl_attrs_int(&node->attrs, SL_ATTR_DIRECTION, 0);

        r->directions = direction == 2 ? 2 : 1;
        r->backward = direction == 1;
        r->gates = node->op == SL_OP_LSTM ? 4 : node->op == SL_OP_GRU ? 3 : 1;
        r->functions = node->op == SL_OP_LSTM ? 3 : node->op == SL_OP_GRU ? 2 : 1;
        r->batch_first = sl_attrs_int(&node->attrs, SL_ATTR_LAYOUT, 0) != 0;
        r->input_forget = sl_attrs_int(&node->attrs, SL_ATTR_INPUT_FORGET, 0) != 0;
        r->linear_before_reset = sl_attrs_int(&node->attrs, SL_ATTR_LINEAR_BEFORE_RESET, 0) != 0;
        r->clip = sl_attrs_float(&node->attrs, SL_ATTR_CLIP, 0);
}

static uint32_t usual_function(uint32_t op, uint32_t i)
{
        return op != SL_OP_RNN && i == 0 ? SL_GATE_SIGMOID : SL_GATE_TANH;
}

static int read_functions(const struct sl_node_desc *node, struct sl_recurrence *r, struct sl_error *error)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, SL_ATTR_ACTIVATIONS);

        if (list && (list->type != SL_ATTR_TYPE_INTS || list->count != r->directions * r->functions))
                return sl_error_set(error, EINVAL, "attribute activations has %u elements, wants %u", list->count,
                        r->directions * r->functions);
        for (uint32_t d = 0; d < r->directions; d++)
                for (uint32_t i = 0; i < r->functions; i++) {
                        uint32_t at = d * r->functions + i;
                        int64_t kind = list ? list->ints[at] : usual_function(node->op, i);

                        if (kind < 0 || kind >= SL_GATE_COUNT)
                                return sl_error_set(error, EINVAL,
                                        "attribute activations has the element %" PRId64 ", outside [0,%d]", kind,
                                        SL_GATE_COUNT - 1);
                        r->function[d][i].kind = (uint32_t)kind;
                        r->function[d][i].alpha = sl_attrs_floats(&node->attrs, SL_ATTR_ACTIVATION_ALPHA, at, 0);
                        r->function[d][i].beta = sl_attrs_floats(&node->attrs, SL_ATTR_ACTIVATION_BETA, at, 0);
                }
        return 0;
}

/* -EINVAL unless input @index is [a,b,c] (as many of them as @rank). */
static int check_shape(const struct sl_node_desc *node, uint32_t index, const struct sl_shape *want, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[index].shape;
        char text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];
        bool same = shape->rank == want->rank;
        int64_t merged;

        for (uint32_t i = 0; i < want->rank && same; i++)
                same = !sl_dim_merge(shape->dims[i], want->dims[i], &merged);
        if (same)
                return 0;
        return sl_error_set(
                error, EINVAL, "input %u is %s, wants %s", index, sl_shape_print(shape, text), sl_shape_print(want, want_text));
}

#define WANT(...)                                                                                                                  \
        &(struct sl_shape)                                                                                                         \
        {                                                                                                                          \
                .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }                                \
        }

static int check_states(const struct sl_node_desc *node, const struct sl_recurrence *r, struct sl_error *error)
{
        const struct sl_shape by_direction = {.rank = 3, .dims = {r->directions, r->batch, r->hidden}};
        const struct sl_shape by_batch = {.rank = 3, .dims = {r->batch, r->directions, r->hidden}};
        const struct sl_shape *state = r->batch_first ? &by_batch : &by_direction;
        int result = 0;

        if (sl_input_present(node, SL_RNN_LENGTHS)) {
                result = sl_vector_of(node, SL_RNN_LENGTHS, r->batch, error);
                if (!result && node->inputs[SL_RNN_LENGTHS].dtype != SL_DTYPE_I32)
                        return sl_error_set(error, EINVAL, "input %d is %s, wants int32", SL_RNN_LENGTHS,
                                sl_dtype_name(node->inputs[SL_RNN_LENGTHS].dtype));
        }
        for (uint32_t i = SL_RNN_H; i <= SL_RNN_C && !result; i++)
                if (sl_input_present(node, i))
                        result = check_shape(node, i, state, error);
        return result;
}

static int check_weights(const struct sl_node_desc *node, const struct sl_recurrence *r, struct sl_error *error)
{
        int64_t directions = r->directions, rows = sl_dim_known(r->hidden) ? r->gates * r->hidden : SL_DIM_UNKNOWN;
        int result = check_shape(node, SL_RNN_W, WANT(directions, rows, r->inputs), error);

        if (!result)
                result = check_shape(node, SL_RNN_R, WANT(directions, rows, r->hidden), error);
        if (!result && sl_input_present(node, SL_RNN_B))
                result = check_shape(node, SL_RNN_B, WANT(directions, rows < 0 ? rows : 2 * rows), error);
        if (!result && sl_input_present(node, SL_RNN_P))
                result = check_shape(node, SL_RNN_P, WANT(directions, rows < 0 ? rows : 3 * r->hidden), error);
        for (uint32_t i = SL_RNN_W; i <= SL_RNN_P && !result; i++)
                if (i != SL_RNN_LENGTHS && sl_input_present(node, i))
                        result = sl_same_dtype(node, i, error);
        return result;
}

int sl_recurrence_read(const struct sl_node_desc *node, struct sl_recurrence *ret_recurrence, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[SL_RNN_X].shape, *recurrent = &node->inputs[SL_RNN_R].shape;
        int64_t told = sl_attrs_int(&node->attrs, SL_ATTR_HIDDEN_SIZE, SL_DIM_UNKNOWN);
        struct sl_recurrence r = {.clip = 0};
        int result;

        if (x->rank != 3 || recurrent->rank != 3)
                return sl_error_set(error, EINVAL, "inputs 0 and 2 have ranks %u and %u, want 3", x->rank, recurrent->rank);
        read_form(node, &r);
        r.steps = x->dims[r.batch_first];
        r.batch = x->dims[!r.batch_first];
        r.inputs = x->dims[2];
        if (told < SL_DIM_UNKNOWN || told == SL_DIM_BATCH || sl_dim_merge(recurrent->dims[2], told, &r.hidden))
                return sl_error_set(error, EINVAL, "attribute hidden_size is %" PRId64 ", input 2 has %" PRId64 " columns", told,
                        recurrent->dims[2]);
        if (r.steps > SIZE_MAX_OF_RNN || r.batch > SIZE_MAX_OF_RNN || r.hidden > SIZE_MAX_OF_RNN || r.inputs > SIZE_MAX_OF_RNN)
                return sl_error_set(error, EOVERFLOW, "a size of the recurrence exceeds %d", SIZE_MAX_OF_RNN);
        result = read_functions(node, &r, error);
        result = result ? result : check_weights(node, &r, error);
        result = result ? result : check_states(node, &r, error);
        if (!result)
                *ret_recurrence = r;
        return result;
}

int sl_shape_recurrent(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_recurrence r;
        int result = sl_recurrence_read(node, &r, error);

        if (result)
                return result;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                node->outputs[i].dtype = node->inputs[0].dtype;
        if (r.batch_first)
                node->outputs[0].shape = *WANT(r.batch, r.steps, r.directions, r.hidden);
        else
                node->outputs[0].shape = *WANT(r.steps, r.directions, r.batch, r.hidden);
        for (uint32_t i = 1; i < node->n_outputs; i++)
                node->outputs[i].shape =
                        r.batch_first ? *WANT(r.batch, r.directions, r.hidden) : *WANT(r.directions, r.batch, r.hidden);
        return 0;
}
