/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists that may be a single word: `fuse: auto` is read as `fuse: [auto]`. libcyaml wants a list where the schema has one, so the
 * text gets the brackets before it comes to that; no line moves. Any thread.
 */
#pragma once

#include <cyaml/cyaml.h>
#include <stddef.h>

struct yaml_document_s;

/*
 * @document: of *text, @schema: a mapping. Every scalar where an SL_WORDS_FIELD stands gets brackets; *text is replaced when there
 * is any. What is not plain UTF-8 stays as it is. Return: 0, -ENOMEM.
 */
int sl_yaml_words_wrap(struct yaml_document_s *document, const cyaml_schema_value_t *schema, char **text, size_t *bytes);
