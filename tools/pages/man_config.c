/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling-config(5), from the tables that parse the configuration.
 */
#include "config_keys.h"
#include "page.h"

#include <string.h>

static void print_key(void *context, const struct sl_config_key *key)
{
        FILE *out = context;

        fprintf(out, ".It Cm %s", key->path);
        fprintf(out, "%s\n", key->is_list ? " No (a list)" : key->is_mapping ? " No (a mapping)" : "");
        page_text(out, key->words);
        if (key->wants[0]) {
                fputs(".br\n", out);
                fputs(key->is_list ? "Each: " : "Value: ", out);
                page_text(out, key->wants);
        }
        if (key->default_text[0]) {
                fputs(".br\nDefault: ", out);
                page_text(out, key->default_text);
        }
}

static int print_keys(FILE *out, bool of_model, struct sl_error *error)
{
        fputs(".Bl -tag -width Ds\n", out);
        int r = sl_config_keys(of_model, print_key, out, error);
        fputs(".El\n", out);
        return r;
}

int page_of_config(FILE *out, struct sl_error *error)
{
        int r;

        page_begin(out, "STARLING-CONFIG", 5, "starling-config", "configuration of a runtime and of its models");
        fputs(".Sh DESCRIPTION\n", out);
        page_paragraphs(out,
                "Both files are YAML. `starling serve --config FILE` reads the runtime's; every key has a default, so that none is "
                "needed. A model's is NAME/config.yaml in its repository, and the same keys are allowed under model_defaults of "
                "the runtime's file, for models that do not say otherwise; an empty list, [], says that there are none. Keys with "
                "a dot here are keys of a mapping there. An unknown key, a key that is given twice and a "
                "value outside of its range are refused with file, line and key.\n"
                "\n"
                "Bytes are a number, or a number with a unit of 1024: 4096, 64 MiB, 1GiB.");
        fputs(".Sh RUNTIME\n", out);
        r = print_keys(out, false, error);
        if (r < 0)
                return r;
        fputs(".Sh MODEL\n", out);
        r = print_keys(out, true, error);
        if (r < 0)
                return r;
        fputs(".Sh EXAMPLES\n", out);
        page_paragraphs(out, "A runtime:\n"
                             "\n"
                             "    model_repositories: [/srv/models]\n"
                             "    access: {allow: [\"@video\"], admins: [alice]}\n"
                             "    limits: {memory_max: 4 GiB, client: {arena_bytes: 256 MiB}}\n"
                             "\n"
                             "An ensemble:\n"
                             "\n"
                             "    ensemble:\n"
                             "      members: [lenet, resnet:2]\n"
                             "      rule: weighted_mean\n"
                             "      weights: [0.4, 0.6]\n"
                             "\n"
                             "A task:\n"
                             "\n"
                             "    task:\n"
                             "      variants: [mlp, lenet]\n"
                             "      accuracy: [0.9783, 0.9866]");
        fputs(".Sh SEE ALSO\n", out);
        page_reference(out, "starling", 1, 1);
        page_reference(out, "starling-serve", 1, 0);
        return 0;
}
