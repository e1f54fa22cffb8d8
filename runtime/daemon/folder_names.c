/* SPDX-License-Identifier: Apache-2.0 */
#include "folder_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct sl_folder_names *names, const char *name, uint32_t *n_max)
{
        if (names->n == *n_max) {
                char **grown = reallocarray(names->names, 2ul * *n_max + 64, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                names->names = grown;
                *n_max = 2 * *n_max + 64;
        }
        names->names[names->n] = strdup(name);
        return names->names[names->n] ? (names->n++, 0) : -ENOMEM;
}

int sl_folder_names_read(const char *folder, struct sl_folder_names *ret_names)
{
        struct sl_folder_names names = {.n = 0};
        DIR *dir = opendir(folder);
        uint32_t n_max = 0;
        int r = dir ? 0 : -errno;

        for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
                if (entry->d_name[0] != '.')
                        r = add_name(&names, entry->d_name, &n_max);
        if (dir)
                closedir(dir);
        if (r < 0) {
                sl_folder_names_free(&names);
                return r;
        }
        if (names.n)
                qsort(names.names, names.n, sizeof(*names.names), compare_names);
        *ret_names = names;
        return 0;
}

void sl_folder_names_free(struct sl_folder_names *names)
{
        for (uint32_t i = 0; i < names->n; i++)
                free(names->names[i]);
        free(names->names);
        *names = (struct sl_folder_names){.n = 0};
}

uint32_t sl_folder_names_first(const struct sl_folder_names *names, const char *prefix, size_t bytes)
{
        uint32_t low = 0, high = names->n;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (strncmp(names->names[middle], prefix, bytes) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < names->n && strncmp(names->names[low], prefix, bytes) == 0 ? low : names->n;
}
