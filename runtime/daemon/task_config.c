/* SPDX-License-Identifier: Apache-2.0 */
#include "task_config.h"

#include "base/error.h"
#include "base/value.h"
#include "choice.h"
#include "schema.h"
#include "task_page.h"
#include "task_spec.h"
#include "yaml_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COST_MAX       1e12
#define LATENCY_MAX_MS 3.6e6

const cyaml_schema_field_t sl_task_fields[] = {
        SL_LIST_FIELD(struct sl_task_texts, variants),
        SL_LIST_FIELD(struct sl_task_texts, accuracy),
        SL_LIST_FIELD(struct sl_task_texts, cost),
        SL_LIST_FIELD(struct sl_task_texts, latency_ms),
        SL_LIST_FIELD(struct sl_task_texts, batches_ms),
        SL_LIST_FIELD(struct sl_task_texts, files),
        SL_TEXT_FIELD(struct sl_task_texts, processor),
        SL_TEXT_FIELD(struct sl_task_texts, version),
        SL_TEXT_FIELD(struct sl_task_texts, load),
        SL_TEXT_FIELD(struct sl_task_texts, choice),
        CYAML_FIELD_END,
};

static const char *const choices[] = {
#define X(name) #name,
        SL_CHOICE_POLICIES(X)
#undef X
};

/* In the order of enum sl_task_load. */
static const char *const loads[] = {"accurate", "all"};

/* What the functions below share. */
struct reading {
        const struct sl_yaml_file *file;
        const struct sl_task_texts *texts;
        struct sl_error *error;
};

static int check_variants(const struct reading *reading)
{
        const struct sl_task_texts *texts = reading->texts;
        char wish[SL_WISH_BYTES];

        if (!texts->variants_count || texts->variants_count > SL_TASK_VARIANTS_MAX)
                return sl_yaml_file_error(reading->file, reading->error, "task.variants", "%u variants, a task has 1 to %u",
                        texts->variants_count, SL_TASK_VARIANTS_MAX);
        for (uint32_t i = 0; i < texts->variants_count; i++) {
                if (sl_value_model_version(texts->variants[i], wish) < 0)
                        return sl_yaml_file_error(
                                reading->file, reading->error, "task.variants", "\"%s\" is %s", texts->variants[i], wish);
                for (uint32_t k = 0; k < i; k++)
                        if (strcmp(texts->variants[i], texts->variants[k]) == 0)
                                return sl_yaml_file_error(reading->file, reading->error, "task.variants", "\"%s\" is there twice",
                                        texts->variants[i]);
        }
        return 0;
}

static int apply_reals(
        const struct reading *reading, const char *key, char *const *texts, uint32_t count, double max, double *ret_reals)
{
        uint32_t n = reading->texts->variants_count;
        char wish[SL_WISH_BYTES];

        if (count != n)
                return sl_yaml_file_error(reading->file, reading->error, key, "%u values for %u variants", count, n);
        for (uint32_t i = 0; i < n; i++)
                if (sl_value_real(texts[i], 0, max, &ret_reals[i], wish) < 0)
                        return sl_yaml_file_error(reading->file, reading->error, key, "\"%s\" is %s", texts[i], wish);
        return 0;
}

static int apply_choice(const struct reading *reading, const char *key, const char *text, const char *const *names, uint32_t n,
        uint64_t *choice)
{
        char wish[SL_WISH_BYTES];

        if (text && sl_value_choice(text, names, n, choice, wish) < 0)
                return sl_yaml_file_error(reading->file, reading->error, key, "\"%s\" is %s", text, wish);
        return 0;
}

static int apply_choices(const struct reading *reading, struct sl_task_config *config)
{
        uint64_t load = SL_TASK_LOAD_ACCURATE, policy = SL_CHOICE_starling;
        int result = apply_choice(reading, "task.load", reading->texts->load, loads, 2, &load);

        if (result == 0)
                result = apply_choice(reading, "task.choice", reading->texts->choice, choices, SL_CHOICE_POLICY_COUNT, &policy);
        config->load = (enum sl_task_load)load;
        config->policy = (uint32_t)policy;
        return result;
}

/* Of batches of 1, 2, 4 ... : numbers between blanks. */
static int apply_batches(const struct reading *reading, const char *text, double *ret_ms)
{
        char room[SL_TASK_BATCHES * 32], wish[SL_WISH_BYTES], *rest = NULL, *number;
        uint32_t n = 0;

        if ((size_t)snprintf(room, sizeof(room), "%s", text) >= sizeof(room))
                return sl_yaml_file_error(
                        reading->file, reading->error, "task.batches_ms", "a text of more than %zu bytes", sizeof(room) - 1);
        for (number = strtok_r(room, " ", &rest); number; number = strtok_r(NULL, " ", &rest)) {
                if (n == SL_TASK_BATCHES)
                        return sl_yaml_file_error(reading->file, reading->error, "task.batches_ms",
                                "\"%s\" has more than %u numbers", text, SL_TASK_BATCHES);
                if (sl_value_real(number, 0, LATENCY_MAX_MS, &ret_ms[n++], wish) < 0)
                        return sl_yaml_file_error(reading->file, reading->error, "task.batches_ms", "\"%s\" is %s", number, wish);
        }
        return 0;
}

