/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_ensemble.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/processor.h"
#include "data_folders.h"
#include "device_let.h"
#include "model_config.h"
#include "repository.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COSTS_FILE "costs.yaml"

SL_DEFINE_CLEANUP(struct sl_repository_scan *, sl_repository_scan_free)

/* ---- what is in the folder, and the devices ---- */

/* `starling profile` measures workers on cores. */
static int check_device(const struct sl_model_spec *specs, uint32_t n, const char *name, struct sl_error *error)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(specs[i].name, name) == 0 && specs[i].on_gpu)
                        return sl_error_set(error, EINVAL,
                                "model \"%s\": its device is a GPU, and what workers cost there is not measured: give COSTS.yaml",
                                name);
        return 0;
}

/* One more behind the comma. Return: 0; -ENOMEM with text. */
static int list_add(char **list, const char *word, struct sl_error *error)
{
        char *longer = NULL;

        if (asprintf(&longer, "%s%s%s", *list ? *list : "", *list ? "," : "", word) < 0)
                return sl_error_set(error, ENOMEM, "out of memory");
        free(*list);
        *list = longer;
        return 0;
}

static int take_members(struct optimize_ensemble *ensemble, const struct sl_model_spec *specs, uint32_t n_specs,
        const struct sl_model_spec *spec, struct sl_error *error)
{
        uint32_t n = spec->path ? 1 : spec->n_members;

        if (n > ENSEMBLE_MEMBERS_MAX)
                return sl_error_set(error, E2BIG, "%u members, at most %u", n, ENSEMBLE_MEMBERS_MAX);
        for (uint32_t i = 0; i < n; i++) {
                const char *name = spec->path ? spec->name : spec->members[i];
                int r = check_device(specs, n_specs, name, error);

                r = r < 0 ? r : list_add(&ensemble->columns, name, error);
                if (r < 0)
                        return r;
                ensemble->members[i] = strdup(name);
                if (!ensemble->members[i])
                        return sl_error_set(error, ENOMEM, "out of memory");
                ensemble->n_members++;
        }
        return 0;
}

static int scan(struct optimize_ensemble *ensemble, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_repository_scan_free) struct sl_repository_scan *found = NULL;
        struct sl_error complaint = {""};
        char processor[SL_PROCESSOR_BYTES];
        uint32_t n;
        int r = sl_repository_scan_plain(ensemble->repository, &complaint, &found, error);

        if (r < 0)
                return r;
        const struct sl_model_spec *specs = sl_repository_specs(found, &n), *spec = sl_repository_find(found, ensemble->name);
        if (!spec || spec->refused)
                return sl_error_set(error, EINVAL, "\"%s\": %s", ensemble->name,
                        spec                ? spec->refused
                        : complaint.text[0] ? complaint.text
                                            : "no model and no ensemble");
        sl_processor_name(processor);
        sl_allocation_cache_name(processor, specs, n, spec, ensemble->cache_name);
        return take_members(ensemble, specs, n, spec, error);
}

/* "cpu:0,cpu:1" */
static int add_each_core(struct optimize_ensemble *ensemble, struct sl_error *error)
{
        cpu_set_t cores;
        char name[32];
        int r = 0;

        CPU_ZERO(&cores);
        sched_getaffinity(0, sizeof(cores), &cores);
        for (int core = 0; core < CPU_SETSIZE && r == 0; core++) {
                if (!CPU_ISSET(core, &cores))
                        continue;
                snprintf(name, sizeof(name), "cpu:%d", core);
                r = list_add(&ensemble->rows, name, error);
        }
        return r;
}

/* A row computes beside the others: no two have a core in common. @taken: of those before. */
static int check_overlap(const struct sl_device_let *let, cpu_set_t *taken, struct sl_error *error)
{
        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, &let->cores) && CPU_ISSET(core, taken))
                        return sl_error_set(
                                error, EINVAL, "--devices: \"%s\" has core %d, and so has a device before it", let->name, core);
        CPU_OR(taken, taken, &let->cores);
        return 0;
}

/* By the names that profiles have for them. */
static int add_devices(struct optimize_ensemble *ensemble, const char *devices, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *words = strdup(devices);
        struct sl_device_let let;
        cpu_set_t taken;
        char *rest = NULL;
        int r = words ? 0 : sl_error_set(error, ENOMEM, "out of memory");

        CPU_ZERO(&taken);
        for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && r == 0; word = strtok_r(NULL, ",", &rest)) {
                r = sl_device_let_parse(word, NULL, &let, error);
                r = r < 0 ? r : check_overlap(&let, &taken, error);
                r = r < 0 ? r : list_add(&ensemble->rows, let.name, error);
        }
        return r;
}

int optimize_ensemble_init(struct optimize_ensemble *ensemble, const char *folder, const char *devices, struct sl_error *error)
{
        char *slash;

        *ensemble = (struct optimize_ensemble){.n_members = 0};
        if (!realpath(folder, ensemble->repository))
                return sl_error_set(error, errno, "\"%s\": %s", folder, strerror(errno));
        slash = strrchr(ensemble->repository, '/');
        if (snprintf(ensemble->name, sizeof(ensemble->name), "%s", slash + 1) >= (int)sizeof(ensemble->name))
                return sl_error_set(error, EINVAL, "\"%s\": a name of more than %zu bytes", slash + 1, sizeof(ensemble->name) - 1);
        *(slash == ensemble->repository ? slash + 1 : slash) = 0;
        int r = devices ? add_devices(ensemble, devices, error) : add_each_core(ensemble, error);
        if (r == 0 && !ensemble->rows)
                r = sl_error_set(error, EINVAL, "--devices: none is named");
        return r < 0 ? r : scan(ensemble, error);
}

