/* SPDX-License-Identifier: Apache-2.0 */
#include "offline_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC      "OFFLINE1"
#define FILE_BYTES (PATH_MAX + 32)
#define LOCK_TRIES 20

static int complain_of_path(const char *path, struct sl_error *error)
{
        return sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
}

/* And what is before it. */
static int make_folders(char *path, struct sl_error *error)
{
        for (char *slash = path + 1;; slash++) {
                char kept = *slash;

                if (kept && kept != '/')
                        continue;
                *slash = 0;
                if (mkdir(path, 0700) < 0 && errno != EEXIST)
                        return complain_of_path(path, error);
                *slash = kept;
                if (!kept)
                        return 0;
        }
}

int offline_root(char ret_path[PATH_MAX], struct sl_error *error)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        int n;

        if (state && state[0] == '/')
                n = snprintf(ret_path, PATH_MAX, "%s/starling/offline", state);
        else if (home && home[0] == '/')
                n = snprintf(ret_path, PATH_MAX, "%s/.local/state/starling/offline", home);
        else
                return sl_error_set(error, ENOENT, "neither XDG_STATE_HOME nor HOME says where jobs are kept");
        if (n >= PATH_MAX - 64)
                return sl_error_set(
                        error, ENAMETOOLONG, "the folder of jobs has a path of %d bytes, at most %d are taken", n, PATH_MAX - 65);
        return make_folders(ret_path, error);
}

static void name_file(const struct offline_job *job, const char *name, char ret_path[FILE_BYTES])
{
        snprintf(ret_path, FILE_BYTES, "%s/%s", job->folder, name);
}

/* Whole, or not at all. */
static int write_file(const struct offline_job *job, const char *name, const char *text, struct sl_error *error)
{
        char path[FILE_BYTES], under_way[FILE_BYTES + 32];
        FILE *file;
        bool written;

        name_file(job, name, path);
        snprintf(under_way, sizeof(under_way), "%s.%d", path, (int)getpid());
        file = fopen(under_way, "we");
        if (!file)
                return complain_of_path(under_way, error);
        written = fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
        if (fclose(file) == 0 && written && rename(under_way, path) == 0)
                return 0;
        int r = complain_of_path(under_way, error);
        unlink(under_way);
        return r;
}

/* ---- what is to be done ---- */

static int write_description(const struct offline_job *job, struct sl_error *error)
{
        const struct offline_description *d = &job->description;
        char *text = NULL;
        int r;

        if (asprintf(&text,
                    "runtime %s\nmodel %s\nneeds %s\ntask %d\nrule %s\ninput %s\noutput %s\nreplaces %d\nsamples %" PRIu64
                    "\nstamp %" PRIu64 "\nrange %" PRIu32 "\nrank %" PRIu32 "\n",
                    d->runtime, d->model, d->needs, d->is_task, d->rule, d->input, d->output, d->replaces, d->samples, d->stamp,
                    d->range_samples, d->rank) < 0)
                return sl_error_set(error, ENOMEM, "no memory for a job");
        r = write_file(job, "job", text, error);
        free(text);
        return r;
}

static void take_text(char *to, size_t bytes, const char *value)
{
        snprintf(to, bytes, "%s", value);
}

static void take_line(struct offline_description *d, const char *key, const char *value)
{
        if (strcmp(key, "runtime") == 0)
                take_text(d->runtime, sizeof(d->runtime), value);
        else if (strcmp(key, "model") == 0)
                take_text(d->model, sizeof(d->model), value);
        else if (strcmp(key, "needs") == 0)
                take_text(d->needs, sizeof(d->needs), value);
        else if (strcmp(key, "rule") == 0)
                take_text(d->rule, sizeof(d->rule), value);
        else if (strcmp(key, "input") == 0)
                take_text(d->input, sizeof(d->input), value);
        else if (strcmp(key, "output") == 0)
                take_text(d->output, sizeof(d->output), value);
        else if (strcmp(key, "task") == 0)
                d->is_task = atoi(value);
        else if (strcmp(key, "replaces") == 0)
                d->replaces = atoi(value);
        else if (strcmp(key, "samples") == 0)
                d->samples = strtoull(value, NULL, 10);
        else if (strcmp(key, "stamp") == 0)
                d->stamp = strtoull(value, NULL, 10);
        else if (strcmp(key, "rank") == 0)
                d->rank = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(key, "range") == 0)
                d->range_samples = (uint32_t)strtoul(value, NULL, 10);
}

