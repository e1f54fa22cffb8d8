/* SPDX-License-Identifier: Apache-2.0 */
/* The process: ready when it says so, ended by signals in order, and one clear line when it cannot start. */
#include "folder.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 60

/* A runtime under test, or another command: its output goes to a file in the folder. */
struct process {
        pid_t pid;
        char output[128];
};

static struct folder folder;
static int manager; /* what $NOTIFY_SOCKET leads to */
static char name[32];
static rlim_t fds_of_child;       /* 0: as many as this process */
static bool child_lacks_io_uring; /* as under a container's seccomp profile */

static void set_up(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        folder_make(&folder);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", folder.path);
        manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
        setenv("NOTIFY_SOCKET", address.sun_path, 1);
        setenv("STARLING_SOCKET_DIR", folder.path, 1);
        snprintf(name, sizeof(name), "test-%d", getpid());
}

static void tear_down(void)
{
        close(manager);
        folder_remove(&folder);
}

TestSuite(serve, .init = set_up, .fini = tear_down, .timeout = 60);

static void deny_io_uring(void)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(io_uring_setup), 0) < 0 || seccomp_load(filter) < 0)
                _exit(126);
}

static struct process start(const char *label, char *const *argv)
{
        struct process process;

        snprintf(process.output, sizeof(process.output), "%s/%s.log", folder.path, label);
        process.pid = fork();
        if (process.pid == 0) {
                int fd = open(process.output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

                dup2(fd, STDOUT_FILENO);
                dup2(fd, STDERR_FILENO);
                if (fds_of_child)
                        setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = fds_of_child, .rlim_max = fds_of_child});
                if (child_lacks_io_uring)
                        deny_io_uring();
                execv(STARLING, argv);
                _exit(127);
        }
        return process;
}

static const char *output_of(const struct process *process)
{
        static char text[16384];
        FILE *file = fopen(process->output, "r");
        size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

        text[n] = 0;
        if (file)
                fclose(file);
        return text;
}

/* The exit status; what does not end is killed and fails the test. */
static int end_of(const struct process *process)
{
        int status = 0;

        for (int i = 0; i < SECONDS_MAX * 100; i++) {
                if (waitpid(process->pid, &status, WNOHANG) == process->pid)
                        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                usleep(10000);
        }
        kill(process->pid, SIGKILL);
        waitpid(process->pid, &status, 0);
        cr_assert_fail("the process did not end: %s", output_of(process));
        return -1;
}

static int run(const char *label, char *const *argv)
{
        struct process process = start(label, argv);

        return end_of(&process);
}

/* What the service manager hears next. */
static const char *heard(void)
{
        static char text[256];
        struct pollfd poll_manager = {.fd = manager, .events = POLLIN};
        ssize_t n = poll(&poll_manager, 1, SECONDS_MAX * 1000) == 1 ? recv(manager, text, sizeof(text) - 1, 0) : 0;

        text[n > 0 ? n : 0] = 0;
        return text;
}

/* The next word that is another one. */
static const char *heard_but(const char *word)
{
        const char *text = heard();

        while (strcmp(text, word) == 0)
                text = heard();
        return text;
}

static struct process serve(const char *label)
{
        char repository[128];

        snprintf(repository, sizeof(repository), "%s/models/.keep", folder.path);
        folder_write(&folder, "models/.keep", "");
        *strrchr(repository, '/') = 0;
        return start(label, (char *[]){"starling", "serve", "--name", name, repository, NULL});
}

static bool stats_page_exists(void)
{
        char path[128];

        snprintf(path, sizeof(path), "/dev/shm/starling.%s", name);
        return access(path, F_OK) == 0;
}

Test(serve, ready_means_that_a_command_is_answered)
{
        struct process runtime = serve("runtime");

        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&runtime));
        cr_assert_eq(run("models", (char *[]){"starling", "models", "--name", name, NULL}), 0);
        cr_assert_eq(run("stats", (char *[]){"starling", "stats", "--json", name, NULL}), 0);
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0, "%s", output_of(&runtime));
}

