/* SPDX-License-Identifier: Apache-2.0 */
/* Names of GPUs and of lets on them: what is one, and what is said of what is none. */
#include "gpu_let.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(gpu_let, has_one_name)
{
        static const struct {
                const char *text, *name;
                uint32_t gpu, percent;
        } rows[] = {{"gpu:0", "gpu:0", 0, 100}, {"gpu:3/50%", "gpu:3/50%", 3, 50}, {"gpu:15/100%", "gpu:15", 15, 100},
                {"gpu:0/1%", "gpu:0/1%", 0, 1}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_error error = {""};
                struct sl_gpu_let let;

                cr_assert_eq(sl_gpu_let_parse(rows[i].text, &let, &error), 0, "%s", error.text);
                cr_assert_str_eq(let.name, rows[i].name);
                cr_assert_eq(let.gpu, rows[i].gpu);
                cr_assert_eq(let.percent, rows[i].percent);
        }
}

Test(gpu_let, is_one_of_several_or_all_of_them)
{
        static char *const three[] = {"gpu:2", "gpu:0/50%", "gpu:1"}, *const all[] = {"gpu:*"}, *const half[] = {"gpu:*/50%"};
        struct sl_gpu_let lets[SL_GPUS_MAX];
        struct sl_error error = {""};

        cr_assert_eq(sl_gpu_lets_parse(three, 3, lets, &error), 0, "%s", error.text);
        cr_expect_eq(lets[0].gpu, 2);
        cr_expect_str_eq(lets[1].name, "gpu:0/50%");
        cr_expect_eq(lets[2].gpu, 1);
        cr_assert_eq(sl_gpu_lets_parse(all, 1, lets, &error), 0, "%s", error.text);
        cr_expect_eq(lets[0].gpu, SL_GPU_EACH);
        cr_expect_str_eq(lets[0].name, "gpu:*");
        cr_assert_eq(sl_gpu_lets_parse(half, 1, lets, &error), 0, "%s", error.text);
        cr_expect_str_eq(lets[0].name, "gpu:*/50%");
        cr_expect_eq(lets[0].percent, 50);
        cr_expect_str_eq(sl_gpu_let_of(3, 50).name, "gpu:3/50%");
}

static void expect_none(char *const *texts, uint32_t n, const char *words)
{
        struct sl_gpu_let lets[SL_GPUS_MAX];
        struct sl_error error = {""};

        cr_assert_eq(sl_gpu_lets_parse(texts, n, lets, &error), -EINVAL);
        cr_assert_not_null(strstr(error.text, words), "%s", error.text);
}

Test(gpu_let, that_is_not_among_several_is_told_why)
{
        char *many[SL_GPUS_MAX + 1];

        for (uint32_t i = 0; i <= SL_GPUS_MAX; i++)
                many[i] = "gpu:0";
        expect_none(many, 0, "0 GPUs, a model has 1 to 16");
        expect_none(many, SL_GPUS_MAX + 1, "17 GPUs, a model has 1 to 16");
        expect_none((char *[]){"gpu:1", "gpu:1/50%"}, 2, "gpu:1 is listed twice, as \"gpu:1\" and \"gpu:1/50%\"");
        expect_none((char *[]){"gpu:1", "gpu:*"}, 2, "\"gpu:*\" is all GPUs, and stands by itself");
        expect_none((char *[]){"gpu:one"}, 1, "its number \"one\"");
        expect_none((char *[]){"gpu"}, 1, "not gpu:NUMBER or gpu:NUMBER/PERCENT%, or gpu:* for all");
}

Test(gpu_let, that_is_none_is_told_why)
{
        static const struct {
                const char *text, *words;
        } rows[] = {{"gpu", "not gpu:NUMBER or gpu:NUMBER/PERCENT%"}, {"cpu:0", "not gpu:NUMBER"}, {"gpu:", "its number \"\""},
                {"gpu:16", "not a number from 0 to 15"}, {"gpu:0/", "as gpu:0/50%"}, {"gpu:0/50", "as gpu:0/50%"},
                {"gpu:0/0%", "\"0\" is not a number from 1 to 100"}, {"gpu:0/101%", "not a number from 1 to 100"},
                {"gpu:0/66sm", "as gpu:0/50%"}, {"gpu:-1", "not a number"}, {"gpu:*", "its number \"*\""},
                {"gpu:0000000000000000000000000000000000000000", "not gpu:NUMBER"}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_error error = {""};
                struct sl_gpu_let let;

                cr_assert_eq(sl_gpu_let_parse(rows[i].text, &let, &error), -EINVAL, "%s", rows[i].text);
                cr_assert_not_null(strstr(error.text, rows[i].words), "%s: %s", rows[i].text, error.text);
                cr_assert_null(strchr(error.text, '\n'));
        }
        cr_assert(sl_gpu_let_is_meant("gpu:0/50%"));
        cr_assert_not(sl_gpu_let_is_meant("cpu:0"));
        cr_assert_not(sl_gpu_let_is_meant("gpus"));
}
