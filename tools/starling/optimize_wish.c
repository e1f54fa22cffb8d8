/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_wish.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "command_options.h"
#include "costs_file.h"
#include "device_let.h"
#include "ranking.h"
#include "worker_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPTIONS = OPTIONS_BEGIN, OPTIMIZE_OPTIONS(OPTION_ID) };

#define BENCHES_MAX 1000000000u
#define STARTS_MAX  1000u
#define LOAD_MAX    1e12
#define SECONDS_MIN 0.001
#define SECONDS_MAX 3600.0
#define BATCH_MAX   1024u /* of a ladder */

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)

static int take_number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        return sl_value_number(text, min, max, ret_value, wish) < 0
                       ? sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", name, text, wish)
                       : 0;
}

static int take_u32(const char *name, const char *text, uint32_t min, uint32_t max, uint32_t *ret_value, struct sl_error *error)
{
        uint64_t value = 0;
        int r = take_number(name, text, min, max, &value, error);

        *ret_value = (uint32_t)value;
        return r;
}

static int take_real(const char *name, const char *text, double min, double max, double *ret_value, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        return sl_value_real(text, min, max, ret_value, wish) < 0
                       ? sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", name, text, wish)
                       : 0;
}

static int take_objective(struct optimize_wish *wish, const char *text, struct sl_error *error)
{
        char words[SL_WISH_BYTES];
        uint64_t index = 0;

        if (sl_value_choice(text, sl_objective_names, SL_OBJECTIVES, &index, words) < 0)
                return sl_error_set(error, EINVAL, "--objective: \"%s\" is %s", text, words);
        wish->objective = (enum sl_objective)index;
        return 0;
}

static int take_pin(struct optimize_wish *wish, const char *text, struct sl_error *error)
{
        if (wish->n_pins == PINS_MAX)
                return sl_error_set(
                        error, EINVAL, "--pin: \"%s\" is number %d, at most %d are taken", text, PINS_MAX + 1, PINS_MAX);
        wish->pins[wish->n_pins++] = text;
        return 0;
}

static int take(struct optimize_wish *wish, int option, const char *value, struct sl_error *error)
{
        switch (option) {
        case OPTION_DEVICES:
                wish->devices = value;
                return 0;
        case OPTION_MODELS:
                wish->models = value;
                return 0;
        case OPTION_OBJECTIVE:
                return take_objective(wish, value, error);
        case OPTION_LOAD:
                return take_real("load", value, 0, LOAD_MAX, &wish->load, error);
        case OPTION_HEADROOM:
                return take_real("headroom", value, 0, SL_HEADROOM_MAX, &wish->headroom, error);
        case OPTION_DATA_FOLDER:
                return data_folders_add(&wish->folders, value, error);
        case OPTION_PIN:
                return take_pin(wish, value, error);
        case OPTION_FORBID:
                wish->forbid = value;
                return 0;
        case OPTION_SEED:
                return take_number("seed", value, 0, UINT64_MAX, &wish->seed, error);
        case OPTION_STARTS:
                return take_u32("starts", value, 1, STARTS_MAX, &wish->starts, error);
        case OPTION_BENCHES:
                return take_u32("benches", value, 1, BENCHES_MAX, &wish->benches, error);
        case OPTION_BATCHES:
                wish->batches = value;
                return 0;
        case OPTION_SECONDS:
                return take_real("seconds", value, SECONDS_MIN, SECONDS_MAX, &wish->seconds, error);
        case OPTION_CONFIRM:
                return take_u32("confirm", value, 0, SL_RANKING_MAX, &wish->confirm, error);
        case OPTION_AGAIN:
                wish->again = true;
                return 0;
        case OPTION_EXPLAIN:
                wish->explain = true;
                return 0;
        case 'o':
                wish->output = value;
                return 0;
        default:
                return -EINVAL;
        }
}

static int check_device(const char *word, struct sl_error *error)
{
        struct sl_device_let let;

        return sl_device_let_parse(word, NULL, &let, error);
}

static int check_batch(const char *word, struct sl_error *error)
{
        uint64_t batch = 0;

        return take_number("batches", word, 1, BATCH_MAX, &batch, error);
}

static int check_words(const char *list, int (*check)(const char *word, struct sl_error *error), struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *words = list ? strdup(list) : NULL;
        char *rest = NULL;
        int r = list && !words ? sl_error_set(error, ENOMEM, "out of memory") : 0;

        for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && r == 0; word = strtok_r(NULL, ",", &rest))
                r = check(word, error);
        return r;
}

