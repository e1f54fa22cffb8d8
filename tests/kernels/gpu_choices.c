/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a GPU's choices: what was written comes back, what is damaged is refused, and nothing outside of them is read. */
#include "gpu_choices.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define N 3

static const struct sl_gpu_choices_facts facts = {.identity = {.device = "Fake 0",
                                                          .driver = "580.1",
                                                          .capability = 900,
                                                          .n_processors = 132,
                                                          .cuda_version = 13000,
                                                          .cudnn_version = 91900,
                                                          .cublaslt_version = 130100},
        .plan = {17, 4096},
        .n_choices = N,
        .n_timed = 2,
        .n_candidates = 9,
        .timed_ns = 12345};

static void *write_file(uint64_t *ret_bytes)
{
        struct sl_gpu_choice choices[N] = {
                {.key = {1, 2}, .way = 1, .workspace_bytes = 4096, .ns = 77, .text = "a plan", .text_bytes = 7},
                {.key = {3, 4}, .has_algorithm = 1, .workspace_bytes = 1024, .ns = 5},
                {.key = {5, 6}, .way = 2, .text = "", .text_bytes = 1},
        };
        void *data;

        memset(choices[1].algorithm, 0xab, sizeof(choices[1].algorithm));
        cr_assert_eq(sl_gpu_choices_write(&facts, choices, &data, ret_bytes), 0);
        return data;
}

Test(gpu_choices, come_back_as_they_were_written)
{
        struct sl_gpu_choices_facts back;
        struct sl_gpu_choice choice;
        struct sl_error error = {""};
        uint64_t bytes;
        void *data = write_file(&bytes);

        cr_assert_eq(sl_gpu_choices_check(data, bytes, &back, &error), 0, "%s", error.text);
        cr_expect(memcmp(&back, &facts, sizeof(facts)) == 0);
        sl_gpu_choices_at(data, 0, &choice);
        cr_expect(choice.key[0] == 1 && choice.key[1] == 2 && choice.way == 1 && choice.ns == 77 && choice.workspace_bytes == 4096);
        cr_expect_str_eq(choice.text, "a plan");
        sl_gpu_choices_at(data, 1, &choice);
        cr_expect(choice.has_algorithm && choice.algorithm[63] == 0xab && !choice.text);
        sl_gpu_choices_at(data, 2, &choice);
        cr_expect(choice.way == 2 && choice.text_bytes == 1 && !choice.has_algorithm);
        free(data);
}

/* At the end of its memory, so that a sanitizer sees who reads behind it. */
static int check_copy(const void *data, uint64_t bytes)
{
        struct sl_gpu_choices_facts back;
        void *copy = malloc(bytes ? bytes : 1);
        int r;

        memcpy(copy, data, bytes);
        r = sl_gpu_choices_check(copy, bytes, &back, NULL);
        free(copy);
        return r;
}

Test(gpu_choices, that_are_cut_or_have_a_bit_more_or_less_are_refused)
{
        uint64_t bytes;
        uint8_t *data = write_file(&bytes);

        cr_assert_eq(check_copy(data, bytes), 0);
        for (uint64_t cut = 0; cut < bytes; cut++)
                cr_assert_eq(check_copy(data, cut), -EBADMSG, "%d bytes", (int)cut);
        for (uint64_t bit = 0; bit < bytes * 8; bit++) {
                data[bit / 8] ^= (uint8_t)(1u << bit % 8);
                cr_assert_eq(check_copy(data, bytes), -EBADMSG, "bit %d", (int)bit);
                data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(data);
}

#define CHECKSUM 24 /* where it stands; what it is of stands behind it */

/* Whoever writes a file has its checksum right as well. */
Test(gpu_choices, whose_checksum_is_right_are_read_within_their_bounds_whatever_they_say)
{
        uint64_t bytes;
        uint8_t *data = write_file(&bytes), *copy = malloc(bytes);
        uint32_t n_refused = 0;

        for (uint64_t bit = (CHECKSUM + 8) * 8; bit < bytes * 8; bit++) {
                struct sl_gpu_choices_facts back;
                uint64_t checksum;

                memcpy(copy, data, bytes);
                copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
                checksum = XXH3_64bits(copy + CHECKSUM + 8, bytes - CHECKSUM - 8);
                memcpy(copy + CHECKSUM, &checksum, sizeof(checksum));
                if (sl_gpu_choices_check(copy, bytes, &back, NULL) < 0) {
                        n_refused++;
                        continue;
                }
                for (uint32_t i = 0; i < back.n_choices; i++) {
                        struct sl_gpu_choice choice;

                        sl_gpu_choices_at(copy, i, &choice);
                        cr_assert(!choice.text || ((const uint8_t *)choice.text > copy &&
                                                          (const uint8_t *)choice.text + choice.text_bytes <= copy + bytes &&
                                                          strlen(choice.text) + 1 == choice.text_bytes));
                }
        }
        cr_expect_gt(n_refused, 100);
        free(copy);
        free(data);
}

static void expect_other(const struct sl_gpu_choices_facts *other, const char *words)
{
        struct sl_error error = {""};

        cr_expect_eq(sl_gpu_choices_fit(&facts, other, &error), -ESTALE);
        cr_expect(strstr(error.text, words), "%s", error.text);
}

Test(gpu_choices, of_another_device_driver_library_or_plan_do_not_fit)
{
        struct sl_gpu_choices_facts other = facts;

        other.n_timed = other.n_candidates = 0;
        cr_expect_eq(sl_gpu_choices_fit(&facts, &other, NULL), 0);
        strcpy(other.identity.driver, "580.2");
        expect_other(&other, "driver \"580.1\", and this is \"580.2\"");
        other = facts;
        strcpy(other.identity.device, "Fake 1");
        expect_other(&other, "device \"Fake 0\", and this is \"Fake 1\"");
        other = facts;
        other.identity.cudnn_version = 92000;
        expect_other(&other, "cuDNN version 91900, and this is 92000");
        other = facts;
        other.identity.cublaslt_version = 130200;
        expect_other(&other, "cuBLASLt version 130100, and this is 130200");
        other = facts;
        other.identity.percent = 25;
        expect_other(&other, "per cent");
        other = facts;
        other.plan[0]++;
        expect_other(&other, "another plan");
}
