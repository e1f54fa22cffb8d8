/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "compile.h"
#include "model_argument.h"
#include "model_config.h"
#include "model_name.h"
#include "plan.h"
#include "plan_cache.h"
#include "program_beside.h"
#include "repository.h"
#include "wish.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_BYTES (16ull << 30) /* of the folder of plans, beyond which old ones go */
#define PROGRAM     "../../bin/starling"

SL_DEFINE_CLEANUP(struct sl_repository_scan *, sl_repository_scan_free)
SL_DEFINE_CLEANUP(struct sl_plan_cache *, sl_plan_cache_free)
SL_DEFINE_CLEANUP(struct sl_plan *, sl_plan_free)

/* ---- which models ---- */

static int add_subject(struct subjects *subjects, const struct subject *subject, struct sl_error *error)
{
        struct subject *items = reallocarray(subjects->items, subjects->n + 1, sizeof(*items));

        if (!items)
                return sl_error_set(error, ENOMEM, "no memory for %u models", subjects->n + 1);
        subjects->items = items;
        for (uint32_t i = 0; i < subjects->n; i++) {
                bool is_same = items[i].lowering.precision == subject->lowering.precision;

                if (strcmp(items[i].name, subject->name) != 0 || !is_same)
                        continue;
                if (strcmp(items[i].path, subject->path) == 0)
                        return 0;
                return sl_error_set(error, EINVAL, "two models have the name \"%s\"", subject->name);
        }
        items[subjects->n++] = *subject;
        return 0;
}

/* Not those of the model's configuration. */
static void use_own_threads(struct sl_lower_options *lowering)
{
        lowering->teams = true;
        lowering->team_size = 0;
}

static uint32_t largest_batch(const struct wish *wish)
{
        return wish->batches[wish->n_batches - 1];
}

/* In each precision. What the command line says goes before the model's configuration, but a runtime has no larger batch of it. */
static int add_model(const struct wish *wish, const struct subject *model, struct subjects *subjects, struct sl_error *error)
{
        struct model_argument argument = {.configured = false};
        struct subject subject = *model;
        int r;

        use_own_threads(&subject.lowering);
        r = wish_lower(wish, &subject.lowering, error);
        if (r < 0)
                return r;
        if (subject.lowering.batch_max > largest_batch(wish))
                subject.lowering.batch_max = largest_batch(wish);
        sl_lower_options_use_threads(&subject.lowering, wish->threads.n ? wish->threads.items[wish->threads.n - 1] : 1);
        snprintf(argument.path, sizeof(argument.path), "%s", subject.path);
        subject.data_folders = &wish->given;
        r = model_argument_settle("profile", &argument, &wish->given, 1, &subject.lowering, error);
        for (uint32_t i = 0; r == 0 && i < (wish->n_precisions ? wish->n_precisions : 1); i++) {
                if (wish->n_precisions)
                        subject.lowering.precision = wish->precisions[i];
                r = add_subject(subjects, &subject, error);
        }
        return r;
}

static int add_file(const struct wish *wish, const char *path, struct subjects *subjects, struct sl_error *error)
{
        struct subject subject = {.plan = NULL};

        if (!realpath(path, subject.path))
                return sl_error_set(error, errno, "%s", strerror(errno));
        model_name_of(subject.path, subject.name, sizeof(subject.name));
        sl_lower_options_init(&subject.lowering);
        subject.lowering.batch_max = largest_batch(wish);
        return add_model(wish, &subject, subjects, error);
}

static int add_spec(const struct wish *wish, const struct sl_model_spec *spec, struct subjects *subjects, struct sl_error *error)
{
        struct subject subject = {.lowering = spec->lowering};

        snprintf(subject.name, sizeof(subject.name), "%s", spec->name);
        snprintf(subject.path, sizeof(subject.path), "%s", spec->path);
        return add_model(wish, &subject, subjects, error);
}

