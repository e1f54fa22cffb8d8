/* SPDX-License-Identifier: Apache-2.0 */
#include "wish.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "command_options.h"
#include "profile_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = OPTIONS_BEGIN, PROFILE_OPTIONS(OPTION_ID) };

static const struct option options[] = {PROFILE_OPTIONS(OPTION_GETOPT){0}};

#define BATCH_MAX       1024u
#define WIDTH_PERCENT   5.0
#define SECONDS_DEFAULT 5.0

/* Strings whose meaning is looked at when all options are known to be right. */
struct texts {
        const char *devices, *batches, *threads, *precisions, *beside, *width, *seconds, *store;
};

static int take(struct wish *wish, struct texts *texts, int option, const char *value, struct sl_error *error)
{
        switch (option) {
        case OPTION_DATA_FOLDER:
                return data_folders_add(&wish->folders, value, error);
        case OPTION_DEVICES:
                texts->devices = value;
                return 0;
        case OPTION_BATCHES:
        case OPTION_BATCH:
                texts->batches = value;
                return 0;
        case OPTION_THREADS:
                texts->threads = value;
                return 0;
        case OPTION_PRECISIONS:
                texts->precisions = value;
                return 0;
        case OPTION_CORUN:
                texts->beside = texts->beside ? texts->beside : "2";
                return 0;
        case OPTION_BESIDE:
                texts->beside = value;
                return 0;
        case OPTION_MIXED:
                wish->mixed = true;
                return 0;
        case OPTION_WIDTH:
                texts->width = value;
                return 0;
        case OPTION_SECONDS:
                texts->seconds = value;
                return 0;
        case OPTION_DISTURBED:
                wish->disturbed = true;
                return 0;
        case OPTION_ELASTIC:
                wish->elastic = true;
                return 0;
        case OPTION_AGAIN:
                wish->again = true;
                return 0;
        case OPTION_STORE:
                texts->store = value;
                return 0;
        case OPTION_JSON:
                wish->json = true;
                return 0;
        case 'o':
                wish->output = strcmp(value, "-") == 0 ? NULL : value;
                return 0;
        case 'O':
                if (wish->n_lowerings == sizeof(wish->lowerings) / sizeof(*wish->lowerings))
                        return -EINVAL;
                wish->lowerings[wish->n_lowerings++] = value;
                return 0;
        default:
                return -EINVAL;
        }
}

/* Calls @take_item with each part of a list with commas. */
static int each_of(const char *list, int (*take_item)(struct wish *wish, const char *item, struct sl_error *error),
        struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *copy = strdup(list);
        char *rest = copy, *item;
        int r = copy ? 0 : sl_error_set(error, ENOMEM, "no memory for a list of %zu bytes", strlen(list));

        while (r == 0 && (item = strsep(&rest, ",")))
                r = take_item(wish, item, error);
        return r;
}

static int add_device(struct wish *wish, const char *item, struct sl_error *error)
{
        struct sl_device_let let, *devices;
        int r = sl_device_let_parse(item, NULL, &let, error);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < wish->n_devices; i++)
                if (strcmp(wish->devices[i].name, let.name) == 0)
                        return 0;
        if (wish->n_devices == WISH_DEVICES_MAX)
                return sl_error_set(error, EINVAL, "--devices: \"%s\" is number %u, at most %u are taken", item,
                        WISH_DEVICES_MAX + 1, WISH_DEVICES_MAX);
        devices = reallocarray(wish->devices, wish->n_devices + 1, sizeof(*devices));
        if (!devices)
                return sl_error_set(error, ENOMEM, "no memory for %u devices", wish->n_devices + 1);
        wish->devices = devices;
        wish->devices[wish->n_devices++] = let;
        return 0;
}

/* The ladder of a plan has powers of two. */
static int add_batch(struct wish *wish, const char *item, struct sl_error *error)
{
        char text[SL_WISH_BYTES];
        uint64_t batch;
        uint32_t at = wish->n_batches;

        if (sl_value_number(item, 1, BATCH_MAX, &batch, text) < 0)
                return sl_error_set(error, EINVAL, "--batches: \"%s\" is %s", item, text);
        if (batch & (batch - 1))
                return sl_error_set(error, EINVAL, "--batches: %llu is no power of two", (unsigned long long)batch);
        for (uint32_t i = 0; i < wish->n_batches; i++)
                if (wish->batches[i] == batch)
                        return 0;
        for (; at && wish->batches[at - 1] > batch; at--)
                wish->batches[at] = wish->batches[at - 1];
        wish->batches[at] = (uint32_t)batch;
        wish->n_batches++;
        return 0;
}

static int add_precision(struct wish *wish, const char *item, struct sl_error *error)
{
        struct sl_lower_options options_of_item;
        char text[SL_WISH_BYTES];

        sl_lower_options_init(&options_of_item);
        int r = sl_lower_options_set(&options_of_item, SL_LOWER_OPTION_precision, item, text);

        if (r < 0)
                return sl_error_set(error, EINVAL, "--precisions: \"%s\" is %s", item, text);
        for (uint32_t i = 0; i < wish->n_precisions; i++)
                if (wish->precisions[i] == options_of_item.precision)
                        return 0;
        if (r == 0)
                wish->precisions[wish->n_precisions++] = options_of_item.precision;
        return r;
}

