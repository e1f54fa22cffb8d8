/* SPDX-License-Identifier: Apache-2.0 */
#include "boxes.h"

#include "base/dtype.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 4u

/* What a list of members becomes. */
struct result {
        float boxes[PLACES][4], scores[PLACES], labels[PLACES], count;
};

struct list {
        float boxes[PLACES][4], scores[PLACES], labels[PLACES];
};

static struct result fuse(enum sl_rule rule, const struct list *lists, uint32_t n, const float *weights)
{
        struct sl_box_list own[4];
        struct result result;
        void *scratch = malloc(sl_box_scratch_bytes((uint64_t)n * PLACES));

        memset(&result, 0x55, sizeof(result));
        for (uint32_t i = 0; i < n; i++)
                own[i] = (struct sl_box_list){.boxes = lists[i].boxes[0],
                        .scores = lists[i].scores,
                        .labels = lists[i].labels,
                        .places = PLACES,
                        .weight = weights ? weights[i] : 1};
        sl_fuse_boxes(&(struct sl_box_fusion){
                .rule = rule,
                .overlap = 0.5f,
                .score_min = 0.001f,
                .sigma = 0.5f,
                .n_lists = n,
                .lists = own,
                .label_dtype = SL_DTYPE_F32,
                .count_dtype = SL_DTYPE_F32,
                .scratch = scratch,
                .places = PLACES,
                .boxes = result.boxes[0],
                .scores = result.scores,
                .labels = result.labels,
                .count = &result.count,
        });
        free(scratch);
        return result;
}

static const enum sl_rule rules[] = {SL_RULE_WEIGHTED_BOXES, SL_RULE_NMS, SL_RULE_SOFT_NMS};

static void expect_box(const struct result *r, uint32_t place, float low, float high, float score)
{
        const float wanted[4] = {low, low, high, high};

        for (int k = 0; k < 4; k++)
                cr_expect_float_eq(r->boxes[place][k], wanted[k], 1e-5, "place %u, corner %d: %g", place, k, r->boxes[place][k]);
        cr_expect_float_eq(r->scores[place], score, 1e-5, "place %u: score %g, not %g", place, r->scores[place], score);
}

/* By hand: corners are the mean by the scores, 0.75 and 0.25; the score is the mean. */
Test(boxes, weighted_boxes_fusion_takes_the_mean_of_what_overlaps)
{
        const struct list lists[2] = {
                {.boxes = {{0, 0, 4, 4}}, .scores = {0.75f}}, {.boxes = {{0.4f, 0.4f, 4.4f, 4.4f}}, .scores = {0.25f}}};
        struct result r = fuse(SL_RULE_WEIGHTED_BOXES, lists, 2, NULL);

        expect_box(&r, 0, 0.1f, 4.1f, 0.5f);
        cr_expect_eq(r.count, 1);
}

/* One of two members has seen it: half of its score; and twice by one counts once. */
Test(boxes, weighted_boxes_fusion_scores_by_the_members_that_agree)
{
        const struct list lists[2] = {
                {.boxes = {{0, 0, 4, 4}, {8, 8, 9, 9}, {8, 8, 9, 9}}, .scores = {0.8f, 0.6f, 0.4f}}, {.scores = {0}}};
        struct result r = fuse(SL_RULE_WEIGHTED_BOXES, lists, 2, NULL);

        cr_expect_eq(r.count, 2);
        expect_box(&r, 0, 8, 9, 0.5f);
        expect_box(&r, 1, 0, 4, 0.4f);
}

Test(boxes, nms_keeps_the_best_of_what_overlaps)
{
        const struct list lists[2] = {{.boxes = {{0, 0, 4, 4}, {5, 5, 6, 6}}, .scores = {0.7f, 0.2f}},
                {.boxes = {{0, 0, 4, 4.2f}}, .scores = {0.9f}, .labels = {0}}};
        struct result r = fuse(SL_RULE_NMS, lists, 2, NULL);

        cr_expect_eq(r.count, 2);
        cr_expect_float_eq(r.scores[0], 0.9, 1e-6);
        expect_box(&r, 1, 5, 6, 0.2f);
}

