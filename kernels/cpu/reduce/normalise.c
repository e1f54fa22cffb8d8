/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalisations of float32. BatchNormalization has its statistics given, per channel, and may join several tensors on its way;
 * LayerNormalization, InstanceNormalization and GroupNormalization take them from each row, RMSNormalization only the mean square.
 * (x - mean) comes first and is scaled then, so that a large mean costs no digits. The output may lie on the input.
 */
#include "cpu/base/isa.h"
#include "cpu/base/rows.h"
#include "cpu/reduce/loops.h"
#include "cpu/reduce/normalise_tile.h"
#include "shape/rules.h"

#include <math.h>
#include <stddef.h>

struct scale {
        float epsilon;
        float least, most;              /* the epilogue, a clip */
        int64_t outer, channels, inner; /* PLAIN: [outer, channels, inner]; CHANNELS_LAST: [outer, channels] */
        uint32_t n_joined;              /* inputs that lie side by side along the channels; the statistics come after them */
        int64_t widths[SL_NODE_INPUTS_MAX];
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

static bool plan_joined(const struct sl_node_desc *node, struct scale *s)
{
        const struct sl_tensor *y = &node->outputs[0];
        int64_t channels = 0;

        s->n_joined = node->n_inputs - 4;
        for (uint32_t i = 0; i < s->n_joined; i++) {
                if (node->inputs[i].shape.rank != y->shape.rank || !sl_cpu_same_layout(&node->inputs[i], y))
                        return false;
                s->widths[i] = node->inputs[i].shape.dims[1];
                channels += s->widths[i];
        }
        return channels == s->channels;
}

static bool scale_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *y = &node->outputs[0];
        struct scale *s = state;
        int64_t spatial = 1;

        if (node->n_inputs < 5 || y->shape.rank < 2 || !sl_cpu_is_f32(y))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!sl_cpu_is_f32(&node->inputs[i]))
                        return false;
        for (uint32_t d = 2; d < y->shape.rank; d++)
                spatial *= y->shape.dims[d];
        s->epsilon = (float)sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5);
        s->channels = y->shape.dims[1];
        s->outer = y->shape.dims[0] * (y->layout == SL_LAYOUT_CHANNELS_LAST ? spatial : 1);
        s->inner = y->layout == SL_LAYOUT_CHANNELS_LAST ? 1 : spatial;
        sizes->scratch_bytes = (size_t)s->channels * sizeof(float);
        sizes->state_bytes = offsetof(struct scale, widths) + (node->n_inputs - 4) * sizeof(s->widths[0]);
        return plan_clip(&node->epilogue, s) && plan_joined(node, s);
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

/* Row by row, so that the output is one stream, however many inputs there are. */
SL_CPU_CLONES static void scale_channels(const struct scale *s, const struct sl_binding *binding, const float *factors)
{
        const void *const *statistics = binding->inputs + s->n_joined;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, s->outer);
        float *y = (float *)binding->outputs[0] + rows.first * s->channels;

        for (int64_t o = rows.first; o < rows.end; o++) {
                const float *factor = factors, *shift = statistics[1], *mean = statistics[2];

                for (uint32_t i = 0; i < s->n_joined; i++) {
                        int64_t n = s->widths[i];
                        const float *x = (const float *)binding->inputs[i] + o * n;

                        _Pragma("GCC ivdep") for (int64_t c = 0; c < n; c++) y[c] =
                                clip((x[c] - mean[c]) * factor[c] + shift[c], s->least, s->most);
                        y += n;
                        mean += n;
                        factor += n;
                        shift += n;
                }
        }
}

static void scale_planes(const struct scale *s, const struct sl_binding *binding, const float *factor)
{
        const void *const *statistics = binding->inputs + s->n_joined;
        const float *shift = statistics[1], *mean = statistics[2];
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, s->outer);
        float *y = (float *)binding->outputs[0] + rows.first * s->channels * s->inner;

        for (int64_t o = rows.first; o < rows.end; o++)
                for (int64_t i = 0, c = 0; i < s->n_joined; i++) {
                        const float *x = (const float *)binding->inputs[i] + o * s->widths[i] * s->inner;

                        for (int64_t end = c + s->widths[i]; c < end; c++, x += s->inner, y += s->inner) {
                                scale_row(s->inner, y, x, mean[c], factor[c], shift[c]);
                                clip_row(s->inner, y, s->least, s->most);
                        }
                }
}

