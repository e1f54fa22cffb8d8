/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fields.h"

#include "base/quote.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* A key, its sign, two quotes, one character and the end. */
#define LEAST_BYTES(key) (strlen(key) + 6)

#define DIGITS "0123456789"

bool sl_fields_is_number(const char *text, size_t n)
{
        const char *at = text + (n && *text == '-'), *end = text + n;
        size_t whole = at < end ? strspn(at, DIGITS) : 0, part;

        if (whole == 0 || at + whole > end || (*at == '0' && whole > 1))
                return false;
        at += whole;
        if (at == end || *at != '.')
                return at == end;
        part = strspn(at + 1, DIGITS);
        return part > 0 && at + 1 + part == end;
}

/* Where "key=" stands; NULL: there is no room. */
static char *begin_field(struct sl_fields *fields, const char *key)
{
        if (sizeof(fields->text) - fields->used < LEAST_BYTES(key))
                return NULL;
        fields->used += (size_t)sprintf(fields->text + fields->used, "%s%s=", fields->used ? " " : "", key);
        return fields->text + fields->used;
}

void sl_fields_add(struct sl_fields *fields, const char *key, const char *value)
{
        char *at = begin_field(fields, key), text[SL_FIELDS_BYTES];

        if (!at)
                return;
        if (sl_fields_is_number(value, strlen(value)))
                sprintf(at, "\"%s\"", sl_utf8_fit(value, text, sizeof(fields->text) - fields->used - 2));
        else
                sl_quote(value, at, sizeof(fields->text) - fields->used);
        fields->used += strlen(at);
}

/* A number is whole, or is left out. */
static void add_number_text(struct sl_fields *fields, const char *key, const char *text)
{
        char *at;

        if (sizeof(fields->text) - fields->used < LEAST_BYTES(key) + strlen(text))
                return;
        at = begin_field(fields, key);
        fields->used += (size_t)sprintf(at, "%s", text);
}

void sl_fields_add_number(struct sl_fields *fields, const char *key, long long value)
{
        char text[24];

        snprintf(text, sizeof(text), "%lld", value);
        add_number_text(fields, key, text);
}

void sl_fields_add_real(struct sl_fields *fields, const char *key, double value)
{
        char text[400]; /* of the largest one */

        snprintf(text, sizeof(text), "%.2f", value);
        add_number_text(fields, key, text);
}
