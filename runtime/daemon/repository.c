/* SPDX-License-Identifier: Apache-2.0 */
#include "repository_scan.h"

#include "base/error.h"
#include "base/value.h"
#include "onnx_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define VERSIONS_MAX 256
#define PATH_BYTES   4096
#define TEXT_BYTES   384

uint32_t sl_versions_pick(const struct sl_version_policy *policy, const int64_t *found, uint32_t n_found, int64_t *ret_picked)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < n_found; i++) {
                bool picked =
                        policy->kind == SL_VERSIONS_ALL || (policy->kind == SL_VERSIONS_LATEST && n_found - i <= policy->latest);

                for (uint32_t k = 0; policy->kind == SL_VERSIONS_SPECIFIC && k < policy->n_specific; k++)
                        picked |= policy->specific[k] == found[i];
                if (picked)
                        ret_picked[n++] = found[i];
        }
        return n;
}

static int compare_versions(const void *a, const void *b)
{
        int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

        return (left > right) - (left < right);
}

static bool is_file(const char *path)
{
        struct stat stat_now;

        return stat(path, &stat_now) == 0 && S_ISREG(stat_now.st_mode);
}

static bool is_folder(const char *path)
{
        struct stat stat_now;

        return stat(path, &stat_now) == 0 && S_ISDIR(stat_now.st_mode);
}

/* The newest are kept. False: there was no room, and one is gone. */
static bool keep_version(int64_t version, int64_t *versions, uint32_t *n)
{
        uint32_t oldest = 0;

        if (*n < VERSIONS_MAX) {
                versions[(*n)++] = version;
                return true;
        }
        for (uint32_t i = 1; i < *n; i++)
                oldest = versions[i] < versions[oldest] ? i : oldest;
        if (version > versions[oldest])
                versions[oldest] = version;
        return false;
}

/* A folder that is called as versions are: 1, 2, ... */
static bool is_version(const char *name, int64_t *ret_version)
{
        char wish[SL_WISH_BYTES];
        uint64_t version;

        if (name[0] == '0' || sl_value_number(name, 1, INT64_MAX, &version, wish) < 0)
                return false;
        *ret_version = (int64_t)version;
        return true;
}

/* One of its versions has a file that may be a model. */
static bool has_version_folder(const char *folder)
{
        DIR *dir = opendir(folder);
        bool has = false;

        for (struct dirent *entry; dir && !has && (entry = readdir(dir));) {
                char path[PATH_BYTES];
                int64_t version;

                has = is_version(entry->d_name, &version) &&
                      snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < (int)sizeof(path) && sl_onnx_files_in(path).n;
        }
        if (dir)
                closedir(dir);
        return has;
}

/* What is wrong with the version in @folder, of which nobody can say which file it is. */
static void print_version_fault(const char *folder, const struct sl_onnx_files *files, struct sl_error *ret_fault)
{
        char there[TEXT_BYTES];

        if (files->n) {
                sl_onnx_files_print(files, there, sizeof(there));
                sl_error_set(ret_fault, EEXIST,
                        "%s: %s: call the one that this version is model.onnx, and move the other to a folder NAME/1 of its own",
                        folder, there);
        } else {
                sl_onnx_files_hint(folder, "this folder", there, sizeof(there));
                sl_error_set(ret_fault, ENOENT, "%s: no model.onnx in this version: %s", folder, there);
        }
}

/* Versions in @folder, ascending. @ret_fault: of the last that has no model; each but that is reported. */
static uint32_t find_versions(
        const struct sl_repository_scan *scan, const char *folder, int64_t *ret_versions, struct sl_error *ret_fault)
{
        DIR *dir = opendir(folder);
        uint32_t n = 0, n_left_out = 0;

        for (struct dirent *entry; dir && (entry = readdir(dir));) {
                struct sl_onnx_files files;
                char path[PATH_BYTES];
                int64_t version;

                if (!is_version(entry->d_name, &version) ||
                        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path))
                        continue;
                files = sl_onnx_files_in(path);
                if (sl_onnx_files_choose(&files)) {
                        n_left_out += !keep_version(version, ret_versions, &n);
                        continue;
                }
                if (ret_fault->text[0])
                        sl_scan_report(scan, "%s", ret_fault->text);
                print_version_fault(path, &files, ret_fault);
        }
        if (n_left_out)
                sl_scan_report(scan, "%s: %u versions more than %u: the oldest are left out", folder, n_left_out, VERSIONS_MAX);
        if (dir)
                closedir(dir);
        qsort(ret_versions, n, sizeof(*ret_versions), compare_versions);
        return n;
}

