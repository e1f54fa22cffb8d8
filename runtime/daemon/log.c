/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include "base/utf8.h"
#include "log_json.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[SL_LOG_LEVELS] = {"error", "warning", "info", "debug"};

static size_t write_time(char *ret_text, size_t bytes)
{
        struct timespec now;
        struct tm parts;

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &parts);
        size_t used = strftime(ret_text, bytes, "%Y-%m-%dT%H:%M:%S", &parts);
        return used + (size_t)snprintf(ret_text + used, bytes - used, ".%06ldZ", now.tv_nsec / 1000);
}

/* A pipe says so while it takes a whole line. Where that cannot be told, the write itself says what is wrong. */
static bool has_room(int fd)
{
        struct pollfd file = {.fd = fd, .events = POLLOUT};

        return poll(&file, 1, 0) != 0;
}

/* Return: bytes, of a whole line. */
static size_t make_text(enum sl_log_level level, const char *event, const char *fields, char line[SL_LOG_LINE_BYTES])
{
        size_t used = write_time(line, SL_LOG_LINE_BYTES);

        used += (size_t)snprintf(
                line + used, SL_LOG_LINE_BYTES - used, " %s event=%s%s%s", level_names[level], event, *fields ? " " : "", fields);
        if (used > SL_LOG_LINE_BYTES - 2)
                used = sl_utf8_head(line, SL_LOG_LINE_BYTES - 2);
        /* Whatever a field holds, an event stays one line. */
        for (size_t i = 0; i < used; i++)
                if (line[i] == '\n' || line[i] == '\r')
                        line[i] = ' ';
        line[used++] = '\n';
        return used;
}

static size_t make_json(enum sl_log_level level, const char *event, const char *fields, char line[SL_LOG_JSON_BYTES])
{
        const char *level_name = level_names[level];
        char time[64];

        time[write_time(time, sizeof(time))] = 0;
        return log_json_write(&(struct log_json_line){.time = time, .level = level_name, .event = event, .fields = fields}, line,
                SL_LOG_JSON_BYTES);
}

static void write_line(const struct sl_log *log, enum sl_log_level level, const char *event, const char *fields)
{
        char line[SL_LOG_JSON_BYTES];
        size_t used = log->format == SL_LOG_JSON ? make_json(level, event, fields, line) : make_text(level, event, fields, line);
        ssize_t written = write(log->fd, line, used);

        (void)written; /* there is nowhere to complain to */
}

void sl_log_event(const struct sl_log *log, enum sl_log_level level, const char *event, const char *fields)
{
        char lines[32];
        uint32_t dropped;

        if (level > log->level)
                return;
        if (!has_room(log->fd)) {
                atomic_fetch_add_explicit(log->dropped, 1, memory_order_relaxed); /* a number, and nothing beside it */
                return;
        }
        dropped = atomic_exchange_explicit(log->dropped, 0, memory_order_relaxed);
        snprintf(lines, sizeof(lines), "lines=%u", dropped);
        if (dropped)
                write_line(log, SL_LOG_WARNING, "log-dropped", lines);
        if (dropped && !has_room(log->fd))
                atomic_fetch_add_explicit(log->dropped, 1, memory_order_relaxed);
        else
                write_line(log, level, event, fields);
}
