/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tensor is, apart from its data: element type, logical shape, physical layout. Plain values; any thread.
 */
#pragma once

#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_RANK_MAX 8

/* A dimension that is not known until a batch size is chosen. Only graphs hold such dimensions, kernels never do. */
#define SL_DIM_BATCH   (-1)
#define SL_DIM_UNKNOWN (-2)

struct sl_shape {
        uint32_t rank; /* 0 is a scalar */
        int64_t dims[SL_RANK_MAX];
};

/*
 * Shapes are always written in ONNX's order (N, C, spatial...). The layout says how the elements lie in memory:
 * PLAIN is row-major in that order; CHANNELS_LAST (rank 3 to 5) moves C behind the spatial dimensions (NHWC).
 */
enum sl_layout {
        SL_LAYOUT_PLAIN,
        SL_LAYOUT_CHANNELS_LAST,
};

struct sl_tensor {
        uint32_t dtype;  /* enum sl_dtype */
        uint32_t layout; /* enum sl_layout */
        struct sl_shape shape;
};

/* Some of the @n tensors has a type of 8 bits and fewer that is stored alone (base/dtype.h). */
static inline bool sl_tensors_are_small(const struct sl_tensor *tensors, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (sl_dtype_is_small(tensors[i].dtype))
                        return true;
        return false;
}

/* Product of the dimensions, 1 for a scalar; UINT64_MAX on overflow or when a dimension is unknown or negative. */
uint64_t sl_shape_elements(const struct sl_shape *shape);

/* Bytes of the data; UINT64_MAX when the elements are. */
uint64_t sl_tensor_bytes(const struct sl_tensor *tensor);

bool sl_shape_equal(const struct sl_shape *a, const struct sl_shape *b);
bool sl_shape_is_static(const struct sl_shape *shape);

/* Writes "[1,3,224,224]" ("N" for the batch, "?" for unknown) into @text and returns it. */
#define SL_SHAPE_TEXT_BYTES 192
const char *sl_shape_print(const struct sl_shape *shape, char text[SL_SHAPE_TEXT_BYTES]);

/* Strides in elements of each logical dimension in the tensor's layout. */
void sl_tensor_strides(const struct sl_tensor *tensor, int64_t ret_strides[SL_RANK_MAX]);
