/* SPDX-License-Identifier: Apache-2.0 */
#include "pbtxt.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pbtxt {
        char *text; /* names and values are parts of it, terminated in place */
        struct pbtxt_field *fields;
        struct pbtxt_field *first;
};

struct parser {
        const char *path;
        char *at;
        uint32_t line, depth, used, room;
        struct pbtxt_field *fields;
        struct sl_error *error;
};

static int parse_fields(struct parser *parser, char end, struct pbtxt_field **ret_first);

static int parse_fail(const struct parser *parser, const char *what)
{
        return sl_error_set(parser->error, EINVAL, "%s:%u: %s", parser->path, parser->line, what);
}

static void skip_blanks(struct parser *parser)
{
        for (; *parser->at; parser->at++) {
                if (*parser->at == '#')
                        while (parser->at[1] && parser->at[1] != '\n')
                                parser->at++;
                else if (*parser->at == '\n')
                        parser->line++;
                else if (!isspace((unsigned char)*parser->at))
                        return;
        }
}

static bool take(struct parser *parser, char wanted)
{
        skip_blanks(parser);
        if (*parser->at != wanted)
                return false;
        parser->at++;
        return true;
}

static bool is_word(char c)
{
        return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '+';
}

/* Moves the word one byte to the left, so that there is room to terminate it. There is always a byte: the text begins with one. */
static char *take_word(struct parser *parser)
{
        skip_blanks(parser);
        char *start = parser->at;
        size_t n;

        while (is_word(*parser->at))
                parser->at++;
        n = (size_t)(parser->at - start);
        if (n == 0)
                return NULL;
        memmove(start - 1, start, n);
        start[n - 1] = 0;
        return start - 1;
}

