/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling(1) and a page for each command, from the tables of tools/starling.
 */
#include "describe.h"
#include "doctor.h"
#include "page.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* @all: with those of `starling doctor`. */
static void print_exit_status(FILE *out, bool all)
{
        static const char *const rows[] = {"Done.", "It failed; a line on standard error says why.",
                "Wrong usage or configuration.", "No runtime of that name is there.", "The runtime refuses that to this user.",
                "Something could be better (doctor).", "Something is wrong (doctor)."};
        const size_t n = sizeof(rows) / sizeof(*rows) - (all ? 0 : 2);

        fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n", out);
        for (size_t i = 0; i < n; i++)
                fprintf(out, ".It %zu\n%s\n", i, rows[i]);
        fputs(".El\n", out);
}

static void print_environment(FILE *out)
{
        fputs(".Sh ENVIRONMENT\n.Bl -tag -width Ds\n", out);
        fputs(".It Ev STARLING_SOCKET_DIR\nThe folder where runtimes listen. Otherwise it is\n.Pa $XDG_RUNTIME_DIR/starling "
              ",\nor\n.Pa "
              "/run/starling .\n",
                out);
        fputs(".It Ev XDG_CACHE_HOME\nCompiled plans are kept in\n.Pa $XDG_CACHE_HOME/starling ,\nor\n.Pa ~/.cache/starling .\n",
                out);
        fputs(".El\n", out);
}

void page_file_name(const struct command_description *command, char *ret_name, size_t bytes)
{
        snprintf(ret_name, bytes, "starling-%s", command->name);
        for (char *c = ret_name; *c; c++)
                *c = *c == ' ' ? '-' : *c;
}

static void page_name(FILE *out, const struct command_description *command)
{
        char name[64];

        page_file_name(command, name, sizeof(name));
        fputs(name, out);
}

int page_of_starling(FILE *out)
{
        const struct command_description *command;

        page_begin(out, "STARLING", 1, "starling", "inference through shared memory: the runtime and its tools");
        fputs(".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar arguments\n.Nm\n.Fl \\-help | Fl \\-version\n.Sh DESCRIPTION\n", out);
        page_paragraphs(out,
                "One program: the runtime, what asks and steers it, and what describes, measures and converts models. "
                "Each command has a page of its own.\n\nApplications use a runtime through libstarling, see starling(7).");
        fputs(".Bl -tag -width import-triton\n", out);
        for (size_t i = 0; (command = describe_command(i)); i++) {
                if (describe_is_internal(command))
                        continue;
                fprintf(out, ".It Xr starling-%s 1\n", command->name);
                page_text(out, command->summary);
        }
        fputs(".El\n", out);
        print_exit_status(out, true);
        print_environment(out);
        fputs(".Sh SEE ALSO\n", out);
        page_reference(out, "starling-config", 5, 1);
        page_reference(out, "starling-stats", 5, 1);
        page_reference(out, "starling-probes", 7, 1);
        page_reference(out, "starling", 7, 0);
        return 0;
}

/* With a capital and a full stop. */
static void print_sentence(FILE *out, const char *text)
{
        char sentence[512];

        snprintf(sentence, sizeof(sentence), "%s.", text);
        sentence[0] = (char)toupper((unsigned char)sentence[0]);
        page_text(out, sentence);
}

static void print_options(FILE *out, const struct command_description *command)
{
        if (!command->options->name)
                return;
        fputs(".Sh OPTIONS\n.Bl -tag -width Ds\n", out);
        for (const struct command_option *option = command->options; option->name; option++) {
                fputs(".It ", out);
                if (option->letter)
                        fprintf(out, "Fl %c , ", option->letter);
                fprintf(out, "Fl \\-%s%s%s\n", option->name, option->argument ? " Ar " : "",
                        option->argument ? option->argument : "");
                print_sentence(out, option->text);
                if (strcmp(option->name, "option") == 0)
                        fputs("Keys are those of a model in\n.Xr starling-config 5 ,\nfrom\n.Cm backend\nto\n.Cm shapes ;\nthe "
                              "option may "
                              "be given again.\n",
                                out);
        }
        fputs(".El\n", out);
}

static void print_benchmarks(FILE *out)
{
        struct benchmark_description benchmark;

        fputs(".Sh BENCHMARKS\n.Bl -tag -width Ds\n", out);
        for (size_t i = 0; describe_benchmark(i, &benchmark); i++) {
                fputs(".It Xr ", out);
                page_name(out, &benchmark.command);
                fputs(" 1\n", out);
                page_text(out, benchmark.command.summary);
        }
        fputs(".El\n", out);
}

static void print_checks(FILE *out)
{
        fputs(".Sh CHECKS\n.Bl -tag -width Ds\n", out);
        for (uint32_t i = 0; i < sl_doctor_checks(); i++) {
                fprintf(out, ".It Cm %s\n", sl_doctor_check(i).name);
                print_sentence(out, sl_doctor_check(i).text);
        }
        fputs(".El\n", out);
}

int page_of_command(FILE *out, const struct command_description *command)
{
        bool is_doctor = strcmp(command->name, "doctor") == 0;
        char name[64], title[64];

        page_file_name(command, name, sizeof(name));
        for (size_t i = 0; i <= strlen(name); i++)
                title[i] = (char)toupper((unsigned char)name[i]);
        page_begin(out, title, 1, name, command->summary);
        fprintf(out, ".Sh SYNOPSIS\n.Nm starling %s\n", command->name);
        if (*command->arguments)
                page_text(out, command->arguments);
        fputs(".Sh DESCRIPTION\n", out);
        page_paragraphs(out, command->text);
        if (strcmp(command->name, "bench") == 0)
                print_benchmarks(out);
        if (is_doctor)
                print_checks(out);
        print_options(out, command);
        if (strcmp(command->name, "exporter") == 0)
                page_metrics(out);
        print_exit_status(out, is_doctor);
        fputs(".Sh SEE ALSO\n", out);
        page_reference(out, "starling", 1, 1);
        if (strcmp(command->name, "exporter") == 0)
                page_reference(out, "starling-stats", 5, 1);
        page_reference(out, "starling-config", 5, 0);
        return 0;
}
