/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling top`: what a runtime does, on a terminal, from its stats page alone. A program of its own, so that no runtime has
 * ncurses in it. One thread: it waits for a key or the next interval, looks, draws.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/standard_fds.h"
#include "base/utf8.h"
#include "base/value.h"
#include "command.h"
#include "command_options.h"
#include "display.h"
#include "terminal.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = OPTIONS_BEGIN, TOP_OPTIONS(OPTION_ID) };

static const struct option options[] = {TOP_OPTIONS(OPTION_GETOPT){0}};

struct top {
        struct follow follow;
        struct browse browse;
        struct snapshot *before, *now; /* NULL: not taken yet */
        struct interval interval;      /* of the two; now NULL: none */
        uint64_t due_ns;
};

static int complain_top(int status, const char *text)
{
        fprintf(stderr, "starling top: %s\n", text);
        return status;
}

static int usage(void)
{
        fputs("usage: starling top [--interval SECONDS] [NAME]\n", stderr);
        return STATUS_USAGE;
}

static int parse(int argc, char **argv, const char **ret_name, double *ret_seconds)
{
        char wish[SL_WISH_BYTES], shown[64], text[sizeof(wish) + sizeof(shown) + 32];

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_NAME) {
                        *ret_name = optarg;
                } else if (option == OPTION_INTERVAL) {
                        if (sl_value_real(optarg, SECONDS_MIN, SECONDS_MAX, ret_seconds, wish) == 0)
                                continue;
                        snprintf(text, sizeof(text), "--interval: \"%s\" is %s", sl_utf8_fit(optarg, shown, sizeof(shown)), wish);
                        return complain_top(STATUS_USAGE, text);
                } else {
                        return usage();
                }
        }
        if (argc - optind > 1)
                return usage();
        if (argc > optind)
                *ret_name = argv[optind];
        return STATUS_OK;
}

/* ---- what is seen ---- */

static void forget_interval(struct top *top)
{
        if (top->interval.now)
                interval_deinit(&top->interval);
}

/* What it does since the last look; of one that is gone what it did last is kept. */
static int look(struct top *top)
{
        struct snapshot *now;
        int r;

        follow_look(&top->follow);
        if (!top->follow.view || (top->follow.state == FOLLOW_GONE && top->now && !top->now->live))
                return 0;
        r = snapshot_take(top->follow.view, &now, &top->follow.cause);
        if (r == -EBADMSG)
                follow_lose(&top->follow);
        if (r < 0)
                return r == -EBADMSG ? 0 : r;
        forget_interval(top);
        snapshot_free(top->before);
        top->before = top->now;
        top->now = now;
        return interval_init(&top->interval, top->before, top->now);
}

static int draw(struct top *top)
{
        const struct display display = {
                .name = top->follow.name,
                .state = top->follow.state,
                .cause = top->follow.cause.text,
                .interval = top->interval.now ? &top->interval : NULL,
        };
        struct canvas canvas;
        int rows, columns, r;

        terminal_size(&rows, &columns);
        r = canvas_init(&canvas, rows, columns);
        if (r == 0)
                r = display_draw(&display, &top->browse, &canvas);
        if (r == 0)
                terminal_paint(&canvas);
        canvas_deinit(&canvas);
        return r;
}

/* ---- the loop ---- */

static void take_keys(struct top *top)
{
        double seconds = top->browse.seconds;

        for (int key; (key = terminal_key()) != KEY_NONE && !top->browse.quits;)
                browse_press(&top->browse, key);
        if (top->browse.seconds < seconds) /* not as late as it was to be */
                top->due_ns = sl_clock_ns();
}

static uint64_t left_ns(const struct top *top)
{
        uint64_t now_ns = sl_clock_ns();

        return top->due_ns > now_ns ? top->due_ns - now_ns : 0;
}

/* While it is held only keys count. */
static int look_when_due(struct top *top)
{
        int r = 0;

        if (left_ns(top))
                return 0;
        if (!top->browse.paused)
                r = look(top);
        top->due_ns = sl_clock_ns() + (uint64_t)(top->browse.seconds * (double)SL_NS_PER_SECOND);
        return r;
}

static int run(struct top *top)
{
        int r = 0;

        while (r == 0 && !top->browse.quits) {
                r = look_when_due(top);
                if (r == 0)
                        r = draw(top);
                if (r == 0)
                        r = terminal_wait(left_ns(top));
                take_keys(top);
        }
        return r == -EINTR ? 0 : r;
}

int main(int argc, char **argv)
{
        const char *name = "starling";
        struct sl_error error = {""};
        struct top top = {0};
        double seconds = 1;
        int r, status;

        sl_standard_fds_fill();
        status = parse(argc, argv, &name, &seconds);
        if (status != STATUS_OK)
                return status;
        setlocale(LC_CTYPE, "");
        if (terminal_start(&error) < 0)
                return complain_top(STATUS_FAILED, error.text);
        follow_init(&top.follow, name);
        browse_init(&top.browse, seconds);
        r = run(&top);
        terminal_end();
        forget_interval(&top);
        snapshot_free(top.before);
        snapshot_free(top.now);
        follow_deinit(&top.follow);
        return r < 0 ? complain_top(STATUS_FAILED, strerror(-r)) : STATUS_OK;
}
