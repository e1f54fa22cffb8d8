/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CUT "..."

uint32_t sl_utf8_code(const char *text, size_t left, size_t *ret_bytes)
{
        static const struct {
                unsigned char mask, lead;
                uint32_t least;
        } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
        const unsigned char *at = (const unsigned char *)text;

        *ret_bytes = 0;
        for (size_t form = 0; form < sizeof(forms) / sizeof(forms[0]) && form < left; form++) {
                uint32_t code = (uint32_t)(at[0] & ~forms[form].mask);
                bool whole = (at[0] & forms[form].mask) == forms[form].lead;

                for (size_t i = 1; whole && i <= form; i++) {
                        whole = (at[i] & 0xc0) == 0x80;
                        code = code << 6 | (at[i] & 0x3fu);
                }
                if (whole && (code < forms[form].least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
                        return 0;
                if (whole) {
                        *ret_bytes = form + 1;
                        return code;
                }
        }
        return 0;
}

size_t sl_utf8_bytes(const char *text, size_t left)
{
        size_t bytes;

        (void)sl_utf8_code(text, left, &bytes);
        return bytes;
}

/* Inside of a character, if it is in one. */
static bool is_inside(char byte)
{
        return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t sl_utf8_head(const char *text, size_t bytes)
{
        size_t length = strnlen(text, bytes + 1), n = length < bytes ? length : bytes, at = n;

        while (length > n && at && n - at < 4 && is_inside(text[at]))
                at--;
        return n - at < 4 ? at : n;
}

const char *sl_utf8_fit(const char *text, char *ret_text, size_t bytes)
{
        size_t length = strlen(text), room = bytes - 1, cut = strlen(CUT), head, tail;

        if (length > room && room >= 4 * cut) {
                head = sl_utf8_head(text, (room - cut) * 2 / 3);
                tail = length - (room - cut - (room - cut) * 2 / 3);
                for (int i = 0; i < 3 && is_inside(text[tail]); i++)
                        tail++;
                memmove(ret_text, text, head);
                memcpy(ret_text + head, CUT, cut);
                memmove(ret_text + head + cut, text + tail, length - tail + 1);
                return ret_text;
        }
        head = sl_utf8_head(text, room);
        memmove(ret_text, text, head);
        ret_text[head] = 0;
        return ret_text;
}

/* As sl_utf8_bytes(); 0 for control characters, too. */
static size_t printable_bytes(const char *text, size_t left)
{
        const unsigned char *at = (const unsigned char *)text;
        size_t bytes = sl_utf8_bytes(text, left);
        bool control = bytes == 1 ? at[0] < 0x20 || at[0] == 0x7f : bytes == 2 && at[0] == 0xc2 && at[1] < 0xa0;

        return control ? 0 : bytes;
}

size_t sl_utf8_printable(const char *text)
{
        size_t length = strlen(text), at = 0;

        for (size_t bytes; at < length && (bytes = printable_bytes(text + at, length - at)); at += bytes)
                ;
        return at;
}

const char *sl_utf8_clean(const char *text, char *ret_text, size_t bytes)
{
        size_t length = strlen(text), to = 0;

        for (size_t at = 0, step; at < length; at += step) {
                size_t character = printable_bytes(text + at, length - at);

                step = character ? character : 1;
                if (to + step >= bytes)
                        break;
                memmove(ret_text + to, character ? text + at : "?", step);
                to += step;
        }
        ret_text[to] = 0;
        return ret_text;
}
