/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx_files.h"

#include "base/utf8.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX      ".onnx"
#define MODEL       "model" SUFFIX
#define PATH_BYTES  4096
#define DEPTH_MAX   3
#define FOLDERS_MAX 256 /* that are looked at for a hint */
#define NAMES_SHOWN 4

bool sl_onnx_file_is(const char *name, size_t *ret_stem)
{
        size_t bytes = strlen(name), suffix = strlen(SUFFIX);

        if (bytes <= suffix || strcmp(name + bytes - suffix, SUFFIX) != 0)
                return false;
        *ret_stem = bytes - suffix;
        return true;
}

static bool has_kind(const char *folder, const char *name, mode_t kind)
{
        char path[PATH_BYTES];
        struct stat status;

        return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) && stat(path, &status) == 0 &&
               (status.st_mode & S_IFMT) == kind;
}

static void add(struct sl_onnx_files *files, const char *name)
{
        char *place = files->second;

        files->n++;
        files->has_model |= strcmp(name, MODEL) == 0;
        if (!files->first[0] || strcmp(name, files->first) < 0) {
                memcpy(files->second, files->first, sizeof(files->second));
                place = files->first;
        } else if (files->second[0] && strcmp(name, files->second) > 0) {
                return;
        }
        snprintf(place, SL_ONNX_FILE_BYTES, "%s", name);
}

struct sl_onnx_files sl_onnx_files_in(const char *folder)
{
        struct sl_onnx_files files = {.n = 0};
        DIR *dir = opendir(folder);
        size_t stem;

        for (struct dirent *entry; dir && (entry = readdir(dir));)
                if (entry->d_name[0] != '.' && sl_onnx_file_is(entry->d_name, &stem) && has_kind(folder, entry->d_name, S_IFREG))
                        add(&files, entry->d_name);
        if (dir)
                closedir(dir);
        return files;
}

const char *sl_onnx_files_choose(const struct sl_onnx_files *files)
{
        if (files->has_model)
                return MODEL;
        return files->n == 1 ? files->first : NULL;
}

void sl_onnx_files_print(const struct sl_onnx_files *files, char *ret_text, size_t bytes)
{
        if (files->n == 2)
                snprintf(ret_text, bytes, "two .onnx files, \"%s\" and \"%s\"", files->first, files->second);
        else
                snprintf(ret_text, bytes, "%u .onnx files, \"%s\", \"%s\" and others", files->n, files->first, files->second);
}

/* The first in the alphabet's order, at each level files before folders, as long as @left is not used up. */
static bool find_deeper(const char *folder, uint32_t depth, uint32_t *left, char *ret_path, size_t bytes)
{
        struct sl_onnx_files files = depth ? sl_onnx_files_in(folder) : (struct sl_onnx_files){.n = 0};
        struct dirent **entries = NULL;
        bool found = files.n > 0;
        int n = 0;

        --*left;
        if (found)
                snprintf(ret_path, bytes, "%s", files.has_model ? MODEL : files.first);
        else if (depth < DEPTH_MAX)
                n = scandir(folder, &entries, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                char path[PATH_BYTES], rest[PATH_BYTES];

                if (!found && *left && entries[i]->d_name[0] != '.' && has_kind(folder, entries[i]->d_name, S_IFDIR) &&
                        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name) < (int)sizeof(path))
                        found = find_deeper(path, depth + 1, left, rest, sizeof(rest)) &&
                                snprintf(ret_path, bytes, "%s/%s", entries[i]->d_name, rest) < (int)bytes;
                free(entries[i]);
        }
        free(entries);
        return found;
}

static int is_visible(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

static void list(const char *folder, char *ret_text, size_t bytes)
{
        struct dirent **entries = NULL;
        int n = scandir(folder, &entries, is_visible, alphasort);
        char name[81];
        size_t used = (size_t)snprintf(ret_text, bytes, n > 0 ? "it holds" : n ? "it cannot be read" : "it is empty");

        for (int i = 0; i < n; i++) {
                if (i < NAMES_SHOWN && used < bytes)
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%s %s", i ? "," : "",
                                sl_utf8_fit(entries[i]->d_name, name, sizeof(name)));
                free(entries[i]);
        }
        if (n > NAMES_SHOWN && used < bytes)
                snprintf(ret_text + used, bytes - used, " and %d more", n - NAMES_SHOWN);
        free(entries);
}

void sl_onnx_files_hint(const char *folder, const char *place, char *ret_text, size_t bytes)
{
        char deeper[PATH_BYTES];
        uint32_t left = FOLDERS_MAX;

        if (find_deeper(folder, 0, &left, deeper, sizeof(deeper)))
                snprintf(ret_text, bytes, "there is %s: move it to %s", deeper, place);
        else
                list(folder, ret_text, bytes);
}
