/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include "base/clock.h"
#include "bench.h"
#include "conv_model.h"
#include "starling.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_LIMIT_NS (60 * SL_NS_PER_SECOND)
#define STOP_LIMIT_NS  (60 * SL_NS_PER_SECOND)
#define LOG_TAIL       4096
#define BASE_BYTES     60 /* of $TMPDIR: a socket's path ends with 107 */

/* In double quotes, within which two characters need a backslash. */
static void write_folders(FILE *file, const char *const *folders, uint32_t n)
{
        fprintf(file, "data_folders: [");
        for (uint32_t i = 0; i < n; i++) {
                fprintf(file, "%s\"", i ? ", " : "");
                for (const char *c = folders[i]; *c; c++)
                        fprintf(file, "%s%c", strchr("\"\\", *c) ? "\\" : "", *c);
                fprintf(file, "\"");
        }
        fprintf(file, "]\n");
}

static int write_configuration(const struct sl_server *server, const struct sl_server_options *options)
{
        char path[160];

        snprintf(path, sizeof(path), "%s/starling.yaml", server->folder);
        FILE *file = fopen(path, "wxe");
        if (!file)
                return -errno;
        fprintf(file,
                "name: %s\n"
                "socket_dir: %s\n"
                "limits:\n"
                "  clients: 64\n"
                "  client: {arena_bytes: %llu}\n"
                "  uid: {arena_bytes: %llu}\n"
                "allocation: none\n"
                "log_level: info\n",
                server->name, server->folder, (unsigned long long)options->arena_bytes, 4ull * options->arena_bytes);
        if (options->dispatcher_cpu >= 0)
                fprintf(file,
                        "threads:\n"
                        "  dispatcher_cores: [%d]\n"
                        "  worker_cores: [%d]\n",
                        options->dispatcher_cpu, options->worker_cpu);
        if (options->models)
                fprintf(file, "model_repositories: [\"%s\"]\n", options->models);
        if (options->n_data_folders)
                write_folders(file, options->data_folders, options->n_data_folders);
        return fclose(file) ? -errno : 0;
}

static int make_folder(struct sl_server *server, const struct sl_server_options *options)
{
        const char *base = getenv("TMPDIR");
        bool fits = base && *base && strlen(base) <= BASE_BYTES;

        snprintf(server->name, sizeof(server->name), "bench-%d", getpid());
        snprintf(server->folder, sizeof(server->folder), "%s/starling-bench-XXXXXX", fits ? base : "/tmp");
        if (!mkdtemp(server->folder)) {
                int r = -errno;

                fprintf(stderr, "starling bench: cannot make the folder %s: %s\n", server->folder, strerror(-r));
                server->folder[0] = 0;
                return r;
        }
        snprintf(server->repository, sizeof(server->repository), "%s/models", server->folder);
        snprintf(server->socket, sizeof(server->socket), "%s/%s.sock", server->folder, server->name);
        snprintf(server->log, sizeof(server->log), "%s/log", server->folder);
        if (mkdir(server->repository, 0700) < 0)
                return -errno;
        return write_configuration(server, options);
}

/* Neither root nor what it executes has the capability any more, and the limit leaves no better priority than now. */
static void drop_priority(void)
{
        const struct rlimit none = {0};

        (void)setrlimit(RLIMIT_NICE, &none);
        (void)prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0);
}

static void run_runtime(const struct sl_server *server, const struct sl_server_options *options, pid_t parent)
{
        char configuration[160];
        sigset_t none;
        int log = open(server->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent || log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0)
                _exit(127);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        sched_setaffinity(0, sizeof(options->cpus), &options->cpus);
        if (options->ordinary)
                drop_priority();
        if (!options->cached)
                setenv("XDG_CACHE_HOME", server->folder, 1);
        snprintf(configuration, sizeof(configuration), "%s/starling.yaml", server->folder);
        execl("/proc/self/exe", "starling", "serve", "--config", configuration, server->repository, (char *)NULL);
        dprintf(STDERR_FILENO, "cannot start /proc/self/exe: %s\n", strerror(errno));
        _exit(127);
}

