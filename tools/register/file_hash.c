/* SPDX-License-Identifier: Apache-2.0 */
#include "file_hash.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define CHUNK_BYTES (1u << 20)

static void print_hash(XXH128_hash_t hash, char ret_hash[REGISTER_HASH_BYTES])
{
        snprintf(ret_hash, REGISTER_HASH_BYTES, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

static int add_file(XXH3_state_t *state, const char *path, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        SL_CLEANUP(sl_cleanup_free) char *chunk = malloc(CHUNK_BYTES);
        ssize_t n;

        if (!chunk)
                return sl_error_set(error, ENOMEM, "no memory to read \"%s\"", path);
        if (fd < 0)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        while ((n = read(fd, chunk, CHUNK_BYTES)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
                XXH3_128bits_update(state, chunk, (size_t)n);
        }
        return 0;
}

static int is_data(const struct dirent *entry)
{
        size_t n = strlen(entry->d_name);

        return n > 4 && (strcmp(entry->d_name + n - 4, ".npy") == 0 || strcmp(entry->d_name + n - 4, ".f32") == 0);
}

static int add_folder(XXH3_state_t *state, const char *path, struct sl_error *error)
{
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, is_data, alphasort), r = 0;

        if (n < 0)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        for (int i = 0; i < n; i++) {
                char file[PATH_MAX];

                XXH3_128bits_update(state, entries[i]->d_name, strlen(entries[i]->d_name) + 1);
                if (r == 0 && snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) >= PATH_MAX)
                        r = sl_error_set(error, ENAMETOOLONG, "\"%s\": a path of more than %d bytes", path, PATH_MAX - 1);
                r = r < 0 ? r : add_file(state, file, error);
                free(entries[i]);
        }
        free(entries);
        return r;
}

int file_hash(const char *path, char ret_hash[REGISTER_HASH_BYTES], struct sl_error *error)
{
        XXH3_state_t *state = XXH3_createState();
        struct stat status;
        int r = state ? 0 : sl_error_set(error, ENOMEM, "no memory to read \"%s\"", path);

        if (r == 0 && stat(path, &status) < 0)
                r = sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        if (r == 0) {
                XXH3_128bits_reset(state);
                r = S_ISDIR(status.st_mode) ? add_folder(state, path, error) : add_file(state, path, error);
        }
        if (r == 0)
                print_hash(XXH3_128bits_digest(state), ret_hash);
        XXH3_freeState(state);
        return r;
}

void text_hash(const char *text, char ret_hash[REGISTER_HASH_BYTES])
{
        print_hash(XXH3_128bits(text, strlen(text)), ret_hash);
}
