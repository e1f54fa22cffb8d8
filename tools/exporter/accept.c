/* SPDX-License-Identifier: Apache-2.0 */
#include "accept.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t"

/* A part of a list: from @begin to @end, without blanks around it. */
struct part {
        const char *begin, *end;
};

/* The part up to @separator; *at goes on behind it, NULL after the last. */
static struct part next_part(const char **at, const char *end, char separator)
{
        const char *found = memchr(*at, separator, (size_t)(end - *at));
        struct part part = {*at, found ? found : end};

        while (part.begin < part.end && strchr(BLANKS, *part.begin))
                part.begin++;
        while (part.begin < part.end && strchr(BLANKS, part.end[-1]))
                part.end--;
        *at = found ? found + 1 : NULL;
        return part;
}

static bool part_is(struct part part, const char *word)
{
        size_t bytes = (size_t)(part.end - part.begin);

        return bytes == strlen(word) && strncasecmp(part.begin, word, bytes) == 0;
}

/* "q=0.75" in thousandths; -1: it is another parameter. */
static int weight_of(struct part part)
{
        int weight = 0, digit = 1000;

        if (part.end - part.begin < 3 || strncasecmp(part.begin, "q=", 2) != 0)
                return -1;
        for (const char *c = part.begin + 2; c < part.end; c++) {
                if (*c == '.')
                        continue;
                if (*c < '0' || *c > '9')
                        return 0;
                weight += (*c - '0') * digit;
                digit /= 10;
        }
        return weight;
}

/* Raises what is wanted of the formats that this range of media names. */
static void weigh_range(struct part range, int *openmetrics, int *text)
{
        const char *at = range.begin;
        struct part media = next_part(&at, range.end, ';');
        int weight = 1000, found;

        while (at) {
                found = weight_of(next_part(&at, range.end, ';'));
                weight = found >= 0 ? found : weight;
        }
        if (part_is(media, "application/openmetrics-text"))
                *openmetrics = weight > *openmetrics ? weight : *openmetrics;
        else if (part_is(media, "text/plain") || part_is(media, "text/*"))
                *text = weight > *text ? weight : *text;
}

enum exposition_format accept_format(const char *accept)
{
        const char *end = accept ? accept + strlen(accept) : NULL;
        int openmetrics = 0, text = 0;

        while (accept)
                weigh_range(next_part(&accept, end, ','), &openmetrics, &text);
        return openmetrics > 0 && openmetrics >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS;
}
