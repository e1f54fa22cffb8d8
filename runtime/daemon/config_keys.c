/* SPDX-License-Identifier: Apache-2.0 */
#include "config_keys.h"
#include "base/error.h"
#include "base/value.h"
#include "config.h"
#include "config_words.h"
#include "schema.h"
#include "setting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct words {
        const char *path, *text;
};

#define X(path, text) {path, text},
static const struct words runtime_words[] = {SL_RUNTIME_WORDS(X)};
static const struct words model_words[] = {SL_MODEL_WORDS(X)};
#undef X

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* What a walk over one file's keys needs to know. */
struct walk {
        bool of_model;
        const struct words *words;
        size_t n_words, n_found;
        const struct sl_setting *settings;
        size_t n_settings;
        const void *values; /* the defaults, which settings point into */
        sl_config_key_fn visit;
        void *context;
        struct sl_error *error;
};

static const char *words_of(const struct walk *walk, const char *path)
{
        for (size_t i = 0; i < walk->n_words; i++)
                if (strcmp(walk->words[i].path, path) == 0)
                        return walk->words[i].text;
        return NULL;
}

/* "1 GiB": the largest unit that divides it. */
static void print_bytes(uint64_t bytes, char *ret_text)
{
        static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
        size_t unit = 0;

        while (bytes && bytes % 1024 == 0 && unit + 1 < COUNT(units)) {
                bytes /= 1024;
                unit++;
        }
        snprintf(ret_text, SL_KEY_BYTES, "%llu %s", (unsigned long long)bytes, units[unit]);
}

static uint64_t value_of(const struct sl_setting *setting, const void *values)
{
        const char *at = (const char *)values + setting->value_offset;
        uint32_t narrow;
        uint64_t wide;

        if (setting->value_bytes == 8)
                return memcpy(&wide, at, 8), wide;
        return memcpy(&narrow, at, 4), narrow;
}

/* A default outside of the range stands for something that the words say. */
static void describe_setting(const struct sl_setting *setting, const void *values, struct sl_config_key *key)
{
        uint64_t value = value_of(setting, values);
        char least[SL_KEY_BYTES], most[SL_KEY_BYTES];
        size_t used = 0;

        switch (setting->kind) {
        case SL_SETTING_CHOICE:
                used = (size_t)snprintf(key->wants, SL_KEY_BYTES, "one of");
                for (uint32_t i = 0; i < setting->n_names && used < SL_KEY_BYTES; i++)
                        used += (size_t)snprintf(key->wants + used, SL_KEY_BYTES - used, "%s %s", i ? "," : "", setting->names[i]);
                snprintf(key->default_text, SL_KEY_BYTES, "%s", setting->names[value]);
                return;
        case SL_SETTING_BYTES:
                print_bytes(setting->min, least);
                print_bytes(setting->max, most);
                snprintf(key->wants, SL_KEY_BYTES, "bytes, from %.60s to %.60s", least, most);
                break;
        case SL_SETTING_SHARE:
                snprintf(key->wants, SL_KEY_BYTES, "a number from 0 to 1");
                snprintf(key->default_text, SL_KEY_BYTES, "%g", (double)value / UINT32_MAX);
                return;
        case SL_SETTING_NUMBER:
                snprintf(key->wants, SL_KEY_BYTES, "a number from %llu to %llu%s%s", (unsigned long long)setting->min,
                        (unsigned long long)setting->max, setting->n_names ? ", or " : "",
                        setting->n_names ? setting->names[0] : "");
                break;
        }
        if (value < setting->min || value > setting->max)
                return;
        if (setting->kind == SL_SETTING_BYTES)
                print_bytes(value, key->default_text);
        else
                snprintf(key->default_text, SL_KEY_BYTES, "%llu", (unsigned long long)value);
}

/* Bytes in their largest unit, and their range: 0 is no size of any option. */
static void describe_lowering_bytes(struct sl_lower_options *options, enum sl_lower_option option, struct sl_config_key *key)
{
        unsigned long long bytes, least, most;
        char wish[SL_WISH_BYTES], text[SL_KEY_BYTES];

        if (sscanf(key->default_text, "%llu", &bytes) == 1)
                print_bytes(bytes, key->default_text);
        if (sl_lower_options_set(options, option, "0", wish) == 0 ||
                sscanf(wish, "not from %llu to %llu bytes", &least, &most) != 2)
                return;
        print_bytes(most, text);
        snprintf(key->wants, SL_KEY_BYTES, "bytes, from %llu to %.100s", least, text);
}

