/* SPDX-License-Identifier: Apache-2.0 */
#include "task_folder.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/processor.h"
#include "file_hash.h"
#include "lower_options.h"
#include "model_digest.h"
#include "stop.h"
#include "whole_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG       "config.yaml"
#define CONFIG_BYTES (1u << 20)
#define BATCH_MAX    64u
#define STAMP_LINE   "# starling register, stamp "

static int join(char ret_path[PATH_MAX], struct sl_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int join(char ret_path[PATH_MAX], struct sl_error *error, const char *format, ...)
{
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(ret_path, PATH_MAX, format, args);
        va_end(args);
        return n < PATH_MAX ? 0 : sl_error_set(error, ENAMETOOLONG, "a path of more than %d bytes", PATH_MAX - 1);
}

/* ---- what is there ---- */

static bool is_there(const char *path)
{
        struct stat status;

        return lstat(path, &status) == 0;
}

/* The text behind the first line, if that has the hash of it. */
static bool is_stamped(const char *path)
{
        SL_CLEANUP(sl_cleanup_free) char *text = calloc(1, CONFIG_BYTES);
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        char stamp[REGISTER_HASH_BYTES], *rest;

        if (!text || fd < 0 || read(fd, text, CONFIG_BYTES - 1) < 0 || strncmp(text, STAMP_LINE, strlen(STAMP_LINE)) != 0)
                return false;
        rest = strchr(text, '\n');
        if (!rest)
                return false;
        text_hash(rest + 1, stamp);
        return strncmp(text + strlen(STAMP_LINE), stamp, strlen(stamp)) == 0;
}

/* A folder of ours has a hidden file that says so. */
static int name_mark(const struct registration *registration, const char *name, char ret_path[PATH_MAX], struct sl_error *error)
{
        return join(ret_path, error, "%s/%s/.registered-for-%s", registration->repository, name, registration->task);
}

static int check_variant(const struct registration *registration, const struct registered *candidate, struct sl_error *error)
{
        char folder[PATH_MAX], mark[PATH_MAX];
        int r = join(folder, error, "%s/%s", registration->repository, candidate->name);

        r = r < 0 ? r : name_mark(registration, candidate->name, mark, error);
        if (r < 0 || !is_there(folder) || is_there(mark) || rmdir(folder) == 0)
                return r;
        return sl_error_set(error, EEXIST, "\"%s\" is there, and was not written for --task %s", folder, registration->task);
}

int task_folder_check(const struct registration *registration, struct sl_error *error)
{
        char folder[PATH_MAX], config[PATH_MAX], file[PATH_MAX];
        int r = join(folder, error, "%s/%s", registration->repository, registration->task);

        r = r < 0 ? r : join(config, error, "%s/" CONFIG, folder);
        r = r < 0 ? r : join(file, error, "%s.onnx", folder);
        if (r < 0)
                return r;
        if (is_there(file))
                return sl_error_set(
                        error, EEXIST, "\"%s\" is a model, and --task %s would be called the same", file, registration->task);
        if (is_there(config) && !is_stamped(config))
                return sl_error_set(error, EEXIST,
                        "\"%s\" was not written by `starling register`, or has been changed since: move it away first", config);
        if (is_there(folder) && !is_there(config) && rmdir(folder) < 0)
                return sl_error_set(error, EEXIST, "\"%s\" is there, and is no task", folder);
        for (uint32_t i = 0; i < registration->n && r == 0; i++)
                r = check_variant(registration, &registration->candidates[i], error);
        return r;
}

/* ---- what is written ---- */

static int make_folder(const char *path, struct sl_error *error)
{
        return mkdir(path, 0777) < 0 && errno != EEXIST ? sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno)) : 0;
}

static int make_mark(const char *path, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

        return fd < 0 ? sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno)) : 0;
}

