/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling exporter` as a process of its own, and requests to it as bytes. What does not come within 30 s fails the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct exporter_process {
        pid_t pid;
        uint16_t port;
        char log_path[128];
};

/* Its log goes into @folder. @arguments: behind "starling exporter", NULL-terminated; it listens where the kernel chooses. */
struct exporter_process exporter_start(const char *folder, const char *const *arguments);

/* Sends @signal and waits. Return: the exit status; 128 and the signal's number where one ended it. */
int exporter_end(struct exporter_process *exporter, int signal);

/* What it has said so far; the next call overwrites it. */
const char *exporter_log(const struct exporter_process *exporter);

/* A connection of this process. */
int exporter_connect(const struct exporter_process *exporter);

/* Sends bytes, and ends the sending side where @ends. Nobody minds if the other side is gone. */
void exporter_send(int fd, const char *bytes, size_t n, bool ends);

/* All that comes until the other side ends; closes @fd. The caller frees. */
char *exporter_receive(int fd);

/* One request on a connection of its own: the whole answer. The caller frees. */
char *exporter_ask(const struct exporter_process *exporter, const char *request);

/* Body of GET /metrics, which must be answered with 200. The caller frees. */
char *exporter_scrape(const struct exporter_process *exporter);
