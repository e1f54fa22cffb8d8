/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coordinates are computed in single precision, as other runtimes do: which of two pixels is the nearest may depend on it.
 */
#include "resize.h"

#include "rules.h"

#include <inttypes.h>
#include <math.h>

/* What is interpolated has fewer places than single precision can tell apart. More taps would be a picture shrunk to nothing. */
#define PLACES_MAX (1 << 22)
#define TAPS_MAX   (1 << 22)

enum { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER };

static int read_words(const struct sl_node_desc *node, struct sl_resize *r, struct sl_error *error)
{
        const int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        const int64_t transform = sl_attrs_int(&node->attrs, SL_ATTR_TRANSFORM, 0);
        const int64_t nearest = sl_attrs_int(&node->attrs, SL_ATTR_NEAREST, 0);
        const int64_t policy = sl_attrs_int(&node->attrs, SL_ATTR_ASPECT_POLICY, 0);

        if (mode < 0 || mode > SL_RESIZE_CUBIC || transform < 0 || transform > SL_RESIZE_TF_CROP_AND_RESIZE || nearest < 0 ||
                nearest > SL_RESIZE_CEIL || policy < 0 || policy > POLICY_NOT_SMALLER)
                return sl_error_set(error, EINVAL, "mode %lld, transformation %lld, rounding %lld or policy %lld is not known",
                        (long long)mode, (long long)transform, (long long)nearest, (long long)policy);
        r->mode = (uint32_t)mode;
        r->transform = (uint32_t)transform;
        r->nearest = (uint32_t)nearest;
        r->exclude_outside = sl_attrs_int(&node->attrs, SL_ATTR_EXCLUDE_OUTSIDE, 0);
        r->antialias = sl_attrs_int(&node->attrs, SL_ATTR_ANTIALIAS, 0);
        r->coefficient = (float)sl_attrs_float(&node->attrs, SL_ATTR_CUBIC_COEFF, -0.75);
        r->extrapolation = (float)sl_attrs_float(&node->attrs, SL_ATTR_EXTRAPOLATION, 0);
        return 0;
}

/* The axes that the lists speak of, in the lists' order. */
static int read_axes(const struct sl_node_desc *node, uint32_t rank, uint32_t *axes, uint32_t *ret_count, struct sl_error *error)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t mask, count = list ? list->count : rank;
        int r = 0;

        if (list && list->type != SL_ATTR_TYPE_INTS)
                return sl_error_set(error, EINVAL, "attribute axes is not a list of integers");
        if (list)
                r = sl_axes_resolve(list, rank, &mask, error);
        for (uint32_t i = 0; i < count && !r; i++) {
                axes[i] = i;
                if (list)
                        r = sl_axis_resolve(list->ints[i], rank, &axes[i], error);
        }
        *ret_count = count;
        return r;
}

/* A crop that a request brings says how much of each axis the scales apply to. */
static bool waits_for_crop(const struct sl_node_desc *node, const struct sl_resize *r)
{
        return r->transform == SL_RESIZE_TF_CROP_AND_RESIZE && sl_input_present(node, 1) &&
               !sl_attrs_find(&node->attrs, SL_ATTR_ROI);
}

/* A list of that type with as many elements as there are axes (times @each); NULL when it is absent or empty. */
static int find_list(const struct sl_node_desc *node, uint32_t id, enum sl_attr_type type, uint32_t count,
        const struct sl_attr **ret_list, struct sl_error *error)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, id);

        *ret_list = NULL;
        if (!list || !list->count)
                return 0;
        if (list->type != type || list->count != count)
                return sl_error_set(error, EINVAL, "attribute %s has %u elements, wants %u", sl_attr_name(id), list->count, count);
        *ret_list = list;
        return 0;
}

static int scale_axis(struct sl_resize *r, uint32_t axis, double scale, struct sl_error *error)
{
        double covered = (double)r->crop_end[axis] - (double)r->crop_start[axis], size;

        if (!(scale > 0 && scale < 0x1p31))
                return sl_error_set(error, EINVAL, "the scale of dimension %u is %g, outside (0,2^31)", axis, scale);
        r->scale[axis] = (float)scale;
        r->extent[axis] = (float)scale * (float)r->in[axis];
        if (!sl_dim_known(r->in[axis])) {
                r->out[axis] = scale == 1 ? r->in[axis] : SL_DIM_UNKNOWN;
                return 0;
        }
        size = r->transform == SL_RESIZE_TF_CROP_AND_RESIZE ? floor((double)r->in[axis] * covered * scale)
                                                            : floor((double)((float)r->in[axis] * (float)scale));
        if (!(size >= 0 && size < 0x1p31))
                return sl_error_set(error, EOVERFLOW, "dimension %u of the output would be %g", axis, size);
        r->out[axis] = scale == 1 && covered == 1 ? r->in[axis] : (int64_t)size;
        return 0;
}

