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

static void weighted_class_sum(const struct sl_combination *c)
{
        for (size_t i = 0, class = 0; i < c->samples * c->classes; i++, class = class + 1 < c->classes ? class + 1 : 0) {
                float sum = 0;

                for (uint32_t m = 0; m < c->n_members; m++)
                        sum += c->class_weights[m][class] * c->predictions[m][i];
                c->output[i] = sum;
        }
}

static float weight_of(const struct sl_combination *c, uint32_t m, size_t class)
{
        return c->class_weights ? c->class_weights[m][class] : c->weights[m];
}

/* Of a part of the members, by the weights that these have. */
static void weighted_part(const struct sl_combination *c)
{
        for (size_t i = 0; i < c->samples * c->classes; i++) {
                float sum = 0, plain = 0, weights = 0;

                for (uint32_t m = 0; m < c->n_members; m++) {
                        float weight = weight_of(c, m, i % c->classes);

                        sum += weight * c->predictions[m][i];
                        plain += c->predictions[m][i];
                        weights += weight;
                }
                c->output[i] = weights > 0 ? sum / weights : plain / (float)c->n_members;
        }
}

static void weighted_mean(const struct sl_combination *c)
{
        if (c->is_part)
                weighted_part(c);
        else if (c->class_weights)
                weighted_class_sum(c);
        else
                weighted_sum(c, c->weights);
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

/* A NaN of any member stays. */
static void maximum(const struct sl_combination *c)
{
        size_t n = c->samples * c->classes;

        for (size_t i = 0; i < n; i++) {
                float largest = c->predictions[0][i];

                for (uint32_t m = 1; m < c->n_members; m++) {
                        float x = c->predictions[m][i];

                        largest = largest != largest || largest > x ? largest : x;
                }
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
                weighted_mean(c);
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
        case SL_RULE_WEIGHTED_BOXES:
        case SL_RULE_NMS:
        case SL_RULE_SOFT_NMS:
        case SL_RULE_STACKING:
        case SL_RULE_NONE:
        case SL_RULE_COUNT:
                break;
        }
}
