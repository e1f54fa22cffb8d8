/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "dead_pages.h"
#include "digits.h"
#include "hung.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const networks[] = {"lenet", "resnet", "densenet", "mobilenet", "mlp", "digits"};

void world_pause_us(uint64_t us)
{
        struct timespec pause = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};

        while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
                ;
}

uint32_t world_rounds(const char *variable, uint32_t normal)
{
        const char *value = getenv(variable);
        uint32_t fewer = normal / 10 ? normal / 10 : 1;

        return value ? (uint32_t)strtoul(value, NULL, 10) : WORLD_SLOW ? fewer : normal;
}

bool world_has_time(const char *variable, uint32_t round, uint64_t begun_ns)
{
        if (round == 0 || getenv(variable) || starling_clock_ns() - begun_ns < WORLD_ROUNDS_SECONDS * 1000000000ull)
                return true;
        fprintf(stderr, "%s: %u rounds in %u s, no more\n", variable, round, WORLD_ROUNDS_SECONDS);
        return false;
}

/* ---- the folder ---- */

static void join(char *ret_path, size_t bytes, const char *folder, const char *name)
{
        cr_assert_lt(snprintf(ret_path, bytes, "%s/%s", folder, name), (int)bytes);
}

static void link_networks(const struct world *world)
{
        for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
                char from[512], to[512];

                snprintf(from, sizeof(from), "%s/models/%s", digits_folder(), networks[i]);
                join(to, sizeof(to), world->repository, networks[i]);
                cr_assert_eq(symlink(from, to), 0, "%s: %s", to, strerror(errno));
        }
}

void world_init(struct world *world)
{
        memset(world, 0, sizeof(*world));
        dead_pages_remove("survive-");
        strcpy(world->folder, "/tmp/starling-survive-XXXXXX");
        cr_assert_not_null(mkdtemp(world->folder));
        chmod(world->folder, 0777); /* runtimes and clients of other users */
        snprintf(world->name, sizeof(world->name), "%s", world->folder + strlen("/tmp/starling-"));
        snprintf(world->socket_path, sizeof(world->socket_path), "%.40s/%.40s.sock", world->folder, world->name);
        join(world->config_path, sizeof(world->config_path), world->folder, "config.yaml");
        join(world->log_path, sizeof(world->log_path), world->folder, "log");
        join(world->repository, sizeof(world->repository), world->folder, "models");
        cr_assert_eq(mkdir(world->repository, 0755), 0);
        link_networks(world);
        snprintf(world->program, sizeof(world->program), "%s", getenv("STARLING_PROGRAM") ? getenv("STARLING_PROGRAM") : STARLING);
        snprintf(world->config, sizeof(world->config), "name: %s\nsocket_dir: %s\nmodel_repositories: [%s]\n", world->name,
                world->folder, world->repository);
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* what the runtime leaves behind becomes a child of this process */
}

void world_init_compiling(struct world *world)
{
        world_init(world);
        world->compiles = true;
}

void world_keep(const struct world *world, const char *names)
{
        for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
                char path[512];

                join(path, sizeof(path), world->repository, networks[i]);
                if (!strstr(names, networks[i])) /* none is a part of another's name */
                        cr_assert_eq(unlink(path), 0, "%s: %s", path, strerror(errno));
        }
}

void world_configure(struct world *world, const char *yaml)
{
        cr_assert_lt(strlen(world->config) + strlen(yaml), sizeof(world->config));
        strcat(world->config, yaml);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
        (void)status, (void)kind, (void)where;
        return remove(path);
}

static void remove_tree(const char *path)
{
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void world_move_to_user(struct world *world, uid_t uid, const char *model)
{
        char command[1024];

        snprintf(command, sizeof(command), "cp %s %s/starling && rm %s/%s && cp -rL " DIGITS "/models/%s %s/", STARLING,
                world->folder, world->repository, model, model, world->repository);
        cr_assert_eq(system(command), 0, "%s", command);
        join(world->program, sizeof(world->program), world->folder, "starling");
        world->uid = uid;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
        FILE *file = fopen(path, "wb");

        cr_assert_not_null(file, "%s: %s", path, strerror(errno));
        cr_assert_eq(fwrite(bytes, 1, size, file), size);
        fclose(file);
}

void world_add_model(const struct world *world, const char *name, const void *bytes, size_t size)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", world->repository, name);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/%s/1", world->repository, name);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/%s/1/model.onnx", world->repository, name);
        write_file(path, bytes, size);
}

