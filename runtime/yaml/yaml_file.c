/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "schema.h"
#include "yaml_empty.h"
#include "yaml_words.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#define DEPTH_MAX   8
#define NESTING_MAX 32
#define ANCHORS_MAX 256

const cyaml_schema_value_t sl_text_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};

struct sl_yaml_file {
        char *path;
        char *text;
        size_t bytes;
        const cyaml_schema_value_t *schema;
        cyaml_config_t config;
        void *data;
        yaml_document_t document;
        bool has_document;
};

/* What libcyaml says while it fails: first the cause, then where it was, the innermost key first. */
struct complaint {
        char cause[200];
        char keys[DEPTH_MAX][64];
        uint32_t n_keys;
        unsigned line; /* of the innermost place; 0: not known */
};

static void take_line(struct complaint *complaint, const char *line)
{
        char key[64];
        unsigned number, column;

        if (sscanf(line, "  in mapping field '%63[^']' (line: %u, column: %u)", key, &number, &column) == 3 ||
                sscanf(line, "  in sequence entry '%63[^']' (line: %u, column: %u)", key, &number, &column) == 3 ||
                (strcpy(key, ""), sscanf(line, "  in mapping (line: %u, column: %u)", &number, &column) == 2)) {
                if (!complaint->line)
                        complaint->line = number;
                if (key[0] && !strchr("0123456789", key[0]) && complaint->n_keys < DEPTH_MAX)
                        strcpy(complaint->keys[complaint->n_keys++], key);
        } else if (!strstr(line, "Backtrace") && !complaint->cause[0]) {
                snprintf(complaint->cause, sizeof(complaint->cause), "%.*s", (int)strcspn(line, "\n"), line);
        }
}

static void on_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
        char line[512];

        if (level < CYAML_LOG_ERROR)
                return;
        vsnprintf(line, sizeof(line), format, args);
        take_line(context, strncmp(line, "Load: ", 6) == 0 ? line + 6 : line);
}

static int read_text(struct sl_yaml_file *file, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat stat;

        if (fd < 0 || fstat(fd, &stat) < 0)
                return sl_error_set(error, errno, "%s: %s", file->path, strerrordesc_np(errno));
        if (!S_ISREG(stat.st_mode))
                return sl_error_set(error, EINVAL, "%s: not a regular file", file->path);
        if (stat.st_size > SL_YAML_BYTES_MAX)
                return sl_error_set(
                        error, EFBIG, "%s: %lld bytes, the limit is %u", file->path, (long long)stat.st_size, SL_YAML_BYTES_MAX);
        file->text = malloc((size_t)stat.st_size + 1);
        if (!file->text)
                return sl_error_set(error, ENOMEM, "%s: out of memory", file->path);
        ssize_t got = read(fd, file->text, (size_t)stat.st_size);
        if (got < 0)
                return sl_error_set(error, errno, "%s: %s", file->path, strerrordesc_np(errno));
        file->bytes = (size_t)got;
        return 0;
}

static int syntax_error(const struct sl_yaml_file *file, const yaml_parser_t *parser, struct sl_error *error)
{
        if (parser->error == YAML_MEMORY_ERROR)
                return sl_error_set(error, ENOMEM, "%s: out of memory", file->path);
        return sl_error_set(error, EINVAL, "%s:%zu: %s", file->path, parser->problem_mark.line + 1,
                parser->problem ? parser->problem : "no YAML");
}

static int load_document(struct sl_yaml_file *file, yaml_parser_t *parser, struct sl_error *error)
{
        yaml_document_t second;

        if (!yaml_parser_load(parser, &file->document))
                return syntax_error(file, parser, error);
        file->has_document = true;
        if (!yaml_document_get_root_node(&file->document))
                return 0;
        if (!yaml_parser_load(parser, &second))
                return syntax_error(file, parser, error);
        yaml_node_t *more = yaml_document_get_root_node(&second);
        size_t line = more ? more->start_mark.line + 1 : 0;
        yaml_document_delete(&second);
        return more ? sl_error_set(error, EINVAL, "%s:%zu: a second document, only one is read", file->path, line) : 0;
}

struct bounded {
        uint32_t depth, anchors;
};

static void count_event(const yaml_event_t *event, struct bounded *bounded)
{
        const yaml_char_t *anchor = NULL;

        if (event->type == YAML_SEQUENCE_START_EVENT)
                anchor = event->data.sequence_start.anchor;
        else if (event->type == YAML_MAPPING_START_EVENT)
                anchor = event->data.mapping_start.anchor;
        else if (event->type == YAML_SCALAR_EVENT)
                anchor = event->data.scalar.anchor;
        bounded->anchors += anchor != NULL;
        bounded->depth += event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
        bounded->depth -= event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT;
}

/* libyaml takes time by the square of how deep lists lie in each other, and by that of the anchors: a file of a megabyte would take
 * half an hour. */
