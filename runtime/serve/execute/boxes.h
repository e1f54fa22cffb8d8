/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several detectors have found in one sample, as one list: weighted boxes fusion, non-maximum suppression and its soft form.
 * The result is the same to the bit for the same lists in model order: boxes are ranked by their weighted scores, and equal ones by
 * member and place.
 *
 * Sources: R. Solovyev, W. Wang, T. Gabruseva, Weighted boxes fusion: ensembling boxes from different object detection models,
 * 2021, section 3. N. Bodla, B. Singh, R. Chellappa, L. Davis, Soft-NMS: improving object detection with one line of code, 2017,
 * section 3.
 *
 * A place is left out whose score is not a number, not above 0 or below `score_min`, or whose corners are not numbers with an area.
 * Pure; any thread. Time grows with the square of the boxes that count, which SL_BOXES_MAX bounds.
 */
#pragma once

#include "rule.h"

#include <stdint.h>

/* Of a sample, from all members. */
#define SL_BOXES_MAX 8192u

/* What one member has found. */
struct sl_box_list {
        const float *boxes; /* [places][4] */
        const float *scores;
        const void *labels; /* of @label_dtype; NULL: all of one kind */
        const void *count;  /* the same, of count_dtype; NULL: all places count */
        uint32_t places;
        float weight;
};

struct sl_box_fusion {
        enum sl_rule rule; /* WEIGHTED_BOXES, NMS or SOFT_NMS */
        float overlap, score_min, sigma;
        uint32_t n_lists;
        const struct sl_box_list *lists;   /* in model order */
        uint32_t label_dtype, count_dtype; /* float32, int32 or int64 */
        void *scratch;                     /* sl_box_scratch_bytes() of all lists' places, 64-byte aligned */
        uint32_t places;                   /* of the result: the highest scores stay */
        float *boxes, *scores;             /* NULL, as the next two: not wanted. Places that are left over are zeros */
        void *labels, *count;
};

uint64_t sl_box_scratch_bytes(uint64_t boxes);

void sl_fuse_boxes(const struct sl_box_fusion *fusion);
