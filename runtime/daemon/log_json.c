/* SPDX-License-Identifier: Apache-2.0 */
#include "log_json.h"

#include "base/fields.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END         "}\n"
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ESCAPE_MAX  6              /* "\u0001" */

/* `limit` leaves room for what closes the object. */
struct out {
        char *text;
        size_t used, limit;
};

static bool put(struct out *out, const char *bytes, size_t n)
{
        if (n > out->limit - out->used)
                return false;
        memcpy(out->text + out->used, bytes, n);
        out->used += n;
        return true;
}

/* One character of a string, which may be a control one; @n is 0 where the bytes are no character. */
static bool put_character(struct out *out, const char *at, size_t n)
{
        char escape[ESCAPE_MAX + 1];

        if (n == 0)
                return put(out, REPLACEMENT, strlen(REPLACEMENT));
        if (*at == '"' || *at == '\\')
                snprintf(escape, sizeof(escape), "\\%c", *at);
        else if (n == 1 && ((unsigned char)*at < 0x20 || *at == 0x7f))
                snprintf(escape, sizeof(escape), "\\u%04x", (unsigned char)*at);
        else
                return put(out, at, n);
        return put(out, escape, strlen(escape));
}

static void put_string(struct out *out, const char *value, size_t n)
{
        size_t step;

        out->limit--; /* for the closing quote */
        put(out, "\"", 1);
        for (size_t at = 0; at < n; at += step) {
                size_t bytes = sl_utf8_bytes(value + at, n - at);

                step = bytes ? bytes : 1;
                if (!put_character(out, value + at, bytes))
                        break;
        }
        out->limit++;
        put(out, "\"", 1);
}

/* Room for a key and what a value has at least? */
static bool has_room(const struct out *out, size_t key_bytes, size_t value_bytes)
{
        return key_bytes + value_bytes + strlen(",\"\":\"\"") + ESCAPE_MAX <= out->limit - out->used;
}

static void put_key(struct out *out, const char *key, size_t n)
{
        put(out, out->used > 1 ? "," : "", out->used > 1);
        put_string(out, key, n);
        put(out, ":", 1);
}

static void put_text_field(struct out *out, const char *key, const char *value)
{
        if (!has_room(out, strlen(key), 0))
                return;
        put_key(out, key, strlen(key));
        put_string(out, value, strlen(value));
}

/* ---- fields, as quote.h writes them ---- */

/* "n" and so on behind a backslash. Return: bytes of the escape without it. */
static size_t unescape(const char *at, char *ret_character)
{
        const char hex[] = {at[1] ? at[1] : '\0', at[1] ? at[2] : '\0', 0};
        char *end;

        *ret_character = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
        if (*at != 'x')
                return 1;
        *ret_character = (char)strtoul(hex, &end, 16);
        if (!*ret_character)
                *ret_character = ' '; /* quote.h writes no such one */
        return 1 + (size_t)(end - hex);
}

/* What stands behind the opening quote, and fits @ret_value. Return: what follows the closing quote. */
static const char *read_quoted(const char *at, char ret_value[SL_FIELDS_BYTES], size_t *ret_bytes)
{
        size_t n = 0;

        while (*at && *at != '"') {
                size_t step = 1;
                char character = *at;

                if (*at == '\\' && at[1])
                        step += unescape(at + 1, &character);
                if (n < SL_FIELDS_BYTES)
                        ret_value[n++] = character;
                at += step;
        }
        *ret_bytes = n;
        return at + (*at == '"');
}

static void put_value(struct out *out, const char *key, size_t key_bytes, const char *value, size_t n, bool is_number)
{
        if (!has_room(out, key_bytes, is_number ? n : 0))
                return;
        put_key(out, key, key_bytes);
        if (is_number)
                put(out, value, n);
        else
                put_string(out, value, n);
}

/* Return: what follows the field and a blank. */
static const char *put_field(struct out *out, const char *field, char scratch[SL_FIELDS_BYTES])
{
        size_t key_bytes = strcspn(field, "= "), n;
        const char *value = field + key_bytes + 1, *rest;

        if (field[key_bytes] != '=') {
                put_text_field(out, "text", field);
                return "";
        }
        if (*value == '"') {
                rest = read_quoted(value + 1, scratch, &n);
                put_value(out, field, key_bytes, scratch, n, false);
        } else {
                n = strcspn(value, " ");
                rest = value + n;
                put_value(out, field, key_bytes, value, n, sl_fields_is_number(value, n));
        }
        return rest + (*rest == ' ');
}

size_t log_json_write(const struct log_json_line *line, char *ret_text, size_t bytes)
{
        char scratch[SL_FIELDS_BYTES];
        struct out out = {.text = ret_text, .limit = bytes - sizeof(END)};
        const char *field = line->fields;

        put(&out, "{", 1);
        put_text_field(&out, "time", line->time);
        put_text_field(&out, "level", line->level);
        put_text_field(&out, "event", line->event);
        while (*field)
                field = put_field(&out, field, scratch);
        memcpy(ret_text + out.used, END, sizeof(END));
        return out.used + strlen(END);
}
