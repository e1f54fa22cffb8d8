/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling COMMAND ...`: finds the command, or says what it is. No state.
 */
#include "base/nearest.h"
#include "base/standard_fds.h"
#include "command.h"
#include "describe.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct command {
        const char *name;
        int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
#define X(name, function, arguments, summary) {name, function},
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
        char text[4096];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        fprintf(stderr, "starling%s%s: %s\n", *command ? " " : "", command, text);
        return status;
}

int complain_of(const char *command, const char *path, const char *text)
{
        size_t n = strlen(path);
        bool begins = !strncmp(text, path, n) && (text[n] == ':' || text[n] == '/');

        return begins ? complain(STATUS_FAILED, command, "%s", text) : complain(STATUS_FAILED, command, "%s: %s", path, text);
}

int complain_usage(const char *name)
{
        const struct command_description *command = describe_command_named(name);

        fprintf(stderr, "usage: starling %s %s\n`starling %s --help` says more.\n", name, command ? command->arguments : "", name);
        return STATUS_USAGE;
}

static void print_help(FILE *stream)
{
        const struct command_description *command;

        fprintf(stream, "usage: starling COMMAND [ARGUMENTS]\n\n");
        for (size_t i = 0; (command = describe_command(i)); i++)
                if (!describe_is_internal(command))
                        fprintf(stream, "  %-13s  %s\n", command->name, command->summary);
        fprintf(stream, "\nTo begin: `starling serve NAME.onnx`, or a folder of models, and ask it from C, C++ or Python:\n"
                        "`import starling; starling.Client().infer(\"NAME\", array)`. `starling models` shows what is served.\n"
                        "\n`starling COMMAND --help` says more.\n"
                        "Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 no such runtime, 4 not allowed;\n"
                        "5 and 6 see `starling doctor --help`.\n");
}

/* "" for one that is not for people. */
static const char *command_name_at(size_t i)
{
        const struct command_description *command = describe_command(i);

        return command && describe_is_internal(command) ? "" : command ? command->name : NULL;
}

/* A command, or an option in its place, that there is not. */
static int complain_unknown(const char *command, const char *word)
{
        const char *kind = word[0] == '-' ? "option" : "command", *nearest = sl_nearest(word + strspn(word, "-"), command_name_at);
        const char *dashes = word[0] == '-' ? "--" : "";

        if (!nearest)
                return complain(STATUS_USAGE, command, "no %s \"%s\"; `starling help` lists all commands", kind, word);
        return complain(STATUS_USAGE, command, "no %s \"%s\", did you mean \"%s%s\"? `starling help` lists all commands", kind,
                word, dashes, nearest);
}

/* `starling help bench load` */
static int help_of_benchmark(const char *name)
{
        struct benchmark_description benchmark;

        if (!describe_benchmark_named(name, &benchmark))
                return command_bench(2, (char *[]){"bench", (char *)name, NULL});
        describe_print(&benchmark.command, stdout);
        return STATUS_OK;
}

int command_help(int argc, char **argv)
{
        const struct command_description *command = argc > 1 ? describe_command_named(argv[1]) : NULL;

        if (argc > 2 && strcmp(argv[1], "bench") == 0)
                return help_of_benchmark(argv[2]);
        if (argc > 1 && !command)
                return complain_unknown("help", argv[1]);
        if (!command) {
                print_help(stdout);
                return STATUS_OK;
        }
        describe_print(command, stdout);
        if (strcmp(command->name, "bench") == 0) {
                putchar('\n');
                return command_bench(2, (char *[]){"bench", "help", NULL});
        }
        if (strcmp(command->name, "doctor") == 0)
                print_checks();
        if (describe_takes_lowering(command))
                print_lower_options();
        return STATUS_OK;
}

/* --help or -h among the arguments, wherever it stands before "--". */
static bool asks_help(int argc, char **argv)
{
        for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return true;
        return false;
}

static int run_command(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : "";
        bool wants_help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
        const struct command *command = find(wants_help ? "help" : strcmp(name, "--version") == 0 ? "version" : name);

        if (command && !wants_help && asks_help(argc - 1, argv + 1)) {
                bool of_benchmark = command->run == command_bench && argc > 3 && argv[2][0] != '-';

                return command_help(of_benchmark ? 3 : 2, (char *[]){"help", argv[1], of_benchmark ? argv[2] : NULL, NULL});
        }
        if (command)
                return command->run(wants_help ? 1 : argc - 1, argv + 1);
        if (*name)
                return complain_unknown("", name);
        print_help(stderr);
        return STATUS_USAGE;
}

/* What was printed has to have arrived. A reader that left has read what it wanted. */
static int flush_output(const char *name)
{
        errno = 0;
        if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
                return STATUS_OK;
        return complain(STATUS_FAILED, name, "standard output: %s", strerror(errno ? errno : EIO));
}

int main(int argc, char **argv)
{
        int status, written;

        sl_standard_fds_fill();
        status = run_command(argc, argv);
        if (status != STATUS_OK && status != STATUS_COULD_BE_BETTER && status != STATUS_WRONG)
                return status; /* which is said, whatever was printed before */
        written = flush_output(argv[1]);
        return written == STATUS_OK ? status : written;
}