static int size_axis(struct sl_resize *r, uint32_t axis, int64_t size, struct sl_error *error)
{
        if (size < 0 || size > INT32_MAX)
                return sl_error_set(
                        error, EINVAL, "the size of dimension %u is %" PRId64 ", outside [0,%d]", axis, size, INT32_MAX);
        r->out[axis] = size;
        r->extent[axis] = (float)size;
        if (sl_dim_known(r->in[axis]))
                r->scale[axis] = r->in[axis] ? (float)size / (float)r->in[axis] : 1;
        return 0;
}

/* One scale for all axes, the smallest or the largest that the sizes ask for. */
static int size_evenly(struct sl_resize *r, const uint32_t *axes, const struct sl_attr *sizes, bool larger, struct sl_error *error)
{
        double best = 0;

        for (uint32_t i = 0; i < sizes->count; i++) {
                double scale = (double)sizes->ints[i] / (double)r->in[axes[i]];

                if (!sl_dim_known(r->in[axes[i]])) {
                        for (uint32_t k = 0; k < sizes->count; k++)
                                r->out[axes[k]] = SL_DIM_UNKNOWN;
                        return 0;
                }
                if (i == 0 || (larger ? scale > best : scale < best))
                        best = scale;
        }
        for (uint32_t i = 0; i < sizes->count; i++) {
                double size = floor((double)r->in[axes[i]] * best + 0.5);
                int result = size >= 0 && size < 0x1p31
                                     ? size_axis(r, axes[i], (int64_t)size, error)
                                     : sl_error_set(error, EINVAL, "dimension %u would be %.0f, outside [0,2^31)",
                                               (uint32_t)axes[i], size);

                if (result)
                        return result;
                r->scale[axes[i]] = (float)best;
                r->extent[axes[i]] = (float)best * (float)r->in[axes[i]];
        }
        return 0;
}

static int read_sizes(
        const struct sl_node_desc *node, struct sl_resize *r, const uint32_t *axes, uint32_t count, struct sl_error *error)
{
        int64_t policy = sl_attrs_int(&node->attrs, SL_ATTR_ASPECT_POLICY, 0);
        const struct sl_attr *scales, *sizes;
        int result = find_list(node, SL_ATTR_SCALES, SL_ATTR_TYPE_FLOATS, count, &scales, error);

        result = result ? result : find_list(node, SL_ATTR_SIZES, SL_ATTR_TYPE_INTS, count, &sizes, error);
        if (result)
                return result;
        if (!scales && !sizes && !sl_input_present(node, 2) && !sl_input_present(node, 3))
                return sl_error_set(error, EINVAL, "neither scales nor sizes are given");
        if (!sizes && (!scales || waits_for_crop(node, r))) {
                for (uint32_t i = 0; i < count; i++)
                        r->out[axes[i]] = SL_DIM_UNKNOWN;
                return 0;
        }
        if (sizes && policy != POLICY_STRETCH)
                return size_evenly(r, axes, sizes, policy == POLICY_NOT_SMALLER, error);
        for (uint32_t i = 0; i < count && !result; i++)
                result = sizes ? size_axis(r, axes[i], sizes->ints[i], error) : scale_axis(r, axes[i], scales->floats[i], error);
        return result;
}

/* Something must be there to interpolate, and not too much of it. */
static int check_axes(const struct sl_resize *r, struct sl_error *error)
{
        for (uint32_t i = 0; i < r->rank; i++) {
                if (!sl_dim_known(r->in[i]) || !sl_dim_known(r->out[i]))
                        continue;
                if (r->in[i] > INT32_MAX || (!r->in[i] && r->out[i]))
                        return sl_error_set(error, EINVAL, "dimension %u has %" PRId64 " elements, the output %" PRId64, i,
                                r->in[i], r->out[i]);
                if (r->mode != SL_RESIZE_NEAREST && !sl_resize_keeps(r, i) && r->in[i] > PLACES_MAX)
                        return sl_error_set(error, EINVAL, "dimension %u has %" PRId64 " elements, at most %d can be interpolated",
                                i, r->in[i], PLACES_MAX);
                if (sl_resize_taps(r, i) > TAPS_MAX)
                        return sl_error_set(error, EINVAL, "dimension %u is scaled by %g, which would add up more than %d elements",
                                i, (double)r->scale[i], TAPS_MAX);
        }
        return 0;
}

