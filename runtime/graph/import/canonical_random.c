/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that draw random numbers read the keys of the samples (kernels/draw.h), which one node makes for all of a graph. The
 * name of what they make tells them apart: it is the same however the graph is rewritten, and for whatever sizes it is imported.
 */
#include "import/canonical.h"

#include "base/split_mix.h"

/* Of a branch that is imported into the graph around it the keys are that graph's. */
static struct sl_importer *owner_of_graph(struct sl_importer *im)
{
        while (im->outer && im->outer->graph == im->graph)
                im = im->outer;
        return im;
}

/* An input that leads with the batch; SL_VALUE_NONE: the graph has none. */
static uint32_t find_samples(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                const struct sl_shape *shape = &graph->values[graph->inputs[i]].tensor.shape;

                if (shape->rank && shape->dims[0] == SL_DIM_BATCH)
                        return graph->inputs[i];
        }
        return SL_VALUE_NONE;
}

static int add_keys(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_importer *owner = owner_of_graph(im);
        struct sl_draft keys = {.op = SL_OP_SAMPLE_KEYS, .n_outputs = 1};
        int result = 0;

        if (!owner->sample_keys) {
                uint32_t value;

                keys.inputs[0] = find_samples(im->graph);
                keys.n_inputs = keys.inputs[0] != SL_VALUE_NONE;
                result = sl_import_emit_step(im, node, &keys, &value);
                if (result == 0)
                        owner->sample_keys = 1 + value;
        }
        draft->inputs[draft->n_inputs++] = owner->sample_keys - 1;
        return result;
}

/* FNV-1a, and a scramble. Sources: G. Fowler, L. C. Noll, K.-P. Vo, "FNV hash". */
static int64_t stream_of(const char *name)
{
        uint64_t hash = 0xcbf29ce484222325ull;

        for (; *name; name++)
                hash = (hash ^ (uint8_t)*name) * 0x100000001b3ull;
        return (int64_t)sl_split_mix_scramble(hash);
}

/* Numbers that are drawn once belong to a request, not to a sample: in a graph of open batch they have no place. */
static bool leads_with_samples(const struct sl_importer *im, const struct sl_draft *draft)
{
        const struct sl_shape *shape;

        if (im->outer && im->graph != im->outer->graph)
                return false;
        if (draft->op == SL_OP_RANDOM_NORMAL || draft->op == SL_OP_RANDOM_UNIFORM)
                return false;
        shape = &im->graph->values[draft->inputs[0]].tensor.shape;
        return shape->rank && shape->dims[0] < 0;
}

static int set_type(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t fallback = SL_DTYPE_F32;

        if (draft->op == SL_OP_MULTINOMIAL)
                fallback = SL_DTYPE_I32;
        else if (draft->n_inputs)
                fallback = im->graph->values[draft->inputs[0]].tensor.dtype;
        int result = sl_attrs_set_int(&draft->attrs, SL_ATTR_TO, fallback);

        return result < 0 ? result : sl_onnx_copy_attr(im, node, "dtype", SL_ATTR_TO, &draft->attrs);
}

int sl_canonical_random(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        bool is_shaped = draft->op == SL_OP_RANDOM_NORMAL || draft->op == SL_OP_RANDOM_UNIFORM;
        int result;

        if (draft->n_inputs != !is_shaped || (!is_shaped && draft->inputs[0] == SL_VALUE_NONE))
                return sl_import_wrong(im, node, is_shaped ? "it wants no input" : "it wants one input");
        if (sl_import_has_batch(im) && !leads_with_samples(im, draft))
                return sl_import_wants_batch(im, node, "it draws for all samples of a request together");
        result = set_type(im, node, draft);
        if (result == 0)
                result = sl_attrs_set_int(&draft->attrs, SL_ATTR_STREAM, stream_of(node->proto->output[0]));
        return result == 0 ? add_keys(im, node, draft) : result;
}