static int read_description(struct offline_job *job, struct sl_error *error)
{
        char path[FILE_BYTES], line[PATH_MAX + 64];
        FILE *file;

        name_file(job, "job", path);
        file = fopen(path, "re");
        if (!file)
                return errno == ENOENT ? sl_error_set(error, ENOENT, "there is no job %" PRIu32, job->number)
                                       : complain_of_path(path, error);
        while (fgets(line, sizeof(line), file)) {
                char *value = strchr(line, ' ');

                line[strcspn(line, "\n")] = 0;
                if (!value)
                        continue;
                *value++ = 0;
                take_line(&job->description, line, value);
        }
        fclose(file);
        if (job->description.samples && job->description.range_samples && job->description.output[0])
                return 0;
        return sl_error_set(error, EBADMSG, "%s: it is damaged", path);
}

/* ---- progress ---- */

static uint64_t n_ranges(const struct offline_description *d)
{
        return (d->samples + d->range_samples - 1) / d->range_samples;
}

static int map_progress(struct offline_job *job, bool is_new, struct sl_error *error)
{
        char path[FILE_BYTES];
        uint64_t bytes = sizeof(*job->progress) + n_ranges(&job->description);
        struct stat stat;
        int fd, r = 0;

        name_file(job, "progress", path);
        fd = open(path, O_RDWR | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0600);
        if (fd < 0)
                return complain_of_path(path, error);
        if (is_new && (errno = posix_fallocate(fd, 0, (off_t)bytes)))
                r = complain_of_path(path, error);
        else if (fstat(fd, &stat) < 0 || (uint64_t)stat.st_size != bytes)
                r = sl_error_set(error, EBADMSG, "%s: it is damaged", path);
        if (r == 0) {
                job->progress = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                job->progress_bytes = bytes;
                if (job->progress == MAP_FAILED) {
                        job->progress = NULL;
                        r = sl_error_set(error, ENOMEM, "%s: no memory to map it", path);
                }
        }
        close(fd);
        return r;
}

void offline_job_say(struct offline_job *job, enum offline_state state, const char *text)
{
        snprintf(job->progress->text, sizeof(job->progress->text), "%s", text);
        if (state != OFFLINE_RUNNING)
                atomic_store_explicit(&job->progress->rate, 0, memory_order_relaxed);
        atomic_store_explicit(&job->progress->state, state, memory_order_release);
}

const char *offline_job_state_name(const struct offline_job *job)
{
        static const char *const names[OFFLINE_STATES] = {"running", "waiting", "paused", "done", "failed", "cancelled"};
        uint32_t state = atomic_load_explicit(&job->progress->state, memory_order_acquire);

        if (state <= OFFLINE_WAITING && !offline_job_is_held(job))
                return "stopped";
        return state < OFFLINE_STATES ? names[state] : "damaged";
}

/* ---- the folder ---- */

int offline_job_list(const char *root, uint32_t **ret_numbers)
{
        struct dirent **entries;
        int n = scandir(root, &entries, NULL, versionsort), kept = 0;
        uint32_t *numbers;

        if (n < 0)
                return -errno;
        numbers = calloc((size_t)n + 1, sizeof(*numbers));
        for (int i = 0; i < n; i++) {
                char *end;
                unsigned long number = strtoul(entries[i]->d_name, &end, 10);

                if (numbers && *end == 0 && number > 0 && number < UINT32_MAX)
                        numbers[kept++] = (uint32_t)number;
                free(entries[i]);
        }
        free(entries);
        *ret_numbers = numbers;
        return numbers ? kept : -ENOMEM;
}

/* The next number that nobody takes at the same time. */
static int make_folder(const char *root, struct offline_job *job, struct sl_error *error)
{
        uint32_t *numbers;
        int n = offline_job_list(root, &numbers);

        if (n < 0)
                return sl_error_set(error, -n, "%s: %s", root, strerrordesc_np(-n));
        job->number = n ? numbers[n - 1] : 0;
        free(numbers);
        do
                snprintf(job->folder, sizeof(job->folder), "%s/%" PRIu32, root, ++job->number);
        while (mkdir(job->folder, 0700) < 0 && errno == EEXIST);
        return access(job->folder, F_OK) < 0 ? complain_of_path(job->folder, error) : 0;
}