/* @version 0: the file lies in @folder itself. */
static int serve_version(struct sl_repository_scan *scan, const char *folder, const char *name, int64_t version,
        const struct sl_model_config *config)
{
        char within[PATH_BYTES], path[PATH_BYTES];
        int bytes = version ? snprintf(within, sizeof(within), "%s/%lld", folder, (long long)version)
                            : snprintf(within, sizeof(within), "%s", folder);
        struct sl_onnx_files files;
        const char *file;

        if (bytes >= (int)sizeof(within))
                return -ENAMETOOLONG;
        files = sl_onnx_files_in(within);
        file = sl_onnx_files_choose(&files);
        if (snprintf(path, sizeof(path), "%s/%s", within, file ? file : "model.onnx") >= (int)sizeof(path))
                return -ENAMETOOLONG;
        return sl_scan_append(scan, name, path, false, version ? version : 1, config);
}

static bool has_version(const int64_t *found, uint32_t n_found, int64_t version)
{
        for (uint32_t i = 0; i < n_found; i++)
                if (found[i] == version)
                        return true;
        return false;
}

static void report_absent(const struct sl_repository_scan *scan, const char *folder, const struct sl_version_policy *policy,
        const int64_t *found, uint32_t n_found)
{
        for (uint32_t i = 0; policy->kind == SL_VERSIONS_SPECIFIC && i < policy->n_specific; i++)
                if (!has_version(found, n_found, policy->specific[i]))
                        sl_scan_report(scan, "%s: version_policy names version %lld, which is not there", folder,
                                (long long)policy->specific[i]);
}

/* Without versions: the only .onnx file of the folder, or the reason why nothing is served. */
static int serve_without_versions(
        struct sl_repository_scan *scan, const char *folder, const char *name, const struct sl_model_config *config)
{
        struct sl_onnx_files files = sl_onnx_files_in(folder);
        char there[TEXT_BYTES];

        if (sl_onnx_files_choose(&files))
                return serve_version(scan, folder, name, 0, config);
        if (files.n) {
                sl_onnx_files_print(&files, there, sizeof(there));
                return sl_scan_leave_out(scan, name,
                        "%s: no VERSION/model.onnx, but %s: move each to NAME/1/model.onnx, or serve this folder itself", folder,
                        there);
        }
        sl_onnx_files_hint(folder, "1/model.onnx", there, sizeof(there));
        return sl_scan_leave_out(scan, name, "%s: no VERSION/model.onnx: %s", folder, there);
}

/* Files beside the folders of versions. */
static void report_beside(const struct sl_repository_scan *scan, const char *folder)
{
        struct sl_onnx_files files = sl_onnx_files_in(folder);

        if (files.n)
                sl_scan_report(scan, "%s/%s: it lies beside the folders of versions, and is not served: move it into one", folder,
                        files.first);
}

static int serve_model(struct sl_repository_scan *scan, const char *folder, const char *name, const struct sl_model_config *config)
{
        int64_t found[VERSIONS_MAX], picked[VERSIONS_MAX];
        struct sl_error fault = {""};
        uint32_t n_found = find_versions(scan, folder, found, &fault);
        uint32_t n = sl_versions_pick(&config->version_policy, found, n_found, picked);
        int result = 0;

        if (!n_found && fault.text[0])
                return sl_scan_leave_out(scan, name, "%s", fault.text);
        if (!n_found)
                return serve_without_versions(scan, folder, name, config);
        if (fault.text[0])
                sl_scan_report(scan, "%s", fault.text);
        report_beside(scan, folder);
        report_absent(scan, folder, &config->version_policy, found, n_found);
        if (n == 0)
                return sl_scan_leave_out(scan, name, "%s: the version policy picks none of its versions", folder);
        for (uint32_t i = 0; n > 1 && result == 0 && i < n; i++) {
                char versioned[SL_MODEL_NAME_BYTES];

                snprintf(versioned, sizeof(versioned), "%.*s:%lld", SL_NAME_MAX, name, (long long)picked[i]);
                result = serve_version(scan, folder, versioned, picked[i], config);
        }
        return result == 0 ? serve_version(scan, folder, name, picked[n - 1], config) : result;
}

