/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_file.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "profile_store.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 64
#define FILE_BYTES (256u << 20)
#define DIGITS     17 /* after which a double is the same again */

SL_DEFINE_CLEANUP(struct sl_profile_store *, sl_profile_store_free)
SL_DEFINE_CLEANUP(json_t *, json_decref)

/* ---- CSV ---- */

static void write_cell(const char *text, FILE *stream)
{
        if (!strpbrk(text, ",\"\r\n") && text[0] != '#') {
                fputs(text, stream);
                return;
        }
        fputc('"', stream);
        for (; *text; text++) {
                if (*text == '"')
                        fputc('"', stream);
                fputc(*text, stream);
        }
        fputc('"', stream);
}

static void write_csv(const struct sl_profile_list *list, FILE *stream)
{
        char text[SL_PROFILE_TEXT_BYTES];

        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++)
                fprintf(stream, "%s%s", field == sl_profile_fields ? "" : ",", field->name);
        fputc('\n', stream);
        for (size_t i = 0; i < list->n; i++) {
                for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++) {
                        fputs(field == sl_profile_fields ? "" : ",", stream);
                        write_cell(sl_profile_field_text(&list->items[i], field, text), stream);
                }
                fputc('\n', stream);
        }
}

/* Where in the text the reader is. */
struct reader {
        char *at;
        unsigned line;
        char notes[SL_PROFILE_TEXT_BYTES];
};

/* One cell, without its quotes, in place; *ret_last: nothing follows in its line. NULL: a quote is not closed. */
static char *read_cell(struct reader *reader, bool *ret_last)
{
        char *from = reader->at, *to = from, *cell = from;
        bool quoted = *from == '"', open = quoted;

        from += quoted;
        while (*from && (open || !strchr(",\r\n", *from))) {
                if (quoted && *from == '"') {
                        open = from[1] == '"' && open;
                        from++;
                        if (!open)
                                continue;
                }
                reader->line += *from == '\n';
                *to++ = *from++;
        }
        *ret_last = *from != ',';
        from += *from == '\r';
        reader->line += *from == '\n';
        reader->at = from + (*from != 0);
        *to = 0;
        return open ? NULL : cell;
}

/* "# text": joined to what stands in front. */
static void read_note(struct reader *reader)
{
        size_t bytes = strcspn(reader->at, "\r\n"), used = strlen(reader->notes);

        snprintf(reader->notes + used, sizeof(reader->notes) - used, "%s%.*s", used ? " " : "",
                (int)(bytes - strspn(reader->at, "# ")), reader->at + strspn(reader->at, "# "));
        reader->at += bytes;
        reader->at += *reader->at == '\r';
        reader->at += *reader->at == '\n';
        reader->line++;
}

static int read_names(
        struct reader *reader, const struct sl_profile_field *fields[FIELDS_MAX], uint32_t *ret_n, struct sl_error *error)
{
        bool last = false;
        uint32_t n = 0;

        while (!last) {
                unsigned line = reader->line;
                const char *name = read_cell(reader, &last);

                if (!name || n == FIELDS_MAX)
                        return name ? sl_error_set(error, EBADMSG, "line %u: more than %d fields", line, FIELDS_MAX)
                                    : sl_error_set(error, EBADMSG, "line %u: a quote is not closed", line);
                fields[n] = sl_profile_field_find(name);
                if (!fields[n++])
                        return sl_error_set(error, EBADMSG, "line %u: no field \"%s\"", line, name);
        }
        *ret_n = n;
        return 0;
}

static int read_row(struct reader *reader, const struct sl_profile_field *const *fields, uint32_t n,
        struct sl_worker_profile *profile, struct sl_error *error)
{
        const unsigned line = reader->line;
        bool last = false;
        uint32_t i = 0;

        sl_worker_profile_init(profile);
        for (; i < n && !last; i++) {
                const char *cell = read_cell(reader, &last);
                int r = cell ? sl_profile_field_set(profile, fields[i], cell, error)
                             : sl_error_set(error, EBADMSG, "a quote is not closed");

                if (r < 0)
                        return sl_error_prefix(error, r, "line %u", line);
        }
        if (i < n || !last)
                return sl_error_set(error, EBADMSG, "line %u has not %u fields", line, n);
        if (!profile->source[0])
                strcpy(profile->source, reader->notes);
        return 0;
}

static int read_csv(char *text, struct sl_profile_list *list, struct sl_error *error)
{
        struct reader reader = {.at = text, .line = 1};
        const struct sl_profile_field *fields[FIELDS_MAX];
        struct sl_worker_profile profile;
        uint32_t n = 0;
        int r = 0;

        while (*reader.at && r == 0) {
                if (*reader.at == '#') {
                        read_note(&reader);
                } else if (!n) {
                        r = read_names(&reader, fields, &n, error);
                } else {
                        r = read_row(&reader, fields, n, &profile, error);
                        if (r == 0)
                                r = sl_profile_list_add(list, &profile);
                }
        }
        return r == 0 && !n ? sl_error_set(error, EBADMSG, "no line with names of fields") : r;
}

/* ---- JSON ---- */

