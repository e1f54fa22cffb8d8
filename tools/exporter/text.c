/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

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
        char line[1024];
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

/* Bytes of the character of UTF-8 that @at begins with; 0: it is none. Neither overlong forms nor surrogates are. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
        static const struct {
                unsigned char mask, lead;
                uint32_t least;
        } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

        for (size_t form = 0; form < sizeof(forms) / sizeof(forms[0]) && form < left; form++) {
                uint32_t code = (uint32_t)(at[0] & ~forms[form].mask);
                bool whole = (at[0] & forms[form].mask) == forms[form].lead;

                for (size_t i = 1; i <= form; i++) {
                        whole = whole && (at[i] & 0xc0) == 0x80;
                        code = code << 6 | (at[i] & 0x3fu);
                }
                if (whole)
                        return code < forms[form].least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : form + 1;
        }
        return 0;
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
                size_t bytes = character_bytes((const unsigned char *)value + at, length - at);

                text_add_character(text, value + at, bytes);
                at += bytes ? bytes : 1;
        }
}
