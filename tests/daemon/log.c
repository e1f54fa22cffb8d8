/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line per event, whatever the values hold. */
#include "log.h"

#include "base/fields.h"
#include "base/quote.h"

#include <criterion/criterion.h>
#include <jansson.h>
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
        char fields[4000];

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
        char text[64], small[8], wide[12];

        cr_assert_str_eq(sl_quote("plain-1.0:/x", text, sizeof(text)), "plain-1.0:/x");
        cr_assert_str_eq(sl_quote("", text, sizeof(text)), "\"\"");
        cr_assert_str_eq(sl_quote("a b", text, sizeof(text)), "\"a b\"");
        cr_assert_str_eq(sl_quote("x\" level=error", text, sizeof(text)), "\"x\\\" level=error\"");
        cr_assert_str_eq(sl_quote("a\nb\tc\x01\\", text, sizeof(text)), "\"a\\nb\\tc\\x01\\\\\"");
        cr_assert_str_eq(sl_quote("a b c d e f g h", small, sizeof(small)), "\"a b c\"", "no room to say that it is cut");
        cr_assert_str_eq(sl_quote("a-b-c-d-e-f-g-h", wide, sizeof(wide)), "\"a-b-c-...\"");
        cr_assert_str_eq(sl_quote("a-b-c-d-e", wide, sizeof(wide)), "a-b-c-d-e");
        cr_assert_str_eq(
                sl_quote("\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", wide, sizeof(wide)), "\"\xc3\xbc\xc3\xbc\xc3\xbc...\"");
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

/* ---- as JSON ---- */

static struct sl_log json_log_into_pipe(void)
{
        struct sl_log log = log_into_pipe(SL_LOG_INFO);

        log.format = SL_LOG_JSON;
        return log;
}

/* The only line that was written, as jansson reads it. The caller's. */
static json_t *written_object(void)
{
        json_error_t error;
        const char *text = written();
        json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);

        cr_assert(json_is_object(object), "%s: %s", error.text, text);
        cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1, "one line: %s", text);
        cr_assert_leq(strlen(text), SL_LOG_JSON_BYTES);
        return object;
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        cr_assert_not_null(text, "%s is no string", key);
        return text;
}

Test(log, as_json_a_line_is_an_object_with_the_same_keys_and_values)
{
        struct sl_log log = json_log_into_pipe();
        struct sl_fields fields = {0};
        int length = 0;

        sl_fields_add_number(&fields, "client", 7);
        sl_fields_add(&fields, "label", "my \"app\"\\\n\t\x01=\x7f \xc3\xa9");
        sl_fields_add(&fields, "empty", "");
        sl_fields_add(&fields, "word", "plain-1.0");
        sl_fields_add_number(&fields, "least", INT64_MIN);
        sl_fields_add_real(&fields, "seconds", 0.25);
        sl_log_event(&log, SL_LOG_WARNING, "client-ejected", fields.text);
        json_t *object = written_object();

        cr_expect_eq(json_object_size(object), 9);
        cr_expect_eq(sscanf(text_of(object, "time"), "%*4d-%*2d-%*2dT%*2d:%*2d:%*9[0-9.]Z%n", &length), 0);
        cr_expect_eq((size_t)length, strlen(text_of(object, "time")));
        cr_expect_str_eq(text_of(object, "level"), "warning");
        cr_expect_str_eq(text_of(object, "event"), "client-ejected");
        cr_expect_eq(json_integer_value(json_object_get(object, "client")), 7);
        cr_expect_str_eq(text_of(object, "label"), "my \"app\"\\\n\t\x01=\x7f \xc3\xa9");
        cr_expect_str_eq(text_of(object, "empty"), "");
        cr_expect_str_eq(text_of(object, "word"), "plain-1.0");
        cr_expect_eq(json_integer_value(json_object_get(object, "least")), INT64_MIN);
        cr_expect_eq(json_real_value(json_object_get(object, "seconds")), 0.25);
        json_decref(object);
}

/* Who chooses a label does not choose its type. */
Test(log, as_json_a_text_stays_a_text_though_it_reads_as_a_number)
{
        const char *const texts[] = {"7", "-7", "0.5", "007", "1e3", "-", ".", "1.", "true", "null", "18446744073709551616"};

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct sl_log log = json_log_into_pipe();
                struct sl_fields fields = {0};

                sl_fields_add(&fields, "label", texts[i]);
                sl_log_event(&log, SL_LOG_INFO, "a", fields.text);
                json_t *object = written_object();

                cr_expect_str_eq(text_of(object, "label"), texts[i]);
                json_decref(object);
        }
}

Test(log, as_json_bytes_that_are_no_utf8_become_replacement_characters)
{
        struct sl_log log = json_log_into_pipe();
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "label", "a\xff\xc3(\xed\xa0\x80z");
        sl_log_event(&log, SL_LOG_INFO, "a", fields.text);
        json_t *object = written_object();

        cr_expect_str_eq(text_of(object, "label"), "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
        json_decref(object);
}

Test(log, as_json_any_bytes_in_any_number_of_fields_make_one_valid_object)
{
        const unsigned char likely[] = {'"', '\\', '\n', ' ', '=', 1, 0x7f, 0xff, 0xc3, 0xa9, 'x', '0', '{', '}'};

        srand48(5);
        for (int round = 0; round < 3000; round++) {
                struct sl_log log = json_log_into_pipe();
                struct sl_fields fields = {0};

                for (long field = lrand48() % 20; field >= 0; field--) {
                        char key[16], value[1200];
                        size_t n = (size_t)(lrand48() % (round % 7 == 0 ? 1199 : 40));

                        snprintf(key, sizeof(key), "key%ld", field);
                        for (size_t i = 0; i < n; i++)
                                value[i] = (char)(lrand48() % 3 ? likely[(size_t)lrand48() % sizeof(likely)] : 1 + lrand48() % 255);
                        value[n] = 0;
                        sl_fields_add(&fields, key, value);
                }
                sl_log_event(&log, SL_LOG_INFO, "random", fields.text);
                json_decref(written_object());
        }
}

Test(log, as_json_what_is_no_field_is_still_one_valid_object)
{
        const char *const rows[] = {"word", "a=1 word b=2", "a=\"open", "a=\"x\\", "a=\"\\x", "=", "a= b=1", "\"", "  "};
        char fields[9000];

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_log log = json_log_into_pipe();

                sl_log_event(&log, SL_LOG_INFO, "odd", rows[i]);
                json_decref(written_object());
        }
        for (size_t n = 3500; n < sizeof(fields); n += 31) {
                struct sl_log log = json_log_into_pipe();

                memset(fields, 1, n);
                memcpy(fields, "a=\"", 3);
                fields[n] = 0;
                sl_log_event(&log, SL_LOG_INFO, "long", fields);
                json_decref(written_object());
        }
}
