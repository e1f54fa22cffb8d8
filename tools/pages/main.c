/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling-pages FOLDER: writes every man page and completion below FOLDER, as they are installed below a prefix's share/. Part of
 * the build; not installed.
 */
#include "base/error.h"
#include "describe.h"
#include "page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static FILE *create(const char *folder, const char *name, struct sl_error *error)
{
        char path[4096];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        /* Folders above it, from the top. */
        for (char *slash = path + strlen(folder); (slash = strchr(slash + 1, '/'));) {
                *slash = 0;
                if (mkdir(path, 0755) < 0 && errno != EEXIST)
                        sl_error_set(error, errno, "%s: %s", path, strerror(errno));
                *slash = '/';
        }
        file = fopen(path, "we");
        if (!file)
                sl_error_set(error, errno, "%s: %s", path, strerror(errno));
        return file;
}

/* Closes what a writer has written; @r is what it returned. */
static int finish(FILE *file, int r, const char *name, struct sl_error *error)
{
        if (fclose(file) != 0 && r == 0)
                r = sl_error_set(error, EIO, "%s: cannot be written", name);
        return r;
}

static int write_command(const char *folder, const struct command_description *command, struct sl_error *error)
{
        char page[64], name[128];

        page_file_name(command, page, sizeof(page));
        snprintf(name, sizeof(name), "man/man1/%s.1", page);
        FILE *file = create(folder, name, error);

        return file ? finish(file, page_of_command(file, command), name, error) : -EIO;
}

static int write_commands(const char *folder, struct sl_error *error)
{
        const struct command_description *command;
        struct benchmark_description benchmark;
        int r = 0;

        for (size_t i = 0; r == 0 && (command = describe_command(i)); i++)
                r = describe_is_internal(command) ? 0 : write_command(folder, command, error);
        for (size_t i = 0; r == 0 && describe_benchmark(i, &benchmark); i++)
                r = write_command(folder, &benchmark.command, error);
        return r;
}

static int write_config(FILE *file, struct sl_error *error)
{
        return page_of_config(file, error);
}

static int write_stats(FILE *file, struct sl_error *error)
{
        (void)error;
        return page_of_stats(file);
}

static int write_probes(FILE *file, struct sl_error *error)
{
        (void)error;
        return page_of_probes(file);
}

static int write_starling(FILE *file, struct sl_error *error)
{
        (void)error;
        return page_of_starling(file);
}

static int write_bash(FILE *file, struct sl_error *error)
{
        (void)error;
        completion_for_bash(file);
        return 0;
}

static int write_zsh(FILE *file, struct sl_error *error)
{
        (void)error;
        completion_for_zsh(file);
        return 0;
}

static const struct {
        const char *name;
        int (*write)(FILE *file, struct sl_error *error);
} files[] = {
        {"man/man1/starling.1", write_starling},
        {"man/man5/starling-config.5", write_config},
        {"man/man5/starling-stats.5", write_stats},
        {"man/man7/starling-probes.7", write_probes},
        {"bash-completion/completions/starling", write_bash},
        {"zsh/vendor-completions/_starling", write_zsh},
};

int main(int argc, char **argv)
{
        struct sl_error error = {""};
        int r = argc == 2 ? write_commands(argv[1], &error) : sl_error_set(&error, EINVAL, "usage: starling-pages FOLDER");

        for (size_t i = 0; r == 0 && i < sizeof(files) / sizeof(*files); i++) {
                FILE *file = create(argv[1], files[i].name, &error);

                r = file ? finish(file, files[i].write(file, &error), files[i].name, &error) : -EIO;
        }
        if (r < 0)
                fprintf(stderr, "starling-pages: %s\n", error.text);
        return r < 0;
}
