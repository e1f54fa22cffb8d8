/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A screen of text in memory: what is drawn beyond its edges is cut, so that whoever draws need not know how large it is. A column
 * is a byte, and a character where the locale has a place for one beyond ASCII. Pure but for the locale.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CANVAS_BEHIND UINT32_MAX

enum canvas_style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_REVERSE, STYLE_GOOD, STYLE_WARNING, STYLE_BAD, STYLES };

struct canvas {
        int rows, columns;
        char *text;            /* [rows][columns], no terminators; '?' for what is no ASCII */
        uint32_t *characters;  /* [rows][columns]; 0: as the text; CANVAS_BEHIND: the second column of the one before it */
        unsigned char *styles; /* [rows][columns] */
};

/* Blank, of any size; 0 is fine. Return: 0, -ENOMEM. */
int canvas_init(struct canvas *canvas, int rows, int columns);
void canvas_deinit(struct canvas *canvas);

/* Columns that a text takes: one for each character, two for a wide one where the locale knows it. */
int canvas_columns(const char *text);

/* Returns the column behind it. A character that the locale does not know, or that takes no column, becomes one '?'. */
int canvas_put(struct canvas *canvas, int row, int column, enum canvas_style style, const char *text);
int canvas_print(struct canvas *canvas, int row, int column, enum canvas_style style, const char *format, ...)
        __attribute__((format(printf, 5, 6)));

/* In a field of @width columns; what is longer shows its beginning and its end; @right: against its right edge. */
void canvas_field(struct canvas *canvas, int row, int column, int width, int right, enum canvas_style style, const char *text);

/* The whole row has this style. */
void canvas_mark(struct canvas *canvas, int row, enum canvas_style style);
