/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling serve`: one process that reads its configuration, serves what the repositories hold, and ends when it is told to.
 *
 *     configuration, command line --> cores of threads --> sl_runtime --> READY=1
 *     SIGTERM, SIGINT    stop: no new requests, grace time, the rest is cancelled; a second one: without grace
 *     SIGHUP             configuration and repositories are read again: new models are loaded, changed ones reloaded, lost ones
 *                        unloaded. Names, access, limits and threads keep what they were at the start.
 *     SIGPIPE            ignored
 *
 * Signals arrive through a signalfd in the control thread, the caller's. The log goes to stderr.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/* What the command line says; it wins over the file. */
struct sl_daemon_options {
        const char *config_path;     /* NULL: defaults */
        const char *name;            /* NULL: the configuration's */
        const char *log_level;       /* NULL: the configuration's */
        const char *log_format;      /* NULL: the configuration's */
        const char *wait;            /* NULL: the configuration's */
        const char *const *lowering; /* KEY=VALUE over model_defaults, as in lower_options.h */
        uint32_t n_lowering;
        const char *allocation; /* "auto", "none", or a file; NULL: the configuration's */
        const char *history;    /* a file (runtime_options.h); NULL: none */
        bool fake;              /* model_defaults: {predictions: fake} */
        const char *const *repositories;
        uint32_t n_repositories;
};

/*
 * Returns when the process is to end. Return: 0 after an orderly stop; -EINVAL a wrong configuration; else what made a start
 * impossible, with one line of text; "" where the log, which is JSON, has said it.
 */
int sl_daemon_serve(const struct sl_daemon_options *options, struct sl_error *error);
