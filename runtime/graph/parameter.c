/*
 * Which inputs are parameters, and which attribute each becomes, is the operator table's to say (sl_op_parameter()). The node's
 * data stays input 0.
 */
#include "parameter.h"

#include "base/error.h"
#include "graph.h"
#include "ref/half.h"

#include <inttypes.h>
#include <string.h>

static bool is_reduce(uint32_t op)
{
        return (op >= SL_OP_REDUCE_MEAN && op <= SL_OP_REDUCE_LOG_SUM_EXP) || op == SL_OP_REDUCE_LOG_SUM;
}

static bool stands_as_input(const struct sl_node *node, uint32_t input)
{
        return node->inputs[input] != SL_VALUE_NONE && sl_op_parameter(node->op, input) >= 0;
}

bool sl_parameters_pending(const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (stands_as_input(node, i))
                        return true;
        return false;
}

static int read_ints(const struct sl_value *value, int64_t ints[SL_ATTR_INTS_MAX], uint32_t *ret_count)
{
        uint64_t count = sl_shape_elements(&value->tensor.shape);

        if (value->tensor.shape.rank > 1 || count > SL_ATTR_INTS_MAX)
                return -E2BIG;
        for (uint64_t i = 0; i < count; i++) {
                int32_t narrow;

                switch (value->tensor.dtype) {
                case SL_DTYPE_I64:
                        memcpy(&ints[i], (const uint8_t *)value->data + i * sizeof(int64_t), sizeof(int64_t));
                        break;
                case SL_DTYPE_I32:
                        memcpy(&narrow, (const uint8_t *)value->data + i * sizeof(narrow), sizeof(narrow));
                        ints[i] = narrow;
                        break;
                default:
                        return -EINVAL;
                }
        }
        *ret_count = (uint32_t)count;
        return 0;
}

#define READ_AS(type, convert)                                                                                                     \
        do {                                                                                                                       \
                type typed;                                                                                                        \
                memcpy(&typed, (const uint8_t *)value->data + index * sizeof(typed), sizeof(typed));                               \
                *ret_scalar = (double)convert(typed);                                                                              \
                return 0;                                                                                                          \
        } while (0)

/* Element @index as a number. */
static int read_scalar(const struct sl_value *value, uint32_t index, double *ret_scalar)
{
        if (index >= sl_shape_elements(&value->tensor.shape))
                return -EINVAL;
        switch (value->tensor.dtype) {
        case SL_DTYPE_F32:
                READ_AS(float, );
        case SL_DTYPE_F64:
                READ_AS(double, );
        case SL_DTYPE_F16:
                READ_AS(uint16_t, sl_ref_from_f16);
        case SL_DTYPE_BF16:
                READ_AS(uint16_t, sl_ref_from_bf16);
        case SL_DTYPE_I8:
                READ_AS(int8_t, );
        case SL_DTYPE_I16:
                READ_AS(int16_t, );
        case SL_DTYPE_I32:
                READ_AS(int32_t, );
        case SL_DTYPE_I64:
                READ_AS(int64_t, );
        case SL_DTYPE_U8:
        case SL_DTYPE_BOOL:
                READ_AS(uint8_t, );
        case SL_DTYPE_U16:
                READ_AS(uint16_t, );
        case SL_DTYPE_U32:
                READ_AS(uint32_t, );
        case SL_DTYPE_U64:
                READ_AS(uint64_t, );
        default:
                return -EINVAL;
        }
}

static int absorb_ints(struct sl_node *node, uint32_t attr, const struct sl_value *value)
{
        int64_t ints[SL_ATTR_INTS_MAX];
        uint32_t count;
        int result = read_ints(value, ints, &count);

        if (result < 0)
                return result;
        /* Empty axes of a reduction mean what absent ones mean. */
        if (!count && is_reduce(node->op))
                return 0;
        return sl_attrs_set_ints(&node->attrs, attr, ints, count);
}

static int absorb_int(struct sl_node *node, uint32_t attr, const struct sl_value *value)
{
        int64_t ints[SL_ATTR_INTS_MAX];
        uint32_t count;
        int result = read_ints(value, ints, &count);

        if (result < 0)
                return result;
        return count == 1 ? sl_attrs_set_int(&node->attrs, attr, ints[0]) : -EINVAL;
}