static int scale_run(const void *state, const struct sl_binding *binding)
{
        const struct scale *s = state;
        const float *gamma = binding->inputs[s->n_joined], *variance = binding->inputs[s->n_joined + 3];
        float *factor = binding->scratch;

        for (int64_t c = 0; c < s->channels; c++)
                factor[c] = gamma[c] / sqrtf(variance[c] + s->epsilon);
        if (s->inner == 1)
                scale_channels(s, binding, factor);
        else
                scale_planes(s, binding, factor);
        return 0;
}

static int64_t scale_units(const void *state, uint32_t axis)
{
        const struct scale *s = state;

        return axis == SL_AXIS_ROWS ? s->outer : 0;
}

/* Rows of each input by itself: pixels that lie last, or samples. */
static bool scale_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct scale *s = state;
        const int64_t word = sizeof(float);

        if (operand == SL_REACH_OUTPUT)
                return sl_reach_rows(part, s->channels * s->inner * word, ret_reach);
        return operand < s->n_joined && sl_reach_rows(part, s->widths[operand] * s->inner * word, ret_reach);
}

const struct sl_cpu_loop sl_cpu_scale = {.state_bytes = sizeof(struct scale),
        .plan = scale_plan,
        .run = scale_run,
        .units = scale_units,
        .reach = scale_reach,
        .fuses_epilogue = true};

struct normalise {
        float epsilon;
        int64_t rows, n;
        uint32_t has_shift, stays; /* stays: the mean counts as 0 */
        int64_t lane_rows;         /* so many rows have one scale and shift, the next ones have theirs; 0: all have the same */
        int64_t channels;          /* row r takes scale and shift r % channels; 0: element i of a row takes scale and shift i */
        int64_t group_channels;    /* of a group: each takes scale and shift of its own, row r is group r % channels; 0: no group */
};

/* One vector for all rows, or one for each index of the first dimension: [lanes, 1..., n]. */
static bool plan_vectors(const struct sl_node_desc *node, uint32_t axis, struct normalise *s)
{
        const struct sl_shape *x = &node->inputs[0].shape;

        for (uint32_t i = 1; i < node->n_inputs; i++) {
                const struct sl_shape *vector = &node->inputs[i].shape;
                bool laned = vector->rank == x->rank && axis > 0 && vector->dims[0] == x->dims[0] && x->dims[0] > 1;
                uint64_t n = (uint64_t)(laned ? s->n * x->dims[0] : s->n);

                for (uint32_t d = 1; d < axis; d++)
                        laned = laned && vector->dims[d] == 1;
                if (node->inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                if (sl_shape_elements(vector) != n || (i > 1 && laned != (s->lane_rows > 0)))
                        return false;
                s->lane_rows = laned ? s->rows / x->dims[0] : 0;
        }
        return true;
}

static bool plan_layer(const struct sl_node_desc *node, struct normalise *s)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        uint32_t axis;

        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), x->rank, &axis, NULL))
                return false;
        s->rows = s->n = 1;
        for (uint32_t d = 0; d < x->rank; d++)
                *(d < axis ? &s->rows : &s->n) *= x->dims[d];
        return plan_vectors(node, axis, s);
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

/* With one scale for each group it is a plane. */
static bool plan_group(const struct sl_node_desc *node, struct normalise *s)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_NUM_GROUPS, 1);

        if (node->n_inputs != 3 || x->rank < 2 || groups < 1 || x->dims[1] % groups)
                return false;
        s->channels = groups;
        s->rows = x->dims[0] * groups;
        s->n = x->dims[1] / groups;
        s->group_channels = node->inputs[1].shape.dims[0] == x->dims[1] ? s->n : 0;
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
        s->stays = node->op == SL_OP_RMS_NORM;
        if (node->op == SL_OP_GROUP_NORM)
                return plan_group(node, s);
        return node->op == SL_OP_INSTANCE_NORM ? plan_instance(node, s) : plan_layer(node, s);
}

