/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fields.h"

#include "base/quote.h"

#include <stdio.h>
#include <string.h>

/* A key, its sign, two quotes, one character and the end. */
#define LEAST_BYTES(key) (strlen(key) + 6)

void sl_fields_add(struct sl_fields *fields, const char *key, const char *value)
{
        size_t room = sizeof(fields->text) - fields->used;

        if (room < LEAST_BYTES(key))
                return;
        fields->used += (size_t)sprintf(fields->text + fields->used, "%s%s=", fields->used ? " " : "", key);
        sl_quote(value, fields->text + fields->used, sizeof(fields->text) - fields->used);
        fields->used += strlen(fields->text + fields->used);
}

void sl_fields_add_number(struct sl_fields *fields, const char *key, long long value)
{
        char text[24];

        snprintf(text, sizeof(text), "%lld", value);
        sl_fields_add(fields, key, text);
}
