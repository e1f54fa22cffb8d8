/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime of our own: `/proc/self/exe serve` in a folder of its own below $TMPDIR (/tmp where that is too long for a socket),
 * which holds its configuration, its socket, an empty model repository and its log. All of it is gone after sl_server_stop(),
 * however the benchmark ended; the runtime dies with the benchmark if that is killed. One thread.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sl_conv_model;
struct starling_error;

struct sl_server_options {
        int dispatcher_cpu; /* -1: this and the worker's are chosen as every runtime chooses them */
        int worker_cpu;
        bool ordinary;                   /* without the privilege to go before others (CAP_SYS_NICE), as most users run it */
        bool cached;                     /* compiled plans are kept where every runtime of this user keeps them */
        cpu_set_t cpus;                  /* that the runtime may use */
        uint64_t arena_bytes;            /* of one client, at most */
        const char *models;              /* absolute path of a further repository that it serves from the start; NULL: none */
        const char *const *data_folders; /* its data_folders */
        uint32_t n_data_folders;
};

struct sl_server {
        pid_t pid; /* -1: none */
        char name[32];
        char folder[96];
        char repository[128];
        char socket[160];
        char log[128];
};

/*
 * Starts it and waits until it can be attached to, up to 30 s. On failure says why on stderr, with the end of its log, and nothing
 * is left. Return: 0, -errno.
 */
int sl_server_start(struct sl_server *server, const struct sl_server_options *options);

/* Has the model @name of its repository loaded. Return: 0; -errno with a text. */
int sl_server_load(const struct sl_server *server, const char *name, struct starling_error *error);

/* Writes a model into its repository and has it loaded under @name. Return: 0; -errno with a text. */
int sl_server_load_conv(
        const struct sl_server *server, const struct sl_conv_model *model, const char *name, struct starling_error *error);

/* Prints the last lines of its log to stderr. */
void sl_server_show_log(const struct sl_server *server);

/* Ends it by its own pid and waits; kills it after 15 s. Removes the folder. One that did not start is fine. Return: 0; -EIO: it
 * did not end in order. */
int sl_server_stop(struct sl_server *server);