int optimize_parse(int argc, char **argv, struct optimize_wish *ret_wish, struct sl_error *error)
{
        static const struct option options[] = {OPTIMIZE_OPTIONS(OPTION_GETOPT){0}};
        struct stat status;

        for (int option; (option = next_option(argc, argv, options)) != -1;)
                if (take(ret_wish, option, optarg, error) < 0)
                        return -EINVAL;
        if (argc - optind != 1)
                return -EINVAL;
        ret_wish->subject = ret_wish->costs_path = argv[optind];
        ret_wish->is_folder = stat(argv[optind], &status) == 0 && S_ISDIR(status.st_mode);
        if (ret_wish->objective != SL_MAX_THROUGHPUT && ret_wish->load <= 0)
                return sl_error_set(error, EINVAL, "--objective %s needs --load", sl_objective_names[ret_wish->objective]);
        if (ret_wish->is_folder &&
                (check_words(ret_wish->devices, check_device, error) < 0 || check_words(ret_wish->batches, check_batch, error) < 0))
                return -EINVAL;
        return 0;
}

typedef uint32_t find_function(const struct sl_costs *costs, const char *name);

static int find(const struct sl_costs *costs, find_function *find_name, const char *option, const char *name, uint32_t *ret_index,
        struct sl_error *error)
{
        *ret_index = find_name(costs, name);
        return *ret_index == SL_COST_NONE ? sl_error_set(error, EINVAL, "--%s: the costs have no \"%s\"", option, name) : 0;
}

/* Rows or columns in the order given. */
struct picks {
        uint32_t n;
        uint32_t indices[SL_COST_DEVICES_MAX];
};

static int picks_add(struct picks *picks, const char *option, uint32_t index, uint64_t times, struct sl_error *error)
{
        if (times > SL_COST_DEVICES_MAX - picks->n)
                return sl_error_set(error, E2BIG, "--%s: more than %u names", option, SL_COST_DEVICES_MAX);
        while (times--)
                picks->indices[picks->n++] = index;
        return 0;
}

/* "NAME" or, of devices, "NAME*TIMES". */
static int pick(const struct sl_costs *costs, find_function *find_name, const char *option, char *word, struct picks *picks,
        struct sl_error *error)
{
        char *star = find_name == sl_costs_find_device ? strrchr(word, '*') : NULL, wish[SL_WISH_BYTES];
        uint64_t times = 1;
        uint32_t index = 0;

        if (star && sl_value_number(star + 1, 1, UINT32_MAX, &times, wish) < 0)
                return sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", option, star + 1, wish);
        if (star)
                *star = 0;
        int r = find(costs, find_name, option, word, &index, error);
        return r < 0 ? r : picks_add(picks, option, index, times, error);
}

/* All @n where there is no list. */
static int picks_take(const struct sl_costs *costs, find_function *find_name, const char *option, const char *list, uint32_t n,
        struct picks *picks, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *words = list ? strdup(list) : NULL;
        char *rest = NULL;
        int r = 0;

        picks->n = 0;
        if (!list)
                for (uint32_t i = 0; i < n; i++)
                        picks->indices[picks->n++] = i;
        else if (!words)
                return sl_error_set(error, ENOMEM, "out of memory");
        for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && r == 0; word = strtok_r(NULL, ",", &rest))
                r = pick(costs, find_name, option, word, picks, error);
        return r;
}

static int costs_pick(
        const struct sl_costs *all, const struct optimize_wish *wish, struct sl_costs **ret_costs, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct picks *devices = malloc(sizeof(*devices));
        SL_CLEANUP(sl_cleanup_free) struct picks *models = malloc(sizeof(*models));
        int r = devices && models ? 0 : sl_error_set(error, ENOMEM, "out of memory");

        r = r < 0 ? r : picks_take(all, sl_costs_find_device, "devices", wish->devices, all->n_devices, devices, error);
        r = r < 0 ? r : picks_take(all, sl_costs_find_model, "models", wish->models, all->n_models, models, error);
        return r < 0 ? r : sl_costs_select(all, devices->indices, devices->n, models->indices, models->n, ret_costs, error);
}

