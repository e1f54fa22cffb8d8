/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rule of combination is told beside its name. One block without addresses, which is copied as it is and never changes:
 * configurations that are copied share it, as long as one of them holds it. Holding: threads one at a time; reading: any.
 */
#pragma once

#include "base/dim_sizes.h"

#include <stddef.h>
#include <stdint.h>

/* What a detector's outputs mean, by which a rule for boxes finds them. */
#define SL_BOX_OUTPUTS(X)                                                                                                          \
        X(BOXES, "boxes")   /* [places, 4]: two corners each, x1 y1 x2 y2 or y1 x1 y2 x2 */                                        \
        X(SCORES, "scores") /* [places] */                                                                                         \
        X(LABELS, "labels") /* [places], optional: boxes of different labels have nothing to do with each other */                 \
        X(COUNT, "count")   /* one number, optional: so many places count, the first ones */

enum sl_box_output {
#define X(id, name) SL_BOX_##id,
        SL_BOX_OUTPUTS(X)
#undef X
                SL_BOX_OUTPUT_COUNT,
};

struct sl_combining {
        uint32_t holders;
        uint32_t n_members;

        /* When members are asked no more, of a sample; 0: each member is always asked. */
        uint32_t agree; /* so many have the same largest class */
        float margin;   /* their result's largest class is so far above the next one */

        uint32_t quorum; /* so many members have to answer; 0: all */

        /* Of boxes. */
        float overlap;   /* intersection over union from which two boxes are of one object */
        float score_min; /* boxes below are left out */
        float sigma;     /* of soft_nms: how far an overlap reaches */
        char outputs[SL_BOX_OUTPUT_COUNT]
                    [SL_NAME_MAX + 1]; /* their names; "": as the list above calls them, where there are such */

        /* Of weighted_mean with weights for each class. */
        uint32_t n_classes;    /* 0: there are none */
        float class_weights[]; /* [n_members][n_classes]; of each class the sum is above 0 */
};

/* "boxes". */
const char *sl_box_output_name(enum sl_box_output output);

/* Zeros, with room for the weights; held once. NULL: no memory. */
struct sl_combining *sl_combining_new(uint32_t n_members, uint32_t n_classes);

/* Held once. NULL: no memory, or @from is NULL. */
struct sl_combining *sl_combining_copy(const struct sl_combining *from);

/* NULL is fine. hold returns @combining, release NULL. */
struct sl_combining *sl_combining_hold(struct sl_combining *combining);
struct sl_combining *sl_combining_release(struct sl_combining *combining);

/* What it says, to be compared: all bytes behind the holders. */
static inline const void *sl_combining_bytes(const struct sl_combining *combining, size_t *ret_bytes)
{
        *ret_bytes = sizeof(*combining) + sizeof(float) * combining->n_members * combining->n_classes -
                     offsetof(struct sl_combining, n_members);
        return &combining->n_members;
}
