/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on images. */
#include "import/canonical.h"
#include "shape/resize.h"

/* Before opset 11 there was one way to look at coordinates, which later ones call asymmetric. */
static int set_old_coordinates(struct sl_draft *draft)
{
        int result = sl_attrs_set_int(&draft->attrs, SL_ATTR_TRANSFORM, SL_RESIZE_ASYMMETRIC);

        return result < 0 ? result : sl_attrs_set_int(&draft->attrs, SL_ATTR_NEAREST, SL_RESIZE_FLOOR);
}

/* The scales were input 1 and are input 2. */
static void move_scales(struct sl_draft *draft)
{
        if (draft->n_inputs != 2)
                return;
        draft->inputs[2] = draft->inputs[1];
        draft->inputs[1] = SL_VALUE_NONE;
        draft->n_inputs = 3;
}

int sl_canonical_resize(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        if (im->graph->opset < 11) {
                if (draft->n_inputs != 2)
                        return sl_import_wrong(im, node, "it wants two inputs");
                move_scales(draft);
                return set_old_coordinates(draft);
        }
        /* The region matters to one way alone. */
        if (draft->n_inputs > 1 && sl_attrs_int(&draft->attrs, SL_ATTR_TRANSFORM, 0) != SL_RESIZE_TF_CROP_AND_RESIZE)
                draft->inputs[1] = SL_VALUE_NONE;
        return 0;
}

int sl_canonical_upsample(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        if (draft->n_inputs > 2 || (draft->n_inputs == 2 && sl_attrs_find(&draft->attrs, SL_ATTR_SCALES)))
                return sl_import_wrong(im, node, "its scales are given twice");
        move_scales(draft);
        return set_old_coordinates(draft);
}

/* Before opset 16 regions began at the corner of a pixel. */
int sl_canonical_roi_align(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        (void)node;
        if (im->graph->opset >= 16)
                return 0;
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_TRANSFORM, 1);
}