static bool has_triton_config(const char *folder)
{
        char file[PATH_BYTES + 16];

        snprintf(file, sizeof(file), "%s/config.pbtxt", folder);
        return is_file(file);
}

static bool has_config(const char *folder)
{
        char file[PATH_BYTES + 16];

        snprintf(file, sizeof(file), "%s/config.yaml", folder);
        return is_file(file);
}

/* A folder that means a model: with a configuration, a version that has a file, or a file. */
static bool is_model_folder(const char *folder)
{
        return sl_onnx_files_in(folder).n || has_config(folder) || has_version_folder(folder);
}

/* Order of files and folders is whatever the file system says: both find the other one. */
static int refuse_twins(struct sl_repository_scan *scan, const char *name)
{
        if (sl_scan_find(scan, name))
                return 0;
        return sl_scan_leave_out(scan, name,
                "%s: the file %s.onnx and the folder %s are both the model \"%s\": move one of them away",
                scan->repository, name, name, name);
}

/* A folder whose configuration has another name for it is not called as the file. Of one that is damaged nobody knows. */
static bool is_renamed(const struct sl_repository_scan *scan, const char *folder)
{
        struct sl_model_config config;
        char file[PATH_BYTES + 16];
        bool renamed;

        snprintf(file, sizeof(file), "%s/config.yaml", folder);
        if (!is_file(file) || sl_model_config_read(file, scan->query->defaults, &config, NULL) < 0)
                return false;
        renamed = config.name != NULL;
        sl_model_config_deinit(&config);
        return renamed;
}

static bool has_twins(const struct sl_repository_scan *scan, const char *name)
{
        char file[PATH_BYTES], folder[PATH_BYTES];

        return snprintf(file, sizeof(file), "%s/%s.onnx", scan->repository, name) < (int)sizeof(file) && is_file(file) &&
               snprintf(folder, sizeof(folder), "%s/%s", scan->repository, name) < (int)sizeof(folder) && is_model_folder(folder) &&
               !is_renamed(scan, folder);
}

/* Of the model @name, and its versions, nothing is served any more. Return: 0, -ENOMEM. */
static int leave_out_served(struct sl_repository_scan *scan, const char *name, const char *cause)
{
        size_t bytes = strlen(name);

        for (uint32_t i = 0; i < scan->n; i++) {
                struct sl_scanned *served = scan->served[i];

                if (strncmp(served->name, name, bytes) != 0 || (served->name[bytes] && served->name[bytes] != ':'))
                        continue;
                int result = sl_scan_refuse(served, cause);

                if (result < 0)
                        return result;
        }
        return 0;
}

/*
 * A repository that is looked at later has nothing to say of a name that is taken. Within one, as the order of its folders is
 * whatever the file system says, neither is served. Return: 0, -ENOMEM.
 */
static int refuse_namesake(struct sl_repository_scan *scan, const char *path, const struct sl_scanned *there)
{
        struct sl_error error;

        if (there->repository != scan->repository) {
                sl_scan_report(scan, "%s: another repository has a model of this name", path);
                return 0;
        }
        sl_error_set(&error, EEXIST, "%s: two models are called \"%s\", by their folders or the key name: this is one of them",
                path, there->name);
        sl_scan_report(scan, "%s", error.text);
        return leave_out_served(scan, there->name, error.text);
}

