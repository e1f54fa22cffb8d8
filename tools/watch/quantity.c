/* SPDX-License-Identifier: Apache-2.0 */
#include "quantity.h"

#include "base/utf8.h"

#include <stdio.h>

/* Decimals that make three digits of it. */
static int decimals(double value)
{
        return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

/* @units: what each step of @base means; the last one takes all that is larger. */
static const char *scaled(double value, double base, const char *const *units, uint32_t n_units, char *ret_text)
{
        uint32_t unit = 0;

        while (unit + 1 < n_units && value >= base * 0.9995) {
                value /= base;
                unit++;
        }
        snprintf(ret_text, QUANTITY_BYTES, "%.*f%s", decimals(value), value, units[unit]);
        return ret_text;
}

const char *quantity_count(double value, char ret_text[QUANTITY_BYTES])
{
        static const char *const units[] = {"", "k", "M", "G", "T"};

        if (value >= 999.5 || value < 0)
                return scaled(value, 1000, units, 5, ret_text);
        if (value == (double)(uint64_t)value || value >= 99.95)
                snprintf(ret_text, QUANTITY_BYTES, "%.0f", value);
        else
                snprintf(ret_text, QUANTITY_BYTES, "%.*f", decimals(value), value);
        return ret_text;
}

const char *quantity_time(uint64_t ns, char ret_text[QUANTITY_BYTES])
{
        static const char *const units[] = {"ns", "us", "ms", "s"};

        if (ns >= 100000000000u)
                return quantity_age(ns, ret_text);
        if (ns < 1000) {
                snprintf(ret_text, QUANTITY_BYTES, ns ? "%uns" : "%u", (unsigned)ns);
                return ret_text;
        }
        return scaled((double)ns, 1000, units, 4, ret_text);
}

const char *quantity_age(uint64_t ns, char ret_text[QUANTITY_BYTES])
{
        uint64_t seconds = ns / 1000000000u, minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

        if (days)
                snprintf(ret_text, QUANTITY_BYTES, "%llud%02lluh", (unsigned long long)days, (unsigned long long)hours % 24);
        else if (hours)
                snprintf(ret_text, QUANTITY_BYTES, "%lluh%02llum", (unsigned long long)hours, (unsigned long long)minutes % 60);
        else if (minutes)
                snprintf(ret_text, QUANTITY_BYTES, "%llum%02llus", (unsigned long long)minutes, (unsigned long long)seconds % 60);
        else
                snprintf(ret_text, QUANTITY_BYTES, "%llus", (unsigned long long)seconds);
        return ret_text;
}

const char *quantity_bytes(uint64_t bytes, char ret_text[QUANTITY_BYTES])
{
        static const char *const units[] = {"B", "K", "M", "G", "T", "P"};

        if (bytes < 1000) {
                snprintf(ret_text, QUANTITY_BYTES, "%uB", (unsigned)bytes);
                return ret_text;
        }
        return scaled((double)bytes, 1024, units, 6, ret_text);
}

const char *quantity_share(double share, char ret_text[QUANTITY_BYTES])
{
        snprintf(ret_text, QUANTITY_BYTES, "%.0f%%", share * 100);
        return ret_text;
}

const char *quantity_text(const char *text, char *ret_text, size_t bytes)
{
        return sl_utf8_clean(sl_utf8_fit(text, ret_text, bytes), ret_text, bytes);
}
