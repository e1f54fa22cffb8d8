/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of JSON that jansson has no call for. Functions without state; each returns a new reference.
 */
#pragma once

#include "quantity.h"

#include <jansson.h>
#include <stdint.h>

static inline json_t *json_number(uint64_t value)
{
        return json_integer((json_int_t)value);
}

static inline json_t *json_number_or_null(uint64_t value, uint64_t nothing)
{
        return value == nothing ? json_null() : json_number(value);
}

/* Of a text that is no UTF-8 each byte that is none is '?'. */
static inline json_t *json_text(const char *text)
{
        char plain[2048];
        json_t *value = json_string(text);

        return value ? value : json_string(quantity_text(text, plain, sizeof(plain)));
}

static inline void json_set(json_t *object, const char *key, json_t *value)
{
        json_object_set_new(object, key, value);
}

#define JSON_ARRAY(entries, n, to_json)                                                                                            \
        __extension__({                                                                                                            \
                json_t *array = json_array();                                                                                      \
                for (uint32_t i = 0; i < (n); i++)                                                                                 \
                        json_array_append_new(array, to_json(&(entries)[i]));                                                      \
                array;                                                                                                             \
        })
