/* SPDX-License-Identifier: Apache-2.0 */
/* What is chosen by value: the largest elements, the best boxes. */
#include "rules.h"

#include <inttypes.h>

int sl_shape_top_k(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *k = sl_attrs_find(&node->attrs, SL_ATTR_K);
        int64_t count = SL_DIM_UNKNOWN;
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), in->rank, &axis, error);

        if (!r && !k && !sl_input_present(node, 1))
                return sl_error_set(error, EINVAL, "neither attribute k nor input 1 is given");
        if (!r && k && (k->type != SL_ATTR_TYPE_INT || k->i < 0 || (sl_dim_known(in->dims[axis]) && k->i > in->dims[axis])))
                return sl_error_set(error, EINVAL, "attribute k is %" PRId64 ", dimension %u has %" PRId64 " elements", k->i, axis,
                        in->dims[axis]);
        if (r)
                return r;
        if (k)
                count = k->i;
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                node->outputs[i].dtype = i ? SL_DTYPE_I64 : node->inputs[0].dtype;
                node->outputs[i].shape = *in;
                node->outputs[i].shape.dims[axis] = count;
        }
        return 0;
}

/* Boxes [batch, boxes, 4] and scores [batch, classes, boxes] that belong together. */
static int check_boxes(const struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *boxes = &node->inputs[0].shape, *scores = &node->inputs[1].shape;
        char text[SL_SHAPE_TEXT_BYTES], scores_text[SL_SHAPE_TEXT_BYTES];
        int64_t merged;
        bool fit = boxes->rank == 3 && scores->rank == 3 && !sl_dim_merge(boxes->dims[2], 4, &merged) &&
                   !sl_dim_merge(boxes->dims[0], scores->dims[0], &merged) &&
                   !sl_dim_merge(boxes->dims[1], scores->dims[2], &merged);

        if (fit)
                return sl_same_dtype(node, 1, error);
        return sl_error_set(error, EINVAL, "inputs 0 and 1 are %s and %s, want [batch,boxes,4] and [batch,classes,boxes]",
                sl_shape_print(boxes, text), sl_shape_print(scores, scores_text));
}

static int check_threshold(const struct sl_node_desc *node, uint32_t index, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[index].shape;
        bool one = true;

        if (!sl_input_present(node, index))
                return 0;
        for (uint32_t i = 0; i < shape->rank; i++)
                one = one && (shape->dims[i] == 1 || !sl_dim_known(shape->dims[i]));
        if (node->inputs[index].dtype != SL_DTYPE_F32 || !one)
                return sl_error_set(error, EINVAL, "input %u wants one float32", index);
        return 0;
}

int sl_shape_non_max_suppression(struct sl_node_desc *node, struct sl_error *error)
{
        int r = check_boxes(node, error);

        r = r ? r : check_threshold(node, 3, error);
        r = r ? r : check_threshold(node, 4, error);
        if (!r && sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0) < 0)
                return sl_error_set(
                        error, EINVAL, "max_output_boxes_per_class is %" PRId64, sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0));
        node->outputs[0].dtype = SL_DTYPE_I64;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {SL_DIM_UNKNOWN, 3}};
        return r;
}

int64_t sl_op_most_boxes(const struct sl_node_desc *node)
{
        const int64_t *scores = node->inputs[1].shape.dims;
        int64_t each = sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0), most;

        if (!sl_shape_is_static(&node->inputs[1].shape))
                return SL_DIM_UNKNOWN;
        each = each < scores[2] ? each : scores[2];
        if (__builtin_mul_overflow(each, scores[1], &most) || __builtin_mul_overflow(most, scores[0], &most))
                return -EOVERFLOW;
        return most;
}

/* Regions [regions, @columns] of images [batch, channels, height, width] become images of @height by @width each. */
static int region_shape(struct sl_node_desc *node, int64_t columns, int64_t height, int64_t width, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *rois = &node->inputs[1].shape;
        char text[SL_SHAPE_TEXT_BYTES];
        int64_t merged;

        if (x->rank != 4)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 4", x->rank);
        if (rois->rank != 2 || sl_dim_merge(rois->dims[1], columns, &merged))
                return sl_error_set(
                        error, EINVAL, "input 1 is %s, wants [regions,%" PRId64 "]", sl_shape_print(rois, text), columns);
        if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
                return sl_error_set(error, EINVAL, "the size of the output is %" PRId64 " by %" PRId64 ", outside [1,%d]", height,
                        width, INT32_MAX);
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = 4, .dims = {rois->dims[0], x->dims[1], height, width}};
        return sl_same_dtype(node, 1, error);
}

int sl_shape_roi_align(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t samples = sl_attrs_int(&node->attrs, SL_ATTR_SAMPLING_RATIO, 0);
        int r = region_shape(node, 4, sl_attrs_int(&node->attrs, SL_ATTR_OUTPUT_HEIGHT, 1),
                sl_attrs_int(&node->attrs, SL_ATTR_OUTPUT_WIDTH, 1), error);

        r = r ? r : sl_vector_of(node, 2, node->inputs[1].shape.dims[0], error);
        if (!r && node->inputs[2].dtype != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "input 2 is %s, wants int64", sl_dtype_name(node->inputs[2].dtype));
        if (!r && (samples < 0 || samples > 4096))
                return sl_error_set(error, EINVAL, "attribute sampling_ratio is %" PRId64 ", outside [0,4096]", samples);
        return r;
}

int sl_shape_max_roi_pool(struct sl_node_desc *node, struct sl_error *error)
{
        return region_shape(node, 5, sl_attrs_ints(&node->attrs, SL_ATTR_POOLED_SHAPE, 0, 0),
                sl_attrs_ints(&node->attrs, SL_ATTR_POOLED_SHAPE, 1, 0), error);
}
