/* SPDX-License-Identifier: Apache-2.0 */
#include "history_file.h"

#include "base/error.h"
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sl_history_file {
        FILE *stream;
        uint64_t bytes;
        char *path, *old_path;
        struct sl_history_writer writer;
};

static void put(void *context, const void *bytes, size_t n)
{
        struct sl_history_file *file = context;

        fwrite(bytes, 1, n, file->stream); /* an error stays in the stream */
        file->bytes += n;
}

static int fail(const struct sl_history_file *file, struct sl_error *error)
{
        return sl_error_set(error, errno, "history \"%s\": %s", file->path, strerror(errno));
}

/* The calls written so far are in the file, also if the process is killed. */
static int flush(struct sl_history_file *file, struct sl_error *error)
{
        return fflush(file->stream) == 0 && !ferror(file->stream) ? 0 : fail(file, error);
}

static int begin(struct sl_history_file *file, struct sl_error *error)
{
        int fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);

        file->stream = fd < 0 ? NULL : fdopen(fd, "w");
        if (!file->stream) {
                int r = fail(file, error);

                if (fd >= 0)
                        close(fd);
                return r;
        }
        file->bytes = 0;
        sl_history_begin(&file->writer);
        return flush(file, error);
}

static int begin_anew(struct sl_history_file *file, struct sl_error *error)
{
        fclose(file->stream);
        file->stream = NULL;
        return rename(file->path, file->old_path) < 0 ? fail(file, error) : begin(file, error);
}

int sl_history_file_new(const char *path, struct sl_history_file **ret_file, struct sl_error *error)
{
        struct sl_history_file *file = calloc(1, sizeof(*file));
        int r;

        if (!file)
                return sl_error_set(error, ENOMEM, "history \"%s\": no memory", path);
        file->writer.put = put;
        file->writer.context = file;
        file->path = strdup(path);
        if (asprintf(&file->old_path, "%s.old", path) < 0)
                file->old_path = NULL;
        r = file->path && file->old_path ? begin(file, error) : sl_error_set(error, ENOMEM, "history \"%s\": no memory", path);
        if (r < 0)
                sl_history_file_free(file);
        else
                *ret_file = file;
        return r;
}

int sl_history_file_write(struct sl_history_file *file, const struct sl_fleet *fleet, const struct sl_step *steps, uint32_t n_steps,
        uint64_t due_ns, struct sl_error *error)
{
        int r = file->bytes < SL_HISTORY_FILE_BYTES ? 0 : begin_anew(file, error);

        if (r < 0)
                return r;
        sl_history_write(&file->writer, fleet, steps, n_steps, due_ns);
        return flush(file, error);
}

struct sl_history_file *sl_history_file_free(struct sl_history_file *file)
{
        if (!file)
                return NULL;
        if (file->stream)
                fclose(file->stream);
        free(file->path);
        free(file->old_path);
        free(file);
        return NULL;
}
