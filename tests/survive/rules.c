/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule of combination, as a client of `starling serve` sees it: the ensemble's answer is what the rule makes of the answers
 * that its members give when they are asked alone; and what is made of predictions that nobody computes.
 */
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS 3u
#define SAMPLES 50u
#define VALUES  (SAMPLES * DIGITS_OUT)

static const char *const names[MEMBERS] = {"lenet", "resnet", "mlp"};
static const float weights[MEMBERS] = {0.5f, 0.3f, 0.2f};

typedef float predictions[VALUES];

static void ask(struct starling_client *client, struct starling_queue *queue, const struct digits_data *data, const char *name,
        uint32_t n_outputs, predictions *ret_outputs)
{
        struct starling_tensor input, outputs[MEMBERS];
        struct starling_completion done;
        struct starling_model *model;

        cr_assert_eq(starling_model_open(client, name, &model, NULL), 0, "%s", name);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 4, (uint32_t[]){SAMPLES, 1, 8, 8}, &input), 0);
        memcpy(input.data, data->images, SAMPLES * DIGITS_INPUTS * sizeof(float));
        for (uint32_t i = 0; i < n_outputs; i++)
                cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){SAMPLES, DIGITS_OUT}, &outputs[i]), 0);
        cr_assert_eq(starling_infer(queue,
                             &(struct starling_request){
                                     .model = model, .inputs = &input, .n_inputs = 1, .outputs = outputs, .n_outputs = n_outputs},
                             &done),
                0, "%s: %s", name, starling_queue_error(queue));
        for (uint32_t i = 0; i < n_outputs; i++) {
                memcpy(ret_outputs[i], outputs[i].data, sizeof(predictions));
                starling_free(client, outputs[i].data);
        }
        starling_free(client, input.data);
}

static struct starling_client *connect_to(
        const struct world *world, struct digits_data *ret_data, struct starling_queue **ret_queue)
{
        struct starling_client *client = world_connect(world, STARLING_ROLE_CLIENT);

        cr_assert(digits_read(ret_data, "lenet"));
        cr_assert_eq(starling_queue_open(client, ret_queue, NULL), 0);
        return client;
}

static void leave(struct world *world, struct starling_client *client, struct digits_data *data)
{
        starling_close(client);
        digits_release(data);
        world_stop(world);
        world_free(world);
}

static uint32_t best_of(const float *sample)
{
        uint32_t best = 0;

        for (uint32_t i = 1; i < DIGITS_OUT; i++)
                if (sample[i] > sample[best])
                        best = i;
        return best;
}

static double combine_value(const char *rule, const predictions *members, uint32_t sample, uint32_t class)
{
        uint32_t i = sample * DIGITS_OUT + class;
        double result = strcmp(rule, "geometric_mean") == 0 ? 1 : 0;

        for (uint32_t m = 0; m < MEMBERS; m++) {
                double value = (double)members[m][i];

                if (strcmp(rule, "mean") == 0)
                        result += value / MEMBERS;
                else if (strcmp(rule, "weighted_mean") == 0)
                        result += value * (double)weights[m];
                else if (strcmp(rule, "maximum") == 0)
                        result = value > result ? value : result;
                else if (strcmp(rule, "geometric_mean") == 0)
                        result *= pow(value, 1.0 / MEMBERS);
                else
                        result += best_of(&members[m][sample * DIGITS_OUT]) == class ? 1.0 / MEMBERS : 0;
        }
        return result;
}

static void expect_rule(const char *rule, const predictions *members, const float *got)
{
        for (uint32_t sample = 0; sample < SAMPLES; sample++) {
                double expected[DIGITS_OUT], sum = 0;

                for (uint32_t class = 0; class < DIGITS_OUT; class ++)
                        sum += expected[class] = combine_value(rule, members, sample, class);
                for (uint32_t class = 0; class < DIGITS_OUT; class ++) {
                        double wanted = strcmp(rule, "geometric_mean") == 0 ? expected[class] / sum : expected[class];
                        double value = (double)got[sample * DIGITS_OUT + class];

                        cr_assert(fabs(value - wanted) <= 1e-5, "rule %s, sample %u, class %u: %g, not %g", rule, sample, class,
                                value, wanted);
                }
        }
}

Test(rules, an_ensemble_answers_what_its_rule_makes_of_its_members_answers)
{
        static const char *const rules[] = {"mean", "weighted_mean", "majority_vote", "geometric_mean", "maximum"};
        struct starling_client *client;
        struct starling_queue *queue;
        predictions members[MEMBERS], side_by_side[MEMBERS], got[1];
        struct digits_data data;
        struct world world;

        world_init(&world);
        world_keep(&world, "lenet resnet mlp");
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                char yaml[256];

                snprintf(yaml, sizeof(yaml), "ensemble:\n  members: [lenet, resnet, mlp]\n  rule: %s\n%s", rules[i],
                        strcmp(rules[i], "weighted_mean") == 0 ? "  weights: [0.5, 0.3, 0.2]\n" : "");
                world_add_model_config(&world, rules[i], yaml);
        }
        world_add_model_config(&world, "none", "ensemble:\n  members: [lenet, resnet, mlp]\n  rule: none\n");
        world_start(&world);
        client = connect_to(&world, &data, &queue);
        for (uint32_t m = 0; m < MEMBERS; m++)
                ask(client, queue, &data, names[m], 1, &members[m]);
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                ask(client, queue, &data, rules[i], 1, got);
                expect_rule(rules[i], members, got[0]);
        }
        ask(client, queue, &data, "none", MEMBERS, side_by_side);
        for (uint32_t m = 0; m < MEMBERS; m++)
                for (uint32_t i = 0; i < VALUES; i++)
                        cr_assert(fabsf(side_by_side[m][i] - members[m][i]) <= 1e-5f, "member %s, element %u", names[m], i);
        leave(&world, client, &data);
}

