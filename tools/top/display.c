/* SPDX-License-Identifier: Apache-2.0 */
#include "display.h"

#include "quantity.h"

#include <stdio.h>

#define HEAD_ROWS           5 /* the runtime, its requests, its dispatcher, views, an empty one; the table is below */
#define FOOT_ROWS           2
#define COUNTER(slot, name) sl_counter_read(&(slot)->name)

static const char *const help[] = {
        "Views      m models  w workers  u queues  l lets  c clients  y memory   (or 1 to 6, Tab)",
        "Rows       Up, Down, Page Up, Page Down, Home, End: choose one; below it is said more about it",
        "Columns    Left, Right: the others, where the terminal is narrow",
        "Order      < and > choose the column, r turns it round",
        "Filter     / then a part of a name, Enter; Esc shows all again",
        "Time       + and - change the interval, p or Space holds the screen",
        "End        q",
        "",
        "req/s, smp/s     requests and samples accepted in a second of the interval",
        "fail/s           failed, expired or cancelled; refd/s: refused",
        "batch            samples of a batch, on average in the interval",
        "wait, infl       requests and segments that wait, and requests in flight, now",
        "p50, p99, p99.9  from a request's arrival to its completion, of the interval",
        "busy             workers that computed, on average; of a worker or a let its share of the time",
};

/* ---- above ---- */

static void draw_runtime(const struct display *display, struct canvas *canvas)
{
        const struct snapshot *now = display->interval ? display->interval->now : NULL;
        int at = canvas_print(canvas, 0, 0, STYLE_BOLD, "starling top  %s", display->name);
        char text[3][QUANTITY_BYTES];
        uint64_t max;

        if (!now) {
                canvas_put(canvas, 0, at + 2, STYLE_BAD, "no runtime");
                canvas_put(canvas, 1, 0, STYLE_PLAIN, display->cause);
                canvas_put(canvas, 2, 0, STYLE_DIM, "waiting for it");
                return;
        }
        if (display->state != FOLLOW_LIVES)
                at = canvas_print(canvas, 0, at + 2, STYLE_BAD, "GONE (%s), waiting for another one", snapshot_state(now));
        else
                at = canvas_print(canvas, 0, at + 2, STYLE_GOOD, "%s  up %s", snapshot_state(now),
                        quantity_age(now->taken_ns - now->header.started_ns, text[0]));
        max = COUNTER(&now->header, memory_max);
        at = canvas_print(canvas, 0, at + 2, STYLE_PLAIN, "pid %u  starling %s  %s  memory %s", now->header.pid,
                now->header.release, now->header.wait_name, quantity_bytes(COUNTER(&now->header, memory_bytes), text[1]));
        if (max != UINT64_MAX)
                canvas_print(canvas, 0, at, STYLE_PLAIN, " of %s", quantity_bytes(max, text[2]));
}

static void draw_requests(const struct interval *interval, struct canvas *canvas)
{
        const struct model_interval *all = &interval->all;
        const struct stage_times *total = &all->stages[SL_STAGE_TOTAL];
        double failures = all->per_second.failed + all->per_second.expired + all->per_second.cancelled;
        char text[8][QUANTITY_BYTES];
        int at = canvas_print(canvas, 1, 0, STYLE_PLAIN, "requests/s %s  samples/s %s  p50 %s  p99 %s  p99.9 %s  ",
                quantity_count(all->per_second.requests, text[0]), quantity_count(all->per_second.samples, text[1]),
                quantity_time(total->p50_ns, text[2]), quantity_time(total->p99_ns, text[3]),
                quantity_time(total->p999_ns, text[4]));

        at = canvas_print(
                canvas, 1, at, failures > 0 ? STYLE_BAD : STYLE_PLAIN, "failed/s %s  ", quantity_count(failures, text[5]));
        at = canvas_print(canvas, 1, at, all->per_second.refused > 0 ? STYLE_WARNING : STYLE_PLAIN, "refused/s %s  ",
                quantity_count(all->per_second.refused, text[6]));
        canvas_print(canvas, 1, at, STYLE_PLAIN, "batch %s", quantity_count(all->batch_samples, text[7]));
}

