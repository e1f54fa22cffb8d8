/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_empty.h"

#include "schema.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

static yaml_node_t *find_value(yaml_document_t *document, const yaml_node_t *mapping, const char *name)
{
        for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
                const yaml_node_t *key = yaml_document_get_node(document, pair->key);

                if (key->type == YAML_SCALAR_NODE && key->data.scalar.length == strlen(name) &&
                        !memcmp(key->data.scalar.value, name, key->data.scalar.length))
                        return yaml_document_get_node(document, pair->value);
        }
        return NULL;
}

static bool is_empty_list(const yaml_node_t *node, const cyaml_schema_value_t *schema)
{
        return node->type == YAML_SEQUENCE_NODE && node->data.sequence.items.start == node->data.sequence.items.top &&
               schema->type == CYAML_SEQUENCE &&
               (schema->sequence.entry == &sl_text_entry || schema->sequence.entry == &sl_word_entry);
}

static int mark_list(void **list)
{
        if (!*list)
                *list = cyaml_mem(NULL, NULL, sizeof(char *));
        return *list ? 0 : -ENOMEM;
}

static int mark_mapping(yaml_document_t *document, const yaml_node_t *node, const cyaml_schema_field_t *fields, char *data)
{
        int result = 0;

        for (; fields->key && result == 0; fields++) {
                const yaml_node_t *value = find_value(document, node, fields->key);
                void *member = data + fields->data_offset;

                if (!value)
                        continue;
                if (is_empty_list(value, &fields->value))
                        result = mark_list(member);
                else if (value->type == YAML_MAPPING_NODE && fields->value.type == CYAML_MAPPING)
                        result = mark_mapping(document, value, fields->value.mapping.fields,
                                fields->value.flags & CYAML_FLAG_POINTER ? *(char **)member : member);
        }
        return result;
}

int sl_yaml_empty_mark(yaml_document_t *document, const cyaml_schema_value_t *schema, void *data)
{
        const yaml_node_t *root = yaml_document_get_root_node(document);

        return data && root->type == YAML_MAPPING_NODE ? mark_mapping(document, root, schema->mapping.fields, data) : 0;
}
