/* SPDX-License-Identifier: Apache-2.0 */
#include "offline_data.h"

#include "base/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAX 65536u

struct offline_file {
        int fd;
        char *path;
        struct offline_shape shape;
        uint64_t begin; /* of its data */
        uint64_t first; /* of its samples, of all */
        uint64_t count;
};

static const struct {
        char name[4];
        enum starling_dtype dtype;
} types[] = {{"<f4", STARLING_F32}, {"<f8", STARLING_F64}, {"<f2", STARLING_F16}, {"|u1", STARLING_U8}, {"|i1", STARLING_I8},
        {"|b1", STARLING_BOOL}, {"<i2", STARLING_I16}, {"<u2", STARLING_U16}, {"<i4", STARLING_I32}, {"<u4", STARLING_U32},
        {"<i8", STARLING_I64}, {"<u8", STARLING_U64}};

#define N_TYPES (sizeof(types) / sizeof(*types))

uint64_t offline_sample_bytes(const struct offline_shape *shape)
{
        uint64_t bytes = starling_dtype_bytes(shape->dtype);

        for (uint32_t i = 1; i < shape->rank; i++)
                if (sl_mul_overflows(bytes, shape->dims[i], &bytes))
                        return UINT64_MAX;
        return bytes;
}

/* ---- headers ---- */

size_t offline_header(const struct offline_shape *shape, char *ret_header, size_t bytes)
{
        const char *type = NULL;
        char dims[STARLING_RANK_MAX * 24] = "";
        size_t length, at = 0;

        for (size_t i = 0; i < N_TYPES; i++)
                if (types[i].dtype == shape->dtype)
                        type = types[i].name;
        for (uint32_t i = 0; i < shape->rank; i++)
                at += (size_t)snprintf(
                        dims + at, sizeof(dims) - at, "%" PRIu64 "%s", shape->dims[i], i == 0 || i + 1 < shape->rank ? ", " : "");
        if (!type)
                return 0;
        length = (size_t)snprintf(
                ret_header + 10, bytes - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, dims);
        length = sl_align_up(10 + length + 1, 64);
        memset(ret_header + 10 + strlen(ret_header + 10), ' ', length - 10 - strlen(ret_header + 10));
        memcpy(ret_header, "\x93NUMPY\x01\x00", 8);
        ret_header[8] = (char)((length - 10) & 0xff);
        ret_header[9] = (char)((length - 10) >> 8);
        ret_header[length - 1] = '\n';
        return length;
}

