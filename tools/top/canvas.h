/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A screen of text in memory: what is drawn beyond its edges is cut, so that whoever draws need not know how large it is. One byte
 * is one column. Pure.
 */
#pragma once

#include <stddef.h>

enum canvas_style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_REVERSE, STYLE_GOOD, STYLE_WARNING, STYLE_BAD, STYLES };

struct canvas {
        int rows, columns;
        char *text;            /* [rows][columns], no terminators */
        unsigned char *styles; /* [rows][columns] */
};

/* Blank, of any size; 0 is fine. Return: 0, -ENOMEM. */
int canvas_init(struct canvas *canvas, int rows, int columns);
void canvas_deinit(struct canvas *canvas);

/* Returns the column behind it. What no terminal shows becomes '?'. */
int canvas_put(struct canvas *canvas, int row, int column, enum canvas_style style, const char *text);
int canvas_print(struct canvas *canvas, int row, int column, enum canvas_style style, const char *format, ...)
        __attribute__((format(printf, 5, 6)));

/* In a field of @width columns, cut there; @right: against its right edge. */
void canvas_field(struct canvas *canvas, int row, int column, int width, int right, enum canvas_style style, const char *text);

/* The whole row has this style. */
void canvas_mark(struct canvas *canvas, int row, enum canvas_style style);