static int has_ended(const struct sl_server *server)
{
        siginfo_t info = {0};

        return waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == server->pid;
}

/* Ready means that one can attach. */
static int await_ready(const struct sl_server *server)
{
        const struct starling_options options = {.runtime = server->socket, .role = STARLING_ROLE_READER, .label = "bench-ready"};
        uint64_t until_ns = sl_clock_ns() + START_LIMIT_NS;
        struct starling_error error = {0};
        struct starling_client *client;
        int r;

        while ((r = starling_connect(&options, &client, &error)) < 0) {
                if (has_ended(server)) {
                        fprintf(stderr, "starling bench: the runtime ended before it was ready\n");
                        return -EPIPE;
                }
                if (sl_clock_ns() > until_ns) {
                        fprintf(stderr, "starling bench: the runtime was not ready in 30 s: %s\n", error.text);
                        return r;
                }
                if (sl_bench_interrupted())
                        return -EINTR;
                usleep(5000);
        }
        starling_close(client);
        return 0;
}

int sl_server_start(struct sl_server *server, const struct sl_server_options *options)
{
        pid_t parent = getpid();

        *server = (struct sl_server){.pid = -1};
        int r = make_folder(server, options);
        if (r == 0) {
                server->pid = fork();
                if (server->pid == 0)
                        run_runtime(server, options, parent);
                r = server->pid < 0 ? -errno : await_ready(server);
        }
        if (r < 0) {
                if (r != -EINTR)
                        sl_server_show_log(server);
                sl_server_stop(server);
        }
        return r;
}

void sl_server_show_log(const struct sl_server *server)
{
        char tail[LOG_TAIL + 1];
        FILE *file = server->folder[0] ? fopen(server->log, "re") : NULL;

        if (!file)
                return;
        if (fseek(file, -LOG_TAIL, SEEK_END) < 0)
                rewind(file);
        size_t n = fread(tail, 1, LOG_TAIL, file);
        fclose(file);
        fprintf(stderr, "--- end of the runtime's log:\n%.*s---\n", (int)n, tail);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
        (void)status;
        (void)kind;
        (void)where;
        remove(path);
        return 0;
}

/* Return: 0; -EIO it did not end in order. What a killed runtime leaves on purpose, its stats page, is removed too. */
static int end_runtime(const struct sl_server *server)
{
        uint64_t until_ns = sl_clock_ns() + STOP_LIMIT_NS;
        char page[64];
        int status = 0;

        kill(server->pid, SIGTERM);
        while (!has_ended(server) && sl_clock_ns() < until_ns)
                usleep(2000);
        kill(server->pid, SIGKILL);
        while (waitpid(server->pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        snprintf(page, sizeof(page), "/starling.%s", server->name);
        shm_unlink(page);
        return -EIO;
}

int sl_server_stop(struct sl_server *server)
{
        int r = server->pid > 0 ? end_runtime(server) : 0;

        if (server->folder[0])
                nftw(server->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        *server = (struct sl_server){.pid = -1};
        return r;
}

int sl_server_load(const struct sl_server *server, const char *name, struct starling_error *error)
{
        const struct starling_options options = {
                .runtime = server->socket, .role = STARLING_ROLE_ADMIN, .label = "bench-admin", .timeout_ns = SL_NS_PER_SECOND};
        struct starling_client *client;
        int r = starling_connect(&options, &client, error);

        if (r < 0)
                return r;
        r = starling_admin_load(client, name, error);
        starling_close(client);
        return r;
}

int sl_server_load_conv(
        const struct sl_server *server, const struct sl_conv_model *model, const char *name, struct starling_error *error)
{
        int r = sl_conv_model_write(model, server->repository, name);

        if (r < 0) {
                snprintf(error->text, sizeof(error->text), "cannot write it: %s", strerror(-r));
                return r;
        }
        return sl_server_load(server, name, error);
}
