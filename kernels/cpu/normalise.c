/*
 * Normalisations of float32. BatchNormalization has its statistics given, per channel; LayerNormalization and InstanceNormalization
 * take them from each row. (x - mean) comes first and is scaled then, so that a large mean costs no digits. The output may
 * lie on the input.
 */
#include "cpu/operator.h"
#include "cpu/rows.h"
#include "shape/rules.h"

#include <math.h>

struct scale {
        float epsilon;
        float least, most;              /* the epilogue, a clip */
        int64_t outer, channels, inner; /* PLAIN: [outer, channels, inner]; CHANNELS_LAST: [outer, channels] */
};

static bool plan_clip(const struct sl_epilogue *epilogue, struct scale *s)
{
        bool clips = epilogue->activation == SL_ACT_CLIP;

        s->least = clips ? epilogue->act_a : epilogue->activation == SL_ACT_RELU ? 0.0f : -INFINITY;
        s->most = clips ? epilogue->act_b : INFINITY;
        return !epilogue->has_residual && (clips || epilogue->activation == SL_ACT_NONE || epilogue->activation == SL_ACT_RELU);
}

/* A NaN stays one. */
static inline float clip(float x, float least, float most)
{
        float risen = x < least ? least : x;

        return risen > most ? most : risen;
}

static bool scale_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct scale *s = state;
        int64_t spatial = 1;

        if (node->n_inputs != 5 || x->shape.rank < 2 || !sl_cpu_is_f32(y) || !sl_cpu_same_place(x, y))
                return false;
        for (uint32_t i = 0; i < 5; i++)
                if (!sl_cpu_is_f32(&node->inputs[i]))
                        return false;
        for (uint32_t d = 2; d < x->shape.rank; d++)
                spatial *= x->shape.dims[d];
        if (!plan_clip(&node->epilogue, s))
                return false;
        s->epsilon = (float)sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5);
        s->channels = x->shape.dims[1];
        s->outer = x->shape.dims[0] * (x->layout == SL_LAYOUT_CHANNELS_LAST ? spatial : 1);
        s->inner = x->layout == SL_LAYOUT_CHANNELS_LAST ? 1 : spatial;
        sizes->scratch_bytes = (size_t)s->channels * sizeof(float);
        return true;
}

SL_CPU_CLONES static void scale_row(int64_t n, float *y, const float *x, float mean, float factor, float shift)
{
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor + shift;
}

SL_CPU_CLONES static void clip_row(int64_t n, float *y, float least, float most)
{
        for (int64_t i = 0; i < n; i++)
                y[i] = clip(y[i], least, most);
}

SL_CPU_CLONES static void scale_channels(
        int64_t n, float *y, const float *x, const float *mean, const float *factor, const float *shift, float least, float most)
{
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = clip((x[i] - mean[i]) * factor[i] + shift[i], least, most);
}

static int scale_run(const void *state, const struct sl_binding *binding)
{
        const struct scale *s = state;
        const float *x = binding->inputs[0], *gamma = binding->inputs[1], *beta = binding->inputs[2];
        const float *mean = binding->inputs[3], *variance = binding->inputs[4];
        float *y = binding->outputs[0], *factor = binding->scratch;

        for (int64_t c = 0; c < s->channels; c++)
                factor[c] = gamma[c] / sqrtf(variance[c] + s->epsilon);
        for (int64_t o = 0; o < s->outer; o++) {
                if (s->inner == 1)
                        scale_channels(s->channels, y, x, mean, factor, beta, s->least, s->most);
                for (int64_t c = 0; c < s->channels && s->inner != 1; c++) {
                        scale_row(s->inner, y + c * s->inner, x + c * s->inner, mean[c], factor[c], beta[c]);
                        clip_row(s->inner, y + c * s->inner, s->least, s->most);
                }
                x += s->channels * s->inner;
                y += s->channels * s->inner;
        }
        return 0;
}

const struct sl_cpu_loop sl_cpu_scale = {
        .state_bytes = sizeof(struct scale), .plan = scale_plan, .run = scale_run, .finishes = true};

struct normalise {
        float epsilon;
        int64_t rows, n;
        uint32_t has_shift;
        int64_t channels; /* row r takes scale and shift r % channels; 0: element i of a row takes scale and shift i */
};

static bool plan_layer(const struct sl_node_desc *node, struct normalise *s)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        uint32_t axis;

        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), x->rank, &axis, NULL))
                return false;
        s->rows = s->n = 1;
        for (uint32_t d = 0; d < x->rank; d++)
                *(d < axis ? &s->rows : &s->n) *= x->dims[d];
        for (uint32_t i = 1; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && sl_shape_elements(&node->inputs[i].shape) != (uint64_t)s->n)
                        return false;
        return true;
}

static bool plan_instance(const struct sl_node_desc *node, struct normalise *s)
{
        const struct sl_shape *x = &node->inputs[0].shape;

        if (node->n_inputs != 3 || x->rank < 3)
                return false;
        s->channels = x->dims[1];
        s->rows = x->dims[0] * x->dims[1];
        s->n = 1;
        for (uint32_t d = 2; d < x->rank; d++)
                s->n *= x->dims[d];
        return true;
}

static bool normalise_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *y = &node->outputs[0];
        struct normalise *s = state;

        (void)sizes;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE &&
                        (!sl_cpu_is_f32(&node->inputs[i]) || node->inputs[i].layout != SL_LAYOUT_PLAIN))
                        return false;
        if (node->n_inputs < 2 || node->n_outputs != 1 || !sl_cpu_is_f32(y) || y->layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(y))
                return false;
        s->epsilon = (float)sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5);
        s->has_shift = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        return node->op == SL_OP_LAYER_NORM ? plan_layer(node, s) : plan_instance(node, s);
}

SL_CPU_CLONES static void normalise_row(
        int64_t n, float *y, const float *x, float mean, float factor, const float *gamma, const float *beta)
{
        if (beta) {
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
        } else {
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor * gamma[i];
        }
}

static int normalise_run(const void *state, const struct sl_binding *binding)
{
        const struct normalise *s = state;
        const float *x = binding->inputs[0], *gamma = binding->inputs[1], *beta = s->has_shift ? binding->inputs[2] : NULL;
        float *y = binding->outputs[0];

        for (int64_t r = 0; r < s->rows; r++, x += s->n, y += s->n) {
                float mean = sl_row_sum(x, s->n) / (float)s->n;
                float factor = 1.0f / sqrtf(sl_row_sum_square(x, mean, s->n) / (float)s->n + s->epsilon);
                int64_t channel = s->channels ? r % s->channels : 0;

                if (s->channels)
                        scale_row(s->n, y, x, mean, factor * gamma[channel], beta[channel]);
                else
                        normalise_row(s->n, y, x, mean, factor, gamma, beta);
        }
        return 0;
}

const struct sl_cpu_loop sl_cpu_normalise = {.state_bytes = sizeof(struct normalise), .plan = normalise_plan, .run = normalise_run};
