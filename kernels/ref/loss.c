/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss which takes the logarithm of a softmax first. REDUCTION is 0 mean, 1 sum,
 * 2 none. Labels are indices: a wrong one is -ERANGE, unless it is the one that is to be ignored.
 */
#include "element.h"
#include "kernels.h"

#include <errno.h>

struct loss {
        const struct sl_node_desc *node;
        const struct sl_binding *binding;
        int64_t classes, inner;
        uint32_t dtype;
};

static double score(const struct loss *l, int64_t at, int64_t class)
{
        return sl_ref_load(l->binding->inputs[0], (at / l->inner * l->classes + class) * l->inner + at % l->inner, l->dtype);
}

/* The logarithm of the sum of exponentials of the scores at @at; 0 where the scores are logarithms already. */
static double normaliser(const struct loss *l, int64_t at)
{
        double most = -(double)INFINITY, sum = 0;

        if (l->node->op == SL_OP_NLL_LOSS)
                return 0;
        for (int64_t c = 0; c < l->classes && sl_pace_on(l->binding->pace, 1); c++)
                most = fmax(most, score(l, at, c));
        for (int64_t c = 0; c < l->classes && sl_pace_on(l->binding->pace, 1); c++)
                sum += exp(score(l, at, c) - most);
        return most + log(sum);
}

static void store_logarithms(const struct loss *l, int64_t at, double shift)
{
        for (int64_t c = 0; c < l->classes && l->node->n_outputs > 1; c++)
                sl_ref_store(l->binding->outputs[1], (at / l->inner * l->classes + c) * l->inner + at % l->inner, l->dtype,
                        score(l, at, c) - shift);
}

int sl_ref_loss(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_attr *ignored = sl_attrs_find(&node->attrs, SL_ATTR_IGNORE_INDEX);
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[1].shape),
                reduction = sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, 0);
        bool weighted = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        struct loss l = {node, binding, node->inputs[0].shape.dims[1], 1, node->inputs[0].dtype};
        double sum = 0, weights = 0;

        for (uint32_t i = 2; i < node->inputs[0].shape.rank; i++)
                l.inner *= node->inputs[0].shape.dims[i];
        for (int64_t at = 0; at < n && sl_pace_on(binding->pace, 1); at++) {
                int64_t label = (int64_t)sl_ref_load_bits(binding->inputs[1], at, node->inputs[1].dtype);
                bool skipped = ignored && ignored->i == label;
                double shift = normaliser(&l, at), weight = 0, loss = 0;

                store_logarithms(&l, at, shift);
                if (!skipped && (label < 0 || label >= l.classes))
                        return -ERANGE;
                if (!skipped) {
                        weight = weighted ? sl_ref_load(binding->inputs[2], label, l.dtype) : 1;
                        loss = weight * (shift - score(&l, at, label));
                }
                sum += loss;
                weights += weight;
                if (reduction == 2)
                        sl_ref_store(binding->outputs[0], at, l.dtype, loss);
        }
        if (reduction != 2)
                sl_ref_store(binding->outputs[0], 0, l.dtype, reduction == 0 ? sum / weights : sum);
        return 0;
}
