/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct check {
        const json_t *root;
        char *text;
        size_t bytes;
};

static bool check_value(const struct check *check, const json_t *schema, const json_t *value, const char *where);

static bool wrong(const struct check *check, const char *where, const char *what, const char *name)
{
        snprintf(check->text, check->bytes, "%s: %s %s", where, what, name);
        return false;
}

static const char *type_of(const json_t *value)
{
        static const char *const names[] = {[JSON_OBJECT] = "object",
                [JSON_ARRAY] = "array",
                [JSON_STRING] = "string",
                [JSON_INTEGER] = "integer",
                [JSON_REAL] = "number",
                [JSON_TRUE] = "boolean",
                [JSON_FALSE] = "boolean",
                [JSON_NULL] = "null"};

        return names[json_typeof(value)];
}

static bool is_type(const json_t *value, const char *type)
{
        return strcmp(type_of(value), type) == 0 || (strcmp(type, "number") == 0 && json_is_integer(value));
}

static bool check_type(const struct check *check, const json_t *type, const json_t *value, const char *where)
{
        bool found = !type || (json_is_string(type) && is_type(value, json_string_value(type)));

        for (size_t i = 0; i < json_array_size(type); i++)
                found |= is_type(value, json_string_value(json_array_get(type, i)));
        return found || wrong(check, where, "is of the wrong type,", type_of(value));
}

static bool check_enum(const struct check *check, const json_t *list, const json_t *value, const char *where)
{
        bool found = !list;

        for (size_t i = 0; i < json_array_size(list); i++)
                found |= json_equal(json_array_get(list, i), value);
        return found ||
               wrong(check, where, "is none of the enum,", json_is_string(value) ? json_string_value(value) : type_of(value));
}

static bool check_required(const struct check *check, const json_t *schema, const json_t *value, const char *where)
{
        const json_t *required = json_object_get(schema, "required");

        for (size_t i = 0; json_is_object(value) && i < json_array_size(required); i++)
                if (!json_object_get(value, json_string_value(json_array_get(required, i))))
                        return wrong(check, where, "lacks", json_string_value(json_array_get(required, i)));
        return true;
}

static bool check_members(const struct check *check, const json_t *schema, json_t *value, const char *where)
{
        const json_t *properties = json_object_get(schema, "properties"), *others = json_object_get(schema, "additionalProperties");
        const char *key;
        json_t *member;

        json_object_foreach(value, key, member)
        {
                const json_t *known = json_object_get(properties, key);
                char path[256];

                snprintf(path, sizeof(path), "%.180s.%.64s", where, key);
                if (!known && json_is_false(others))
                        return wrong(check, where, "has the unknown member", key);
                if (!known && json_is_object(others))
                        known = others;
                if (known && !check_value(check, known, member, path))
                        return false;
        }
        return true;
}

static bool check_items(const struct check *check, const json_t *items, const json_t *value, const char *where)
{
        for (size_t i = 0; items && i < json_array_size(value); i++) {
                char path[256];

                snprintf(path, sizeof(path), "%.200s[%zu]", where, i);
                if (!check_value(check, items, json_array_get(value, i), path))
                        return false;
        }
        return true;
}

/* "#/$defs/NAME" */
static const json_t *referred(const struct check *check, const json_t *reference)
{
        const char *slash = reference ? strrchr(json_string_value(reference), '/') : NULL;

        return slash ? json_object_get(json_object_get(check->root, "$defs"), slash + 1) : NULL;
}

static bool check_value(const struct check *check, const json_t *schema, const json_t *value, const char *where)
{
        const json_t *reference = json_object_get(schema, "$ref"), *definition = referred(check, reference);

        if (reference && !definition)
                return wrong(check, where, "refers to what is not there,", json_string_value(reference));
        if (definition && !check_value(check, definition, value, where))
                return false;
        return check_type(check, json_object_get(schema, "type"), value, where) &&
               check_enum(check, json_object_get(schema, "enum"), value, where) && check_required(check, schema, value, where) &&
               check_members(check, schema, (json_t *)(uintptr_t)value, where) &&
               check_items(check, json_object_get(schema, "items"), value, where);
}

const char *schema_check(const struct json_t *schema, const struct json_t *value, char *ret_text, size_t bytes)
{
        const struct check check = {.root = schema, .text = ret_text, .bytes = bytes};

        ret_text[0] = 0;
        check_value(&check, schema, value, "result");
        return ret_text;
}
