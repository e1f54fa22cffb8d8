/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_models.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "compile.h"
#include "config.h"
#include "plan.h"
#include "plan_cache.h"
#include "repository.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SL_DEFINE_CLEANUP(struct sl_repository_scan *, sl_repository_scan_free)

/* Without a cache everything is compiled, and nothing kept. */
static struct sl_plan_cache *open_cache(const struct sl_config *config)
{
        struct sl_plan_cache *cache = NULL;
        struct sl_error error;

        if (config->cache_bytes && sl_plan_cache_new(config->cache_directory, config->cache_bytes, &cache, &error) < 0)
                fprintf(stderr, "starling fuse: warning: nothing is kept: %s\n", error.text);
        return cache;
}

int fuse_search_init(struct fuse_search *search, const char *config, struct sl_error *error)
{
        int r;

        *search = (struct fuse_search){0};
        r = sl_config_read(config, &search->config, error);
        if (r == 0)
                search->cache = open_cache(search->config);
        return r;
}

void fuse_search_deinit(struct fuse_search *search)
{
        if (search->cache)
                (void)sl_plan_cache_wait(search->cache, NULL);
        sl_plan_cache_free(search->cache);
        sl_config_free(search->config);
}

static bool is_folder(const char *path)
{
        struct stat status;

        return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The folder of a model has versions in it. */
static bool has_versions(const char *path)
{
        DIR *folder = opendir(path);
        bool found = false;

        for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
                found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                        strspn(entry->d_name, "0123456789") == strlen(entry->d_name);
        if (folder)
                closedir(folder);
        return found;
}

static int set_options(const struct fuse_search *search, struct sl_lower_options *lowering, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < search->n_options && r == 0; i++)
                r = sl_lower_options_parse(lowering, search->options[i], error);
        return r;
}

static int add(struct fuse_models *models, const struct fuse_search *search, const char *name, const char *path,
        const struct sl_lower_options *lowering, struct sl_error *error)
{
        struct fuse_model *grown = reallocarray(models->all, models->n + 1u, sizeof(*grown));
        struct fuse_model *model = grown ? &grown[models->n] : NULL;

        if (!grown)
                return sl_error_set(error, ENOMEM, "out of memory");
        models->all = grown;
        *model = (struct fuse_model){.name = strdup(name), .path = strdup(path), .lowering = *lowering, .group = UINT32_MAX};
        models->n++;
        if (!model->name || !model->path)
                return sl_error_set(error, ENOMEM, "out of memory");
        model->lowering.laned = true; /* as serve has them that are to be merged */
        return set_options(search, &model->lowering, error);
}

/* What a scan says of a repository; the first is held back: where there is no model it is the reason. */
struct remarks {
        uint32_t n;
        struct sl_error first;
};

static void print_first(const struct remarks *remarks)
{
        if (remarks->n)
                fprintf(stderr, "starling fuse: %s\n", remarks->first.text);
}

static void note(void *context, const char *text)
{
        struct remarks *remarks = context;

        if (remarks->n++ == 0) {
                (void)sl_error_set(&remarks->first, ENOENT, "%s", text);
                return;
        }
        if (remarks->n == 2)
                print_first(remarks);
        fprintf(stderr, "starling fuse: %s\n", text);
}

/* The only remark is the reason. */
static int refuse_empty(const char *repository, const struct remarks *remarks, struct sl_error *error)
{
        if (remarks->n == 1)
                return sl_error_set(error, ENOENT, "%s", remarks->first.text);
        return sl_error_set(error, ENOENT, "no model in \"%s\"", repository);
}

/* @name: one model of the repository; NULL: all. */
static int add_repository(struct fuse_models *models, const struct fuse_search *search, const char *repository, const char *name,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_repository_scan_free) struct sl_repository_scan *scan = NULL;
        const struct sl_repository_query query = {.repositories = &repository,
                .n_repositories = 1,
                .models = name ? &name : NULL,
                .n_models = name ? 1 : 0,
                .defaults = &search->config->model_defaults};
        uint32_t n = 0, before = models->n;
        struct remarks remarks = {.n = 0};
        int r = sl_repository_scan(&query, note, &remarks, &scan, error);
        const struct sl_model_spec *specs = r == 0 ? sl_repository_specs(scan, &n) : NULL;

        for (uint32_t i = 0; i < n && r == 0; i++)
                if (specs[i].path && !specs[i].refused)
                        r = add(models, search, specs[i].name, specs[i].path, &specs[i].lowering, error);
        if (r == 0 && models->n == before)
                return refuse_empty(repository, &remarks, error);
        if (remarks.n == 1)
                print_first(&remarks);
        return r;
}