/* Return: whether a model may have the name, of which @what says whose it is: "folder", "name before .onnx". */
static bool check_name(struct sl_repository_scan *scan, const char *path, const char *name, const char *what)
{
        char wish[SL_WISH_BYTES];

        if (sl_value_model_name(name, wish) == 0)
                return true;
        sl_scan_report(scan, "%s: the %s is %s", path, what, wish);
        scan->n_unnamed++;
        return false;
}

/* A model in @folder, with its configuration. */
static int scan_model(
        struct sl_repository_scan *scan, const char *folder, const char *own_name, const struct sl_model_config *config)
{
        const char *name = config->name ? config->name->names[0] : own_name;
        const struct sl_scanned *there;

        if (!sl_scan_wants(scan->query, name) || !check_name(scan, folder, name, "folder"))
                return 0;
        if (!config->name && has_twins(scan, name))
                return refuse_twins(scan, name);
        there = sl_scan_find(scan, name);
        if (there)
                return refuse_namesake(scan, folder, there);
        if (config->task && has_version_folder(folder))
                return sl_scan_leave_out(scan, name,
                        "%s: a task has no versions of its own, and there are some: move them to a folder of their model", folder);
        return config->is_ensemble || config->task ? sl_scan_append(scan, name, NULL, false, 0, config)
                                                   : serve_model(scan, folder, name, config);
}

/* The folder of a model, in a repository or by itself. @name: its own. */
static int scan_folder(struct sl_repository_scan *scan, const char *folder, const char *name)
{
        struct sl_model_config config = *scan->query->defaults;
        char file[PATH_BYTES + 16];
        struct sl_error error = {""};
        const struct sl_scanned *there;
        struct stat status;
        int result;

        snprintf(file, sizeof(file), "%s/config.yaml", folder);
        if (lstat(file, &status) < 0 && errno == ENOENT) { /* a link to nothing is no configuration, and not none */
                if (!sl_scan_wants(scan->query, name))
                        return 0;
                scan->n_triton += has_triton_config(folder);
                sl_model_config_hold(&config);
        } else if (sl_model_config_read(file, scan->query->defaults, &config, &error) < 0) {
                if (!sl_scan_wants(scan->query, name) || !check_name(scan, folder, name, "folder"))
                        return 0;
                there = sl_scan_find(scan, name);
                return there ? refuse_namesake(scan, folder, there) : sl_scan_leave_out(scan, name, "%s", error.text);
        }
        result = scan_model(scan, folder, name, &config);
        sl_model_config_deinit(&config);
        return result;
}

/* A file of a folder of several: it is called as the file. */
static int scan_file(struct sl_repository_scan *scan, const char *path)
{
        const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
        char name[SL_ONNX_FILE_BYTES], own[PATH_BYTES];
        const struct sl_scanned *there;
        size_t stem = 0;

        (void)sl_onnx_file_is(file, &stem);
        snprintf(name, sizeof(name), "%.*s", (int)stem, file);
        if (snprintf(own, sizeof(own), "%s%s", slash ? "" : "./", path) >= (int)sizeof(own))
                return -ENAMETOOLONG;
        if (!sl_scan_wants(scan->query, name) || !check_name(scan, path, name, "name before .onnx"))
                return 0;
        there = sl_scan_find(scan, name);
        if (there)
                return refuse_namesake(scan, path, there);
        return sl_scan_append(scan, name, own, true, 1, scan->query->defaults);
}

static int scan_entry(struct sl_repository_scan *scan, const char *repository, const char *entry)
{
        char path[PATH_BYTES], name[SL_ONNX_FILE_BYTES];
        size_t stem = strlen(entry);
        bool file = sl_onnx_file_is(entry, &stem);

        if (snprintf(path, sizeof(path), "%s/%s", repository, entry) >= (int)sizeof(path))
                return 0;
        file = file && is_file(path);
        if (!file && !is_folder(path))
                return 0;
        snprintf(name, sizeof(name), "%.*s", file ? (int)stem : (int)strlen(entry), entry);
        if (!file)
                return scan_folder(scan, path, name);
        if (!sl_scan_wants(scan->query, name))
                return 0;
        return has_twins(scan, name) ? refuse_twins(scan, name) : scan_file(scan, path);
}

