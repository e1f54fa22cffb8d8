/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax and LogSoftmax of a tensor [outer, count, inner] over count. Rows of the innermost axis are tiles' (softmax_tile.h); else
 * rows of inner elements are treated side by side. oneDNN's loses a NaN: the other elements of its row become 0.
 */
#include "cpu/base/isa.h"
#include "cpu/base/vector_math.h"
#include "cpu/reduce/loops.h"
#include "cpu/reduce/softmax_tile.h"
#include "shape/rules.h"

#include <math.h>
#include <string.h>

struct softmax {
        bool logarithm, by_tiles;
        int64_t outer, count, inner;
};

static bool softmax_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct softmax *s = state;
        uint32_t axis;

        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(y) || x->layout != SL_LAYOUT_PLAIN || y->layout != SL_LAYOUT_PLAIN)
                return false;
        if (sl_cpu_is_empty(x) || sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), x->shape.rank, &axis, NULL))
                return false;
        *s = (struct softmax){.logarithm = node->op == SL_OP_LOG_SOFTMAX, .outer = 1, .count = x->shape.dims[axis], .inner = 1};
        for (uint32_t d = 0; d < x->shape.rank; d++) {
                s->outer *= d < axis ? x->shape.dims[d] : 1;
                s->inner *= d > axis ? x->shape.dims[d] : 1;
        }
        s->by_tiles = s->inner == 1 && sl_cpu_has_avx2();
        sizes->scratch_bytes = s->by_tiles ? 0 : 2 * (size_t)s->inner * sizeof(float);
        return true;
}

SL_CPU_CLONES static void take_maximum(int64_t n, float *restrict maximum, const float *restrict x)
{
        for (int64_t i = 0; i < n; i++)
                maximum[i] = maximum[i] > x[i] || maximum[i] != maximum[i] ? maximum[i] : x[i];
}

/* y may lie on x. */
SL_CPU_CLONES static void subtract_and_sum(int64_t n, bool logarithm, float *y, const float *x, const float *maximum, float *sum)
{
        for (int64_t i = 0; i < n; i++) {
                float shifted = x[i] - maximum[i], power = sl_exp(shifted);

                y[i] = logarithm ? shifted : power;
                sum[i] += power;
        }
}

SL_CPU_CLONES static void divide(int64_t n, float *restrict y, const float *restrict sum)
{
        for (int64_t i = 0; i < n; i++)
                y[i] /= sum[i];
}

SL_CPU_CLONES static void subtract(int64_t n, float *restrict y, const float *restrict logarithm)
{
        for (int64_t i = 0; i < n; i++)
                y[i] -= logarithm[i];
}

/* @maximum: room for two rows of the inner dimensions. */
static void softmax_slab(const struct softmax *s, float *y, const float *x, float *maximum)
{
        float *sum = maximum + s->inner;

        memcpy(maximum, x, (size_t)s->inner * sizeof(*maximum));
        memset(sum, 0, (size_t)s->inner * sizeof(*sum));
        for (int64_t c = 1; c < s->count; c++)
                take_maximum(s->inner, maximum, x + c * s->inner);
        for (int64_t c = 0; c < s->count; c++)
                subtract_and_sum(s->inner, s->logarithm, y + c * s->inner, x + c * s->inner, maximum, sum);
        for (int64_t i = 0; i < s->inner && s->logarithm; i++)
                sum[i] = logf(sum[i]);
        for (int64_t c = 0; c < s->count; c++) {
                if (s->logarithm)
                        subtract(s->inner, y + c * s->inner, sum);
                else
                        divide(s->inner, y + c * s->inner, sum);
        }
}

static int softmax_run(const void *state, const struct sl_binding *binding)
{
        const struct softmax *s = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, s->outer);

        if (s->by_tiles && !s->logarithm && s->count <= SL_SOFTMAX_SHORT && rows.end - rows.first > 1) {
                sl_softmax_short_rows(rows.end - rows.first, s->count, (float *)binding->outputs[0] + rows.first * s->count,
                        (const float *)binding->inputs[0] + rows.first * s->count);
                return 0;
        }
        for (int64_t o = rows.first; o < rows.end; o++) {
                const float *x = (const float *)binding->inputs[0] + o * s->count * s->inner;
                float *y = (float *)binding->outputs[0] + o * s->count * s->inner;

                if (s->by_tiles)
                        sl_softmax_row(s->count, s->logarithm, y, x);
                else
                        softmax_slab(s, y, x, binding->scratch);
        }
        return 0;
}

static int64_t softmax_units(const void *state, uint32_t axis)
{
        const struct softmax *s = state;

        return axis == SL_AXIS_ROWS ? s->outer : 0;
}

static bool softmax_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct softmax *s = state;

        (void)operand;
        return sl_reach_rows(part, s->count * s->inner * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_softmax = {.state_bytes = sizeof(struct softmax),
        .plan = softmax_plan,
        .run = softmax_run,
        .units = softmax_units,
        .reach = softmax_reach};
