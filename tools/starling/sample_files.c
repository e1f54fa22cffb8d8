/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_files.h"

#include "landlock.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes over @name; NULL: there was no memory for it. */
static int add(struct sample_files *files, char *name)
{
        struct sl_landlock_path *grown = name ? reallocarray(files->paths, files->n + 1, sizeof(*grown)) : NULL;

        if (!grown) {
                free(name);
                return -ENOMEM;
        }
        files->paths = grown;
        files->paths[files->n++] = (struct sl_landlock_path){.name = name};
        return 0;
}

static bool may_be_samples(const char *name)
{
        size_t n = strlen(name);

        return n > 4 && (strcmp(name + n - 4, ".npy") == 0 || strcmp(name + n - 4, ".f32") == 0);
}

/* Where the file system does not say what it is, it may be a link. */
static int add_links(struct sample_files *files, const char *path, DIR *folder)
{
        int r = 0;

        for (struct dirent *entry; r == 0 && (entry = readdir(folder));) {
                char *name = NULL;

                if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) || !may_be_samples(entry->d_name))
                        continue;
                r = add(files, asprintf(&name, "%s/%s", path, entry->d_name) < 0 ? NULL : name);
        }
        return r;
}

int sample_files_add(struct sample_files *files, const char *path)
{
        DIR *folder = opendir(path);
        int r = add(files, strdup(path));

        if (folder && r == 0)
                r = add_links(files, path, folder);
        if (folder)
                closedir(folder);
        return r;
}

void sample_files_deinit(struct sample_files *files)
{
        for (size_t i = 0; i < files->n; i++)
                free((char *)files->paths[i].name);
        free(files->paths);
        *files = (struct sample_files){.n = 0};
}