/* A file by itself: what lies beside it may be its own. */
static int scan_alone(struct sl_repository_scan *scan, const char *path)
{
        const char *slash = strrchr(path, '/');
        char folder[PATH_BYTES];

        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
        (void)sl_folder_names_read(folder[0] ? folder : "/", &scan->beside); /* it can be served though that cannot be read */
        int result = scan_file(scan, path);

        sl_folder_names_free(&scan->beside);
        return result;
}

/* What @repository says of itself without "." and "..": a folder is called as whoever serves it calls it. */
static void own_name(const char *repository, char *ret_name, size_t bytes)
{
        char path[PATH_MAX];
        size_t end;

        snprintf(path, sizeof(path), "%s", repository);
        for (end = strlen(path); end > 1 && path[end - 1] == '/';)
                path[--end] = 0;
        const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

        if ((!*name || name[0] == '.') && realpath(repository, path))
                name = strrchr(path, '/') + 1;
        snprintf(ret_name, bytes, "%s", name);
}

/* A model's own folder, with its versions or its configuration in it, and no folder of another model. */
static bool is_own_folder(const char *repository)
{
        bool own = has_version_folder(repository) || has_config(repository);
        DIR *dir = own ? opendir(repository) : NULL;

        for (struct dirent *entry; own && dir && (entry = readdir(dir));) {
                char folder[PATH_BYTES];
                int64_t version;

                if (entry->d_name[0] != '.' && !is_version(entry->d_name, &version) &&
                        snprintf(folder, sizeof(folder), "%s/%s", repository, entry->d_name) < (int)sizeof(folder))
                        own = !is_model_folder(folder);
        }
        if (dir)
                closedir(dir);
        return own;
}

/* Of a repository that has nothing which is a model, or is broken. */
static void report_nothing(struct sl_repository_scan *scan, const char *repository)
{
        char there[TEXT_BYTES];

        sl_onnx_files_hint(repository, "NAME/1/model.onnx", there, sizeof(there));
        sl_scan_report(scan, "%s: no NAME/VERSION/model.onnx and no NAME.onnx: %s", repository, there);
}

static int scan_folders(struct sl_repository_scan *scan, const char *repository)
{
        uint32_t n_before = scan->n + scan->n_unnamed;
        int result = sl_folder_names_read(repository, &scan->beside);

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < scan->beside.n && result == 0; i++)
                result = scan_entry(scan, repository, scan->beside.names[i]);
        sl_folder_names_free(&scan->beside);
        if (scan->n + scan->n_unnamed == n_before && !scan->query->n_models)
                report_nothing(scan, repository);
        return result;
}

static int scan_repository(struct sl_repository_scan *scan, const char *repository, struct sl_error *error)
{
        char name[SL_ONNX_FILE_BYTES];
        size_t stem;
        int result;

        scan->repository = repository;
        if (is_file(repository)) {
                if (!sl_onnx_file_is(repository, &stem))
                        return sl_error_set(
                                error, ENOTDIR, "model repository \"%s\": a file, and none that is called NAME.onnx", repository);
                result = scan_alone(scan, repository);
        } else if (is_own_folder(repository)) {
                own_name(repository, name, sizeof(name));
                result = scan_folder(scan, repository, name);
        } else {
                result = scan_folders(scan, repository);
        }
        if (result < 0)
                return sl_error_set(error, -result, "model repository \"%s\": %s", repository, strerrordesc_np(-result));
        return result;
}

static int compare_served(const void *a, const void *b)
{
        const struct sl_scanned *left = *(struct sl_scanned *const *)a, *right = *(struct sl_scanned *const *)b;

        if (left->config->is_ensemble != right->config->is_ensemble)
                return left->config->is_ensemble ? 1 : -1;
        size_t left_bytes = strcspn(left->name, ":"), right_bytes = strcspn(right->name, ":");
        size_t bytes = left_bytes < right_bytes ? left_bytes : right_bytes;
        int order = strncmp(left->name, right->name, bytes);

        if (order || left_bytes != right_bytes)
                return order ? order : (left_bytes > right_bytes) - (left_bytes < right_bytes);
        bool left_plain = !left->name[left_bytes], right_plain = !right->name[right_bytes];
        if (left_plain != right_plain)
                return left_plain ? -1 : 1;
        return (left->spec->version > right->spec->version) - (left->spec->version < right->spec->version);
}

