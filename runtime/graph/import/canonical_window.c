/*
 * auto_pad becomes PADS. SAME_* divides its padding so that there are ceil(size / stride) windows; the odd element goes behind
 * (UPPER) or before (LOWER). The spatial sizes matter only where the stride is not 1.
 */
#include "import/canonical.h"

#define SPATIAL_MAX (SL_RANK_MAX - 2)

static int64_t total_padding(const struct sl_draft *draft, uint32_t i, int64_t size, int64_t kernel)
{
        int64_t stride = sl_attrs_ints(&draft->attrs, SL_ATTR_STRIDES, i, 1);
        int64_t dilation = sl_attrs_ints(&draft->attrs, SL_ATTR_DILATIONS, i, 1);
        int64_t reach = (kernel - 1) * dilation + 1;
        int64_t rest = stride == 1 || size % stride == 0 ? stride : size % stride;

        return reach > rest ? reach - rest : 0;
}

static bool in_range(int64_t value)
{
        return value >= 1 && value <= INT32_MAX;
}

static int64_t kernel_size(const struct sl_importer *im, const struct sl_draft *draft, uint32_t i)
{
        if (draft->op != SL_OP_CONV)
                return sl_attrs_ints(&draft->attrs, SL_ATTR_KERNEL_SHAPE, i, 0);
        return im->graph->values[draft->inputs[1]].tensor.shape.dims[i + 2];
}

static int pad_same(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, bool lower)
{
        const struct sl_shape *shape = &im->graph->values[draft->inputs[0]].tensor.shape;
        uint32_t n = shape->rank < 2 ? 0 : shape->rank - 2;
        int64_t pads[2 * SPATIAL_MAX];

        if (draft->op == SL_OP_CONV && im->graph->values[draft->inputs[1]].tensor.shape.rank != shape->rank)
                return sl_import_wrong(im, node, "data and weights have different ranks");
        for (uint32_t i = 0; i < n; i++) {
                int64_t stride = sl_attrs_ints(&draft->attrs, SL_ATTR_STRIDES, i, 1), kernel = kernel_size(im, draft, i);

                if (!in_range(stride) || !in_range(kernel) || !in_range(sl_attrs_ints(&draft->attrs, SL_ATTR_DILATIONS, i, 1)))
                        return sl_import_wrong(im, node, "a kernel size, stride or dilation is out of range");
                if (shape->dims[i + 2] < 0 && stride != 1)
                        return sl_import_refuse(im, node, "auto_pad of a size that is not known");
                int64_t total = total_padding(draft, i, shape->dims[i + 2], kernel);

                pads[i] = lower ? total - total / 2 : total / 2;
                pads[i + n] = total - pads[i];
        }
        return sl_attrs_set_ints(&draft->attrs, SL_ATTR_PADS, pads, 2 * n);
}

int sl_canonical_window(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        bool explicit = false, valid = false, upper = false, lower = false;
        bool given = sl_onnx_is(node, "auto_pad", "NOTSET", &explicit) == 0;

        sl_onnx_is(node, "auto_pad", "VALID", &valid);
        sl_onnx_is(node, "auto_pad", "SAME_UPPER", &upper);
        sl_onnx_is(node, "auto_pad", "SAME_LOWER", &lower);
        if (!given || explicit)
                return 0;
        if (!valid && !upper && !lower)
                return sl_import_wrong(im, node, "auto_pad is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
        sl_attrs_remove(&draft->attrs, SL_ATTR_PADS);
        if (valid || draft->n_inputs < (draft->op == SL_OP_CONV ? 2u : 1u))
                return 0;
        if (draft->inputs[0] == SL_VALUE_NONE || (draft->op == SL_OP_CONV && draft->inputs[1] == SL_VALUE_NONE))
                return sl_import_wrong(im, node, "an input is missing");
        return pad_same(im, node, draft, lower);
}