/* The new file takes the place of the old one at once. */
static int link_over(const char *from, const char *to, struct sl_error *error)
{
        char under_way[PATH_MAX + 8];

        snprintf(under_way, sizeof(under_way), "%s.new", to);
        unlink(under_way);
        if (link(from, under_way) < 0 || rename(under_way, to) < 0) {
                int code = errno;

                unlink(under_way);
                return sl_error_set(error, code, "\"%s\": %s", to, strerror(code));
        }
        unlink(under_way); /* rename() leaves it where both are the same file */
        return 0;
}

static bool is_variant(const struct registered *candidate)
{
        return candidate->state == REGISTERED_MADE && !candidate->reason[0];
}

static int publish(const struct registration *registration, const struct registered *candidate, struct sl_error *error)
{
        char folder[PATH_MAX], version[PATH_MAX], served[PATH_MAX], made[PATH_MAX], mark[PATH_MAX];
        int r = join(folder, error, "%s/%s", registration->repository, candidate->name);

        r = r < 0 ? r : join(version, error, "%s/1", folder);
        r = r < 0 ? r : join(served, error, "%s/model.onnx", version);
        r = r < 0 ? r : join(made, error, "%s/%s.onnx", registration->work, candidate->name);
        r = r < 0 ? r : name_mark(registration, candidate->name, mark, error);
        if (r < 0)
                return r;
        if (is_variant(candidate)) {
                r = make_folder(folder, error);
                r = r < 0 ? r : make_mark(mark, error);
                r = r < 0 ? r : make_folder(version, error);
                return r < 0 ? r : link_over(made, served, error);
        }
        if (!is_there(mark))
                return 0;
        (void)unlink(served);
        (void)rmdir(version);
        (void)unlink(mark);
        (void)rmdir(folder);
        return 0;
}

struct text {
        char *at, *end;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(text->at, (size_t)(text->end - text->at), format, args);
        va_end(args);
        text->at = n < text->end - text->at ? text->at + n : text->end - 1;
}

static double cost_of(const struct registered *candidate)
{
        const struct registered_point *point = registered_point_of(candidate, 1, 1);

        return point ? point->latency_ns / 1e3 : 0;
}

static void put_name(struct text *text, const struct registration *registration, const struct registered *candidate)
{
        (void)registration;
        put(text, "\"%s\"", candidate->name);
}

static void put_accuracy(struct text *text, const struct registration *registration, const struct registered *candidate)
{
        (void)registration;
        put(text, "%.6g", candidate->accuracy);
}

static void put_cost(struct text *text, const struct registration *registration, const struct registered *candidate)
{
        (void)registration;
        put(text, "%.6g", cost_of(candidate));
}

static void put_latency(struct text *text, const struct registration *registration, const struct registered *candidate)
{
        (void)registration;
        put(text, "%.6g", cost_of(candidate) / 1e3);
}

/* Of batches of 1, 2, 4 ... on one core, as far as they were measured without a gap. */
static void put_batches(struct text *text, const struct registration *registration, const struct registered *candidate)
{
        const struct registered_point *point;

        (void)registration;
        put(text, "\"");
        for (uint32_t batch = 1; batch <= BATCH_MAX && (point = registered_point_of(candidate, batch, 1)); batch *= 2)
                put(text, "%s%.6g", batch > 1 ? " " : "", point->latency_ns / 1e6);
        put(text, "\"");
}

/* As the runtime finds it when it loads the file; "" where that cannot be read. */
static void put_digest(struct text *text, const struct registration *registration, const struct registered *candidate)
{
        const struct sl_stop stop = {.verdict = NULL};
        struct sl_lower_options lowering;
        struct sl_model_content content;
        char path[PATH_MAX];

        sl_lower_options_init(&lowering);
        if (join(path, NULL, "%s/%s/1/model.onnx", registration->repository, candidate->name) == 0 &&
                sl_model_digest(path, lowering.model_bytes_max, &stop, &content) == 0)
                put(text, "\"%016" PRIx64 "%016" PRIx64 "\"", content.digest.high, content.digest.low);
        else
                put(text, "\"\"");
}