static int check_wanted(const struct sl_repository_scan *scan, struct sl_error *error)
{
        for (uint32_t i = 0; i < scan->query->n_models; i++) {
                const char *name = scan->query->models[i];
                const struct sl_scanned *served = sl_scan_find(scan, name);

                if (!served)
                        return sl_error_set(error, ENOENT, "model \"%s\": none of the %u repositories has it", name,
                                scan->query->n_repositories);
                if (served->cause)
                        return sl_error_set(error, ENOENT, "model \"%s\" is listed and cannot be served: %s", name, served->cause);
        }
        return 0;
}

/* One that is left out is a name that cannot be served, as any other. */
static bool is_task(const struct sl_scanned *served)
{
        return served->config->task && !served->cause;
}

static struct sl_task_spec task_spec(const struct sl_scanned *served)
{
        const struct sl_task_config *task = served->config->task;

        return (struct sl_task_spec){.name = served->name,
                .variants = task->variants,
                .accuracies = task->accuracies,
                .costs = task->costs,
                .latencies_ms = task->latencies_ms,
                .batches_ms = task->batches_ms,
                .files = task->files,
                .processor = task->processor,
                .version = task->version,
                .n = task->n,
                .policy = task->policy};
}

static struct sl_scanned *find_variant(const struct sl_repository_scan *scan, const char *name)
{
        for (uint32_t i = 0; i < scan->n; i++)
                if (strcmp(scan->served[i]->name, name) == 0)
                        return is_task(scan->served[i]) || scan->served[i]->cause ? NULL : scan->served[i];
        return NULL;
}

/* Of a task's variants the most accurate that there is; NULL: there is none, or all are loaded at the start. */
static struct sl_scanned *most_accurate(const struct sl_repository_scan *scan, const struct sl_task_config *task)
{
        struct sl_scanned *best = NULL;
        double accuracy = -1;

        for (uint32_t i = 0; i < task->n && task->load == SL_TASK_LOAD_ACCURATE; i++) {
                struct sl_scanned *variant = find_variant(scan, task->variants[i]);

                if (!variant || task->accuracies[i] <= accuracy)
                        continue;
                best = variant;
                accuracy = task->accuracies[i];
        }
        return best;
}

/* The variants whose own configuration does not say when they are loaded: those that one task has at the start, or the others. */
static void mark_variants(struct sl_repository_scan *scan, bool at_start)
{
        for (uint32_t i = 0; i < scan->n; i++) {
                const struct sl_task_config *task = is_task(scan->served[i]) ? scan->served[i]->config->task : NULL;
                const struct sl_scanned *first = task ? most_accurate(scan, task) : NULL;

                for (uint32_t v = 0; task && v < task->n; v++) {
                        struct sl_scanned *variant = find_variant(scan, task->variants[v]);

                        if (variant && variant->spec->path && !variant->config->load_given && (!first || variant == first) == at_start)
                                variant->spec->on_request = variant->spec->plan_first = !at_start;
                }
        }
}

/* What any task has at the start is there for all. */
static void relate_variants(struct sl_repository_scan *scan)
{
        mark_variants(scan, false);
        mark_variants(scan, true);
}

