/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sl_error_set(struct sl_error *error, int code, const char *format, ...)
{
        if (error) {
                va_list args;

                va_start(args, format);
                vsnprintf(error->text, sizeof(error->text), format, args);
                va_end(args);
        }
        return -code;
}

/* Cuts off what does not fit. */
static void append(struct sl_error *error, const char *more)
{
        size_t used = strnlen(error->text, sizeof(error->text) - 1);
        size_t length = strnlen(more, sizeof(error->text) - 1 - used);

        memcpy(error->text + used, more, length);
        error->text[used + length] = '\0';
}

void sl_error_append(struct sl_error *error, const char *format, ...)
{
        struct sl_error more;
        va_list args;

        if (!error)
                return;
        va_start(args, format);
        vsnprintf(more.text, sizeof(more.text), format, args);
        va_end(args);
        append(error, more.text);
}

int sl_error_prefix(struct sl_error *error, int result, const char *format, ...)
{
        if (error) {
                struct sl_error outer;
                va_list args;

                va_start(args, format);
                vsnprintf(outer.text, sizeof(outer.text), format, args);
                va_end(args);
                append(&outer, ": ");
                append(&outer, error->text);
                *error = outer;
        }
        return result;
}
