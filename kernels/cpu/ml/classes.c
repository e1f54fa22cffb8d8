/* SPDX-License-Identifier: Apache-2.0 */
/* starling.ClassScores of float32: rows are short, so each is done at once. */
#include "shape/classes.h"
#include "cpu/ml/loops.h"

#include <math.h>
#include <string.h>

static bool class_scores_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_class_scores *s = state;

        (void)sizes;
        return sl_cpu_is_f32(&node->inputs[0]) && !sl_class_scores_read(node, s, NULL) && s->post != SL_POST_PROBIT;
}

static float logistic(float x)
{
        float share = 1 / (1 + expf(-fabsf(x)));

        return x < 0 ? 1 - share : share;
}

static void softmax(const float *x, int64_t n, bool zeros, float *y)
{
        float most = x[0], sum = 0;

        for (int64_t i = 1; i < n; i++)
                most = x[i] > most ? x[i] : most;
        for (int64_t i = 0; i < n; i++) {
                y[i] = zeros && fabsf(x[i]) <= 1e-7f ? x[i] * expf(-most) : expf(x[i] - most);
                sum += y[i];
        }
        for (int64_t i = 0; i < n; i++)
                y[i] /= sum;
}

static void transform(const struct sl_class_scores *s, const float *x, float *y)
{
        if (s->post == SL_POST_NONE)
                memcpy(y, x, (size_t)s->scores * sizeof(*y));
        else if (s->post == SL_POST_LOGISTIC)
                for (int64_t i = 0; i < s->scores; i++)
                        y[i] = logistic(x[i]);
        else
                softmax(x, s->scores, s->post == SL_POST_SOFTMAX_ZERO, y);
}

static void split(const struct sl_class_scores *s, float score, float *y)
{
        bool share = s->post == SL_POST_LOGISTIC;

        y[0] = share ? logistic(-score) : s->form == SL_SCORES_SHARE ? 1 - score : -score;
        y[1] = share ? logistic(score) : score;
}

static int64_t choose(const struct sl_class_scores *s, const float *x)
{
        int64_t best = 0;

        if (s->scores == 1)
                return (double)x[0] > s->threshold;
        for (int64_t i = 1; i < s->scores; i++)
                best = x[i] > x[best] ? i : best;
        return best;
}

static int class_scores_run(const void *state, const struct sl_binding *binding)
{
        const struct sl_class_scores *s = state;
        const float *x = binding->inputs[0];
        float *y = binding->outputs[0];

        for (int64_t i = 0; i < s->rows; i++, x += s->scores) {
                if (s->has_labels)
                        ((int64_t *)binding->outputs[1])[i] = ((const int64_t *)binding->inputs[1])[choose(s, x)];
                if (s->form == SL_SCORES_PLAIN)
                        transform(s, x, y);
                else
                        split(s, x[0], y);
                y += s->form == SL_SCORES_PLAIN ? s->scores : 2;
        }
        return 0;
}

const struct sl_cpu_loop sl_cpu_class_scores = {
        .state_bytes = sizeof(struct sl_class_scores), .plan = class_scores_plan, .run = class_scores_run};
