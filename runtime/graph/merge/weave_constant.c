/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of the lanes: the same one in all of them, or laid together. */
#include "base/clock.h"
#include "base/error.h"
#include "merge/weave.h"

#include <string.h>

static const struct sl_value *constant_of(const struct sl_weave *weave, uint32_t lane, uint32_t node, uint32_t input)
{
        const struct sl_graph *graph = weave->match->graphs[lane];

        return &graph->values[graph->nodes[node].inputs[input]];
}

bool sl_weave_has_input(const struct sl_weave *weave, uint32_t node, uint32_t input)
{
        const struct sl_node *n = &weave->match->graphs[0]->nodes[node];

        return input < n->n_inputs && n->inputs[input] != SL_VALUE_NONE;
}

bool sl_weave_is_constant(const struct sl_weave *weave, uint32_t node, uint32_t input)
{
        return sl_weave_has_input(weave, node, input) && constant_of(weave, 0, node, input)->kind == SL_VALUE_CONSTANT;
}

/* Of constants the match says that they have one shape in all graphs; of others the sizes may be those of a batch. */
const struct sl_tensor *sl_weave_input(const struct sl_weave *weave, uint32_t node, uint32_t input)
{
        return &weave->sizes->values[weave->match->graphs[0]->nodes[node].inputs[input]].tensor;
}

const struct sl_tensor *sl_weave_output(const struct sl_weave *weave, uint32_t node, uint32_t output)
{
        return &weave->sizes->values[weave->match->graphs[0]->nodes[node].outputs[output]].tensor;
}

/* The node of lane @lane that stands for @node of the first graph. */
static uint32_t node_of(const struct sl_weave *weave, uint32_t lane, uint32_t node)
{
        return weave->match->nodes[lane][weave->match->number_of[node]];
}

bool sl_weave_is_shared(const struct sl_weave *weave, uint32_t node, uint32_t input)
{
        const struct sl_value *first = constant_of(weave, 0, node, input);
        bool weight = sl_dtype_is_float(first->tensor.dtype) && sl_shape_elements(&first->tensor.shape) != 1;

        if (!sl_weave_is_constant(weave, node, input) || weight)
                return false;
        for (uint32_t g = 1; g < weave->lanes && first->data_bytes; g++)
                if (memcmp(first->data, constant_of(weave, g, node_of(weave, g, node), input)->data, first->data_bytes))
                        return false;
        return true;
}

int sl_weave_share(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t *ret_value)
{
        const struct sl_value *from = constant_of(weave, 0, node, input);

        return sl_graph_add_constant(weave->graph, from->name, &from->tensor, from->data, ret_value);
}

/* Elements before the axis, along it, and behind it, of one lane and of what is made. */
struct block {
        uint64_t outer, along, made_along, inner;
};

static struct block block_of(const struct sl_shape *shape, const struct sl_stack *stack)
{
        struct block block = {1, 1, 1, 1};

        if (stack->form == SL_FORM_LANE)
                return (struct block){1, 1, 1, sl_shape_elements(shape)};
        for (uint32_t i = 0; i < stack->form; i++)
                block.outer *= (uint64_t)shape->dims[i];
        for (uint32_t i = stack->form + 1; i < shape->rank; i++)
                block.inner *= (uint64_t)shape->dims[i];
        block.along = (uint64_t)shape->dims[stack->form];
        block.made_along = stack->repeats ? (uint64_t)stack->repeats : block.along;
        return block;
}

static void lay_lane(const struct block *b, uint64_t element, uint32_t lane, uint32_t lanes, const uint8_t *from, uint8_t *to)
{
        uint64_t bytes = b->inner * element, step = b->made_along != b->along ? 0 : 1;

        for (uint64_t o = 0; o < b->outer; o++)
                for (uint64_t j = 0; j < b->made_along; j++)
                        memcpy(to + ((o * lanes + lane) * b->made_along + j) * bytes, from + (o * b->along + j * step) * bytes,
                                bytes);
}

/* The axis that lanes are folded into. */
static uint32_t axis_of(const struct sl_stack *stack)
{
        return stack->form == SL_FORM_INNER ? stack->axis : stack->form;
}