static void draw_dispatcher(const struct interval *interval, struct canvas *canvas)
{
        const struct model_interval *all = &interval->all;
        char text[7][QUANTITY_BYTES];
        int at = canvas_print(canvas, 2, 0, STYLE_PLAIN, "clients %u  in flight %s  waiting %s  oldest %s  busy %s  ",
                interval->now->n_clients, quantity_count((double)all->in_flight, text[0]),
                quantity_count((double)(all->waiting.requests + all->waiting.segments), text[1]),
                quantity_time(all->waiting.oldest_age_ns, text[2]), quantity_count(all->busy, text[3]));

        for (uint32_t i = 0; i < interval->now->n_dispatchers; i++) {
                const struct dispatcher_interval *dispatcher = &interval->dispatchers[i];
                const struct sl_dispatcher_stats *slot = &dispatcher->now->slot;

                at = canvas_print(canvas, 2, at, STYLE_PLAIN, "dispatcher: core %d  sleeps/s %s  wakes/s %s  late %s", slot->core,
                        quantity_count(dispatcher->per_second.sleeps, text[4]),
                        quantity_count(dispatcher->per_second.wakes, text[5]), quantity_time(COUNTER(slot, late_ns), text[6]));
                at = canvas_put(canvas, 2, at, STYLE_WARNING, COUNTER(slot, crowded) ? "  crowded" : "");
                at = canvas_put(canvas, 2, at, STYLE_WARNING, COUNTER(slot, saturated) ? "  saturated" : "") + 2;
        }
}

static void draw_views(const struct browse *browse, struct canvas *canvas)
{
        char seconds[QUANTITY_BYTES];
        int at = 0;

        for (int view = 0; view < VIEWS; view++)
                at = canvas_put(
                             canvas, 3, at, (int)browse->view == view ? STYLE_REVERSE : STYLE_PLAIN, view_name((enum view)view)) +
                     2;
        at = canvas_print(canvas, 3, at, STYLE_DIM, "every %ss  ", quantity_count(browse->seconds, seconds));
        at = canvas_put(canvas, 3, at, STYLE_WARNING, browse->paused ? "held  " : "");
        if (browse->filter[0] || browse->mode == BROWSE_FILTER)
                canvas_print(
                        canvas, 3, at, STYLE_WARNING, "filter: %s%s", browse->filter, browse->mode == BROWSE_FILTER ? "_" : "");
}

/* ---- below ---- */

static void draw_foot(const struct browse *browse, const struct table *table, struct canvas *canvas)
{
        uint32_t chosen = browse->places[browse->view].chosen;

        if (chosen < table->n_rows)
                canvas_put(canvas, canvas->rows - 2, 0, STYLE_PLAIN, table->rows[chosen].detail);
        canvas_put(canvas, canvas->rows - 1, 0, STYLE_DIM,
                browse->mode == BROWSE_FILTER ? "Enter keeps the filter, Esc drops it"
                                              : "q quit  h help  / filter  < > r order  Tab view  p hold  + - interval");
}

static void draw_help(struct canvas *canvas)
{
        for (size_t i = 0; i < sizeof(help) / sizeof(help[0]); i++)
                canvas_put(canvas, (int)i + 1, 2, STYLE_PLAIN, help[i]);
        canvas_put(canvas, 0, 0, STYLE_BOLD, "starling top: any key goes back");
}

/* ---- the table ---- */

/* The chosen row stays the one that it was, wherever it stands now, and is seen. */
static void follow_chosen(struct browse *browse, const struct table *table, uint32_t rows)
{
        struct browse_place *place = browse_place_of(browse);

        place->chosen = place->sticks ? table_find(table, place->chosen_id, place->chosen) : 0;
        place->chosen_id = place->chosen < table->n_rows ? table->rows[place->chosen].id : UINT64_MAX;
        if (place->chosen < place->first_row)
                place->first_row = place->chosen;
        if (rows && place->chosen >= place->first_row + rows)
                place->first_row = place->chosen - rows + 1;
        if (place->first_row + rows > table->n_rows)
                place->first_row = table->n_rows > rows ? table->n_rows - rows : 0;
}

static int draw_table(const struct display *display, struct browse *browse, struct canvas *canvas)
{
        struct browse_place *place = browse_place_of(browse);
        int rows = canvas->rows - HEAD_ROWS - FOOT_ROWS;
        struct table table;
        int r = view_fill(browse->view, display->interval, &table);

        if (r == 0) {
                table_filter(&table, browse->filter);
                table_sort(&table, place->sort_column, place->reverse);
                browse->n_rows = table.n_rows;
                browse->n_columns = table.n_columns;
                browse->page_rows = rows > 1 ? (uint32_t)rows - 1 : 0;
                follow_chosen(browse, &table, browse->page_rows);
                table_draw(&table, canvas,
                        &(struct table_place){.row = HEAD_ROWS,
                                .rows = rows,
                                .first_row = place->first_row,
                                .first_column = place->first_column,
                                .sort_column = place->sort_column,
                                .reverse = place->reverse,
                                .chosen = place->chosen});
                draw_foot(browse, &table, canvas);
        }
        table_deinit(&table);
        return r;
}

int display_draw(const struct display *display, struct browse *browse, struct canvas *canvas)
{
        if (browse->mode == BROWSE_HELP) {
                draw_help(canvas);
                return 0;
        }
        draw_runtime(display, canvas);
        if (!display->interval)
                return 0;
        draw_requests(display->interval, canvas);
        draw_dispatcher(display->interval, canvas);
        draw_views(browse, canvas);
        return draw_table(display, browse, canvas);
}
