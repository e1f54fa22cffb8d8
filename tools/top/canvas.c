/* SPDX-License-Identifier: Apache-2.0 */
#include "canvas.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define PLAIN_BYTES 2048 /* of a text that is drawn, at most */
#define CUT         "..."

int canvas_init(struct canvas *canvas, int rows, int columns)
{
        size_t cells = rows > 0 && columns > 0 ? (size_t)rows * (size_t)columns : 0;

        *canvas = (struct canvas){.rows = cells ? rows : 0, .columns = cells ? columns : 0};
        canvas->text = malloc(cells + 1);
        canvas->characters = calloc(cells + 1, sizeof(*canvas->characters));
        canvas->styles = calloc(cells + 1, 1);
        if (!canvas->text || !canvas->characters || !canvas->styles) {
                canvas_deinit(canvas);
                return -ENOMEM;
        }
        memset(canvas->text, ' ', cells);
        return 0;
}

void canvas_deinit(struct canvas *canvas)
{
        free(canvas->text);
        free(canvas->characters);
        free(canvas->styles);
        *canvas = (struct canvas){0};
}

/* A text as columns. */
struct drawn {
        char plain[PLAIN_BYTES];
        uint32_t characters[PLAIN_BYTES];
        int n;
};

/* Cut where there are too many. */
static void draw_text(const char *text, struct drawn *drawn)
{
        size_t left = strlen(text), step;

        for (drawn->n = 0; left && drawn->n + 2 < PLAIN_BYTES; text += step, left -= step) {
                uint32_t code = sl_utf8_code(text, left, &step);
                int width = code < 0x80 ? 1 : wcwidth((wchar_t)code), at = drawn->n++;
                bool is_ascii = step == 1 && *text >= ' ' && *text <= '~';

                step = step ? step : 1;
                drawn->plain[at] = is_ascii ? *text : '?';
                drawn->characters[at] = code < 0x80 || width < 1 ? 0 : code;
                if (width != 2)
                        continue;
                drawn->plain[drawn->n] = ' ';
                drawn->characters[drawn->n++] = CANVAS_BEHIND;
        }
}

int canvas_columns(const char *text)
{
        struct drawn drawn;

        draw_text(text, &drawn);
        return drawn.n;
}

static void put_column(struct canvas *canvas, int row, int column, enum canvas_style style, char c, uint32_t character)
{
        size_t at = (size_t)row * (size_t)canvas->columns + (size_t)column;

        if (row < 0 || row >= canvas->rows || column < 0 || column >= canvas->columns)
                return;
        canvas->text[at] = c;
        canvas->characters[at] = character;
        canvas->styles[at] = (unsigned char)style;
}

/* Columns @first to @end, where a character that is cut in two is none. */
static int put_columns(
        struct canvas *canvas, int row, int column, enum canvas_style style, const struct drawn *drawn, int first, int end)
{
        for (int i = first; i < end; i++, column++) {
                uint32_t character = drawn->characters[i];
                bool is_wide = i + 1 < drawn->n && drawn->characters[i + 1] == CANVAS_BEHIND;

                if ((is_wide && (i + 1 == end || column + 1 >= canvas->columns)) || (character == CANVAS_BEHIND && i == first))
                        character = 0;
                put_column(canvas, row, column, style, drawn->plain[i], character);
        }
        return column;
}

int canvas_put(struct canvas *canvas, int row, int column, enum canvas_style style, const char *text)
{
        struct drawn drawn;

        draw_text(text, &drawn);
        return put_columns(canvas, row, column, style, &drawn, 0, drawn.n);
}

int canvas_print(struct canvas *canvas, int row, int column, enum canvas_style style, const char *format, ...)
{
        char text[PLAIN_BYTES];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return canvas_put(canvas, row, column, style, text);
}

void canvas_field(struct canvas *canvas, int row, int column, int width, int right, enum canvas_style style, const char *text)
{
        const int cut = (int)strlen(CUT);
        struct drawn drawn;
        int head;

        draw_text(text, &drawn);
        if (drawn.n <= width || width < 4 * cut) {
                head = drawn.n < width ? drawn.n : width;
                put_columns(canvas, row, column + (right ? width - head : 0), style, &drawn, 0, head);
                return;
        }
        head = (width - cut) * 2 / 3;
        column = put_columns(canvas, row, column, style, &drawn, 0, head);
        column = canvas_put(canvas, row, column, style, CUT);
        put_columns(canvas, row, column, style, &drawn, drawn.n - (width - cut - head), drawn.n);
}

void canvas_mark(struct canvas *canvas, int row, enum canvas_style style)
{
        if (row >= 0 && row < canvas->rows)
                memset(canvas->styles + (size_t)row * (size_t)canvas->columns, (int)style, (size_t)canvas->columns);
}