/* Behind the axis: lanes are neighbours. */
static void lay_inner(const struct sl_shape *shape, const struct sl_stack *stack, uint64_t element, uint32_t lane, uint32_t lanes,
        const uint8_t *from, uint8_t *to)
{
        uint64_t outer = 1, bytes = element, along = (uint64_t)shape->dims[stack->axis];
        uint64_t made = stack->repeats ? (uint64_t)stack->repeats : along, step = stack->repeats ? 0 : 1;

        for (uint32_t i = 0; i < stack->axis; i++)
                outer *= (uint64_t)shape->dims[i];
        for (uint32_t i = stack->axis + 1; i < shape->rank; i++)
                bytes *= (uint64_t)shape->dims[i];
        for (uint64_t o = 0; o < outer; o++)
                for (uint64_t j = 0; j < made; j++)
                        memcpy(to + ((o * made + j) * lanes + lane) * bytes, from + (o * along + j * step) * bytes, bytes);
}

static void transpose(uint64_t rows, uint64_t columns, uint64_t element, const uint8_t *from, uint8_t *to)
{
        for (uint64_t i = 0; i < rows; i++)
                for (uint64_t j = 0; j < columns; j++)
                        memcpy(to + (j * rows + i) * element, from + (i * columns + j) * element, element);
}

static void lay_all(const struct sl_weave *weave, uint32_t node, uint32_t input, const struct sl_stack *stack,
        const struct sl_tensor *one, uint8_t *ret_data)
{
        const struct block block = stack->form == SL_FORM_INNER ? (struct block){0} : block_of(&one->shape, stack);
        uint64_t element = sl_dtype_bytes(one->dtype), bytes = sl_tensor_bytes(one);

        for (uint32_t g = 0; g < weave->lanes; g++) {
                const uint8_t *from = constant_of(weave, g, node_of(weave, g, node), input)->data;

                if (stack->transposed)
                        transpose((uint64_t)one->shape.dims[0], (uint64_t)one->shape.dims[1], element, from, ret_data + g * bytes);
                else if (stack->form == SL_FORM_INNER)
                        lay_inner(&one->shape, stack, element, g, weave->lanes, from, ret_data);
                else
                        lay_lane(&block, element, g, weave->lanes, from, ret_data);
        }
}

static int stacked_shape(const struct sl_weave *weave, const struct sl_stack *stack, struct sl_shape *shape)
{
        int64_t *dims = shape->dims;

        if (stack->transposed) {
                *shape = (struct sl_shape){.rank = 3, .dims = {weave->lanes, dims[1], dims[0]}};
                return 0;
        }
        if (stack->form != SL_FORM_LANE) {
                dims[axis_of(stack)] = (stack->repeats ? stack->repeats : dims[axis_of(stack)]) * weave->lanes;
                return 0;
        }
        if (shape->rank >= SL_RANK_MAX)
                return -ENOTSUP;
        memmove(dims + 1, dims, shape->rank * sizeof(*dims));
        dims[0] = weave->lanes;
        shape->rank++;
        return 0;
}

/* With dimensions of 1 in front. */
static int widen(struct sl_shape *shape, uint32_t rank)
{
        uint32_t more = rank > shape->rank ? rank - shape->rank : 0;

        if (shape->rank > rank || rank > SL_RANK_MAX)
                return -ENOTSUP;
        memmove(shape->dims + more, shape->dims, shape->rank * sizeof(*shape->dims));
        for (uint32_t i = 0; i < more; i++)
                shape->dims[i] = 1;
        shape->rank = rank;
        return 0;
}

int sl_weave_stack(struct sl_weave *weave, uint32_t node, uint32_t input, const struct sl_stack *stack, uint32_t *ret_value)
{
        const struct sl_value *first = constant_of(weave, 0, node, input);
        struct sl_tensor one = first->tensor, made;
        uint8_t *data = NULL;
        int r = widen(&one.shape, stack->rank);

        if (r < 0 || (stack->form != SL_FORM_LANE && axis_of(stack) >= one.shape.rank))
                return -ENOTSUP;
        made = one;
        r = stacked_shape(weave, stack, &made.shape);
        if (r < 0 || sl_tensor_bytes(&made) > INT64_MAX)
                return -ENOTSUP;
        if (!weave->rehearsal) {
                uint64_t from = sl_clock_ns();

                data = sl_graph_alloc(weave->graph, sl_tensor_bytes(&made) + 1);
                if (!data)
                        return sl_error_set(weave->error, ENOMEM, "no memory to lay constants \"%s\" together", first->name);
                lay_all(weave, node, input, stack, &one, data);
                weave->laying_ns += sl_clock_ns() - from;
        }
        weave->stacked_bytes += sl_tensor_bytes(&made);
        return sl_graph_add_constant(weave->graph, first->name, &made, data, ret_value);
}
