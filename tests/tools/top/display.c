/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen, drawn into memory: what stands where, in what order, and on terminals of any size.
 */
#include "display.h"
#include "made.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
        struct sl_stats *stats;
        struct sl_model_counting models[3];
        struct snapshot *before, *now;
        struct interval interval;
        struct browse browse;
        struct canvas canvas;
        char text[32768]; /* the canvas, a line for each row */
};

static struct scene s;

/* Three models with 10, 30 and 20 requests in the second; the last one is degraded. */
static void set_up(void)
{
        static const char *const names[] = {"alpha", "beta", "gamma"};

        made_init();
        memset(&s, 0, sizeof(s));
        s.stats = made_stats();
        for (int i = 0; i < 3; i++) {
                sl_stats_model_add(s.stats, names[i], &s.models[i], NULL);
                sl_stats_model_show(&s.models[i], &(struct sl_model_stats){.state = SL_STATS_MODEL_READY});
        }
        sl_stats_model_show(&s.models[2], &(struct sl_model_stats){.state = SL_STATS_MODEL_DEGRADED,
                                                  .why = "1 of 2 workers serve\x1b[2J",
                                                  .workers_wanted = 2,
                                                  .workers_serving = 1});
        s.before = made_snapshot();
        sl_model_count(&s.models[0], requests, 10);
        sl_model_count(&s.models[1], requests, 30);
        sl_model_count(&s.models[2], requests, 20);
        sl_model_record(&s.models[1], SL_STAGE_TOTAL, 1500000);
        s.now = made_snapshot();
        s.now->taken_ns = s.before->taken_ns + 1000000000;
        cr_assert_eq(interval_init(&s.interval, s.before, s.now), 0);
        browse_init(&s.browse, 1);
}

static void tear_down(void)
{
        interval_deinit(&s.interval);
        snapshot_free(s.before);
        snapshot_free(s.now);
        canvas_deinit(&s.canvas);
        sl_stats_free(s.stats);
        made_deinit();
}

TestSuite(display, .init = set_up, .fini = tear_down);

static const char *draw_as(int rows, int columns, enum follow_state state, const struct interval *interval)
{
        const struct display display = {.name = "made", .state = state, .cause = "no such page", .interval = interval};
        char *to = s.text;

        canvas_deinit(&s.canvas);
        cr_assert_eq(canvas_init(&s.canvas, rows, columns), 0);
        cr_assert_eq(display_draw(&display, &s.browse, &s.canvas), 0);
        for (int row = 0; row < s.canvas.rows && to + s.canvas.columns + 2 < s.text + sizeof(s.text); row++) {
                memcpy(to, s.canvas.text + (size_t)row * (size_t)s.canvas.columns, (size_t)s.canvas.columns);
                to += s.canvas.columns;
                *to++ = '\n';
        }
        *to = 0;
        return s.text;
}

static const char *draw(int rows, int columns)
{
        return draw_as(rows, columns, FOLLOW_LIVES, &s.interval);
}

static void press(const char *keys)
{
        for (; *keys; keys++)
                browse_press(&s.browse, *keys);
}

/* Row of the canvas that begins with @word; -1: none. */
static int row_of(const char *text, const char *word)
{
        int row = 0;

        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL, row++)
                if (strncmp(line, word, strlen(word)) == 0)
                        return row;
        return -1;
}

Test(display, models_stand_by_their_requests_with_the_percentiles_of_the_interval)
{
        const char *text = draw(24, 120);
        int beta = row_of(text, "beta");

        cr_expect(beta > 0 && row_of(text, "gamma") == beta + 1 && row_of(text, "alpha") == beta + 2, "%s", text);
        cr_expect_not_null(strstr(text, "1.49ms"), "%s", text);
        cr_expect_not_null(strstr(text, "requests/s 60 "), "%s", text);
        cr_expect_not_null(strstr(text, "degraded"));
        cr_expect_eq(row_of(text, "(others)"), -1, "nobody counts there");
}

Test(display, another_order_is_that_of_the_column_and_turned_round)
{
        const char *text;

        draw(24, 120);
        press("<<"); /* by name */
        text = draw(24, 120);
        cr_expect(row_of(text, "alpha") < row_of(text, "beta") && row_of(text, "beta") < row_of(text, "gamma"), "%s", text);
        press("r");
        text = draw(24, 120);
        cr_expect(row_of(text, "alpha") > row_of(text, "beta") && row_of(text, "beta") > row_of(text, "gamma"), "%s", text);
}

Test(display, a_filter_leaves_only_rows_that_have_it_whatever_the_case)
{
        press("/ALP");
        const char *text = draw(24, 120);
        cr_expect(row_of(text, "alpha") > 0 && row_of(text, "beta") == -1, "%s", text);
        cr_expect_not_null(strstr(text, "filter: ALP_"));
}

Test(display, the_chosen_row_is_explained_and_stays_chosen_where_it_moves)
{
        draw(24, 120);
        browse_press(&s.browse, KEY_IS_DOWN); /* gamma */
        cr_expect_not_null(strstr(draw(24, 120), "1 of 2 workers serve?[2J"), "what a terminal acts on is not shown");
        press("<<"); /* it is the last one now */
        cr_expect_not_null(strstr(draw(24, 120), "1 of 2 workers serve"));
        cr_expect_eq(browse_place_of(&s.browse)->chosen, 2);
}

