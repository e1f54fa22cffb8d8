/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: what the dispatcher puts into the places of a tag is what the client reads out of them, in words. */
#include "reason.h"
#include "base/dtype.h"
#include "layout.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define DEPTH   4u
#define TENSORS 2u

static struct sl_output outputs[DEPTH * TENSORS];
static const struct sl_queue_map map = {.outputs = outputs, .depth = DEPTH, .mask = DEPTH - 1, .tensors = TENSORS};
static char words[256];

static const char *words_of(const struct sl_reason *reason, const char *text)
{
        struct sl_reason got;
        char got_text[256];

        sl_reason_put(&map, 1, reason, text);
        sl_reason_get(&map, 1, &got, got_text, sizeof(got_text));
        sl_reason_words(&got, got_text, words, sizeof(words));
        return words;
}

Test(reason, names_the_tensor_the_value_and_the_limit)
{
        cr_expect_str_eq(words_of(&(struct sl_reason){SL_REASON_DIMENSION, 2, 1, 0, 200, 224}, NULL),
                "input 2: dimension 1 is 200, the model wants 224");
        cr_expect_str_eq(words_of(&(struct sl_reason){SL_REASON_CAPACITY, SL_REASON_OUTPUT | 3, 0, 0, 8, 40}, NULL),
                "output 3 has room for 8 bytes, 40 are needed");
        cr_expect_str_eq(words_of(&(struct sl_reason){SL_REASON_TYPE, 0, 0, 0, SL_DTYPE_F64, SL_DTYPE_F32}, NULL),
                "input 0 is float64, the model wants float32");
        cr_expect_str_eq(words_of(&(struct sl_reason){SL_REASON_PASSED, 0, 0, 0, 12300000, 0}, NULL),
                "the deadline passed 12.3 ms before the request was looked at");
        cr_expect_str_eq(words_of(&(struct sl_reason){SL_REASON_EXPIRED, 0, 0, 0, 0, 450000}, NULL),
                "the deadline, 450.0 us after the request was taken, passed before the result was there");
        cr_expect_str_eq(words_of(&(struct sl_reason){SL_REASON_LATE, 0, 0, 0, 1500000, 2500}, NULL),
                "what goes before takes 1.5 ms, the deadline is in 2.5 us");
}

Test(reason, every_reason_but_none_has_words_without_a_percent_sign)
{
        for (uint16_t code = 1; code < SL_REASON_COUNT; code++) {
                cr_expect_neq(words_of(&(struct sl_reason){.code = code}, "a text")[0], 0, "%u", code);
                cr_expect_null(strchr(words, '%'), "%u: %s", code, words);
        }
}

Test(reason, a_text_fills_the_places_of_its_tag_and_no_others)
{
        size_t room = TENSORS * sizeof(struct sl_output) - offsetof(struct sl_reason_line, text);
        char text[256];

        memset(outputs, 0xaa, sizeof(outputs));
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        words_of(&(struct sl_reason){.code = SL_REASON_TEXT}, text);
        cr_expect_eq(strlen(words), room, "%zu of %zu", strlen(words), room);
        for (size_t i = 0; i < sizeof(outputs); i++)
                if (i / (TENSORS * sizeof(struct sl_output)) != 1)
                        cr_assert_eq(((unsigned char *)outputs)[i], 0xaa, "byte %zu", i);
}

Test(reason, words_are_cut_to_the_room_that_there_is)
{
        char little[8];

        sl_reason_words(&(struct sl_reason){.code = SL_REASON_STOPPING}, "", little, sizeof(little));
        cr_expect_str_eq(little, "the run");
}

Test(reason, a_text_is_cut_to_the_room_that_there_is)
{
        struct sl_reason got;
        char little[8];

        sl_reason_put(&map, 1, &(struct sl_reason){.code = SL_REASON_TEXT}, "a text of the model");
        sl_reason_get(&map, 1, &got, little, sizeof(little));
        cr_expect_str_eq(little, "a text ");
        cr_expect_eq(got.text_bytes, 7);
}

Test(reason, what_makes_no_sense_has_no_words)
{
        struct sl_reason_line *line = (struct sl_reason_line *)&outputs[TENSORS];

        cr_expect_str_eq(words_of(&(struct sl_reason){.code = SL_REASON_COUNT}, "a text"), "");
        cr_expect_str_eq(words_of(&(struct sl_reason){.code = UINT16_MAX}, NULL), "");
        struct sl_reason got;
        char text[8];

        sl_reason_put(&map, 1, &(struct sl_reason){.code = SL_REASON_TEXT}, "a text");
        line->reason.text_bytes = UINT16_MAX;
        sl_reason_get(&map, 1, &got, text, sizeof(text));
        cr_expect_eq(got.code, SL_REASON_NONE);
        cr_expect_eq(got.text_bytes, 0);
        cr_expect_str_eq(text, "");
}
