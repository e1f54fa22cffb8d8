/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void folder_make(struct folder *folder)
{
        strcpy(folder->path, "/tmp/sl-daemon-XXXXXX");
        cr_assert(mkdtemp(folder->path));
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
        (void)stat, (void)type, (void)walk;
        return remove(path);
}

void folder_remove(struct folder *folder)
{
        nftw(folder->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *folder_write(const struct folder *folder, const char *path, const char *text)
{
        static char whole[512];

        snprintf(whole, sizeof(whole), "%s/%s", folder->path, path);
        for (char *slash = whole + strlen(folder->path) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = 0;
                mkdir(whole, 0755);
                *slash = '/';
        }
        FILE *file = fopen(whole, "w");
        cr_assert(file, "%s", whole);
        fputs(text, file);
        fclose(file);
        return whole;
}
