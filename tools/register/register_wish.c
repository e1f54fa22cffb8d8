/* SPDX-License-Identifier: Apache-2.0 */
#include "register_wish.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "command_options.h"
#include "profile_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = OPTIONS_BEGIN, REGISTER_OPTIONS(OPTION_ID) };

static const struct option options[] = {REGISTER_OPTIONS(OPTION_GETOPT){0}};

#define BATCH_MAX       1024u
#define BATCHES_DEFAULT "1,2,4,8,16,32,64"
#define KINDS_DEFAULT   "fp32,int8,bf16,f16,bf16w"

static const struct registered_kind kinds[] = {
        {"fp32", SL_PRECISION_FP32, SL_WEIGHTS_FP32},
        {"int8", SL_PRECISION_INT8, SL_WEIGHTS_FP32},
        {"bf16", SL_PRECISION_BF16, SL_WEIGHTS_FP32},
        {"f16", SL_PRECISION_FP32, SL_WEIGHTS_F16},
        {"bf16w", SL_PRECISION_FP32, SL_WEIGHTS_BF16},
};

static int refuse_value(const char *option, const char *value, const char *wanted, struct sl_error *error)
{
        return sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", option, value, wanted);
}

static int take_real(double *real, const char *option, const char *value, double least, double most, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        return sl_value_real(value, least, most, real, wanted) < 0 ? refuse_value(option, value, wanted, error) : 0;
}

static int take_samples(struct register_wish *wish, const char *value, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        return sl_value_number(value, 1, REGISTER_SAMPLES_MAX, &wish->samples, wanted) < 0
                       ? refuse_value("samples", value, wanted, error)
                       : 0;
}

static int add_number(struct register_numbers *numbers, const char *option, const char *item, double least, struct sl_error *error)
{
        double real;
        int r = take_real(&real, option, item, least, least < 0 ? 1e30 : 1, error);

        if (r < 0)
                return r;
        if (numbers->n == REGISTER_NUMBERS_MAX)
                return sl_error_set(
                        error, EINVAL, "--%s: more than %u numbers for \"%s\"", option, REGISTER_NUMBERS_MAX, numbers->name);
        numbers->values[numbers->n++] = (float)real;
        return 0;
}

/* @least below 0: any numbers, else one share. */
static int take_numbers(
        struct register_numbers_list *list, const char *option, const char *value, double least, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *copy = strdup(value);
        char *equals = copy ? strrchr(copy, '=') : NULL, *rest, *item;
        struct register_numbers *numbers = &list->items[list->n];
        int r = 0;

        if (!copy)
                return sl_error_set(error, ENOMEM, "no memory for a list of %zu bytes", strlen(value));
        if (!equals || equals == copy || equals - copy >= REGISTER_NAME_BYTES)
                return sl_error_set(error, EINVAL, "--%s: \"%s\" is not MODEL=NUMBER", option, value);
        if (list->n == REGISTER_NETWORKS_MAX)
                return sl_error_set(error, EINVAL, "--%s: more than %u times", option, REGISTER_NETWORKS_MAX);
        *equals = 0;
        list->option = option;
        *numbers = (struct register_numbers){.n = 0};
        snprintf(numbers->name, sizeof(numbers->name), "%s", copy);
        rest = equals + 1;
        while (r == 0 && (item = strsep(&rest, ",")))
                r = add_number(numbers, option, item, least, error);
        if (r == 0 && least >= 0 && numbers->n > 1)
                r = sl_error_set(error, EINVAL, "--%s: \"%s\" is not MODEL=SHARE", option, value);
        list->n += r == 0;
        return r;
}

static int add_kind(struct register_wish *wish, const char *item, struct sl_error *error)
{
        size_t i = 0;

        while (i < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[i].name, item) != 0)
                i++;
        if (i == sizeof(kinds) / sizeof(*kinds))
                return sl_error_set(error, EINVAL, "--kinds: \"%s\" is not fp32, int8, bf16, f16 or bf16w", item);
        for (uint32_t k = 0; k < wish->n_kinds; k++)
                if (strcmp(wish->kinds[k].name, item) == 0)
                        return 0;
        wish->kinds[wish->n_kinds++] = kinds[i];
        return 0;
}

/* The ladder of a plan has powers of two. */
static int add_batch(struct register_wish *wish, const char *item, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];
        uint64_t batch;

        if (sl_value_number(item, 1, BATCH_MAX, &batch, wanted) < 0)
                return refuse_value("batches", item, wanted, error);
        if (batch & (batch - 1))
                return sl_error_set(error, EINVAL, "--batches: %llu is no power of two", (unsigned long long)batch);
        for (uint32_t i = 0; i < wish->n_batches; i++)
                if (wish->batches[i] == batch)
                        return 0;
        wish->batches[wish->n_batches++] = (uint32_t)batch;
        return 0;
}