static int check_bounds(struct sl_yaml_file *file, yaml_parser_t *parser, struct sl_error *error)
{
        struct bounded bounded = {0};
        bool ends = false;

        while (!ends) {
                yaml_event_t event;

                if (!yaml_parser_parse(parser, &event))
                        return syntax_error(file, parser, error);
                size_t line = event.start_mark.line + 1;
                count_event(&event, &bounded);
                ends = event.type == YAML_STREAM_END_EVENT;
                yaml_event_delete(&event);
                if (bounded.depth > NESTING_MAX)
                        return sl_error_set(error, EINVAL, "%s:%zu: nested deeper than %u", file->path, line, NESTING_MAX);
                if (bounded.anchors > ANCHORS_MAX)
                        return sl_error_set(error, EINVAL, "%s:%zu: more than %u anchors", file->path, line, ANCHORS_MAX);
        }
        return 0;
}

static int parse(struct sl_yaml_file *file, int (*use)(struct sl_yaml_file *file, yaml_parser_t *parser, struct sl_error *error),
        struct sl_error *error)
{
        yaml_parser_t parser;

        if (!yaml_parser_initialize(&parser))
                return sl_error_set(error, ENOMEM, "%s: out of memory", file->path);
        yaml_parser_set_input_string(&parser, (const unsigned char *)file->text, file->bytes);
        int result = use(file, &parser, error);
        yaml_parser_delete(&parser);
        return result;
}

/* YAML has lists and mappings as keys, for which libcyaml has no word. */
static int check_keys(struct sl_yaml_file *file, struct sl_error *error)
{
        yaml_document_t *document = &file->document;

        for (yaml_node_t *node = document->nodes.start; node < document->nodes.top; node++) {
                if (node->type != YAML_MAPPING_NODE)
                        continue;
                for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
                        const yaml_node_t *key = yaml_document_get_node(document, pair->key);

                        if (key->type != YAML_SCALAR_NODE)
                                return sl_error_set(
                                        error, EINVAL, "%s:%zu: a key is no text", file->path, key->start_mark.line + 1);
                }
        }
        return 0;
}

/* Positions of all keys, and the errors of syntax, which libcyaml reports without their lines. */
static int parse_positions(struct sl_yaml_file *file, struct sl_error *error)
{
        int result = parse(file, check_bounds, error);

        result = result < 0 ? result : parse(file, load_document, error);
        return result < 0 ? result : check_keys(file, error);
}

static bool key_is(const yaml_node_t *key, const char *name, size_t bytes)
{
        return key && key->type == YAML_SCALAR_NODE && key->data.scalar.length == bytes &&
               memcmp(key->data.scalar.value, name, bytes) == 0;
}

/* The key @name in the mapping @node, the last one if it is doubled; its value in *ret_value. */
static yaml_node_t *find_key(yaml_document_t *document, yaml_node_t *node, const char *name, size_t bytes, yaml_node_t **ret_value)
{
        yaml_node_t *found = NULL;

        if (!node || node->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
                yaml_node_t *key = yaml_document_get_node(document, pair->key);

                if (key_is(key, name, bytes)) {
                        found = key;
                        *ret_value = yaml_document_get_node(document, pair->value);
                }
        }
        return found;
}

/* Entry @name, a number from 0, of the list @node. */
static yaml_node_t *find_entry(yaml_document_t *document, yaml_node_t *node, const char *name, yaml_node_t **ret_value)
{
        if (!node || node->type != YAML_SEQUENCE_NODE || *name < '0' || *name > '9')
                return NULL;
        size_t n = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start), i = strtoul(name, NULL, 10);
        if (i >= n)
                return NULL;
        return *ret_value = yaml_document_get_node(document, node->data.sequence.items.start[i]);
}

unsigned sl_yaml_file_line(const struct sl_yaml_file *file, const char *key_path)
{
        yaml_document_t *document = (yaml_document_t *)&file->document;
        yaml_node_t *node = file->has_document ? yaml_document_get_root_node(document) : NULL;
        size_t line = node ? node->start_mark.line : 0;

        while (*key_path) {
                size_t bytes = strcspn(key_path, ".");
                yaml_node_t *key = find_key(document, node, key_path, bytes, &node);

                if (!key)
                        key = find_entry(document, node, key_path, &node);
                if (!key)
                        break;
                line = key->start_mark.line;
                key_path += bytes + (key_path[bytes] == '.');
        }
        return (unsigned)line + 1;
}

int sl_yaml_file_error(const struct sl_yaml_file *file, struct sl_error *error, const char *key_path, const char *format, ...)
{
        struct sl_error text;
        va_list args;

        va_start(args, format);
        sl_error_print(&text, format, args);
        va_end(args);
        return sl_error_set(error, EINVAL, "%s:%u: %s: %s", file->path, sl_yaml_file_line(file, key_path), key_path, text.text);
}

/* "limits.client" out of the innermost-first keys, with the unknown key, which libcyaml counts to the cause, at its end. */
static void join_path(const struct complaint *complaint, const char *unknown, char *ret_path, size_t bytes)
{
        size_t used = 0;

        ret_path[0] = 0;
        for (uint32_t i = complaint->n_keys; i-- > 0 && used < bytes;)
                used += (size_t)snprintf(ret_path + used, bytes - used, "%s%s", used ? "." : "", complaint->keys[i]);
        if (unknown && used < bytes)
                snprintf(ret_path + used, bytes - used, "%s%s", used ? "." : "", unknown);
}

