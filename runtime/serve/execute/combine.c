/* SPDX-License-Identifier: Apache-2.0 */
#include "combine.h"

#include <math.h>
#include <string.h>

static void weighted_sum(const struct sl_combination *c, const float *weights)
{
        size_t n = c->samples * c->classes;

        for (size_t i = 0; i < n; i++) {
                float sum = 0;

                for (uint32_t m = 0; m < c->n_members; m++)
                        sum += weights[m] * c->predictions[m][i];
                c->output[i] = sum;
        }
}

static void mean(const struct sl_combination *c)
{
        size_t n = c->samples * c->classes;
        float members = (float)c->n_members;

        for (size_t i = 0; i < n; i++) {
                float sum = c->predictions[0][i];

                for (uint32_t m = 1; m < c->n_members; m++)
                        sum += c->predictions[m][i];
                c->output[i] = sum / members;
        }
}

static void maximum(const struct sl_combination *c)
{
        size_t n = c->samples * c->classes;

        for (size_t i = 0; i < n; i++) {
                float largest = c->predictions[0][i];

                for (uint32_t m = 1; m < c->n_members; m++)
                        largest = fmaxf(largest, c->predictions[m][i]);
                c->output[i] = largest;
        }
}

/* The first of equals, as ONNX's ArgMax has it. */
static size_t largest_class(const float *row, size_t classes)
{
        size_t best = 0;

        for (size_t i = 1; i < classes; i++)
                if (row[i] > row[best])
                        best = i;
        return best;
}

static void majority_vote(const struct sl_combination *c)
{
        float share = 1.0f / (float)c->n_members;

        for (size_t s = 0; s < c->samples; s++) {
                uint32_t votes[SL_MEMBERS_MAX];
                float *row = c->output + s * c->classes;

                memset(row, 0, c->classes * sizeof(float));
                for (uint32_t m = 0; m < c->n_members; m++)
                        votes[m] = (uint32_t)largest_class(c->predictions[m] + s * c->classes, c->classes);
                for (uint32_t m = 0; m < c->n_members; m++)
                        row[votes[m]] += share;
        }
}

/* Probabilities of 0 count as the smallest normal number: one member's certainty cannot erase a class for all. */
static double log_probability(float probability)
{
        return log(fmax((double)probability, 1.17549435e-38));
}

static void geometric_mean(const struct sl_combination *c)
{
        for (size_t s = 0; s < c->samples; s++) {
                float *row = c->output + s * c->classes;
                double total = 0;

                for (size_t i = 0; i < c->classes; i++) {
                        double sum = 0;

                        for (uint32_t m = 0; m < c->n_members; m++)
                                sum += log_probability(c->predictions[m][s * c->classes + i]);
                        double value = exp(sum / c->n_members);
                        row[i] = (float)value;
                        total += value;
                }
                for (size_t i = 0; i < c->classes; i++)
                        row[i] = (float)(row[i] / total);
        }
}

void sl_combine(const struct sl_combination *c)
{
        switch (c->rule) {
        case SL_RULE_MEAN:
                mean(c);
                break;
        case SL_RULE_WEIGHTED_MEAN:
                weighted_sum(c, c->weights);
                break;
        case SL_RULE_MAJORITY_VOTE:
                majority_vote(c);
                break;
        case SL_RULE_GEOMETRIC_MEAN:
                geometric_mean(c);
                break;
        case SL_RULE_MAXIMUM:
                maximum(c);
                break;
        case SL_RULE_NONE:
        case SL_RULE_COUNT:
                break;
        }
}
