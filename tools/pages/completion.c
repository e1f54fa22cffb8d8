/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completions of bash and zsh. What follows an option, or a command, is known by the word that stands for it in the tables.
 */
#include "describe.h"
#include "doctor.h"
#include "lower_options.h"
#include "page.h"

#include <string.h>

static void print_commands(FILE *out)
{
        const struct command_description *command;

        for (size_t i = 0; (command = describe_command(i)); i++)
                if (!describe_is_internal(command))
                        fprintf(out, "%s%s", i ? " " : "", command->name);
}

static void print_options(FILE *out, const struct command_description *command)
{
        fputs("--help", out);
        for (const struct command_option *option = command->options; option->name; option++)
                fprintf(out, " --%s", option->name);
}

static void print_choices(FILE *out, const char *choices)
{
        for (; *choices; choices++)
                fputc(*choices == '|' ? ' ' : *choices, out);
}

static void print_keys(FILE *out)
{
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++)
                fprintf(out, "%s%s=", i ? " " : "", sl_lower_option_name((enum sl_lower_option)i));
}

/* "kernel io-uring ..." */
static void print_checks(FILE *out)
{
        for (uint32_t i = 0; i < sl_doctor_checks(); i++)
                fprintf(out, "%s%s", i ? " " : "", sl_doctor_check(i).name);
}

static int is_check(const char *argument)
{
        return strcmp(argument, "CHECK,...") == 0;
}

/* " floor rings ...", without the "bench " that their names begin with. */
static void print_benchmarks(FILE *out)
{
        struct benchmark_description benchmark;

        for (size_t i = 0; describe_benchmark(i, &benchmark); i++)
                fprintf(out, " %s", strchr(benchmark.name, ' ') + 1);
}

static int is_file(const char *argument)
{
        static const char *const files[] = {"FILE", "PLAN", "DATA", "REPOSITORY", "DIR"};

        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
                if (strcmp(argument, files[i]) == 0)
                        return 1;
        return 0;
}

/* What follows an option. */
static void bash_value(FILE *out, const struct command_description *command, const struct command_option *option)
{
        if (!option->argument)
                return;
        fprintf(out, "        \"%s:--%s\"", command->name, option->name);
        if (option->letter)
                fprintf(out, " | \"%s:-%c\"", command->name, option->letter);
        fputs(")", out);
        if (strchr(option->argument, '|')) {
                fputs(" words='", out);
                print_choices(out, option->argument);
                fputs("'", out);
        } else if (is_file(option->argument)) {
                fputs(" files=yes", out);
        } else if (strcmp(option->argument, "KEY=VALUE") == 0) {
                fputs(" words=$keys", out);
        } else if (is_check(option->argument)) {
                fputs(" words='", out);
                print_checks(out);
                fputs("'", out);
        }
        fputs(" ;;\n", out);
}

static void bash_values(FILE *out, const struct command_description *command)
{
        for (const struct command_option *option = command->options; option->name; option++)
                bash_value(out, command, option);
}

static void bash_words(FILE *out, const struct command_description *command)
{
        fprintf(out, "        \"%s\") words='", command->name);
        print_options(out, command);
        if (strcmp(command->name, "cache") == 0)
                fputs(" list clear", out);
        if (strcmp(command->name, "offline") == 0)
                fputs(" submit list pause resume cancel", out);
        if (strcmp(command->name, "bench") == 0)
                print_benchmarks(out);
        if (strcmp(command->name, "help") == 0)
                fputs(" '$commands'", out);
        fputs("'", out);
        if (strstr(command->arguments, ".onnx") || strstr(command->arguments, ".json") ||
                strstr(command->arguments, "REPOSITORY") || strstr(command->arguments, "DIR"))
                fputs(" files=yes", out);
        fputs(" ;;\n", out);
}

void completion_for_bash(FILE *out)
{
        const struct command_description *command;
        struct benchmark_description benchmark;

        fputs("# SPDX-License-Identifier: Apache-2.0\n# bash completion for starling\n_starling()\n{\n"
              "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words= "
              "files=\n"
              "    local commands='",
                out);
        print_commands(out);
        fputs("'\n    local keys='", out);
        print_keys(out);
        fputs("'\n    COMPREPLY=()\n"
              "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
              "        mapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" -- \"$current\")\n        return\n    "
              "fi\n"
              "    if [ \"$command\" = bench ] && [ \"$COMP_CWORD\" -gt 2 ]; then command=\"bench ${COMP_WORDS[2]}\"; fi\n"
              "    case $command:$previous in\n",
                out);
        for (size_t i = 0; (command = describe_command(i)); i++)
                bash_values(out, command);
        for (size_t i = 0; describe_benchmark(i, &benchmark); i++)
                bash_values(out, &benchmark.command);
        fputs("        *)\n        case $command in\n", out);
        for (size_t i = 0; (command = describe_command(i)); i++)
                if (!describe_is_internal(command))
                        bash_words(out, command);
        for (size_t i = 0; describe_benchmark(i, &benchmark); i++)
                bash_words(out, &benchmark.command);
        fputs("        esac\n        ;;\n    esac\n"
              "    [ -z \"$files\" ] || { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); "
              "}\n"
              "    case $words in *=*) compopt -o nospace 2>/dev/null ;; esac\n"
              "    [ -z \"$words\" ] || mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
              "}\ncomplete -F _starling starling\n",
                out);
}