Test(serve, who_serves_nothing_says_so)
{
        struct process empty = serve("empty");

        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&empty));
        cr_expect_not_null(
                strstr(output_of(&empty), "event=serves-nothing cause=\"no repository has a model, NAME.onnx or NAME/VERSION/model.onnx\""), "%s", output_of(&empty));
        kill(empty.pid, SIGTERM);
        cr_assert_str_eq(heard(), "STOPPING=1");
        cr_assert_eq(end_of(&empty), 0);
        struct process bare = start("bare", (char *[]){"starling", "serve", "--name", name, NULL});
        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&bare));
        cr_expect_not_null(
                strstr(output_of(&bare), "event=serves-nothing cause=\"no model repository is named, neither as an argument nor in the configuration: starling serve "), "%s", output_of(&bare));
        kill(bare.pid, SIGTERM);
        cr_assert_eq(end_of(&bare), 0);
}

Test(serve, the_first_line_of_the_log_and_the_command_name_the_version)
{
        struct process runtime = serve("runtime");

        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&runtime));
        const char *first = strstr(output_of(&runtime), " info event=start version=" STARLING_VERSION " name=");
        cr_assert(first && memchr(output_of(&runtime), '\n', (size_t)(first - output_of(&runtime))) == NULL, "%s",
                output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);

        struct process asked = start("version", (char *[]){"starling", "--version", NULL});
        cr_assert_eq(end_of(&asked), 0);
        cr_assert_str_eq(output_of(&asked), "starling " STARLING_VERSION "\n");
}

Test(serve, a_term_signal_ends_it_in_order_and_leaves_nothing)
{
        struct process runtime = serve("runtime");
        char path[128];

        cr_assert_str_eq(heard(), "READY=1");
        cr_assert(stats_page_exists());
        kill(runtime.pid, SIGTERM);
        cr_assert_str_eq(heard(), "STOPPING=1");
        cr_assert_eq(end_of(&runtime), 0);
        snprintf(path, sizeof(path), "%s/%s.sock", folder.path, name);
        cr_assert_not(stats_page_exists());
        cr_assert_neq(access(path, F_OK), 0);
        cr_assert(strstr(output_of(&runtime), "event=stopped"));
}

Test(serve, an_interrupt_ends_it_too_and_a_broken_pipe_does_not)
{
        struct process runtime = serve("runtime");

        cr_assert_str_eq(heard(), "READY=1");
        kill(runtime.pid, SIGPIPE);
        cr_assert_eq(run("models", (char *[]){"starling", "models", "--name", name, NULL}), 0);
        kill(runtime.pid, SIGINT);
        cr_assert_eq(end_of(&runtime), 0);
}

