/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line per event, whatever the values hold. */
#include "log.h"

#include "base/fields.h"
#include "base/quote.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int pipe_fds[2];

static _Atomic uint32_t dropped;

static struct sl_log log_into_pipe(enum sl_log_level level)
{
        cr_assert_eq(pipe(pipe_fds), 0);
        return (struct sl_log){.fd = pipe_fds[1], .level = level, .dropped = &dropped};
}

/* Everything written so far. */
static const char *written(void)
{
        static char text[8192];

        close(pipe_fds[1]);
        ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        close(pipe_fds[0]);
        return text;
}

Test(log, an_event_is_a_line_with_time_level_and_fields)
{
        struct sl_log log = log_into_pipe(SL_LOG_INFO);
        int year, length = 0;

        sl_log_event(&log, SL_LOG_WARNING, "client-ejected", "client=7");
        const char *line = written();
        cr_assert_eq(sscanf(line, "%4d-%*2d-%*2dT%*2d:%*2d:%*9[0-9.]Z warning%n", &year, &length), 1, "%s", line);
        cr_assert_str_eq(line + length, " event=client-ejected client=7\n");
}

Test(log, what_is_less_important_than_the_level_is_not_written)
{
        struct sl_log log = log_into_pipe(SL_LOG_WARNING);

        sl_log_event(&log, SL_LOG_INFO, "a", "");
        sl_log_event(&log, SL_LOG_DEBUG, "b", "");
        sl_log_event(&log, SL_LOG_ERROR, "c", "");
        const char *text = written();
        cr_assert(strstr(text, "error event=c\n"));
        cr_assert_null(strstr(text, "event=a"));
        cr_assert_null(strstr(text, "event=b"));
}

Test(log, an_event_stays_one_line_and_is_cut_at_the_limit)
{
        struct sl_log log = log_into_pipe(SL_LOG_INFO);
        char fields[3000];

        memset(fields, 'x', sizeof(fields));
        fields[10] = '\n';
        fields[sizeof(fields) - 1] = 0;
        sl_log_event(&log, SL_LOG_INFO, "long", fields);
        const char *text = written();
        cr_assert_eq(strlen(text), SL_LOG_LINE_BYTES - 1);
        cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

Test(log, values_are_quoted_when_they_are_no_plain_words)
{
        char text[64], small[8];

        cr_assert_str_eq(sl_quote("plain-1.0:/x", text, sizeof(text)), "plain-1.0:/x");
        cr_assert_str_eq(sl_quote("", text, sizeof(text)), "\"\"");
        cr_assert_str_eq(sl_quote("a b", text, sizeof(text)), "\"a b\"");
        cr_assert_str_eq(sl_quote("x\" level=error", text, sizeof(text)), "\"x\\\" level=error\"");
        cr_assert_str_eq(sl_quote("a\nb\tc\x01\\", text, sizeof(text)), "\"a\\nb\\tc\\x01\\\\\"");
        cr_assert_str_eq(sl_quote("a b c d e f g h", small, sizeof(small)), "\"a b c\"");
}

Test(log, no_value_passes_for_another_field)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "cause", "folder \"/x\" level=error\nevent=stopped");
        sl_fields_add(&fields, "label", "a=b");
        sl_fields_add_number(&fields, "uid", -7);
        cr_assert_str_eq(fields.text, "cause=\"folder \\\"/x\\\" level=error\\nevent=stopped\" label=\"a=b\" uid=-7");
}

Test(log, a_value_is_cut_inside_its_quotes_and_a_line_holds_it)
{
        for (size_t n = SL_FIELDS_BYTES - 40; n < SL_FIELDS_BYTES + 40; n++) {
                struct sl_log log = log_into_pipe(SL_LOG_INFO);
                struct sl_fields fields = {0};
                char value[SL_FIELDS_BYTES + 64] = "";

                memset(value, '"', n / 2);
                sl_fields_add(&fields, "cause", value);
                sl_fields_add(&fields, "text", "b c");
                sl_fields_add_number(&fields, "n", 1);
                sl_log_event(&log, SL_LOG_WARNING, "some-event-of-a-long-name", fields.text);
                const char *text = written();
                size_t quotes = 0;

                for (const char *c = text; *c; c++)
                        quotes += *c == '"' && c[-1] != '\\';
                cr_assert_eq(quotes % 2, 0, "%s", text);
                cr_assert(strstr(text, fields.text), "cut: %s", text);
        }
}

/* It waits for nobody, and says what is missing once there is room. */
Test(log, of_whom_nobody_reads_goes_on_without_its_lines, .timeout = 10)
{
        struct sl_log log = log_into_pipe(SL_LOG_INFO);
        char text[1 << 16];
        uint32_t n_lines = 0, n_lost = 0, n_written = 0;
        ssize_t n;

        for (; n_lines < 100000 && !dropped; n_lines++)
                sl_log_event(&log, SL_LOG_INFO, "a", "");
        cr_assert_eq(dropped, 1, "a pipe holds less than %u lines", n_lines);
        for (uint32_t i = 0; i < 6; i++)
                sl_log_event(&log, SL_LOG_INFO, "a", "");
        n = read(pipe_fds[0], text, sizeof(text) - 1);
        cr_assert_gt(n, 0);
        text[n] = 0;
        for (const char *at = text; (at = strstr(at, " event=a\n")); at++)
                n_written++;
        sl_log_event(&log, SL_LOG_INFO, "b", "");
        const char *rest = written();
        for (const char *at = rest; (at = strstr(at, " event=a\n")); at++)
                n_written++;
        cr_assert_not_null(strstr(rest, "warning event=log-dropped lines="), "%s", rest);
        cr_assert_eq(sscanf(strstr(rest, "lines="), "lines=%u", &n_lost), 1);
        cr_expect_eq(n_written + n_lost, n_lines + 6);
        cr_expect_not_null(strstr(rest, "info event=b\n"));
}
