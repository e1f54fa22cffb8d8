/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_BYTES    4096 /* of a text with the names that it quotes */
#define SHOWN_BYTES    52   /* of a quoted name that is shortened, terminated */
#define BRACKETS_BYTES 16   /* the least that is shown of what is added in brackets, terminated */

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
        char *name, behind;
        size_t length;

        while (strlen(text) >= bytes) {
                name = find_longest(text, &length);
                if (length < SHOWN_BYTES)
                        return;
                behind = name[length];
                name[length] = 0;
                sl_utf8_fit(name, name, SHOWN_BYTES);
                name[length] = behind;
                memmove(name + strlen(name), name + length, strlen(name + length) + 1);
        }
}

/* Where the brackets open with which the text ends; NULL: it ends with none, or is nothing else. */
static char *find_last_brackets(char *text)
{
        char *at = text + strlen(text);
        uint32_t depth = 0;

        if (at == text || at[-1] != ')')
                return NULL;
        while (at-- > text) {
                depth += *at == ')';
                if (*at == '(' && --depth == 0)
                        return at > text + 1 && at[-1] == ' ' ? at : NULL;
        }
        return NULL;
}

/* Then what is added in brackets at the end: it is cut in its middle, or left out with the space before it. */
static void shorten_brackets(char *text, size_t bytes)
{
        char *brackets = strlen(text) >= bytes ? find_last_brackets(text) : NULL;

        if (!brackets || (size_t)(brackets - text) > bytes)
                return;
        if (bytes - (size_t)(brackets - text) >= BRACKETS_BYTES)
                sl_utf8_fit(brackets, brackets, bytes - (size_t)(brackets - text));
        else
                brackets[-1] = 0;
}

/* Of a text with its names whole; what is left is cut between characters. */
static void take(struct sl_error *error, char *whole)
{
        size_t length;

        shorten_names(whole, sizeof(error->text));
        shorten_brackets(whole, sizeof(error->text));
        length = sl_utf8_head(whole, sizeof(error->text) - 1);
        memcpy(error->text, whole, length);
        error->text[length] = '\0';
}

const char *sl_error_fit(const char *text, char *ret_text, size_t bytes)
{
        char whole[WHOLE_BYTES];

        sl_utf8_fit(text, whole, sizeof(whole));
        shorten_names(whole, bytes);
        shorten_brackets(whole, bytes);
        return sl_utf8_fit(whole, ret_text, bytes);
}

void sl_error_print(struct sl_error *error, const char *format, va_list args)
{
        char whole[WHOLE_BYTES], *large = NULL;
        va_list again;

        va_copy(again, args);
        if (vsnprintf(whole, sizeof(whole), format, args) >= (int)sizeof(whole) && vasprintf(&large, format, again) < 0)
                large = NULL;
        va_end(again);
        take(error, large ? large : whole);
        free(large);
}

int sl_error_set(struct sl_error *error, int code, const char *format, ...)
{
        if (error) {
                va_list args;

                va_start(args, format);
                sl_error_print(error, format, args);
                va_end(args);
        }
        return -code;
}

void sl_error_append(struct sl_error *error, const char *format, ...)
{
        char whole[WHOLE_BYTES];
        va_list args;
        size_t used;

        if (!error)
                return;
        used = strnlen(error->text, sizeof(error->text) - 1);
        memcpy(whole, error->text, used);
        va_start(args, format);
        vsnprintf(whole + used, sizeof(whole) - used, format, args);
        va_end(args);
        take(error, whole);
}

int sl_error_prefix(struct sl_error *error, int result, const char *format, ...)
{
        if (error) {
                char whole[WHOLE_BYTES];
                size_t room = sizeof(whole) - strlen(": ") - strnlen(error->text, sizeof(error->text) - 1);
                va_list args;

                va_start(args, format);
                vsnprintf(whole, room, format, args);
                va_end(args);
                error->text[sizeof(error->text) - 1] = '\0';
                strcat(strcat(whole, ": "), error->text);
                take(error, whole);
        }
        return result;
}
