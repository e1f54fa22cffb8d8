/* SPDX-License-Identifier: Apache-2.0 */
#include "base/value.h"

#include "base/dim_sizes.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wish(char *ret_wish, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int wish(char *ret_wish, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(ret_wish, SL_WISH_BYTES, format, args);
        va_end(args);
        return -EINVAL;
}

/* Decimal digits at the start of @text; *ret_end points behind them. */
static bool digits(const char *text, uint64_t *ret_number, const char **ret_end)
{
        char *end;

        if (!isdigit((unsigned char)text[0]))
                return false;
        errno = 0;
        *ret_number = strtoull(text, &end, 10);
        *ret_end = end;
        return errno == 0;
}

int sl_value_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number, char *ret_wish)
{
        const char *end;
        uint64_t number;

        if (!digits(text, &number, &end) || *end || number < min || number > max)
                return wish(ret_wish, "not a number from %llu to %llu", (unsigned long long)min, (unsigned long long)max);
        *ret_number = number;
        return 0;
}

/* 10, 20, ... for "K", "MiB"; 0 for "" and "B"; -1 for anything else. */
static int unit_shift(const char *unit)
{
        static const char letters[] = "KMGT";

        if (!*unit || strcmp(unit, "B") == 0)
                return 0;
        const char *letter = strchr(letters, toupper((unsigned char)unit[0]));
        bool known = letter && (!unit[1] || strcmp(unit + 1, "iB") == 0);
        return known ? 10 * (int)(letter - letters + 1) : -1;
}

int sl_value_bytes(const char *text, uint64_t min, uint64_t max, uint64_t *ret_bytes, char *ret_wish)
{
        const char *end;
        uint64_t number;
        bool good = digits(text, &number, &end);
        int shift = good ? unit_shift(end + strspn(end, " ")) : -1;

        if (shift < 0)
                return wish(ret_wish, "not a size, such as 4096 or 64 MiB");
        if (number > UINT64_MAX >> shift || number << shift < min || number << shift > max)
                return wish(ret_wish, "not from %llu to %llu bytes", (unsigned long long)min, (unsigned long long)max);
        *ret_bytes = number << shift;
        return 0;
}

int sl_value_choice(const char *text, const char *const *names, uint32_t n, uint64_t *ret_index, char *ret_wish)
{
        static const char more[] = ", ...";
        const char *between = ", ";
        size_t used, all;

        for (uint32_t i = 0; i < n; i++) {
                if (strcmp(text, names[i]) == 0) {
                        *ret_index = i;
                        return 0;
                }
        }
        wish(ret_wish, "not one of ");
        all = used = strlen(ret_wish);
        for (uint32_t i = 0; i < n; i++)
                all += strlen(names[i]) + 2;
        if (all > SL_WISH_FULL_BYTES)
                between = ",";
        for (uint32_t i = 0; i < n; i++) {
                if (used + strlen(names[i]) + 2 * sizeof(more) > SL_WISH_BYTES) {
                        strcpy(ret_wish + used, more);
                        break;
                }
                used += (size_t)snprintf(ret_wish + used, SL_WISH_BYTES - used, "%s%s", i ? between : "", names[i]);
        }
        return -EINVAL;
}

int sl_value_cores(const char *text, cpu_set_t *set, char *ret_wish)
{
        const char *end;
        uint64_t first, last;
        bool good = digits(text, &first, &end);

        last = first;
        if (good && *end == '-')
                good = digits(end + 1, &last, &end);
        if (!good || *end || first > last || last >= CPU_SETSIZE)
                return wish(ret_wish, "not a core or a range of cores such as 2-5, below %d", CPU_SETSIZE);
        for (uint64_t core = first; core <= last; core++)
                CPU_SET((int)core, set);
        return 0;
}

static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

int sl_value_name(const char *text, char *ret_wish)
{
        size_t bytes = strlen(text);

        if (bytes == 0 || bytes > 63 || strspn(text, allowed) != bytes || text[0] == '.')
                return wish(ret_wish, "not a name: 1 to 63 of letters, digits, - _ and . (no dot at the start)");
        return 0;
}

/* Unicode's categories Z and Cf, its control characters and what is no character (version 15). */
static bool is_unseen(uint32_t code)
{
        static const uint32_t ranges[][2] = {{0x80, 0xa0}, {0xad, 0xad}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd},
                {0x70f, 0x70f}, {0x890, 0x891}, {0x8e2, 0x8e2}, {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200f},
                {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000}, {0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb},
                {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                {0xe0000, 0xe0fff}};

        for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
                if (code >= ranges[i][0] && code <= ranges[i][1])
                        return true;
        return (code & 0xfffe) == 0xfffe;
}

/* Bytes of @text before the first that no name of a model has. */
static size_t named_bytes(const char *text, size_t length)
{
        size_t at = 0, bytes;

        while (at < length) {
                uint32_t code = sl_utf8_code(text + at, length - at, &bytes);

                if (bytes == 0 || (bytes == 1 && !strchr(allowed, text[at])) || (bytes > 1 && is_unseen(code)))
                        break;
                at += bytes;
        }
        return at;
}

static int check_model_name(const char *text, size_t bytes, char *ret_wish)
{
        if (bytes > SL_NAME_MAX)
                return wish(ret_wish, "not a name: it has %zu bytes, a model's has at most %d", bytes, SL_NAME_MAX);
        if (bytes == 0 || text[0] == '.' || named_bytes(text, bytes) < bytes)
                return wish(ret_wish,
                        "not a name: 1 to %d bytes of letters, digits, - _ . and visible characters beyond ASCII, in UTF-8 "
                        "(no dot at the start)",
                        SL_NAME_MAX);
        return 0;
}

int sl_value_model_name(const char *text, char *ret_wish)
{
        return check_model_name(text, strlen(text), ret_wish);
}

int sl_value_model_version(const char *text, char *ret_wish)
{
        size_t bytes = strcspn(text, ":");
        uint64_t version;
        int r = check_model_name(text, bytes, ret_wish);

        return r < 0 || !text[bytes] ? r : sl_value_number(text + bytes + 1, 1, INT64_MAX, &version, ret_wish);
}

int sl_value_weight(const char *text, float *ret_weight, char *ret_wish)
{
        char *end;
        float weight = strtof(text, &end);

        if (end == text || *end || !isfinite(weight) || weight < 0 || isspace((unsigned char)text[0]))
                return wish(ret_wish, "not a finite number of at least 0");
        *ret_weight = weight;
        return 0;
}

int sl_value_real(const char *text, double min, double max, double *ret_real, char *ret_wish)
{
        char *end;
        double real = strtod(text, &end);

        if (end == text || *end || !(real >= min && real <= max) || isspace((unsigned char)text[0]))
                return wish(ret_wish, "not a number from %g to %g", min, max);
        *ret_real = real;
        return 0;
}

int sl_value_flag(const char *text, bool *ret_flag, char *ret_wish)
{
        if (strcmp(text, "true") && strcmp(text, "false"))
                return wish(ret_wish, "neither true nor false");
        *ret_flag = *text == 't';
        return 0;
}
