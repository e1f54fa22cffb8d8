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

Test(gpu_let, that_is_none_is_told_why)
{
        static const struct {
                const char *text, *words;
        } rows[] = {{"gpu", "not gpu:NUMBER or gpu:NUMBER/PERCENT%"}, {"cpu:0", "not gpu:NUMBER"}, {"gpu:", "its number \"\""},
                {"gpu:16", "not a number from 0 to 15"}, {"gpu:0/", "as gpu:0/50%"}, {"gpu:0/50", "as gpu:0/50%"},
                {"gpu:0/0%", "\"0\" is not a number from 1 to 100"}, {"gpu:0/101%", "not a number from 1 to 100"},
                {"gpu:0/66sm", "as gpu:0/50%"}, {"gpu:-1", "not a number"},
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