int sl_resize_read(const struct sl_node_desc *node, struct sl_resize *ret_resize, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_resize r = {.rank = in->rank};
        const struct sl_attr *crop;
        uint32_t axes[SL_ATTR_INTS_MAX], count = 0;
        int result = read_words(node, &r, error);

        result = result ? result : read_axes(node, in->rank, axes, &count, error);
        if (result)
                return result;
        for (uint32_t i = 0; i < in->rank; i++) {
                r.in[i] = r.out[i] = in->dims[i];
                r.scale[i] = r.crop_end[i] = 1;
                r.extent[i] = (float)in->dims[i];
        }
        if (r.transform == SL_RESIZE_TF_CROP_AND_RESIZE) {
                result = find_list(node, SL_ATTR_ROI, SL_ATTR_TYPE_FLOATS, 2 * count, &crop, error);
                for (uint32_t i = 0; i < count && !result && crop; i++) {
                        r.crop_start[axes[i]] = (float)crop->floats[i];
                        r.crop_end[axes[i]] = (float)crop->floats[i + count];
                }
        }
        result = result ? result : read_sizes(node, &r, axes, count, error);
        result = result ? result : check_axes(&r, error);
        if (!result)
                *ret_resize = r;
        return result;
}

int sl_shape_resize(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_resize r;
        int result = sl_resize_read(node, &r, error);

        if (result)
                return result;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape.rank = r.rank;
        for (uint32_t i = 0; i < r.rank; i++)
                node->outputs[0].shape.dims[i] = r.out[i];
        return 0;
}

bool sl_resize_keeps(const struct sl_resize *r, uint32_t axis)
{
        bool cropped = r->transform == SL_RESIZE_TF_CROP_AND_RESIZE && (r->crop_start[axis] != 0 || r->crop_end[axis] != 1);

        return r->in[axis] == r->out[axis] && r->scale[axis] == 1 && !cropped;
}

static float support_of(const struct sl_resize *r, uint32_t axis)
{
        float shrink = r->antialias && r->scale[axis] < 1 ? r->scale[axis] : 1;

        return (r->mode == SL_RESIZE_CUBIC ? 2.0f : 1.0f) / shrink;
}

/* Weights of a cubic filter have both signs: places off the edge stay by themselves, as an infinity of the edge is NaN by them. */
static bool folds(const struct sl_resize *r)
{
        return r->mode != SL_RESIZE_CUBIC || r->antialias;
}

int64_t sl_resize_taps(const struct sl_resize *r, uint32_t axis)
{
        float support = support_of(r, axis);

        if (r->mode == SL_RESIZE_NEAREST || sl_resize_keeps(r, axis))
                return 1;
        /* Those that fall off the edge are counted there, so there are never more than the input has. */
        if (folds(r) && support > (float)r->in[axis])
                return r->in[axis] ? r->in[axis] : 1;
        return 2 * (int64_t)ceilf(support) + 1;
}

/* Where place @at of the output lies in the input. */
static float source_of(const struct sl_resize *r, uint32_t axis, int64_t at)
{
        float x = (float)at, in = (float)r->in[axis], out = (float)r->out[axis], scale = r->scale[axis], start, end;

        switch (r->transform) {
        case SL_RESIZE_HALF_PIXEL_SYMMETRIC:
                return in / 2 * (1 - out / r->extent[axis]) + (x + 0.5f) / scale - 0.5f;
        case SL_RESIZE_PYTORCH_HALF_PIXEL:
                return r->out[axis] > 1 ? (x + 0.5f) / scale - 0.5f : 0;
        case SL_RESIZE_ALIGN_CORNERS:
                return r->out[axis] == 1 ? 0 : x * (in - 1) / (r->extent[axis] - 1);
        case SL_RESIZE_ASYMMETRIC:
                return x / scale;
        case SL_RESIZE_TF_HALF_PIXEL_FOR_NN:
                return (x + 0.5f) / scale;
        case SL_RESIZE_TF_CROP_AND_RESIZE:
                start = r->crop_start[axis];
                end = r->crop_end[axis];
                return r->out[axis] > 1 ? start * (in - 1) + x * (end - start) * (in - 1) / (out - 1)
                                        : 0.5f * (start + end) * (in - 1);
        default:
                return (x + 0.5f) / scale - 0.5f;
        }
}