/* MODEL@DEVICE=BATCH */
static int pin_put(struct optimize_task *task, const char *text, struct sl_error *error)
{
        char words[2 * SL_COST_NAME_BYTES + 16], wish[SL_WISH_BYTES];
        uint32_t model = 0, device = 0;
        uint64_t batch = 0;

        snprintf(words, sizeof(words), "%s", text);
        char *is = strrchr(words, '='), *at = strchr(words, '@');
        if (!is || !at || is < at)
                return sl_error_set(error, EINVAL, "--pin: \"%s\" is not MODEL@DEVICE=BATCH", text);
        *is = *at = 0;
        if (sl_value_number(is + 1, 0, SL_COST_BATCH_MAX, &batch, wish) < 0)
                return sl_error_set(error, EINVAL, "--pin %s: \"%s\" is %s", text, is + 1, wish);
        int r = find(task->costs, sl_costs_find_model, "pin", words, &model, error);
        r = r < 0 ? r : find(task->costs, sl_costs_find_device, "pin", at + 1, &device, error);
        if (r == 0)
                task->pinned[(size_t)device * task->costs->n_models + model] = (uint32_t)batch;
        return r;
}

static int constraints_init(struct optimize_task *task, double headroom, uint32_t workers_max, struct sl_error *error)
{
        size_t n_cells = (size_t)task->costs->n_devices * task->costs->n_models;

        task->forbidden = calloc(task->costs->n_devices, sizeof(*task->forbidden));
        task->pinned = malloc(n_cells * sizeof(*task->pinned));
        if (!task->forbidden || !task->pinned)
                return sl_error_set(error, ENOMEM, "out of memory");
        for (size_t i = 0; i < n_cells; i++)
                task->pinned[i] = SL_CELL_FREE;
        task->problem = (struct sl_problem){task->costs, headroom, task->forbidden, task->pinned, workers_max};
        return 0;
}

static int constraints_take(struct optimize_task *task, const struct optimize_wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *words = wish->forbid ? strdup(wish->forbid) : NULL;
        char *rest = NULL;
        uint32_t device = 0;
        int r = 0;

        for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && r == 0; word = strtok_r(NULL, ",", &rest)) {
                r = find(task->costs, sl_costs_find_device, "forbid", word, &device, error);
                if (r == 0)
                        task->forbidden[device] = true;
        }
        for (uint32_t i = 0; i < wish->n_pins && r == 0; i++)
                r = pin_put(task, wish->pins[i], error);
        return r < 0 ? r : sl_problem_check(&task->problem, error);
}

int optimize_task_init(struct optimize_task *task, const struct optimize_wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *all = NULL;

        *task = (struct optimize_task){.costs = NULL};
        int r = sl_costs_file_read(wish->costs_path, &all, error);
        r = r < 0 ? r : costs_pick(all, wish, &task->costs, error);
        r = r < 0 ? r : constraints_init(task, wish->headroom, wish->is_folder ? SL_WORKERS_MAX : 0, error);
        r = r < 0 ? r : constraints_take(task, wish, error);
        if (r < 0)
                optimize_task_deinit(task);
        return r;
}

int optimize_task_extend(struct optimize_task *ret_task, const struct optimize_task *task, uint32_t device, struct sl_error *error)
{
        const struct sl_costs *costs = task->costs;
        SL_CLEANUP(sl_cleanup_free) struct picks *devices = malloc(sizeof(*devices));
        SL_CLEANUP(sl_cleanup_free) struct picks *models = malloc(sizeof(*models));

        *ret_task = (struct optimize_task){.costs = NULL};
        int r = devices && models ? 0 : sl_error_set(error, ENOMEM, "out of memory");
        r = r < 0 ? r : picks_take(costs, sl_costs_find_device, "devices", NULL, costs->n_devices, devices, error);
        r = r < 0 ? r : picks_add(devices, "devices", device, 1, error);
        r = r < 0 ? r : picks_take(costs, sl_costs_find_model, "models", NULL, costs->n_models, models, error);
        r = r < 0 ? r : sl_costs_select(costs, devices->indices, devices->n, models->indices, models->n, &ret_task->costs, error);
        r = r < 0 ? r : constraints_init(ret_task, task->problem.headroom, task->problem.workers_max, error);
        if (r < 0) {
                optimize_task_deinit(ret_task);
                return r;
        }
        memcpy(ret_task->forbidden, task->forbidden, costs->n_devices * sizeof(*task->forbidden));
        memcpy(ret_task->pinned, task->pinned, (size_t)costs->n_devices * costs->n_models * sizeof(*task->pinned));
        return 0;
}

void optimize_task_deinit(struct optimize_task *task)
{
        sl_costs_free(task->costs);
        free(task->forbidden);
        free(task->pinned);
        *task = (struct optimize_task){.costs = NULL};
}
