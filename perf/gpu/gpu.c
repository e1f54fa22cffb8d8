/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling-gpu: one measurement on a GPU, in flat JSON on stdout. tools/gpu-check.sh runs all of them. Exit status: 0; 1 it failed,
 * stderr has the line; 2 it was asked wrongly; 3 there is no GPU that can be used, stderr has the line.
 */
#include "commands.h"

#include "base/error.h"
#include "lower.h"
#include "option_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
        const char *name, *arguments, *summary;
        int (*run)(struct ground *ground, const struct wish *wish, struct sl_error *error);
} commands[] = {
        {"device", "", "describe the GPU, its driver and libraries", command_device},
        {"agree", "[OPTIONS] MODEL...", "compare outputs with those of backend ref", command_agree},
        {"time", "[OPTIONS] MODEL", "time the requests of a worker", command_time},
        {"launch", "", "time a graph of one node, queued and waited for", command_launch},
        {"lets", "", "find the multiprocessors that each let runs on", command_lets},
        {"memory", "[OPTIONS] MODEL", "measure the memory of six workers of one model", command_memory},
};

#define OPTIONS(X)                                                                                                                 \
        X('b', "batch", "N", "run batches of N samples, up to 1024 (default: 1)")                                                  \
        X('p', "pieces", "N", "gather a batch from N requests of one size (default: 1)")                                           \
        X('a', "at-once", "N", "keep N batches on the device, up to 16 (default: 1)")                                              \
        X('s', "seconds", "SECONDS", "measure for SECONDS seconds (default: 2)")                                                   \
        X('u', "tune", "SECONDS", "time candidates for at most SECONDS seconds before (default: none, the first are taken)")       \
        X('g', "percent", "PERCENT", "run on PERCENT % of the multiprocessors (default: all)")                                     \
        X('l', "limit", "X", "fail where outputs differ by more than X of the largest value (default: 1e-4)")                      \
        X('t', "tokens", "N", "draw token numbers below N (default: 1000)")                                                        \
        X('w', "words", NULL, "let the device write a word when a batch is done, instead of recording an event")                   \
        X('r', "read-only", NULL, "read inputs from memory that is mapped read-only")                                              \
        X('O', "option", "KEY=VALUE", "set the compiler's KEY; repeatable (default: as in starling-config(5))")                    \
        X('h', "help", NULL, "print this")

static const struct option options[] = {OPTIONS(SL_OPTION_GETOPT){0}};

static void print_help(void)
{
        puts("usage: starling-gpu COMMAND [OPTIONS] [MODEL]...\n");
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
                printf("  %-8s%-20s%s\n", commands[i].name, commands[i].arguments, commands[i].summary);
        putchar('\n');
        OPTIONS(SL_OPTION_PRINT)
}

/* Of the option that getopt_long() has just read. Return: 0; -EINVAL with the line. */
static int take_number(int letter, double *ret_number, struct sl_error *error)
{
        const struct option *option = options;
        char *end = optarg;

        *ret_number = optarg ? strtod(optarg, &end) : 0;
        if (letter == 'O' || !optarg || (end != optarg && !*end && *ret_number > 0))
                return 0;
        while (option->val != letter)
                option++;
        return sl_error_set(error, EINVAL, "--%s: \"%s\" is no number above 0", option->name, optarg);
}

static int check(const struct wish *wish, struct sl_error *error)
{
        if (wish->batch < 1 || wish->batch > 1024)
                return sl_error_set(error, EINVAL, "--batch: %u is not from 1 to 1024 samples", wish->batch);
        if (wish->n_flying < 1 || wish->n_flying > 16)
                return sl_error_set(error, EINVAL, "--at-once: %u is not from 1 to 16 batches", wish->n_flying);
        if (!wish->n_pieces || wish->batch % wish->n_pieces)
                return sl_error_set(error, EINVAL, "--pieces: %u requests do not divide --batch %u", wish->n_pieces, wish->batch);
        return 0;
}

/* Return: 0; -EINVAL with the line, or none where getopt has said it. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int c, r = 0;

        while (r == 0 && (c = getopt_long(argc, argv, "O:", options, NULL)) != -1) {
                double number = 0;

                r = c == '?' ? -EINVAL : take_number(c, &number, error);
                if (r == 0 && c == 'O')
                        r = sl_lower_options_parse(&wish->options, optarg, error);
                wish->batch = c == 'b' ? (uint32_t)number : wish->batch;
                wish->n_pieces = c == 'p' ? (uint32_t)number : wish->n_pieces;
                wish->n_flying = c == 'a' ? (uint32_t)number : wish->n_flying;
                wish->percent = c == 'g' ? (uint32_t)number : wish->percent;
                wish->seconds = c == 's' ? number : wish->seconds;
                wish->tune_seconds = c == 'u' ? number : wish->tune_seconds;
                wish->n_tokens = c == 't' ? (uint32_t)number : wish->n_tokens;
                wish->limit = c == 'l' ? number : wish->limit;
                wish->words |= c == 'w';
                wish->read_only |= c == 'r';
                wish->wants_help |= c == 'h';
        }
        r = r < 0 || wish->wants_help ? r : check(wish, error);
        wish->options.batch_max = wish->batch;
        wish->models = argv + optind;
        wish->n_models = argc - optind;
        return r;
}

/* Return: exit status. */
static int help_or_usage(bool wants_help)
{
        if (wants_help)
                print_help();
        else
                fputs("usage: starling-gpu COMMAND [OPTIONS] [MODEL]...; starling-gpu --help lists all\n", stderr);
        return wants_help ? 0 : 2;
}

int main(int argc, char **argv)
{
        static struct ground ground;
        struct wish wish = {.batch = 1, .n_pieces = 1, .n_flying = 1, .seconds = 2, .limit = 1e-4, .n_tokens = 1000};
        struct sl_error error = {""};
        size_t at = 0;
        int r;

        while (at < sizeof(commands) / sizeof(commands[0]) && (argc < 2 || strcmp(argv[1], commands[at].name)))
                at++;
        if (at == sizeof(commands) / sizeof(commands[0]))
                return help_or_usage(argc > 1 && strcmp(argv[1], "--help") == 0);
        sl_lower_options_init(&wish.options);
        r = sl_lower_options_parse(&wish.options, "backend=cuda", &error);
        if (r == 0)
                r = parse(argc - 1, argv + 1, &wish, &error);
        if (r < 0 && error.text[0])
                fprintf(stderr, "starling-gpu: %s\n", error.text);
        if (r < 0)
                return 2;
        if (wish.wants_help)
                return help_or_usage(true);
        ground.n_tokens = wish.n_tokens;
        ground.reads_only = wish.read_only;
        r = ground_open(&ground, &error);
        if (r < 0) {
                fprintf(stderr, "starling-gpu: no GPU: %s\n", error.text);
                return 3;
        }
        if (!sl_lower_options_have_gpu(&wish.options))
                (void)sl_cuda_device_figures(&ground.device, &wish.options.gpu);
        r = sl_lower_open(&wish.options, &error);
        if (r == 0)
                r = commands[at].run(&ground, &wish, &error);
        if (r < 0)
                fprintf(stderr, "starling-gpu %s: %s\n", argv[1], error.text[0] ? error.text : strerror(-r));
        else
                ground_close(&ground);
        return r < 0;
}
