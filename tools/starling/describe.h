/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands are and take, in words: the tables of command.h and command_options.h with a text for each command. Constants;
 * linked into the command and into what makes its man pages and completions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct command_option {
        const char *name; /* NULL after the last */
        char letter;      /* 0: none */
        const char *argument, *text;
};

struct command_description {
        const char *name, *arguments, *summary;
        const char *text; /* whole sentences; an empty line parts paragraphs, a line that begins with a blank stands as it is */
        const struct command_option *options;
};

/* In the order of the help; NULL after the last. */
const struct command_description *describe_command(size_t i);
const struct command_description *describe_command_named(const char *name);

/* A benchmark, described as a command is: its name is "bench load". */
#define BENCHMARK_OPTIONS_MAX 48

struct benchmark_description {
        struct command_description command;
        char name[32];
        struct command_option options[BENCHMARK_OPTIONS_MAX];
};

/* Benchmark @i in the order of the help, into memory of the caller, which is not moved afterwards. Return: false after the last. */
bool describe_benchmark(size_t i, struct benchmark_description *ret_benchmark);
bool describe_benchmark_named(const char *name, struct benchmark_description *ret_benchmark);

/* True for what the runtime starts, not people. */
bool describe_is_internal(const struct command_description *command);

/* True when the command has the option --option. */
bool describe_takes_lowering(const struct command_description *command);

/* "  -o, --output FILE" into @ret_text. */
void describe_option(const struct command_option *option, char *ret_text, size_t bytes);

/* Words of @text from column @at on, later lines indented by @indent; then a line end. */
void describe_words(const char *text, size_t at, size_t indent, FILE *stream);

/* Usage, text and options. */
void describe_print(const struct command_description *command, FILE *stream);
