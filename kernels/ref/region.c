/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of images: RoiAlign, MaxRoiPool. The regions are data: image numbers and sizes are checked where they are used.
 */
#include "element.h"
#include "kernels.h"

#include <errno.h>

/* More samples of a region's cell than this per axis would be a region far larger than any image. */
#define SAMPLES_MAX 4096

struct cells {
        double start[2], cell[2]; /* y, x */
        int64_t samples[2];
};

struct images {
        const void *data;
        uint32_t dtype;
        int64_t channels, height, width;
        struct sl_pace *pace;
};

static double larger(double a, double b)
{
        return isnan(a) || a > b ? a : b;
}

/*
 * The largest of the four weighted neighbours, or their sum. What is more than one pixel outside is 0. Of the largest, a neighbour
 * that is no number counts where it has a weight.
 */
static double sample(const struct images *im, int64_t plane, double y, double x, bool largest)
{
        int64_t low[2], high[2];
        double at[2] = {y, x}, part[4];
        const int64_t size[2] = {im->height, im->width};

        for (int k = 0; k < 2; k++) {
                if (at[k] < -1 || at[k] > (double)size[k])
                        return 0;
                at[k] = at[k] < 0 ? 0 : at[k];
                low[k] = (int64_t)at[k];
                high[k] = low[k] + 1;
                if (low[k] >= size[k] - 1) {
                        low[k] = high[k] = size[k] - 1;
                        at[k] = (double)low[k];
                }
        }
        for (int k = 0; k < 4; k++) {
                double dy = at[0] - (double)low[0], dx = at[1] - (double)low[1];
                int64_t row = k / 2 ? high[0] : low[0], column = k % 2 ? high[1] : low[1];
                double weight = (k / 2 ? dy : 1 - dy) * (k % 2 ? dx : 1 - dx);
                double v = sl_ref_load(im->data, (plane * im->height + row) * im->width + column, im->dtype);

                part[k] = largest && weight == 0 && !isfinite(v) ? -(double)INFINITY : weight * v;
        }
        if (largest)
                return larger(larger(part[0], part[1]), larger(part[2], part[3]));
        return part[0] + part[1] + part[2] + part[3];
}

static double align_cell(const struct images *im, int64_t plane, const struct cells *c, int64_t row, int64_t column, bool largest)
{
        double result = largest ? -(double)INFINITY : 0;
        int64_t count = c->samples[0] * c->samples[1];

        for (int64_t i = 0; i < count && sl_pace_on(im->pace, 4); i++) {
                double sub_y = ((double)(i / c->samples[1]) + 0.5) / (double)c->samples[0];
                double sub_x = ((double)(i % c->samples[1]) + 0.5) / (double)c->samples[1];
                double v = sample(im, plane, c->start[0] + ((double)row + sub_y) * c->cell[0],
                        c->start[1] + ((double)column + sub_x) * c->cell[1], largest);

                result = largest ? larger(result, v) : result + v;
        }
        if (!count)
                return 0;
        return largest ? result : result / (double)count;
}

/* -ERANGE: a region that is not finite, or far larger than images are. */
static int read_cells(const struct sl_node_desc *node, const void *rois, int64_t roi, struct cells *ret_cells)
{
        double scale = sl_attrs_float(&node->attrs, SL_ATTR_SPATIAL_SCALE, 1);
        int64_t told = sl_attrs_int(&node->attrs, SL_ATTR_SAMPLING_RATIO, 0);
        bool half_pixel = sl_attrs_int(&node->attrs, SL_ATTR_TRANSFORM, 0) == 0;

        for (int k = 0; k < 2; k++) {
                double start = sl_ref_load(rois, roi * 4 + 1 - k, node->inputs[1].dtype) * scale - (half_pixel ? 0.5 : 0);
                double end = sl_ref_load(rois, roi * 4 + 3 - k, node->inputs[1].dtype) * scale - (half_pixel ? 0.5 : 0);
                double size = half_pixel ? end - start : fmax(end - start, 1), samples;

                ret_cells->start[k] = start;
                ret_cells->cell[k] = size / (double)node->outputs[0].shape.dims[2 + k];
                samples = told ? (double)told : ceil(ret_cells->cell[k]);
                if (!isfinite(start) || !isfinite(end) || samples > SAMPLES_MAX)
                        return -ERANGE;
                ret_cells->samples[k] = samples > 0 ? (int64_t)samples : 0;
        }
        return 0;
}