/* In single quotes, where zsh's _arguments takes brackets and colons for its own. */
static void zsh_text(FILE *out, const char *text)
{
        for (; *text; text++) {
                if (*text == '\'')
                        fputs("'\\''", out);
                else if (strchr("[]:\\", *text))
                        fprintf(out, "\\%c", *text);
                else
                        fputc(*text, out);
        }
}

static void zsh_value(FILE *out, const struct command_option *option)
{
        if (!option->argument)
                return;
        fputs(":", out);
        zsh_text(out, strchr(option->argument, '|') ? option->name : option->argument);
        if (strchr(option->argument, '|')) {
                fputs(":(", out);
                print_choices(out, option->argument);
                fputs(")", out);
        } else if (is_file(option->argument)) {
                fputs(":_files", out);
        } else if (strcmp(option->argument, "KEY=VALUE") == 0) {
                fputs(":(", out);
                print_keys(out);
                fputs(")", out);
        } else if (is_check(option->argument)) {
                fputs(":(", out);
                print_checks(out);
                fputs(")", out);
        } else {
                fputs(": ", out);
        }
}

static void zsh_option(FILE *out, const struct command_option *option)
{
        fprintf(out, "            '--%s[", option->name);
        zsh_text(out, option->text);
        fputs("]", out);
        zsh_value(out, option);
        fputs("' \\\n", out);
        if (!option->letter)
                return;
        fprintf(out, "            '*-%c[", option->letter);
        zsh_text(out, option->text);
        fputs("]", out);
        zsh_value(out, option);
        fputs("' \\\n", out);
}

static void zsh_arguments(FILE *out, const struct command_description *command)
{
        fprintf(out, "        \"%s\")\n        _arguments \\\n", command->name);
        for (const struct command_option *option = command->options; option->name; option++)
                zsh_option(out, option);
        fputs("            '--help[describe the command]'", out);
        if (strcmp(command->name, "cache") == 0)
                fputs(" ':action:(list clear)'", out);
        else if (strcmp(command->name, "offline") == 0)
                fputs(" ':action:(submit list pause resume cancel)' '*:file:_files'", out);
        else if (strcmp(command->name, "help") == 0)
                fputs(" ':command:($commands)'", out);
        else if (strcmp(command->name, "bench") == 0) {
                fputs(" ':benchmark:(", out);
                print_benchmarks(out);
                fputs(")'", out);
        } else if (strstr(command->arguments, ".json")) {
                fputs(" '*:result:_files -g \"*.json\"'", out);
        } else if (strstr(command->arguments, ".onnx")) {
                fputs(" ':model:_files -g \"*.onnx\"'", out);
        } else if (strstr(command->arguments, "REPOSITORY") || strstr(command->arguments, "DIR")) {
                fputs(" '*:folder:_files -/'", out);
        } else if (strstr(command->arguments, "MODEL")) {
                fputs(" ':model: '", out);
        }
        fputs("\n        ;;\n", out);
}

void completion_for_zsh(FILE *out)
{
        const struct command_description *command;
        struct benchmark_description benchmark;

        fputs("#compdef starling\n# SPDX-License-Identifier: Apache-2.0\n_starling() {\n    local -a commands=(", out);
        print_commands(out);
        fputs(")\n    if (( CURRENT == 2 )); then\n        local -a described=(\n", out);
        for (size_t i = 0; (command = describe_command(i)); i++) {
                if (describe_is_internal(command))
                        continue;
                fprintf(out, "            '%s:", command->name);
                zsh_text(out, command->summary);
                fputs("'\n", out);
        }
        fputs("        )\n        _describe command described\n        return\n    fi\n"
              "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
              "    if [[ $command == bench ]] && (( CURRENT > 2 )); then\n"
              "        command=\"bench $words[2]\"\n        shift words\n        (( CURRENT-- ))\n    fi\n"
              "    case $command in\n",
                out);
        for (size_t i = 0; (command = describe_command(i)); i++)
                if (!describe_is_internal(command))
                        zsh_arguments(out, command);
        for (size_t i = 0; describe_benchmark(i, &benchmark); i++)
                zsh_arguments(out, &benchmark.command);
        fputs("    esac\n}\n_starling \"$@\"\n", out);
}
