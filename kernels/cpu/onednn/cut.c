/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/onednn/cut.h"

#include "base/dtype.h"

#include <string.h>

#define DOWN 2 /* the dimension of an image whose elements are scanlines */

static bool is_window(const struct sl_primitive_spec *spec)
{
        return spec->kind == SL_PRIMITIVE_CONVOLUTION || spec->kind == SL_PRIMITIVE_POOL_MAX ||
               spec->kind == SL_PRIMITIVE_POOL_AVERAGE || spec->kind == SL_PRIMITIVE_POOL_AVERAGE_PADDED;
}

static bool lies_last(const struct sl_strided *image)
{
        return image->rank == 4 && image->strides[1] == 1;
}

/* One image, of which a scanline is one piece. */
static bool is_cut_down(const struct sl_primitive_spec *spec)
{
        return is_window(spec) && spec->result.dims[0] == 1 && lies_last(&spec->source) && lies_last(&spec->result);
}

int64_t sl_primitive_units(const struct sl_primitive_spec *spec)
{
        bool real = spec->source.dtype == SL_DTYPE_F32 || spec->source.dtype == SL_DTYPE_BF16;

        if (!real || spec->n_scales || spec->kind == SL_PRIMITIVE_FUNCTION)
                return 0;
        if (spec->kind == SL_PRIMITIVE_MATMUL && spec->result.rank < 3 && spec->source.dtype == SL_DTYPE_F32)
                return 0; /* its bits depend on the number of rows */
        if (is_cut_down(spec))
                return spec->result.dims[DOWN];
        return spec->source.dims[0] == spec->result.dims[0] ? spec->result.dims[0] : 0;
}

/* Elements [first, end) of dimension @d. A single sample is as far from the next one as it is long. */
static size_t take(struct sl_strided *tensor, uint32_t d, int64_t first, int64_t end)
{
        tensor->dims[d] = end - first;
        if (d == DOWN)
                tensor->strides[0] = tensor->dims[DOWN] * tensor->strides[DOWN];
        return (size_t)(first * tensor->strides[d]) * sl_dtype_bytes(tensor->dtype);
}

/* The scanlines that those of the part see, and what of their windows lies above and below them. */
static size_t take_source(struct sl_primitive_spec *spec, const struct sl_part *part)
{
        const struct sl_strided *weights = &spec->weights;
        int64_t kernel = weights->rank ? weights->dims[weights->rank - 2] : spec->kernel[0];
        int64_t height = spec->source.dims[DOWN], top = part->first * spec->strides[0] - spec->pads_begin[0];
        int64_t bottom = (part->end - 1) * spec->strides[0] - spec->pads_begin[0] + (kernel - 1) * spec->dilations[0] + 1;

        spec->pads_begin[0] = top < 0 ? -top : 0;
        spec->pads_end[0] = bottom > height ? bottom - height : 0;
        return take(&spec->source, DOWN, top < 0 ? 0 : top, bottom > height ? height : bottom);
}

/* Addends, and matrices of a stack, that have the dimension go with the result; others are for all parts. */
static size_t take_other(struct sl_strided *tensor, const struct sl_strided *result, uint32_t d, const struct sl_part *part)
{
        bool has = tensor->rank == result->rank && tensor->dims[d] == result->dims[d] && tensor->dims[d] > 1;

        return has ? take(tensor, d, part->first, part->end) : 0;
}

void sl_primitive_cut(const struct sl_primitive_spec *spec, const struct sl_part *part, struct sl_primitive_spec *ret_spec,
        size_t ret_offsets[SL_ARGUMENT_COUNT])
{
        uint32_t d = is_cut_down(spec) ? DOWN : 0, side = SL_ARGUMENT_SIDE;

        *ret_spec = *spec;
        memset(ret_offsets, 0, SL_ARGUMENT_COUNT * sizeof(*ret_offsets));
        ret_offsets[SL_ARGUMENT_SOURCE] =
                d == DOWN ? take_source(ret_spec, part) : take(&ret_spec->source, 0, part->first, part->end);
        ret_offsets[SL_ARGUMENT_RESULT] = take(&ret_spec->result, d, part->first, part->end);
        if (spec->kind == SL_PRIMITIVE_MATMUL && spec->result.rank > 2)
                ret_offsets[SL_ARGUMENT_WEIGHTS] = take_other(&ret_spec->weights, &spec->result, 0, part);
        for (uint32_t i = 0; i < spec->n_steps; i++)
                if (spec->steps[i].kind == SL_STEP_ADD)
                        ret_offsets[side++] = take_other(&ret_spec->steps[i].addend, &spec->result, d, part);
}