int fuse_models_add(struct fuse_models *models, const struct fuse_search *search, const char *argument, struct sl_error *error)
{
        struct sl_lower_options lowering;
        char folder[PATH_MAX], *slash;

        if (!is_folder(argument)) {
                if (access(argument, R_OK) < 0)
                        return sl_error_set(error, errno, "\"%s\": %s", argument, strerror(errno));
                lowering = sl_model_config_lowering(&search->config->model_defaults);
                return add(models, search, argument, argument, &lowering, error);
        }
        if (!realpath(argument, folder))
                return sl_error_set(error, errno, "\"%s\": %s", argument, strerror(errno));
        if (!has_versions(folder))
                return add_repository(models, search, folder, NULL, error);
        slash = strrchr(folder, '/');
        *slash = 0;
        return add_repository(models, search, *folder ? folder : "/", slash + 1, error);
}

/* As serve does: what a core of this host reaches is a part of what the plan depends on. */
static void fill_core(const struct fuse_search *search, struct sl_lower_options *lowering)
{
        struct sl_target target;

        if (lowering->core_measured && !sl_lower_options_have_core(lowering) && search->cache &&
                sl_plan_cache_target(search->cache, sl_lower_options_backend(lowering), &target) == 0)
                lowering->core = target.core;
}

static int compile(
        struct fuse_model *model, struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_error *error)
{
        const struct sl_compile_options options = {.model_path = model->path, .lowering = &model->lowering};
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r = sl_compile(&options, &fd, error);

        if (r == 0)
                r = sl_plan_open(fd, &model->plan, error);
        if (r == 0 && key)
                (void)sl_plan_cache_store(cache, key, model->path, fd, NULL);
        return r;
}

static int find_plan(struct fuse_model *model, const struct fuse_search *search, struct sl_error *error)
{
        struct sl_plan_cache_key key;
        bool keyed;

        fill_core(search, &model->lowering);
        keyed = search->cache && sl_plan_cache_key(search->cache, model->path, NULL, &model->lowering, NULL, &key, error) == 0;
        if (keyed && sl_plan_cache_find(search->cache, &key, NULL, &model->plan, error) == 0)
                return 0;
        return compile(model, search->cache, keyed ? &key : NULL, error);
}

static const char *refusal(const struct sl_plan *plan)
{
        const struct sl_plan_info *info = sl_plan_info(plan);

        if (!info->n_batches || info->n_symbols)
                return "it has open dimensions beside the batch";
        if (sl_plan_is_dynamic(plan))
                return "its shapes, or the path through it, depend on the data";
        return info->family[0] ? NULL : "its architecture is not known";
}

static bool same_options(const struct sl_lower_options *one, const struct sl_lower_options *other)
{
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                char here[SL_LOWER_OPTION_TEXT_BYTES], there[SL_LOWER_OPTION_TEXT_BYTES];

                sl_lower_options_text(one, (enum sl_lower_option)i, here);
                sl_lower_options_text(other, (enum sl_lower_option)i, there);
                if (strcmp(here, there) != 0)
                        return false;
        }
        return true;
}

static void group(struct fuse_models *models, uint32_t number)
{
        struct fuse_model *model = &models->all[number];
        const uint64_t *family = sl_plan_info(model->plan)->family;
        const char *reason = refusal(model->plan);

        if (reason) {
                snprintf(model->reason, sizeof(model->reason), "%s", reason);
                return;
        }
        for (uint32_t i = 0; i < number; i++)
                if (models->all[i].group != UINT32_MAX &&
                        memcmp(sl_plan_info(models->all[i].plan)->family, family, 2 * sizeof(*family)) == 0 &&
                        same_options(&models->all[i].lowering, &model->lowering)) {
                        model->group = models->all[i].group;
                        return;
                }
        model->group = models->n_groups++;
}

void fuse_models_compile(struct fuse_models *models, const struct fuse_search *search)
{
        for (uint32_t i = 0; i < models->n; i++) {
                struct sl_error error = {""};

                if (find_plan(&models->all[i], search, &error) == 0)
                        group(models, i);
                else
                        memcpy(models->all[i].reason, error.text, sizeof(models->all[i].reason));
        }
}

void fuse_models_deinit(struct fuse_models *models)
{
        for (uint32_t i = 0; i < models->n; i++) {
                sl_plan_free(models->all[i].plan);
                free(models->all[i].name);
                free(models->all[i].path);
        }
        free(models->all);
}
