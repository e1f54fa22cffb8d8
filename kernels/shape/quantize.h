/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the scale and the zero point of an element lie: one reading of the attributes for shape rules and kernels. Pure; any
 * thread.
 */
#pragma once

#include "node.h"

struct sl_error;

/* Element e lies at place e / inner % size of its axis; each block of that axis has a scale of its own. */
struct sl_scales {
        int64_t inner, size;
        int64_t block;  /* elements of the axis that share a scale; 0: one scale for the tensor */
        int64_t blocks; /* of the axis, when the scales have the tensor's rank; else 0: one vector of scales */
};

/* Scales in input 1 of a node whose tensor is input 0. -EINVAL: a shape or attribute that does not fit. */
int sl_scales_read(const struct sl_node_desc *node, struct sl_scales *ret_scales, struct sl_error *error);

static inline int64_t sl_scale_of(const struct sl_scales *scales, int64_t element)
{
        int64_t row, place;

        if (!scales->block)
                return 0;
        row = element / scales->inner;
        place = row % scales->size / scales->block;
        if (!scales->blocks)
                return place;
        return (row / scales->size * scales->blocks + place) * scales->inner + element % scales->inner;
}
