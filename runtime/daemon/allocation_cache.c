/* SPDX-License-Identifier: Apache-2.0 */
#include "allocation_cache.h"

#include "allocation_file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/processor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a from two starts: 32 digits. */
#define STARTS 2

static void mix(uint64_t digest[STARTS], const void *data, size_t bytes)
{
        const unsigned char *byte = data;

        for (uint32_t k = 0; k < STARTS; k++)
                for (size_t i = 0; i < bytes; i++)
                        digest[k] = (digest[k] ^ byte[i]) * 0x100000001b3u;
}

static void mix_spec(uint64_t digest[STARTS], const struct sl_model_spec *spec)
{
        mix(digest, spec->name, strlen(spec->name) + 1);
        mix(digest, &spec->stamp, sizeof(spec->stamp));
}

void sl_allocation_cache_name(const char *processor, const struct sl_model_spec *specs, uint32_t n,
        const struct sl_model_spec *spec, char ret_name[SL_CACHE_NAME_BYTES])
{
        uint64_t digest[STARTS] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};

        mix(digest, processor, strlen(processor) + 1);
        mix_spec(digest, spec);
        for (uint32_t m = 0; m < spec->n_members; m++)
                for (uint32_t i = 0; i < n; i++)
                        if (strcmp(specs[i].name, spec->members[m]) == 0)
                                mix_spec(digest, &specs[i]);
        snprintf(ret_name, SL_CACHE_NAME_BYTES, "%016llx%016llx.allocation", (unsigned long long)digest[0],
                (unsigned long long)digest[1]);
}

static int find_folder(const char *directory, char ret_path[PATH_MAX], struct sl_error *error)
{
        if (!directory)
                return sl_cache_folder_default(ret_path, error);
        return snprintf(ret_path, PATH_MAX, "%s", directory) < PATH_MAX
                       ? 0
                       : sl_error_set(error, ENAMETOOLONG, "\"%s\": a path of more than %d bytes", directory, PATH_MAX - 1);
}

struct content {
        const struct sl_allocation *allocation;
        const char *origin;
};

static int write_to(int fd, void *context)
{
        const struct content *content = context;
        int copy = dup(fd);
        FILE *stream = copy < 0 ? NULL : fdopen(copy, "w");
        int r;

        if (!stream) {
                r = -errno;
                if (copy >= 0)
                        close(copy);
                return r;
        }
        fprintf(stream, "# %s\n", content->origin);
        r = sl_allocation_write(stream, content->allocation);
        return fclose(stream) != 0 && r == 0 ? -EIO : r;
}

int sl_allocation_cache_put(
        const char *directory, const char *name, const struct sl_allocation *allocation, const char *origin, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int folder = -1;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct content content = {allocation, origin};
        char path[PATH_MAX];
        int r = find_folder(directory, path, error);

        r = r < 0 ? r : sl_cache_folder_open(path, true, &folder, error);
        if (r < 0)
                return r;
        r = sl_cache_folder_put(folder, name, write_to, &content, &fd);
        return r < 0 ? sl_error_set(error, -r, "\"%s/%s\": %s", path, name, strerrordesc_np(-r)) : 0;
}

static void read_origin(int fd, char ret_origin[SL_ALLOCATION_ORIGIN_BYTES])
{
        char line[SL_ALLOCATION_ORIGIN_BYTES + 2];
        ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

        line[n > 0 ? n : 0] = 0;
        line[strcspn(line, "\n")] = 0;
        snprintf(ret_origin, SL_ALLOCATION_ORIGIN_BYTES, "%s", strncmp(line, "# ", 2) == 0 ? line + 2 : "");
}

int sl_allocation_cache_find(const char *directory, const char *name, struct sl_allocation **ret_allocation,
        char ret_origin[SL_ALLOCATION_ORIGIN_BYTES], struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int folder = -1;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char path[PATH_MAX], file[PATH_MAX + SL_CACHE_NAME_BYTES];
        int r = find_folder(directory, path, error);

        if (r == 0 && access(path, F_OK) < 0)
                return -ENOENT;
        r = r < 0 ? r : sl_cache_folder_open(path, false, &folder, error);
        if (r < 0)
                return r;
        snprintf(file, sizeof(file), "%s/%s", path, name);
        r = sl_cache_folder_find(folder, name, &fd);
        if (r < 0)
                return r == -ENOENT ? r : sl_error_set(error, -r, "\"%s\": %s", file, strerrordesc_np(-r));
        if (ret_origin)
                read_origin(fd, ret_origin);
        return sl_allocation_read(file, ret_allocation, error);
}

int sl_allocation_cache_remove(const char *directory, const char *name, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int folder = -1;
        char path[PATH_MAX];
        int r = find_folder(directory, path, error);

        if (r == 0 && access(path, F_OK) < 0)
                return 0;
        r = r < 0 ? r : sl_cache_folder_open(path, false, &folder, error);
        if (r < 0)
                return r;
        r = sl_cache_folder_remove(folder, name);
        if (r == -ENOENT)
                return 0;
        return r < 0 ? sl_error_set(error, -r, "\"%s/%s\": %s", path, name, strerrordesc_np(-r)) : 1;
}
