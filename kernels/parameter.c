/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which inputs are parameters: integers that decide the shape or the meaning, not data.
 */
#include "op.h"

#include <errno.h>
#include <stddef.h>

static const struct {
        uint16_t op, input, attr, type;
} parameters[] = {
        {SL_OP_CLIP, 1, SL_ATTR_MIN, SL_ATTR_TYPE_FLOAT},
        {SL_OP_CLIP, 2, SL_ATTR_MAX, SL_ATTR_TYPE_FLOAT},
        {SL_OP_SLICE, 1, SL_ATTR_STARTS, SL_ATTR_TYPE_INTS},
        {SL_OP_SLICE, 2, SL_ATTR_ENDS, SL_ATTR_TYPE_INTS},
        {SL_OP_SLICE, 3, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_SLICE, 4, SL_ATTR_STEPS, SL_ATTR_TYPE_INTS},
        {SL_OP_SPLIT, 1, SL_ATTR_SPLIT, SL_ATTR_TYPE_INTS},
        {SL_OP_RESHAPE, 1, SL_ATTR_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_SQUEEZE, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_UNSQUEEZE, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_PAD, 1, SL_ATTR_PADS, SL_ATTR_TYPE_INTS},
        {SL_OP_PAD, 2, SL_ATTR_VALUE, SL_ATTR_TYPE_FLOAT},
        {SL_OP_PAD, 3, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_MEAN, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_SUM, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_MAX, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_MIN, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_PROD, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_L1, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_L2, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_SUM_SQUARE, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_LOG_SUM_EXP, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_EXPAND, 1, SL_ATTR_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_TILE, 1, SL_ATTR_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_CONSTANT_OF_SHAPE, 0, SL_ATTR_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_REDUCE_LOG_SUM, 1, SL_ATTR_AXES, SL_ATTR_TYPE_INTS},
        {SL_OP_CENTER_CROP_PAD, 1, SL_ATTR_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_RESIZE, 1, SL_ATTR_ROI, SL_ATTR_TYPE_FLOATS},
        {SL_OP_RESIZE, 2, SL_ATTR_SCALES, SL_ATTR_TYPE_FLOATS},
        {SL_OP_RESIZE, 3, SL_ATTR_SIZES, SL_ATTR_TYPE_INTS},
        {SL_OP_TOP_K, 1, SL_ATTR_K, SL_ATTR_TYPE_INT},
        {SL_OP_NON_MAX_SUPPRESSION, 2, SL_ATTR_MAX_BOXES, SL_ATTR_TYPE_INT},
        {SL_OP_MAX_UNPOOL, 2, SL_ATTR_OUTPUT_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_TRILU, 1, SL_ATTR_K, SL_ATTR_TYPE_INT},
        {SL_OP_ONE_HOT, 2, SL_ATTR_DEPTH, SL_ATTR_TYPE_FLOAT},
        {SL_OP_CUM_SUM, 1, SL_ATTR_AXIS, SL_ATTR_TYPE_INT},
        {SL_OP_CUM_PROD, 1, SL_ATTR_AXIS, SL_ATTR_TYPE_INT},
        {SL_OP_COL2IM, 1, SL_ATTR_SIZES, SL_ATTR_TYPE_INTS},
        {SL_OP_COL2IM, 2, SL_ATTR_KERNEL_SHAPE, SL_ATTR_TYPE_INTS},
        {SL_OP_HANN_WINDOW, 0, SL_ATTR_LENGTH, SL_ATTR_TYPE_INT},
        {SL_OP_HAMMING_WINDOW, 0, SL_ATTR_LENGTH, SL_ATTR_TYPE_INT},
        {SL_OP_BLACKMAN_WINDOW, 0, SL_ATTR_LENGTH, SL_ATTR_TYPE_INT},
        {SL_OP_MEL_WEIGHTS, 3, SL_ATTR_BINS, SL_ATTR_TYPE_INT},
        {SL_OP_MEL_WEIGHTS, 4, SL_ATTR_LENGTH, SL_ATTR_TYPE_INT},
        {SL_OP_DFT, 1, SL_ATTR_LENGTH, SL_ATTR_TYPE_INT},
        {SL_OP_DFT, 2, SL_ATTR_AXIS, SL_ATTR_TYPE_INT},
        {SL_OP_STFT, 1, SL_ATTR_STEP, SL_ATTR_TYPE_INT},
        {SL_OP_STFT, 3, SL_ATTR_LENGTH, SL_ATTR_TYPE_INT},
        {SL_OP_AFFINE_GRID, 1, SL_ATTR_SIZES, SL_ATTR_TYPE_INTS},
};

int sl_op_parameter(uint32_t op, uint32_t input)
{
        for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
                if (parameters[i].op == op && parameters[i].input == input)
                        return parameters[i].attr;
        return -ENOENT;
}

enum sl_attr_type sl_op_parameter_type(uint32_t op, uint32_t input)
{
        for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
                if (parameters[i].op == op && parameters[i].input == input)
                        return (enum sl_attr_type)parameters[i].type;
        return SL_ATTR_TYPE_NONE;
}

bool sl_op_parameters_resolved(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs && i < SL_NODE_INPUTS_MAX; i++) {
                int attr = sl_op_parameter(node->op, i);

                if (attr >= 0 && node->inputs[i].dtype != SL_DTYPE_NONE && !sl_attrs_find(&node->attrs, (uint32_t)attr))
                        return false;
        }
        return true;
}
