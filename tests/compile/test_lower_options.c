/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the compiler's options: one table, whose rows survive every way in which they travel.
 */
#include "base/error.h"
#include "base/value.h"
#include "lower_options.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct sl_lower_options options;

static void setup(void)
{
        sl_lower_options_init(&options);
}

TestSuite(lower_options, .init = setup);

Test(lower_options, the_default_of_every_row_is_a_value_of_it)
{
        struct sl_lower_options again;

        memset(&again, 0, sizeof(again));
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                char text[SL_LOWER_OPTION_TEXT_BYTES], wish[SL_WISH_BYTES];

                sl_lower_options_text(&options, (enum sl_lower_option)i, text);
                cr_expect_eq(sl_lower_options_set(&again, (enum sl_lower_option)i, text, wish), 0, "%s=%s: %s",
                        sl_lower_option_name((enum sl_lower_option)i), text, wish);
                cr_expect_eq(sl_lower_option_find(sl_lower_option_name((enum sl_lower_option)i)), i);
        }
        cr_assert_eq(memcmp(&options, &again, sizeof(options)), 0);
}

Test(lower_options, a_value_travels_as_text_unchanged)
{
        static const char *const assignments[] = {"tune=full", "winograd=false", "max_relative_error=0.001", "precision=bf16",
                "backend=ref", "batch_max=7", "without_passes=fuse-bias,fold-constants", "model_bytes_max=64 MiB"};
        struct sl_lower_options copy;

        for (size_t i = 0; i < sizeof(assignments) / sizeof(*assignments); i++)
                cr_assert_eq(sl_lower_options_parse(&options, assignments[i], NULL), 0, "%s", assignments[i]);
        cr_assert_eq(options.tune, SL_TUNE_FULL);
        cr_assert_not(options.winograd);
        cr_assert_eq(options.model_bytes_max, 64u << 20);
        cr_assert_eq(__builtin_popcount(options.without_passes), 2);
        sl_lower_options_init(&copy);
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                char text[SL_LOWER_OPTION_TEXT_BYTES], wish[SL_WISH_BYTES];

                sl_lower_options_text(&options, (enum sl_lower_option)i, text);
                cr_assert_eq(sl_lower_options_set(&copy, (enum sl_lower_option)i, text, wish), 0);
        }
        cr_assert_eq(memcmp(&options, &copy, sizeof(options)), 0);
}

Test(lower_options, what_is_no_value_is_refused_with_key_and_value)
{
        static const char *const wrong[] = {"tune=fast", "winograd=1", "max_relative_error=2", "batch_max=0", "batch_max=1025",
                "without_passes=fuse-bias,magic", "model_bytes_max=many", "backend=", "core=flops=0", "core=speed=1"};
        struct sl_lower_options before = options;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                struct sl_error error = {""};
                char key[64] = "";

                memcpy(key, wrong[i], strcspn(wrong[i], "="));
                cr_expect_eq(sl_lower_options_parse(&options, wrong[i], &error), -EINVAL, "%s", wrong[i]);
                cr_expect_not_null(strstr(error.text, key), "%s", error.text);
                cr_expect_not_null(strstr(error.text, strchr(wrong[i], '=') + 1), "%s", error.text);
        }
        cr_assert_eq(sl_lower_options_parse(&options, "speed=high", NULL), -EINVAL);
        cr_assert_eq(sl_lower_options_parse(&options, "tune", NULL), -EINVAL);
        cr_assert_eq(memcmp(&options, &before, sizeof(options)), 0);
}

Test(lower_options, threads_say_whether_nodes_are_cut_and_for_how_many)
{
        struct sl_lower_options one, two, own;

        sl_lower_options_init(&one);
        two = own = one;
        own.teams = false;
        own.team_size = 3;
        sl_lower_options_use_threads(&one, 1);
        sl_lower_options_use_threads(&two, 2);
        sl_lower_options_use_threads(&own, 2);
        cr_expect_not(one.teams);
        cr_expect(two.teams);
        cr_expect_eq(two.team_size, 2);
        cr_expect_not(own.teams, "what was set stays");
        cr_expect_eq(own.team_size, 3);
}
