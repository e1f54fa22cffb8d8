/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that goes with a -errno: one line that names the thing, the value and the limit.
 * The caller owns the struct; whoever fails first fills it. A NULL pointer means that the caller wants no text.
 */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#define SL_ERROR_TEXT_BYTES 480

struct sl_error {
        char text[SL_ERROR_TEXT_BYTES];
};

/*
 * Fills @error (if not NULL) and returns -@code, so that a failing function ends with `return sl_error_set(...)`. Where the text
 * does not fit, the longest of what stands in quotation marks is shortened first, to its beginning and its end; then what is added in
 * brackets at the end, or left out; then the end of the text is cut, between characters.
 */
int sl_error_set(struct sl_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a list of arguments, without the result. */
void sl_error_print(struct sl_error *error, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* A text of an error where there is less room: the same way, and then its beginning and its end. Returns @ret_text. */
const char *sl_error_fit(const char *text, char *ret_text, size_t bytes);

/* Puts more behind the text that is already there. */
void sl_error_append(struct sl_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "format: " before the text that is already there, to name the outer thing; returns @result unchanged. */
int sl_error_prefix(struct sl_error *error, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));