Test(serve, a_hangup_signal_reads_the_repository_again)
{
        struct process runtime = serve("runtime");

        cr_assert_str_eq(heard(), "READY=1");
        folder_write(&folder, "models/new/config.yaml", "no: such key\n");
        kill(runtime.pid, SIGHUP);
        cr_assert_eq(strncmp(heard(), "RELOADING=1", 11), 0);
        cr_assert_str_eq(heard(), "READY=1");
        cr_assert(strstr(output_of(&runtime), "new/config.yaml:1: no: unknown key"), "%s", output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

/* Whoever takes access from somebody hears that it is not taken yet; once for the same keys. */
Test(serve, a_hangup_signal_says_what_waits_for_the_next_start)
{
        char config[128], repository[128];
        const char *said;

        folder_write(&folder, "starling.yaml", "access: {allow: ['1', '2']}\nlimits: {clients: 7}\nwait: auto\n");
        folder_write(&folder, "models/.keep", "");
        snprintf(config, sizeof(config), "%s/starling.yaml", folder.path);
        snprintf(repository, sizeof(repository), "%s/models", folder.path);
        struct process runtime = start("runtime",
                (char *[]){"starling", "serve", "--name", name, "--config", config, "--wait", "epoll", repository, NULL});
        cr_assert_str_eq(heard(), "READY=1");
        folder_write(&folder, "starling.yaml", "access: {allow: ['1']}\nlimits: {clients: 8}\nwait: auto\n");
        for (int i = 0; i < 2; i++) {
                kill(runtime.pid, SIGHUP);
                cr_assert_eq(strncmp(heard(), "RELOADING=1", 11), 0);
                cr_assert_str_eq(heard(), "READY=1");
        }
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
        said = strstr(output_of(&runtime), "event=restart-needed keys=\"access.allow, limits.clients\"\n");
        cr_assert_not_null(said, "%s", output_of(&runtime));
        cr_expect_null(strstr(said + strlen("event=restart-needed"), "restart-needed"), "%s", said);
}

Test(serve, without_io_uring_it_waits_on_epoll_and_says_so)
{
        child_lacks_io_uring = true;
        struct process runtime = serve("runtime");

        child_lacks_io_uring = false;
        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&runtime));
        struct process stats = start("stats", (char *[]){"starling", "stats", name, NULL});
        cr_assert_eq(end_of(&stats), 0);
        cr_assert(strstr(output_of(&stats), "wait epoll"), "%s", output_of(&stats));
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

Test(serve, io_uring_that_was_asked_for_and_is_denied_is_an_error)
{
        child_lacks_io_uring = true;
        struct process process = start("denied", (char *[]){"starling", "serve", "--name", name, "--wait", "io_uring", NULL});

        cr_assert_eq(end_of(&process), 1, "%s", output_of(&process));
        cr_assert(strstr(output_of(&process), "starling serve: io_uring: denied"), "%s", output_of(&process));
}

/* ---- the log as JSON ---- */

/* Every line is an object with these keys. The last one, which is the caller's. */
static json_t *last_object(const struct process *process)
{
        char *text = strdup(output_of(process)), *at = text;
        json_t *object = NULL;

        for (const char *line; (line = strsep(&at, "\n")) && *line;) {
                json_decref(object);
                object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
                cr_assert(json_is_string(json_object_get(object, "time")) && json_is_string(json_object_get(object, "level")) &&
                                  json_is_string(json_object_get(object, "event")),
                        "%s", line);
        }
        free(text);
        return object;
}

static const char *event_of(const json_t *object)
{
        return json_string_value(json_object_get(object, "event"));
}

static void expect_json_log(const char *const *arguments)
{
        char *argv[16] = {"starling", "serve", "--name", name};

        for (int i = 0; arguments[i]; i++)
                argv[4 + i] = (char *)arguments[i];
        struct process runtime = start("json", argv);

        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_str_eq(heard(), "STOPPING=1");
        cr_assert_eq(end_of(&runtime), 0);
        json_t *last = last_object(&runtime);

        cr_expect_str_eq(event_of(last), "stopped");
        cr_expect_not_null(strstr(output_of(&runtime), "\"event\":\"ready\",\"failed_models\":0}\n"), "%s", output_of(&runtime));
        json_decref(last);
}

Test(serve, the_log_is_json_where_the_command_line_or_the_configuration_says_so)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/starling.yaml", folder.path);
        folder_write(&folder, "starling.yaml", "log_format: json\n");
        folder_write(&folder, "models/broken/1/model.onnx", "");
        expect_json_log((const char *[]){"--log-format", "json", "--log-level", "debug", NULL});
        expect_json_log((const char *[]){"--config", path, NULL});
}

/* Whatever makes a start impossible: a program reads it as all the rest. */
static void expect_json_failure(const char *option, const char *value, int status, const char *cause)
{
        struct process process = start("failed",
                (char *[]){"starling", "serve", "--name", name, "--log-format", "json", (char *)option, (char *)value, NULL});

        cr_expect_eq(end_of(&process), status, "%s", output_of(&process));
        json_t *last = last_object(&process);

        cr_assert_not_null(last);
        cr_expect_str_eq(event_of(last), "failed");
        cr_expect_str_eq(json_string_value(json_object_get(last, "level")), "error");
        cr_expect_not_null(strstr(json_string_value(json_object_get(last, "cause")), cause), "%s", output_of(&process));
        json_decref(last);
}

