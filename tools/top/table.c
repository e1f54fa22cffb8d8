/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_MAX 32 /* of a column */
#define GAP       2

void table_init(struct table *table, const struct table_column *columns, uint32_t n_columns)
{
        *table = (struct table){.columns = columns, .n_columns = n_columns};
}

void table_deinit(struct table *table)
{
        free(table->rows);
        *table = (struct table){0};
}

struct table_row *table_add(struct table *table, uint64_t id)
{
        struct table_row *row;

        if (table->n_rows == table->room) {
                uint32_t room = table->room ? 2 * table->room : 32;
                struct table_row *rows = realloc(table->rows, room * sizeof(*rows));

                if (!rows)
                        return NULL;
                table->rows = rows;
                table->room = room;
        }
        row = &table->rows[table->n_rows++];
        memset(row, 0, sizeof(*row));
        row->id = id;
        return row;
}

void table_text(struct table_row *row, uint32_t *at, enum canvas_style style, const char *text)
{
        struct table_cell *cell = &row->cells[(*at)++];

        sl_utf8_fit(text, cell->text, sizeof(cell->text));
        cell->style = style;
}

void table_number(struct table_row *row, uint32_t *at, double number, const char *text)
{
        table_text(row, at, number > 0 ? STYLE_PLAIN : STYLE_DIM, text);
        row->cells[*at - 1].number = number;
}

/* ---- filter and order ------------------------------------------------------------------------------------------------ */

static bool row_has(const struct table *table, const struct table_row *row, const char *words)
{
        for (uint32_t i = 0; i < table->n_columns; i++)
                if (table->columns[i].is_text && strcasestr(row->cells[i].text, words))
                        return true;
        return false;
}

void table_filter(struct table *table, const char *words)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < table->n_rows; i++)
                if (row_has(table, &table->rows[i], words))
                        memmove(&table->rows[n++], &table->rows[i], sizeof(table->rows[i]));
        table->n_rows = n;
}

struct order {
        const struct table *table;
        uint32_t column;
        bool reverse;
};

static int compare_cells(const struct table_column *column, const struct table_cell *a, const struct table_cell *b)
{
        if (column->is_text)
                return strcasecmp(a->text, b->text);
        return (a->number < b->number) - (a->number > b->number);
}

static int compare_rows(const void *first, const void *second, void *context)
{
        const struct table_row *a = first, *b = second;
        const struct order *order = context;
        const struct table *table = order->table;
        int r = compare_cells(&table->columns[order->column], &a->cells[order->column], &b->cells[order->column]);

        if (r)
                return order->reverse ? -r : r;
        for (uint32_t i = 0; i < table->n_columns && r == 0; i++)
                if (table->columns[i].is_text)
                        r = compare_cells(&table->columns[i], &a->cells[i], &b->cells[i]);
        return r ? r : (a->id > b->id) - (a->id < b->id);
}

void table_sort(struct table *table, uint32_t column, bool reverse)
{
        struct order order = {.table = table, .column = column < table->n_columns ? column : 0, .reverse = reverse};

        if (table->n_rows)
                qsort_r(table->rows, table->n_rows, sizeof(table->rows[0]), compare_rows, &order);
}

uint32_t table_find(const struct table *table, uint64_t id, uint32_t otherwise)
{
        for (uint32_t i = 0; i < table->n_rows; i++)
                if (table->rows[i].id == id)
                        return i;
        if (table->n_rows == 0)
                return 0;
        return otherwise < table->n_rows ? otherwise : table->n_rows - 1;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------- */

static int width_of(const struct table *table, uint32_t column)
{
        int width = canvas_columns(table->columns[column].title);

        for (uint32_t i = 0; i < table->n_rows; i++) {
                int columns = canvas_columns(table->rows[i].cells[column].text);

                width = columns > width ? columns : width;
        }
        return width < WIDTH_MAX ? width : WIDTH_MAX;
}

static void draw_column(
        const struct table *table, struct canvas *canvas, const struct table_place *place, uint32_t column, int at, int width)
{
        const struct table_column *kind = &table->columns[column];

        canvas_field(canvas, place->row, at, width, !kind->is_text, column == place->sort_column ? STYLE_REVERSE : STYLE_BOLD,
                kind->title);
        for (int line = 1; line < place->rows; line++) {
                uint32_t i = place->first_row + (uint32_t)line - 1;

                if (i >= table->n_rows)
                        break;
                canvas_field(canvas, place->row + line, at, width, !kind->is_text, table->rows[i].cells[column].style,
                        table->rows[i].cells[column].text);
        }
}

void table_draw(const struct table *table, struct canvas *canvas, const struct table_place *place)
{
        int at = 0;

        for (uint32_t column = 0; column < table->n_columns && at < canvas->columns; column++) {
                int width = width_of(table, column);

                if (column > 0 && column <= place->first_column)
                        continue;
                draw_column(table, canvas, place, column, at, width);
                at += width + GAP;
        }
        if (place->chosen < table->n_rows && place->chosen >= place->first_row &&
                (int)(place->chosen - place->first_row) + 1 < place->rows)
                canvas_mark(canvas, place->row + 1 + (int)(place->chosen - place->first_row), STYLE_REVERSE);
}