static int finish(struct sl_repository_scan *scan, struct sl_error *error)
{
        if (sl_scan_relate(scan) < 0)
                return sl_error_set(error, ENOMEM, "model repository: out of memory");
        int result = check_wanted(scan, error);
        if (result < 0)
                return result;
        if (scan->n)
                qsort(scan->served, scan->n, sizeof(struct sl_scanned *), compare_served);
        relate_variants(scan);
        scan->specs = calloc(scan->n + 1ul, sizeof(*scan->specs));
        scan->tasks = calloc(scan->n + 1ul, sizeof(*scan->tasks));
        if (!scan->specs || !scan->tasks)
                return sl_error_set(error, ENOMEM, "model repository: out of memory");
        for (uint32_t i = 0; i < scan->n; i++) {
                struct sl_scanned *served = scan->served[i];
                struct sl_model_spec *copy = &scan->specs[scan->n_specs];

                if (is_task(served)) {
                        scan->tasks[scan->n_tasks++] = task_spec(served);
                        continue;
                }
                *copy = *served->spec;
                free(served->spec);
                served->spec = copy;
                served->is_copied = true;
                scan->n_specs++;
        }
        return 0;
}

int sl_repository_scan(const struct sl_repository_query *query, sl_repository_report_fn report_fn, void *context,
        struct sl_repository_scan **ret_scan, struct sl_error *error)
{
        struct sl_repository_scan *scan = calloc(1, sizeof(*scan));
        int result = 0;

        if (!scan)
                return sl_error_set(error, ENOMEM, "model repository: out of memory");
        scan->query = query;
        scan->report = report_fn;
        scan->context = context;
        for (uint32_t i = 0; result == 0 && i < query->n_repositories; i++)
                result = scan_repository(scan, query->repositories[i], error);
        if (result == 0)
                result = finish(scan, error);
        scan->query = NULL;
        if (result < 0)
                sl_repository_scan_free(scan);
        else
                *ret_scan = scan;
        return result;
}

struct sl_repository_scan *sl_repository_scan_free(struct sl_repository_scan *scan)
{
        if (!scan)
                return NULL;
        for (uint32_t i = 0; i < scan->n; i++)
                sl_scanned_free(scan->served[i]);
        while (scan->configs) {
                struct sl_scanned_config *config = scan->configs;

                scan->configs = config->next;
                sl_model_config_deinit(&config->config);
                free(config);
        }
        free(scan->served);
        free(scan->specs);
        free(scan->tasks);
        free(scan);
        return NULL;
}

struct sl_model_spec *sl_repository_specs(const struct sl_repository_scan *scan, uint32_t *ret_n)
{
        *ret_n = scan->n_specs;
        return scan->specs;
}

const struct sl_task_spec *sl_repository_tasks(const struct sl_repository_scan *scan, uint32_t *ret_n)
{
        *ret_n = scan->n_tasks;
        return scan->tasks;
}

const struct sl_model_spec *sl_repository_find(const struct sl_repository_scan *scan, const char *name)
{
        for (uint32_t i = 0; i < scan->n_specs; i++)
                if (strcmp(scan->specs[i].name, name) == 0)
                        return &scan->specs[i];
        return NULL;
}

void sl_repository_tell_unused(const struct sl_repository_scan *scan, sl_repository_report_fn tell, void *context)
{
        struct sl_error error;

        for (uint32_t i = 0; i < scan->n; i++) {
                const struct sl_scanned *served = scan->served[i];

                if (!served->config->unused || served->cause)
                        continue;
                sl_error_set(&error, EINVAL, "model \"%s\": %s is for workers that are processes: isolation: process, or a GPU's",
                        served->name, served->config->unused);
                tell(context, error.text);
        }
}

static void note_complaint(void *context, const char *text)
{
        struct sl_error *last = context;

        snprintf(last->text, sizeof(last->text), "%s", text);
}

int sl_repository_scan_plain(
        const char *repository, struct sl_error *complaint, struct sl_repository_scan **ret_scan, struct sl_error *error)
{
        struct sl_model_config defaults;

        sl_model_config_init(&defaults);
        const struct sl_repository_query query = {.repositories = &repository, .n_repositories = 1, .defaults = &defaults};

        return sl_repository_scan(&query, note_complaint, complaint, ret_scan, error);
}

uint32_t sl_repository_unnamed(const struct sl_repository_scan *scan)
{
        return scan->n_unnamed;
}

uint32_t sl_repository_triton(const struct sl_repository_scan *scan)
{
        return scan->n_triton;
}