/* Why each model is left out is for `serve` to say; here only what is asked for counts. An ensemble is known by its members. */
static int add_named(
        const struct wish *wish, const char *repository, const char *name, struct subjects *subjects, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_repository_scan_free) struct sl_repository_scan *found = NULL;
        struct sl_error complaint = {""};
        int r = sl_repository_scan_plain(repository, &complaint, &found, error);
        const struct sl_model_spec *spec = r == 0 ? sl_repository_find(found, name) : NULL;

        if (r < 0)
                return r;
        if (!spec || spec->refused)
                return sl_error_set(error, EINVAL, "%s", spec ? spec->refused : *complaint.text ? complaint.text : "no model");
        if (spec->path)
                return add_spec(wish, spec, subjects, error);
        for (uint32_t i = 0; i < spec->n_members && r == 0; i++) {
                const struct sl_model_spec *member = sl_repository_find(found, spec->members[i]);

                r = member && member->path && !member->refused
                            ? add_spec(wish, member, subjects, error)
                            : sl_error_set(error, EINVAL, "member \"%s\" cannot be profiled", spec->members[i]);
        }
        return r;
}

static int add_folder(const struct wish *wish, const char *path, struct subjects *subjects, struct sl_error *error)
{
        char folder[PATH_MAX];

        if (!realpath(path, folder))
                return sl_error_set(error, errno, "%s", strerror(errno));
        char *slash = strrchr(folder, '/');

        *slash = 0;
        return add_named(wish, *folder ? folder : "/", slash + 1, subjects, error);
}

int subjects_find(const struct wish *wish, struct subjects *subjects, struct sl_error *error)
{
        int r = 0;

        *subjects = (struct subjects){.n = 0};
        for (int i = 0; i < wish->n_names && r == 0; i++) {
                struct stat status;
                bool is_folder = stat(wish->names[i], &status) == 0 && S_ISDIR(status.st_mode);

                r = (is_folder ? add_folder : add_file)(wish, wish->names[i], subjects, error);
                if (r < 0)
                        sl_error_prefix(error, r, "%s", wish->names[i]);
        }
        return r;
}

void subjects_deinit(struct subjects *subjects)
{
        for (uint32_t i = 0; i < subjects->n; i++)
                sl_plan_free(subjects->items[i].plan);
        free(subjects->items);
        *subjects = (struct subjects){.n = 0};
}

/* ---- what they are called in a profile ---- */

const char *subject_precision(const struct subject *subject)
{
        static const char *const names[] = {
                [SL_PRECISION_FP32] = "fp32", [SL_PRECISION_BF16] = "bf16", [SL_PRECISION_INT8] = "int8"};

        return names[subject->lowering.precision];
}

/* What differs from the defaults; precision and batches are fields of their own, and what a core reaches follows from the host. */
static int print_options(const struct subject *subject, char *ret_text, size_t bytes)
{
        struct sl_lower_options defaults;
        size_t used = 0;

        ret_text[0] = 0;
        sl_lower_options_init(&defaults);
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                char text[SL_LOWER_OPTION_TEXT_BYTES], before[SL_LOWER_OPTION_TEXT_BYTES];

                if (i == SL_LOWER_OPTION_precision || i == SL_LOWER_OPTION_batch_max || i == SL_LOWER_OPTION_core)
                        continue;
                sl_lower_options_text(&subject->lowering, (enum sl_lower_option)i, text);
                sl_lower_options_text(&defaults, (enum sl_lower_option)i, before);
                if (strcmp(text, before) == 0)
                        continue;
                used += (size_t)snprintf(ret_text + used, bytes - used, "%s%s=%s", used ? " " : "",
                        sl_lower_option_name((enum sl_lower_option)i), text);
                if (used >= bytes)
                        return -EINVAL;
        }
        return 0;
}

