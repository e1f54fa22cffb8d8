/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize by the tables of shape/resize.h, which lie in scratch: for each place of each axis the first tap, their number and their
 * weights. What is only nearest is copied, so that integers of any width stay what they are.
 */
#include "shape/resize.h"

#include "base/bytes.h"
#include "element.h"
#include "kernels.h"

#include <math.h>
#include <string.h>

struct axis {
        int64_t taps;
        int64_t *first, *count;
        float *weights;
};

struct tables {
        struct sl_resize resize;
        struct axis axes[SL_RANK_MAX];
        struct sl_pace *pace;
        int64_t strides[SL_RANK_MAX];
};

size_t sl_ref_scratch_resize(const struct sl_node_desc *node)
{
        struct sl_resize r = {.rank = 0};
        size_t bytes = 0;

        sl_resize_read(node, &r, NULL);
        for (uint32_t i = 0; i < r.rank; i++)
                bytes += (size_t)r.out[i] * (2 * sizeof(int64_t) + sl_align_up((size_t)sl_resize_taps(&r, i), 2) * sizeof(float));
        return bytes;
}

static void fill_axis(struct tables *t, uint32_t i, char **scratch)
{
        struct axis *axis = &t->axes[i];
        size_t n = (size_t)t->resize.out[i];

        axis->taps = (int64_t)sl_align_up((size_t)sl_resize_taps(&t->resize, i), 2);
        axis->first = (int64_t *)*scratch;
        axis->count = axis->first + n;
        axis->weights = (float *)(axis->count + n);
        *scratch = (char *)(axis->weights + n * (size_t)axis->taps);
        for (int64_t at = 0; at < (int64_t)n && sl_pace_on(t->pace, (uint64_t)axis->taps); at++)
                axis->count[at] = sl_resize_weights(&t->resize, i, at, &axis->first[at], axis->weights + at * axis->taps);
}

/* The weighted sum over axes from @i on, at offset @from of the input. */
static double add_up(const struct tables *t, const int64_t *index, uint32_t i, int64_t from, const void *in, uint32_t dtype)
{
        const struct axis *axis = &t->axes[i];
        int64_t at = index[i];
        double sum = 0;

        if (i == t->resize.rank)
                return sl_ref_load(in, from, dtype);
        for (int64_t k = 0; k < axis->count[at] && sl_pace_on(t->pace, 1); k++) {
                double weight = (double)axis->weights[at * axis->taps + k];
                int64_t place = sl_resize_inside(&t->resize, i, axis->first[at] + k);

                sum += weight * add_up(t, index, i + 1, from + place * t->strides[i], in, dtype);
        }
        return sum;
}

static bool is_outside(const struct tables *t, const int64_t *index)
{
        for (uint32_t i = 0; i < t->resize.rank; i++)
                if (!t->axes[i].count[index[i]])
                        return true;
        return false;
}

static int64_t place_of(const struct tables *t, const int64_t *index)
{
        int64_t at = 0;

        for (uint32_t i = 0; i < t->resize.rank; i++)
                at += t->axes[i].first[index[i]] * t->strides[i];
        return at;
}

static bool next_index(const struct sl_resize *r, int64_t *index)
{
        for (uint32_t i = r->rank; i-- > 0;) {
                if (++index[i] < r->out[i])
                        return true;
                index[i] = 0;
        }
        return false;
}

/* Of integers with a filter for fewer pixels the nearest one, as ONNX's reference and others have it; else what is stored is cut. */
static double rounded(const struct sl_resize *r, uint32_t dtype, double value)
{
        return r->antialias && !sl_dtype_is_float(dtype) ? nearbyint(value) : value;
}

int sl_ref_resize(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct tables t = {.resize = {.rank = 0}, .pace = binding->pace};
        int64_t index[SL_RANK_MAX] = {0}, at = 0;
        uint32_t dtype = node->inputs[0].dtype;
        size_t bytes = sl_dtype_bytes(dtype);
        char *scratch = binding->scratch;

        sl_resize_read(node, &t.resize, NULL);
        if (!sl_shape_elements(&node->outputs[0].shape))
                return 0;
        sl_tensor_strides(&node->inputs[0], t.strides);
        for (uint32_t i = 0; i < t.resize.rank; i++)
                fill_axis(&t, i, &scratch);
        /* The tables may be incomplete. */
        if (sl_pace_status(binding->pace))
                return sl_pace_status(binding->pace);
        do {
                if (is_outside(&t, index))
                        sl_ref_store(binding->outputs[0], at, dtype, (double)t.resize.extrapolation);
                else if (t.resize.mode == SL_RESIZE_NEAREST)
                        memcpy((char *)binding->outputs[0] + (size_t)at * bytes,
                                (const char *)binding->inputs[0] + (size_t)place_of(&t, index) * bytes, bytes);
                else
                        sl_ref_store(binding->outputs[0], at, dtype,
                                rounded(&t.resize, dtype, add_up(&t, index, 0, 0, binding->inputs[0], dtype)));
                at++;
        } while (next_index(&t.resize, index) && sl_pace_on(binding->pace, 1));
        return 0;
}
