/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose of float32, CHANNELS_LAST: for each tap of the window, a row of input pixels times the tap's weights is added to
 * the row of output pixels that it reaches, which lie a stride apart. Weights are packed tap by tap, in scratch, at each launch.
 * Only with AVX2.
 */
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/gemm.h"
#include "shape/window.h"

#include <string.h>

struct conv_transpose {
        struct sl_window window; /* of three spatial dimensions; missing ones lead with size 1 */
        int64_t in[SL_SPATIAL_MAX], out[SL_SPATIAL_MAX];
        int64_t samples, channels, filters, groups, taps;
        size_t packed; /* floats of one tap of one group */
        bool biased;
};

static void read_spatial(const struct sl_node_desc *node, const struct sl_window *window, struct conv_transpose *s)
{
        uint32_t missing = SL_SPATIAL_MAX - window->rank;

        s->taps = 1;
        for (uint32_t i = 0; i < SL_SPATIAL_MAX; i++) {
                bool real = i >= missing;
                uint32_t from = real ? i - missing : 0;

                s->window.kernel[i] = real ? window->kernel[from] : 1;
                s->window.stride[i] = real ? window->stride[from] : 1;
                s->window.dilation[i] = real ? window->dilation[from] : 1;
                s->window.pad_begin[i] = real ? window->pad_begin[from] : 0;
                s->in[i] = real ? node->inputs[0].shape.dims[2 + from] : 1;
                s->out[i] = real ? node->outputs[0].shape.dims[2 + from] : 1;
                s->taps *= s->window.kernel[i];
        }
}

static bool conv_transpose_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *w = &node->inputs[1], *y = &node->outputs[0];
        struct conv_transpose *s = state;
        struct sl_window window;

        if (!sl_cpu_has_avx2() || node->n_inputs < 2 || !sl_cpu_is_f32(x) || !sl_cpu_is_f32(w) || !sl_cpu_is_f32(y))
                return false;
        if (x->layout != SL_LAYOUT_CHANNELS_LAST || y->layout != SL_LAYOUT_CHANNELS_LAST || w->layout != SL_LAYOUT_PLAIN)
                return false;
        if (sl_cpu_is_empty(x) || sl_cpu_is_empty(w) || sl_cpu_is_empty(y) || sl_window_read(node, &window, NULL))
                return false;
        read_spatial(node, &window, s);
        s->samples = x->shape.dims[0];
        s->channels = x->shape.dims[1];
        s->filters = y->shape.dims[1];
        s->groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        s->biased = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        s->packed = ((size_t)sl_gemm_packed_floats(s->channels / s->groups, s->filters / s->groups) + 15) & ~(size_t)15;
        sizes->scratch_bytes = s->packed * (size_t)(s->taps * s->groups) * sizeof(float);
        return true;
}

static void pack_weights(const struct conv_transpose *s, const float *weights, float *packed)
{
        int64_t depth = s->channels / s->groups, columns = s->filters / s->groups;

        for (int64_t g = 0; g < s->groups; g++)
                for (int64_t t = 0; t < s->taps; t++)
                        sl_gemm_pack(weights + g * depth * columns * s->taps + t, depth, columns, columns * s->taps, s->taps,
                                packed + (size_t)(g * s->taps + t) * s->packed);
}

static void fill_bias(const struct conv_transpose *s, const float *bias, float *y)
{
        int64_t pixels = s->samples * s->out[0] * s->out[1] * s->out[2];

        if (!bias) {
                memset(y, 0, (size_t)(pixels * s->filters) * sizeof(*y));
                return;
        }
        for (int64_t i = 0; i < pixels; i++)
                memcpy(y + i * s->filters, bias, (size_t)s->filters * sizeof(*y));
}

/* The first input place along dimension @i whose tap @k reaches into the output, and how many do. */
static int64_t places(const struct conv_transpose *s, uint32_t i, int64_t k, int64_t *ret_first)
{
        int64_t shift = k * s->window.dilation[i] - s->window.pad_begin[i], stride = s->window.stride[i];
        int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
        int64_t end = s->out[i] - shift > 0 ? (s->out[i] - shift - 1) / stride + 1 : 0;

        end = end < s->in[i] ? end : s->in[i];
        *ret_first = first;
        return end > first ? end - first : 0;
}

static int64_t target(const struct conv_transpose *s, uint32_t i, int64_t place, int64_t k)
{
        return place * s->window.stride[i] - s->window.pad_begin[i] + k * s->window.dilation[i];
}

/* One tap of one group: its rows of one image. */
static void add_tap(
        const struct conv_transpose *s, const float *x, float *y, const float *packed, const int64_t tap[SL_SPATIAL_MAX])
{
        int64_t first[SL_SPATIAL_MAX], count[SL_SPATIAL_MAX];

        for (uint32_t i = 0; i < SL_SPATIAL_MAX; i++)
                count[i] = places(s, i, tap[i], &first[i]);
        for (int64_t row = 0; row < count[0] * count[1]; row++) {
                int64_t in_z = first[0] + row / count[1], in_y = first[1] + row % count[1];
                int64_t from = (in_z * s->in[1] + in_y) * s->in[2] + first[2];
                int64_t to = (target(s, 0, in_z, tap[0]) * s->out[1] + target(s, 1, in_y, tap[1])) * s->out[2] +
                             target(s, 2, first[2], tap[2]);
                struct sl_gemm product = {.a = x + from * s->channels,
                        .b = packed,
                        .c = y + to * s->filters,
                        .rows = count[2],
                        .depth = s->channels / s->groups,
                        .columns = s->filters / s->groups,
                        .a_stride = s->channels,
                        .c_stride = s->window.stride[2] * s->filters,
                        .residual = y + to * s->filters,
                        .residual_stride = s->window.stride[2] * s->filters};

                if (count[2])
                        sl_gemm_run(&product);
        }
}

static int conv_transpose_run(const void *state, const struct sl_binding *binding)
{
        const struct conv_transpose *s = state;
        const int64_t *kernel = s->window.kernel;
        int64_t in_size = s->in[0] * s->in[1] * s->in[2] * s->channels, out_size = s->out[0] * s->out[1] * s->out[2] * s->filters;
        float *packed = binding->scratch;

        pack_weights(s, binding->inputs[1], packed);
        fill_bias(s, s->biased ? binding->inputs[2] : NULL, binding->outputs[0]);
        for (int64_t n = 0; n < s->samples; n++)
                for (int64_t i = 0; i < s->groups * s->taps; i++) {
                        int64_t g = i / s->taps, t = i % s->taps;
                        const int64_t tap[] = {t / kernel[2] / kernel[1], t / kernel[2] % kernel[1], t % kernel[2]};

                        add_tap(s, (const float *)binding->inputs[0] + n * in_size + g * (s->channels / s->groups),
                                (float *)binding->outputs[0] + n * out_size + g * (s->filters / s->groups),
                                packed + (size_t)i * s->packed, tap);
                }
        return 0;
}

const struct sl_cpu_loop sl_cpu_conv_transpose = {
        .state_bytes = sizeof(struct conv_transpose), .plan = conv_transpose_plan, .run = conv_transpose_run};
