/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the rows of ml.c, by family. Private to this folder. */
#pragma once

#include "import/canonical.h"
#include "import/expand.h"
#include "shape/classes.h"

#define SL_ML(name) int sl_ml_##name(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)

/* ml_trees.c: by attributes of one list for each field; by tensors, since version 5 of the domain */
SL_ML(tree_regressor);
SL_ML(tree_classifier);
SL_ML(tree_ensemble);

/* ml_linear.c */
SL_ML(linear_regressor);
SL_ML(linear_classifier);

/* ml_svm.c */
SL_ML(svm_regressor);
SL_ML(svm_classifier);

/* ml_features.c */
SL_ML(scaler);
SL_ML(normalizer);
SL_ML(imputer);
SL_ML(binarizer);
SL_ML(feature_vectorizer);
SL_ML(array_feature_extractor);
SL_ML(zip_map);
SL_ML(refuse_words);

/* ml_tables.c */
SL_ML(label_encoder);
SL_ML(one_hot_encoder);
SL_ML(category_mapper);

/* ml_scores.c: what classifiers and regressors have in common */

/* The attribute as a list, NULL and 0 when it is absent; of another type it is an error of the expansion. */
const float *sl_ml_floats(struct sl_expansion *x, const char *name, size_t *ret_n);
const int64_t *sl_ml_ints(struct sl_expansion *x, const char *name, size_t *ret_n);

/*
 * The numbers of attribute @name, a list, or @tensor, a tensor of float32 or float64 (NULL: no such attribute), which the caller
 * frees; NULL and 0 when both are absent, or something was wrong before. @ret_double becomes true for float64.
 */
double *sl_ml_doubles(struct sl_expansion *x, const char *name, const char *tensor, size_t *ret_n, bool *ret_double);

/* The strings of an attribute, NULL and 0 when there are none. */
const ProtobufCBinaryData *sl_ml_strings(struct sl_expansion *x, const char *name, size_t *ret_n);

/* Constants of the graph: a copy of @n numbers of these dimensions. */
uint32_t sl_ml_constant(struct sl_expansion *x, uint32_t dtype, const void *data, const int64_t *dims, uint32_t rank);
uint32_t sl_ml_vector(struct sl_expansion *x, uint32_t dtype, const void *data, size_t n);

/* Input 0 as rows: a vector is one row. Integers become float32; float64 stays where @keep_double. */
uint32_t sl_ml_rows(struct sl_expansion *x, bool keep_double);

/* The word of attribute post_transform. */
enum sl_post_transform sl_ml_post(struct sl_expansion *x);

/* Rows of scores, transformed. */
uint32_t sl_ml_transform(struct sl_expansion *x, uint32_t scores, enum sl_post_transform post);

/* How rows of scores become labels and scores that go out (kernels/shape/classes.h). */
struct sl_ml_classes {
        enum sl_post_transform post;
        enum sl_score_form form;
        double threshold; /* of a single score */
        const int64_t *labels;
        size_t n_labels;
        uint32_t vocabulary; /* of which the labels are places, 0: they are numbers */
};

/* The labels of a classifier, of which there must be one: integers in attribute @name, or strings in attribute @words. */
void sl_ml_labels(struct sl_expansion *x, const char *name, const char *words, struct sl_ml_classes *classes);

/* Output @index of the file's node is @value, of strings where there is a vocabulary. */
void sl_ml_output(struct sl_expansion *x, uint32_t index, uint32_t value, uint32_t vocabulary);

/* Outputs 0 and 1 of a classifier: the labels, and the scores as they go out. */
void sl_ml_classify(struct sl_expansion *x, uint32_t scores, const struct sl_ml_classes *classes);