/* The value behind 'key': in the header, which is a dictionary as Python writes it; NULL without one. */
static const char *find_key(const char *header, const char *key)
{
        const char *at = strstr(header, key);

        at = at ? strchr(at, ':') : NULL;
        return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool read_dims(const char *text, struct offline_shape *shape)
{
        char *end;

        if (!text || *text++ != '(')
                return false;
        for (shape->rank = 0;; text = end) {
                text += strspn(text, " ,");
                if (*text == ')')
                        return true;
                if (shape->rank == STARLING_RANK_MAX || *text < '0' || *text > '9')
                        return false;
                errno = 0;
                shape->dims[shape->rank++] = strtoull(text, &end, 10);
                if (errno)
                        return false;
        }
}

static int parse_header(const char *header, const char *path, struct offline_shape *shape, struct sl_error *error)
{
        const char *descr = find_key(header, "'descr'"), *order = find_key(header, "'fortran_order'");

        if (!descr || *descr++ != '\'' || !order || !read_dims(find_key(header, "'shape'"), shape))
                return sl_error_set(
                        error, EINVAL, "%s: its header is none of a .npy file of up to %d axes", path, STARLING_RANK_MAX);
        if (strncmp(order, "False", 5) != 0)
                return sl_error_set(
                        error, EINVAL, "%s: it is in Fortran order, and C order is read (numpy.ascontiguousarray)", path);
        for (size_t i = 0; i < N_TYPES; i++)
                if (strncmp(descr, types[i].name, 3) == 0 && descr[3] == '\'') {
                        shape->dtype = types[i].dtype;
                        return 0;
                }
        return sl_error_set(error, EINVAL, "%s: elements of type %.*s are not read", path, (int)strcspn(descr, "'"), descr);
}

int offline_header_read(int fd, const char *path, struct offline_shape *ret_shape, uint64_t *ret_begin, struct sl_error *error)
{
        uint8_t head[12];
        char *header;
        uint64_t begin, length;
        int r;

        if (pread(fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 2)
                return sl_error_set(error, EINVAL, "%s: no .npy file of version 1 or 2", path);
        begin = head[6] == 1 ? 10 : 12;
        length = head[8] | (uint64_t)head[9] << 8;
        if (head[6] == 2)
                length |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
        if (length > HEADER_MAX)
                return sl_error_set(
                        error, EINVAL, "%s: its header has %" PRIu64 " bytes, at most %u are read", path, length, HEADER_MAX);
        header = malloc(length + 1);
        if (!header)
                return sl_error_set(error, ENOMEM, "%s: no memory for its header", path);
        if (pread(fd, header, length, (off_t)begin) != (ssize_t)length) {
                r = sl_error_set(error, EINVAL, "%s: it ends within its header", path);
        } else {
                header[length] = 0;
                r = parse_header(header, path, ret_shape, error);
        }
        free(header);
        *ret_begin = begin + length;
        return r;
}

/* ---- files ---- */

static int check_bytes(const struct offline_file *file, uint64_t file_bytes, struct sl_error *error)
{
        uint64_t wanted = starling_dtype_bytes(file->shape.dtype);

        for (uint32_t i = 0; i < file->shape.rank; i++)
                if (sl_mul_overflows(wanted, file->shape.dims[i], &wanted))
                        wanted = UINT64_MAX;
        if (wanted == file_bytes - file->begin)
                return 0;
        return sl_error_set(error, EINVAL, "%s: its shape takes %" PRIu64 " bytes, and it has %" PRIu64, file->path, wanted,
                file_bytes - file->begin);
}

static void stamp(struct offline_data *data, const struct stat *stat)
{
        const uint64_t words[] = {
                (uint64_t)stat->st_size, (uint64_t)stat->st_mtim.tv_sec, (uint64_t)stat->st_mtim.tv_nsec, stat->st_ino};

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                data->stamp = (data->stamp ^ words[i]) * 0x9e3779b97f4a7c15u;
}

/* Takes over @path. */
static int add_file(struct offline_data *data, char *path, struct sl_error *error)
{
        struct offline_file *grown = path ? reallocarray(data->files, data->n_files + 1, sizeof(*grown)) : NULL, *file;
        struct stat stat;

        if (!grown) {
                free(path);
                return sl_error_set(error, ENOMEM, "no memory for the names of files");
        }
        data->files = grown;
        file = &grown[data->n_files++];
        *file = (struct offline_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
        if (file->fd < 0 || fstat(file->fd, &stat) < 0)
                return sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
        if (!S_ISREG(stat.st_mode))
                return sl_error_set(error, EINVAL, "%s: it is no file", path);
        stamp(data, &stat);
        int r = offline_header_read(file->fd, path, &file->shape, &file->begin, error);
        return r < 0 ? r : check_bytes(file, (uint64_t)stat.st_size, error);
}

static int is_visible(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

static int add_folder(struct offline_data *data, const char *path, struct sl_error *error)
{
        struct dirent **entries;
        int n = scandir(path, &entries, is_visible, alphasort), r = 0;

        if (n < 0)
                return sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
        for (int i = 0; i < n; i++) {
                size_t length = strlen(entries[i]->d_name);
                char *name = NULL;

                if (r == 0 && (length < 5 || strcmp(entries[i]->d_name + length - 4, ".npy") != 0))
                        r = sl_error_set(
                                error, EINVAL, "%s/%s: a folder of samples has .npy files alone", path, entries[i]->d_name);
                if (r == 0)
                        r = add_file(data, asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0 ? NULL : name, error);
                free(entries[i]);
        }
        free(entries);
        return r == 0 && n == 0 ? sl_error_set(error, EINVAL, "%s: there is no .npy file in it", path) : r;
}

static bool is_alike(const struct offline_shape *a, const struct offline_shape *b)
{
        return a->dtype == b->dtype && a->rank == b->rank &&
               memcmp(&a->dims[1], &b->dims[1], (a->rank - 1) * sizeof(a->dims[0])) == 0;
}

/* Files of one axis less than the others have are samples: where all have the same, axis 0 counts. */
static void count_single(struct offline_data *data, uint32_t rank)
{
        for (uint32_t i = 0; i < data->n_files; i++) {
                struct offline_shape *shape = &data->files[i].shape;

                if (shape->rank + 1 != rank)
                        continue;
                memmove(&shape->dims[1], &shape->dims[0], shape->rank * sizeof(shape->dims[0]));
                shape->dims[0] = 1;
                shape->rank++;
        }
}

static int join_files(struct offline_data *data, uint32_t rank, struct sl_error *error)
{
        const struct offline_file *first = &data->files[0];

        count_single(data, rank);
        data->shape = first->shape;
        data->shape.dims[0] = 0;
        for (uint32_t i = 0; i < data->n_files; i++) {
                struct offline_file *file = &data->files[i];

                if (!file->shape.rank)
                        return sl_error_set(error, EINVAL, "%s: it has no axis that counts samples", file->path);
                if (!is_alike(&file->shape, &first->shape))
                        return sl_error_set(
                                error, EINVAL, "%s: its samples differ in type or shape from those of %s", file->path, first->path);
                file->first = data->shape.dims[0];
                file->count = file->shape.dims[0];
                data->shape.dims[0] += file->count;
        }
        data->sample_bytes = offline_sample_bytes(&data->shape);
        if (!data->shape.dims[0] || !data->sample_bytes)
                return sl_error_set(error, EINVAL, "%s: it has no samples", first->path);
        return 0;
}

int offline_data_open(const char *path, uint32_t rank, struct offline_data *ret_data, struct sl_error *error)
{
        struct offline_data data = {0};
        struct stat status;
        char *name;
        int r;

        if (stat(path, &status) < 0)
                return sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
        name = S_ISDIR(status.st_mode) ? NULL : strdup(path);
        r = S_ISDIR(status.st_mode) ? add_folder(&data, path, error) : add_file(&data, name, error);
        if (r == 0)
                r = join_files(&data, S_ISDIR(status.st_mode) ? rank : 0, error);
        if (r < 0)
                offline_data_close(&data);
        else
                *ret_data = data;
        return r;
}

void offline_data_close(struct offline_data *data)
{
        for (uint32_t i = 0; i < data->n_files; i++) {
                if (data->files[i].fd >= 0)
                        close(data->files[i].fd);
                free(data->files[i].path);
        }
        free(data->files);
        *data = (struct offline_data){0};
}

int offline_data_read(const struct offline_data *data, uint64_t first, uint32_t n, void *to, struct sl_error *error)
{
        uint8_t *at = to;

        for (uint32_t i = 0; i < data->n_files && n; i++) {
                const struct offline_file *file = &data->files[i];
                uint64_t skipped = first - file->first, left, bytes;

                if (first < file->first || skipped >= file->count)
                        continue;
                left = file->count - skipped < n ? file->count - skipped : n;
                bytes = left * data->sample_bytes;
                if (pread(file->fd, at, bytes, (off_t)(file->begin + skipped * data->sample_bytes)) != (ssize_t)bytes)
                        return sl_error_set(error, EIO, "%s: it has been cut off since the job began", file->path);
                at += bytes;
                first += left;
                n -= (uint32_t)left;
        }
        return 0;
}