typedef void (*put_fn)(struct text *text, const struct registration *registration, const struct registered *candidate);

/* A row of the list @key. */
static void put_list(struct text *text, const struct registration *registration, const char *key, put_fn put_one)
{
        const char *between = "";

        put(text, "  %s: [", key);
        for (uint32_t i = 0; i < registration->n; i++) {
                const struct registered *candidate = &registration->candidates[i];

                if (!is_variant(candidate))
                        continue;
                put(text, "%s", between);
                between = ", ";
                put_one(text, registration, candidate);
        }
        put(text, "]\n");
}

static bool all_have_costs(const struct registration *registration)
{
        for (uint32_t i = 0; i < registration->n; i++)
                if (is_variant(&registration->candidates[i]) && !(cost_of(&registration->candidates[i]) > 0))
                        return false;
        return true;
}

static void print_config(const struct registration *registration, struct text *text)
{
        char processor[SL_PROCESSOR_BYTES];

        put(text, "# %s on samples %llu to %llu of %s; cost: microseconds of a core for one sample.\n",
                registration->labels_hash[0] ? "accuracy: share of right classes"
                                             : "accuracy: share of samples with the class of the reference",
                (unsigned long long)registration->calibration, (unsigned long long)registration->count - 1,
                registration->data_hash);
        for (uint32_t i = 0; i < registration->n; i++) {
                const struct registered *candidate = &registration->candidates[i];

                if (is_variant(candidate))
                        put(text, "# %s: %.4f to %.4f (95 %%), %s\n", candidate->name, candidate->low, candidate->high,
                                candidate->origin);
        }
        put(text, "task:\n");
        put_list(text, registration, "variants", put_name);
        put_list(text, registration, "accuracy", put_accuracy);
        put_list(text, registration, "files", put_digest);
        if (!all_have_costs(registration))
                return;
        sl_processor_name(processor);
        put_list(text, registration, "cost", put_cost);
        put_list(text, registration, "latency_ms", put_latency);
        put_list(text, registration, "batches_ms", put_batches);
        put(text, "  processor: \"%s\"\n  version: \"" STARLING_VERSION "\"\n", processor);
}

static int write_text(int fd, void *context)
{
        const char *text = context;
        char stamp[REGISTER_HASH_BYTES];

        text_hash(text, stamp);
        return dprintf(fd, STAMP_LINE "%s\n%s", stamp, text) < 0 ? -errno : 0;
}

static int write_config(const struct registration *registration, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *room = malloc(CONFIG_BYTES);
        struct text text = {room, room + CONFIG_BYTES};
        char folder[PATH_MAX], config[PATH_MAX];
        int r = room ? 0 : sl_error_set(error, ENOMEM, "no memory for " CONFIG);

        r = r < 0 ? r : join(folder, error, "%s/%s", registration->repository, registration->task);
        r = r < 0 ? r : join(config, error, "%s/" CONFIG, folder);
        r = r < 0 ? r : make_folder(folder, error);
        if (r < 0)
                return r;
        print_config(registration, &text);
        return keep_whole_file(config, write_text, room, error);
}

int task_folder_write(const struct registration *registration, struct sl_error *error)
{
        uint32_t variants = 0;
        int r = 0;

        for (uint32_t i = 0; i < registration->n; i++)
                variants += is_variant(&registration->candidates[i]);
        if (!variants)
                return sl_error_set(error, ETIME, "no variant was measured within the budget: a larger --budget goes on from here");
        /* What comes is there before the task names it, what goes is there until it does not. */
        for (uint32_t i = 0; i < registration->n && r == 0; i++)
                if (is_variant(&registration->candidates[i]))
                        r = publish(registration, &registration->candidates[i], error);
        r = r < 0 ? r : write_config(registration, error);
        for (uint32_t i = 0; i < registration->n && r == 0; i++)
                if (!is_variant(&registration->candidates[i]))
                        r = publish(registration, &registration->candidates[i], error);
        return r;
}
