/* SPDX-License-Identifier: Apache-2.0 */
#include "canvas.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int canvas_init(struct canvas *canvas, int rows, int columns)
{
        size_t cells = rows > 0 && columns > 0 ? (size_t)rows * (size_t)columns : 0;

        *canvas = (struct canvas){.rows = cells ? rows : 0, .columns = cells ? columns : 0};
        canvas->text = malloc(cells + 1);
        canvas->styles = calloc(cells + 1, 1);
        if (!canvas->text || !canvas->styles) {
                canvas_deinit(canvas);
                return -ENOMEM;
        }
        memset(canvas->text, ' ', cells);
        return 0;
}

void canvas_deinit(struct canvas *canvas)
{
        free(canvas->text);
        free(canvas->styles);
        *canvas = (struct canvas){0};
}

static void put_character(struct canvas *canvas, int row, int column, enum canvas_style style, char c)
{
        size_t at = (size_t)row * (size_t)canvas->columns + (size_t)column;

        if (row < 0 || row >= canvas->rows || column < 0 || column >= canvas->columns)
                return;
        canvas->text[at] = c;
        if (c < ' ' || c > '~')
                canvas->text[at] = '?';
        canvas->styles[at] = (unsigned char)style;
}

int canvas_put(struct canvas *canvas, int row, int column, enum canvas_style style, const char *text)
{
        for (; *text; text++, column++)
                put_character(canvas, row, column, style, *text);
        return column;
}

int canvas_print(struct canvas *canvas, int row, int column, enum canvas_style style, const char *format, ...)
{
        char text[512];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return canvas_put(canvas, row, column, style, text);
}

void canvas_field(struct canvas *canvas, int row, int column, int width, int right, enum canvas_style style, const char *text)
{
        int bytes = (int)strlen(text), shown = bytes < width ? bytes : width;

        column += right ? width - shown : 0;
        for (int i = 0; i < shown; i++)
                put_character(canvas, row, column + i, style, text[i]);
}

void canvas_mark(struct canvas *canvas, int row, enum canvas_style style)
{
        if (row >= 0 && row < canvas->rows)
                memset(canvas->styles + (size_t)row * (size_t)canvas->columns, (int)style, (size_t)canvas->columns);
}