static json_t *field_json(const struct sl_worker_profile *profile, const struct sl_profile_field *field)
{
        if (field->kind == SL_PROFILE_TEXT)
                return json_string(sl_profile_text(profile, field));
        if (field->kind == SL_PROFILE_COUNT)
                return json_integer((json_int_t)*sl_profile_count(profile, field));
        return isnan(*sl_profile_figure(profile, field)) ? json_null() : json_real(*sl_profile_figure(profile, field));
}

static int write_json(const struct sl_profile_list *list, FILE *stream)
{
        SL_CLEANUP(sl_cleanup_json_decref)
        json_t *document = json_pack("{s:i, s:[]}", "schema", SL_PROFILE_STORE_VERSION, "profiles");
        json_t *profiles = json_object_get(document, "profiles");

        for (size_t i = 0; i < list->n; i++) {
                json_t *object = json_object();

                for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++)
                        json_object_set_new(object, field->name, field_json(&list->items[i], field));
                json_array_append_new(profiles, object);
        }
        if (!document || json_array_size(profiles) != list->n)
                return -ENOMEM;
        return json_dumpf(document, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) < 0 || fputc('\n', stream) < 0 ? -EIO : 0;
}

static int take_value(
        struct sl_worker_profile *profile, const struct sl_profile_field *field, const json_t *value, struct sl_error *error)
{
        char text[64];

        if (json_is_string(value))
                return sl_profile_field_set(profile, field, json_string_value(value), error);
        if (json_is_null(value) && field->kind == SL_PROFILE_FIGURE)
                return sl_profile_field_set(profile, field, "", error);
        if (!json_is_number(value) || field->kind == SL_PROFILE_TEXT)
                return sl_error_set(error, EBADMSG, "%s: a value of a wrong type", field->name);
        snprintf(text, sizeof(text), "%.*g", DIGITS, json_number_value(value));
        return sl_profile_field_set(profile, field, text, error);
}

static int take_object(json_t *object, struct sl_worker_profile *profile, struct sl_error *error)
{
        const char *name;
        json_t *value;

        sl_worker_profile_init(profile);
        if (!json_is_object(object))
                return sl_error_set(error, EBADMSG, "it is no object");
        json_object_foreach(object, name, value)
        {
                const struct sl_profile_field *field = sl_profile_field_find(name);
                int r = field ? take_value(profile, field, value, error) : sl_error_set(error, EBADMSG, "no field \"%s\"", name);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_json(const char *text, struct sl_profile_list *list, struct sl_error *error)
{
        json_error_t said;
        SL_CLEANUP(sl_cleanup_json_decref) json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &said);
        json_t *profiles = json_object_get(document, "profiles");
        json_int_t schema = json_integer_value(json_object_get(document, "schema"));
        struct sl_worker_profile profile;
        int r = 0;

        if (!document)
                return sl_error_set(error, EBADMSG, "line %d: %s", said.line, said.text);
        if (schema > SL_PROFILE_STORE_VERSION)
                return sl_error_set(error, EPROTONOSUPPORT, "schema %lld; this program knows up to %d", (long long)schema,
                        SL_PROFILE_STORE_VERSION);
        if (!json_is_array(profiles))
                return sl_error_set(error, EBADMSG, "it has no array \"profiles\"");
        for (size_t i = 0; i < json_array_size(profiles) && r == 0; i++) {
                r = take_object(json_array_get(profiles, i), &profile, error);
                r = r < 0 ? sl_error_prefix(error, r, "profile %zu", i + 1) : sl_profile_list_add(list, &profile);
        }
        return r;
}

/* ---- files ---- */

int profile_file_write(const struct sl_profile_list *list, bool json, FILE *stream)
{
        if (json)
                return write_json(list, stream);
        write_csv(list, stream);
        return ferror(stream) ? -EIO : 0;
}

static int read_text(FILE *stream, char **ret_text, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *text = NULL;
        size_t used = 0, room = 0;

        do {
                char *more;

                room = room ? 2 * room : 65536;
                if (room > FILE_BYTES)
                        return sl_error_set(error, EFBIG, "more than %u bytes", FILE_BYTES);
                more = realloc(text, room);
                if (!more)
                        return sl_error_set(error, ENOMEM, "no memory for %zu bytes", room);
                text = more;
                used += fread(text + used, 1, room - used - 1, stream);
        } while (used == room - 1);
        text[used] = 0;
        *ret_text = sl_take(text);
        return ferror(stream) ? sl_error_set(error, EIO, "%s", strerror(errno)) : 0;
}

static int read_store(const char *path, struct sl_profile_list *list, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_profile_store_free) struct sl_profile_store *store = NULL;
        int r = sl_profile_store_open(path, false, &store, error);

        return r < 0 ? r : sl_profile_store_read(store, list, error);
}

int profile_file_read(const char *path, struct sl_profile_list *list, struct sl_error *error)
{
        static const char magic[] = "SQLite format 3";
        SL_CLEANUP(sl_cleanup_free) char *text = NULL;
        FILE *stream = fopen(path, "re");
        int r;

        if (!stream)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        r = read_text(stream, &text, error);
        fclose(stream);
        if (r == 0 && strcmp(text, magic) == 0)
                return read_store(path, list, error);
        if (r == 0)
                r = text[strspn(text, " \t\r\n")] == '{' ? read_json(text, list, error) : read_csv(text, list, error);
        return r < 0 ? sl_error_prefix(error, r, "\"%s\"", path) : 0;
}
