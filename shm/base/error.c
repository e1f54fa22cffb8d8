/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_BYTES 4096 /* of a text with the names that it quotes */
#define SHOWN_BYTES 48   /* of a quoted name that is shortened */

/* The longest text between two quotation marks; its length is 0 where there is none. */
static char *find_longest(char *text, size_t *ret_length)
{
        char *longest = NULL, *open = strchr(text, '"');

        *ret_length = 0;
        while (open) {
                char *close = strchr(open + 1, '"');

                if (!close)
                        break;
                if ((size_t)(close - open - 1) > *ret_length) {
                        longest = open + 1;
                        *ret_length = (size_t)(close - longest);
                }
                open = strchr(close + 1, '"');
        }
        return longest;
}

/* What is said of a long name goes before its end: such names are shortened, between characters, until the text fits. */
static void shorten_names(char *text, size_t bytes)
{
        char *name;
        size_t length, kept;

        while (strlen(text) >= bytes) {
                name = find_longest(text, &length);
                if (length <= SHOWN_BYTES + 3)
                        return;
                for (kept = SHOWN_BYTES; kept && ((unsigned char)name[kept] & 0xc0) == 0x80; kept--)
                        ;
                memcpy(name + kept, "...", 3);
                memmove(name + kept + 3, name + length, strlen(name + length) + 1);
        }
}

static void print_text(struct sl_error *error, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void print_text(struct sl_error *error, const char *format, va_list args)
{
        char whole[WHOLE_BYTES];

        vsnprintf(whole, sizeof(whole), format, args);
        shorten_names(whole, sizeof(error->text));
        snprintf(error->text, sizeof(error->text), "%.*s", (int)sizeof(error->text) - 1, whole);
}

int sl_error_set(struct sl_error *error, int code, const char *format, ...)
{
        if (error) {
                va_list args;

                va_start(args, format);
                print_text(error, format, args);
                va_end(args);
        }
        return -code;
}

/* Cuts off what does not fit. */
static void append(struct sl_error *error, const char *more)
{
        size_t used = strnlen(error->text, sizeof(error->text) - 1);
        size_t length = strnlen(more, sizeof(error->text) - 1 - used);

        memcpy(error->text + used, more, length);
        error->text[used + length] = '\0';
}

void sl_error_append(struct sl_error *error, const char *format, ...)
{
        struct sl_error more;
        va_list args;

        if (!error)
                return;
        va_start(args, format);
        vsnprintf(more.text, sizeof(more.text), format, args);
        va_end(args);
        append(error, more.text);
}

int sl_error_prefix(struct sl_error *error, int result, const char *format, ...)
{
        if (error) {
                struct sl_error outer;
                va_list args;

                va_start(args, format);
                print_text(&outer, format, args);
                va_end(args);
                append(&outer, ": ");
                append(&outer, error->text);
                *error = outer;
        }
        return result;
}
