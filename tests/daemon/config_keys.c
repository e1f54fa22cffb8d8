/* SPDX-License-Identifier: Apache-2.0 */
/* What starling-config(5) says of the keys is what the parser takes. */
#include "config_keys.h"
#include "base/error.h"
#include "config.h"
#include "folder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct folder folder;

static void set_up(void)
{
        folder_make(&folder);
}

static void tear_down(void)
{
        folder_remove(&folder);
}

TestSuite(config_keys, .init = set_up, .fini = tear_down);

/* "limits: {client: {arena_bytes: 'value'}}" */
static void write_yaml(const struct sl_config_key *key, const char *value, char *ret_text, size_t bytes)
{
        size_t used = 0, depth = 0;

        for (const char *at = key->path; *at; depth++) {
                size_t n = strcspn(at, ".");

                used += (size_t)snprintf(ret_text + used, bytes - used, "%s%.*s: ", depth ? "{" : "", (int)n, at);
                at += n + (at[n] == '.');
        }
        used += (size_t)snprintf(ret_text + used, bytes - used, "'%s'", value);
        while (--depth > 0)
                used += (size_t)snprintf(ret_text + used, bytes - used, "}");
        snprintf(ret_text + used, bytes - used, "\n");
}

static int read_back(const struct sl_config_key *key, const char *value, bool of_model, struct sl_error *error)
{
        struct sl_model_config defaults, model;
        struct sl_config *config;
        char text[512], path[256];

        write_yaml(key, value, text, sizeof(text));
        snprintf(path, sizeof(path), "%s", folder_write(&folder, "x.yaml", text));
        sl_model_config_init(&defaults);
        int r = of_model ? sl_model_config_read(path, &defaults, &model, error) : sl_config_read(path, &config, error);
        if (r == 0 && of_model)
                sl_model_config_deinit(&model);
        else if (r == 0)
                sl_config_free(config);
        return r;
}

struct count {
        bool of_model;
        unsigned keys, defaults, lists, mappings;
};

static void look(void *context, const struct sl_config_key *key)
{
        struct count *count = context;
        struct sl_error error = {""};

        count->keys++;
        count->lists += key->is_list;
        count->mappings += key->is_mapping;
        size_t bytes = strlen(key->words);
        cr_expect(bytes > 5 && key->words[bytes - 1] == '.', "%s: no sentence: %s", key->path, key->words);
        if (key->is_list || key->is_mapping || !key->wants[0])
                return;
        cr_expect_lt(read_back(key, "?", count->of_model, &error), 0, "%s takes anything", key->path);
        cr_expect_not_null(strstr(error.text, key->path), "%s", error.text);
        if (!key->default_text[0])
                return;
        count->defaults++;
        cr_expect_eq(read_back(key, key->default_text, count->of_model, &error), 0, "%s: default %s: %s", key->path,
                key->default_text, error.text);
}

Test(config_keys, every_key_of_a_runtime_has_a_sentence_and_takes_its_default)
{
        struct count count = {.of_model = false};
        struct sl_error error = {""};

        cr_assert_eq(sl_config_keys(false, look, &count, &error), 0, "%s", error.text);
        cr_expect(count.keys >= 35 && count.mappings >= 8 && count.lists >= 7 && count.defaults >= 15,
                "%u keys, %u mappings, %u lists, %u defaults", count.keys, count.mappings, count.lists, count.defaults);
}

Test(config_keys, every_key_of_a_model_has_a_sentence_and_takes_its_default)
{
        struct count count = {.of_model = true};
        struct sl_error error = {""};

        cr_assert_eq(sl_config_keys(true, look, &count, &error), 0, "%s", error.text);
        cr_expect(count.keys >= 30 && count.defaults >= SL_LOWER_OPTION_COUNT, "%u keys, %u defaults", count.keys, count.defaults);
}
