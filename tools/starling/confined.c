/* SPDX-License-Identifier: Apache-2.0 */
#include "confined.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "call_list.h"
#include "cpu/base/threads.h"
#include "landlock.h"
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

/* The file may be a link to where a cache of models has it, with its external data beside it. */
static int enter(const struct confined *confined, int parent, struct sl_error *error)
{
        char folder[PATH_MAX], file[PATH_MAX], linked[PATH_MAX] = "";
        struct sl_call_list calls;
        const struct sl_landlock_path paths[] = {{.name = folder}, {.name = linked}};
        const struct sl_sandbox_limits limits = {
                .address_bytes = SL_SANDBOX_NO_LIMIT,
                .data_bytes = SL_SANDBOX_NO_LIMIT,
                .file_bytes = SL_SANDBOX_NO_LIMIT, /* standard output may be a file */
                .seconds = confined->seconds,
                .parent = parent,
                .capabilities = 1ull << CAP_DAC_READ_SEARCH, /* root reads others' models */
                .calls = &calls,
                .paths = paths,
                .n_paths = sizeof(paths) / sizeof(paths[0]),
        };
        const char *missing;
        int r = name_folder(confined->path, folder, error);

        if (r == 0 && realpath(confined->path, file))
                r = name_folder(file, linked, error);
        list_calls(&calls);
        return r < 0 ? r : sl_sandbox_enter(&limits, &missing, error);
}

static void child_main(const struct confined *confined, int parent, struct result *result)
{
        struct sl_error error = {""};
        int r;

        sl_cpu_use_one_thread();
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
