/* SPDX-License-Identifier: Apache-2.0 */
#include "compile_need.h"

#include "base/bytes.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES  4096
#define START_BYTES (24ull << 20) /* of a compiler that has seen no model: its heap, and what kernels that it tries write */

/* The file is mapped, its constants are packed into the plan, and the plan may be a third of what there is. */
#define NEED_PER_BYTE 4

static bool is_model(const char *name)
{
        size_t bytes = strlen(name);

        return bytes > 5 && strcmp(name + bytes - 5, ".onnx") == 0;
}

/* Beside a model that is alone in its folder everything may be its data; beside others what is called as it is. */
struct beside {
        uint64_t alike, all;
        uint32_t n_models;
};

static struct beside look_beside(const char *folder, const char *name)
{
        size_t stem = is_model(name) ? strlen(name) - 5 : strlen(name);
        struct beside beside = {.n_models = 0};
        DIR *dir = opendir(folder);

        for (struct dirent *entry; dir && (entry = readdir(dir));) {
                char path[PATH_BYTES];
                struct stat status;

                if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path) || stat(path, &status) < 0 ||
                        !S_ISREG(status.st_mode))
                        continue;
                beside.n_models += is_model(entry->d_name);
                if (is_model(entry->d_name))
                        continue;
                beside.all += (uint64_t)status.st_size;
                beside.alike += strncmp(entry->d_name, name, stem) ? 0 : (uint64_t)status.st_size;
        }
        if (dir)
                closedir(dir);
        return beside;
}

uint64_t sl_compile_need(const char *model_path, uint64_t *ret_files)
{
        const char *slash = strrchr(model_path, '/');
        char folder[PATH_BYTES];
        struct beside beside;
        struct stat status;
        uint64_t bytes = stat(model_path, &status) == 0 ? (uint64_t)status.st_size : 0, need;

        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - model_path) : 1, slash ? model_path : ".");
        beside = look_beside(folder, slash ? slash + 1 : model_path);
        bytes += beside.n_models > 1 ? beside.alike : beside.all;
        *ret_files = bytes;
        return sl_mul_overflows(bytes, NEED_PER_BYTE, &need) || sl_add_overflows(need, START_BYTES, &need) ? UINT64_MAX : need;
}
