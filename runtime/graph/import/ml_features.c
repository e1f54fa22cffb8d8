/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to features before a model sees them: arithmetic, as nodes of ai.onnx. */
#include "import/ml.h"

#include "base/cleanup.h"

#include <math.h>

/* A vector of @dtype, F32, F64, I64 or I32. */
static uint32_t numbers(struct sl_expansion *x, uint32_t dtype, const double *values, size_t n)
{
        SL_CLEANUP(sl_cleanup_free) void *data = calloc(n + 1, sizeof(double));

        if (!data && x->result == 0)
                x->result = -ENOMEM;
        for (size_t i = 0; i < n && data; i++) {
                if (dtype == SL_DTYPE_F32)
                        ((float *)data)[i] = (float)values[i];
                else if (dtype == SL_DTYPE_F64)
                        ((double *)data)[i] = values[i];
                else
                        sl_expand_refuse(x, "numbers of its type are not supported");
        }
        return sl_ml_vector(x, dtype, data, n);
}

/* float64 stays, all else becomes float32. */
static uint32_t as_real(struct sl_expansion *x, uint32_t value)
{
        return sl_expand_dtype(x, value) == SL_DTYPE_F64 ? value : sl_expand_cast(x, value, SL_DTYPE_F32);
}

static int64_t last_dim(const struct sl_expansion *x, uint32_t value)
{
        const struct sl_shape *shape = sl_expand_shape(x, value);

        return shape->rank ? shape->dims[shape->rank - 1] : -1;
}

/* A list has one number, or one for each feature. */
static void check_list(struct sl_expansion *x, uint32_t value, size_t n)
{
        int64_t features = sl_expand_shape(x, value)->rank ? last_dim(x, value) : 1;

        if (n != 1 && features < 0)
                sl_expand_unsettled(x, "how many features there are is not known");
        else if (n != 1 && (int64_t)n != features)
                sl_expand_misfit(x, "a list has neither one number nor one for each feature");
}

/* The list as a vector to compute with, one number for all features or one for each; SL_VALUE_NONE without it. */
static uint32_t per_feature(struct sl_expansion *x, const char *name, uint32_t value)
{
        SL_CLEANUP(sl_cleanup_free) double *list = NULL;
        bool is_double = false;
        size_t n;

        list = sl_ml_doubles(x, name, NULL, &n, &is_double);
        if (!n)
                return SL_VALUE_NONE;
        check_list(x, value, n);
        return numbers(x, sl_expand_dtype(x, value), list, n);
}

SL_ML(scaler)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value = as_real(&x, sl_expand_input(&x, 0)), operand;

        (void)draft;
        operand = per_feature(&x, "offset", value);
        if (operand != SL_VALUE_NONE)
                value = sl_expand_binary(&x, SL_OP_SUB, value, operand);
        operand = per_feature(&x, "scale", value);
        if (operand != SL_VALUE_NONE)
                value = sl_expand_binary(&x, SL_OP_MUL, value, operand);
        sl_expand_output(&x, 0, sl_expand_cast(&x, value, SL_DTYPE_F32));
        return sl_expansion_end(&x);
}

