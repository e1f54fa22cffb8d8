/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling COMMAND ...`: finds the command. No state.
 */
#include "command.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct command {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *arguments, *summary;
};

static const struct command commands[] = {
#define X(name, function, arguments, summary) {name, function, arguments, summary},
        COMMANDS(X)
#undef X
};

#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *find(const char *name)
{
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}

int complain(int status, const char *command, const char *format, ...)
{
        char text[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        fprintf(stderr, "starling %s: %s\n", command, text);
        return status;
}

int complain_usage(const char *name)
{
        const struct command *command = find(name);

        fprintf(stderr, "usage: starling %s %s\n", name, command ? command->arguments : "");
        return STATUS_USAGE;
}

static void print_help(FILE *stream)
{
        fprintf(stream, "usage: starling COMMAND [ARGUMENTS]\n\n");
        for (size_t i = 0; i < N_COMMANDS; i++)
                fprintf(stream, "  %-8s  %s\n", commands[i].name, commands[i].summary);
        fprintf(stream, "\nExit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 no such runtime, 4 not allowed.\n");
}

int command_help(int argc, char **argv)
{
        const struct command *command = argc > 1 ? find(argv[1]) : NULL;

        if (argc > 1 && !command)
                return complain(STATUS_USAGE, "help", "no command \"%s\"", argv[1]);
        if (!command) {
                print_help(stdout);
                return STATUS_OK;
        }
        printf("usage: starling %s %s\n\n%s\n", command->name, command->arguments, command->summary);
        if (strcmp(command->name, "serve") == 0)
                printf("\n  --config FILE      YAML; every option has a default\n"
                       "  --name NAME        of the socket and of the stats page [starling]\n"
                       "  --wait KIND        auto, io_uring, epoll\n"
                       "  -O KEY=VALUE       of models without another value of their own\n"
                       "  --log-level LEVEL  error, warning, info, debug\n");
        if (strcmp(command->name, "cache") == 0)
                printf("\n  list               every file: bytes, last use, and for whom it is kept\n"
                       "  clear              removes them; runtimes that serve go on\n"
                       "  --config FILE      whose cache.directory it is [$XDG_CACHE_HOME/starling, ~/.cache/starling]\n"
                       "  --json             one object instead of text\n");
        if (strcmp(command->name, "inspect") == 0)
                printf("\n  --json             one object instead of text\n"
                       "  --backend NAME     short for --option backend=NAME\n"
                       "  --batch-max N      short for --option batch_max=N\n"
                       "  --print            the graph as well, node by node\n");
        if (strcmp(command->name, "compile") == 0)
                printf("\n  -o PLAN            where the plan file goes\n");
        if (strcmp(command->name, "profile") == 0)
                printf("\n  --nodes            every step, the slowest first; without it only sums by operator\n"
                       "  --batch N          [1]\n"
                       "  --seconds S        how long it runs [2]\n"
                       "  --json             one object, always with the steps\n"
                       "  --trace FILE       for chrome://tracing\n");
        if (strcmp(command->name, "quantize") == 0)
                printf("\n  --calibration DATA a file of samples, or a folder with INPUT.npy (or INPUT.f32, bare float32) for each "
                       "input;\n"
                       "                     axis 0 counts the samples\n"
                       "  --samples N        the first ones are calibrated on, accuracy is measured on the others [half]\n"
                       "  --labels FILE      class numbers: .npy, or bare uint8; then top-1 is measured\n"
                       "  --method METHOD    minmax, percentile, mse [mse]\n"
                       "  --percentile P     of all numbers, those that stay inside [99.99]\n"
                       "  --max-loss X       of top-1, without labels of cosine similarity; the worst products stay float32 "
                       "[0.01]\n"
                       "  --precision P      int8, bf16 [int8]\n"
                       "  -o FILE            the variant, as ONNX; its accuracy lies in it, for `starling inspect`\n");
        if (strcmp(command->name, "profile") == 0 || strcmp(command->name, "inspect") == 0 ||
                strcmp(command->name, "quantize") == 0 || strcmp(command->name, "compile") == 0 ||
                strcmp(command->name, "serve") == 0)
                print_lower_options();
        return STATUS_OK;
}

int command_version(int argc, char **argv)
{
        (void)argc, (void)argv;
        printf("starling %s\n", STARLING_TOOL_VERSION);
        return STATUS_OK;
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : "";
        bool asks_help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
        const struct command *command = find(asks_help ? "help" : strcmp(name, "--version") == 0 ? "version" : name);

        if (command)
                return asks_help ? command_help(1, argv) : command->run(argc - 1, argv + 1);
        if (*name)
                complain(STATUS_USAGE, "", "no command \"%s\"", name);
        print_help(stderr);
        return STATUS_USAGE;
}
