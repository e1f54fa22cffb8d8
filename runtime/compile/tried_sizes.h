/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of open dimensions that a model is likely to be asked for: those that its configuration prepares, and those that requests
 * of the version before it had. A model that none of them suits, nor any that every load tries (lower/open_sizes.h), is not served.
 */
#pragma once

#include "base/dim_sizes.h"

#define SL_TRIED_SIZES_MAX 4

struct sl_tried_sizes {
        uint32_t n;
        struct sl_dim_sizes items[SL_TRIED_SIZES_MAX];
};
