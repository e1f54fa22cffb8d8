/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace that is written and read is the same; what is wrong in one is named with its line.
 */
#include "trace.h"

#include "base/error.h"
#include "schedule.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(char *path, const char *text)
{
        strcpy(path, "/tmp/sl-trace-XXXXXX");
        int fd = mkstemp(path);

        cr_assert(fd >= 0);
        cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
}

static void expect_refused(const char *text, const char *why)
{
        struct sl_trace trace = {0};
        struct sl_error error = {""};
        char path[32];

        write_file(path, text);
        cr_expect_eq(sl_trace_read(path, &trace, &error), -EINVAL, "%s", text);
        cr_expect(strstr(error.text, why), "\"%s\" instead of \"%s\"", error.text, why);
        cr_expect(strstr(error.text, path));
        cr_expect_null(trace.requests);
        unlink(path);
}

Test(trace, what_is_written_is_read_again)
{
        struct sl_trace trace = {0}, again = {0};
        struct sl_error error = {""};
        struct sl_load_request request = {0};
        char path[32];
        FILE *file;

        cr_assert_eq(sl_trace_model(&trace, "digits", &request.model), 0);
        cr_assert_eq(sl_trace_model(&trace, "mobilenet-v2", &request.model), 0);
        cr_assert_eq(sl_trace_model(&trace, "digits", &request.model), 0);
        cr_assert_eq(request.model, 0, "a name has one number");
        for (uint32_t i = 0; i < 5000; i++) {
                request = (struct sl_load_request){.due_ns = 12345678901ull * i, .model = i % 2, .samples = i + 1};
                cr_assert_eq(sl_trace_add(&trace, &request), 0);
        }
        write_file(path, "");
        file = fopen(path, "w");
        cr_assert(file);
        cr_assert_eq(sl_trace_write(&trace, file), 0);
        fclose(file);
        cr_assert_eq(sl_trace_read(path, &again, &error), 0, "%s", error.text);
        cr_assert_eq(again.n_requests, trace.n_requests);
        cr_expect_eq(memcmp(again.requests, trace.requests, trace.n_requests * sizeof(*trace.requests)), 0);
        cr_expect_str_eq(again.models[1], "mobilenet-v2");
        unlink(path);
        sl_trace_deinit(&trace);
        sl_trace_deinit(&again);
}

Test(trace, what_is_wrong_is_named_with_its_line)
{
        expect_refused("due_ns model samples\n", "line 1: wants \"# starling trace 1\"");
        expect_refused("# starling trace 1\n", "has no requests");
        expect_refused(
                "# starling trace 1\n0 a 1\nten a 1\n", "line 3: due_ns is not a number from 0 to 1000000000000000, got \"ten\"");
        expect_refused("# starling trace 1\n0 a 1 more\n", "line 2: wants");
        expect_refused("# starling trace 1\n-5 a 1\n", "line 2: due_ns is");
        expect_refused("# starling trace 1\n -5 a 1\n", "line 2: due_ns is");
        expect_refused("# starling trace 1\n99999999999999999999999 a 1\n", "line 2: due_ns is");
        expect_refused("# starling trace 1\n5 a -18446744073709551615\n", "line 2: samples are");
        expect_refused("# starling trace 1\n0 a 0\n", "line 2: samples are not a number from 1 to 2147483647, got \"0\"");
        expect_refused("# starling trace 1\n0 a 3000000000\n", "got \"3000000000\"");
        expect_refused("# starling trace 1\n0 a 1\n0 b 1\n", "all requests are due at 0 ns");
        expect_refused("# starling trace 1\n10 a 1\n\n# later\n9 a 1\n", "line 5: due at 9 ns, before the line above");
}

Test(trace, a_request_out_of_order_is_not_added)
{
        struct sl_trace trace = {0};
        uint32_t model;

        cr_assert_eq(sl_trace_model(&trace, "a", &model), 0);
        cr_expect_eq(sl_trace_add(&trace, &(struct sl_load_request){.due_ns = 5, .samples = 1}), 0);
        cr_expect_eq(sl_trace_add(&trace, &(struct sl_load_request){.due_ns = 4, .samples = 1}), -EINVAL);
        cr_expect_eq(sl_trace_add(&trace, &(struct sl_load_request){.due_ns = 5, .model = 1, .samples = 1}), -EINVAL);
        cr_expect_eq(sl_trace_model(&trace, "a b", &model), -EINVAL);
        cr_expect_eq(sl_trace_model(&trace, "", &model), -EINVAL);
        sl_trace_deinit(&trace);
}