/* "Expecting MAPPING, got event: SCALAR" in words; false: it says something else. */
static bool say_expected(const char *cause, char *ret_text, size_t bytes)
{
        static const struct {
                const char *name, *text;
        } kinds[] = {{"MAPPING", "keys with values, KEY: VALUE"}, {"SEQUENCE", "a list, [A, B]"}, {"STRING", "one value"}},
          events[] = {{"SCALAR", "one value or nothing"}, {"SEQ", "a list"}, {"MAP", "keys with values"}};
        char kind[32], event[32];
        const char *wanted = NULL, *got = "something else";

        if (sscanf(cause, "Expecting %31[A-Z], got event: %31[A-Z]", kind, event) != 2)
                return false;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                wanted = strcmp(kind, kinds[i].name) ? wanted : kinds[i].text;
        for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
                got = strncmp(event, events[i].name, strlen(events[i].name)) ? got : events[i].text;
        if (wanted)
                snprintf(ret_text, bytes, "wants %s; got %s", wanted, got);
        return wanted;
}

static int structure_error(
        const struct sl_yaml_file *file, const struct complaint *complaint, cyaml_err_t code, struct sl_error *error)
{
        static const char unexpected[] = "Unexpected key: ";
        bool unknown = strncmp(complaint->cause, unexpected, sizeof(unexpected) - 1) == 0;
        char path[SL_ERROR_TEXT_BYTES / 2];

        join_path(complaint, unknown ? complaint->cause + sizeof(unexpected) - 1 : NULL, path, sizeof(path));
        if (unknown)
                return sl_yaml_file_error(file, error, path, "unknown key");
        if (code == CYAML_ERR_ALIAS)
                return sl_yaml_file_error(file, error, path, "aliases are not supported");
        if (strstr(complaint->cause, "already seen"))
                return sl_yaml_file_error(file, error, path, "given twice");
        const char *cause = complaint->cause[0] ? complaint->cause : cyaml_strerror(code);
        char expected[128];
        if (say_expected(cause, expected, sizeof(expected)))
                cause = expected;
        if (!path[0])
                return sl_error_set(error, EINVAL, "%s:%u: %s", file->path, complaint->line ? complaint->line : 1, cause);
        return sl_yaml_file_error(file, error, path, "%s", cause);
}

static int load_data(struct sl_yaml_file *file, struct sl_error *error)
{
        struct complaint complaint = {.line = 0};

        file->config = (cyaml_config_t){.log_fn = on_log,
                .log_ctx = &complaint,
                .log_level = CYAML_LOG_ERROR,
                .mem_fn = cyaml_mem,
                .flags = CYAML_CFG_NO_ALIAS};
        cyaml_err_t code = cyaml_load_data(
                (const uint8_t *)file->text, file->bytes, &file->config, file->schema, (cyaml_data_t **)&file->data, NULL);
        file->config.log_fn = NULL;
        if (code == CYAML_ERR_OOM)
                return sl_error_set(error, ENOMEM, "%s: out of memory", file->path);
        if (code != CYAML_OK)
                return structure_error(file, &complaint, code, error);
        return sl_yaml_empty_mark(&file->document, file->schema, file->data) < 0
                       ? sl_error_set(error, ENOMEM, "%s: out of memory", file->path)
                       : 0;
}

static int init(struct sl_yaml_file *file, const char *path, struct sl_error *error)
{
        file->path = strdup(path);
        if (!file->path)
                return sl_error_set(error, ENOMEM, "%s: out of memory", path);
        int result = read_text(file, error);
        if (result == 0)
                result = parse_positions(file, error);
        /* A file of comments alone is as good as an empty one, and libcyaml would refuse it. */
        if (result == 0 && yaml_document_get_root_node(&file->document))
                result = sl_yaml_words_wrap(&file->document, file->schema, &file->text, &file->bytes) < 0
                                 ? sl_error_set(error, ENOMEM, "%s: out of memory", path)
                                 : load_data(file, error);
        return result;
}

int sl_yaml_file_open(const char *path, const cyaml_schema_value_t *schema, struct sl_yaml_file **ret_file, struct sl_error *error)
{
        struct sl_yaml_file *file = calloc(1, sizeof(*file));

        if (!file)
                return sl_error_set(error, ENOMEM, "%s: out of memory", path);
        file->schema = schema;
        int result = init(file, path, error);
        if (result < 0) {
                sl_yaml_file_free(file);
                return result;
        }
        *ret_file = file;
        return 0;
}

struct sl_yaml_file *sl_yaml_file_free(struct sl_yaml_file *file)
{
        if (!file)
                return NULL;
        if (file->data)
                cyaml_free(&file->config, file->schema, file->data, 0);
        if (file->has_document)
                yaml_document_delete(&file->document);
        free(file->text);
        free(file->path);
        free(file);
        return NULL;
}

const void *sl_yaml_file_data(const struct sl_yaml_file *file)
{
        return file->data;
}
