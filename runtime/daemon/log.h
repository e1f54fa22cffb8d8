/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line per event on a file descriptor, key=value or a JSON object, nothing per request.
 *
 *     2026-05-01T12:00:00.123456Z info event=client-attached client=3 uid=1000 label="my app"
 *     {"time":"2026-05-01T12:00:00.123456Z","level":"info","event":"client-attached","client":3,"uid":1000,"label":"my app"}
 *
 * A line is one write() of at most SL_LOG_LINE_BYTES, as JSON SL_LOG_JSON_BYTES, so that lines of several threads do not mix.
 * Nobody waits for who reads it: a line that finds no room (a pipe or a terminal that stands still) is dropped, and the next one
 * that finds some says how many were. Threads: any.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SL_LOG_LINE_BYTES 3200
#define SL_LOG_JSON_BYTES 4096 /* PIPE_BUF: beyond it a pipe may mix lines */

enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARNING, SL_LOG_INFO, SL_LOG_DEBUG, SL_LOG_LEVELS };
enum sl_log_format { SL_LOG_TEXT, SL_LOG_JSON, SL_LOG_FORMATS };

struct sl_log {
        int fd;                  /* the owner's; STDERR_FILENO for the runtime */
        enum sl_log_level level; /* what is less important is not written */
        enum sl_log_format format;
        _Atomic uint32_t *dropped; /* the owner's: lines since the last that was written */
};

/* @fields: the text of a struct sl_fields ("client=3 uid=1000"), which quotes what others have chosen; or "". */
void sl_log_event(const struct sl_log *log, enum sl_log_level level, const char *event, const char *fields);
