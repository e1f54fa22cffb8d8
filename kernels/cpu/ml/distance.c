/* SPDX-License-Identifier: Apache-2.0 */
/* starling.SquaredDistance: differences squared and added up in 16 sums, which the compiler keeps in vectors. */
#include "cpu/ml/loops.h"

#define SUMS 16

struct distance {
        int64_t rows, others, length;
};

static bool distance_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct distance *s = state;

        (void)sizes;
        *s = (struct distance){node->inputs[0].shape.dims[0], node->inputs[1].shape.dims[0], node->inputs[0].shape.dims[1]};
        return sl_cpu_is_f32(&node->inputs[0]) && sl_cpu_is_f32(&node->inputs[1]);
}

static SL_CPU_CLONES void distances_of(const float *a, const float *b, int64_t others, int64_t n, float *out)
{
        for (int64_t k = 0; k < others; k++, b += n) {
                float sums[SUMS] = {0};
                int64_t i = 0;

                for (; i + SUMS <= n; i += SUMS)
                        for (int j = 0; j < SUMS; j++)
                                sums[j] += (a[i + j] - b[i + j]) * (a[i + j] - b[i + j]);
                for (int j = 0; i + j < n; j++)
                        sums[j] += (a[i + j] - b[i + j]) * (a[i + j] - b[i + j]);
                for (int half = SUMS / 2; half; half /= 2)
                        for (int j = 0; j < half; j++)
                                sums[j] += sums[j + half];
                out[k] = sums[0];
        }
}

static int distance_run(const void *state, const struct sl_binding *binding)
{
        const struct distance *s = state;

        for (int64_t i = 0; i < s->rows; i++)
                distances_of((const float *)binding->inputs[0] + i * s->length, binding->inputs[1], s->others, s->length,
                        (float *)binding->outputs[0] + i * s->others);
        return 0;
}

const struct sl_cpu_loop sl_cpu_distance = {.state_bytes = sizeof(struct distance), .plan = distance_plan, .run = distance_run};
