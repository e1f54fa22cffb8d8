/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows over images whose channels come last: the same with channels first, between two Transposes, of which those between two
 * such operators undo each other.
 */
#include "import/contrib.h"
#include "import/expand.h"

uint32_t sl_contrib_channels_first(struct sl_expansion *x, uint32_t value)
{
        uint32_t rank = sl_expand_shape(x, value)->rank;
        int64_t perm[SL_RANK_MAX];

        if (rank < 3)
                sl_expand_wrong(x, "an image of fewer than three dimensions");
        for (uint32_t i = 0; i < rank; i++)
                perm[i] = i < 2 ? (i ? rank - 1 : 0) : i - 1;
        return sl_expand_transpose(x, value, perm, rank);
}

uint32_t sl_contrib_channels_last(struct sl_expansion *x, uint32_t value)
{
        uint32_t rank = sl_expand_shape(x, value)->rank;
        int64_t perm[SL_RANK_MAX];

        if (rank < 3)
                sl_expand_wrong(x, "an image of fewer than three dimensions");
        for (uint32_t i = 0; i < rank; i++)
                perm[i] = !i ? 0 : i + 1 < rank ? i + 1 : 1;
        return sl_expand_transpose(x, value, perm, rank);
}

/* The draft has the operator, its inputs and its attributes; @weights_too: input 1 has its channels last as well. */
static int between_transposes(
        struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, bool images, bool weights_too)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value;

        if (images)
                draft->inputs[0] = sl_contrib_channels_first(&x, draft->inputs[0]);
        if (weights_too)
                draft->inputs[1] = sl_contrib_channels_first(&x, draft->inputs[1]);
        if (x.result == 0)
                x.result = sl_canonical_window(im, node, draft);
        value = sl_expand(&x, draft);
        sl_expand_output(&x, 0, images ? sl_contrib_channels_last(&x, value) : value);
        return sl_expansion_end(&x);
}

SL_CONTRIB(nhwc_conv)
{
        return between_transposes(im, node, draft, true, true);
}

SL_CONTRIB(nhwc_max_pool)
{
        return between_transposes(im, node, draft, true, false);
}

/* QLinearConv of this domain is ONNX's, with the images in either layout. */
SL_CONTRIB(qlinear_conv)
{
        int64_t last = 0;
        int result = sl_onnx_int(im, node, "channels_last", &last);

        return result < 0 ? result : between_transposes(im, node, draft, last, false);
}
