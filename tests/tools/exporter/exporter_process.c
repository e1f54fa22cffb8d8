/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter_process.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS        60000
#define ARGUMENTS_MAX  32
#define LISTENING      "listens at 127.0.0.1:"
#define SCRAPE_REQUEST "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static void become(const struct exporter_process *exporter, const char *const *arguments)
{
        const char *argv[ARGUMENTS_MAX + 5] = {"starling", "exporter", "--listen", "127.0.0.1:0"};
        int log = open(exporter->log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        for (int i = 0; arguments[i] && i < ARGUMENTS_MAX; i++)
                argv[4 + i] = arguments[i];
        dup2(log, STDERR_FILENO);
        execv(STARLING, (char *const *)argv);
        _exit(127);
}

struct exporter_process exporter_start(const char *folder, const char *const *arguments)
{
        struct exporter_process exporter = {0};
        const char *said;

        snprintf(exporter.log_path, sizeof(exporter.log_path), "%s/exporter.log", folder);
        unlink(exporter.log_path);
        exporter.pid = fork();
        if (exporter.pid == 0)
                become(&exporter, arguments);
        for (int ms = 0; !(said = strstr(exporter_log(&exporter), LISTENING)) || !strchr(said, '\n'); ms++) {
                cr_assert(ms < WAIT_MS && waitpid(exporter.pid, NULL, WNOHANG) == 0, "it does not listen: %s",
                        exporter_log(&exporter));
                usleep(1000);
        }
        exporter.port = (uint16_t)atoi(said + strlen(LISTENING));
        return exporter;
}

int exporter_end(struct exporter_process *exporter, int signal)
{
        int status = 0;

        kill(exporter->pid, signal);
        for (int ms = 0; waitpid(exporter->pid, &status, WNOHANG) == 0; ms++) {
                cr_assert_lt(ms, WAIT_MS, "it does not end: %s", exporter_log(exporter));
                usleep(1000);
        }
        exporter->pid = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *exporter_log(const struct exporter_process *exporter)
{
        static char text[16384];
        FILE *file = fopen(exporter->log_path, "r");
        size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

        text[n] = 0;
        if (file)
                fclose(file);
        return text;
}

int exporter_connect(const struct exporter_process *exporter)
{
        struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_port = htons(exporter->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0, "%s", exporter_log(exporter));
        return fd;
}

void exporter_send(int fd, const char *bytes, size_t n, bool ends)
{
        while (n > 0) {
                ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

                if (sent <= 0)
                        break;
                bytes += sent;
                n -= (size_t)sent;
        }
        if (ends)
                shutdown(fd, SHUT_WR);
}

char *exporter_receive(int fd)
{
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        size_t used = 0, room = 1 << 16;
        char *text = malloc(room + 1);

        for (;;) {
                if (used == room)
                        text = realloc(text, (room *= 2) + 1);
                cr_assert_eq(poll(&readable, 1, WAIT_MS), 1, "nothing comes");
                ssize_t n = recv(fd, text + used, room - used, 0);

                if (n <= 0)
                        break;
                used += (size_t)n;
        }
        close(fd);
        text[used] = 0;
        return text;
}

char *exporter_ask(const struct exporter_process *exporter, const char *request)
{
        int fd = exporter_connect(exporter);

        exporter_send(fd, request, strlen(request), false);
        return exporter_receive(fd);
}

char *exporter_scrape(const struct exporter_process *exporter)
{
        char *answer = exporter_ask(exporter, SCRAPE_REQUEST), *body = strstr(answer, "\r\n\r\n");

        cr_assert_eq(strncmp(answer, "HTTP/1.1 200 ", 13), 0, "%s", answer);
        cr_assert_not_null(body);
        memmove(answer, body + 4, strlen(body + 4) + 1);
        return answer;
}