/* A row of zeros stays one. */
SL_ML(normalizer)
{
        static const uint32_t norms[] = {SL_OP_REDUCE_MAX, SL_OP_REDUCE_L1, SL_OP_REDUCE_L2};
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value = sl_expand_cast(&x, sl_expand_input(&x, 0), SL_DTYPE_F32), norm, none;
        struct sl_draft reduce = {.n_inputs = 1, .inputs = {value}};
        int64_t axis = (int64_t)sl_expand_shape(&x, value)->rank - 1;

        (void)draft;
        if (axis < 0)
                sl_expand_wrong(&x, "it wants rows of features");
        if (x.result == 0)
                x.result = sl_onnx_word(im, node, "norm", "MAX L1 L2", SL_ATTR_MODE, &reduce.attrs);
        reduce.op = norms[sl_attrs_int(&reduce.attrs, SL_ATTR_MODE, 0)];
        sl_attrs_remove(&reduce.attrs, SL_ATTR_MODE);
        if (x.result == 0)
                x.result = sl_attrs_set_ints(&reduce.attrs, SL_ATTR_AXES, &axis, 1);
        norm = sl_expand(&x, &reduce);
        none = sl_expand_binary(&x, SL_OP_EQUAL, norm, sl_expand_number(&x, 0, SL_DTYPE_F32));
        reduce = (struct sl_draft){.op = SL_OP_WHERE, .n_inputs = 3, .inputs = {none, sl_expand_number(&x, 1, SL_DTYPE_F32), norm}};
        sl_expand_output(&x, 0, sl_expand_binary(&x, SL_OP_DIV, value, sl_expand(&x, &reduce)));
        return sl_expansion_end(&x);
}

/* What is missing is a number, or NaN. */
static uint32_t is_missing(struct sl_expansion *x, uint32_t value)
{
        double replaced = sl_expand_float(x, "replaced_value_float", 0);

        if (isnan(replaced))
                return sl_expand_unary(x, SL_OP_IS_NAN, value);
        return sl_expand_binary(x, SL_OP_EQUAL, value, numbers(x, sl_expand_dtype(x, value), &replaced, 1));
}

static uint32_t is_missing_integer(struct sl_expansion *x, uint32_t value)
{
        int64_t replaced = sl_expand_int(x, "replaced_value_int64", 0);

        return sl_expand_binary(x, SL_OP_EQUAL, value, sl_ml_vector(x, SL_DTYPE_I64, &replaced, 1));
}

SL_ML(imputer)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_draft where = {.op = SL_OP_WHERE, .n_inputs = 3};
        uint32_t value = sl_expand_input(&x, 0), dtype = sl_expand_dtype(&x, value);
        const int64_t *integers;
        size_t n;

        (void)draft;
        integers = sl_ml_ints(&x, "imputed_value_int64s", &n);
        if (integers)
                check_list(&x, value, n);
        if (sl_dtype_is_float(dtype)) {
                where.inputs[1] = per_feature(&x, "imputed_value_floats", value);
                where.inputs[0] = is_missing(&x, value);
        } else {
                value = sl_expand_cast(&x, value, SL_DTYPE_I64);
                where.inputs[1] = n ? sl_ml_vector(&x, SL_DTYPE_I64, integers, n) : SL_VALUE_NONE;
                where.inputs[0] = is_missing_integer(&x, value);
        }
        where.inputs[2] = value;
        if (x.result == 0 && where.inputs[1] == SL_VALUE_NONE)
                sl_expand_wrong(&x, "it has no values of the type of its input");
        sl_expand_output(&x, 0, sl_expand_cast(&x, sl_expand(&x, &where), dtype));
        return sl_expansion_end(&x);
}

SL_ML(binarizer)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value = sl_expand_input(&x, 0), dtype = sl_expand_dtype(&x, value), real = value;
        double threshold = sl_expand_float(&x, "threshold", 0);

        (void)draft;
        if (!sl_dtype_is_float(dtype))
                real = sl_expand_cast(&x, value, SL_DTYPE_F64);
        real = sl_expand_binary(&x, SL_OP_GREATER, real, numbers(&x, sl_expand_dtype(&x, real), &threshold, 1));
        sl_expand_output(&x, 0, sl_expand_cast(&x, real, dtype));
        return sl_expansion_end(&x);
}

