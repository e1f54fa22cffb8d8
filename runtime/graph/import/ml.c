/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of domain ai.onnx.ml, which scikit-learn's, XGBoost's and LightGBM's exporters write, on numbers and on words of which
 * there is a list (vocabulary.h). What they do to rows becomes nodes of ai.onnx; trees, lists of labels and tables of keys become
 * constants of operators of our own.
 */
#include "import/ml.h"

#define NODES                                                                                                                      \
        " nodes_falsenodeids nodes_featureids nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true "            \
        "nodes_modes "                                                                                                             \
        "nodes_nodeids nodes_treeids nodes_truenodeids nodes_values nodes_values_as_tensor post_transform base_values "            \
        "base_values_as_tensor "

const struct sl_canonical sl_ml_rows_of_domain[] = {
        {.name = "TreeEnsembleRegressor",
                .understood = NODES "aggregate_function n_targets target_ids target_nodeids target_treeids target_weights "
                                    "target_weights_as_tensor ",
                .least = 1,
                .adapt = sl_ml_tree_regressor},
        {.name = "TreeEnsembleClassifier",
                .understood = NODES "class_ids class_nodeids class_treeids class_weights class_weights_as_tensor "
                                    "classlabels_int64s classlabels_strings ",
                .least = 1,
                .adapt = sl_ml_tree_classifier},
        {.name = "TreeEnsemble",
                .understood = " aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs "
                              "nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes "
                              "nodes_splits nodes_trueleafs nodes_truenodeids post_transform tree_roots ",
                .least = 1,
                .adapt = sl_ml_tree_ensemble},
        {.name = "LinearRegressor",
                .understood = " coefficients intercepts post_transform targets ",
                .least = 1,
                .adapt = sl_ml_linear_regressor},
        {.name = "LinearClassifier",
                .understood = " classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform ",
                .least = 1,
                .adapt = sl_ml_linear_classifier},
        {.name = "SVMRegressor",
                .understood = " coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors ",
                .least = 1,
                .adapt = sl_ml_svm_regressor},
        {.name = "SVMClassifier",
                .understood = " classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform prob_a "
                              "prob_b rho support_vectors vectors_per_class ",
                .least = 1,
                .adapt = sl_ml_svm_classifier},
        {.name = "Scaler", .understood = " offset scale ", .least = 1, .adapt = sl_ml_scaler},
        {.name = "Normalizer", .understood = " norm ", .least = 1, .adapt = sl_ml_normalizer},
        {.name = "Imputer",
                .understood = " imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64 ",
                .least = 1,
                .adapt = sl_ml_imputer},
        {.name = "Binarizer", .understood = " threshold ", .least = 1, .adapt = sl_ml_binarizer},
        {.name = "FeatureVectorizer", .understood = " inputdimensions ", .least = 1, .adapt = sl_ml_feature_vectorizer},
        {.name = "ArrayFeatureExtractor", .least = 2, .adapt = sl_ml_array_feature_extractor},
        {.name = "LabelEncoder",
                .reads_strings = true,
                .understood = " classes_strings default_float default_int64 default_string default_tensor keys_floats keys_int64s "
                              "keys_strings keys_tensor values_floats values_int64s values_strings values_tensor ",
                .least = 1,
                .adapt = sl_ml_label_encoder},
        {.name = "OneHotEncoder",
                .reads_strings = true,
                .understood = " cats_int64s cats_strings zeros ",
                .least = 1,
                .adapt = sl_ml_one_hot_encoder},
        {.name = "ZipMap", .understood = " classlabels_int64s classlabels_strings ", .least = 1, .adapt = sl_ml_zip_map},
        {.name = "CategoryMapper",
                .reads_strings = true,
                .understood = " cats_int64s cats_strings default_int64 default_string ",
                .least = 1,
                .adapt = sl_ml_category_mapper},
        {.name = "DictVectorizer", .understood = " int64_vocabulary string_vocabulary ", .adapt = sl_ml_refuse_words},
        {.name = "CastMap", .understood = " cast_to map_form max_map ", .adapt = sl_ml_refuse_words},
        {.name = NULL},
};
