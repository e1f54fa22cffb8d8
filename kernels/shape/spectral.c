/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms and what belongs to them. */
#include "rules.h"

#include <inttypes.h>

/* An integer parameter within [least, 2^31), SL_DIM_UNKNOWN while it is an input; @fallback when it is neither. */
static int read_size(const struct sl_node_desc *node, uint32_t id, uint32_t input, int64_t least, int64_t fallback,
        int64_t *ret_size, struct sl_error *error)
{
        const struct sl_attr *attr = sl_attrs_find(&node->attrs, id);

        *ret_size = attr ? attr->i : sl_input_present(node, input) ? SL_DIM_UNKNOWN : fallback;
        if (attr && (attr->type != SL_ATTR_TYPE_INT || attr->i < least || attr->i > INT32_MAX))
                return sl_error_set(error, EINVAL, "attribute %s is %" PRId64 ", outside [%" PRId64 ",%d]", sl_attr_name(id),
                        attr->i, least, INT32_MAX);
        return 0;
}

static int float_output(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t type = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_F32);

        if (type < 0 || type > UINT16_MAX || !sl_dtype_bytes((uint32_t)type))
                return sl_error_set(error, EINVAL, "attribute output_datatype is %" PRId64 ", which is no type", type);
        node->outputs[0].dtype = (uint32_t)type;
        return 0;
}

int sl_shape_taper(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t length;
        int r = read_size(node, SL_ATTR_LENGTH, 0, 0, 0, &length, error);

        r = r ? r : float_output(node, error);
        node->outputs[0].shape = (struct sl_shape){.rank = 1, .dims = {length}};
        return r;
}

int sl_shape_mel_weights(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t bins, length;
        int r = read_size(node, SL_ATTR_BINS, 3, 0, 0, &bins, error);

        r = r ? r : read_size(node, SL_ATTR_LENGTH, 4, 0, 0, &length, error);
        r = r ? r : float_output(node, error);
        for (uint32_t i = 0; i < 3 && !r; i++)
                if (sl_shape_is_static(&node->inputs[i].shape) && sl_shape_elements(&node->inputs[i].shape) != 1)
                        r = sl_error_set(error, EINVAL, "input %u wants one element", i);
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {length < 0 ? length : length / 2 + 1, bins}};
        return r;
}

/* Bins of a transform of @length; those of a real signal that say something. */
static int64_t bins_of(const struct sl_node_desc *node, int64_t length, bool usual)
{
        if (!sl_attrs_int(&node->attrs, SL_ATTR_ONESIDED, usual))
                return length;
        return sl_dim_known(length) ? length / 2 + 1 : SL_DIM_UNKNOWN;
}

/* The length of the real signal that so many bins come from, if nobody says another. */
static int64_t signal_of(int64_t bins)
{
        return bins > 1 ? 2 * (bins - 1) : sl_dim_known(bins) ? 1 : SL_DIM_UNKNOWN;
}

/* Along an axis that only data tell, any dimension may be the one that gets another length. */
static int dft_of_data(struct sl_node_desc *node, bool real)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape *out = &node->outputs[0].shape;
        bool keeps = !sl_attrs_int(&node->attrs, SL_ATTR_ONESIDED, 0) && !sl_input_present(node, 1) &&
                     !sl_attrs_find(&node->attrs, SL_ATTR_LENGTH);

        node->outputs[0].dtype = node->inputs[0].dtype;
        *out = *in;
        for (uint32_t i = 0; i + 1 < in->rank && !keeps; i++)
                out->dims[i] = SL_DIM_UNKNOWN;
        out->dims[in->rank - 1] = real ? 1 : 2;
        return 0;
}

int sl_shape_dft(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool onesided = sl_attrs_int(&node->attrs, SL_ATTR_ONESIDED, 0), inverse = sl_attrs_int(&node->attrs, SL_ATTR_INVERSE, 0);
        bool pending = sl_input_present(node, 2) && !sl_attrs_find(&node->attrs, SL_ATTR_AXIS);
        int64_t length;
        uint32_t axis;
        int r;

        if (in->rank < 2 || (sl_dim_known(in->dims[in->rank - 1]) && (in->dims[in->rank - 1] < 1 || in->dims[in->rank - 1] > 2)))
                return sl_error_set(error, EINVAL, "input 0 is not made of real or of complex numbers");
        if (onesided && !inverse && in->dims[in->rank - 1] == 2)
                return sl_error_set(error, EINVAL, "attribute onesided is set, and input 0 is complex");
        if (onesided && inverse && in->dims[in->rank - 1] == 1)
                return sl_error_set(error, EINVAL, "attributes onesided and inverse are set, and input 0 is real");
        if (pending)
                return dft_of_data(node, onesided && inverse);
        r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2), in->rank, &axis, error);
        if (!r && axis == in->rank - 1)
                return sl_error_set(error, EINVAL, "the axis is that of the real and imaginary parts");
        if (r)
                return r;
        length = onesided && inverse ? signal_of(in->dims[axis]) : in->dims[axis];
        r = read_size(node, SL_ATTR_LENGTH, 1, 1, length, &length, error);
        if (r)
                return r;
        /* Half of the bins give a real signal back, whose other half is their mirror image. */
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = *in;
        node->outputs[0].shape.dims[axis] = inverse ? length : bins_of(node, length, false);
        node->outputs[0].shape.dims[in->rank - 1] = onesided && inverse ? 1 : 2;
        return 0;
}

/* Signal, step, window, length of a frame. */
int sl_shape_stft(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool windowed = sl_input_present(node, 2);
        int64_t step, length, frames = SL_DIM_UNKNOWN;
        int r = read_size(node, SL_ATTR_STEP, 1, 1, 1, &step, error);

        if (in->rank != 3 || (sl_dim_known(in->dims[2]) && (in->dims[2] < 1 || in->dims[2] > 2)))
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants [batch,samples,1 or 2]", in->rank);
        r = r ? r
              : read_size(node, SL_ATTR_LENGTH, 3, 1, windowed && node->inputs[2].shape.rank ? node->inputs[2].shape.dims[0] : 0,
                        &length, error);
        if (!r && windowed)
                r = sl_vector_of(node, 2, length, error);
        if (r)
                return r;
        if (!length || (sl_dim_known(in->dims[1]) && length > in->dims[1]))
                return sl_error_set(error, EINVAL, "frames of %" PRId64 " samples in a signal of %" PRId64, length, in->dims[1]);
        if (sl_dim_known(in->dims[1]) && sl_dim_known(step) && sl_dim_known(length))
                frames = (in->dims[1] - length) / step + 1;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = 4, .dims = {in->dims[0], frames, bins_of(node, length, true), 2}};
        return 0;
}
