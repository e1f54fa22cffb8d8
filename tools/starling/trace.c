/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling trace`: what a runtime does with the requests that it samples, for some seconds, as a file for a trace viewer.
 */
#include "trace.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "session.h"
#include "trace_json.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OPTION_OUTPUT = OPTIONS_BEGIN + 100, OPTION_SECONDS, OPTION_REQUESTS };

/* So often the page is looked at: a thousand sampled requests fit it, so none is lost below half a million in a second. */
#define STEP_NS (2 * SL_NS_PER_MS)

struct trace_arguments {
        const char *name, *output; /* output NULL: standard output */
        double seconds;
        uint64_t requests;
};

static int take_option(int option, const char *command, struct trace_arguments *to)
{
        char wish[SL_WISH_BYTES];

        switch (option) {
        case OPTION_NAME:
                to->name = optarg;
                return STATUS_OK;
        case 'o':
                to->output = strcmp(optarg, "-") == 0 ? NULL : optarg;
                return STATUS_OK;
        case OPTION_SECONDS:
                if (sl_value_real(optarg, 0.01, 86400, &to->seconds, wish) == 0)
                        return STATUS_OK;
                return complain(STATUS_USAGE, command, "--seconds: \"%s\" is %s", optarg, wish);
        case OPTION_REQUESTS:
                if (sl_value_number(optarg, 1, 10000000, &to->requests, wish) == 0)
                        return STATUS_OK;
                return complain(STATUS_USAGE, command, "--requests: \"%s\" is %s", optarg, wish);
        default:
                return complain_usage(command);
        }
}

static int parse(int argc, char **argv, struct trace_arguments *ret_arguments)
{
        const struct option options[] = {TRACE_OPTIONS(OPTION_GETOPT){0}};
        int status = STATUS_OK;

        *ret_arguments = (struct trace_arguments){.name = "starling", .seconds = 10, .requests = 100000};
        for (int option; status == STATUS_OK && (option = next_option(argc, argv, options)) != -1;)
                status = take_option(option, argv[0], ret_arguments);
        if (status != STATUS_OK)
                return status;
        if (argc - optind > 1)
                return complain_usage(argv[0]);
        if (argc > optind)
                ret_arguments->name = argv[optind];
        return STATUS_OK;
}

/* Until the time is over, there are as many as were asked for, an interrupt comes, or the runtime is gone. Return: 0, -ENOMEM. */
static int watch(struct trace *trace, const struct trace_arguments *arguments)
{
        const struct timespec step = {.tv_nsec = STEP_NS};
        uint64_t until_ns = sl_clock_ns() + (uint64_t)(arguments->seconds * (double)SL_NS_PER_SECOND);
        sigset_t interrupts;
        bool goes_on = true;
        int r = 0;

        sigemptyset(&interrupts);
        sigaddset(&interrupts, SIGINT);
        sigaddset(&interrupts, SIGTERM);
        sigprocmask(SIG_BLOCK, &interrupts, NULL);
        while (r == 0 && goes_on && trace->n_records < arguments->requests) {
                goes_on = sigtimedwait(&interrupts, NULL, &step) < 0 && sl_clock_ns() < until_ns && sl_stats_is_live(trace->view) &&
                          sl_stats_check(trace->view, NULL) == 0;
                r = trace_drain(trace);
        }
        sigprocmask(SIG_UNBLOCK, &interrupts, NULL);
        return r;
}

/* @out is closed. */
static int write_file(const struct trace *trace, const char *path, FILE *out)
{
        struct lanes lanes;
        bool written;

        if (lanes_init(&lanes, trace) == 0)
                trace_print_json(&lanes, out);
        else
                complain(STATUS_FAILED, "trace", "out of memory for %zu requests", trace->n_records);
        written = lanes.n_items || !trace->n_records;
        lanes_deinit(&lanes);
        written &= !ferror(out) && (path ? fclose(out) : fflush(out)) == 0;
        return written ? STATUS_OK : complain(STATUS_FAILED, "trace", "\"%s\" cannot be written", path ? path : "standard output");
}

/* On stderr, as the trace may go to stdout. */
static void report(const struct trace *trace)
{
        fprintf(stderr, "%zu requests, %zu spans", trace->n_records, trace->n_spans);
        if (trace->records_ring.lost || trace->spans_ring.lost)
                fprintf(stderr, "; came too late for %llu requests and %llu spans: lower trace.sampling",
                        (unsigned long long)trace->records_ring.lost, (unsigned long long)trace->spans_ring.lost);
        fputc('\n', stderr);
}

/* Whether the file can be made is known before anything is watched for it. */
static int watch_into_file(struct trace *trace, const struct trace_arguments *arguments)
{
        FILE *out = arguments->output ? fopen(arguments->output, "we") : stdout;
        struct sl_error error = {"out of memory"};
        int status;

        if (!out)
                return complain(STATUS_FAILED, "trace", "\"%s\": %s", arguments->output, strerrordesc_np(errno));
        if (watch(trace, arguments) == 0 && sl_stats_check(trace->view, &error) == 0) {
                status = write_file(trace, arguments->output, out);
                if (status == STATUS_OK)
                        report(trace);
                return status;
        }
        if (arguments->output)
                fclose(out);
        return complain(STATUS_FAILED, "trace", "%s", error.text);
}

int command_trace(int argc, char **argv)
{
        struct trace_arguments arguments;
        struct sl_error error = {""};
        struct sl_stats_view *view;
        struct trace trace;
        int status = parse(argc, argv, &arguments), r;

        if (status != STATUS_OK)
                return status;
        r = sl_stats_open(arguments.name, NULL, &view, &error);
        if (r < 0)
                return session_complain(r, argv[0], arguments.name, error.text);
        r = trace_begin(&trace, view, (uint32_t)arguments.requests, &error);
        status = r < 0 ? complain(STATUS_FAILED, argv[0], "%s", error.text) : watch_into_file(&trace, &arguments);
        trace_deinit(&trace);
        sl_stats_close(view);
        return status;
}