static int each_of(struct register_wish *wish, const char *list,
        int (*add)(struct register_wish *wish, const char *item, struct sl_error *error), struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *copy = strdup(list);
        char *rest = copy, *item;
        int r = copy ? 0 : sl_error_set(error, ENOMEM, "no memory for a list of %zu bytes", strlen(list));

        while (r == 0 && (item = strsep(&rest, ",")))
                r = add(wish, item, error);
        return r;
}

struct texts {
        const char *batches, *kinds, *store;
};

static int take(struct register_wish *wish, struct texts *texts, int option, const char *value, struct sl_error *error)
{
        switch (option) {
        case OPTION_TASK:
                wish->task = value;
                return 0;
        case OPTION_VALIDATION:
                wish->data = value;
                return 0;
        case OPTION_LABELS:
                wish->labels = value;
                return 0;
        case OPTION_REFERENCE:
                wish->reference = value;
                return 0;
        case OPTION_INTO:
                wish->into = value;
                return 0;
        case OPTION_THREADS:
                wish->threads = value;
                return 0;
        case OPTION_STORE:
                texts->store = value;
                return 0;
        case OPTION_BATCHES:
                texts->batches = value;
                return 0;
        case OPTION_KINDS:
                texts->kinds = value;
                return 0;
        case OPTION_BUDGET:
                return take_real(&wish->budget, "budget", value, 0, 1e9, error);
        case OPTION_SECONDS:
                return take_real(&wish->seconds, "seconds", value, 0.001, 3600, error);
        case OPTION_MAX_LOSS:
                return take_real(&wish->max_loss, "max-loss", value, 0, 1, error);
        case OPTION_SAMPLES:
                return take_samples(wish, value, error);
        case OPTION_PUBLISHED:
                return take_numbers(&wish->published, "published", value, 0, error);
        case OPTION_SCALE:
                return take_numbers(&wish->scales, "scale", value, -1e30, error);
        case OPTION_OFFSET:
                return take_numbers(&wish->offsets, "offset", value, -1e30, error);
        default:
                return -EINVAL;
        }
}

static int read_store(struct register_wish *wish, const char *text, struct sl_error *error)
{
        if (!text)
                return sl_profile_store_default(wish->store, error);
        if (strlen(text) >= sizeof(wish->store))
                return sl_error_set(error, EINVAL, "--store: a path of more than %zu bytes", sizeof(wish->store) - 1);
        strcpy(wish->store, text);
        return 0;
}

static int check(struct register_wish *wish, const struct texts *texts, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];
        int r = 0;

        if (!wish->n_models || !wish->task || !wish->data)
                return sl_error_set(error, EINVAL, "%s; see `starling register --help`",
                        !wish->n_models ? "no MODEL.onnx is given"
                        : !wish->task   ? "--task is missing"
                                        : "--validation is missing");
        if (wish->n_models > REGISTER_NETWORKS_MAX)
                return sl_error_set(error, EINVAL, "%u models, at most %u are taken", wish->n_models, REGISTER_NETWORKS_MAX);
        if (sl_value_model_name(wish->task, wanted) < 0)
                return refuse_value("task", wish->task, wanted, error);
        if (wish->labels && wish->reference)
                return sl_error_set(error, EINVAL, "--reference: not with --labels, which are right");
        r = each_of(wish, "fp32", add_kind, error);
        r = r < 0 ? r : each_of(wish, texts->kinds ? texts->kinds : KINDS_DEFAULT, add_kind, error);
        r = r < 0 ? r : each_of(wish, "1", add_batch, error);
        r = r < 0 ? r : each_of(wish, texts->batches ? texts->batches : BATCHES_DEFAULT, add_batch, error);
        return r < 0 ? r : read_store(wish, texts->store, error);
}

int register_wish_parse(int argc, char **argv, struct register_wish *ret_wish, struct sl_error *error)
{
        struct register_wish *wish = ret_wish;
        struct texts texts = {NULL};

        *wish = (struct register_wish){.into = ".", .threads = "1", .budget = 3600, .seconds = 1, .max_loss = 0.01};
        for (int option; (option = next_option(argc, argv, options)) != -1;)
                if (take(wish, &texts, option, optarg, error) < 0)
                        return -EINVAL;
        wish->models = argv + optind;
        wish->n_models = (uint32_t)(argc - optind);
        return check(wish, &texts, error);
}