struct moments {
        float mean, factor; /* one over the standard deviation */
};

static struct moments moments_of(const struct normalise *s, const float *x)
{
        float mean = s->stays ? 0 : sl_row_sum(x, s->n) / (float)s->n;

        return (struct moments){mean, 1.0f / sqrtf(sl_row_sum_square(x, mean, s->n) / (float)s->n + s->epsilon)};
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

static int layer_run(const struct normalise *s, int64_t rows, const float *x, const float *gamma, const float *beta, float *y)
{
        bool wide = sl_cpu_has_avx2() && !s->stays;

        for (int64_t r = 0; r < rows; r++, x += s->n, y += s->n) {
                struct moments m;

                if (wide) {
                        sl_normalise_row(s->n, y, x, s->epsilon, gamma, beta);
                        continue;
                }
                m = moments_of(s, x);
                normalise_row(s->n, y, x, m.mean, m.factor, gamma, beta);
        }
        return 0;
}

/* The rows of each lane that has some in the part. */
static int lanes_run(
        const struct normalise *s, struct sl_part rows, const float *x, const float *gamma, const float *beta, float *y)
{
        for (int64_t first = rows.first, end; first < rows.end; first = end) {
                int64_t lane = first / s->lane_rows, at = (first - rows.first) * s->n;

                end = (lane + 1) * s->lane_rows < rows.end ? (lane + 1) * s->lane_rows : rows.end;
                layer_run(s, end - first, x + at, gamma + lane * s->n, beta ? beta + lane * s->n : NULL, y + at);
        }
        return 0;
}

/* @gamma and @beta: of the group's first channel. */
static void group_row(const struct normalise *s, const float *x, const float *gamma, const float *beta, float *y)
{
        struct moments m = moments_of(s, x);
        int64_t inner = s->n / s->group_channels;

        if (inner == 1)
                normalise_row(s->n, y, x, m.mean, m.factor, gamma, beta);
        for (int64_t c = 0; c < s->group_channels && inner > 1; c++)
                scale_row(inner, y + c * inner, x + c * inner, m.mean, m.factor * gamma[c], beta[c]);
}

static int groups_run(
        const struct normalise *s, struct sl_part rows, const float *x, const float *gamma, const float *beta, float *y)
{
        for (int64_t r = rows.first; r < rows.end; r++, x += s->n, y += s->n) {
                int64_t channel = r % s->channels * s->group_channels;

                group_row(s, x, gamma + channel, beta + channel, y);
        }
        return 0;
}

static int normalise_run(const void *state, const struct sl_binding *binding)
{
        const struct normalise *s = state;
        const float *x = binding->inputs[0], *gamma = binding->inputs[1], *beta = s->has_shift ? binding->inputs[2] : NULL;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, s->rows);
        float *y = (float *)binding->outputs[0] + rows.first * s->n;

        x += rows.first * s->n;
        if (s->lane_rows)
                return lanes_run(s, rows, x, gamma, beta, y);
        if (s->group_channels)
                return groups_run(s, rows, x, gamma, beta, y);
        if (!s->channels)
                return layer_run(s, rows.end - rows.first, x, gamma, beta, y);
        for (int64_t r = rows.first; r < rows.end; r++, x += s->n, y += s->n) {
                struct moments m = moments_of(s, x);

                scale_row(s->n, y, x, m.mean, m.factor * gamma[r % s->channels], beta[r % s->channels]);
        }
        return 0;
}

static int64_t normalise_units(const void *state, uint32_t axis)
{
        const struct normalise *s = state;

        return axis == SL_AXIS_ROWS ? s->rows : 0;
}

static bool normalise_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct normalise *s = state;

        return (operand == 0 || operand == SL_REACH_OUTPUT) && sl_reach_rows(part, s->n * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_normalise = {.state_bytes = sizeof(struct normalise),
        .plan = normalise_plan,
        .run = normalise_run,
        .units = normalise_units,
        .reach = normalise_reach};
