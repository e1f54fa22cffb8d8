/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows up to a limit. What does not fit, or finds no memory, is left out and remembered, so that a writer asks once at
 * the end. A plain value, owned by who initialised it; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
        char *bytes; /* NUL-terminated once something was added */
        size_t used, capacity;
        size_t limit; /* of `used` */
        bool failed;  /* it is not whole */
};

void text_init(struct text *text, size_t limit);
void text_deinit(struct text *text);

/* Empty again; the memory stays. */
void text_clear(struct text *text);

void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t n);
void text_add_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_number(struct text *text, uint64_t number);

/* Seconds with all of their nanoseconds, whatever the locale: 1500 is 0.0000015. */
void text_add_seconds(struct text *text, uint64_t ns);

/*
 * At most @n bytes of @value, up to a NUL, as they may stand between the quotes of a label: \\ \" \n, and U+FFFD in the place of
 * each byte that is no UTF-8, which a scrape would be refused for.
 */
void text_add_label_value(struct text *text, const char *value, size_t n);

/* A string of JSON, quotes included, with U+FFFD as above. */
void text_add_json_string(struct text *text, const char *value);