int subject_fill(const struct subject *subject, struct sl_worker_profile *profile, struct sl_error *error)
{
        if (strlen(subject->path) >= sizeof(profile->path))
                return sl_error_set(error, EINVAL, "%s: a path of more than %zu bytes", subject->name, sizeof(profile->path) - 1);
        strcpy(profile->path, subject->path);
        strcpy(profile->model, subject->name);
        strcpy(profile->precision, subject_precision(subject));
        if (print_options(subject, profile->options, sizeof(profile->options)) < 0)
                return sl_error_set(
                        error, EINVAL, "%s: options of more than %zu bytes", subject->name, sizeof(profile->options) - 1);
        return 0;
}

/* ---- plans, and how long they take to come ---- */

static double ns_since(uint64_t start_ns)
{
        return (double)(sl_clock_ns() - start_ns);
}

/* A worker that could compute, and what that took since @start_ns. */
static int time_instance(const struct sl_plan *plan, uint32_t batch, uint64_t start_ns, double *ret_ns, struct sl_error *error)
{
        struct sl_instance *instance;
        int r = sl_instance_new(plan, batch, &instance, error);

        if (r < 0)
                return r;
        *ret_ns = ns_since(start_ns);
        sl_instance_free(instance);
        return 0;
}

static uint32_t batch_within(const struct sl_plan *plan, uint32_t batch)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        uint32_t largest = info->batches[info->n_batches - 1];

        return batch < largest ? batch : largest;
}

static int load_cold(struct subject *subject, const char *program, uint32_t batch, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = NULL;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        uint64_t start_ns = sl_clock_ns();
        struct sl_error warning = {""};
        int r = sl_compile(&(struct sl_compile_options){.program = program,
                                   .model_path = subject->path,
                                   .lowering = &subject->lowering,
                                   .data_folders = subject->data_folders},
                &fd, &warning);

        if (r < 0)
                return sl_error_set(error, -r, "%s: %s", subject->name, warning.text);
        r = sl_plan_open(fd, &plan, error);
        if (r == 0)
                r = time_instance(plan, batch_within(plan, batch), start_ns, &subject->cold_load_ns, error);
        if (r < 0)
                return sl_error_prefix(error, r, "%s", subject->name);
        subject->plan = sl_take(plan);
        *ret_fd = fd;
        fd = -1;
        return 0;
}

static int load_warm(struct subject *subject, struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, uint32_t batch,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = NULL;
        uint64_t start_ns = sl_clock_ns();
        int r = sl_plan_cache_find(cache, key, NULL, &plan, error);

        return r < 0 ? r : time_instance(plan, batch_within(plan, batch), start_ns, &subject->warm_load_ns, error);
}

/* What the runtime plans for, as long as nothing else is said. */
static void fill_core(struct subject *subject, struct sl_plan_cache *cache)
{
        struct sl_lower_options *lowering = &subject->lowering;
        struct sl_target target;

        if (lowering->core_measured && !sl_lower_options_have_core(lowering) &&
                sl_plan_cache_target(cache, sl_lower_options_backend(lowering), &target) == 0)
                lowering->core = target.core;
}

int subject_load(struct subject *subject, uint32_t batch, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_cache_free) struct sl_plan_cache *cache = NULL;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_plan_cache_key key;
        char program[PATH_MAX];
        int r = subject->plan ? 1 : program_beside(PROGRAM, program, error);

        if (r != 0)
                return r < 0 ? r : 0;
        subject->warm_load_ns = NAN;
        bool cached = sl_plan_cache_new(NULL, CACHE_BYTES, &cache, NULL) == 0;
        if (cached)
                fill_core(subject, cache);
        cached = cached && sl_plan_cache_key(cache, subject->path, program, &subject->lowering, NULL, &key, NULL) == 0;
        r = load_cold(subject, program, batch, &fd, error);
        if (r < 0 || !cached)
                return r;
        if (sl_plan_cache_store(cache, &key, subject->path, fd, NULL) == 0 && sl_plan_cache_wait(cache, NULL) == 0)
                (void)load_warm(subject, cache, &key, batch, NULL);
        return 0;
}
