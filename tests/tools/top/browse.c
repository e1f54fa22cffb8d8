/* SPDX-License-Identifier: Apache-2.0 */
#include "browse.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct browse begin(void)
{
        struct browse browse;

        browse_init(&browse, 1);
        browse.n_rows = 10;
        browse.page_rows = 4;
        browse.n_columns = 5;
        return browse;
}

static void press(struct browse *browse, const char *keys)
{
        for (; *keys; keys++)
                browse_press(browse, *keys);
}

Test(browse, each_view_has_a_letter_a_digit_and_its_turn)
{
        struct browse browse = begin();

        for (int view = 0; view < VIEWS; view++) {
                browse_press(&browse, view_key((enum view)view));
                cr_expect_eq((int)browse.view, view);
                browse_press(&browse, '1' + (view + 1) % VIEWS);
                cr_expect_eq((int)browse.view, (view + 1) % VIEWS);
        }
        browse_press(&browse, '1');
        browse_press(&browse, KEY_IS_TAB_BACK);
        cr_expect_eq((int)browse.view, VIEWS - 1);
        browse_press(&browse, '\t');
        cr_expect_eq((int)browse.view, 0);
}

Test(browse, a_filter_takes_letters_that_are_keys_elsewhere)
{
        struct browse browse = begin();

        press(&browse, "/quh");
        cr_expect(browse.mode == BROWSE_FILTER && !browse.quits);
        browse_press(&browse, KEY_IS_BACKSPACE);
        browse_press(&browse, KEY_IS_ENTER);
        cr_expect_str_eq(browse.filter, "qu");
        cr_expect_eq(browse.mode, BROWSE_TABLE);
        press(&browse, "/x");
        browse_press(&browse, KEY_IS_ESCAPE);
        cr_expect_str_eq(browse.filter, "");
        press(&browse, "/");
        for (int i = 0; i < 200; i++)
                browse_press(&browse, 'a');
        cr_expect_eq(strlen(browse.filter), FILTER_BYTES - 1);
}

Test(browse, a_choice_stays_within_the_rows)
{
        struct browse browse = begin();
        const struct browse_place *place = browse_place_of(&browse);

        browse_press(&browse, KEY_IS_UP);
        cr_expect_eq(place->chosen, 0);
        browse_press(&browse, KEY_IS_PAGE_DOWN);
        cr_expect_eq(place->chosen, 3);
        browse_press(&browse, KEY_IS_END);
        cr_expect_eq(place->chosen, 9);
        browse_press(&browse, KEY_IS_DOWN);
        cr_expect_eq(place->chosen, 9);
        browse_press(&browse, KEY_IS_HOME);
        cr_expect_eq(place->chosen, 0);
        browse.n_rows = 0;
        browse_press(&browse, KEY_IS_DOWN);
        cr_expect_eq(place->chosen, 0);
}

Test(browse, order_and_columns_stay_within_the_table)
{
        struct browse browse = begin();
        const struct browse_place *place = browse_place_of(&browse);

        press(&browse, ">>>>>>>>>>");
        cr_expect_eq(place->sort_column, 4);
        press(&browse, "<<<<<<<<<<r");
        cr_expect(place->sort_column == 0 && place->reverse);
        for (int i = 0; i < 10; i++)
                browse_press(&browse, KEY_IS_RIGHT);
        cr_expect_eq(place->first_column, 3);
        for (int i = 0; i < 10; i++)
                browse_press(&browse, KEY_IS_LEFT);
        cr_expect_eq(place->first_column, 0);
}

Test(browse, the_interval_has_bounds)
{
        struct browse browse = begin();

        press(&browse, "++++++++++++++++++");
        cr_expect_float_eq(browse.seconds, SECONDS_MAX, 1e-9);
        press(&browse, "------------------");
        cr_expect_float_eq(browse.seconds, SECONDS_MIN, 1e-9);
}

Test(browse, any_key_at_any_time_leaves_it_in_order)
{
        struct browse browse = begin();
        unsigned seed = 3;

        for (int i = 0; i < 200000; i++) {
                browse.n_rows = (unsigned)rand_r(&seed) % 12;
                browse_press(&browse, rand_r(&seed) % (KEY_IS_RESIZE + 2));
                browse.quits = false;
                cr_assert_lt((int)browse.view, VIEWS);
                cr_assert_lt(browse_place_of(&browse)->sort_column, TABLE_COLUMNS_MAX);
                cr_assert_lt(strlen(browse.filter), FILTER_BYTES);
        }
}

Test(browse, q_ends_it_also_from_the_help)
{
        struct browse browse = begin();

        press(&browse, "hx");
        cr_expect(browse.mode == BROWSE_TABLE && !browse.quits);
        press(&browse, "hq");
        cr_expect(browse.quits);
}