int offline_job_new(
        const char *root, const struct offline_description *description, struct offline_job *ret_job, struct sl_error *error)
{
        struct offline_job job = {.description = *description, .lock_fd = -1};
        int r = make_folder(root, &job, error);

        if (r < 0)
                return r;
        r = map_progress(&job, true, error);
        if (r == 0) {
                memcpy(job.progress->magic, MAGIC, sizeof(job.progress->magic));
                job.progress->samples = description->samples;
                job.progress->n_ranges = n_ranges(description);
                r = offline_job_set_wish(&job, "run", error);
        }
        if (r == 0)
                r = write_description(&job, error);
        if (r < 0)
                offline_job_remove(&job);
        else
                *ret_job = job;
        return r;
}

int offline_job_open(const char *root, uint32_t number, struct offline_job *ret_job, struct sl_error *error)
{
        struct offline_job job = {.number = number, .lock_fd = -1};
        int r;

        snprintf(job.folder, sizeof(job.folder), "%s/%" PRIu32, root, number);
        r = read_description(&job, error);
        if (r == 0)
                r = map_progress(&job, false, error);
        if (r == 0 && (memcmp(job.progress->magic, MAGIC, sizeof(job.progress->magic)) != 0 ||
                              job.progress->n_ranges != n_ranges(&job.description))) {
                r = sl_error_set(error, EBADMSG, "%s/progress: it is damaged", job.folder);
                offline_job_close(&job);
        }
        if (r == 0)
                *ret_job = job;
        return r;
}

void offline_job_close(struct offline_job *job)
{
        if (job->progress)
                munmap(job->progress, job->progress_bytes);
        if (job->lock_fd >= 0)
                close(job->lock_fd);
        job->progress = NULL;
        job->lock_fd = -1;
}

void offline_job_remove(struct offline_job *job)
{
        static const char *const names[] = {"job", "wish", "log", "progress", "lock"}; /* "job" first: what is left is none */
        char path[FILE_BYTES];

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                name_file(job, names[i], path);
                unlink(path);
        }
        rmdir(job->folder);
        offline_job_close(job);
}

static int open_lock(const struct offline_job *job)
{
        char path[FILE_BYTES];

        name_file(job, "lock", path);
        return open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
}

int offline_job_lock(struct offline_job *job)
{
        int fd = open_lock(job), r = -1;

        if (fd < 0)
                return -errno;
        for (int i = 0; i < LOCK_TRIES && r < 0; i++) { /* who lists jobs has it for a moment */
                r = flock(fd, LOCK_EX | LOCK_NB);
                if (r < 0)
                        usleep(10000);
        }
        if (r < 0) {
                close(fd);
                return -EWOULDBLOCK;
        }
        job->lock_fd = fd;
        return 0;
}

bool offline_job_is_held(const struct offline_job *job)
{
        int fd;
        bool held;

        if (job->lock_fd >= 0)
                return true;
        fd = open_lock(job);
        held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
        if (fd >= 0)
                close(fd);
        return held;
}

bool offline_job_is_gone(const struct offline_job *job)
{
        struct stat stat;

        return fstat(job->lock_fd, &stat) == 0 && stat.st_nlink == 0;
}

int offline_job_set_wish(const struct offline_job *job, const char *wish, struct sl_error *error)
{
        return write_file(job, "wish", wish, error);
}

void offline_job_wish(const struct offline_job *job, char ret_wish[16])
{
        char path[FILE_BYTES];
        ssize_t n;
        int fd;

        name_file(job, "wish", path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, ret_wish, 15);
        ret_wish[n > 0 ? n : 0] = 0;
        if (fd >= 0)
                close(fd);
}

void offline_job_part(const struct offline_job *job, char ret_path[PATH_MAX + 32])
{
        snprintf(ret_path, PATH_MAX + 32, "%s.offline-%" PRIu32, job->description.output, job->number);
}