Test(display, columns_that_do_not_fit_are_reached_by_scrolling)
{
        const char *text = draw(24, 40);

        cr_expect_null(strstr(text, "p99.9  busy"), "%s", text);
        for (int i = 0; i < 9; i++)
                browse_press(&s.browse, KEY_IS_RIGHT);
        text = draw(24, 40);
        cr_expect(strstr(text, "p99.9") && row_of(text, "beta") > 0, "%s", text);
}

Test(display, a_runtime_that_is_gone_is_said_to_be_and_its_last_figures_stay)
{
        const char *text = draw_as(24, 120, FOLLOW_GONE, &s.interval);

        cr_expect_not_null(strstr(text, "GONE"), "%s", text);
        cr_expect_gt(row_of(text, "beta"), 0);
        text = draw_as(24, 120, FOLLOW_NOBODY, NULL);
        cr_expect(strstr(text, "no runtime") && strstr(text, "no such page"), "%s", text);
}

Test(display, every_view_and_the_help_fit_any_size)
{
        static const int sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 24, 80, 200};
        const size_t n = sizeof(sizes) / sizeof(sizes[0]);

        for (int view = 0; view <= VIEWS; view++) {
                browse_press(&s.browse, view < VIEWS ? '1' + view : 'h');
                for (size_t i = 0; i < n; i++)
                        for (size_t k = 0; k < n; k++) {
                                draw(sizes[i], sizes[k]);
                                draw_as(sizes[i], sizes[k], FOLLOW_NOBODY, NULL);
                        }
        }
}

Test(display, keys_between_drawings_of_any_size_leave_a_row_chosen_that_is_there)
{
        unsigned seed = 7;

        for (int i = 0; i < 5000; i++) {
                browse_press(&s.browse, rand_r(&seed) % (KEY_IS_RESIZE + 1));
                s.browse.quits = false;
                draw(rand_r(&seed) % 40, rand_r(&seed) % 100);
                if (s.browse.mode != BROWSE_HELP && s.browse.n_rows)
                        cr_assert_lt(browse_place_of(&s.browse)->chosen, s.browse.n_rows);
        }
}

/* Two names that begin alike stay two. */
Test(display, what_has_no_room_shows_its_beginning_and_its_end)
{
        struct canvas canvas;

        cr_assert_eq(canvas_init(&canvas, 3, 12), 0);
        canvas_field(&canvas, 0, 0, 12, 0, STYLE_PLAIN, "eeeeeeeeeeeeeeeeeeeeeeee1");
        canvas_field(&canvas, 1, 0, 12, 1, STYLE_PLAIN, "\xe5\x90\x8d\xe5\x90\x8dz\xff");
        canvas_put(&canvas, 2, 0, STYLE_PLAIN, "\xe5\x90\x8d|");
        cr_expect_eq(strncmp(canvas.text, "eeeeee...ee1", 12), 0, "%.12s", canvas.text);
        cr_expect_eq(strncmp(canvas.text + 12, "        ??z?", 12), 0, "%.12s", canvas.text + 12);
        cr_expect_eq(strncmp(canvas.text + 24, "?|          ", 12), 0, "%.12s", canvas.text + 24);
        cr_expect_eq(canvas_columns("\xe5\x90\x8dz"), 2);
        canvas_deinit(&canvas);
}

/* U+00E4 takes one column, U+540D two. */
Test(display, characters_beyond_ascii_are_drawn_where_the_locale_has_them)
{
        const uint32_t narrow = 0xe4, wide = 0x540d;
        struct canvas canvas;

        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                return;
        cr_assert_eq(canvas_init(&canvas, 4, 12), 0);
        cr_expect_eq(canvas_columns("\xc3\xa4\xe5\x90\x8dz"), 4);
        cr_expect_eq(canvas_put(&canvas, 0, 0, STYLE_PLAIN, "\xc3\xa4\xe5\x90\x8dz\xff"), 5);
        cr_expect_eq(strncmp(canvas.text, "?? z?", 5), 0, "%.12s", canvas.text);
        cr_expect_arr_eq(canvas.characters, ((uint32_t[]){narrow, wide, CANVAS_BEHIND, 0, 0}), 5 * sizeof(uint32_t));
        /* One that the edge, or the cut, divides is none. */
        canvas_put(&canvas, 1, 11, STYLE_PLAIN, "\xe5\x90\x8d");
        cr_expect_eq(canvas.characters[12 + 11], 0);
        canvas_field(&canvas, 2, 0, 12, 0, STYLE_PLAIN,
                "12345\xe5\x90\x8d"
                "89abcd\xe5\x90\x8d"
                "ef");
        cr_expect_eq(strncmp(canvas.text + 24, "12345?... ef", 12), 0, "%.12s", canvas.text + 24);
        for (int i = 0; i < 12; i++)
                cr_expect_eq(canvas.characters[24 + i], 0, "column %d", i);
        canvas_field(&canvas, 3, 0, 12, 1, STYLE_PLAIN, "\xc3\xa4\xc3\xb6");
        cr_expect_eq(canvas.characters[36 + 10], narrow);
        canvas_deinit(&canvas);
}
