/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter as a process: what it answers, what it gives up, how it starts and ends. */
#include "server_bench.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(exporter_server, .init = server_bench_init, .fini = server_bench_deinit, .timeout = 60);

/* ---- answers ---- */

Test(exporter_server, metrics_are_in_the_format_that_is_asked_for)
{
        create_page(1);
        start();
        expect_scrape(1);
        expect_answer("GET /metrics" CLOSE "\r\n", "HTTP/1.1 200 ", "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
        expect_answer("GET /metrics?x=1" CLOSE "\r\n", "HTTP/1.1 200 ", "\nstarling_up{");
        expect_answer("GET /metrics" CLOSE "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n\r\n", "HTTP/1.1 200 ",
                "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
        expect_answer("GET /metrics" CLOSE "Accept: application/openmetrics-text\r\n\r\n", "HTTP/1.1 200 ", "\n# EOF\n");
}

Test(exporter_server, other_addresses_and_methods_are_told_what_there_is)
{
        start();
        expect_answer("GET /" CLOSE "\r\n", "HTTP/1.1 200 ", "<a href=\"/metrics\">");
        expect_answer("GET /" CLOSE "\r\n", "HTTP/1.1 200 ", "\r\nContent-Type: text/html; charset=utf-8\r\n");
        expect_answer("GET /api/stats" CLOSE "\r\n", "HTTP/1.1 200 ", name);
        expect_answer("GET /api/stats" CLOSE "\r\n", "HTTP/1.1 200 ", "\r\nContent-Type: application/json\r\n");
        expect_answer("GET /api/history" CLOSE "\r\n", "HTTP/1.1 200 ", name);
        expect_answer("GET /api/" CLOSE "\r\n", "HTTP/1.1 404 ", "/api/stats");
        expect_answer("DELETE /api/history" CLOSE "\r\n", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n");
        expect_answer("GET /metric" CLOSE "\r\n", "HTTP/1.1 404 ", "/metrics is.");
        expect_answer("GET /metrics/" CLOSE "\r\n", "HTTP/1.1 404 ", "");
        expect_answer("GET /../../etc/passwd" CLOSE "\r\n", "HTTP/1.1 404 ", "");
        expect_answer("GET /%2e%2e/metrics" CLOSE "\r\n", "HTTP/1.1 404 ", "");
        expect_answer("POST /metrics" CLOSE "Content-Length: 3\r\n\r\nabc", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n");
        expect_answer(
                "POST /metrics" CLOSE "Content-Length: 1000000\r\n\r\nabc", "HTTP/1.1 405 ", "Allow: "); /* and no more comes */
        expect_answer("DELETE /" CLOSE "\r\n", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n");
        expect_answer("PUT /nowhere" CLOSE "\r\n", "HTTP/1.1 404 ", "");
        expect_answer("OPTIONS *" CLOSE "\r\n", "HTTP/1.1 404 ", "");
}

/* ---- names ---- */

static void expect_host(const char *host, const char *begin)
{
        char request[512];

        snprintf(request, sizeof(request), "GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
        expect_answer(request, begin, "");
        snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
        expect_answer(request, begin, "");
}

/* A page of another site, whose name leads here, is told nothing. */
Test(exporter_server, who_asks_under_another_name_is_told_nothing)
{
        static const char *const known[] = {"localhost", "LocalHost:9464", "localhost.", "127.0.0.1", "127.0.0.1:1", "192.0.2.7:80",
                "[::1]", "[::1]:9464", "[2001:db8::7]:80", "gate.example", "GATE.example.:443", "other"};
        static const char *const others[] = {"evil.example", "evil.example:9464", "localhost.evil.example",
                "127.0.0.1.evil.example", "localhost:evil", "localhost:9464.evil.example", "127.0.0.1:80@evil.example",
                "[::1].evil.example", "[evil.example]", "[::1", "[", "xgate.example", "gate.exampl", ".", ":80", "1.2.3",
                "0x7f000001", "other..", "other,evil.example"};
        const char *const arguments[] = {"--host", "gate.example", "--host=other", name, NULL};
        char own[256] = "", longest[300];

        exporter = exporter_start(folder.path, arguments);
        for (size_t i = 0; i < LENGTH(known); i++)
                expect_host(known[i], "HTTP/1.1 200 ");
        for (size_t i = 0; i < LENGTH(others); i++)
                expect_host(others[i], "HTTP/1.1 421 ");
        cr_assert_eq(gethostname(own, sizeof(own) - 1), 0);
        expect_host(own, "HTTP/1.1 200 ");
        memset(longest, 'a', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = 0;
        expect_host(longest, "HTTP/1.1 421 ");
        expect_answer("GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.", "\nstarling_up{"); /* as no browser asks */
        expect_answer("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 ", "--host");
}

/* ---- health ---- */

/* Status of both, and a line that each has. */
static void expect_health(unsigned lives, const char *living, unsigned is_ready, const char *ready)
{
        char begin[32];

        snprintf(begin, sizeof(begin), "HTTP/1.1 %u ", lives);
        expect_answer("GET /healthz" CLOSE "\r\n", begin, living);
        snprintf(begin, sizeof(begin), "HTTP/1.1 %u ", is_ready);
        expect_answer("GET /readyz" CLOSE "\r\n", begin, ready);
        expect_answer("HEAD /readyz" CLOSE "\r\n", begin, "Content-Type: text/plain; charset=utf-8\r\n");
}

static void show_model(const char *model, enum sl_stats_model_state state, uint32_t serving, const char *why)
{
        static struct sl_model_counting counting;
        struct sl_model_stats shown;

        if (!counting.counters)
                cr_assert_eq(sl_stats_model_add(stats, model, &counting, NULL), 0);
        sl_stats_model_shown(&counting, &shown);
        shown.state = state;
        shown.workers_wanted = 2;
        shown.workers_serving = serving;
        snprintf(shown.why, sizeof(shown.why), "%s", why);
        sl_stats_model_show(&counting, &shown);
}

Test(exporter_server, ready_is_a_runtime_that_is_started_and_has_no_model_that_failed)
{
        char line[160];

        start();
        expect_health(503, "No such file or directory\n", 503, "No such file or directory\n");
        create_page(0);
        sl_stats_set_state(stats, SL_RUNTIME_STARTING);
        expect_health(200, ": lives\n", 503, ": starting: its models are being loaded\n");
        sl_stats_set_state(stats, SL_RUNTIME_READY);
        snprintf(line, sizeof(line), "\r\n\r\n%s: ready\n", name);
        expect_health(200, ": lives\n", 200, line);
        show_model("net", SL_STATS_MODEL_FAILED, 0, "node \"x\"\n: \xff");
        expect_health(200, ": lives\n", 503, ": model net has failed: \"node \\\"x\\\"\\n: ");
        show_model("net", SL_STATS_MODEL_LOADING, 0, "");
        expect_health(200, ": lives\n", 200, line);
        show_model("net", SL_STATS_MODEL_DEGRADED, 0, "crashed");
        expect_health(200, ": lives\n", 503, ": model net has no worker: crashed\n");
        show_model("net", SL_STATS_MODEL_DEGRADED, 1, "crashed");
        expect_health(200, ": lives\n", 200, line);
        show_model("net", SL_STATS_MODEL_READY, 2, "");
        expect_health(200, ": lives\n", 200, line);
        sl_stats_set_state(stats, SL_RUNTIME_STOPPING);
        expect_health(200, ": lives\n", 503, ": stopping\n");
        stats = sl_stats_free(stats);
        expect_health(503, ": it has ended\n", 503, ": it has ended\n");
}

Test(exporter_server, of_several_runtimes_each_has_to_be_ready)
{
        create_page(1);
        exporter = exporter_start(folder.path, (const char *[]){name, "other", NULL});
        expect_answer("GET /readyz" CLOSE "\r\n", "HTTP/1.1 503 ", ": ready\nother: ");
        expect_answer("GET /healthz" CLOSE "\r\n", "HTTP/1.1 503 ", ": lives\nother: ");
        expect_answer("POST /readyz" CLOSE "Content-Length: 0\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n");
        expect_answer("GET /readyz/" CLOSE "\r\n", "HTTP/1.1 404 ", "/readyz");
}

Test(exporter_server, head_is_get_without_the_body)
{
        char *answer;

        create_page(1);
        start();
        answer = exporter_ask(&exporter, "HEAD /metrics" CLOSE "\r\n");
        cr_expect_eq(strncmp(answer, "HTTP/1.1 200 ", 13), 0, "%s", answer);
        cr_expect_gt(atoi(strstr(answer, "Content-Length: ") + 16), 1000);
        cr_expect_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
        free(answer);
}

Test(exporter_server, every_answer_says_that_it_is_no_program)
{
        const char *const paths[] = {"/metrics", "/api/stats", "/api/history", "/healthz", "/nowhere"};
        char request[128];

        create_page(1);
        start();
        for (size_t i = 0; i < LENGTH(paths); i++) {
                snprintf(request, sizeof(request), "GET %s" CLOSE "\r\n", paths[i]);
                expect_answer(request, "HTTP/1.1 ", "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
                expect_answer(request, "HTTP/1.1 ", "\r\nX-Content-Type-Options: nosniff\r\n");
        }
        expect_answer(
                "GET /" CLOSE "\r\n", "HTTP/1.1 200 ", "\r\nContent-Security-Policy: default-src 'none'; script-src 'sha256-");
}

Test(exporter_server, a_connection_asks_again_and_again)
{
        const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", last[] = "GET /" CLOSE "\r\n";
        int fd, n = 0;
        char *answers;

        start();
        fd = exporter_connect(&exporter);
        for (int i = 0; i < 3; i++)
                exporter_send(fd, request, strlen(request), false);
        exporter_send(fd, last, strlen(last), false);
        answers = exporter_receive(fd);
        for (const char *at = answers; (at = strstr(at, "HTTP/1.1 200 ")); at++)
                n++;
        cr_expect_eq(n, 4, "%s", answers);
        free(answers);
}

Test(exporter_server, runtimes_come_and_go_under_their_names)
{
        const char *const names[] = {"other", "--name", name, NULL};

        exporter = exporter_start(folder.path, names);
        expect_scrape(0);
        create_page(3);
        expect_scrape(1);
        stats = sl_stats_free(stats);
        expect_scrape(0);
        expect_answer("GET /metrics" CLOSE "\r\n", "HTTP/1.1 200 ", "starling_up{runtime=\"other\"} 0\n");
        expect_answer("GET /metrics" CLOSE "\r\n", "HTTP/1.1 200 ", "model=\"model-2\"} 2\n");
        cr_expect_not_null(strstr(exporter_log(&exporter), ": is there\n"));
        cr_expect_not_null(strstr(exporter_log(&exporter), "No such file or directory\n"));
        cr_expect_not_null(strstr(exporter_log(&exporter), "it has ended\n"));
        create_page(1);
        expect_scrape(1);
}

/* ---- the process ---- */

static char *status_line(const char *field)
{
        static char line[256];
        char path[64];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", exporter.pid);
        file = fopen(path, "r");
        cr_assert_not_null(file);
        while (fgets(line, sizeof(line), file) && strncmp(line, field, strlen(field)) != 0)
                ;
        fclose(file);
        return line + strlen(field);
}

/* Rights are given up right after it listens; the first answer comes later. */
Test(exporter_server, it_keeps_no_right_but_to_read)
{
        start();
        expect_scrape(0);
        cr_expect_eq(atoi(status_line("NoNewPrivs:")), 1);
        cr_expect_eq(strtoull(status_line("CapEff:"), NULL, 16) & ~(1ull << 2 /* CAP_DAC_READ_SEARCH */), 0);
        cr_expect_eq(strtoull(status_line("CapBnd:"), NULL, 16) & strtoull(status_line("CapEff:"), NULL, 16), 0);
        cr_expect_eq(atoi(status_line("Threads:")), 1);
        cr_expect_eq(atoi(status_line("Seccomp:")), 2);
}

Test(exporter_server, it_lives_on_without_who_started_it)
{
        int pids[2];
        pid_t middle;

        cr_assert_eq(pipe(pids), 0);
        middle = fork();
        if (middle == 0) {
                exporter = exporter_start(folder.path, (const char *[]){name, NULL});
                _exit(write(pids[1], &exporter, sizeof(exporter)) != sizeof(exporter));
        }
        cr_assert_eq(read(pids[0], &exporter, sizeof(exporter)), (ssize_t)sizeof(exporter));
        waitpid(middle, NULL, 0);
        usleep(100000);
        expect_scrape(0);
        kill(exporter.pid, SIGTERM);
        exporter.pid = 0;
}

static int make_manager(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", folder.path);
        cr_assert_eq(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
        setenv("NOTIFY_SOCKET", address.sun_path, 1);
        return manager;
}

static void expect_heard(int manager, const char *wanted)
{
        struct pollfd readable = {.fd = manager, .events = POLLIN};
        char heard[64] = "";

        cr_assert_eq(poll(&readable, 1, 60000), 1, "%s is not heard", wanted);
        cr_assert_gt(recv(manager, heard, sizeof(heard) - 1, 0), 0);
        cr_expect_str_eq(heard, wanted);
}

Test(exporter_server, the_service_manager_hears_of_start_and_end)
{
        int manager = make_manager();

        for (int i = 0; i < 2; i++) {
                start();
                expect_heard(manager, "READY=1");
                cr_expect_eq(exporter_end(&exporter, i ? SIGINT : SIGTERM), 0, "%s", exporter_log(&exporter));
                expect_heard(manager, "STOPPING=1");
        }
        close(manager);
}

Test(exporter_server, the_watchdog_is_fed)
{
        int manager = make_manager();

        setenv("WATCHDOG_USEC", "100000", 1);
        start();
        unsetenv("WATCHDOG_USEC");
        expect_heard(manager, "READY=1");
        for (int i = 0; i < 3; i++)
                expect_heard(manager, "WATCHDOG=1");
        close(manager);
}

/* As the service manager does: descriptor 3, in a process whose number it says. */
static void start_with_socket(int listening)
{
        exporter.pid = fork();
        if (exporter.pid == 0) {
                char pid[16];

                snprintf(pid, sizeof(pid), "%d", getpid());
                setenv("LISTEN_PID", pid, 1);
                setenv("LISTEN_FDS", "1", 1);
                dup2(listening, 3);
                dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
                execl(STARLING, "starling", "exporter", name, NULL);
                _exit(127);
        }
}

Test(exporter_server, a_socket_that_is_handed_over_is_the_one)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int listening = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char *answer;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/http", folder.path);
        cr_assert_eq(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
        cr_assert_eq(listen(listening, 8), 0);
        start_with_socket(listening);
        cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        exporter_send(fd, "GET /metrics" CLOSE "\r\n", strlen("GET /metrics" CLOSE "\r\n"), false);
        answer = exporter_receive(fd);
        cr_expect_not_null(strstr(answer, "\nstarling_up{"), "%s", answer);
        free(answer);
        close(listening);
}

/* ---- usage ---- */

static void expect_usage_error(const char *const *argv, const char *wanted)
{
        char said[1024] = "", path[128];
        int status;
        pid_t pid;

        snprintf(path, sizeof(path), "%s/said", folder.path);
        pid = fork();
        if (pid == 0) {
                dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
                execv(STARLING, (char *const *)argv);
                _exit(127);
        }
        waitpid(pid, &status, 0);
        FILE *file = fopen(path, "r");
        said[fread(said, 1, sizeof(said) - 1, file)] = 0;
        fclose(file);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 2, "wait status %#x: %s", status, said);
        cr_expect_not_null(strstr(said, wanted), "no \"%s\" in: %s", wanted, said);
}

Test(exporter_server, what_it_cannot_do_is_said_in_one_line)
{
        const struct {
                const char *address, *wanted;
        } rows[] = {{"9464", "\"9464\" wants an address and a port"}, {"127.0.0.1:", "port"},
                {"127.0.0.1:65536", "port \"65536\" is not a number from 0 to 65535"}, {"127.0.0.1:x", "\"x\""},
                {"example.org:80", "\"example.org:80\""}, {"::1:80", "\"::1:80\""}, {"[::1:80", "wants"}, {":80", "wants"},
                {"", "wants"}, {"[]:80", "wants"}};
        const char *many[24] = {"starling", "exporter"};
        char names[17][16];

        for (size_t i = 0; i < LENGTH(rows); i++)
                expect_usage_error((const char *[]){"starling", "exporter", "--listen", rows[i].address, NULL}, rows[i].wanted);
        expect_usage_error((const char *[]){"starling", "exporter", "a/b", NULL}, "runtime \"a/b\" is not a name: ");
        expect_usage_error((const char *[]){"starling", "exporter", "a", "a", NULL}, "runtime \"a\" is named twice");
        expect_usage_error((const char *[]){"starling", "exporter", "--no", NULL}, "usage: starling exporter");
        expect_usage_error((const char *[]){"starling", "exporter", "--name", "a", "a", NULL}, "runtime \"a\" is named twice");
        expect_usage_error((const char *[]){"starling", "exporter", "--name", "a/b", NULL}, "runtime \"a/b\" is not a name: ");
        expect_usage_error(
                (const char *[]){"starling", "exporter", "--host", "a:80", NULL}, "host a:80 is no name: it wants 1 to 253");
        expect_usage_error((const char *[]){"starling", "exporter", "--host=", NULL}, "host \"\" is no name");
        for (int i = 0; i < 17; i++) {
                snprintf(names[i], sizeof(names[i]), "r%d", i);
                many[2 + i] = names[i];
        }
        expect_usage_error(many, "runtime \"r16\" is number 17, at most 16 are watched");
}

Test(exporter_server, an_address_that_is_taken_is_named)
{
        char address[32], said[256] = "";
        int ends[2], status;
        pid_t pid;

        start();
        snprintf(address, sizeof(address), "127.0.0.1:%u", exporter.port);
        cr_assert_eq(pipe(ends), 0);
        pid = fork();
        if (pid == 0) {
                dup2(ends[1], STDERR_FILENO);
                execl(STARLING, "starling", "exporter", "--listen", address, NULL);
        }
        cr_assert_gt(read(ends[0], said, sizeof(said) - 1), 0);
        waitpid(pid, &status, 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        cr_expect(strstr(said, address) && strstr(said, "in use"), "%s", said);
}