static struct images images_of(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const int64_t *dims = node->inputs[0].shape.dims;

        return (struct images){binding->inputs[0], node->inputs[0].dtype, dims[1], dims[2], dims[3], binding->pace};
}

int sl_ref_roi_align(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const int64_t *out = node->outputs[0].shape.dims, *in = node->inputs[0].shape.dims, *images = binding->inputs[2];
        struct images im = images_of(node, binding);
        bool largest = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) == 1;
        int64_t cells = out[2] * out[3];

        for (int64_t roi = 0; roi < out[0]; roi++) {
                struct cells c;

                if (images[roi] < 0 || images[roi] >= in[0] || read_cells(node, binding->inputs[1], roi, &c) || !in[2] || !in[3])
                        return -ERANGE;
                for (int64_t i = 0; i < out[1] * cells && sl_pace_on(binding->pace, 1); i++)
                        sl_ref_store(binding->outputs[0], roi * out[1] * cells + i, im.dtype,
                                align_cell(
                                        &im, images[roi] * im.channels + i / cells, &c, i % cells / out[3], i % out[3], largest));
        }
        return 0;
}

/* The rows or columns [begin, end) of cell @i of @n, inside [0, size). */
static void cell_range(double start, double end, int64_t i, int64_t n, int64_t size, int64_t *ret_begin, int64_t *ret_end)
{
        double extent = fmax(end - start + 1, 1) / (double)n;

        *ret_begin = (int64_t)fmin(fmax(floor((double)i * extent) + start, 0), (double)size);
        *ret_end = (int64_t)fmin(fmax(ceil((double)(i + 1) * extent) + start, 0), (double)size);
}

static double pool_cell(
        const struct images *im, int64_t plane, const double corners[4], const int64_t *out, int64_t row, int64_t column)
{
        int64_t y0, y1, x0, x1;
        double result = 0;
        bool any = false;

        cell_range(corners[1], corners[3], row, out[2], im->height, &y0, &y1);
        cell_range(corners[0], corners[2], column, out[3], im->width, &x0, &x1);
        for (int64_t y = y0; y < y1 && sl_pace_on(im->pace, 1 + (uint64_t)(x1 > x0 ? x1 - x0 : 0)); y++)
                for (int64_t x = x0; x < x1; x++) {
                        double v = sl_ref_load(im->data, (plane * im->height + y) * im->width + x, im->dtype);

                        result = any ? larger(result, v) : v;
                        any = true;
                }
        return result;
}

int sl_ref_max_roi_pool(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const int64_t *out = node->outputs[0].shape.dims;
        double scale = sl_attrs_float(&node->attrs, SL_ATTR_SPATIAL_SCALE, 1);
        struct images im = images_of(node, binding);
        int64_t cells = out[2] * out[3];

        for (int64_t roi = 0; roi < out[0]; roi++) {
                double image = sl_ref_load(binding->inputs[1], roi * 5, im.dtype), corners[4];

                if (!(image >= 0 && image < (double)node->inputs[0].shape.dims[0]))
                        return -ERANGE;
                for (int k = 0; k < 4; k++) {
                        corners[k] = round(sl_ref_load(binding->inputs[1], roi * 5 + 1 + k, im.dtype) * scale);
                        if (!isfinite(corners[k]))
                                return -ERANGE;
                }
                for (int64_t i = 0; i < out[1] * cells && sl_pace_on(binding->pace, 1); i++)
                        sl_ref_store(binding->outputs[0], roi * out[1] * cells + i, im.dtype,
                                pool_cell(&im, (int64_t)image * im.channels + i / cells, corners, out, i % cells / out[3],
                                        i % out[3]));
        }
        return 0;
}
