/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: a table that says which string of a schema's struct becomes which value, and within which limits. The tables are the
 * one place that knows the ranges; they are immutable, any thread may use them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_yaml_file;

enum sl_setting_kind { SL_SETTING_NUMBER, SL_SETTING_BYTES, SL_SETTING_CHOICE, SL_SETTING_SHARE };

struct sl_setting {
        const char *key;     /* dotted path below the prefix */
        size_t text_offset;  /* of a char * in the schema's struct: NULL leaves the value as it is */
        size_t value_offset; /* of a uint32_t or uint64_t */
        size_t value_bytes;  /* 4 or 8 */
        enum sl_setting_kind kind;
        uint64_t min, max;        /* of a number or of bytes; of a share 0 and UINT32_MAX, which stands for 1 */
        const char *const *names; /* of a choice, the value is the index; of a number, a word that may stand for it: it is 0 then */
        uint32_t n_names;
};

/* @text_type and @value_type have a member of the same name. */
#define SL_SETTING(text_type, value_type, member, setting_key, setting_kind, ...)                                                  \
        {                                                                                                                          \
                .key = (setting_key), .text_offset = offsetof(text_type, member), .value_offset = offsetof(value_type, member),    \
                .value_bytes = sizeof(((value_type *)NULL)->member), .kind = (setting_kind), __VA_ARGS__                           \
        }

/*
 * Converts every string of @texts that is there into @values. Return: 0; -EINVAL with file, line and key (@prefix, "" or "limits",
 * and the setting's own).
 */
int sl_settings_apply(const struct sl_yaml_file *file, const char *prefix, const struct sl_setting *settings, size_t n,
        const void *texts, void *values, struct sl_error *error);