void world_add_model_config(const struct world *world, const char *name, const char *yaml)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", world->repository, name);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/%s/config.yaml", world->repository, name);
        write_file(path, yaml, strlen(yaml));
}

void world_copy_model(const struct world *world, const char *of, const char *name, const char *yaml)
{
        char command[512];

        snprintf(command, sizeof(command), "mkdir -p '%s/%s/1' && cp '%s/models/%s/1/model.onnx' '%s/%s/1/model.onnx'",
                world->repository, name, digits_folder(), of, world->repository, name);
        cr_assert_eq(system(command), 0);
        world_add_model_config(world, name, yaml);
}

void world_copy_int8_model(const struct world *world, const char *of, const char *name, const char *yaml)
{
        char command[2048], once[300];

        snprintf(once, sizeof(once), "%s/%s.int8", world->folder, of);
        snprintf(command, sizeof(command),
                "mkdir -p '%s/%s/1' && { [ -f '%s' ] || '%s' quantize '%s/models/%s/1/model.onnx' --calibration "
                "'%s/test-images.f32' "
                "--samples 8 --method minmax --max-loss 1 -o '%s' >/dev/null; } && cp '%s' '%s/%s/1/model.onnx'",
                world->repository, name, once, world->program, digits_folder(), of, digits_folder(), once, once, world->repository,
                name);
        cr_assert_eq(system(command), 0, "%s", command);
        world_add_model_config(world, name, yaml);
}

void world_remove_model(const struct world *world, const char *name)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", world->repository, name);
        if (unlink(path) < 0)
                remove_tree(path);
}

void world_free(struct world *world)
{
        char page[128];

        if (world->pid)
                world_kill(world);
        snprintf(page, sizeof(page), "/dev/shm/starling.%s", world->name);
        unlink(page);
        strcat(page, "~last");
        unlink(page);
        remove_tree(world->folder);
}

/* ---- the process ---- */

