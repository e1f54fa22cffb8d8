/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling import-triton`: config.yaml of a model, or of every model of a repository, from Triton's config.pbtxt. Prints it, or
 * writes it beside what it was made of; a config.yaml that is there is left alone.
 */
#include "base/error.h"
#include "command.h"
#include "command_options.h"
#include "triton_model.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS = OPTIONS_BEGIN, IMPORT_TRITON_OPTIONS(OPTION_ID) };

static const struct option options[] = {IMPORT_TRITON_OPTIONS(OPTION_GETOPT){0}};

#define PATH_BYTES 4096

static bool path_join(char *path, const char *folder, const char *name)
{
        return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

static bool has_config(const char *folder)
{
        char path[PATH_BYTES];

        return path_join(path, folder, "config.pbtxt") && access(path, F_OK) == 0;
}

static void print_notes(FILE *stream, const char *prefix, const char *notes)
{
        for (size_t n; *notes; notes += n + (notes[n] == '\n')) {
                n = strcspn(notes, "\n");
                fprintf(stream, "%s:%.*s\n", prefix, (int)n, notes);
        }
}

static void print_model(FILE *stream, const struct triton_model *model, const char *notes_prefix)
{
        fputs(model->yaml, stream);
        print_notes(stream, notes_prefix, model->notes);
}

/* Never over what is there. */
static int write_model(const char *path, const struct triton_model *model)
{
        FILE *file = fopen(path, "wxe");

        if (!file)
                return complain(STATUS_FAILED, "import-triton", "%s: %s", path, strerrordesc_np(errno));
        print_model(file, model, "# config.pbtxt");
        if (fclose(file) != 0)
                return complain(STATUS_FAILED, "import-triton", "%s: %s", path, strerrordesc_np(errno));
        printf("%s\n", path);
        return STATUS_OK;
}

static int import_model(const char *folder, const char *name, bool writes)
{
        char from[PATH_BYTES], to[PATH_BYTES];
        struct sl_error error = {""};
        struct triton_model model;
        int status = STATUS_OK;

        if (!path_join(from, folder, "config.pbtxt") || !path_join(to, folder, "config.yaml"))
                return complain(STATUS_FAILED, "import-triton", "%s: the path is too long", folder);
        if (triton_model_translate(from, name, &model, &error) < 0)
                return complain(STATUS_FAILED, "import-triton", "%s", error.text);
        if (writes) {
                status = write_model(to, &model);
                if (status == STATUS_OK)
                        print_notes(stderr, from, model.notes);
        } else {
                printf("# %s\n", to);
                print_model(stdout, &model, "# config.pbtxt");
        }
        triton_model_deinit(&model);
        return status;
}

static int is_model(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

/* In the order of the names. What cannot be imported does not keep the others from it. */
static int import_repository(const char *repository, bool writes)
{
        struct dirent **entries;
        int n = scandir(repository, &entries, is_model, alphasort), status = STATUS_OK, found = 0;

        if (n < 0)
                return complain(STATUS_FAILED, "import-triton", "%s: %s", repository, strerrordesc_np(errno));
        for (int i = 0; i < n; i++) {
                char folder[PATH_BYTES];

                if (path_join(folder, repository, entries[i]->d_name) && has_config(folder)) {
                        int result = import_model(folder, entries[i]->d_name, writes);

                        status = result == STATUS_OK ? status : result;
                        found++;
                }
                free(entries[i]);
        }
        free(entries);
        return found ? status : complain(STATUS_FAILED, "import-triton", "%s: no config.pbtxt, nor in a folder of it", repository);
}

int command_import_triton(int argc, char **argv)
{
        bool writes = false;
        char *name;

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option != OPTION_WRITE)
                        return complain_usage(argv[0]);
                writes = true;
        }
        if (argc - optind != 1)
                return complain_usage(argv[0]);
        if (!has_config(argv[optind]))
                return import_repository(argv[optind], writes);
        char *folder = realpath(argv[optind], NULL);
        if (!folder)
                return complain(STATUS_FAILED, argv[0], "%s: %s", argv[optind], strerrordesc_np(errno));
        name = strrchr(folder, '/');
        int status = import_model(argv[optind], name ? name + 1 : folder, writes);
        free(folder);
        return status;
}
