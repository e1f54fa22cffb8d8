/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on signals, and those whose attributes only have other names here. */
#include "import/canonical.h"

int sl_canonical_blocks(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        /* SpaceToDepth had one order before it had words for two. */
        if (draft->op == SL_OP_SPACE_TO_DEPTH && !sl_attrs_int(&draft->attrs, SL_ATTR_MODE, 0))
                sl_attrs_remove(&draft->attrs, SL_ATTR_MODE);
        return sl_onnx_copy_attr(im, node, "blocksize", SL_ATTR_BLOCK_SIZE, &draft->attrs);
}

int sl_canonical_eye_like(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        return sl_onnx_copy_attr(im, node, "dtype", SL_ATTR_TO, &draft->attrs);
}

/* The depth, which is a parameter, stands behind the values. */
int sl_canonical_one_hot(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t depth;

        if (draft->n_inputs != 3)
                return sl_import_wrong(im, node, "it wants three inputs");
        depth = draft->inputs[1];
        draft->inputs[1] = draft->inputs[2];
        draft->inputs[2] = depth;
        return 0;
}

int sl_canonical_taper(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        return sl_onnx_copy_attr(im, node, "output_datatype", SL_ATTR_TO, &draft->attrs);
}

/* The two sizes stand behind the three numbers that are data, which lead. */
int sl_canonical_mel_weights(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t bins, length;

        if (draft->n_inputs != 5)
                return sl_import_wrong(im, node, "it wants five inputs");
        bins = draft->inputs[0];
        length = draft->inputs[1];
        for (uint32_t i = 0; i < 3; i++)
                draft->inputs[i] = draft->inputs[i + 2];
        draft->inputs[3] = bins;
        draft->inputs[4] = length;
        return sl_canonical_taper(im, node, draft);
}

/* The axis was an attribute, and 1 by default, before it became an input. */
int sl_canonical_dft(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        (void)node;
        if (im->graph->opset >= 20 || sl_attrs_find(&draft->attrs, SL_ATTR_AXIS))
                return 0;
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_AXIS, 1);
}

/* The interpolations had names for images alone before opset 20. */
int sl_canonical_grid_sample(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t mode = sl_attrs_int(&draft->attrs, SL_ATTR_MODE, 0);

        (void)im;
        (void)node;
        if (mode < 3)
                return 0;
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_MODE, mode == 3 ? 0 : 2);
}