static char unescaped(char c)
{
        return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* Adjacent strings are one. What is written never passes what is read. */
static int take_string(struct parser *parser, char **ret_text)
{
        char *start = parser->at, *to = parser->at;

        for (skip_blanks(parser); *parser->at == '"' || *parser->at == '\''; skip_blanks(parser)) {
                char quote = *parser->at++;

                for (; *parser->at != quote; parser->at++) {
                        if (!*parser->at || *parser->at == '\n')
                                return parse_fail(parser, "a string does not end in its line");
                        if (*parser->at == '\\' && parser->at[1])
                                *to++ = unescaped(*++parser->at);
                        else
                                *to++ = *parser->at;
                }
                parser->at++;
        }
        *to = 0;
        *ret_text = start;
        return 0;
}

static struct pbtxt_field *new_field(struct parser *parser, const char *name)
{
        struct pbtxt_field *field;

        if (parser->used == parser->room)
                return NULL;
        field = &parser->fields[parser->used++];
        *field = (struct pbtxt_field){.name = name, .line = parser->line};
        return field;
}

/* { ... }, a string, or a word. */
static int parse_value(struct parser *parser, struct pbtxt_field *field)
{
        char *text = NULL;
        int result = 0;

        field->line = parser->line;
        if (take(parser, '{'))
                return parse_fields(parser, '}', &field->first);
        if (take(parser, '<'))
                return parse_fields(parser, '>', &field->first);
        skip_blanks(parser);
        if (*parser->at == '"' || *parser->at == '\'')
                result = take_string(parser, &text);
        else
                text = take_word(parser);
        if (result == 0 && !text)
                return parse_fail(parser, "a value is expected");
        field->value = text;
        return result;
}

static int parse_list(struct parser *parser, const char *name, struct pbtxt_field ***link)
{
        if (take(parser, ']'))
                return 0;
        do {
                struct pbtxt_field *field = new_field(parser, name);
                int result = field ? parse_value(parser, field) : parse_fail(parser, "too many fields");

                if (result < 0)
                        return result;
                **link = field;
                *link = &field->next;
        } while (take(parser, ','));
        return take(parser, ']') ? 0 : parse_fail(parser, "a list ends with ]");
}

static int parse_field(struct parser *parser, struct pbtxt_field ***link)
{
        const char *name = take_word(parser);
        struct pbtxt_field *field;
        int result;

        if (!name)
                return parse_fail(parser, "the name of a field is expected");
        bool colon = take(parser, ':');
        if (take(parser, '['))
                return parse_list(parser, name, link);
        skip_blanks(parser);
        if (!colon && *parser->at != '{' && *parser->at != '<')
                return parse_fail(parser, "a : or a { is expected after the name of a field");
        field = new_field(parser, name);
        result = field ? parse_value(parser, field) : parse_fail(parser, "too many fields");
        if (result < 0)
                return result;
        **link = field;
        *link = &field->next;
        return 0;
}

/* Up to @end, 0 for the end of the text. */
static int parse_fields(struct parser *parser, char end, struct pbtxt_field **ret_first)
{
        struct pbtxt_field **link = ret_first;

        if (++parser->depth > PBTXT_DEPTH_MAX)
                return parse_fail(parser, "messages are nested too deeply");
        for (;;) {
                skip_blanks(parser);
                if (*parser->at == end)
                        break;
                if (!*parser->at)
                        return parse_fail(parser, "a message does not end");
                int result = parse_field(parser, &link);
                if (result < 0)
                        return result;
                if (!take(parser, ','))
                        take(parser, ';');
        }
        parser->at += end != 0;
        parser->depth--;
        return 0;
}

/* Behind one byte of blank, for take_word(). */
static int read_text(const char *path, char **ret_text, size_t *ret_bytes, struct sl_error *error)
{
        FILE *file = fopen(path, "re");
        char *text = malloc(PBTXT_BYTES_MAX + 2u);
        size_t n = file && text ? fread(text + 1, 1, PBTXT_BYTES_MAX, file) : 0;
        int result = 0;

        if (!file || (text && ferror(file)))
                result = sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
        else if (!text)
                result = sl_error_set(error, ENOMEM, "%s: out of memory", path);
        else if (n == PBTXT_BYTES_MAX)
                result = sl_error_set(error, E2BIG, "%s: more than %u bytes", path, PBTXT_BYTES_MAX);
        else if (memchr(text + 1, 0, n))
                result = sl_error_set(error, EINVAL, "%s: no text", path);
        if (file)
                fclose(file);
        if (result < 0) {
                free(text);
                return result;
        }
        text[0] = ' ';
        text[n + 1] = 0;
        *ret_text = text;
        *ret_bytes = n;
        return 0;
}

int pbtxt_read(const char *path, struct pbtxt **ret_file, struct sl_error *error)
{
        struct pbtxt *file = calloc(1, sizeof(*file));
        size_t bytes = 0;
        int result = file ? read_text(path, &file->text, &bytes, error) : sl_error_set(error, ENOMEM, "%s: out of memory", path);

        if (result == 0) {
                uint32_t room = (uint32_t)bytes / 2 + 1; /* a field has a name and a value, each of one byte at least */

                file->fields = calloc(room, sizeof(*file->fields));
                struct parser parser = {
                        .path = path, .at = file->text, .line = 1, .fields = file->fields, .room = room, .error = error};
                result = file->fields ? parse_fields(&parser, 0, &file->first)
                                      : sl_error_set(error, ENOMEM, "%s: out of memory", path);
        }
        if (result < 0)
                pbtxt_free(file);
        else
                *ret_file = file;
        return result;
}

struct pbtxt *pbtxt_free(struct pbtxt *file)
{
        if (file) {
                free(file->text);
                free(file->fields);
        }
        free(file);
        return NULL;
}

const struct pbtxt_field *pbtxt_first(const struct pbtxt *file)
{
        return file->first;
}

const struct pbtxt_field *pbtxt_find(const struct pbtxt_field *fields, const char *name)
{
        while (fields && strcmp(fields->name, name) != 0)
                fields = fields->next;
        return fields;
}