static float nearest_of(uint32_t kind, float x)
{
        float below = floorf(x), behind = x - below;
        bool half = fabsf(behind - 0.5f) <= SL_RESIZE_HALF_ERROR;

        switch (kind) {
        case SL_RESIZE_PREFER_CEIL:
                return half || behind > 0.5f ? below + 1 : below;
        case SL_RESIZE_FLOOR:
                return below;
        case SL_RESIZE_CEIL:
                return ceilf(x);
        default:
                return half || behind < 0.5f ? below : below + 1;
        }
}

static float filter_at(const struct sl_resize *r, float x)
{
        float a = r->coefficient;

        x = fabsf(x);
        if (r->mode == SL_RESIZE_LINEAR)
                return x < 1 ? 1 - x : 0;
        if (x <= 1)
                return ((a + 2) * x - (a + 3)) * x * x + 1;
        return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t clamp(float x, int64_t limit)
{
        return x <= 0 ? 0 : x >= (float)(limit - 1) ? limit - 1 : (int64_t)x;
}

/* Weights of the places around @x; those outside the input belong to its edge, or to nobody. */
static int64_t filter_weights(const struct sl_resize *r, uint32_t axis, float x, int64_t *ret_first, float *weights)
{
        float support = support_of(r, axis), shrink = (r->mode == SL_RESIZE_CUBIC ? 2.0f : 1.0f) / support;
        float begin = floorf(x - support) + 1, end = ceilf(x + support) - 1, sum = 0;
        int64_t first = clamp(begin, r->in[axis]), last = clamp(end, r->in[axis]);

        for (int64_t i = 0; i <= last - first; i++)
                weights[i] = 0;
        for (float place = begin; place <= end; place++) {
                bool outside = place < 0 || place > (float)(r->in[axis] - 1);
                float weight = filter_at(r, (place - x) * shrink);

                if (outside && r->exclude_outside)
                        continue;
                weights[clamp(place, r->in[axis]) - first] += weight;
                sum += weight;
        }
        for (int64_t i = 0; i <= last - first && sum != 0; i++)
                weights[i] /= sum;
        *ret_first = first;
        return last - first + 1;
}

/* The same of a filter whose places stay by themselves. */
static int64_t filter_weights_apart(const struct sl_resize *r, uint32_t axis, float x, int64_t *ret_first, float *weights)
{
        float support = support_of(r, axis), begin = floorf(x - support) + 1, end = ceilf(x + support) - 1, sum = 0;
        int64_t n = 0;

        for (float place = begin; place <= end; place++) {
                bool outside = place < 0 || place > (float)(r->in[axis] - 1);

                weights[n] = outside && r->exclude_outside ? 0 : filter_at(r, place - x);
                sum += weights[n++];
        }
        for (int64_t i = 0; i < n && sum != 0; i++)
                weights[i] /= sum;
        *ret_first = (int64_t)begin;
        return n;
}

/* Farther outside than the filter reaches is all the same. */
static float near_input(const struct sl_resize *r, uint32_t axis, float x)
{
        float support = support_of(r, axis), last = (float)(r->in[axis] - 1);

        if (!(x > -support))
                return -support;
        return x > last + support ? last + support : x;
}

int64_t sl_resize_weights(const struct sl_resize *r, uint32_t axis, int64_t at, int64_t *ret_first, float *ret_weights)
{
        float x;

        *ret_first = at;
        ret_weights[0] = 1;
        if (sl_resize_keeps(r, axis))
                return 1;
        x = source_of(r, axis, at);
        if (r->transform == SL_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0 && x <= (float)(r->in[axis] - 1)))
                return 0;
        if (r->mode != SL_RESIZE_NEAREST)
                return (folds(r) ? filter_weights : filter_weights_apart)(r, axis, near_input(r, axis, x), ret_first, ret_weights);
        *ret_first = clamp(nearest_of(r->nearest, x), r->in[axis]);
        return 1;
}
