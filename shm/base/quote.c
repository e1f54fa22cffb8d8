/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CUT "..."

static bool is_word(const char *value)
{
        if (!*value)
                return false;
        for (; *value; value++)
                if (!isalnum((unsigned char)*value) && !strchr("-_.:/@+,", *value))
                        return false;
        return true;
}

/* One character as it stands between quotes; returns its length. */
static size_t escape(unsigned char character, char ret_text[5])
{
        if (character == '"' || character == '\\')
                return (size_t)sprintf(ret_text, "\\%c", character);
        if (character == '\n' || character == '\t')
                return (size_t)sprintf(ret_text, character == '\n' ? "\\n" : "\\t");
        if (character < 0x20 || character == 0x7f)
                return (size_t)sprintf(ret_text, "\\x%02x", character);
        return (size_t)sprintf(ret_text, "%c", character);
}

/* The next character, or byte that is none, as it stands between quotes: its length. @ret_text: 5 bytes. */
static size_t next_escaped(const char **value, char *ret_text)
{
        size_t bytes = sl_utf8_bytes(*value, strlen(*value)), length;

        if (bytes > 1) {
                memcpy(ret_text, *value, bytes);
                *value += bytes;
                return bytes;
        }
        length = escape((unsigned char)**value, ret_text);
        *value += 1;
        return length;
}

static size_t escaped_bytes(const char *value)
{
        char escaped[5];
        size_t bytes = 0;

        while (*value)
                bytes += next_escaped(&value, escaped);
        return bytes;
}

const char *sl_quote(const char *value, char *ret_text, size_t bytes)
{
        const char *cut = escaped_bytes(value) + 3 > bytes && bytes > 2 * sizeof(CUT) ? CUT : "";
        size_t used = 0;

        if (is_word(value) && strlen(value) < bytes)
                return strcpy(ret_text, value);
        ret_text[used++] = '"';
        while (*value) {
                char escaped[5];
                size_t length = next_escaped(&value, escaped);

                if (used + length + strlen(cut) + 2 > bytes)
                        break;
                memcpy(ret_text + used, escaped, length);
                used += length;
        }
        sprintf(ret_text + used, "%s\"", cut);
        return ret_text;
}
