/* SPDX-License-Identifier: Apache-2.0 */
#include "repository.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "model_stamp.h"
#include "onnx_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define VERSIONS_MAX 256
#define PATH_BYTES   4096
#define TEXT_BYTES   384

/* One served name with what its spec points to. */
struct served {
        struct sl_model_spec spec;
        char name[SL_MODEL_NAME_BYTES_MAX];
        char *path;
        char *cause; /* why it is not served; NULL: it is */
        bool shared; /* the folder of its file is not its own */
        struct sl_model_config config;
        const char *members[SL_MEMBERS_MAX];
};

struct sl_repository_scan {
        struct served **served;
        struct sl_model_spec *specs; /* copies, in order */
        uint32_t n;
        uint32_t n_unnamed;                      /* models whose file or folder has no name that one can be served under */
        uint32_t n_triton;                       /* folders with a configuration of Triton's and none of ours */
        const struct sl_repository_query *query; /* while scanning */
        sl_repository_report_fn report;
        void *context;
};

static void report(const struct sl_repository_scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(const struct sl_repository_scan *scan, const char *format, ...)
{
        char text[SL_ERROR_TEXT_BYTES];
        va_list args;

        if (!scan->report)
                return;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        scan->report(scan->context, text);
}

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

static struct served *served_free(struct served *served)
{
        if (served) {
                free(served->path);
                free(served->cause);
        }
        free(served);
        return NULL;
}

static struct served *find_served(const struct sl_repository_scan *scan, const char *name)
{
        for (uint32_t i = 0; i < scan->n; i++)
                if (strcmp(scan->served[i]->name, name) == 0)
                        return scan->served[i];
        return NULL;
}

static int append(struct sl_repository_scan *scan, struct served *served)
{
        struct served **grown = reallocarray(scan->served, scan->n + 1ul, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        scan->served = grown;
        grown[scan->n++] = served;
        return 0;
}

/* There is room for all: the configuration was checked. */
static void fill_workers(struct served *served)
{
        const struct sl_model_config *config = &served->config;
        struct sl_worker_set set = {.n = config->instances};
        struct sl_error error;

        for (uint32_t i = 0; i < config->n_batch_sizes; i++)
                set.wishes[i].batch_size = config->batch_sizes[i];
        if (!config->on_gpu || sl_worker_set_spread(&set, config->gpus, config->n_gpus, &served->spec.workers, &error) < 0)
                served->spec.workers = set;
}

static void fill_spec(struct served *served, int64_t version)
{
        const struct sl_model_config *config = &served->config;

        for (uint32_t i = 0; i < config->n_members; i++)
                served->members[i] = config->members[i];
        served->spec = (struct sl_model_spec){
                .name = served->name,
                .version = version,
                .path = served->path,
                .stamp = sl_model_stamp(config, served->path, served->shared),
                .lowering = sl_model_config_lowering(config),
                .batch_bytes_max = config->batch_given ? 0 : config->batch_bytes_max,
                .threads = config->threads ? config->threads : SL_THREADS_ALL,
                .warmup_ms = config->warmup_ms,
                .predictions = (enum sl_predictions)config->predictions,
                .fuse = (enum sl_sharing)config->fuse,
                .isolation = (enum sl_isolation)config->isolation,
                .on_gpu = config->on_gpu,
                .gpu_words = config->gpu_completions == 1,
                .gpu_tuning = {config->gpu_tune, config->gpu_tune_seconds * SL_NS_PER_SECOND},
                .gpu_direct = config->gpu_results == 1,
                .on_crash = (enum sl_on_crash)config->on_crash,
                .hang_ms = config->hang_ms,
                .gpu_falls_back = config->gpu_fallback == 1,
                .shapes_max = config->shapes_max,
                .members = config->is_ensemble ? served->members : NULL,
                .n_members = config->n_members,
                .rule = config->rule,
                .weights = config->is_ensemble && config->rule == SL_RULE_WEIGHTED_MEAN ? config->weights : NULL,
                .segment_samples = config->segment_samples,
                .batching = config->batching,
                .slice_ns = config->slice_ms * SL_NS_PER_MS,
                .samples_max = config->samples_max,
                .queue_requests = config->queue_requests,
        };
        fill_workers(served);
        served->spec.n_prepared = config->n_prepared;
        served->spec.prepared_known = config->prepared_known;
        memcpy(served->spec.prepared, config->prepared, sizeof(config->prepared));
}

/* @path NULL: an ensemble. */
static int append_version(struct sl_repository_scan *scan, const char *name, const char *path, bool shared, int64_t version,
        const struct sl_model_config *config)
{
        struct served *served = calloc(1, sizeof(*served));

        if (!served)
                return -ENOMEM;
        served->shared = shared;
        memcpy(served->name, name, strnlen(name, sizeof(served->name) - 1));
        served->config = *config;
        served->path = path ? strdup(path) : NULL;
        fill_spec(served, version);
        int result = path && !served->path ? -ENOMEM : append(scan, served);
        if (result < 0)
                served_free(served);
        return result;
}

/* The name is known, and so is the cause why it is not served. */
static int leave_out(struct sl_repository_scan *scan, const char *name, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int leave_out(struct sl_repository_scan *scan, const char *name, const char *format, ...)
{
        struct served *served = calloc(1, sizeof(*served));
        char text[SL_ERROR_TEXT_BYTES];
        va_list args;

        if (!served)
                return -ENOMEM;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        report(scan, "%s", text);
        memcpy(served->name, name, strnlen(name, sizeof(served->name) - 1));
        served->cause = strdup(text);
        served->spec = (struct sl_model_spec){.name = served->name, .refused = served->cause};
        int result = served->cause ? append(scan, served) : -ENOMEM;
        if (result < 0)
                served_free(served);
        return result;
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
                        report(scan, "%s", ret_fault->text);
                print_version_fault(path, &files, ret_fault);
        }
        if (n_left_out)
                report(scan, "%s: %u versions more than %u: the oldest are left out", folder, n_left_out, VERSIONS_MAX);
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
        return append_version(scan, name, path, false, version ? version : 1, config);
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
                        report(scan, "%s: version_policy names version %lld, which is not there", folder,
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
                return leave_out(scan, name,
                        "%s: no VERSION/model.onnx, but %s: move each to NAME/1/model.onnx, or serve this folder itself", folder,
                        there);
        }
        sl_onnx_files_hint(folder, "1/model.onnx", there, sizeof(there));
        return leave_out(scan, name, "%s: no VERSION/model.onnx: %s", folder, there);
}

/* Files beside the folders of versions. */
static void report_beside(const struct sl_repository_scan *scan, const char *folder)
{
        struct sl_onnx_files files = sl_onnx_files_in(folder);

        if (files.n)
                report(scan, "%s/%s: it lies beside the folders of versions, and is not served: move it into one", folder,
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
                return leave_out(scan, name, "%s", fault.text);
        if (!n_found)
                return serve_without_versions(scan, folder, name, config);
        if (fault.text[0])
                report(scan, "%s", fault.text);
        report_beside(scan, folder);
        report_absent(scan, folder, &config->version_policy, found, n_found);
        if (n == 0)
                return leave_out(scan, name, "%s: the version policy picks none of its versions", folder);
        for (uint32_t i = 0; n > 1 && result == 0 && i < n; i++) {
                char versioned[SL_MODEL_NAME_BYTES_MAX];

                if (snprintf(versioned, sizeof(versioned), "%s:%lld", name, (long long)picked[i]) >= (int)sizeof(versioned))
                        report(scan, "%s: the name %s:%lld is longer than %zu bytes", folder, name, (long long)picked[i],
                                sizeof(versioned) - 1);
                else
                        result = serve_version(scan, folder, versioned, picked[i], config);
        }
        return result == 0 ? serve_version(scan, folder, name, picked[n - 1], config) : result;
}

static bool is_wanted(const struct sl_repository_query *query, const char *name)
{
        for (uint32_t i = 0; i < query->n_models; i++)
                if (strcmp(query->models[i], name) == 0)
                        return true;
        return query->n_models == 0;
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
static int refuse_twins(struct sl_repository_scan *scan, const char *repository, const char *name)
{
        if (find_served(scan, name))
                return 0;
        return leave_out(scan, name, "%s: the file %s.onnx and the folder %s are both the model \"%s\": move one of them away",
                repository, name, name, name);
}

static bool has_twins(const char *repository, const char *name)
{
        char file[PATH_BYTES], folder[PATH_BYTES];

        return snprintf(file, sizeof(file), "%s/%s.onnx", repository, name) < (int)sizeof(file) && is_file(file) &&
               snprintf(folder, sizeof(folder), "%s/%s", repository, name) < (int)sizeof(folder) && is_model_folder(folder);
}

/* Return: whether a model may have the name, of which @what says whose it is: "folder", "file without .onnx". */
static bool check_name(struct sl_repository_scan *scan, const char *path, const char *name, const char *what)
{
        char wish[SL_WISH_BYTES];

        if (sl_value_name(name, wish) < 0) {
                report(scan, "%s: the %s is %s", path, what, wish);
                scan->n_unnamed++;
                return false;
        }
        if (find_served(scan, name)) {
                report(scan, "%s: another repository has a model of this name", path);
                return false;
        }
        return true;
}

/* The folder of a model, in a repository or by itself. */
static int scan_folder(struct sl_repository_scan *scan, const char *folder, const char *name)
{
        struct sl_model_config config = *scan->query->defaults;
        char file[PATH_BYTES + 16];
        struct sl_error error = {""};
        struct stat status;

        if (!check_name(scan, folder, name, "folder"))
                return 0;
        snprintf(file, sizeof(file), "%s/config.yaml", folder);
        if (lstat(file, &status) < 0 && errno == ENOENT) /* a link to nothing is no configuration, and not none */
                scan->n_triton += has_triton_config(folder);
        else if (sl_model_config_read(file, scan->query->defaults, &config, &error) < 0)
                return leave_out(scan, name, "%s", error.text);
        return config.is_ensemble ? append_version(scan, name, NULL, false, 0, &config) : serve_model(scan, folder, name, &config);
}

/* A file by itself, or in a repository: it is called as the file. */
static int scan_file(struct sl_repository_scan *scan, const char *path)
{
        const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
        char name[SL_ONNX_FILE_BYTES], own[PATH_BYTES];
        size_t stem = 0;

        (void)sl_onnx_file_is(file, &stem);
        snprintf(name, sizeof(name), "%.*s", (int)stem, file);
        if (snprintf(own, sizeof(own), "%s%s", slash ? "" : "./", path) >= (int)sizeof(own))
                return -ENAMETOOLONG;
        if (!is_wanted(scan->query, name) || !check_name(scan, path, name, "name before .onnx"))
                return 0;
        return append_version(scan, name, own, true, 1, scan->query->defaults);
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
        if (!is_wanted(scan->query, name))
                return 0;
        if (has_twins(repository, name))
                return refuse_twins(scan, repository, name);
        return file ? scan_file(scan, path) : scan_folder(scan, path, name);
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
        report(scan, "%s: no NAME/VERSION/model.onnx and no NAME.onnx: %s", repository, there);
}

static int scan_folders(struct sl_repository_scan *scan, const char *repository)
{
        uint32_t n_before = scan->n + scan->n_unnamed;
        DIR *dir = opendir(repository);
        int result = 0;

        if (!dir)
                return -errno;
        for (struct dirent *entry; result == 0 && (entry = readdir(dir));)
                if (entry->d_name[0] != '.')
                        result = scan_entry(scan, repository, entry->d_name);
        closedir(dir);
        if (scan->n + scan->n_unnamed == n_before && !scan->query->n_models)
                report_nothing(scan, repository);
        return result;
}

static int scan_repository(struct sl_repository_scan *scan, const char *repository, struct sl_error *error)
{
        char name[SL_ONNX_FILE_BYTES];
        size_t stem;
        int result;

        if (is_file(repository)) {
                if (!sl_onnx_file_is(repository, &stem))
                        return sl_error_set(
                                error, ENOTDIR, "model repository \"%s\": a file, and none that is called NAME.onnx", repository);
                result = scan_file(scan, repository);
        } else if (is_own_folder(repository)) {
                own_name(repository, name, sizeof(name));
                result = is_wanted(scan->query, name) ? scan_folder(scan, repository, name) : 0;
        } else {
                result = scan_folders(scan, repository);
        }
        if (result < 0)
                return sl_error_set(error, -result, "model repository \"%s\": %s", repository, strerrordesc_np(-result));
        return result;
}

/* "lenet:1" names the model "lenet" when that serves version 1 and no other. */
static struct served *find_member(const struct sl_repository_scan *scan, const char *name)
{
        struct served *served = find_served(scan, name);
        size_t bytes = strcspn(name, ":");
        char plain[SL_MODEL_NAME_BYTES_MAX];

        if (served || !name[bytes])
                return served;
        snprintf(plain, sizeof(plain), "%.*s", (int)bytes, name);
        served = find_served(scan, plain);
        return served && served->path && served->spec.version == atoll(name + bytes + 1) ? served : NULL;
}

/* A member has to be a model, not an ensemble, that is served. Return: what is wrong with @member; NULL: nothing. */
static const char *member_fault(const struct served *member)
{
        if (!member)
                return "not served";
        if (member->cause)
                return "left out";
        return member->config.is_ensemble ? "an ensemble" : NULL;
}

static int check_members(const struct sl_repository_scan *scan, struct served *ensemble)
{
        char text[SL_ERROR_TEXT_BYTES];

        for (uint32_t i = 0; i < ensemble->config.n_members; i++) {
                const char *name = ensemble->config.members[i];
                const struct served *member = find_member(scan, name);
                const char *fault = member_fault(member);

                if (!fault) {
                        ensemble->members[i] = member->name;
                        continue;
                }
                snprintf(text, sizeof(text), "ensemble \"%s\": member \"%s\" is %s", ensemble->name, name, fault);
                report(scan, "%s", text);
                ensemble->cause = strdup(text);
                ensemble->spec = (struct sl_model_spec){.name = ensemble->name, .refused = ensemble->cause};
                return ensemble->cause ? 0 : -ENOMEM;
        }
        return 0;
}

static int check_ensembles(const struct sl_repository_scan *scan)
{
        int result = 0;

        for (uint32_t i = 0; i < scan->n && result == 0; i++)
                if (scan->served[i]->config.is_ensemble)
                        result = check_members(scan, scan->served[i]);
        return result;
}

/* ---- who shares workers with whom by name ---- */

/* One that is left out may come back. */
static const char *stranger_fault(const struct served *served)
{
        return !served ? "neither never nor auto nor a model that is served" : served->config.is_ensemble ? "an ensemble" : NULL;
}

/* Of a scan for some models alone nobody can say whether there are others. */
static const char *find_stranger(const struct sl_repository_scan *scan, const struct served *served)
{
        for (uint32_t i = 0; i < served->config.n_fuse_names; i++) {
                const char *name = served->config.fuse_names[i];

                if (is_wanted(scan->query, name) && stranger_fault(find_member(scan, name)))
                        return name;
        }
        return NULL;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint64_t mix_name(uint64_t seed, const char *name)
{
        for (size_t i = 0; i <= strlen(name); i++)
                seed = (seed ^ (unsigned char)name[i]) * 0x100000001b3u; /* FNV-1a */
        return seed;
}

/* The same number for the same names in any order, the model's own among them, each once; never 0. */
static uint64_t circle_of(const struct served *served)
{
        const char *names[SL_FUSE_NAMES_MAX + 1] = {served->name};
        uint32_t n = 1;
        uint64_t circle = 0xcbf29ce484222325u;

        for (uint32_t i = 0; i < served->config.n_fuse_names; i++)
                names[n++] = served->config.fuse_names[i];
        qsort(names, n, sizeof(*names), compare_names);
        for (uint32_t i = 0; i < n; i++)
                if (!i || strcmp(names[i], names[i - 1]) != 0)
                        circle = mix_name(circle, names[i]);
        return circle | 1;
}

static int refuse_stranger(const struct sl_repository_scan *scan, struct served *served, const char *stranger)
{
        char text[SL_ERROR_TEXT_BYTES];

        snprintf(text, sizeof(text), "model \"%s\": fuse: \"%s\" is %s", served->name, stranger,
                stranger_fault(find_member(scan, stranger)));
        report(scan, "%s", text);
        served->cause = strdup(text);
        served->spec = (struct sl_model_spec){.name = served->name, .refused = served->cause};
        return served->cause ? 0 : -ENOMEM;
}

static int check_fuses(const struct sl_repository_scan *scan)
{
        int result = 0;

        for (uint32_t i = 0; i < scan->n && result == 0; i++) {
                struct served *served = scan->served[i];
                const char *stranger = served->cause ? NULL : find_stranger(scan, served);

                if (stranger)
                        result = refuse_stranger(scan, served, stranger);
                else if (served->config.n_fuse_names && !served->cause)
                        served->spec.fuse_circle = circle_of(served);
        }
        return result;
}

static int compare_served(const void *a, const void *b)
{
        const struct served *left = *(struct served *const *)a, *right = *(struct served *const *)b;

        if (left->config.is_ensemble != right->config.is_ensemble)
                return left->config.is_ensemble ? 1 : -1;
        size_t left_bytes = strcspn(left->name, ":"), right_bytes = strcspn(right->name, ":");
        size_t bytes = left_bytes < right_bytes ? left_bytes : right_bytes;
        int order = strncmp(left->name, right->name, bytes);

        if (order || left_bytes != right_bytes)
                return order ? order : (left_bytes > right_bytes) - (left_bytes < right_bytes);
        bool left_plain = !left->name[left_bytes], right_plain = !right->name[right_bytes];
        if (left_plain != right_plain)
                return left_plain ? -1 : 1;
        return (left->spec.version > right->spec.version) - (left->spec.version < right->spec.version);
}

static int check_wanted(const struct sl_repository_scan *scan, struct sl_error *error)
{
        for (uint32_t i = 0; i < scan->query->n_models; i++) {
                const char *name = scan->query->models[i];
                const struct served *served = find_served(scan, name);

                if (!served)
                        return sl_error_set(error, ENOENT, "model \"%s\": none of the %u repositories has it", name,
                                scan->query->n_repositories);
                if (served->cause)
                        return sl_error_set(error, ENOENT, "model \"%s\" is listed and cannot be served: %s", name, served->cause);
        }
        return 0;
}

static int finish(struct sl_repository_scan *scan, struct sl_error *error)
{
        if (check_fuses(scan) < 0 || check_ensembles(scan) < 0)
                return sl_error_set(error, ENOMEM, "model repository: out of memory");
        int result = check_wanted(scan, error);
        if (result < 0)
                return result;
        if (scan->n)
                qsort(scan->served, scan->n, sizeof(struct served *), compare_served);
        scan->specs = calloc(scan->n + 1ul, sizeof(*scan->specs));
        if (!scan->specs)
                return sl_error_set(error, ENOMEM, "model repository: out of memory");
        for (uint32_t i = 0; i < scan->n; i++)
                scan->specs[i] = scan->served[i]->spec;
        return 0;
}

int sl_repository_scan(const struct sl_repository_query *query, sl_repository_report_fn report_fn, void *context,
        struct sl_repository_scan **ret_scan, struct sl_error *error)
{
        struct sl_repository_scan *scan = calloc(1, sizeof(*scan));
        int result = 0;

        if (!scan)
                return sl_error_set(error, ENOMEM, "model repository: out of memory");
        *scan = (struct sl_repository_scan){.query = query, .report = report_fn, .context = context};
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
                served_free(scan->served[i]);
        free(scan->served);
        free(scan->specs);
        free(scan);
        return NULL;
}

struct sl_model_spec *sl_repository_specs(const struct sl_repository_scan *scan, uint32_t *ret_n)
{
        *ret_n = scan->n;
        return scan->specs;
}

const struct sl_model_spec *sl_repository_find(const struct sl_repository_scan *scan, const char *name)
{
        for (uint32_t i = 0; i < scan->n; i++)
                if (strcmp(scan->specs[i].name, name) == 0)
                        return &scan->specs[i];
        return NULL;
}

void sl_repository_tell_unused(const struct sl_repository_scan *scan, sl_repository_report_fn tell, void *context)
{
        char text[SL_ERROR_TEXT_BYTES];

        for (uint32_t i = 0; i < scan->n; i++) {
                const struct served *served = scan->served[i];

                if (!served->config.unused || served->cause)
                        continue;
                snprintf(text, sizeof(text), "model \"%s\": %s is for workers that are processes: isolation: process, or a GPU's",
                        served->name, served->config.unused);
                tell(context, text);
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
