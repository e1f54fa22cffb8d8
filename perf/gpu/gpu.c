/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling-gpu: one measurement on a GPU, in flat JSON on stdout. tools/gpu-check.sh runs all of them. Exit status: 0; 1 it failed,
 * stderr has the line; 2 it was asked wrongly; 3 there is no GPU that can be used, stderr has the line.
 */
#include "commands.h"

#include "base/error.h"
#include "lower.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
        const char *name, *arguments;
        int (*run)(struct ground *ground, const struct wish *wish, struct sl_error *error);
} commands[] = {
        {"device", "", command_device},
        {"agree", "[--batch N] [--limit X] [--tokens N] MODEL...", command_agree},
        {"time", "[--batch N] [--pieces N] [--at-once N] [--seconds S] [--percent P] [--words] [--read-only] [--tune S] MODEL",
                command_time},
        {"launch", "", command_launch},
        {"lets", "", command_lets},
        {"memory", "[--batch 32] MODEL", command_memory},
};

static const struct option options[] = {
        {"batch", required_argument, NULL, 'b'},
        {"pieces", required_argument, NULL, 'p'},
        {"at-once", required_argument, NULL, 'a'},
        {"seconds", required_argument, NULL, 's'},
        {"percent", required_argument, NULL, 'g'},
        {"limit", required_argument, NULL, 'l'},
        {"tokens", required_argument, NULL, 't'},
        {"words", no_argument, NULL, 'w'},
        {"read-only", no_argument, NULL, 'r'},
        {"tune", required_argument, NULL, 'u'},
        {0},
};

static int usage(void)
{
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
                fprintf(stderr, "%s starling-gpu %s [-O KEY=VALUE]... %s\n", i ? "      " : "usage:", commands[i].name,
                        commands[i].arguments);
        return 2;
}

static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int c, r = 0;

        while (r == 0 && (c = getopt_long(argc, argv, "O:", options, NULL)) != -1) {
                double number = optarg ? strtod(optarg, NULL) : 0;

                r = c == '?' || (c != 'O' && optarg && !(number > 0)) ? sl_error_set(error, EINVAL, "a number above 0 is wanted")
                                                                      : 0;
                if (c == 'O')
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
        }
        if (r == 0 &&
                (wish->n_flying > 16 || wish->batch > 1024 || !wish->batch || !wish->n_pieces || wish->batch % wish->n_pieces))
                r = sl_error_set(error, EINVAL, "at most 16 at once, batches to 1024, in pieces of one size");
        wish->options.batch_max = wish->batch;
        wish->models = argv + optind;
        wish->n_models = argc - optind;
        return r;
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
                return usage();
        sl_lower_options_init(&wish.options);
        r = sl_lower_options_parse(&wish.options, "backend=cuda", &error);
        if (r == 0)
                r = parse(argc - 1, argv + 1, &wish, &error);
        if (r < 0) {
                fprintf(stderr, "starling-gpu: %s\n", error.text);
                return 2;
        }
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
