/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers. ONNX names the functions of the gates and lists the parameters of those that have any one behind the other;
 * here each function has a number and both of its parameters, defaults filled in.
 */
#include "base/utf8.h"
#include "import/canonical.h"
#include "shape/recurrent.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct gate_function {
        const char *name;
        uint32_t parameters; /* alpha, then beta */
        double alpha, beta;
} functions[SL_GATE_COUNT] = {
        [SL_GATE_RELU] = {"Relu", 0, 0, 0},
        [SL_GATE_TANH] = {"Tanh", 0, 0, 0},
        [SL_GATE_SIGMOID] = {"Sigmoid", 0, 0, 0},
        [SL_GATE_AFFINE] = {"Affine", 2, 1, 0},
        [SL_GATE_LEAKY_RELU] = {"LeakyRelu", 1, 0.01, 0},
        [SL_GATE_THRESHOLDED_RELU] = {"ThresholdedRelu", 1, 1, 0},
        [SL_GATE_SCALED_TANH] = {"ScaledTanh", 2, 1, 1},
        [SL_GATE_HARD_SIGMOID] = {"HardSigmoid", 2, 0.2, 0.5},
        [SL_GATE_ELU] = {"Elu", 1, 1, 0},
        [SL_GATE_SOFTSIGN] = {"Softsign", 0, 0, 0},
        [SL_GATE_SOFTPLUS] = {"Softplus", 0, 0, 0},
};

static int find_function(const ProtobufCBinaryData *name)
{
        for (int i = 0; i < SL_GATE_COUNT; i++)
                if (strlen(functions[i].name) == name->len && !strncasecmp(functions[i].name, (const char *)name->data, name->len))
                        return i;
        return -1;
}

const char *sl_canonical_gate(int64_t gate, uint32_t *ret_parameters)
{
        *ret_parameters = functions[gate].parameters;
        return functions[gate].name;
}

/* The next of the file's parameters, or the default when they are used up. */
static double next_parameter(const Onnx__AttributeProto *list, size_t *at, double fallback)
{
        return list && *at < list->n_floats ? (double)list->floats[(*at)++] : fallback;
}

static int refuse_activation(struct sl_importer *im, const struct sl_onnx_node *node, const ProtobufCBinaryData *name)
{
        char text[256], what[384];

        snprintf(text, sizeof(text), "%.*s", (int)(name->len < sizeof(text) ? name->len : sizeof(text)), (const char *)name->data);
        snprintf(what, sizeof(what), "activation \"%s%s\" is not known", sl_utf8_clean(text, text, sizeof(text)),
                name->len < sizeof(text) ? "" : "...");
        return sl_import_refuse(im, node, what);
}

int sl_canonical_recurrent(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const Onnx__AttributeProto *names = sl_onnx_attr(node, "activations");
        const Onnx__AttributeProto *alphas = sl_onnx_attr(node, "activation_alpha"), *betas = sl_onnx_attr(node, "activation_beta");
        int64_t kinds[SL_ATTR_INTS_MAX];
        double alpha[SL_ATTR_INTS_MAX], beta[SL_ATTR_INTS_MAX];
        size_t alpha_at = 0, beta_at = 0;
        int result;

        if (!names || !names->n_strings)
                return 0;
        if (names->n_strings > SL_ATTR_INTS_MAX)
                return sl_import_wrong(im, node, "too many activations");
        for (size_t i = 0; i < names->n_strings; i++) {
                int kind = find_function(&names->strings[i]);

                if (kind < 0)
                        return refuse_activation(im, node, &names->strings[i]);
                kinds[i] = kind;
                alpha[i] = functions[kind].parameters > 0 ? next_parameter(alphas, &alpha_at, functions[kind].alpha) : 0;
                beta[i] = functions[kind].parameters > 1 ? next_parameter(betas, &beta_at, functions[kind].beta) : 0;
        }
        result = sl_attrs_set_ints(&draft->attrs, SL_ATTR_ACTIVATIONS, kinds, (uint32_t)names->n_strings);
        if (result == 0)
                result = sl_attrs_set_floats(&draft->attrs, SL_ATTR_ACTIVATION_ALPHA, alpha, (uint32_t)names->n_strings);
        if (result == 0)
                result = sl_attrs_set_floats(&draft->attrs, SL_ATTR_ACTIVATION_BETA, beta, (uint32_t)names->n_strings);
        return result;
}
