/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

const char *sl_quote(const char *value, char *ret_text, size_t bytes)
{
        size_t used = 0;

        if (is_word(value)) {
                snprintf(ret_text, bytes, "%s", value);
                return ret_text;
        }
        ret_text[used++] = '"';
        for (; *value; value++) {
                char escaped[5];
                size_t length = escape((unsigned char)*value, escaped);

                if (used + length + 2 > bytes)
                        break;
                memcpy(ret_text + used, escaped, length);
                used += length;
        }
        ret_text[used++] = '"';
        ret_text[used] = 0;
        return ret_text;
}