/* One input as rows of @length numbers: what is longer is cut, what is shorter gets zeros behind it. */
static uint32_t fit_length(struct sl_expansion *x, uint32_t value, int64_t length)
{
        struct sl_draft pad = {.op = SL_OP_PAD, .n_inputs = 1};
        int64_t there;

        if (sl_expand_shape(x, value)->rank == 1)
                value = sl_expand_unsqueeze(x, value, (int64_t[]){0}, 1);
        value = sl_expand_cast(x, value, SL_DTYPE_F32);
        there = last_dim(x, value);
        if (x->result == 0 && (sl_expand_shape(x, value)->rank != 2 || there < 0 || length < 0))
                sl_expand_wrong(x, "it wants vectors or rows of features");
        if (there > length)
                return sl_expand_slice(x, value, 1, 0, length);
        if (there == length)
                return value;
        pad.inputs[0] = value;
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&pad.attrs, SL_ATTR_PADS, (int64_t[]){0, 0, 0, length - there}, 4);
        return sl_expand(x, &pad);
}

SL_ML(feature_vectorizer)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t joined = SL_VALUE_NONE;
        const int64_t *lengths;
        size_t n;

        (void)draft;
        lengths = sl_ml_ints(&x, "inputdimensions", &n);
        if (n && n != node->n_inputs)
                sl_expand_wrong(&x, "its inputdimensions are not one for each input");
        for (uint32_t i = 0; i < node->n_inputs && x.result == 0; i++) {
                uint32_t value = sl_expand_input(&x, i);

                if (value == SL_VALUE_NONE)
                        return sl_import_wrong(im, node, "an input is missing");
                value = fit_length(&x, value, n ? lengths[i] : last_dim(&x, value));
                joined = joined == SL_VALUE_NONE ? value : sl_expand_concat(&x, joined, value, 1);
        }
        sl_expand_output(&x, 0, joined);
        return sl_expansion_end(&x);
}

SL_ML(array_feature_extractor)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value = sl_expand_input(&x, 0), indices = sl_expand_input(&x, 1);
        struct sl_draft gather = {.op = SL_OP_GATHER, .n_inputs = 2};
        int64_t axis = (int64_t)sl_expand_shape(&x, value)->rank - 1;

        (void)draft;
        if (axis < 0)
                sl_expand_wrong(&x, "it wants a vector or rows");
        if (sl_expand_shape(&x, indices)->rank != 1)
                indices = sl_expand_reshape(&x, indices, (int64_t[]){-1}, 1);
        gather.inputs[0] = value;
        gather.inputs[1] = indices;
        if (x.result == 0)
                x.result = sl_attrs_set_int(&gather.attrs, SL_ATTR_AXIS, axis);
        value = sl_expand(&x, &gather);
        sl_expand_output(&x, 0, axis ? value : sl_expand_unsqueeze(&x, value, (int64_t[]){0}, 1));
        return sl_expansion_end(&x);
}

/* The labels of its columns, of an output of the model. */
static void label_columns(struct sl_expansion *x, const char *output)
{
        size_t n;
        const ProtobufCBinaryData *strings = sl_ml_strings(x, "classlabels_strings", &n);
        uint32_t vocabulary;
        int64_t *places;

        if (!n || x->result < 0 || x->im->graph != x->im->vocabularies->graph)
                return;
        x->result = sl_vocabulary_new(x->im, &vocabulary);
        if (x->result == 0)
                x->result = sl_vocabulary_add_all(x->im, vocabulary, x->node->name, strings, n, &places);
        for (size_t i = 0; i < n && x->result == 0; i++)
                if (places[i] != (int64_t)i)
                        sl_expand_wrong(x, "a label is there twice");
        if (x->result == 0)
                x->result = sl_vocabulary_label(x->im, output, vocabulary);
}

/* A map for each row, of labels and numbers: what goes out is the tensor of the numbers, in the order of the labels. */
SL_ML(zip_map)
{
        struct sl_expansion x = sl_expansion_of(im, node);

        (void)draft;
        label_columns(&x, node->proto->output[0]);
        sl_expand_output(&x, 0, sl_expand_input(&x, 0));
        return sl_expansion_end(&x);
}

SL_ML(refuse_words)
{
        (void)draft;
        return sl_import_refuse(im, node, "it works on strings or maps, which are not supported");
}
