/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization. In training it takes mean and variance from its own input, over all axes but that of the channels, and hands
 * on what they make of the running ones; exporters leave that in where weights are standardised by it.
 */
#include "import/canonical.h"

#define MOMENTUM 0.9 /* ONNX's default */

/* The outputs in training; what opset 13 and older save for a backward pass comes after them, and is not computed. */
enum { OUTPUT_Y, OUTPUT_MEAN, OUTPUT_VARIANCE };
enum { INPUT_X, INPUT_SCALE, INPUT_BIAS, INPUT_MEAN, INPUT_VARIANCE, N_INPUTS };

static bool gives(const struct sl_onnx_node *node, uint32_t output)
{
        return output < node->proto->n_output && *node->proto->output[output];
}

static int step(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op, uint32_t a, uint32_t b, uint32_t *ret_value)
{
        struct sl_draft draft = {.op = op, .n_inputs = 2, .n_outputs = 1, .inputs = {a, b}};

        return sl_import_emit_step(im, node, &draft, ret_value);
}

/* The mean over everything but the channels: a vector, or for @keep a tensor of the same rank. */
static int mean_of(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t value, bool keep, uint32_t *ret_mean)
{
        struct sl_draft draft = {.op = SL_OP_REDUCE_MEAN, .n_inputs = 1, .n_outputs = 1, .inputs = {value}};
        uint32_t rank = im->graph->values[value].tensor.shape.rank, n_axes = 0;
        int64_t axes[SL_RANK_MAX];
        int result;

        for (uint32_t i = 0; i < rank; i++)
                if (i != 1)
                        axes[n_axes++] = i;
        result = sl_attrs_set_ints(&draft.attrs, SL_ATTR_AXES, axes, n_axes);
        if (result == 0)
                result = sl_attrs_set_int(&draft.attrs, SL_ATTR_KEEPDIMS, keep);
        return result < 0 ? result : sl_import_emit_step(im, node, &draft, ret_mean);
}

/* In two passes, so that a large mean costs no digits. */
static int own_statistics(
        struct sl_importer *im, const struct sl_onnx_node *node, uint32_t x, uint32_t *ret_mean, uint32_t *ret_variance)
{
        uint32_t middle, centred, square;
        int result = mean_of(im, node, x, false, ret_mean);

        if (result == 0)
                result = mean_of(im, node, x, true, &middle);
        if (result == 0)
                result = step(im, node, SL_OP_SUB, x, middle, &centred);
        if (result == 0)
                result = step(im, node, SL_OP_MUL, centred, centred, &square);
        return result < 0 ? result : mean_of(im, node, square, false, ret_variance);
}

static int factor_of(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t like, double factor, uint32_t *ret_value)
{
        struct sl_draft draft = {.op = SL_OP_CAST, .n_inputs = 1, .n_outputs = 1};
        const struct sl_tensor scalar = {.dtype = SL_DTYPE_F32};
        float *data = sl_graph_alloc(im->graph, sizeof(*data));
        int result = data ? 0 : -ENOMEM;

        if (result < 0)
                return result;
        *data = (float)factor;
        result = sl_graph_add_constant(im->graph, node->name, &scalar, data, &draft.inputs[0]);
        if (result == 0)
                result = sl_attrs_set_int(&draft.attrs, SL_ATTR_TO, im->graph->values[like].tensor.dtype);
        return result < 0 ? result : sl_import_emit_step(im, node, &draft, ret_value);
}

/* running * momentum + own * (1 - momentum), where somebody reads it. */
static int run_on(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t output, uint32_t running, uint32_t own)
{
        struct sl_draft sum = {.op = SL_OP_ADD, .n_inputs = 2, .n_outputs = 1};
        uint32_t keep, take;
        double momentum = MOMENTUM;
        int result = sl_onnx_float(im, node, "momentum", &momentum);

        if (result < 0 || !gives(node, output))
                return result;
        result = factor_of(im, node, running, momentum, &keep);
        if (result == 0)
                result = factor_of(im, node, own, 1 - momentum, &take);
        if (result == 0)
                result = step(im, node, SL_OP_MUL, running, keep, &sum.inputs[0]);
        if (result == 0)
                result = step(im, node, SL_OP_MUL, own, take, &sum.inputs[1]);
        return result < 0 ? result : sl_import_emit_output(im, node, &sum, output);
}

static int in_training(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t running[2], mean, variance;
        int result = 0;

        for (uint32_t i = 0; i < N_INPUTS; i++)
                if (i >= draft->n_inputs || draft->inputs[i] == SL_VALUE_NONE)
                        return sl_import_wrong(im, node, "it wants five inputs");
        if (im->graph->values[draft->inputs[INPUT_X]].tensor.shape.rank < 2)
                return sl_import_wrong(im, node, "its input has no channels");
        running[0] = draft->inputs[INPUT_MEAN];
        running[1] = draft->inputs[INPUT_VARIANCE];
        result = own_statistics(im, node, draft->inputs[INPUT_X], &mean, &variance);
        draft->inputs[INPUT_MEAN] = mean;
        draft->inputs[INPUT_VARIANCE] = variance;
        if (result == 0)
                result = sl_import_emit_output(im, node, draft, OUTPUT_Y);
        if (result == 0)
                result = run_on(im, node, OUTPUT_MEAN, running[0], mean);
        if (result == 0)
                result = run_on(im, node, OUTPUT_VARIANCE, running[1], variance);
        return result < 0 ? result : 1;
}

/* Something beside the result is asked for. */
static bool gives_statistics(const struct sl_onnx_node *node)
{
        for (uint32_t i = OUTPUT_MEAN; i < node->proto->n_output; i++)
                if (gives(node, i))
                        return true;
        return false;
}

/*
 * Up to opset 6 it is in training unless is_test says otherwise, or nothing is there to take what training gives; up to opset 13
 * where something is there; then where the attribute says so.
 */
int sl_canonical_batch_norm(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t spatial = 1, training = im->graph->opset < 14 && gives_statistics(node), test = 0;
        int result = sl_onnx_int(im, node, "spatial", &spatial);

        if (result == 0 && im->graph->opset >= 14)
                result = sl_onnx_int(im, node, "training_mode", &training);
        if (result == 0 && im->graph->opset < 7)
                result = sl_onnx_int(im, node, "is_test", &test);
        if (result < 0)
                return result;
        if (spatial != 1)
                return sl_import_refuse(im, node, "spatial = 0 is not supported");
        return training && !test ? in_training(im, node, draft) : 0;
}
