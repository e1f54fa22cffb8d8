/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.RowAttention: planning, the walk over samples and heads, and plain loops for processors without AVX2.
 */
#include "cpu/gemm/attention.h"

#include "cpu/base/isa.h"
#include "cpu/base/rows.h"
#include "cpu/base/vector_math.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/loops.h"

#include <math.h>

static void plan_mask(const struct sl_node_desc *node, struct sl_cpu_attention *s)
{
        const struct sl_shape *shape = &node->inputs[SL_ATTENTION_MASK].shape;
        int64_t stride = 1;

        s->has_mask = true;
        for (uint32_t i = shape->rank; i-- > 0;) {
                s->mask_strides[4 - shape->rank + i] = shape->dims[i] == 1 ? 0 : stride;
                stride *= shape->dims[i];
        }
}

static bool attention_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_cpu_attention *s = state;

        if (sl_attention_read(node, &s->a, NULL) || sl_cpu_is_empty(&node->outputs[0]) || !s->a.keys)
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE &&
                        (!sl_cpu_is_f32(&node->inputs[i]) || node->inputs[i].layout != SL_LAYOUT_PLAIN))
                        return false;
        if (node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return false;
        for (uint32_t i = 0; i < 3; i++)
                s->strides[i] = node->inputs[i].shape.dims[2];
        if (node->n_inputs > SL_ATTENTION_MASK && node->inputs[SL_ATTENTION_MASK].dtype != SL_DTYPE_NONE)
                plan_mask(node, s);
        s->scale = (float)s->a.scale;
        s->stride = (s->a.keys + 15) / 16 * 16;
        s->values_offset = sl_gemm_packed_floats(s->a.depth, s->a.keys);
        s->scores_offset = s->values_offset + sl_gemm_packed_floats(s->a.keys, s->a.width);
        sizes->scratch_bytes = (size_t)(s->scores_offset + SL_ATTENTION_BLOCK * s->stride) * sizeof(float);
        return true;
}

SL_CPU_CLONES static void add_scaled(int64_t n, float *y, const float *x, float factor)
{
        for (int64_t i = 0; i < n; i++)
                y[i] += x[i] * factor;
}

/* Scores become weights that add up to 1; guarded ones that would not be numbers are 0. */
SL_CPU_CLONES static void soften(int64_t n, float *scores, bool guard)
{
        float largest = scores[0], sum = 0;

        for (int64_t i = 1; i < n; i++)
                largest = scores[i] > largest || scores[i] != scores[i] ? scores[i] : largest;
        for (int64_t i = 0; i < n; i++)
                scores[i] = sl_exp(scores[i] - largest);
        for (int64_t i = 0; i < n; i++)
                sum += scores[i];
        for (int64_t i = 0; i < n; i++)
                scores[i] = guard && sum != sum ? 0.0f : scores[i] / sum;
}

static void attend_plainly(const struct sl_cpu_attention *s, const struct sl_cpu_head *head)
{
        float *scores = head->scratch + s->scores_offset;

        for (int64_t row = 0; row < s->a.rows; row++) {
                float *output = head->output + row * s->a.heads * s->a.width;

                for (int64_t key = 0; key < s->a.keys; key++) {
                        scores[key] = s->scale * sl_row_product(s->a.depth, head->queries + row * s->strides[SL_ATTENTION_QUERIES],
                                                         head->keys + key * s->strides[SL_ATTENTION_KEYS]);
                        if (head->mask)
                                scores[key] += head->mask[row * s->mask_strides[2] + key * s->mask_strides[3]];
                }
                soften(s->a.keys, scores, s->a.guard);
                for (int64_t i = 0; i < s->a.width; i++)
                        output[i] = 0.0f;
                for (int64_t key = 0; key < s->a.keys; key++)
                        add_scaled(s->a.width, output, head->values + key * s->strides[SL_ATTENTION_VALUES], scores[key]);
        }
}

static int attention_run(const void *state, const struct sl_binding *binding)
{
        const struct sl_cpu_attention *s = state;
        const float *const *in = (const float *const *)binding->inputs;
        bool wide = sl_cpu_has_avx2();

        struct sl_part heads = sl_part_along(binding->part, SL_AXIS_ROWS, s->a.batch * s->a.heads);

        for (int64_t i = heads.first; i < heads.end; i++) {
                int64_t batch = i / s->a.heads, h = i % s->a.heads;
                struct sl_cpu_head head = {
                        .queries = in[0] + batch * s->a.rows * s->strides[0] + s->a.first[0] + h * s->a.depth,
                        .keys = in[1] + batch * s->a.keys * s->strides[1] + s->a.first[1] + h * s->a.depth,
                        .values = in[2] + batch * s->a.keys * s->strides[2] + s->a.first[2] + h * s->a.width,
                        .mask = s->has_mask ? in[3] + batch * s->mask_strides[0] + h * s->mask_strides[1] : NULL,
                        .output = (float *)binding->outputs[0] + (batch * s->a.rows * s->a.heads + h) * s->a.width,
                        .scratch = binding->scratch,
                };

                if (wide)
                        sl_cpu_attend(s, &head);
                else
                        attend_plainly(s, &head);
        }
        return 0;
}

static int64_t attention_units(const void *state, uint32_t axis)
{
        const struct sl_cpu_attention *s = state;

        return axis == SL_AXIS_ROWS ? s->a.batch * s->a.heads : 0;
}

/* Heads lie side by side in the rows of a sample; a part with some of two samples touches all of both. */
static bool attention_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_cpu_attention *s = state;
        const int64_t word = sizeof(float);
        bool output = operand == SL_REACH_OUTPUT;
        int64_t stride = output ? s->a.heads * s->a.width : operand <= SL_ATTENTION_VALUES ? s->strides[operand] : 0;
        int64_t rows = output || operand == SL_ATTENTION_QUERIES ? s->a.rows : s->a.keys;
        int64_t width = output || operand == SL_ATTENTION_VALUES ? s->a.width : s->a.depth;
        int64_t first = part->first / s->a.heads, last = (part->end - 1) / s->a.heads;

        if (!stride || part->end <= part->first)
                return false;
        if (first != last)
                return sl_reach_rows(&(struct sl_part){.first = first, .end = last + 1}, rows * stride * word, ret_reach);
        *ret_reach = (struct sl_reach){
                .first = (first * rows * stride + (output ? 0 : s->a.first[operand]) + part->first % s->a.heads * width) * word,
                .bytes = (part->end - part->first) * width * word,
                .pitch = stride * word,
                .runs = rows};
        return true;
}

const struct sl_cpu_loop sl_cpu_attention = {.state_bytes = sizeof(struct sl_cpu_attention),
        .plan = attention_plan,
        .run = attention_run,
        .units = attention_units,
        .reach = attention_reach};
