/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlexAttention of domain ai.onnx.preview: attention whose scores and probabilities a body of the file may change. The bodies
 * become nodes of the graph between the two products, so that without any it is the attention that the passes know.
 */
#include "import/canonical.h"
#include "import/expand.h"

#include <math.h>

struct flex {
        uint32_t queries, keys, values;
        int64_t heads, shared; /* of queries; how many of them share keys and values */
};

static void read_flex(struct sl_expansion *x, struct flex *flex)
{
        const struct sl_shape *queries, *keys, *values;

        flex->queries = sl_expand_input(x, 0);
        flex->keys = sl_expand_input(x, 1);
        flex->values = sl_expand_input(x, 2);
        queries = sl_expand_shape(x, flex->queries);
        keys = sl_expand_shape(x, flex->keys);
        values = sl_expand_shape(x, flex->values);
        if (queries->rank != 4 || keys->rank != 4 || values->rank != 4)
                sl_expand_wrong(x, "its queries, keys or values have another rank than 4");
        else if (queries->dims[1] < 1 || keys->dims[1] < 1 || queries->dims[3] < 1)
                sl_expand_refuse(x, "the number of heads or their length is not known, or 0");
        else if (queries->dims[1] % keys->dims[1] || values->dims[1] != keys->dims[1])
                sl_expand_misfit(x, "its heads of keys and values are not as many, or do not divide those of queries");
        if (x->result < 0)
                return;
        flex->heads = queries->dims[1];
        flex->shared = queries->dims[1] / keys->dims[1];
}

static uint32_t regroup(struct sl_expansion *x, uint32_t value, int64_t heads, int64_t rows)
{
        int64_t width = sl_expand_shape(x, value)->dims[3];

        if (width < 0)
                sl_expand_refuse(x, "heads share keys whose number is not known");
        return sl_expand_reshape(x, value, (int64_t[]){0, heads, rows, width}, 4);
}

/* The rows of all heads that share keys below each other: [batch, heads of keys, shared * rows, width]. */
static uint32_t join_heads(struct sl_expansion *x, const struct flex *flex, uint32_t value)
{
        int64_t rows = sl_expand_shape(x, value)->dims[2];

        return flex->shared == 1 ? value : regroup(x, value, flex->heads / flex->shared, rows < 0 ? -1 : flex->shared * rows);
}

static uint32_t part_heads(struct sl_expansion *x, const struct flex *flex, uint32_t value)
{
        int64_t rows = sl_expand_shape(x, value)->dims[2];

        return flex->shared == 1 ? value : regroup(x, value, flex->heads, rows < 0 ? -1 : rows / flex->shared);
}

/* What the body in @attribute makes of @value, of the same shape and type. */
static uint32_t modify(struct sl_expansion *x, const char *attribute, uint32_t value)
{
        const struct sl_shape before = *sl_expand_shape(x, value);
        uint32_t changed = SL_VALUE_NONE;

        if (x->result < 0 || !sl_onnx_attr(x->node, attribute))
                return value;
        x->result = sl_import_inline(x->im, x->node, attribute, &value, 1, &changed, 1);
        if (x->result < 0)
                return SL_VALUE_NONE;
        if (sl_expand_shape(x, changed)->rank != 4 || sl_expand_dtype(x, changed) != sl_expand_dtype(x, value))
                sl_expand_wrong(x, "score_mod or prob_mod makes another rank or type than it gets");
        for (uint32_t i = 0; i < 4 && x->result == 0; i++) {
                int64_t dim = sl_expand_shape(x, changed)->dims[i];

                if (dim >= 0 && before.dims[i] >= 0 && dim != before.dims[i])
                        sl_expand_misfit(x, "score_mod or prob_mod makes another shape than it gets");
        }
        return changed;
}

static uint32_t softmax_type(struct sl_expansion *x, uint32_t dtype)
{
        int64_t wanted = sl_expand_int(x, "softmax_precision", dtype == SL_DTYPE_F64 ? SL_DTYPE_F64 : SL_DTYPE_F32);

        if (wanted < 0 || wanted > UINT16_MAX || !sl_dtype_is_float((uint32_t)wanted))
                sl_expand_wrong(x, "its softmax_precision is no type of floats");
        return (uint32_t)wanted;
}

static uint32_t cast_to(struct sl_expansion *x, uint32_t value, uint32_t dtype)
{
        return sl_expand_dtype(x, value) == dtype ? value : sl_expand_cast(x, value, dtype);
}

int sl_canonical_flex_attention(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t dtype, precision, scores, sums;
        struct flex flex = {0};
        double scale;

        (void)draft;
        read_flex(&x, &flex);
        if (x.result < 0)
                return sl_expansion_end(&x);
        dtype = sl_expand_dtype(&x, flex.queries);
        precision = softmax_type(&x, dtype);
        scale = sl_expand_float(&x, "scale", 1 / sqrt((double)sl_expand_shape(&x, flex.queries)->dims[3]));
        scores = sl_expand_transpose(&x, flex.keys, (int64_t[]){0, 1, 3, 2}, 4);
        scores = sl_expand_binary(&x, SL_OP_MATMUL, join_heads(&x, &flex, flex.queries), scores);
        scores = sl_expand_times(&x, part_heads(&x, &flex, scores), scale);
        scores = modify(&x, "score_mod", cast_to(&x, scores, precision));
        scores = modify(&x, "prob_mod", sl_expand_softmax(&x, scores, -1));
        sums = sl_expand_binary(&x, SL_OP_MATMUL, join_heads(&x, &flex, scores), cast_to(&x, flex.values, precision));
        sl_expand_output(&x, 0, cast_to(&x, part_heads(&x, &flex, sums), dtype));
        return sl_expansion_end(&x);
}