static int apply_all_batches(const struct reading *reading, double *ret_ms)
{
        const struct sl_task_texts *texts = reading->texts;
        int result = 0;

        if (texts->batches_ms_count != texts->variants_count)
                return sl_yaml_file_error(reading->file, reading->error, "task.batches_ms", "%u values for %u variants",
                        texts->batches_ms_count, texts->variants_count);
        for (uint32_t i = 0; i < texts->variants_count && result == 0; i++)
                result = apply_batches(reading, texts->batches_ms[i], ret_ms + i * SL_TASK_BATCHES);
        return result;
}

/* Digests as they are printed, or "". */
static int check_files(const struct reading *reading)
{
        const struct sl_task_texts *texts = reading->texts;

        if (texts->files && texts->files_count != texts->variants_count)
                return sl_yaml_file_error(reading->file, reading->error, "task.files", "%u values for %u variants",
                        texts->files_count, texts->variants_count);
        for (uint32_t i = 0; texts->files && i < texts->files_count; i++) {
                size_t digits = strspn(texts->files[i], "0123456789abcdef");

                if (texts->files[i][digits] || (digits && digits != SL_TASK_DIGEST_DIGITS))
                        return sl_yaml_file_error(reading->file, reading->error, "task.files",
                                "\"%.64s\" is no digest, of %u digits", texts->files[i], SL_TASK_DIGEST_DIGITS);
        }
        return 0;
}

static size_t text_bytes(const char *text)
{
        return text ? strlen(text) + 1 : 0;
}

/* Behind @at; NULL stays NULL. Returns what is behind it. */
static char *keep_text(char *at, const char *text, const char **ret_text)
{
        *ret_text = text ? strcpy(at, text) : NULL;
        return at + text_bytes(text);
}

/* One block: the struct, numbers, names, and their texts. */
static struct sl_task_config *allocate(const struct sl_task_texts *texts)
{
        uint32_t n = texts->variants_count;
        size_t bytes = sizeof(struct sl_task_config) + n * ((3 + SL_TASK_BATCHES) * sizeof(double) + 2 * sizeof(char *)) +
                       text_bytes(texts->processor) + text_bytes(texts->version);
        struct sl_task_config *config;
        char *text;

        for (uint32_t i = 0; i < n; i++)
                bytes += text_bytes(texts->variants[i]) + (texts->files ? text_bytes(texts->files[i]) : 0);
        config = calloc(1, bytes);
        if (!config)
                return NULL;
        config->holders = 1;
        config->n = n;
        config->accuracies = (double *)(config + 1);
        config->costs = config->accuracies + n;
        config->latencies_ms = config->costs + n;
        config->batches_ms = config->latencies_ms + n;
        config->variants = (const char **)(config->batches_ms + n * SL_TASK_BATCHES);
        config->files = config->variants + n;
        text = (char *)(config->files + n);
        for (uint32_t i = 0; i < n; i++)
                text = keep_text(text, texts->variants[i], &config->variants[i]);
        for (uint32_t i = 0; i < n && texts->files; i++)
                text = keep_text(text, texts->files[i], &config->files[i]);
        text = keep_text(text, texts->processor, &config->processor);
        keep_text(text, texts->version, &config->version);
        return config;
}

int sl_task_config_new(const struct sl_yaml_file *file, const struct sl_task_texts *texts, struct sl_task_config **ret_config,
        struct sl_error *error)
{
        struct reading reading = {file, texts, error};
        struct sl_task_config *config;
        int result = check_variants(&reading);

        result = result < 0 ? result : check_files(&reading);
        if (result < 0)
                return result;
        config = allocate(texts);
        if (!config)
                return sl_error_set(error, ENOMEM, "task.variants: no memory for %u variants", texts->variants_count);
        result = apply_reals(&reading, "task.accuracy", texts->accuracy, texts->accuracy_count, 1, config->accuracies);
        if (result == 0 && texts->cost)
                result = apply_reals(&reading, "task.cost", texts->cost, texts->cost_count, COST_MAX, config->costs);
        if (result == 0 && texts->latency_ms)
                result = apply_reals(&reading, "task.latency_ms", texts->latency_ms, texts->latency_ms_count, LATENCY_MAX_MS,
                        config->latencies_ms);
        if (result == 0 && texts->batches_ms)
                result = apply_all_batches(&reading, config->batches_ms);
        if (!texts->batches_ms)
                config->batches_ms = NULL;
        if (!texts->files)
                config->files = NULL;
        if (!texts->cost)
                config->costs = NULL;
        if (!texts->latency_ms)
                config->latencies_ms = NULL;
        if (result == 0)
                result = apply_choices(&reading, config);
        if (result < 0)
                sl_task_config_release(config);
        else
                *ret_config = config;
        return result;
}

struct sl_task_config *sl_task_config_hold(struct sl_task_config *config)
{
        if (config)
                config->holders++;
        return config;
}

struct sl_task_config *sl_task_config_release(struct sl_task_config *config)
{
        if (config && --config->holders == 0)
                free(config);
        return NULL;
}