/* What is asked for is what the parser answers to a value that no option takes. */
static void describe_lowering(enum sl_lower_option option, struct sl_config_key *key)
{
        char text[SL_LOWER_OPTION_TEXT_BYTES], wish[SL_WISH_BYTES];
        struct sl_lower_options options;

        sl_lower_options_init(&options);
        sl_lower_options_text(&options, option, text);
        snprintf(key->default_text, SL_KEY_BYTES, "%.*s", SL_KEY_BYTES - 1, text);
        if (sl_lower_options_set(&options, option, "?", wish) == 0)
                return;
        snprintf(key->wants, SL_KEY_BYTES, "%s", strncmp(wish, "not ", 4) == 0 ? wish + 4 : wish);
        if (strncmp(key->wants, "a size", 6) == 0)
                describe_lowering_bytes(&options, option, key);
        if (strcmp(key->wants, "neither true nor false") == 0)
                strcpy(key->wants, "true or false");
}

static void describe_value(const struct walk *walk, struct sl_config_key *key)
{
        for (size_t i = 0; i < walk->n_settings; i++)
                if (strcmp(walk->settings[i].key, key->path) == 0)
                        describe_setting(&walk->settings[i], walk->values, key);
        if (!walk->of_model)
                return;
        enum sl_lower_option option = sl_lower_option_find(key->path);
        if (option < SL_LOWER_OPTION_COUNT)
                describe_lowering(option, key);
}

static int walk_fields(struct walk *walk, const char *prefix, const cyaml_schema_field_t *fields);

static int walk_field(struct walk *walk, const char *prefix, const cyaml_schema_field_t *field)
{
        struct sl_config_key key = {
                .is_list = field->value.type == CYAML_SEQUENCE, .is_mapping = field->value.type == CYAML_MAPPING};

        snprintf(key.path, sizeof(key.path), "%s%s%s", prefix, *prefix ? "." : "", field->key);
        key.words = words_of(walk, key.path);
        if (!key.words)
                return sl_error_set(walk->error, ENOENT, "key \"%s\" has no sentence in runtime/daemon/config_words.h", key.path);
        walk->n_found++;
        describe_value(walk, &key);
        walk->visit(walk->context, &key);
        /* The keys of a model are told by themselves. */
        if (!key.is_mapping || field->value.mapping.fields == sl_model_default_fields)
                return 0;
        return walk_fields(walk, key.path, field->value.mapping.fields);
}

static int walk_fields(struct walk *walk, const char *prefix, const cyaml_schema_field_t *fields)
{
        int r = 0;

        for (const cyaml_schema_field_t *field = fields; field->key && r == 0; field++)
                r = walk_field(walk, prefix, field);
        return r;
}

static int walk_file(struct walk *walk, const cyaml_schema_field_t *fields)
{
        int r = walk_fields(walk, "", fields);

        if (r == 0 && walk->n_found != walk->n_words)
                r = sl_error_set(walk->error, ENOENT, "config_words.h has %zu sentences for the %zu keys of a %s's file",
                        walk->n_words, walk->n_found, walk->of_model ? "model" : "runtime");
        return r;
}

int sl_config_keys(bool of_model, sl_config_key_fn visit, void *context, struct sl_error *error)
{
        struct walk walk = {.of_model = of_model,
                .words = of_model ? model_words : runtime_words,
                .n_words = of_model ? COUNT(model_words) : COUNT(runtime_words),
                .visit = visit,
                .context = context,
                .error = error};
        struct sl_config *config;
        int r = sl_config_read(NULL, &config, error);

        if (r < 0)
                return r;
        walk.settings = of_model ? sl_model_config_settings(&walk.n_settings) : sl_config_settings(&walk.n_settings);
        walk.values = of_model ? (const void *)&config->model_defaults : config;
        r = walk_file(&walk, of_model ? sl_model_fields : sl_config_fields);
        sl_config_free(config);
        return r;
}
