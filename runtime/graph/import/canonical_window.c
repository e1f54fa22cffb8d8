/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto_pad becomes PADS. SAME_* divides its padding so that there are ceil(size / stride) windows; the odd element goes behind
 * (UPPER) or before (LOWER). The spatial sizes matter only where the stride is not 1: of those that requests tell, the node has the
 * attribute SAME instead.
 */
#include "import/canonical.h"
#include "shape/window.h"

#include <errno.h>

#define SPATIAL_MAX (SL_RANK_MAX - 2)

static bool in_range(int64_t value)
{
        return value >= 1 && value <= INT32_MAX;
}

static int64_t kernel_size(const struct sl_importer *im, const struct sl_draft *draft, uint32_t i)
{
        uint32_t weights = sl_window_weights(draft->op);

        if (!weights)
                return sl_attrs_ints(&draft->attrs, SL_ATTR_KERNEL_SHAPE, i, 0);
        return im->graph->values[draft->inputs[weights]].tensor.shape.dims[i + 2];
}

static int pad_same(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, bool lower)
{
        const struct sl_shape *shape = &im->graph->values[draft->inputs[0]].tensor.shape;
        uint32_t n = shape->rank < 2 ? 0 : shape->rank - 2;
        uint32_t weights = sl_window_weights(draft->op);
        int64_t pads[2 * SPATIAL_MAX];
        bool open = false;

        if (weights && im->graph->values[draft->inputs[weights]].tensor.shape.rank != shape->rank)
                return sl_import_wrong(im, node, "data and weights have different ranks");
        for (uint32_t i = 0; i < n; i++) {
                int64_t stride = sl_attrs_ints(&draft->attrs, SL_ATTR_STRIDES, i, 1), kernel = kernel_size(im, draft, i);
                int64_t dilation = sl_attrs_ints(&draft->attrs, SL_ATTR_DILATIONS, i, 1), size = shape->dims[i + 2];

                if (weights && kernel < 0)
                        return sl_import_unsettled(im, node, "auto_pad with weights of a size that is not known");
                if (!in_range(stride) || !in_range(kernel) || !in_range(dilation))
                        return sl_import_misfit(im, node, "a kernel size, stride or dilation is outside [1,2^31)");
                if (size < 0 && stride != 1 && kernel != 1)
                        open = true;
                int64_t total = sl_window_same_padding(size < 0 ? stride : size, kernel, stride, dilation);

                pads[i] = lower ? total - total / 2 : total / 2;
                pads[i + n] = total - pads[i];
        }
        if (open && im->limits->any_size)
                return sl_attrs_set_int(&draft->attrs, SL_ATTR_SAME, lower ? SL_WINDOW_SAME_LOWER : SL_WINDOW_SAME_UPPER);
        if (open)
                return sl_import_refuse(im, node, "auto_pad of a size that is not known");
        return sl_attrs_set_ints(&draft->attrs, SL_ATTR_PADS, pads, 2 * n);
}

