/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of one line of the log: key=value pairs. Every value is quoted where it goes in (quote.h), so that none can pass for
 * another field. A number stands without quotes and a text that reads as one has them, so that a reader knows which it is. What
 * does not fit is cut inside of its value; further fields are left out. Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SL_FIELDS_BYTES 3072 /* with time, level and event it is a line of the log, uncut */

struct sl_fields {
        size_t used;
        char text[SL_FIELDS_BYTES]; /* of fields that are all zero: "" */
};

/* Adds " key=value". @key is a word of the program's own. */
void sl_fields_add(struct sl_fields *fields, const char *key, const char *value);
void sl_fields_add_number(struct sl_fields *fields, const char *key, long long value);

/* With two digits behind the point. */
void sl_fields_add_real(struct sl_fields *fields, const char *key, double value);

/* Whether the @n bytes are a number as JSON has it, without an exponent: "-7", "0.25". Pure. */
bool sl_fields_is_number(const char *text, size_t n);
