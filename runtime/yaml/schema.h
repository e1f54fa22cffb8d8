/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of the schemas: every scalar is an optional string that setting.h and value.h give its meaning.
 */
#pragma once

#include <cyaml/cyaml.h>

#define SL_TEXT_FIELD(type, member) CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, 0, 4096)
#define SL_LIST_FIELD(type, member)                                                                                                \
        CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, &sl_text_entry, 0, 1024)
/* The same, and a single string counts as a list of one: yaml_words.h. */
#define SL_WORDS_FIELD(type, member)                                                                                               \
        CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, &sl_word_entry, 0, 1024)
#define SL_MAPPING_FIELD(type, member, fields) CYAML_FIELD_MAPPING_PTR(#member, CYAML_FLAG_OPTIONAL, type, member, fields)

/* An entry of a list of strings. */
extern const cyaml_schema_value_t sl_text_entry;
extern const cyaml_schema_value_t sl_word_entry;
