/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with what follows them: FusedConv (+ a summand, then an activation), FusedGemm (an activation), FusedMatMul (operands
 * transposed, a factor). The activation goes back behind the product, from where fuse-activation takes it.
 */
#include "import/contrib.h"
#include "import/expand.h"

#include <string.h>

/* The activations of these operators and their parameters, as ONNX has them where the node gives none. */
static const struct activation {
        const char *name;
        uint32_t op, n_parameters;
        struct {
                uint32_t id;
                double fallback;
        } parameters[2];
} activations[] = {
        {"Relu", SL_OP_RELU, 0, {{0}}},
        {"Tanh", SL_OP_TANH, 0, {{0}}},
        {"Sigmoid", SL_OP_SIGMOID, 0, {{0}}},
        {"Softplus", SL_OP_SOFTPLUS, 0, {{0}}},
        {"Softsign", SL_OP_SOFTSIGN, 0, {{0}}},
        {"HardSwish", SL_OP_HARD_SWISH, 0, {{0}}},
        {"LeakyRelu", SL_OP_LEAKY_RELU, 1, {{SL_ATTR_ALPHA, 0.01}}},
        {"Elu", SL_OP_ELU, 1, {{SL_ATTR_ALPHA, 1}}},
        {"ThresholdedRelu", SL_OP_THRESHOLDED_RELU, 1, {{SL_ATTR_ALPHA, 1}}},
        {"HardSigmoid", SL_OP_HARD_SIGMOID, 2, {{SL_ATTR_ALPHA, 0.2}, {SL_ATTR_BETA, 0.5}}},
        {"Clip", SL_OP_CLIP, 2, {{SL_ATTR_MIN, -3.4028234663852886e38}, {SL_ATTR_MAX, 3.4028234663852886e38}}},
};

static const struct activation *find_activation(const struct sl_onnx_node *node)
{
        for (size_t i = 0; i < sizeof(activations) / sizeof(*activations); i++) {
                bool is = false;

                if (sl_onnx_is(node, "activation", activations[i].name, &is) == 0 && is)
                        return &activations[i];
        }
        return NULL;
}

/* Behind @value the activation that the node names, if any, with its parameters in @given. */
static uint32_t activated(struct sl_expansion *x, uint32_t value, const double given[2], uint32_t n_given)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, "activation");
        const struct activation *activation = find_activation(x->node);
        struct sl_draft draft = {.n_inputs = 1, .inputs = {value}};

        if (!attr || !attr->s.len)
                return value;
        if (!activation) {
                sl_expand_refuse(x, "its attribute activation names none that is supported");
                return SL_VALUE_NONE;
        }
        draft.op = activation->op;
        for (uint32_t i = 0; i < activation->n_parameters && x->result == 0; i++)
                x->result = sl_attrs_set_float(
                        &draft.attrs, activation->parameters[i].id, i < n_given ? given[i] : activation->parameters[i].fallback);
        return sl_expand(x, &draft);
}

SL_CONTRIB(fused_conv)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        const Onnx__AttributeProto *given = sl_onnx_attr(node, "activation_params");
        double parameters[2] = {0};
        uint32_t value;

        draft->n_inputs = draft->n_inputs < 3 ? draft->n_inputs : 3;
        if (draft->n_inputs == 3 && draft->inputs[2] == SL_VALUE_NONE)
                draft->n_inputs = 2;
        x.result = sl_canonical_window(im, node, draft);
        value = sl_expand_plus(&x, sl_expand(&x, draft), sl_expand_input(&x, 3));
        for (size_t i = 0; given && i < given->n_floats && i < 2; i++)
                parameters[i] = (double)given->floats[i];
        sl_expand_output(&x, 0, activated(&x, value, parameters, given ? (uint32_t)given->n_floats : 0));
        return sl_expansion_end(&x);
}

SL_CONTRIB(fused_gemm)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        double parameters[2] = {0};
        uint32_t n_given = 0;

        parameters[0] = sl_expand_float(&x, "activation_alpha", 0);
        parameters[1] = sl_expand_float(&x, "activation_beta", 0);
        if (sl_onnx_attr(node, "activation_alpha"))
                n_given = sl_onnx_attr(node, "activation_beta") ? 2 : 1;
        sl_expand_output(&x, 0, activated(&x, sl_expand(&x, draft), parameters, n_given));
        return sl_expansion_end(&x);
}

/* [M, batch.., K] becomes [batch.., M, K], then its last two dimensions change places: as far as the node says so. */
static uint32_t turned(struct sl_expansion *x, uint32_t value, bool batch, bool transpose)
{
        uint32_t rank = sl_expand_shape(x, value)->rank;
        int64_t perm[SL_RANK_MAX];

        if (rank < 2 || (!batch && !transpose))
                return value;
        for (uint32_t i = 0; i < rank; i++)
                perm[i] = i;
        for (uint32_t i = 0; i + 2 < rank && batch; i++)
                perm[i] = i + 1;
        if (batch)
                perm[rank - 2] = 0;
        if (transpose) {
                int64_t last = perm[rank - 1];

                perm[rank - 1] = perm[rank - 2];
                perm[rank - 2] = last;
        }
        return sl_expand_transpose(x, value, perm, rank);
}

SL_CONTRIB(fused_matmul)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        bool batch_a = sl_expand_int(&x, "transBatchA", 0), batch_b = sl_expand_int(&x, "transBatchB", 0);
        uint32_t a = turned(&x, sl_expand_input(&x, 0), batch_a, sl_expand_int(&x, "transA", 0));
        uint32_t b = turned(&x, sl_expand_input(&x, 1), batch_b, sl_expand_int(&x, "transB", 0));
        double alpha = sl_expand_float(&x, "alpha", 1);

        (void)draft;
        sl_expand_output(&x, 0, sl_expand_times(&x, sl_expand_binary(&x, SL_OP_MATMUL, a, b), alpha));
        return sl_expansion_end(&x);
}