Test(serve, why_it_does_not_start_is_the_last_object_of_a_log_that_is_json)
{
        expect_json_failure("--config", "/no/such/file", 2, "/no/such/file");
        expect_json_failure("--log-level", "loud", 2, "--log-level: \"loud\" is not one of");
        expect_json_failure("--name", "a/b", 2, "--name: \"a/b\" is not a name");
}

Test(serve, a_format_that_the_log_has_not_is_named)
{
        struct process process = start("failed", (char *[]){"starling", "serve", "--name", name, "--log-format", "xml", NULL});

        cr_expect_eq(end_of(&process), 2);
        cr_expect_str_eq(output_of(&process), "starling serve: --log-format: \"xml\" is not one of text, json\n");
}

/* ---- the watchdog ---- */

static struct process serve_watched(const char *us, const char *pid)
{
        setenv("WATCHDOG_USEC", us, 1);
        if (pid)
                setenv("WATCHDOG_PID", pid, 1);
        struct process runtime = serve("watched");
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
        cr_assert_neq(*heard_but("WATCHDOG=1"), 0, "%s", output_of(&runtime));
        return runtime;
}

Test(serve, the_watchdog_is_fed_while_it_lives)
{
        struct process runtime = serve_watched("300000", NULL);

        for (int i = 0; i < 5; i++)
                cr_assert_str_eq(heard(), "WATCHDOG=1", "%s", output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_str_eq(heard_but("WATCHDOG=1"), "STOPPING=1");
        cr_assert_eq(end_of(&runtime), 0);
}

Test(serve, a_watchdog_of_another_process_is_not_fed_and_a_wrong_one_is_told)
{
        struct process runtime = serve_watched("1000", "1");

        kill(runtime.pid, SIGTERM);
        cr_assert_str_eq(heard(), "STOPPING=1");
        cr_assert_eq(end_of(&runtime), 0);

        runtime = serve_watched("soon", NULL);
        cr_assert_not_null(strstr(output_of(&runtime), "event=no-watchdog"), "%s", output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

/* The thread id of the dispatcher of process @pid. */
static pid_t dispatcher_of(pid_t pid)
{
        char path[64], comm[32];
        pid_t found = 0;

        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        DIR *tasks = opendir(path);
        for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
                snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", pid, entry->d_name);
                FILE *file = fopen(path, "r");
                if (file && fgets(comm, sizeof(comm), file) && strcmp(comm, "sl-dispatcher\n") == 0)
                        found = atoi(entry->d_name);
                if (file)
                        fclose(file);
        }
        if (tasks)
                closedir(tasks);
        return found;
}

Test(serve, the_watchdog_is_not_fed_while_the_dispatcher_hangs)
{
        struct process runtime = serve_watched("300000", NULL);
        struct pollfd poll_manager = {.fd = manager, .events = POLLIN};
        pid_t dispatcher = dispatcher_of(runtime.pid);
        int status;

        cr_assert_gt(dispatcher, 0);
        if (ptrace(PTRACE_SEIZE, dispatcher, NULL, NULL) < 0) {
                kill(runtime.pid, SIGKILL);
                end_of(&runtime);
                cr_skip_test("a thread of another process cannot be stopped here");
        }
        cr_assert_eq(ptrace(PTRACE_INTERRUPT, dispatcher, NULL, NULL), 0);
        cr_assert_eq(waitpid(dispatcher, &status, __WALL), dispatcher);
        while (poll(&poll_manager, 1, 0) == 1) /* what has come since the start */
                heard();
        /* At most an answer that was on its way, and the probe after it; then silence for many times the period. */
        unsigned n = 0;
        while (n < 3 && poll(&poll_manager, 1, 1500) == 1) {
                heard();
                n++;
        }
        cr_expect_leq(n, 2, "fed although the dispatcher hangs");
        cr_assert_eq(ptrace(PTRACE_DETACH, dispatcher, NULL, NULL), 0);
        cr_assert_str_eq(heard(), "WATCHDOG=1", "not fed although the dispatcher goes on");
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

Test(serve, a_second_runtime_of_the_name_is_refused)
{
        struct process runtime = serve("runtime"), second;

        cr_assert_str_eq(heard(), "READY=1");
        second = serve("second");
        cr_assert_eq(end_of(&second), 1, "%s", output_of(&second));
        cr_assert(strstr(output_of(&second), name), "%s", output_of(&second));
        cr_assert_eq(run("models", (char *[]){"starling", "models", "--name", name, NULL}), 0);
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

Test(serve, after_a_kill_the_name_is_free_again)
{
        struct process runtime = serve("runtime");

        cr_assert_str_eq(heard(), "READY=1");
        kill(runtime.pid, SIGKILL);
        cr_assert_eq(end_of(&runtime), 128 + SIGKILL);
        cr_assert(stats_page_exists(), "the stats page is the flight recorder");
        cr_assert_eq(run("stats", (char *[]){"starling", "stats", name, NULL}), 0);
        runtime = serve("again");
        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

Test(serve, a_wrong_configuration_ends_with_status_2_and_one_line)
{
        char path[128];

        snprintf(path, sizeof(path), "%s", folder_write(&folder, "starling.yaml", "name: a\nlimits: {client: 3}\n"));
        struct process process = start("bad", (char *[]){"starling", "serve", "--config", path, NULL});
        cr_assert_eq(end_of(&process), 2);
        const char *said = output_of(&process);
        cr_assert(strstr(said, "starling.yaml:2: limits.client: "), "%s", said);
        cr_assert_eq(strchr(said, '\n'), said + strlen(said) - 1, "more than one line: %s", said);
}

Test(serve, a_configuration_that_cannot_be_read_ends_with_status_2)
{
        struct process process = start("lost", (char *[]){"starling", "serve", "--config", "/nowhere/starling.yaml", NULL});

        cr_assert_eq(end_of(&process), 2, "%s", output_of(&process));
        cr_assert_str_eq(output_of(&process), "starling serve: /nowhere/starling.yaml: No such file or directory\n");
}

Test(serve, a_repository_that_is_not_there_ends_with_status_1)
{
        struct process process = start("lost", (char *[]){"starling", "serve", "--name", name, "/nowhere/models", NULL});

        cr_assert_eq(end_of(&process), 1, "%s", output_of(&process));
        cr_assert(strstr(output_of(&process), "starling serve: model repository \"/nowhere/models\""), "%s", output_of(&process));
        cr_assert_not(stats_page_exists());
}

Test(serve, commands_without_a_runtime_end_with_status_3)
{
        cr_assert_eq(run("models", (char *[]){"starling", "models", "--name", name, NULL}), 3);
        cr_assert_eq(run("load", (char *[]){"starling", "load", "--name", name, "x", NULL}), 3);
        cr_assert_eq(run("stats", (char *[]){"starling", "stats", name, NULL}), 3);
}

Test(serve, wrong_usage_ends_with_status_2)
{
        cr_assert_eq(run("a", (char *[]){"starling", NULL}), 2);
        cr_assert_eq(run("b", (char *[]){"starling", "dance", NULL}), 2);
        cr_assert_eq(run("c", (char *[]){"starling", "serve", "--what", NULL}), 2);
        cr_assert_eq(run("d", (char *[]){"starling", "load", NULL}), 2);
        cr_assert_eq(run("e", (char *[]){"starling", "serve", "--wait", "select", NULL}), 2);
        cr_assert_eq(run("f", (char *[]){"starling", "help", NULL}), 0);
        cr_assert_eq(run("g", (char *[]){"starling", "version", NULL}), 0);
}

Test(serve, too_few_fds_are_one_clear_error)
{
        fds_of_child = 12;
        struct process process = serve("few");

        cr_assert_eq(end_of(&process), 1, "%s", output_of(&process));
        const char *said = strstr(output_of(&process), "starling serve: ");
        cr_assert(said && strchr(said, '\n') == said + strlen(said) - 1, "%s", output_of(&process));
        cr_assert_not(stats_page_exists());
}

Test(serve, a_path_with_quotes_in_it_is_one_value_of_the_log)
{
        char text[320], path[128];

        folder_write(&folder, "file", "");
        snprintf(text, sizeof(text), "name: %s\ncache: {directory: '%s/file/a\" event=forged b=\"'}\n", name, folder.path);
        snprintf(path, sizeof(path), "%s", folder_write(&folder, "starling.yaml", text));
        struct process runtime = start("runtime", (char *[]){"starling", "serve", "--config", path, NULL});
        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&runtime));
        cr_expect_not_null(strstr(output_of(&runtime), "event=no-cache cause=\""), "%s", output_of(&runtime));
        cr_expect_not_null(strstr(output_of(&runtime), "a\\\" event=forged b=\\\""), "%s", output_of(&runtime));
        kill(runtime.pid, SIGTERM);
        cr_assert_eq(end_of(&runtime), 0);
}

/* ---- several runtimes ---- */

static int first_core(void)
{
        cpu_set_t cores;
        int core = 0;

        cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
        if (CPU_COUNT(&cores) < 2)
                cr_skip_test("one core leaves nothing to choose");
        while (!CPU_ISSET(core, &cores))
                core++;
        return core;
}

static struct process serve_on(const char *label, const char *threads)
{
        char file[64], text[256], path[128];

        snprintf(file, sizeof(file), "%s.yaml", label);
        snprintf(text, sizeof(text), "name: %s-%s\n%s", name, label, threads);
        snprintf(path, sizeof(path), "%s", folder_write(&folder, file, text));
        struct process process = start(label, (char *[]){"starling", "serve", "--config", path, NULL});
        cr_assert_str_eq(heard(), "READY=1", "%s", output_of(&process));
        return process;
}

static void expect_orderly_end(const struct process *process)
{
        kill(process->pid, SIGTERM);
        cr_assert_eq(end_of(process), 0, "%s", output_of(process));
        while (strcmp(heard(), "STOPPING=1") != 0)
                ;
}

Test(serve, a_second_runtime_takes_cores_that_the_first_has_not)
{
        int core = first_core();
        char threads[96], placed[48];

        snprintf(threads, sizeof(threads), "threads: {dispatcher_cores: [%d], worker_cores: [%d]}\n", core, core);
        snprintf(placed, sizeof(placed), "placed dispatcher_cores=\"%d\" ", core);
        struct process first = serve_on("first", threads), second = serve_on("second", "");
        cr_expect_not_null(strstr(output_of(&first), placed), "%s", output_of(&first));
        cr_expect_null(strstr(output_of(&second), placed), "%s", output_of(&second));
        cr_expect_null(strstr(output_of(&second), "cores-shared"), "%s", output_of(&second));
        expect_orderly_end(&first);
        expect_orderly_end(&second);
}

Test(serve, a_runtime_that_must_share_cores_says_with_whom)
{
        int core = first_core();
        char holder[96], placed[48];
        struct process first = serve_on("first", ""), second = serve_on("second", "");

        snprintf(holder, sizeof(holder), "holders=\"%s-first (pid %d)", name, first.pid);
        snprintf(placed, sizeof(placed), "placed dispatcher_cores=\"%d\" ", core);
        cr_expect_null(strstr(output_of(&first), "cores-shared"), "%s", output_of(&first));
        cr_expect_not_null(strstr(output_of(&second), "event=cores-shared cores="), "%s", output_of(&second));
        cr_expect_not_null(strstr(output_of(&second), holder), "%s", output_of(&second));
        cr_expect_null(strstr(output_of(&second), placed), "two dispatchers on one core: %s", output_of(&second));
        expect_orderly_end(&second);
        expect_orderly_end(&first);
}

Test(serve, the_cores_of_a_runtime_that_was_killed_are_free)
{
        struct process first = serve_on("first", "");

        kill(first.pid, SIGKILL);
        struct process again = serve_on("again", "");
        cr_expect_null(strstr(output_of(&again), "cores-shared"), "%s", output_of(&again));
        expect_orderly_end(&again);
        cr_assert_eq(end_of(&first), 128 + SIGKILL);
        char page[128];
        snprintf(page, sizeof(page), "/dev/shm/starling.%s-first", name);
        unlink(page);
}
