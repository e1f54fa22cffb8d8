/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_ensemble.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "device_let.h"
#include "model_config.h"
#include "repository.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SL_DEFINE_CLEANUP(struct sl_repository_scan *, sl_repository_scan_free)

/* ---- what is in the folder ---- */

/* `starling profile` measures workers on cores. */
static int check_device(const struct sl_model_spec *specs, uint32_t n, const char *name, struct sl_error *error)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(specs[i].name, name) == 0 && specs[i].on_gpu)
                        return sl_error_set(error, EINVAL,
                                "model \"%s\": its device is a GPU, and what workers cost there is not measured: give COSTS.yaml", name);
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
                char *longer = NULL;
                int r = check_device(specs, n_specs, name, error);

                if (r < 0)
                        return r;
                ensemble->members[i] = strdup(name);
                if (!ensemble->members[i] || asprintf(&longer, "%s%s%s", ensemble->columns ? ensemble->columns : "",
                                                     ensemble->columns ? "," : "", name) < 0)
                        return sl_error_set(error, ENOMEM, "out of memory");
                ensemble->n_members++;
                free(ensemble->columns);
                ensemble->columns = longer;
        }
        return 0;
}

static int scan(struct optimize_ensemble *ensemble, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_repository_scan_free) struct sl_repository_scan *found = NULL;
        struct sl_error complaint = {""};
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
        sl_allocation_cache_name(specs, n, spec, ensemble->cache_name);
        return take_members(ensemble, specs, n, spec, error);
}

/* "cpu:0,cpu:1" */
static char *each_core(void)
{
        cpu_set_t cores;
        char *text = NULL;

        CPU_ZERO(&cores);
        sched_getaffinity(0, sizeof(cores), &cores);
        for (int core = 0; core < CPU_SETSIZE; core++) {
                char *longer = NULL;

                if (!CPU_ISSET(core, &cores))
                        continue;
                if (asprintf(&longer, "%s%scpu:%d", text ? text : "", text ? "," : "", core) < 0)
                        longer = NULL;
                free(text);
                text = longer;
        }
        return text;
}

static int check_devices(const char *devices, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *words = strdup(devices);
        struct sl_device_let let;
        char *rest = NULL;
        int r = words ? 0 : sl_error_set(error, ENOMEM, "out of memory");

        for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && r == 0; word = strtok_r(NULL, ",", &rest))
                r = sl_device_let_parse(word, NULL, &let, error);
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
        ensemble->rows = devices ? strdup(devices) : each_core();
        if (!ensemble->rows)
                return sl_error_set(error, ENOMEM, "out of memory");
        int r = check_devices(ensemble->rows, error);
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

/* This program with other arguments; what it prints besides its progress is left out. */
static int run_command(const char *const *argv, struct sl_error *error)
{
        extern char **environ;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
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
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return sl_error_set(error, errno, "starling %s: %s", argv[1], strerror(errno));
        return WIFEXITED(status) && WEXITSTATUS(status) == 0
                       ? 0
                       : sl_error_set(error, EIO, "what its members cost was not measured (`starling %s`)", argv[1]);
}

static int make_folder(struct optimize_ensemble *ensemble, struct sl_error *error)
{
        const char *base = getenv("TMPDIR");

        snprintf(ensemble->folder, sizeof(ensemble->folder), "%.30s/starling-optimize-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(ensemble->folder)) {
                int r = sl_error_set(error, errno, "\"%s\": %s", ensemble->folder, strerror(errno));

                ensemble->folder[0] = 0;
                return r;
        }
        snprintf(ensemble->costs, sizeof(ensemble->costs), "%s/costs.yaml", ensemble->folder);
        return 0;
}

/* FNV-1a. */
static int digest_file(const char *path, uint64_t *ret_digest, struct sl_error *error)
{
        FILE *file = fopen(path, "re");
        uint64_t digest = 0xcbf29ce484222325u;

        if (!file)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        for (int c; (c = getc(file)) != EOF;)
                digest = (digest ^ (unsigned char)c) * 0x100000001b3u;
        fclose(file);
        *ret_digest = digest;
        return 0;
}

int optimize_ensemble_measure(
        struct optimize_ensemble *ensemble, const char *folder, const char *batches, double seconds, struct sl_error *error)
{
        char most[32];
        int r = make_folder(ensemble, error);

        snprintf(most, sizeof(most), "%g", seconds);
        r = r < 0 ? r
                  : run_command((const char *const[]){"starling", "profile", "--devices", ensemble->rows, "--batches", batches,
                                        "--seconds", most, folder, NULL},
                            error);
        r = r < 0 ? r : run_command((const char *const[]){"starling", "profile", "export", "-o", ensemble->costs, NULL}, error);
        return r < 0 ? r : digest_file(ensemble->costs, &ensemble->digest, error);
}
