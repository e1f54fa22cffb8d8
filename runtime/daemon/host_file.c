/* SPDX-License-Identifier: Apache-2.0 */
#include "host_file.h"

#include "base/value.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

static FILE *open_below(const char *root, const char *format, va_list arguments)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s", root);

        if (n < 0 || n >= PATH_MAX)
                return NULL;
        int more = vsnprintf(path + n, sizeof(path) - (size_t)n, format, arguments);
        return more < 0 || more >= PATH_MAX - n ? NULL : fopen(path, "re");
}

bool sl_host_file(const char *root, char *ret_text, size_t bytes, const char *format, ...)
{
        va_list arguments;
        size_t n;

        ret_text[0] = 0;
        va_start(arguments, format);
        FILE *file = open_below(root, format, arguments);
        va_end(arguments);
        if (!file)
                return false;
        n = fread(ret_text, 1, bytes - 1, file);
        bool read = !ferror(file);
        fclose(file);
        while (n && strchr(blanks, ret_text[n - 1]))
                n--;
        ret_text[n] = 0;
        return read;
}

/* Where the value begins, or NULL. */
static const char *find_value(const char *text, const char *key)
{
        size_t length = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                const char *end = line + length;

                if (strncmp(line, key, length) == 0 && (!length || *end == ':' || *end == ' ' || *end == '\t'))
                        return end + strspn(end, " \t:");
        }
        return NULL;
}

bool sl_host_field(const char *text, const char *key, char *ret_value, size_t bytes)
{
        const char *value = find_value(text, key);

        snprintf(ret_value, bytes, "%.*s", value ? (int)strcspn(value, "\n") : 0, value ? value : "");
        return value;
}

uint64_t sl_host_number(const char *text, const char *key, uint64_t other)
{
        const char *value = find_value(text, key);
        uint64_t number;
        char *end;

        if (!value || *value < '0' || *value > '9')
                return other;
        errno = 0;
        number = strtoull(value, &end, 10);
        return errno ? other : number;
}

void sl_host_cpus(const char *text, cpu_set_t *ret_cpus)
{
        char part[32], wish[SL_WISH_BYTES];

        CPU_ZERO(ret_cpus);
        while (*text) {
                size_t bytes = strcspn(text, ",\n");

                snprintf(part, sizeof(part), "%.*s", (int)bytes, text);
                (void)sl_value_cores(part, ret_cpus, wish);
                text += bytes + (text[bytes] != 0);
        }
}
