/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_profile.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sl_profile_field sl_profile_fields[] = {
#define X(name, kind, bytes, is_key, text)                                                                                         \
        {#name, SL_PROFILE_##kind, offsetof(struct sl_worker_profile, name), bytes, is_key, text},
        SL_WORKER_PROFILE_FIELDS(X){NULL, SL_PROFILE_TEXT, 0, 0, false, NULL},
#undef X
};

const struct sl_profile_field *sl_profile_field_find(const char *name)
{
        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++)
                if (strcmp(field->name, name) == 0)
                        return field;
        return NULL;
}

static void *member(const struct sl_worker_profile *profile, const struct sl_profile_field *field)
{
        return (char *)profile + field->offset;
}

double *sl_profile_figure(const struct sl_worker_profile *profile, const struct sl_profile_field *field)
{
        return member(profile, field);
}

uint64_t *sl_profile_count(const struct sl_worker_profile *profile, const struct sl_profile_field *field)
{
        return member(profile, field);
}

char *sl_profile_text(const struct sl_worker_profile *profile, const struct sl_profile_field *field)
{
        return member(profile, field);
}

void sl_worker_profile_init(struct sl_worker_profile *profile)
{
        *profile = (struct sl_worker_profile){.threads = 1};
        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++)
                if (field->kind == SL_PROFILE_FIGURE)
                        *sl_profile_figure(profile, field) = NAN;
}

static int set_text(
        struct sl_worker_profile *profile, const struct sl_profile_field *field, const char *value, struct sl_error *error)
{
        size_t bytes = strlen(value);

        if (bytes >= field->bytes)
                return sl_error_set(
                        error, EINVAL, "%s: \"%s\" has %zu bytes, at most %zu", field->name, value, bytes, field->bytes - 1);
        memcpy(sl_profile_text(profile, field), value, bytes + 1);
        return 0;
}

static int set_number(
        struct sl_worker_profile *profile, const struct sl_profile_field *field, const char *value, struct sl_error *error)
{
        char *end;
        double number = strtod(value, &end);
        bool is_count = field->kind == SL_PROFILE_COUNT;

        if (!*value || *end || !(number >= 0) || !isfinite(number) ||
                (is_count && (number > (double)SL_PROFILE_COUNT_MAX || floor(number) != number)))
                return sl_error_set(
                        error, EINVAL, "%s: \"%s\" is not a %snumber of at least 0", field->name, value, is_count ? "whole " : "");
        if (is_count)
                *sl_profile_count(profile, field) = (uint64_t)number;
        else
                *sl_profile_figure(profile, field) = number;
        return 0;
}

int sl_profile_field_set(
        struct sl_worker_profile *profile, const struct sl_profile_field *field, const char *value, struct sl_error *error)
{
        if (field->kind == SL_PROFILE_TEXT)
                return set_text(profile, field, value, error);
        if (field->kind == SL_PROFILE_FIGURE && !*value) {
                *sl_profile_figure(profile, field) = NAN;
                return 0;
        }
        return set_number(profile, field, value, error);
}

/* The shortest text that is read as the same number. */
static void print_figure(double number, char *text)
{
        text[0] = 0;
        for (int digits = 6; digits <= 17 && !isnan(number); digits++) {
                snprintf(text, SL_PROFILE_TEXT_BYTES, "%.*g", digits, number);
                if (strtod(text, NULL) == number)
                        return;
        }
}

const char *sl_profile_field_text(const struct sl_worker_profile *profile, const struct sl_profile_field *field, char *text)
{
        if (field->kind == SL_PROFILE_TEXT)
                snprintf(text, SL_PROFILE_TEXT_BYTES, "%s", sl_profile_text(profile, field));
        else if (field->kind == SL_PROFILE_COUNT)
                snprintf(text, SL_PROFILE_TEXT_BYTES, "%llu", (unsigned long long)*sl_profile_count(profile, field));
        else
                print_figure(*sl_profile_figure(profile, field), text);
        return text;
}

/* What stands behind "NAME=" in a list with commas; NULL: nothing. */
static const char *find_single(const char *list, const char *name)
{
        size_t bytes = strlen(name);

        for (const char *at = list; at; at = strchr(at, ',')) {
                at += strspn(at, ", ");
                if (strncmp(at, name, bytes) == 0 && at[bytes] == '=')
                        return at + bytes + 1;
        }
        return NULL;
}

const char *sl_profile_origin(const struct sl_worker_profile *profile, const struct sl_profile_field *field, char *text)
{
        const char *single = find_single(profile->origin, field->name);

        text[0] = 0;
        if (field->kind != SL_PROFILE_FIGURE || isnan(*sl_profile_figure(profile, field)))
                return text;
        if (single)
                snprintf(text, SL_PROFILE_TEXT_BYTES, "%.*s", (int)strcspn(single, ","), single);
        else if (strchr(profile->origin, '=') || !profile->origin[0])
                snprintf(text, SL_PROFILE_TEXT_BYTES, "origin not said");
        else
                snprintf(text, SL_PROFILE_TEXT_BYTES, "%s", profile->origin);
        return text;
}

bool sl_profile_is_measured(const struct sl_worker_profile *profile)
{
        return strcmp(profile->origin, "measured") == 0;
}

static bool counts_everywhere(const struct sl_profile_field *field)
{
        return strcmp(field->name, "host") != 0 && strcmp(field->name, "path") != 0;
}

bool sl_profile_is_same(const struct sl_worker_profile *a, const struct sl_worker_profile *b, bool everywhere)
{
        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++) {
                if (!field->is_key || (everywhere && !counts_everywhere(field)))
                        continue;
                if (field->kind == SL_PROFILE_TEXT ? strcmp(sl_profile_text(a, field), sl_profile_text(b, field)) != 0
                                                   : *sl_profile_count(a, field) != *sl_profile_count(b, field))
                        return false;
        }
        return true;
}

int sl_profile_list_add(struct sl_profile_list *list, const struct sl_worker_profile *profile)
{
        if (list->n == list->room) {
                size_t room = list->room ? 2 * list->room : 16;
                struct sl_worker_profile *items = reallocarray(list->items, room, sizeof(*items));

                if (!items)
                        return -ENOMEM;
                list->items = items;
                list->room = room;
        }
        list->items[list->n++] = *profile;
        return 0;
}

void sl_profile_list_deinit(struct sl_profile_list *list)
{
        free(list->items);
        *list = (struct sl_profile_list){0};
}