static int absorb_float(struct sl_node *node, uint32_t attr, const struct sl_value *value)
{
        double scalar;
        int result = read_scalar(value, 0, &scalar);

        if (sl_shape_elements(&value->tensor.shape) != 1)
                return -EINVAL;
        return result < 0 ? result : sl_attrs_set_float(&node->attrs, attr, scalar);
}

static int absorb_floats(struct sl_node *node, uint32_t attr, const struct sl_value *value)
{
        uint64_t count = sl_shape_elements(&value->tensor.shape);
        double floats[SL_ATTR_INTS_MAX];
        int result = 0;

        if (value->tensor.shape.rank > 1 || count > SL_ATTR_INTS_MAX)
                return -E2BIG;
        for (uint32_t i = 0; i < count && result == 0; i++)
                result = read_scalar(value, i, &floats[i]);
        return result < 0 ? result : sl_attrs_set_floats(&node->attrs, attr, floats, (uint32_t)count);
}

static int absorb_one(struct sl_graph *graph, struct sl_node *node, uint32_t input, uint32_t attr)
{
        const struct sl_value *value = &graph->values[node->inputs[input]];
        int result;

        switch (sl_op_parameter_type(node->op, input)) {
        case SL_ATTR_TYPE_INT:
                result = absorb_int(node, attr, value);
                break;
        case SL_ATTR_TYPE_FLOAT:
                result = absorb_float(node, attr, value);
                break;
        case SL_ATTR_TYPE_FLOATS:
                result = absorb_floats(node, attr, value);
                break;
        default:
                result = absorb_ints(node, attr, value);
                break;
        }
        if (result == 0)
                node->inputs[input] = SL_VALUE_NONE;
        return result;
}

static void trim_inputs(struct sl_node *node)
{
        while (node->n_inputs > 0 && node->inputs[node->n_inputs - 1] == SL_VALUE_NONE)
                node->n_inputs--;
}

/* Pads of some axes become pads of all of them, which is what kernels know. */
static int spread_pads(const struct sl_graph *graph, struct sl_node *node)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        const struct sl_attr *pads = sl_attrs_find(&node->attrs, SL_ATTR_PADS);
        int64_t all[SL_ATTR_INTS_MAX] = {0};
        uint32_t rank, count;

        if (!axes || !pads || node->inputs[0] == SL_VALUE_NONE)
                return 0;
        rank = graph->values[node->inputs[0]].tensor.shape.rank;
        count = axes->count;
        if (pads->count != 2 * count)
                return -EINVAL;
        for (uint32_t i = 0; i < count; i++) {
                int64_t axis = axes->ints[i] < 0 ? axes->ints[i] + rank : axes->ints[i];

                if (axis < 0 || axis >= rank)
                        return -EINVAL;
                all[axis] = pads->ints[i];
                all[axis + rank] = pads->ints[i + count];
        }
        sl_attrs_remove(&node->attrs, SL_ATTR_AXES);
        return sl_attrs_set_ints(&node->attrs, SL_ATTR_PADS, all, 2 * rank);
}

int sl_parameters_absorb(struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        struct sl_node *node = &graph->nodes[index];
        int result = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (!stands_as_input(node, i) || graph->values[node->inputs[i]].kind != SL_VALUE_CONSTANT)
                        continue;
                uint32_t attr = (uint32_t)sl_op_parameter(node->op, i);

                result = absorb_one(graph, node, i, attr);
                if (result < 0)
                        return sl_error_set(error, -result,
                                "node \"%s\" (%s): its %s has a wrong type, rank or length (at most %d)", node->name,
                                sl_op_name(node->op), sl_attr_name(attr), SL_ATTR_INTS_MAX);
        }
        trim_inputs(node);
        if (node->op == SL_OP_PAD && !sl_parameters_pending(node))
                result = spread_pads(graph, node);
        if (result < 0)
                return sl_error_set(error, -result, "node \"%s\" (Pad): pads and axes do not fit the rank", node->name);
        return 0;
}