/* In the child: only what is safe there. */
static void become_runtime(const struct world *world)
{
        const char *argv[16] = {"starling", "serve", "--config", world->config_path};
        int log = open(world->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        int n = 4;

        for (int i = 0; world->arguments[i]; i++)
                argv[n++] = world->arguments[i];
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (world->before_exec)
                world->before_exec(world->context);
        if (world->uid && (setresgid(world->uid, world->uid, world->uid) < 0 || setresuid(world->uid, world->uid, world->uid) < 0))
                _exit(126);
        execv(world->program, (char *const *)argv);
        _exit(127);
}

void world_launch(struct world *world)
{
        struct stat status;

        if (!strstr(world->config, "cache:") && (world->compiles || !getenv("XDG_CACHE_HOME")))
                world_configure(world, "cache: {bytes: 0}\n");
        write_file(world->config_path, world->config, strlen(world->config));
        world->log_offset = stat(world->log_path, &status) == 0 ? (uint64_t)status.st_size : 0;
        world->pid = fork();
        cr_assert_geq(world->pid, 0);
        if (world->pid == 0)
                become_runtime(world);
}

static bool has_ended(const struct world *world)
{
        siginfo_t info = {0};

        return waitid(P_PID, (id_t)world->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* Waits until the log has the text; whatever else it says is no hang. Return: false: it is silent, or a runtime that @lives has
 * ended. */
static bool await_log(struct world *world, const char *text, bool lives)
{
        uint64_t said_ns = starling_clock_ns();
        size_t n = 0;

        while (starling_clock_ns() - said_ns < WORLD_PATIENCE_NS) {
                bool ended = lives && has_ended(world);
                const char *log = world_log(world);

                if (strstr(log, text))
                        return true;
                if (ended)
                        return false;
                if (strlen(log) != n)
                        said_ns = starling_clock_ns();
                n = strlen(log);
                world_pause_us(5000);
        }
        return false;
}

void world_expect_ready(struct world *world)
{
        if (await_log(world, "event=ready ", true))
                return;
        cr_assert(!has_ended(world), "the runtime ended:\n%s", world_log(world));
        hung_describe(world->pid);
        cr_assert_fail("the runtime does not become ready:\n%s", world_log(world));
}

void world_start(struct world *world)
{
        world_launch(world);
        world_expect_ready(world);
}

int world_wait(struct world *world)
{
        int status = 0;

        for (uint64_t begun_ns = starling_clock_ns(); starling_clock_ns() - begun_ns < WORLD_PATIENCE_NS;) {
                pid_t pid = waitpid(world->pid, &status, WNOHANG);

                cr_assert_geq(pid, 0);
                if (pid > 0) {
                        world->pid = 0;
                        return status;
                }
                world_pause_us(10000);
        }
        hung_describe(world->pid);
        cr_assert_fail("the runtime does not end:\n%s", world_log(world));
        return -1;
}

void world_stop(struct world *world)
{
        if (world->pid == 0) /* which kill() takes for the whole process group */
                return;
        kill(world->pid, SIGTERM);
        int status = world_wait(world);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x:\n%s", status, world_log(world));
        world_expect_nothing_left(world, false);
}

void world_kill(struct world *world)
{
        if (world->pid == 0)
                return;
        kill(world->pid, SIGKILL);
        waitpid(world->pid, NULL, 0);
        world->pid = 0;
}

/* Orphans of the runtime became children of this process. */
static bool orphan_left(void)
{
        siginfo_t info = {0};

        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void world_expect_nothing_left(struct world *world, bool crashed)
{
        char page[128];

        snprintf(page, sizeof(page), "/dev/shm/starling.%s", world->name);
        if (!crashed) {
                cr_assert_neq(access(page, F_OK), 0, "%s is left behind", page);
                cr_assert_neq(access(world->socket_path, F_OK), 0, "%s is left behind", world->socket_path);
        }
        WORLD_AWAIT(!orphan_left());
        cr_assert_not(orphan_left(), "a child of the runtime is left behind");
}

const char *world_log(struct world *world)
{
        static char text[1 << 20];
        int fd = open(world->log_path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, (off_t)world->log_offset);

        text[n > 0 ? n : 0] = 0;
        if (fd >= 0)
                close(fd);
        return text;
}

void world_expect_log(struct world *world, const char *wanted)
{
        if (await_log(world, wanted, false))
                return;
        cr_assert_fail("no \"%s\" in the log:\n%s", wanted, world_log(world));
}

/* Those of /proc/PID/cmdline are terminated one by one. False: the process is gone, or has another command. */
static bool read_child(pid_t pid, const char *command, struct world_child *ret_child)
{
        char path[64], line[256] = "", *word;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
        file = fopen(path, "r");
        if (!file)
                return false;
        (void)!fread(line, 1, sizeof(line) - 2, file);
        line[sizeof(line) - 1] = 0;
        fclose(file);
        word = line + strnlen(line, sizeof(line) - 2) + 1;
        if (strcmp(word, command) != 0)
                return false;
        *ret_child = (struct world_child){.pid = pid};
        if (word + strlen(word) + 1 < line + sizeof(line))
                snprintf(ret_child->argument, sizeof(ret_child->argument), "%.31s", word + strlen(word) + 1);
        return true;
}

void world_read_children(pid_t pid, char *ret_text, size_t bytes)
{
        char path[64], child[16];
        size_t used = 0;
        DIR *tasks;

        ret_text[0] = 0;
        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        tasks = opendir(path);
        for (struct dirent *task; tasks && (task = readdir(tasks));) {
                snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid, task->d_name);
                FILE *children = task->d_name[0] == '.' ? NULL : fopen(path, "re");

                while (children && fscanf(children, "%15s", child) == 1 && used + strlen(child) + 2 < bytes)
                        used += (size_t)sprintf(ret_text + used, "%s ", child);
                if (children)
                        fclose(children);
        }
        if (tasks)
                closedir(tasks);
}

uint32_t world_find_children(const struct world *world, const char *command, struct world_child *ret_children, uint32_t max)
{
        struct world_child child;
        char text[4096];
        uint32_t n = 0;

        world_read_children(world->pid, text, sizeof(text));
        for (char *next = text; *next; next += strspn(next, " "))
                if (read_child((pid_t)strtol(next, &next, 10), command, &child) && n++ < max)
                        ret_children[n - 1] = child;
        return n;
}

uint32_t world_count_log(struct world *world, const char *wanted)
{
        uint32_t n = 0;

        for (const char *at = world_log(world); (at = strstr(at, wanted)); at += strlen(wanted))
                n++;
        return n;
}

pid_t world_spawn(const char *const *argv)
{
        extern char **environ;
        pid_t pid;
        int r = posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);

        cr_assert_eq(r, 0, "%s: %s", argv[0], strerror(r));
        return pid;
}

/* ---- the footprint ---- */

static uint32_t count_fds(pid_t pid)
{
        char path[64];
        uint32_t n = 0;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        DIR *folder = opendir(path);
        cr_assert_not_null(folder, "%s: %s", path, strerror(errno));
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* Those of clients: mappings of memfds that the runtime made or was handed. Its heap and stacks come and go as they like. */
static uint32_t count_mappings(pid_t pid)
{
        char path[64], *line = NULL;
        size_t bytes = 0;
        uint32_t n = 0;

        snprintf(path, sizeof(path), "/proc/%d/maps", pid);
        FILE *file = fopen(path, "r");
        cr_assert_not_null(file, "%s: %s", path, strerror(errno));
        while (getline(&line, &bytes, file) > 0)
                n += strstr(line, "memfd:starling-") != NULL;
        free(line);
        fclose(file);
        return n;
}

struct footprint world_footprint(const struct world *world)
{
        struct footprint footprint = {.mappings = count_mappings(world->pid)};
        struct sl_stats_view *view;
        bool has_zygote;

        /* The compiler's zygote comes with a compilation that finds none, and is ended where it lets one wait: two for each. */
        do {
                has_zygote = world_find_children(world, "zygote", NULL, 0) > 0;
                footprint.fds = count_fds(world->pid) - (has_zygote ? 2 : 0);
        } while (has_zygote != (world_find_children(world, "zygote", NULL, 0) > 0));

        cr_assert_eq(sl_stats_open(world->name, SL_STATS_DIRECTORY, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_CLIENTS); i++) {
                struct sl_client_stats client;

                if (sl_stats_read_client(view, i, &client) < 0)
                        continue;
                footprint.clients++;
                footprint.in_flight += (uint32_t)client.in_flight;
        }
        sl_stats_close(view);
        return footprint;
}

static bool holds_more(const struct footprint *now, const struct footprint *before)
{
        return now->fds > before->fds || now->mappings > before->mappings || now->clients > before->clients;
}

/* What they are, for who looks for the one that was kept. */
static void list_fds(pid_t pid, char *text, size_t bytes)
{
        const struct dirent *entry;
        char path[64];
        size_t used = 0;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        DIR *folder = opendir(path);
        while (folder && (entry = readdir(folder)) && used + 1 < bytes) {
                ssize_t n = readlinkat(dirfd(folder), entry->d_name, text + used, bytes - used - 1);

                used += n > 0 ? (size_t)n : 0;
                text[used++] = ' ';
        }
        text[used < bytes ? used : bytes - 1] = 0;
        if (folder)
                closedir(folder);
}

void world_expect_footprint(const struct world *world, const struct footprint *before)
{
        struct footprint now;
        char fds[4096];

        WORLD_AWAIT((now = world_footprint(world), !holds_more(&now, before)));
        now = world_footprint(world);
        if (!holds_more(&now, before))
                return;
        list_fds(world->pid, fds, sizeof(fds));
        fprintf(stderr, "fds of the runtime, with %u zygotes: %s\n", world_find_children(world, "zygote", NULL, 0), fds);
        cr_assert_fail("fds %u, mappings %u, clients %u, in flight %u; before %u, %u, %u", now.fds, now.mappings, now.clients,
                now.in_flight, before->fds, before->mappings, before->clients);
}

struct starling_client *world_connect(const struct world *world, enum starling_role role)
{
        struct starling_options options = {.runtime = world->socket_path, .role = role, .timeout_ns = 60000000000ull};
        struct starling_client *client;
        struct starling_error error;

        cr_assert_eq(starling_connect(&options, &client, &error), 0, "%s", error.text);
        return client;
}
