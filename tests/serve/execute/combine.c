/* SPDX-License-Identifier: Apache-2.0 */
#include "combine.h"

#include <criterion/criterion.h>
#include <math.h>

static const float first[2 * 3] = {0.7f, 0.2f, 0.1f, 0.1f, 0.8f, 0.1f};
static const float second[2 * 3] = {0.1f, 0.6f, 0.3f, 0.3f, 0.3f, 0.4f};
static const float third[2 * 3] = {0.5f, 0.5f, 0.0f, 0.2f, 0.2f, 0.6f};
static const float *const predictions[3] = {first, second, third};

static void combine(enum sl_rule rule, const float *weights, float *ret_output)
{
        sl_combine(&(struct sl_combination){
                .rule = rule,
                .n_members = 3,
                .weights = weights,
                .predictions = predictions,
                .samples = 2,
                .classes = 3,
                .output = ret_output,
        });
}

static void expect(const float *got, const float *wanted)
{
        for (int i = 0; i < 6; i++)
                cr_expect_float_eq(got[i], wanted[i], 1e-6, "element %d: %g, expected %g", i, got[i], wanted[i]);
}

Test(combine, mean_is_the_sum_over_members_by_their_number)
{
        const float wanted[6] = {1.3f / 3, 1.3f / 3, 0.4f / 3, 0.6f / 3, 1.3f / 3, 1.1f / 3};
        float output[6];

        combine(SL_RULE_MEAN, NULL, output);
        expect(output, wanted);
}

Test(combine, weighted_mean_uses_each_members_weight)
{
        const float weights[3] = {0.5f, 0.25f, 0.25f};
        const float wanted[6] = {0.5f, 0.375f, 0.125f, 0.175f, 0.525f, 0.3f};
        float output[6];

        combine(SL_RULE_WEIGHTED_MEAN, weights, output);
        expect(output, wanted);
}

Test(combine, weighted_mean_may_have_weights_for_each_class)
{
        const float weights[3][3] = {{1, 0, 0.5f}, {0, 0.5f, 0.25f}, {0, 0.5f, 0.25f}};
        const float wanted[6] = {0.7f, 0.55f, 0.125f, 0.1f, 0.25f, 0.3f};
        float output[6];

        sl_combine(&(struct sl_combination){
                .rule = SL_RULE_WEIGHTED_MEAN,
                .n_members = 3,
                .class_weights = (const float *const[]){weights[0], weights[1], weights[2]},
                .predictions = predictions,
                .samples = 2,
                .classes = 3,
                .output = output,
        });
        expect(output, wanted);
}

/* Members 0 and 1 of three: 1 * 0.7 and 3 * 0.1, by 4; of members without a weight, the mean. */
Test(combine, weights_of_a_part_of_the_members_are_divided_by_their_sum)
{
        const float wanted[6] = {0.25f, 0.5f, 0.25f, 0.25f, 0.425f, 0.325f};
        const float equal[6] = {0.4f, 0.4f, 0.2f, 0.2f, 0.55f, 0.25f};

        for (int i = 0; i < 2; i++) {
                const float weights[2] = {i ? 0 : 0.125f, i ? 0 : 0.375f};
                float output[6];

                sl_combine(&(struct sl_combination){
                        .rule = SL_RULE_WEIGHTED_MEAN,
                        .n_members = 2,
                        .weights = weights,
                        .is_part = true,
                        .predictions = predictions,
                        .samples = 2,
                        .classes = 3,
                        .output = output,
                });
                expect(output, i ? equal : wanted);
        }
}

/* Sample 0: classes 0, 1, and a tie of 0 and 1 that goes to the first. */
Test(combine, majority_vote_gives_each_class_the_share_of_its_votes)
{
        const float wanted[6] = {2.0f / 3, 1.0f / 3, 0, 0, 1.0f / 3, 2.0f / 3};
        float output[6];

        combine(SL_RULE_MAJORITY_VOTE, NULL, output);
        expect(output, wanted);
}

Test(combine, maximum_is_element_by_element)
{
        const float wanted[6] = {0.7f, 0.6f, 0.3f, 0.3f, 0.8f, 0.6f};
        float output[6];

        combine(SL_RULE_MAXIMUM, NULL, output);
        expect(output, wanted);
}

Test(combine, maximum_keeps_a_nan_of_any_member)
{
        const float numbers[3] = {0.2f, 0.3f, 0.1f};

        for (int odd = 0; odd < 3; odd++) {
                float values[3], output;
                const float *const members[3] = {&values[0], &values[1], &values[2]};

                for (int i = 0; i < 3; i++)
                        values[i] = i == odd ? NAN : numbers[i];
                sl_combine(&(struct sl_combination){.rule = SL_RULE_MAXIMUM,
                        .n_members = 3,
                        .predictions = members,
                        .samples = 1,
                        .classes = 1,
                        .output = &output});
                cr_expect(isnan(output), "of member %d: %g", odd, output);
        }
}

Test(combine, geometric_mean_is_normalised_and_survives_a_zero)
{
        float output[6], wanted[6];

        combine(SL_RULE_GEOMETRIC_MEAN, NULL, output);
        for (int s = 0; s < 2; s++) {
                double total = 0, row[3];

                for (int i = 0; i < 3; i++) {
                        row[i] = cbrt((double)first[s * 3 + i] * second[s * 3 + i] * fmax(third[s * 3 + i], 1.17549435e-38));
                        total += row[i];
                }
                for (int i = 0; i < 3; i++)
                        wanted[s * 3 + i] = (float)(row[i] / total);
                cr_expect_float_eq(output[s * 3] + output[s * 3 + 1] + output[s * 3 + 2], 1, 1e-6);
        }
        expect(output, wanted);
}
