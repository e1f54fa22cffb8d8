/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_words.h"

#include "schema.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define WORDS_MAX 64

const cyaml_schema_value_t sl_word_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};

/* Where the words are, in characters. */
struct words {
        uint32_t n;
        struct {
                size_t from, to;
        } all[WORDS_MAX];
};

static const cyaml_schema_field_t *find_field(const cyaml_schema_field_t *fields, const yaml_node_t *key)
{
        for (; fields->key; fields++)
                if (key->type == YAML_SCALAR_NODE && key->data.scalar.length == strlen(fields->key) &&
                        !memcmp(key->data.scalar.value, fields->key, key->data.scalar.length))
                        return fields;
        return NULL;
}

static bool is_word(const yaml_node_t *node)
{
        return node->type == YAML_SCALAR_NODE && node->data.scalar.length &&
               (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE || node->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                       node->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static void find_words(yaml_document_t *document, yaml_node_t *node, const cyaml_schema_field_t *fields, struct words *words)
{
        if (!node || node->type != YAML_MAPPING_NODE)
                return;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
                yaml_node_t *value = yaml_document_get_node(document, pair->value);
                const cyaml_schema_field_t *field = find_field(fields, yaml_document_get_node(document, pair->key));

                if (field && field->value.type == CYAML_MAPPING)
                        find_words(document, value, field->value.mapping.fields, words);
                if (field && field->value.type == CYAML_SEQUENCE && field->value.sequence.entry == &sl_word_entry && value &&
                        is_word(value) && words->n < WORDS_MAX) {
                        words->all[words->n].from = value->start_mark.index;
                        words->all[words->n++].to = value->end_mark.index;
                }
        }
}

static bool starts_character(char byte)
{
        return ((unsigned char)byte & 0xc0) != 0x80;
}

/* libyaml counts characters: of UTF-8, and without the mark of its beginning. */
static void wrap(const char *text, size_t bytes, const struct words *words, char *ret_text, size_t *ret_bytes)
{
        size_t character = 0, used = 0;

        for (size_t i = 0; i <= bytes; i++) {
                bool starts = i == bytes || starts_character(text[i]);

                for (uint32_t w = 0; w < words->n && starts; w++) {
                        if (words->all[w].from == character)
                                ret_text[used++] = '[';
                        if (words->all[w].to == character)
                                ret_text[used++] = ']';
                }
                if (i < bytes)
                        ret_text[used++] = text[i];
                character += starts;
        }
        *ret_bytes = used;
}

static bool is_plain_text(const char *text, size_t bytes)
{
        return !memchr(text, 0, bytes) && (!bytes || (unsigned char)text[0] < 0xef);
}

int sl_yaml_words_wrap(yaml_document_t *document, const cyaml_schema_value_t *schema, char **text, size_t *bytes)
{
        struct words words = {0};
        char *wrapped;

        find_words(document, yaml_document_get_root_node(document), schema->mapping.fields, &words);
        if (!words.n || !is_plain_text(*text, *bytes))
                return 0;
        wrapped = malloc(*bytes + 2ul * words.n + 1);
        if (!wrapped)
                return -ENOMEM;
        wrap(*text, *bytes, &words, wrapped, bytes);
        free(*text);
        *text = wrapped;
        return 0;
}