int sl_canonical_window(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        bool explicit = false, valid = false, upper = false, lower = false;
        bool given = sl_onnx_is(node, "auto_pad", "NOTSET", &explicit) == 0;
        uint32_t weights = sl_window_weights(draft->op);

        sl_onnx_is(node, "auto_pad", "VALID", &valid);
        sl_onnx_is(node, "auto_pad", "SAME_UPPER", &upper);
        sl_onnx_is(node, "auto_pad", "SAME_LOWER", &lower);
        if (!given || explicit)
                return 0;
        if (!valid && !upper && !lower)
                return sl_import_wrong(im, node, "auto_pad is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
        sl_attrs_remove(&draft->attrs, SL_ATTR_PADS);
        if (valid || draft->n_inputs <= weights)
                return 0;
        if (draft->inputs[0] == SL_VALUE_NONE || draft->inputs[weights] == SL_VALUE_NONE)
                return sl_import_wrong(im, node, "an input is missing");
        return pad_same(im, node, draft, lower);
}

/* One spatial dimension of a ConvTranspose that says how large its output is (@wanted): what the window makes too much is cut off.
 */
static int cut_to(struct sl_draft *draft, uint32_t i, int64_t size, int64_t kernel, int64_t wanted, bool upper, int64_t *ret_begin,
        int64_t *ret_end, int64_t *extra)
{
        int64_t stride = sl_attrs_ints(&draft->attrs, SL_ATTR_STRIDES, i, 1), total;
        int64_t dilation = sl_attrs_ints(&draft->attrs, SL_ATTR_DILATIONS, i, 1);

        if (!in_range(stride) || !in_range(dilation) || !in_range(kernel) || !in_range(size) || *extra < 0 || *extra > INT32_MAX)
                return -EBADMSG;
        total = stride * (size - 1) + *extra + (kernel - 1) * dilation + 1;
        if (wanted < 1 || total - wanted < -(int64_t)INT32_MAX)
                return -EBADMSG;
        total -= wanted;
        if (total < 0) {
                *extra -= total;
                total = 0;
        }
        *ret_begin = upper ? total / 2 : total - total / 2;
        *ret_end = total - *ret_begin;
        return 0;
}

/* The output's size, where the file says it, becomes pads: those at the end get the odd element for SAME_UPPER. */
int sl_canonical_conv_transpose(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_attr sizes = {.count = 0};
        const struct sl_attr *told = sl_attrs_find(&draft->attrs, SL_ATTR_OUTPUT_SHAPE);
        int64_t pads[2 * SPATIAL_MAX], extra[SPATIAL_MAX];
        bool upper = false, lower = false, valid = false;
        const struct sl_shape *x, *w;
        uint32_t n;

        sl_onnx_is(node, "auto_pad", "SAME_UPPER", &upper);
        sl_onnx_is(node, "auto_pad", "SAME_LOWER", &lower);
        sl_onnx_is(node, "auto_pad", "VALID", &valid);
        if (told)
                sizes = *told;
        sl_attrs_remove(&draft->attrs, SL_ATTR_OUTPUT_SHAPE);
        if (upper || lower || valid)
                sl_attrs_remove(&draft->attrs, SL_ATTR_PADS);
        if (!upper && !lower && !told)
                return 0;
        if (draft->n_inputs < 2 || draft->inputs[0] == SL_VALUE_NONE || draft->inputs[1] == SL_VALUE_NONE)
                return sl_import_wrong(im, node, "an input is missing");
        x = &im->graph->values[draft->inputs[0]].tensor.shape;
        w = &im->graph->values[draft->inputs[1]].tensor.shape;
        if (x->rank < 3 || w->rank != x->rank || (told && sizes.count != x->rank - 2 && sizes.count != x->rank))
                return sl_import_wrong(im, node, "its data, weights and output_shape have different ranks");
        n = x->rank - 2;
        for (uint32_t i = 0; i < n; i++) {
                int64_t stride = sl_attrs_ints(&draft->attrs, SL_ATTR_STRIDES, i, 1), wanted = 0, size = x->dims[i + 2];

                extra[i] = sl_attrs_ints(&draft->attrs, SL_ATTR_OUTPUT_PADDING, i, 0);
                if (size < 0 && !told) /* the padding is the same for each */
                        size = 1;
                if (size < 0 || w->dims[i + 2] < 0)
                        return sl_import_refuse(im, node, "output_shape or auto_pad of a size that is not known");
                if (told)
                        wanted = sizes.ints[sizes.count - n + i];
                else if (!in_range(stride) || !in_range(size))
                        return sl_import_misfit(im, node, "a size or stride is outside [1,2^31)");
                else
                        wanted = stride * size;
                if (cut_to(draft, i, size, w->dims[i + 2], wanted, upper, &pads[i], &pads[i + n], &extra[i]) < 0)
                        return sl_import_misfit(im, node, "a kernel size, stride, dilation or output size is outside [1,2^31)");
        }
        if (sl_attrs_set_ints(&draft->attrs, SL_ATTR_OUTPUT_PADDING, extra, n) < 0)
                return sl_import_wrong(im, node, "too many attributes");
        return sl_attrs_set_ints(&draft->attrs, SL_ATTR_PADS, pads, 2 * n);
}