/* Of each digit the member with the weight says it; the others have 0. */
Test(rules, weights_for_each_class_are_of_that_class_alone)
{
        static const char yaml[] = "ensemble:\n  members: [lenet, resnet, mlp]\n  rule: weighted_mean\n  weights:\n"
                                   "    - 1,0,0,1,0,0,1,0,0,2\n    - 0,1,0,0,1,0,0,1,0,1\n    - 0,0,3,0,0,1,0,0,1,1\n";
        struct starling_client *client;
        struct starling_queue *queue;
        predictions members[MEMBERS], got[1];
        struct digits_data data;
        struct world world;

        world_init(&world);
        world_keep(&world, "lenet resnet mlp");
        world_add_model_config(&world, "picked", yaml);
        world_start(&world);
        client = connect_to(&world, &data, &queue);
        for (uint32_t m = 0; m < MEMBERS; m++)
                ask(client, queue, &data, names[m], 1, &members[m]);
        ask(client, queue, &data, "picked", 1, got);
        for (uint32_t i = 0; i < VALUES; i++) {
                uint32_t class = i % DIGITS_OUT;
                float wanted = class < 9 ? members[class % MEMBERS][i] : (2 * members[0][i] + members[1][i] + members[2][i]) / 4;

                cr_assert(fabsf(got[0][i] - wanted) <= 1e-5f, "element %u: %g, not %g", i, (double)got[0][i], (double)wanted);
        }
        leave(&world, client, &data);
}

static void expect_share(const char *name, const predictions *got, const predictions *of, float share)
{
        for (uint32_t i = 0; i < VALUES; i++)
                cr_assert(fabsf((*got)[i] - share * (*of)[i]) <= 1e-6f, "%s, element %u: %g, not %g of %g", name, i,
                        (double)(*got)[i], (double)share, (double)(*of)[i]);
}

/* The largest ensemble of the ensemble paper, CIF36, has 36. */
Test(rules, an_ensemble_of_36_alike_answers_what_one_of_them_does)
{
        char yaml[512] = "ensemble:\n  rule: mean\n  members: [lenet", name[24];
        struct starling_client *client;
        struct starling_queue *queue;
        predictions one[1], got[1];
        struct digits_data data;
        struct world world;

        world_init(&world);
        world_keep(&world, "lenet");
        for (int i = 1; i < 36; i++) {
                snprintf(name, sizeof(name), "lenet%d", i);
                world_copy_model(&world, "lenet", name, "instances: 1\n");
                strcat(strcat(yaml, ", "), name);
        }
        world_add_model_config(&world, "all", strcat(yaml, "]\n"));
        world_start(&world);
        client = connect_to(&world, &data, &queue);
        ask(client, queue, &data, "lenet", 1, one);
        ask(client, queue, &data, "all", 1, got);
        expect_share("all", got, one, 1);
        leave(&world, client, &data);
}

/* In threads and in processes; the members beside them compute. */
Test(rules, fake_predictions_are_zeros_that_are_combined_as_any)
{
        struct starling_client *client;
        struct starling_queue *queue;
        predictions real[1], got[1];
        struct digits_data data;
        struct world world;

        world_init(&world);
        world_keep(&world, "lenet");
        world_copy_model(&world, "resnet", "zeros", "predictions: fake\n");
        world_copy_model(&world, "resnet", "apart", "predictions: fake\nisolation: process\n");
        world_add_model_config(&world, "half", "ensemble:\n  members: [lenet, zeros]\n  rule: mean\n");
        world_add_model_config(&world, "third", "ensemble:\n  members: [apart, lenet, zeros]\n  rule: mean\n");
        world_start(&world);
        world_expect_log(&world, "predictions-fake model=zeros");
        client = connect_to(&world, &data, &queue);
        ask(client, queue, &data, "lenet", 1, real);
        ask(client, queue, &data, "zeros", 1, got);
        expect_share("zeros", got, real, 0);
        ask(client, queue, &data, "apart", 1, got);
        expect_share("apart", got, real, 0);
        ask(client, queue, &data, "half", 1, got);
        expect_share("half", got, real, 1.0f / 2);
        ask(client, queue, &data, "third", 1, got);
        expect_share("third", got, real, 1.0f / 3);
        leave(&world, client, &data);
}

Test(rules, fake_is_said_once_for_all_on_the_command_line)
{
        static const predictions none = {0};
        struct starling_client *client;
        struct starling_queue *queue;
        struct digits_data data;
        predictions got[1];
        struct world world;

        world_init(&world);
        world.arguments[0] = "--fake";
        world_start(&world);
        client = connect_to(&world, &data, &queue);
        ask(client, queue, &data, "digits", 1, got);
        expect_share("digits", got, &none, 0);
        leave(&world, client, &data);
}
