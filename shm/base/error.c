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

int sl_error_prefix(struct sl_error *error, int result, const char *format, ...)
{
        if (error) {
                struct sl_error outer;
                va_list args;

                va_start(args, format);
                vsnprintf(outer.text, sizeof(outer.text), format, args);
                va_end(args);
                size_t used = strnlen(outer.text, sizeof(outer.text) - 1);
                snprintf(outer.text + used, sizeof(outer.text) - used, ": %s", error->text);
                *error = outer;
        }
        return result;
}