void optimize_ensemble_deinit(struct optimize_ensemble *ensemble)
{
        for (uint32_t i = 0; i < ensemble->n_members; i++)
                free((char *)ensemble->members[i]);
        free(ensemble->columns);
        free(ensemble->rows);
        if (ensemble->costs[0])
                unlink(ensemble->costs);
        if (ensemble->folder[0])
                rmdir(ensemble->folder);
        *ensemble = (struct optimize_ensemble){.n_members = 0};
}

/* ---- what its members cost ---- */

/* Until the command ends, which a signal makes it do in order: what it has started ends with it. True: one has come. */
static bool wait_for_end(pid_t pid, int interrupts)
{
        SL_CLEANUP(sl_cleanup_fd) int end = (int)syscall(SYS_pidfd_open, pid, 0);
        struct pollfd fds[] = {{.fd = end, .events = POLLIN}, {.fd = interrupts, .events = POLLIN}};

        while (end >= 0 && !fds[0].revents && !fds[1].revents)
                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        break;
        if (fds[1].revents)
                kill(pid, SIGTERM);
        return fds[1].revents;
}

/* This program with other arguments; what it prints besides its progress is left out. */
static int run_command(const char *const *argv, int interrupts, struct sl_error *error)
{
        extern char **environ;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        bool interrupted;
        pid_t pid;
        int status, r;

        sigemptyset(&none);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        r = -posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, (char *const *)argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        if (r < 0)
                return sl_error_set(error, -r, "starling %s: %s", argv[1], strerror(-r));
        interrupted = wait_for_end(pid, interrupts);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return sl_error_set(error, errno, "starling %s: %s", argv[1], strerror(errno));
        if (interrupted)
                return sl_error_set(error, EINTR, "interrupted while it was measured what its members cost");
        return WIFEXITED(status) && WEXITSTATUS(status) == 0
                       ? 0
                       : sl_error_set(error, EIO, "what its members cost was not measured (`starling %s`)", argv[1]);
}

#define WORDS_MAX 16

/* The command of these words, with the folders of data, on @folder. */
static int run_on(const struct optimize_ensemble *ensemble, const char *const *words, const char *folder, int interrupts,
        struct sl_error *error)
{
        const char *argv[1 + WORDS_MAX + 2 * DATA_FOLDERS_MAX + 2] = {"starling"};
        size_t n = 1;

        while (n <= WORDS_MAX && words[n - 1]) {
                argv[n] = words[n - 1];
                n++;
        }
        for (uint32_t i = 0; i < ensemble->data_folders.n && i < DATA_FOLDERS_MAX; i++) {
                argv[n++] = "--data-folder";
                argv[n++] = ensemble->data_folders.paths[i];
        }
        argv[n] = folder;
        return run_command(argv, interrupts, error);
}

static int make_folder(struct optimize_ensemble *ensemble, struct sl_error *error)
{
        const char *base = getenv("TMPDIR");
        char folder[PATH_MAX - sizeof("/" COSTS_FILE)];

        base = base && *base ? base : "/tmp";
        if (snprintf(folder, sizeof(folder), "%s/starling-optimize-XXXXXX", base) >= (int)sizeof(folder))
                return sl_error_set(
                        error, ENAMETOOLONG, "TMPDIR: a path of %zu bytes, which leaves no room for a folder in it", strlen(base));
        if (!mkdtemp(folder))
                return sl_error_set(error, errno, "\"%s\": %s", folder, strerror(errno));
        strcpy(ensemble->folder, folder);
        snprintf(ensemble->costs, sizeof(ensemble->costs), "%s/" COSTS_FILE, folder);
        return 0;
}

/* FNV-1a, of lines without a memory: what is available changes all the time, and what was measured does not. */
static int digest_file(const char *path, uint64_t *ret_digest, struct sl_error *error)
{
        FILE *file = fopen(path, "re");
        SL_CLEANUP(sl_cleanup_free) char *line = NULL;
        uint64_t digest = 0xcbf29ce484222325u;
        size_t room = 0;

        if (!file)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        while (getline(&line, &room, file) > 0)
                for (const char *c = strstr(line, ", memory: ") ? "" : line; *c; c++)
                        digest = (digest ^ (unsigned char)*c) * 0x100000001b3u;
        fclose(file);
        *ret_digest = digest;
        return 0;
}

int optimize_ensemble_measure(struct optimize_ensemble *ensemble, const char *folder, const char *batches, double seconds,
        bool disturbed, int interrupts, struct sl_error *error)
{
        char most[32];
        int r = ensemble->folder[0] ? 0 : make_folder(ensemble, error);

        snprintf(most, sizeof(most), "%g", seconds);
        const char *const measure[] = {"profile", "--devices", ensemble->rows, "--batches", batches, "--seconds", most,
                disturbed ? "--disturbed" : NULL, NULL};
        const char *const export[] = {
                "profile", "export", "--devices", ensemble->rows, "--batches", batches, "-o", ensemble->costs, NULL};

        r = r < 0 ? r : run_on(ensemble, measure, folder, interrupts, error);
        r = r < 0 ? r : run_on(ensemble, export, folder, interrupts, error);
        return r < 0 ? r : digest_file(ensemble->costs, &ensemble->digest, error);
}