Test(boxes, soft_nms_lowers_what_overlaps)
{
        const struct list lists[2] = {{.boxes = {{0, 0, 4, 4}}, .scores = {0.9f}}, {.boxes = {{2, 2, 4, 4}}, .scores = {0.8f}}};
        struct result r = fuse(SL_RULE_SOFT_NMS, lists, 2, NULL); /* a quarter of it: exp(-1/16 / 0.5) */

        cr_expect_eq(r.count, 2);
        expect_box(&r, 0, 0, 4, 0.9f);
        expect_box(&r, 1, 2, 4, 0.8f * expf(-0.125f));
}

Test(boxes, of_different_labels_have_nothing_to_do_with_each_other)
{
        const struct list lists[2] = {{.boxes = {{0, 0, 4, 4}}, .scores = {0.8f}, .labels = {1}},
                {.boxes = {{0, 0, 4, 4}}, .scores = {0.6f}, .labels = {2}}};

        for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
                struct result r = fuse(rules[i], lists, 2, NULL);
                float share = rules[i] == SL_RULE_WEIGHTED_BOXES ? 0.5f : 1;

                cr_expect_eq(r.count, 2, "%s: %g", sl_rule_name(rules[i]), r.count);
                expect_box(&r, 0, 0, 4, 0.8f * share);
                expect_box(&r, 1, 0, 4, 0.6f * share);
                cr_expect(r.labels[0] == 1 && r.labels[1] == 2);
        }
}

Test(boxes, what_no_detector_should_give_is_left_out_and_places_left_over_are_zeros)
{
        const struct list odd = {
                .boxes = {{0, 0, NAN, 4}, {0, 0, INFINITY, 4}, {4, 0, 0, 4}, {0, 4, 4, 0}}, .scores = {1, 1, 1, 1}};
        const struct list nan = {.boxes = {{0, 0, 1, 1}, {0, 0, 1, 1}}, .scores = {NAN, INFINITY}};
        static const struct result nothing;

        for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
                struct result r = fuse(rules[i], (struct list[]){odd, nan}, 2, NULL);

                cr_expect_arr_eq((void *)&r, (const void *)&nothing, sizeof(r), "%s", sl_rule_name(rules[i]));
        }
}

Test(boxes, only_the_highest_scores_have_places)
{
        struct list lists[2];
        struct result r;

        for (uint32_t m = 0; m < 2; m++)
                for (uint32_t i = 0; i < PLACES; i++) {
                        float low = (float)(m * 100 + i * 10);

                        lists[m] = m || i ? lists[m] : (struct list){.scores = {0}};
                        memcpy(lists[m].boxes[i], (float[]){low, low, low + 1, low + 1}, sizeof(lists[m].boxes[i]));
                        lists[m].scores[i] = 0.1f + 0.1f * (float)(m + 2 * i);
                        lists[m].labels[i] = 0;
                }
        r = fuse(SL_RULE_NMS, lists, 2, NULL);
        cr_expect_eq(r.count, PLACES);
        expect_box(&r, 0, 130, 131, 0.8f);
        expect_box(&r, 3, 20, 21, 0.5f);
}

Test(boxes, weights_scale_the_scores_of_their_member)
{
        const struct list lists[2] = {{.boxes = {{0, 0, 4, 4}}, .scores = {0.5f}}, {.boxes = {{1, 1, 5, 5}}, .scores = {0.5f}}};
        struct result r = fuse(SL_RULE_NMS, lists, 2, (float[]){0.4f, 1});

        expect_box(&r, 0, 1, 5, 0.5f);
        expect_box(&r, 1, 0, 4, 0.2f);
}
