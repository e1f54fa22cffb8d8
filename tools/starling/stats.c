/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling stats`: all of a stats page once, or with --watch a line for each interval, until --count or an interrupt. A runtime
 * that ends is said to have ended, and another one of its name is watched on.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "follow.h"
#include "session.h"
#include "stats_print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Beside those of all commands that talk to a runtime. */
enum { OPTION_WATCH = OPTIONS_BEGIN + 100, OPTION_COUNT, OPTION_MODEL };

#define SECONDS_MIN   0.05
#define SECONDS_MAX   86400.0
#define HEADING_EVERY 20u /* lines, on a terminal */
#define STATS_DEFAULT "starling"

struct stats_arguments {
        const char *name, *model;
        bool json;
        double seconds; /* 0: once */
        uint64_t count; /* 0: no end */
};

static bool is_number(const char *text)
{
        char *end;

        (void)strtod(text, &end);
        return *text >= '0' && *text <= '9' && *end == 0;
}

/* `--watch=2` and `--watch 2`; a runtime that is named so needs --name. */
static const char *take_seconds(int argc, char **argv)
{
        if (!optarg && optind < argc && is_number(argv[optind]))
                return argv[optind++];
        return optarg;
}

static int parse_seconds(const char *text, double *ret_seconds)
{
        char wish[SL_WISH_BYTES];

        *ret_seconds = 1;
        if (!text || sl_value_real(text, SECONDS_MIN, SECONDS_MAX, ret_seconds, wish) == 0)
                return STATUS_OK;
        return complain(STATUS_USAGE, "stats", "--watch: \"%s\" is %s", text, wish);
}

static int parse_count(const char *text, uint64_t *ret_count)
{
        char wish[SL_WISH_BYTES];

        if (sl_value_number(text, 1, UINT32_MAX, ret_count, wish) == 0)
                return STATUS_OK;
        return complain(STATUS_USAGE, "stats", "--count: \"%s\" is %s", text, wish);
}

static int take_option(int option, int argc, char **argv, struct stats_arguments *to)
{
        switch (option) {
        case OPTION_NAME:
                to->name = optarg;
                return STATUS_OK;
        case OPTION_JSON:
                to->json = true;
                return STATUS_OK;
        case OPTION_MODEL:
                to->model = optarg;
                return STATUS_OK;
        case OPTION_WATCH:
                return parse_seconds(take_seconds(argc, argv), &to->seconds);
        case OPTION_COUNT:
                return parse_count(optarg, &to->count);
        default:
                return complain_usage(argv[0]);
        }
}

static int parse(int argc, char **argv, struct stats_arguments *ret_arguments)
{
        struct option options[] = {STATS_OPTIONS(OPTION_GETOPT){0}};
        int status = STATUS_OK;

        for (struct option *option = options; option->name; option++)
                if (option->val == OPTION_WATCH)
                        option->has_arg = optional_argument;
        *ret_arguments = (struct stats_arguments){.name = STATS_DEFAULT};
        for (int option; status == STATUS_OK && (option = next_option(argc, argv, options)) != -1;)
                status = take_option(option, argc, argv, ret_arguments);
        if (status != STATUS_OK)
                return status;
        if (argc - optind > 1)
                return complain_usage(argv[0]);
        if (argc > optind)
                ret_arguments->name = argv[optind];
        if (ret_arguments->seconds == 0 && (ret_arguments->count || ret_arguments->model))
                return complain(STATUS_USAGE, argv[0], "--count and --model are for --watch");
        return STATUS_OK;
}

static int print_once(const struct stats_arguments *arguments)
{
        struct sl_error error = {""};
        struct snapshot *snapshot;
        int r = snapshot_of(arguments->name, &snapshot, &error);

        if (r < 0)
                return session_complain(r, "stats", arguments->name, error.text[0] ? error.text : strerrordesc_np(-r));
        (arguments->json ? stats_print_json : stats_print_text)(snapshot);
        snapshot_free(snapshot);
        return STATUS_OK;
}

/* ---- --watch ---- */

struct watching {
        const struct stats_arguments *arguments;
        struct follow follow;
        struct snapshot *before; /* NULL: there was no living runtime yet */
        uint64_t lines;
        bool said_gone;
};

static const struct model_interval *shown_of(const struct interval *interval, const char *model)
{
        for (uint32_t i = 0; model && i < interval->now->n_models; i++)
                if (strcmp(interval->models[i].now->slot.name, model) == 0)
                        return &interval->models[i];
        return model ? NULL : &interval->all;
}

static int print_interval(struct watching *watching, const struct interval *interval)
{
        const struct stats_arguments *arguments = watching->arguments;
        const struct model_interval *shown = shown_of(interval, arguments->model);

        if (!shown)
                return complain(STATUS_FAILED, "stats", "runtime \"%s\" has no model \"%s\"", arguments->name, arguments->model);
        if (!arguments->json && (watching->lines == 0 || (isatty(STDOUT_FILENO) && watching->lines % HEADING_EVERY == 0)))
                stats_print_heading();
        (arguments->json ? stats_print_line_json : stats_print_line)(interval, shown);
        watching->lines++;
        return STATUS_OK;
}

/* The next interval begins here. */
static int take_snapshot(struct watching *watching, struct snapshot **ret_now)
{
        struct sl_error error;

        return snapshot_take(watching->follow.view, ret_now, &error) < 0 ? complain(STATUS_FAILED, "stats", "%s", error.text)
                                                                         : STATUS_OK;
}

static int look(struct watching *watching)
{
        struct interval interval;
        struct snapshot *now;
        int status = take_snapshot(watching, &now);

        if (status != STATUS_OK)
                return status;
        if (interval_init(&interval, watching->before, now) == 0)
                status = print_interval(watching, &interval);
        else
                status = complain(STATUS_FAILED, "stats", "out of memory");
        interval_deinit(&interval);
        snapshot_free(watching->before);
        watching->before = now;
        return status;
}

/* In JSON each line says whether its runtime lives. */
static void say_gone(struct watching *watching)
{
        const struct stats_arguments *arguments = watching->arguments;

        if (!watching->said_gone && !arguments->json)
                printf("-- runtime %s has ended; waiting for another one of this name\n", arguments->name);
        watching->said_gone = true;
}

static void say_back(struct watching *watching)
{
        if (watching->said_gone && !watching->arguments->json)
                printf("-- runtime %s is there again, pid %u\n", watching->arguments->name, watching->follow.header.pid);
        watching->said_gone = false;
}

/* The last line of one that has ended says what it did until then. */
static int turn(struct watching *watching)
{
        bool lived = watching->follow.state == FOLLOW_LIVES;
        int status = STATUS_OK;

        follow_look(&watching->follow);
        if (watching->follow.state == FOLLOW_LIVES)
                say_back(watching);
        if (watching->follow.state == FOLLOW_LIVES || lived)
                status = look(watching);
        if (watching->follow.state == FOLLOW_GONE)
                say_gone(watching);
        if (fflush(stdout) == 0 && !ferror(stdout))
                return status;
        return errno == EPIPE ? STATUS_FAILED : complain(STATUS_FAILED, "stats", "standard output: %s", strerror(errno));
}

static void pause_until(uint64_t ns)
{
        const struct timespec at = {.tv_sec = (time_t)(ns / SL_NS_PER_SECOND), .tv_nsec = (long)(ns % SL_NS_PER_SECOND)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
                ;
}

static int watch(const struct stats_arguments *arguments)
{
        struct watching watching = {.arguments = arguments};
        uint64_t step_ns = (uint64_t)(arguments->seconds * (double)SL_NS_PER_SECOND), due_ns = sl_clock_ns();
        int status = STATUS_OK, r;

        follow_init(&watching.follow, arguments->name);
        r = follow_look(&watching.follow);
        if (r < 0)
                return session_complain(r, "stats", arguments->name, watching.follow.cause.text);
        if (watching.follow.state == FOLLOW_LIVES)
                status = take_snapshot(&watching, &watching.before);
        while (status == STATUS_OK && (!arguments->count || watching.lines < arguments->count)) {
                uint64_t now_ns = sl_clock_ns();

                due_ns = due_ns + step_ns > now_ns ? due_ns + step_ns : now_ns + step_ns; /* who was stopped does not catch up */
                pause_until(due_ns);
                status = turn(&watching);
        }
        snapshot_free(watching.before);
        follow_deinit(&watching.follow);
        return status;
}

int command_stats(int argc, char **argv)
{
        struct stats_arguments arguments;
        int status = parse(argc, argv, &arguments);

        if (status != STATUS_OK)
                return status;
        return arguments.seconds > 0 ? watch(&arguments) : print_once(&arguments);
}
