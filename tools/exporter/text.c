/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096u
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void text_init(struct text *text, size_t limit)
{
        *text = (struct text){.limit = limit};
}

void text_deinit(struct text *text)
{
        free(text->bytes);
        *text = (struct text){0};
}

void text_clear(struct text *text)
{
        text->used = 0;
        text->failed = false;
        if (text->bytes)
                text->bytes[0] = 0;
}

/* Room for @n bytes and the NUL. */
static bool text_make_room(struct text *text, size_t n)
{
        size_t capacity = text->capacity ? text->capacity : FIRST_BYTES;

        if (text->failed || n > text->limit - text->used) {
                text->failed = true;
                return false;
        }
        while (capacity < text->used + n + 1)
                capacity *= 2;
        if (capacity > text->capacity) {
                char *bytes = realloc(text->bytes, capacity);

                text->failed = !bytes;
                if (!bytes)
                        return false;
                text->bytes = bytes;
                text->capacity = capacity;
        }
        return true;
}

void text_add_bytes(struct text *text, const char *bytes, size_t n)
{
        if (!text_make_room(text, n))
                return;
        memcpy(text->bytes + text->used, bytes, n);
        text->used += n;
        text->bytes[text->used] = 0;
}

void text_add(struct text *text, const char *string)
{
        text_add_bytes(text, string, strlen(string));
}

void text_add_format(struct text *text, const char *format, ...)
{
        char line[4096];
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        if (n < 0 || (size_t)n >= sizeof(line))
                text->failed = true;
        else
                text_add_bytes(text, line, (size_t)n);
}

void text_add_number(struct text *text, uint64_t number)
{
        char digits[24];

        text_add_bytes(text, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, number));
}

void text_add_seconds(struct text *text, uint64_t ns)
{
        char digits[40];
        size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);

        while (digits[n - 1] == '0')
                n--;
        text_add_bytes(text, digits, digits[n - 1] == '.' ? n - 1 : n);
}

static void text_add_character(struct text *text, const char *at, size_t bytes)
{
        if (bytes == 0)
                text_add(text, REPLACEMENT);
        else if (*at == '\n')
                text_add(text, "\\n");
        else if (*at == '"' || *at == '\\')
                text_add_format(text, "\\%c", *at);
        else
                text_add_bytes(text, at, bytes);
}

void text_add_label_value(struct text *text, const char *value, size_t n)
{
        size_t length = strnlen(value, n);

        for (size_t at = 0; at < length;) {
                size_t bytes = sl_utf8_bytes(value + at, length - at);

                text_add_character(text, value + at, bytes);
                at += bytes ? bytes : 1;
        }
}

static void text_add_json_character(struct text *text, const char *at, size_t bytes)
{
        if (bytes == 1 && (unsigned char)*at < 0x20)
                text_add_format(text, "\\u%04x", (unsigned char)*at);
        else
                text_add_character(text, at, bytes);
}

void text_add_json_string(struct text *text, const char *value)
{
        size_t length = strlen(value);

        text_add(text, "\"");
        for (size_t at = 0; at < length;) {
                size_t bytes = sl_utf8_bytes(value + at, length - at);

                text_add_json_character(text, value + at, bytes);
                at += bytes ? bytes : 1;
        }
        text_add(text, "\"");
}
