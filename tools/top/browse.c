/* SPDX-License-Identifier: Apache-2.0 */
#include "browse.h"

#include <string.h>

void browse_init(struct browse *browse, double seconds)
{
        *browse = (struct browse){.seconds = seconds};
        for (int view = 0; view < VIEWS; view++)
                browse->places[view].sort_column = view_sort_column((enum view)view);
}

/* ---- filter ---- */

static void edit_filter(struct browse *browse, int key)
{
        size_t bytes = strlen(browse->filter);

        if (key == KEY_IS_ENTER) {
                browse->mode = BROWSE_TABLE;
        } else if (key == KEY_IS_ESCAPE) {
                browse->mode = BROWSE_TABLE;
                browse->filter[0] = 0;
        } else if (key == KEY_IS_BACKSPACE && bytes) {
                browse->filter[bytes - 1] = 0;
        } else if (key >= ' ' && key <= '~' && bytes + 1 < sizeof(browse->filter)) {
                browse->filter[bytes] = (char)key;
                browse->filter[bytes + 1] = 0;
        }
}

/* ---- table ---- */

static void choose_view(struct browse *browse, int step)
{
        browse->view = (enum view)(((int)browse->view + step + VIEWS) % VIEWS);
}

static void move(struct browse *browse, int64_t rows)
{
        struct browse_place *place = browse_place_of(browse);
        int64_t to = (int64_t)place->chosen + rows, last = browse->n_rows ? (int64_t)browse->n_rows - 1 : 0;

        place->chosen = (uint32_t)(to < 0 ? 0 : to > last ? last : to);
        place->chosen_id = UINT64_MAX;
        place->sticks = true;
}

static void sort_by(struct browse *browse, int step)
{
        struct browse_place *place = browse_place_of(browse);
        int64_t column = (int64_t)place->sort_column + step;

        if (column >= 0 && column < (int64_t)browse->n_columns)
                place->sort_column = (uint32_t)column;
}

static void scroll_columns(struct browse *browse, int step)
{
        struct browse_place *place = browse_place_of(browse);
        int64_t column = (int64_t)place->first_column + step;

        if (column >= 0 && column + 1 < (int64_t)browse->n_columns)
                place->first_column = (uint32_t)column;
}

static void change_seconds(struct browse *browse, double factor)
{
        double seconds = browse->seconds * factor;

        browse->seconds = seconds < SECONDS_MIN ? SECONDS_MIN : seconds > SECONDS_MAX ? SECONDS_MAX : seconds;
}

static bool press_view_key(struct browse *browse, int key)
{
        for (int view = 0; view < VIEWS; view++)
                if (key == view_key((enum view)view) || key == '1' + view) {
                        browse->view = (enum view)view;
                        return true;
                }
        return false;
}

static void press_move_key(struct browse *browse, int key)
{
        int64_t page = browse->page_rows > 1 ? (int64_t)browse->page_rows - 1 : 1;

        switch (key) {
        case KEY_IS_UP:
                move(browse, -1);
                break;
        case KEY_IS_DOWN:
                move(browse, 1);
                break;
        case KEY_IS_PAGE_UP:
                move(browse, -page);
                break;
        case KEY_IS_PAGE_DOWN:
                move(browse, page);
                break;
        case KEY_IS_HOME:
                move(browse, INT32_MIN);
                browse_place_of(browse)->sticks = false;
                break;
        case KEY_IS_END:
                move(browse, INT32_MAX);
                break;
        case KEY_IS_LEFT:
                scroll_columns(browse, -1);
                break;
        case KEY_IS_RIGHT:
                scroll_columns(browse, 1);
                break;
        default:
                break;
        }
}

static void press_table_key(struct browse *browse, int key)
{
        switch (key) {
        case 'q':
                browse->quits = true;
                break;
        case 'h':
        case '?':
                browse->mode = BROWSE_HELP;
                break;
        case '/':
                browse->mode = BROWSE_FILTER;
                break;
        case KEY_IS_ESCAPE:
                browse->filter[0] = 0;
                break;
        case '\t':
                choose_view(browse, 1);
                break;
        case KEY_IS_TAB_BACK:
                choose_view(browse, -1);
                break;
        case '<':
                sort_by(browse, -1);
                break;
        case '>':
                sort_by(browse, 1);
                break;
        case 'r':
                browse_place_of(browse)->reverse = !browse_place_of(browse)->reverse;
                break;
        case 'p':
        case ' ':
                browse->paused = !browse->paused;
                break;
        case '+':
                change_seconds(browse, 2);
                break;
        case '-':
                change_seconds(browse, 0.5);
                break;
        default:
                if (!press_view_key(browse, key))
                        press_move_key(browse, key);
        }
}

void browse_press(struct browse *browse, int key)
{
        if (key == KEY_NONE || key == KEY_IS_RESIZE)
                return;
        switch (browse->mode) {
        case BROWSE_FILTER:
                edit_filter(browse, key);
                break;
        case BROWSE_HELP:
                browse->mode = BROWSE_TABLE;
                browse->quits = key == 'q';
                break;
        case BROWSE_TABLE:
                press_table_key(browse, key);
                break;
        }
}
