/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalisations with the sum in front of them: SkipLayerNormalization, SkipSimplifiedLayerNormalization, and
 * EmbedLayerNormalization, whose summands are rows of tables.
 */
#include "import/contrib.h"
#include "import/expand.h"

#define SKIP_EPSILON 1e-12

static uint32_t normalised(struct sl_expansion *x, uint32_t op, uint32_t value, uint32_t scale, uint32_t shift)
{
        struct sl_draft norm = {.op = op, .n_inputs = shift == SL_VALUE_NONE ? 2 : 3, .inputs = {value, scale, shift}};
        double epsilon = sl_expand_float(x, "epsilon", SKIP_EPSILON);

        if (x->result == 0)
                x->result = sl_attrs_set_int(&norm.attrs, SL_ATTR_AXIS, -1);
        if (x->result == 0)
                x->result = sl_attrs_set_float(&norm.attrs, SL_ATTR_EPSILON, epsilon);
        return sl_expand(x, &norm);
}

/* A bias goes to the summand that a product makes: there fuse-bias takes it. */
static uint32_t sum_of(struct sl_expansion *x, uint32_t input, uint32_t skip, uint32_t bias)
{
        uint32_t maker = sl_graph_producer(x->im->graph, skip);

        if (maker != SL_VALUE_NONE && x->im->graph->nodes[maker].op == SL_OP_MATMUL)
                skip = sl_expand_plus(x, skip, bias);
        else
                input = sl_expand_plus(x, input, bias);
        return sl_expand_binary(x, SL_OP_ADD, input, skip);
}

static int skip_norm(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op, uint32_t shift, uint32_t bias)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t sum = sum_of(&x, sl_expand_input(&x, 0), sl_expand_input(&x, 1), sl_expand_input(&x, bias));
        uint32_t beta = shift ? sl_expand_input(&x, shift) : SL_VALUE_NONE;

        sl_expand_output(&x, 0, normalised(&x, op, sum, sl_expand_input(&x, 2), beta));
        sl_expand_output(&x, 3, sum);
        return sl_expansion_end(&x);
}

SL_CONTRIB(skip_layer_norm)
{
        (void)draft;
        return skip_norm(im, node, SL_OP_LAYER_NORM, 3, 4);
}

SL_CONTRIB(skip_rms_norm)
{
        (void)draft;
        return skip_norm(im, node, SL_OP_RMS_NORM, 0, 3);
}

/* As many first rows of the table as @ids [batch, length] are long. */
static uint32_t first_rows(struct sl_expansion *x, uint32_t table, uint32_t ids)
{
        struct sl_draft slice = {.op = SL_OP_SLICE, .n_inputs = 4, .inputs = {table}};
        const int64_t zero = 0;

        slice.inputs[2] = sl_expand_slice(x, sl_expand_unary(x, SL_OP_SHAPE, ids), 0, 1, 2);
        for (uint32_t i = 1; i < 4 && x->result == 0; i += 2)
                x->result = sl_import_ints(x->im, x->node->name, &zero, 1, false, &slice.inputs[i]);
        return sl_expand(x, &slice);
}

/* Rows of the table: those that are asked for, or the first ones, one for each place of the sequence. */
static uint32_t positions(struct sl_expansion *x, uint32_t table, uint32_t places)
{
        int64_t length = sl_expand_shape(x, sl_expand_input(x, 0))->dims[1];

        if (places != SL_VALUE_NONE)
                return sl_expand_binary(x, SL_OP_GATHER, table, places);
        if (length < 0 && x->im->limits->any_size)
                return first_rows(x, table, sl_expand_input(x, 0));
        if (length < 0)
                sl_expand_refuse(x, "the length of its sequence is not known, and there is no input position_ids");
        return sl_expand_slice(x, table, 0, 0, length);
}

static uint32_t sum_of_rows(struct sl_expansion *x, uint32_t values)
{
        struct sl_draft sum = {.op = SL_OP_REDUCE_SUM, .n_inputs = 1, .inputs = {values}};

        if (x->result == 0)
                x->result = sl_attrs_set_ints(&sum.attrs, SL_ATTR_AXES, (int64_t[]){1}, 1);
        if (x->result == 0)
                x->result = sl_attrs_set_int(&sum.attrs, SL_ATTR_KEEPDIMS, 0);
        return sl_expand(x, &sum);
}

/* How many ones each row of the mask has; zeros without a mask. */
static uint32_t mask_index(struct sl_expansion *x, uint32_t mask)
{
        uint32_t ids = sl_expand_input(x, 0);
        uint32_t counted = mask == SL_VALUE_NONE ? ids : mask;
        uint32_t number = sl_expand_number(x, mask == SL_VALUE_NONE ? 0 : 1, sl_expand_dtype(x, counted));

        counted = sl_expand_binary(x, mask == SL_VALUE_NONE ? SL_OP_MUL : SL_OP_EQUAL, counted, number);
        return sum_of_rows(x, sl_expand_cast(x, counted, SL_DTYPE_I32));
}

SL_CONTRIB(embed_layer_norm)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t ids = sl_expand_input(&x, 0), segments = sl_expand_input(&x, 1), sum;

        (void)draft;
        if (sl_expand_shape(&x, ids)->rank != 2 || sl_expand_input(&x, 6) == SL_VALUE_NONE)
                sl_expand_wrong(&x, "input_ids is no matrix, or beta is missing");
        if (segments != SL_VALUE_NONE && sl_expand_input(&x, 4) == SL_VALUE_NONE)
                sl_expand_wrong(&x, "segment_ids without a segment_embedding");
        sum = sl_expand_binary(&x, SL_OP_GATHER, sl_expand_input(&x, 2), ids);
        sum = sl_expand_binary(&x, SL_OP_ADD, sum, positions(&x, sl_expand_input(&x, 3), sl_expand_input(&x, 8)));
        if (segments != SL_VALUE_NONE)
                sum = sl_expand_binary(&x, SL_OP_ADD, sum, sl_expand_binary(&x, SL_OP_GATHER, sl_expand_input(&x, 4), segments));
        sl_expand_output(&x, 0, normalised(&x, SL_OP_LAYER_NORM, sum, sl_expand_input(&x, 5), sl_expand_input(&x, 6)));
        if (sl_expand_has_output(&x, 1))
                sl_expand_output(&x, 1, mask_index(&x, sl_expand_input(&x, 7)));
        sl_expand_output(&x, 2, sum);
        return sl_expansion_end(&x);
}
