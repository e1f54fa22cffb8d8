/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of cells with titles, to be filtered, sorted and drawn as far as they fit. Pure, but for its memory.
 */
#pragma once

#include "canvas.h"

#include <stdbool.h>
#include <stdint.h>

#define TABLE_COLUMNS_MAX 20u
#define TABLE_CELL_BYTES  64u

struct table_column {
        const char *title;
        bool is_text; /* sorted as text, from a to z, and against the left edge; others from large to small */
};

struct table_cell {
        double number;
        char text[TABLE_CELL_BYTES];
        enum canvas_style style;
};

struct table_row {
        uint64_t id;      /* of what it shows: the same in the next table */
        char detail[256]; /* about the row that is chosen */
        struct table_cell cells[TABLE_COLUMNS_MAX];
};

struct table {
        const struct table_column *columns;
        uint32_t n_columns;
        uint32_t n_rows, room;
        struct table_row *rows;
};

void table_init(struct table *table, const struct table_column *columns, uint32_t n_columns);
void table_deinit(struct table *table);

/* A new row, all cells empty; NULL: no memory. Valid until the next call. */
struct table_row *table_add(struct table *table, uint64_t id);

/* The next cell of a row is number *@at, which is moved on. */
void table_text(struct table_row *row, uint32_t *at, enum canvas_style style, const char *text);
void table_number(struct table_row *row, uint32_t *at, double number, const char *text);

/* Rows whose texts contain @words, whatever their case, stay. */
void table_filter(struct table *table, const char *words);

/* By a column; rows that are equal there by their texts, then by their ids. @reverse: the other way round. */
void table_sort(struct table *table, uint32_t column, bool reverse);

/* Where @id stands; @otherwise when it is not there, as far as there are rows. */
uint32_t table_find(const struct table *table, uint64_t id, uint32_t otherwise);

/* How it is shown. */
struct table_place {
        int row, rows;         /* of the canvas: the titles and what is below */
        uint32_t first_row;    /* of the table */
        uint32_t first_column; /* behind column 0, which is always there */
        uint32_t sort_column;
        bool reverse;
        uint32_t chosen; /* row; n_rows: none */
};

void table_draw(const struct table *table, struct canvas *canvas, const struct table_place *place);
