/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
        struct scrape *scrape;
        bool openmetrics, ended;
        char family[256], helped[256], type[16];
        char *families; /* "\nname\n" of each that has begun */
};

/* ---- lines that describe ---- */

static void begin_family(struct parser *parser, const char *name, const char *type)
{
        char mark[300];

        snprintf(mark, sizeof(mark), "\n%s\n", name);
        cr_assert_null(strstr(parser->families, mark), "family %s comes in parts", name);
        cr_assert_str_eq(parser->helped, name, "TYPE of %s has no HELP before it", name);
        parser->families = realloc(parser->families, strlen(parser->families) + sizeof(mark));
        strcat(parser->families, mark);
        snprintf(parser->family, sizeof(parser->family), "%s", name);
        snprintf(parser->type, sizeof(parser->type), "%.15s", type);
        cr_assert(strstr(parser->openmetrics ? "counter gauge histogram info" : "counter gauge histogram", type), "type %s", type);
        if (strcmp(type, "counter") == 0)
                cr_assert_eq(strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0, !parser->openmetrics, "%s", name);
}

static void parse_description(struct parser *parser, const char *line)
{
        char name[256], rest[1024];

        if (strcmp(line, "# EOF") == 0) {
                parser->ended = true;
                return;
        }
        cr_assert_eq(sscanf(line, "# %*s %255s %1023[^\n]", name, rest), 2, "%s", line);
        if (strncmp(line, "# HELP ", 7) == 0)
                strcpy(parser->helped, name);
        else if (strncmp(line, "# TYPE ", 7) == 0)
                begin_family(parser, name, rest);
        else
                cr_assert(parser->openmetrics && strncmp(line, "# UNIT ", 7) == 0 && strcmp(name, parser->family) == 0 &&
                                  strcmp(name + strlen(name) - strlen(rest), rest) == 0,
                        "%s", line);
}

/* ---- samples ---- */

static const char *skip_name(const char *at, const char *line)
{
        cr_assert(isalpha((unsigned char)*at) || *at == '_', "no name at \"%s\" of: %s", at, line);
        while (isalnum((unsigned char)*at) || *at == '_')
                at++;
        return at;
}

/* Behind the closing quote. */
static const char *skip_value(const char *at, const char *line)
{
        cr_assert_eq(*at, '"', "%s", line);
        for (at++; *at != '"'; at++) {
                cr_assert_neq(*at, 0, "a value has no end: %s", line);
                if (*at == '\\') {
                        at++;
                        cr_assert(*at == '\\' || *at == '"' || *at == 'n', "a wrong escape: %s", line);
                }
        }
        return at + 1;
}

static const char *skip_labels(const char *at, const char *line)
{
        if (*at != '{')
                return at;
        do {
                at = skip_name(at + 1, line);
                cr_assert_eq(*at, '=', "%s", line);
                at = skip_value(at + 1, line);
        } while (*at == ',');
        cr_assert_eq(*at, '}', "%s", line);
        return at + 1;
}

static bool is_suffix_of(const struct parser *parser, const char *suffix, size_t bytes)
{
        const char *wanted = strcmp(parser->type, "histogram") == 0 ? " _bucket _sum _count "
                             : !parser->openmetrics                 ? "  "
                             : strcmp(parser->type, "counter") == 0 ? " _total "
                             : strcmp(parser->type, "info") == 0    ? " _info "
                                                                    : "  ";
        char mark[32];

        snprintf(mark, sizeof(mark), " %.*s ", (int)bytes, suffix);
        return strstr(wanted, mark);
}

static void parse_sample(struct parser *parser, const char *line)
{
        const char *name_end = skip_name(line, line), *end = skip_labels(name_end, line);
        size_t family_bytes = strlen(parser->family);
        struct scrape *scrape = parser->scrape;
        char *number_end;

        cr_assert_eq(strncmp(line, parser->family, family_bytes), 0, "%s is not of the family %s", line, parser->family);
        cr_assert(is_suffix_of(parser, line + family_bytes, (size_t)(name_end - line) - family_bytes), "%s", line);
        cr_assert_eq(*end, ' ', "%s", line);
        if (scrape->n == scrape->room) {
                scrape->room = scrape->room ? 2 * scrape->room : 256;
                scrape->samples = realloc(scrape->samples, scrape->room * sizeof(*scrape->samples));
        }

        struct scrape_sample *sample = &scrape->samples[scrape->n++];

        *sample = (struct scrape_sample){.name = strndup(line, (size_t)(end - line)), .family = strdup(parser->family)};
        strcpy(sample->type, parser->type);
        sample->value = strtod(end + 1, &number_end);
        cr_assert(number_end > end + 1 && *number_end == 0, "%s", line);
}

/* ---- the whole ---- */

static int compare(const void *a, const void *b)
{
        return strcmp(((const struct scrape_sample *)a)->name, ((const struct scrape_sample *)b)->name);
}

/* Buckets stand in order, none below the one before, the last for all, and as many as the count says. */
static void check_histograms(const struct scrape *scrape)
{
        double below = 0, bound = -1;

        for (size_t i = 0; i < scrape->n; i++) {
                const struct scrape_sample *sample = &scrape->samples[i];
                const char *le = strstr(sample->name, "le=\"");

                if (strcmp(sample->type, "histogram") != 0)
                        continue;
                if (strstr(sample->name, "_bucket{")) {
                        double next = strtod(le + 4, NULL);

                        cr_assert(next > bound && sample->value >= below, "%s", sample->name);
                        bound = next;
                        below = sample->value;
                } else if (strstr(sample->name, "_count{")) {
                        cr_assert(isinf(bound) && sample->value == below, "%s is not the last bucket", sample->name);
                        below = 0;
                        bound = -1;
                }
        }
}

void scrape_parse(const char *text, bool openmetrics, struct scrape *ret_scrape)
{
        struct parser parser = {.scrape = ret_scrape, .openmetrics = openmetrics, .families = strdup("")};
        char *copy = strdup(text), *at = copy, *line;

        *ret_scrape = (struct scrape){0};
        cr_assert_eq(text[strlen(text) - 1], '\n', "the last line has no end");
        copy[strlen(copy) - 1] = 0;
        while ((line = strsep(&at, "\n"))) {
                cr_assert_not(parser.ended, "behind the end: %s", line);
                if (*line == '#')
                        parse_description(&parser, line);
                else
                        parse_sample(&parser, line);
        }
        cr_assert_eq(parser.ended, openmetrics, "# EOF ends OpenMetrics alone");
        free(copy);
        free(parser.families);
        check_histograms(ret_scrape);
        qsort(ret_scrape->samples, ret_scrape->n, sizeof(*ret_scrape->samples), compare);
        for (size_t i = 1; i < ret_scrape->n; i++)
                cr_assert_str_neq(ret_scrape->samples[i - 1].name, ret_scrape->samples[i].name, "a sample that comes twice");
}

void scrape_deinit(struct scrape *scrape)
{
        for (size_t i = 0; i < scrape->n; i++) {
                free(scrape->samples[i].name);
                free(scrape->samples[i].family);
        }
        free(scrape->samples);
        *scrape = (struct scrape){0};
}

const struct scrape_sample *scrape_find(const struct scrape *scrape, const char *name)
{
        const struct scrape_sample key = {.name = (char *)name};

        return bsearch(&key, scrape->samples, scrape->n, sizeof(key), compare);
}

double scrape_value(const struct scrape *scrape, const char *name)
{
        const struct scrape_sample *sample = scrape_find(scrape, name);

        cr_assert_not_null(sample, "no %s among %zu samples", name, scrape->n);
        return sample->value;
}