static int read_real(const char *option, const char *text, double min, double max, double *ret_real, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        if (!text || sl_value_real(text, min, max, ret_real, wish) == 0)
                return 0;
        return sl_error_set(error, EINVAL, "%s: \"%s\" is %s", option, text, wish);
}

static int read_beside(struct wish *wish, const char *text, struct sl_error *error)
{
        char words[SL_WISH_BYTES];
        uint64_t n = 1;

        if (text && sl_value_number(text, 2, SL_ROUND_WORKERS_MAX, &n, words) < 0)
                return sl_error_set(error, EINVAL, "--beside: \"%s\" is %s", text, words);
        wish->n_beside = (uint32_t)n;
        return 0;
}

static int read_store(struct wish *wish, const char *text, struct sl_error *error)
{
        if (!text)
                return sl_profile_store_default(wish->store, error);
        if (strlen(text) >= sizeof(wish->store))
                return sl_error_set(error, EINVAL, "--store: a path of more than %zu bytes", sizeof(wish->store) - 1);
        strcpy(wish->store, text);
        wish->store_named = true;
        return 0;
}

/* Each member of a team has a core. */
static int read_threads(struct wish *wish, const char *text, struct sl_error *error)
{
        int r = thread_list_parse(&wish->threads, text, error);
        uint32_t most = r == 0 ? wish->threads.items[wish->threads.n - 1] : 0;

        for (uint32_t i = 0; r == 0 && i < wish->n_devices; i++)
                if (wish->devices[i].n_cores < most)
                        r = sl_error_set(error, EINVAL, "--threads: %u on %s, which has %u core%s", most, wish->devices[i].name,
                                wish->devices[i].n_cores, wish->devices[i].n_cores == 1 ? "" : "s");
        return r;
}

/* It has batches, combinations and threads of its own, and one device. */
static int read_elastic(const struct wish *wish, struct texts *texts, struct sl_error *error)
{
        const char *other = texts->batches    ? "--batches"
                            : texts->threads  ? "--threads"
                            : texts->beside   ? "--beside and --corun"
                            : texts->store    ? "--store"
                            : wish->mixed     ? "--mixed"
                            : wish->again     ? "--again"
                            : wish->disturbed ? "--disturbed"
                            : wish->json      ? "--json"
                                              : NULL;

        if (!wish->elastic)
                return 0;
        if (other)
                return sl_error_set(error, EINVAL, "--elastic: not with %s", other);
        texts->batches = "1,2,4,8,16,32";
        return 0;
}

static int read_texts(struct wish *wish, struct texts *texts, struct sl_error *error)
{
        double percent = WIDTH_PERCENT;
        int r = read_elastic(wish, texts, error);

        if (r == 0)
                r = each_of(texts->devices ? texts->devices : "cpu", add_device, wish, error);
        if (r == 0 && wish->elastic && wish->n_devices > 1)
                r = sl_error_set(error, EINVAL, "--elastic: %u devices, it takes one at a time", wish->n_devices);
        if (r == 0)
                r = each_of(texts->batches ? texts->batches : "1", add_batch, wish, error);
        if (r == 0)
                r = read_threads(wish, texts->threads ? texts->threads : "1", error);
        if (r == 0 && texts->precisions)
                r = each_of(texts->precisions, add_precision, wish, error);
        if (r == 0 && wish->elastic && wish->n_precisions > 1)
                r = sl_error_set(error, EINVAL, "--elastic: %u precisions, it takes one at a time", wish->n_precisions);
        if (r == 0)
                r = read_beside(wish, texts->beside, error);
        if (r == 0)
                r = read_real("--width", texts->width, 0.01, 1000, &percent, error);
        if (r == 0)
                r = read_real("--seconds", texts->seconds, 0.001, 3600, &wish->seconds, error);
        wish->width = percent / 100;
        wish->devices_given = texts->devices;
        wish->batches_given = texts->batches;
        return r < 0 ? r : read_store(wish, texts->store, error);
}

int wish_parse(int argc, char **argv, struct wish *ret_wish, struct sl_error *error)
{
        struct texts texts = {NULL};

        *ret_wish = (struct wish){.seconds = SECONDS_DEFAULT};
        for (int option; (option = next_option(argc, argv, options)) != -1;)
                if (take(ret_wish, &texts, option, optarg, error) < 0)
                        return -EINVAL;
        ret_wish->names = argv + optind;
        ret_wish->n_names = argc - optind;
        ret_wish->given = data_folders_given(&ret_wish->folders);
        return read_texts(ret_wish, &texts, error);
}

void wish_deinit(struct wish *wish)
{
        free(wish->devices);
        *wish = (struct wish){.n_names = 0};
}

int wish_lower(const struct wish *wish, struct sl_lower_options *lowering, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < wish->n_lowerings && r == 0; i++)
                r = sl_lower_options_parse(lowering, wish->lowerings[i], error);
        return r;
}
