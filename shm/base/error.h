/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that goes with a -errno: one line that names the thing, the value and the limit.
 * The caller owns the struct; whoever fails first fills it. A NULL pointer means that the caller wants no text.
 */
#pragma once

#include <errno.h>

#define SL_ERROR_TEXT_BYTES 480

struct sl_error {
        char text[SL_ERROR_TEXT_BYTES];
};

/*
 * Fills @error (if not NULL) and returns -@code, so that a failing function ends with `return sl_error_set(...)`. Where the text does
 * not fit, the longest of what stands in quotation marks is shortened first; then its end is cut.
 */
int sl_error_set(struct sl_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts more behind the text that is already there. */
void sl_error_append(struct sl_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "format: " before the text that is already there, to name the outer thing; returns @result unchanged. */
int sl_error_prefix(struct sl_error *error, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));
