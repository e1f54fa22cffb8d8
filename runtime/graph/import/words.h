/* SPDX-License-Identifier: Apache-2.0 */
/* The words that string attributes may have, in the order of their numbers: rows of canonical.c name them. */
#pragma once

#include "import/canonical.h"

static const struct sl_canonical_words direction[] = {{"direction", SL_ATTR_DIRECTION, "forward reverse bidirectional"}, {0}};

static const struct sl_canonical_words reduction[] = {{"reduction", SL_ATTR_REDUCTION, "none add mul max min"}, {0}};

#define TRANSFORMS                                                                                                                 \
        "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn tf_crop_and_resize"
static const struct sl_canonical_words resize[] = {{"mode", SL_ATTR_MODE, "nearest linear cubic"},
        {"coordinate_transformation_mode", SL_ATTR_TRANSFORM, TRANSFORMS},
        {"nearest_mode", SL_ATTR_NEAREST, "round_prefer_floor round_prefer_ceil floor ceil"},
        {"keep_aspect_ratio_policy", SL_ATTR_ASPECT_POLICY, "stretch not_larger not_smaller"}, {0}};

static const struct sl_canonical_words ngram[] = {{"mode", SL_ATTR_MODE, "TF IDF TFIDF"}, {0}};

static const struct sl_canonical_words upsample[] = {{"mode", SL_ATTR_MODE, "nearest linear"}, {0}};

static const struct sl_canonical_words roi_align[] = {{"mode", SL_ATTR_MODE, "avg max"},
        {"coordinate_transformation_mode", SL_ATTR_TRANSFORM, "half_pixel output_half_pixel"}, {0}};

static const struct sl_canonical_words depth_to_space[] = {{"mode", SL_ATTR_MODE, "DCR CRD"}, {0}};

static const struct sl_canonical_words loss[] = {{"reduction", SL_ATTR_REDUCTION, "mean sum none"}, {0}};

static const struct sl_canonical_words grid_sample[] = {{"mode", SL_ATTR_MODE, "linear nearest cubic bilinear bicubic"},
        {"padding_mode", SL_ATTR_PADDING_MODE, "zeros border reflection"}, {0}};

static const struct sl_canonical_words tensor_scatter[] = {{"mode", SL_ATTR_MODE, "linear circular"}, {0}};

static const struct sl_canonical_words update_rule[] = {{"update_rule", SL_ATTR_MODE, "linear gated delta gated_delta"}, {0}};

static const struct sl_canonical_words round_mode[] = {{"round_mode", SL_ATTR_MODE, "up down nearest"}, {0}};

static const struct sl_canonical_words pad[] = {{"mode", SL_ATTR_MODE, "constant reflect edge wrap"}, {0}};

static const struct sl_canonical_words gelu[] = {{"approximate", SL_ATTR_APPROXIMATE, "none tanh"}, {0}};

static const struct sl_canonical_words bit_shift[] = {{"direction", SL_ATTR_MODE, "LEFT RIGHT"}, {0}};
