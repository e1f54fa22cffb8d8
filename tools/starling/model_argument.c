/* SPDX-License-Identifier: Apache-2.0 */
#include "model_argument.h"

#include "base/cleanup.h"
#include "base/dim_sizes.h"
#include "base/error.h"
#include "confined.h"
#include "model_config.h"
#include "open_sizes.h"
#include "repository.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

SL_DEFINE_CLEANUP(struct sl_repository_scan *, sl_repository_scan_free)

static bool is_folder(const char *path)
{
        struct stat status;

        return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Keeps the first complaint: it is about this model, as no other is looked for. */
static void note(void *context, const char *text)
{
        struct sl_error *first = context;

        if (!first->text[0])
                snprintf(first->text, sizeof(first->text), "%s", text);
}

/* A complaint without the path that it begins with, which the caller says as it was given. */
static const char *without_path(const char *complaint, const char *repository, const char *name)
{
        size_t n = strlen(repository), m = strlen(name);

        if (strncmp(complaint, repository, n) == 0 && complaint[n] == '/' && strncmp(complaint + n + 1, name, m) == 0 &&
                strncmp(complaint + n + 1 + m, ": ", 2) == 0)
                return complaint + n + 1 + m + 2;
        return complaint;
}

/* Where @folder is no model and a repository that has some: which one might be meant. Else @error stays as it is. */
static void suggest_model(const char *folder, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_repository_scan_free) struct sl_repository_scan *scan = NULL;
        struct sl_error complaint = {""}, why = {""};
        char path[PATH_MAX];
        uint32_t n;

        if (sl_repository_scan_plain(folder, &complaint, &scan, &why) < 0)
                return;
        const struct sl_model_spec *spec = sl_repository_specs(scan, &n);

        if (n == 0 || !spec->path || snprintf(path, sizeof(path), "%s/%s", folder, spec->name) >= (int)sizeof(path))
                return;
        const char *model = is_folder(path) ? path : spec->path;

        if (n == 1)
                sl_error_set(error, EINVAL, "a repository; its model is %s", model);
        else
                sl_error_set(error, EINVAL, "a repository; give one of its %u models, as %s", n, model);
}

static int read_folder(const char *repository, const char *name, struct sl_lower_options *lowering,
        struct model_argument *ret_argument, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_repository_scan_free) struct sl_repository_scan *scan = NULL;
        struct sl_model_config defaults;
        struct sl_error complaint = {""};
        uint32_t n;

        sl_model_config_init(&defaults);
        const struct sl_repository_query query = {
                .repositories = &repository, .n_repositories = 1, .models = &name, .n_models = 1, .defaults = &defaults};
        int r = sl_repository_scan(&query, note, &complaint, &scan, error);
        const struct sl_model_spec *spec = r == 0 ? sl_repository_specs(scan, &n) : NULL;

        if (complaint.text[0])
                return sl_error_set(error, EINVAL, "%s", without_path(complaint.text, repository, name));
        if (r < 0)
                return r;
        if (spec->refused)
                return sl_error_set(error, EINVAL, "%s", spec->refused);
        if (!spec->path)
                return sl_error_set(error, EINVAL, "it is an ensemble: look at its members");
        snprintf(ret_argument->path, sizeof(ret_argument->path), "%s", spec->path);
        ret_argument->configured = true;
        *lowering = spec->lowering;
        return 0;
}

int model_argument_find(
        const char *text, struct sl_lower_options *lowering, struct model_argument *ret_argument, struct sl_error *error)
{
        char folder[PATH_MAX];

        *ret_argument = (struct model_argument){.configured = false};
        if (!is_folder(text)) {
                if (strlen(text) >= sizeof(ret_argument->path))
                        return sl_error_set(error, ENAMETOOLONG, "a path of more than %zu bytes", sizeof(ret_argument->path) - 1);
                strcpy(ret_argument->path, text);
                return 0;
        }
        if (!realpath(text, folder))
                return sl_error_set(error, errno, "%s", strerror(errno));
        char *slash = strrchr(folder, '/');
        *slash = 0;
        int r = read_folder(*folder ? folder : "/", slash + 1, lowering, ret_argument, error);

        if (r < 0)
                suggest_model(text, error);
        return r;
}

/* What the process that reads the file is asked. */
struct question {
        const char *path;
        const struct sl_data_folders *data_folders;
        uint32_t samples;
        const struct sl_lower_options *lowering;
};

static int choose_sizes(void *context, void *ret_answer, struct sl_error *error)
{
        const struct question *question = context;
        struct sl_lower_options lowering = *question->lowering;
        int r = sl_open_sizes_choose(question->path, question->data_folders, question->samples, &lowering, error);

        if (r == 0)
                memcpy(ret_answer, &lowering.shapes, sizeof(lowering.shapes));
        return r;
}

/* Those behind the ones that were given. */
static int adopt_sizes(const struct sl_dim_sizes *chosen, struct sl_dim_sizes *sizes, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = sizes->n; i < chosen->n && i < SL_SYMBOLS_MAX && r == 0; i++) {
                size_t at = chosen->names[i], room = at < sizeof(chosen->text) ? sizeof(chosen->text) - at : 0;

                r = sl_dim_sizes_add(sizes, chosen->text + at, strnlen(chosen->text + at, room), chosen->sizes[i]);
        }
        return r < 0 ? sl_error_set(error, -r, "sizes of its open dimensions: %s", strerrordesc_np(-r)) : 0;
}

int model_argument_settle(const char *command, const struct model_argument *argument, const struct sl_data_folders *data_folders,
        uint32_t samples, struct sl_lower_options *lowering, struct sl_error *error)
{
        uint32_t before = lowering->shapes.n;
        struct question question = {.path = argument->path, .data_folders = data_folders, .samples = samples, .lowering = lowering};
        const struct confined confined = {.path = argument->path,
                .data_folders = data_folders,
                .seconds = lowering->plan_seconds,
                .run = choose_sizes,
                .context = &question,
                .answer_bytes = sizeof(struct sl_dim_sizes)};
        struct sl_dim_sizes chosen;
        int r = confined_run(&confined, &chosen, error);

        if (r == 0)
                r = adopt_sizes(&chosen, &lowering->shapes, error);

        for (uint32_t i = before; r == 0 && i < lowering->shapes.n; i++) {
                const char *name = sl_dim_sizes_name(&lowering->shapes, i);

                fprintf(stderr,
                        "starling %s: dimension \"%s\" is open and is %" PRId64 " here; for another size: -O shapes=%s=SIZE\n",
                        command, name, lowering->shapes.sizes[i], name);
        }
        return r;
}
