/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize: one reading of the attributes for the shape rule and the kernels, and the arithmetic of one axis. An interpolation is a
 * product of one filter per axis, so each axis has a table: for each place of the output, the places of the input that it is made
 * of and their weights. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

/* In the order of the words of import. */
enum sl_resize_mode { SL_RESIZE_NEAREST, SL_RESIZE_LINEAR, SL_RESIZE_CUBIC };
enum sl_resize_transform {
        SL_RESIZE_HALF_PIXEL,
        SL_RESIZE_HALF_PIXEL_SYMMETRIC,
        SL_RESIZE_PYTORCH_HALF_PIXEL,
        SL_RESIZE_ALIGN_CORNERS,
        SL_RESIZE_ASYMMETRIC,
        SL_RESIZE_TF_HALF_PIXEL_FOR_NN,
        SL_RESIZE_TF_CROP_AND_RESIZE,
};
enum sl_resize_nearest { SL_RESIZE_PREFER_FLOOR, SL_RESIZE_PREFER_CEIL, SL_RESIZE_FLOOR, SL_RESIZE_CEIL };

/* A place is half-way between two of the input where single precision says so to this, as ONNX Runtime 1.31 was seen to do. */
#define SL_RESIZE_HALF_ERROR 1e-6f

struct sl_resize {
        uint32_t mode, transform, nearest, rank;
        bool exclude_outside, antialias;
        float coefficient, extrapolation;
        int64_t in[SL_RANK_MAX], out[SL_RANK_MAX]; /* in a graph they may be open */
        float scale[SL_RANK_MAX], crop_start[SL_RANK_MAX], crop_end[SL_RANK_MAX];
        float extent[SL_RANK_MAX]; /* of the output: as the scale says it, whole or not; where a size is given, that */
};

int sl_resize_read(const struct sl_node_desc *node, struct sl_resize *ret_resize, struct sl_error *error);

/* How many places of the input one place of the output is made of at most. */
int64_t sl_resize_taps(const struct sl_resize *resize, uint32_t axis);

/* Places off the edge are at most so far off it. */
#define SL_RESIZE_OFF_EDGE 3

/* The place of the input that stands for @place, which may be off its edge. */
static inline int64_t sl_resize_inside(const struct sl_resize *resize, uint32_t axis, int64_t place)
{
        return place < 0 ? 0 : place < resize->in[axis] ? place : resize->in[axis] - 1;
}

/*
 * Weights of output place @at: ret_weights[0 ... n) belong to the input places from *ret_first on. With a cubic filter some of
 * these may be off the edge (sl_resize_inside()).
 * Return: n, at most sl_resize_taps(); 0 when the place lies outside a crop.
 */
int64_t sl_resize_weights(const struct sl_resize *resize, uint32_t axis, int64_t at, int64_t *ret_first, float *ret_weights);

/* The axis is copied as it is. */
bool sl_resize_keeps(const struct sl_resize *resize, uint32_t axis);
