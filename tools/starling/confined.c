/* SPDX-License-Identifier: Apache-2.0 */
#include "confined.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "call_list.h"
#include "cpu/base/threads.h"
#include "landlock.h"
#include "model_file.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the process; read when that has ended. */
struct result {
        int status;
        struct sl_error error;
        alignas(16) char answer[];
};

static void list_calls(struct sl_call_list *calls)
{
        const struct sl_call_rule rules[] = {
                /* the model, and its external data */
                SL_CALL_WITH(openat, SL_ARG_WITHOUT(2, O_ACCMODE | O_CREAT | O_TRUNC)),
                SL_CALL(fstat),
                SL_CALL(newfstatat),
                SL_CALL(read),
                SL_CALL(pread64),
                SL_CALL(readlink), /* where links of the data lead; what they may be opened for Landlock says */
                /* what it says */
                SL_CALL_WITH(write, SL_ARG_IS(0, STDOUT_FILENO)),
                SL_CALL_WITH(write, SL_ARG_IS(0, STDERR_FILENO)),
                SL_CALL_WITH(ioctl, SL_ARG_IS(1, TCGETS)),
        };

        sl_call_list_init(calls);
        sl_call_list_add(calls, rules, sizeof(rules) / sizeof(rules[0]));
}

/* The folder of a path, which is there as long as the file is. */
static int name_folder(const char *path, char ret_folder[PATH_MAX], struct sl_error *error)
{
        const char *slash = strrchr(path, '/');
        int n = snprintf(ret_folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");

        return n < PATH_MAX ? 0 : sl_error_set(error, ENAMETOOLONG, "a path of more than %d bytes", PATH_MAX - 1);
}

static size_t count_folders(const struct confined *confined)
{
        return 2 + (confined->data_folders ? confined->data_folders->n : 0);
}

/* Those of the command, then the two folders of the model and those of its data. Owned; NULL: no memory. */
static struct sl_landlock_path *list_paths(const struct confined *confined, const char *folder, const char *linked)
{
        struct sl_landlock_path *paths = calloc(confined->n_paths + count_folders(confined), sizeof(*paths));

        if (!paths)
                return NULL;
        if (confined->n_paths)
                memcpy(paths, confined->paths, confined->n_paths * sizeof(*paths));
        paths[confined->n_paths].name = folder;
        paths[confined->n_paths + 1].name = linked;
        for (size_t i = 2; i < count_folders(confined); i++)
                paths[confined->n_paths + i].name = confined->data_folders->paths[i - 2];
        return paths;
}

/* The file may be a link to where a cache of models has it, with its external data beside it. */
static int find_folders(const char *path, char ret_folder[PATH_MAX], char ret_linked[PATH_MAX], struct sl_error *error)
{
        char file[PATH_MAX];
        int r = name_folder(path, ret_folder, error);

        ret_linked[0] = 0;
        return r == 0 && realpath(path, file) ? name_folder(file, ret_linked, error) : r;
}

static int enter(const struct confined *confined, int parent, struct sl_error *error)
{
        char folder[PATH_MAX], linked[PATH_MAX];
        SL_CLEANUP(sl_cleanup_free) struct sl_landlock_path *paths = list_paths(confined, folder, linked);
        struct sl_call_list calls;
        const struct sl_sandbox_limits limits = {
                .address_bytes = SL_SANDBOX_NO_LIMIT,
                .data_bytes = SL_SANDBOX_NO_LIMIT,
                .file_bytes = SL_SANDBOX_NO_LIMIT, /* standard output may be a file */
                .seconds = confined->seconds,
                .parent = parent,
                .capabilities = 1ull << CAP_DAC_READ_SEARCH, /* root reads others' models */
                .calls = &calls,
                .paths = paths,
                .n_paths = confined->n_paths + count_folders(confined),
        };
        const char *missing;
        int r = paths ? find_folders(confined->path, folder, linked, error)
                      : sl_error_set(error, ENOMEM, "no memory for %zu paths", limits.n_paths);

        list_calls(&calls);
        sl_call_list_add(&calls, confined->calls, confined->n_calls);
        return r < 0 ? r : sl_sandbox_enter(&limits, &missing, error);
}

/* Whatever the command has open, and was started with. A kernel that lacks close_range() leaves it open: the calls are few. */
static int give_up_files(int kept, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
                return sl_error_set(error, errno, "/dev/null in the place of standard input: %s", strerror(errno));
        if (kept > STDERR_FILENO + 1)
                (void)close_range(STDERR_FILENO + 1, (unsigned)kept - 1, 0);
        (void)close_range(kept > STDERR_FILENO ? (unsigned)kept + 1 : STDERR_FILENO + 1, UINT_MAX, 0);
        nothing = -1;
        return 0;
}

static void child_main(const struct confined *confined, int parent, struct result *result)
{
        struct sl_error error = {""};
        int r;

        sl_cpu_use_one_thread();
        r = give_up_files(confined->fd, &error);
        if (r == 0)
                r = enter(confined, parent, &error);
        if (r == 0)
                r = confined->run(confined->context, result->answer, &error);
        if (fflush(NULL) != 0 && r == 0)
                r = sl_error_set(&error, errno, "standard output: %s", strerror(errno));
        result->error = error;
        result->status = r;
        _exit(EXIT_SUCCESS);
}

static int end_of(int status, const struct confined *confined, struct sl_error *error)
{
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
                return 0;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
                return sl_error_set(error, ETIME, "the process that reads it: over its time limit of %llu s",
                        (unsigned long long)confined->seconds);
        if (WIFSIGNALED(status))
                return sl_error_set(error, ECHILD, "the process that reads it: killed by signal %d (%s)", WTERMSIG(status),
                        strsignal(WTERMSIG(status)));
        return sl_error_set(error, ECHILD, "the process that reads it: ended with status %d", WEXITSTATUS(status));
}

static int fork_and_wait(const struct confined *confined, struct result *result, struct sl_error *error)
{
        int parent = getpid(), status = 0;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        if (pid < 0)
                return sl_error_set(error, errno, "no process to read it: %s", strerror(errno));
        if (pid == 0)
                child_main(confined, parent, result);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return end_of(status, confined, error);
}

/* Texts end, and a status that is none is one. */
static int take(const struct confined *confined, struct result *result, void *ret_answer, struct sl_error *error)
{
        result->error.text[sizeof(result->error.text) - 1] = 0;
        if (result->status < 0)
                return sl_error_set(error, result->status > -4096 ? -result->status : EPROTO, "%s", result->error.text);
        memcpy(ret_answer, result->answer, confined->answer_bytes);
        return 0;
}

int confined_run(const struct confined *confined, void *ret_answer, struct sl_error *error)
{
        size_t bytes = sizeof(struct result) + confined->answer_bytes;
        struct result *result = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int r;

        if (result == MAP_FAILED)
                return sl_error_set(error, errno, "no memory for a process to read it: %s", strerror(errno));
        r = fork_and_wait(confined, result, error);
        if (r == 0)
                r = take(confined, result, ret_answer, error);
        munmap(result, bytes);
        return r;
}
