/* SPDX-License-Identifier: Apache-2.0 */
#include "model_stamp.h"
#include "folder_names.h"
#include "onnx_files.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define START      0xcbf29ce484222325u
#define PATH_BYTES 4096
#define FILES_MAX  4096
#define DEPTH_MAX  4

/* FNV-1a. */
static uint64_t mix(uint64_t stamp, const void *data, size_t bytes)
{
        const unsigned char *byte = data;

        for (size_t i = 0; i < bytes; i++)
                stamp = (stamp ^ byte[i]) * 0x100000001b3u;
        return stamp;
}

static uint64_t mix_options(uint64_t stamp, const struct sl_lower_options *options)
{
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                char text[SL_LOWER_OPTION_TEXT_BYTES];

                sl_lower_options_text(options, (enum sl_lower_option)i, text);
                stamp = mix(stamp, text, strlen(text) + 1);
        }
        return stamp;
}

/* Which these are is found out at a load. */
static bool has_each_gpu(const struct sl_model_config *config)
{
        return config->on_gpu && config->gpus[0].gpu == SL_GPU_EACH;
}

/* Which GPUs workers are on is as their number: it does not count. */
static uint64_t mix_config(uint64_t stamp, const struct sl_model_config *config)
{
        uint32_t numbers[] = {config->segment_samples, config->slice_ms, config->samples_max, config->queue_requests,
                config->shapes_max, config->fuse, config->rule, config->n_members, has_each_gpu(config) ? 2 : config->on_gpu};
        uint64_t bytes_max = config->batch_given ? 0 : config->batch_bytes_max;

        stamp = mix_options(mix(stamp, numbers, sizeof(numbers)), &config->lowering);
        stamp = mix(stamp, &config->worker, sizeof(config->worker));
        stamp = mix(stamp, &bytes_max, sizeof(bytes_max));
        stamp = mix(stamp, &config->batching, sizeof(config->batching));
        for (uint32_t i = 0; i < config->n_members; i++)
                stamp = mix(stamp, &config->weights[i], sizeof(config->weights[i]));
        for (uint32_t i = 0; config->members && i < config->members->n; i++)
                stamp = mix(stamp, config->members->names[i], strlen(config->members->names[i]) + 1);
        if (config->combining) {
                size_t bytes;
                const void *said = sl_combining_bytes(config->combining, &bytes);

                stamp = mix(stamp, said, bytes);
        }
        for (uint32_t i = 0; config->fuse_names && i < config->fuse_names->n; i++)
                stamp = mix(stamp, config->fuse_names->names[i], strlen(config->fuse_names->names[i]) + 1);
        return mix(stamp, config->prepared, config->n_prepared * sizeof(config->prepared[0]));
}

static uint64_t stamp_of_file(const char *path, const struct stat *file)
{
        uint64_t stamp = mix(START, path, strlen(path) + 1);

        stamp = mix(stamp, &file->st_ino, sizeof(file->st_ino));
        stamp = mix(stamp, &file->st_size, sizeof(file->st_size));
        return mix(stamp, &file->st_mtim, sizeof(file->st_mtim));
}

/* Beside a model's file @own, but for files of other models. */
static bool is_own(const char *own, const char *name, uint32_t depth)
{
        size_t stem;

        return depth > 1 || strcmp(name, own) == 0 || !sl_onnx_file_is(name, &stem);
}

/* 0: there is no such file. */
static uint64_t stamp_of_name(const char *folder, const char *name)
{
        char path[PATH_BYTES];
        struct stat file;

        if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) || stat(path, &file) < 0 ||
                !S_ISREG(file.st_mode))
                return 0;
        return stamp_of_file(path, &file);
}

/* Those of a folder of many models whose names begin as that of this one does. */
static uint64_t stamp_of_beside(const char *folder, const char *own, const struct sl_folder_names *beside)
{
        size_t stem = strlen(own);
        uint32_t files = 0;
        uint64_t sum = 0;

        (void)sl_onnx_file_is(own, &stem);
        for (uint32_t i = sl_folder_names_first(beside, own, stem); i < beside->n && files < FILES_MAX; i++, files++) {
                if (strncmp(beside->names[i], own, stem) != 0)
                        break;
                if (is_own(own, beside->names[i], 1))
                        sum += stamp_of_name(folder, beside->names[i]);
        }
        return sum;
}

/* The sum of its files' stamps, which does not depend on the order in which the file system lists them. */
static uint64_t stamp_of_folder(const char *folder, const char *own, uint32_t depth, uint32_t *files)
{
        DIR *dir = opendir(folder);
        uint64_t sum = 0;

        for (struct dirent *entry; dir && *files < FILES_MAX && (entry = readdir(dir));) {
                char path[PATH_BYTES];
                struct stat file;

                if (entry->d_name[0] == '.' || !is_own(own, entry->d_name, depth) ||
                        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path) || stat(path, &file) < 0)
                        continue;
                ++*files;
                if (S_ISREG(file.st_mode))
                        sum += stamp_of_file(path, &file);
                else if (S_ISDIR(file.st_mode) && depth < DEPTH_MAX)
                        sum += stamp_of_folder(path, own, depth + 1, files);
        }
        if (dir)
                closedir(dir);
        return sum;
}

uint64_t sl_model_stamp(const struct sl_model_config *config, const char *path, const struct sl_folder_names *beside)
{
        uint64_t stamp = mix_config(START, config), files_stamp;
        char folder[PATH_BYTES], real[PATH_MAX];
        uint32_t files = 0;

        if (!path || snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder) || !strrchr(folder, '/'))
                return stamp;
        const char *file = strrchr(path, '/');
        *strrchr(folder, '/') = 0;
        if (!realpath(folder, real))
                return mix(stamp, path, strlen(path));
        files_stamp = beside ? stamp_of_beside(real, file + 1, beside) : stamp_of_folder(real, file + 1, 1, &files);
        return mix(mix(mix(stamp, real, strlen(real)), file, strlen(file)), &files_stamp, sizeof(files_stamp));
}
