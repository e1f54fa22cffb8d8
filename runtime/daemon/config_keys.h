/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key that a configuration may have, as the tables say that parse it: the schemas of libcyaml, the settings with their ranges
 * and defaults, the options of lower_options.h; and what config_words.h says of each. Made for starling-config(5). One thread.
 */
#pragma once

#include <stdbool.h>

struct sl_error;

#define SL_KEY_BYTES 464

struct sl_config_key {
        char path[SL_KEY_BYTES];         /* "limits.client.arena_bytes" */
        char wants[SL_KEY_BYTES];        /* "a number from 1 to 64"; "" for a mapping */
        char default_text[SL_KEY_BYTES]; /* "1 GiB"; "" where words say what it is */
        bool is_list, is_mapping;
        const char *words;
};

typedef void (*sl_config_key_fn)(void *context, const struct sl_config_key *key);

/*
 * Visits the keys of a runtime's file, or of a model's, in the order of the schema; a mapping before its keys. Return: 0; -ENOENT:
 * a key has no words, or words have no key, the text names it.
 */
int sl_config_keys(bool of_model, sl_config_key_fn visit, void *context, struct sl_error *error);
