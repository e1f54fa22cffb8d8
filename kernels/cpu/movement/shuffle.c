/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.ChannelShuffle of two groups in CHANNELS_LAST: each pixel of an output takes its channels in turns from a run of the
 * left group and a run of the right one. Outputs that begin or end in the middle of a pair, and everything else, is sl_cpu_copy's.
 */
#include "cpu/movement/loops.h"

struct shuffle {
        int64_t pixels;
        int64_t step;                   /* of an input from pixel to pixel */
        int64_t right;                  /* where the right group begins in the last input */
        uint32_t last, n_parts;         /* the input that has the right group; outputs */
        int64_t n[SL_NODE_OUTPUTS_MAX]; /* pairs of each output */
};

static bool is_words(const struct sl_tensor *tensor)
{
        return tensor->layout == SL_LAYOUT_CHANNELS_LAST && sl_dtype_bytes(tensor->dtype) == sizeof(uint32_t);
}

/* One input that has both groups, or one for each. */
static bool plan_inputs(const struct sl_node_desc *node, struct shuffle *s)
{
        s->step = node->inputs[0].shape.dims[1];
        s->last = node->n_inputs - 1;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!is_words(&node->inputs[i]) || node->inputs[i].shape.dims[1] != s->step)
                        return false;
        s->right = node->n_inputs == 1 ? s->step / 2 : 0;
        return node->n_inputs <= 2 && sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) == 2;
}

static bool shuffle_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        struct shuffle *s = state;

        (void)sizes;
        if (!plan_inputs(node, s))
                return false;
        s->n_parts = node->n_outputs;
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (!is_words(&node->outputs[i]) || node->outputs[i].shape.dims[1] % 2)
                        return false;
                s->n[i] = node->outputs[i].shape.dims[1] / 2;
        }
        s->pixels = x->dims[0];
        for (uint32_t d = 2; d < x->rank; d++)
                s->pixels *= x->dims[d];
        return true;
}

SL_CPU_CLONES static void interleave(int64_t pixels, int64_t n, uint32_t *restrict y, const uint32_t *restrict left,
        const uint32_t *restrict right, int64_t step)
{
        for (int64_t p = 0; p < pixels; p++, y += 2 * n, left += step, right += step)
                for (int64_t i = 0; i < n; i++) {
                        y[2 * i] = left[i];
                        y[2 * i + 1] = right[i];
                }
}

static int shuffle_run(const void *state, const struct sl_binding *binding)
{
        const struct shuffle *s = state;
        const uint32_t *left = binding->inputs[0], *right = (const uint32_t *)binding->inputs[s->last] + s->right;
        struct sl_part pixels = sl_part_along(binding->part, SL_AXIS_ROWS, s->pixels);

        left += pixels.first * s->step;
        right += pixels.first * s->step;
        for (uint32_t i = 0; i < s->n_parts; left += s->n[i], right += s->n[i], i++)
                interleave(pixels.end - pixels.first, s->n[i], (uint32_t *)binding->outputs[i] + pixels.first * 2 * s->n[i], left,
                        right, s->step);
        return 0;
}

static int64_t shuffle_units(const void *state, uint32_t axis)
{
        const struct shuffle *s = state;

        return axis == SL_AXIS_ROWS ? s->pixels : 0;
}

static bool shuffle_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct shuffle *s = state;
        int64_t words = operand < SL_REACH_OUTPUT ? s->step : 2 * s->n[operand - SL_REACH_OUTPUT];

        return sl_reach_rows(part, words * (int64_t)sizeof(uint32_t), ret_reach);
}

const struct sl_cpu_loop sl_cpu_shuffle = {.state_bytes = sizeof(struct shuffle),
        .plan = shuffle_plan,
        .run = shuffle_run,
        .units = shuffle_units,
        .reach = shuffle_reach,
        .instead = &sl_cpu_copy};
