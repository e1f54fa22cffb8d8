#include "log.h"

#include <ctype.h>
#include <stdarg.h>
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

void sl_log_event(const struct sl_log *log, enum sl_log_level level, const char *event, const char *fields)
{
        char line[SL_LOG_LINE_BYTES];

        if (level > log->level)
                return;
        size_t used = write_time(line, sizeof(line));
        used += (size_t)snprintf(
                line + used, sizeof(line) - used, " %s event=%s%s%s", level_names[level], event, *fields ? " " : "", fields);
        if (used > sizeof(line) - 2)
                used = sizeof(line) - 2;
        /* Whatever a field holds, an event stays one line. */
        for (size_t i = 0; i < used; i++)
                if (line[i] == '\n' || line[i] == '\r')
                        line[i] = ' ';
        line[used++] = '\n';
        ssize_t written = write(log->fd, line, used);
        (void)written; /* there is nowhere to complain to */
}

void sl_log_eventf(const struct sl_log *log, enum sl_log_level level, const char *event, const char *format, ...)
{
        char fields[SL_LOG_LINE_BYTES];
        va_list args;

        if (level > log->level)
                return;
        va_start(args, format);
        vsnprintf(fields, sizeof(fields), format, args);
        va_end(args);
        sl_log_event(log, level, event, fields);
}

static bool is_word(const char *value)
{
        if (!*value)
                return false;
        for (; *value; value++)
                if (!isalnum((unsigned char)*value) && !strchr("-_.:/@+,", *value))
                        return false;
        return true;
}

/* One character as it stands between quotes; returns its length. */
static size_t escape(unsigned char character, char ret_text[5])
{
        if (character == '"' || character == '\\')
                return (size_t)sprintf(ret_text, "\\%c", character);
        if (character == '\n' || character == '\t')
                return (size_t)sprintf(ret_text, character == '\n' ? "\\n" : "\\t");
        if (character < 0x20 || character == 0x7f)
                return (size_t)sprintf(ret_text, "\\x%02x", character);
        return (size_t)sprintf(ret_text, "%c", character);
}

const char *sl_log_quote(const char *value, char *ret_text, size_t bytes)
{
        size_t used = 0;

        if (is_word(value)) {
                snprintf(ret_text, bytes, "%s", value);
                return ret_text;
        }
        ret_text[used++] = '"';
        for (; *value; value++) {
                char escaped[5];
                size_t length = escape((unsigned char)*value, escaped);

                if (used + length + 2 > bytes)
                        break;
                memcpy(ret_text + used, escaped, length);
                used += length;
        }
        ret_text[used++] = '"';
        ret_text[used] = 0;
        return ret_text;
}
