/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists with nothing in them. libcyaml leaves the same NULL where a list is empty and where there is none; what is written over
 * defaults has to tell them apart. Any thread.
 */
#pragma once

#include <cyaml/cyaml.h>

struct yaml_document_s;

/*
 * @data: what libcyaml made of @document by @schema, a mapping. Every empty list of texts gets a pointer that is not NULL, which
 * cyaml_free() frees; its count stays 0. Return: 0, -ENOMEM.
 */
int sl_yaml_empty_mark(struct yaml_document_s *document, const cyaml_schema_value_t *schema, void *data);
