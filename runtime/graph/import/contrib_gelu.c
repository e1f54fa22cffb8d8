/* SPDX-License-Identifier: Apache-2.0 */
/* Gelu with a bias, by its approximation, and as x * Sigmoid(alpha * x). */
#include "import/contrib.h"
#include "import/expand.h"

static int gelu_of_sum(struct sl_importer *im, const struct sl_onnx_node *node, bool approximate)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_draft gelu = {.op = SL_OP_GELU, .n_inputs = 1};

        gelu.inputs[0] = sl_expand_plus(&x, sl_expand_input(&x, 0), sl_expand_input(&x, 1));
        if (approximate && x.result == 0)
                x.result = sl_attrs_set_int(&gelu.attrs, SL_ATTR_APPROXIMATE, 1);
        sl_expand_output(&x, 0, sl_expand(&x, &gelu));
        return sl_expansion_end(&x);
}

SL_CONTRIB(bias_gelu)
{
        (void)draft;
        return gelu_of_sum(im, node, false);
}

SL_CONTRIB(fast_gelu)
{
        (void)draft;
        return gelu_of_sum(im, node, true);
}

SL_CONTRIB(quick_gelu)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t a = sl_expand_input(&x, 0);
        uint32_t gate = sl_expand_times(&x, a, sl_expand_float(&x, "alpha", 1.702));

        (void)draft;
        gate = sl_expand_unary(&x, SL_OP_SIGMOID, gate);
        sl_expand_output(&x, 0, sl_expand_binary(&x, SL_OP_MUL, a, gate));
        return sl_expansion_end(&x);
}
