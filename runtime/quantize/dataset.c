/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define HEADER_MAX 65536
#define INPUTS_MAX 64

/* A mapped file and what its header says; bare data have the type that their place in the model wants, and no shape. */
struct array {
        bool is_bare;
        uint8_t *map;
        uint64_t map_bytes;
        const uint8_t *data;
        uint64_t data_bytes;
        uint32_t dtype;
        struct sl_shape shape;
};

struct sl_dataset {
        uint32_t n_inputs;
        uint64_t count;
        struct array arrays[INPUTS_MAX];
        uint64_t sample_bytes[INPUTS_MAX];
};

SL_DEFINE_CLEANUP(struct sl_dataset *, sl_dataset_free)

static void array_deinit(struct array *array)
{
        if (array->map)
                munmap(array->map, array->map_bytes);
        array->map = NULL;
}

static int map_file(const char *path, struct array *array, struct sl_error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat stat;
        void *map;

        if (fd < 0)
                return sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
        if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode) || stat.st_size < 1) {
                close(fd);
                return sl_error_set(error, EINVAL, "%s: no file with data", path);
        }
        map = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
        if (map == MAP_FAILED)
                return sl_error_set(error, ENOMEM, "%s: no memory to map %jd bytes", path, (intmax_t)stat.st_size);
        array->map = map;
        array->map_bytes = (uint64_t)stat.st_size;
        array->data = map;
        array->data_bytes = array->map_bytes;
        return 0;
}

static uint32_t type_of(const char *descr)
{
        static const struct {
                const char *name;
                uint32_t dtype;
        } types[] = {{"<f4", SL_DTYPE_F32}, {"<f8", SL_DTYPE_F64}, {"<i4", SL_DTYPE_I32}, {"<i8", SL_DTYPE_I64},
                {"|u1", SL_DTYPE_U8}, {"|i1", SL_DTYPE_I8}, {"|b1", SL_DTYPE_BOOL}, {"<f2", SL_DTYPE_F16}, {"<i2", SL_DTYPE_I16},
                {"<u2", SL_DTYPE_U16}, {"<u4", SL_DTYPE_U32}, {"<u8", SL_DTYPE_U64}};

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                if (!strncmp(descr, types[i].name, 3))
                        return types[i].dtype;
        return SL_DTYPE_NONE;
}

/* The value behind 'key': in the header, which is a dictionary as Python writes it; NULL without one. */
static const char *find_key(const char *header, const char *key)
{
        const char *at = strstr(header, key);

        at = at ? strchr(at, ':') : NULL;
        return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool read_shape(const char *text, struct sl_shape *ret_shape)
{
        struct sl_shape shape = {.rank = 0};
        char *end;

        if (!text || *text++ != '(')
                return false;
        for (;;) {
                text += strspn(text, " ,");
                if (*text == ')')
                        break;
                if (shape.rank == SL_RANK_MAX)
                        return false;
                shape.dims[shape.rank++] = strtoll(text, &end, 10);
                if (end == text || shape.dims[shape.rank - 1] < 0)
                        return false;
                text = end;
        }
        *ret_shape = shape;
        return true;
}

static bool read_header(struct array *array, char *header, uint64_t begin, uint64_t length)
{
        const char *descr, *order;
        struct sl_tensor tensor = {0};

        memcpy(header, array->map + begin, length);
        header[length] = 0;
        descr = find_key(header, "'descr'");
        order = find_key(header, "'fortran_order'");
        if (!descr || *descr++ != '\'' || !order || strncmp(order, "False", 5) != 0)
                return false;
        array->dtype = type_of(descr);
        if (array->dtype == SL_DTYPE_NONE || !read_shape(find_key(header, "'shape'"), &array->shape))
                return false;
        tensor.dtype = array->dtype;
        tensor.shape = array->shape;
        if ((begin + length) % sizeof(int64_t))
                return false;
        array->data = array->map + begin + length;
        array->data_bytes = array->map_bytes - begin - length;
        return sl_tensor_bytes(&tensor) == array->data_bytes;
}

static bool read_npy(struct array *array)
{
        SL_CLEANUP(sl_cleanup_free) char *header = NULL;
        uint64_t begin, length;

        if (array->map_bytes < 12 || memcmp(array->map, "\x93NUMPY", 6) != 0)
                return false;
        begin = array->map[6] == 1 ? 10 : 12;
        length = (uint64_t)array->map[8] | (uint64_t)array->map[9] << 8;
        if (begin == 12)
                length |= (uint64_t)array->map[10] << 16 | (uint64_t)array->map[11] << 24;
        if (length > HEADER_MAX || begin + length > array->map_bytes)
                return false;
        header = malloc(length + 1);
        return header && read_header(array, header, begin, length);
}

static bool ends_with(const char *text, const char *end)
{
        size_t n = strlen(text), m = strlen(end);

        return n >= m && !strcmp(text + n - m, end);
}

/* @bare: of data without a header. */
static int open_array(const char *path, uint32_t bare, struct array *array, struct sl_error *error)
{
        int r = map_file(path, array, error);

        if (r < 0)
                return r;
        array->is_bare = !ends_with(path, ".npy");
        if (array->is_bare)
                array->dtype = bare;
        else if (!read_npy(array))
                return sl_error_set(error, EINVAL, "%s: no .npy file of a type that is known, in C order", path);
        return 0;
}

/* Behind the first axis those of a sample, or one of all its elements. */
static bool is_of_samples(const struct sl_shape *shape, const struct sl_shape *sample)
{
        if (shape->rank == 2 && (uint64_t)shape->dims[1] == sl_shape_elements(sample))
                return true;
        return shape->rank == sample->rank && !memcmp(&shape->dims[1], &sample->dims[1], (shape->rank - 1) * sizeof(*shape->dims));
}

static int check_array(
        const char *path, const struct array *array, const char *input, const struct sl_tensor *sample, struct sl_error *error)
{
        char got[SL_SHAPE_TEXT_BYTES], want[SL_SHAPE_TEXT_BYTES];
        struct sl_shape samples = sample->shape;

        if (array->dtype != sample->dtype)
                return sl_error_set(error, EINVAL, "%s: is of %s, input \"%s\" wants %s", path, sl_dtype_name(array->dtype), input,
                        sl_dtype_name(sample->dtype));
        if (array->is_bare || is_of_samples(&array->shape, &sample->shape))
                return 0;
        samples.dims[0] = SL_DIM_BATCH;
        return sl_error_set(error, EINVAL, "%s: has the shape %s, input \"%s\" wants %s or [N,%" PRIu64 "]", path,
                sl_shape_print(&array->shape, got), input, sl_shape_print(&samples, want), sl_shape_elements(&sample->shape));
}

/* One sample of the port, without the leading axis. */
static int count_samples(const char *path, const struct array *array, const struct sl_value *port, uint64_t *ret_bytes,
        uint64_t *ret_count, struct sl_error *error)
{
        struct sl_tensor sample = port->tensor;
        char want[SL_SHAPE_TEXT_BYTES];
        uint64_t bytes;
        int r;

        if (!sample.shape.rank || (sample.shape.dims[0] != SL_DIM_BATCH && sample.shape.dims[0] != 1))
                return sl_error_set(
                        error, EINVAL, "input \"%s\" %s has no batch in front", port->name, sl_shape_print(&sample.shape, want));
        sample.shape.dims[0] = 1;
        bytes = sl_tensor_bytes(&sample);
        if (!bytes || bytes == UINT64_MAX)
                return sl_error_set(error, EINVAL, "input \"%s\" has the shape %s, which has open dimensions", port->name,
                        sl_shape_print(&sample.shape, want));
        r = check_array(path, array, port->name, &sample, error);
        if (r < 0)
                return r;
        if (array->data_bytes % bytes)
                return sl_error_set(error, EINVAL, "%s: %" PRIu64 " bytes are no whole samples of %" PRIu64 " bytes (%s of %s)",
                        path, array->data_bytes, bytes, sl_shape_print(&sample.shape, want), sl_dtype_name(sample.dtype));
        *ret_bytes = bytes;
        *ret_count = array->data_bytes / bytes;
        return 0;
}

static int open_input(
        struct sl_dataset *dataset, const char *path, const struct sl_graph *graph, uint32_t input, struct sl_error *error)
{
        uint64_t count;
        int r;

        if (!ends_with(path, ".npy") && !ends_with(path, ".f32"))
                return sl_error_set(
                        error, EINVAL, "%s: samples are in files that end with .npy, or with .f32 (bare float32)", path);
        r = open_array(path, SL_DTYPE_F32, &dataset->arrays[input], error);
        if (r == 0)
                r = count_samples(path, &dataset->arrays[input], &graph->values[graph->inputs[input]],
                        &dataset->sample_bytes[input], &count, error);
        if (r < 0)
                return r;
        if (input && count != dataset->count)
                return sl_error_set(
                        error, EINVAL, "%s: %" PRIu64 " samples, the inputs before it have %" PRIu64, path, count, dataset->count);
        dataset->count = count;
        return 0;
}

static int open_in_folder(
        struct sl_dataset *dataset, const char *folder, const struct sl_graph *graph, uint32_t input, struct sl_error *error)
{
        static const char *const endings[] = {".npy", ".f32"};
        const char *name = graph->values[graph->inputs[input]].name;
        char path[PATH_BYTES];

        for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
                int n = snprintf(path, sizeof(path), "%s/%s%s", folder, name, endings[i]);

                if (strchr(name, '/') || n >= (int)sizeof(path))
                        break;
                if (access(path, R_OK) == 0)
                        return open_input(dataset, path, graph, input, error);
        }
        return sl_error_set(error, ENOENT, "%s: no %s.npy or %s.f32 for that input", folder, name, name);
}

int sl_dataset_open(const char *path, const struct sl_graph *graph, struct sl_dataset **ret_dataset, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_dataset_free) struct sl_dataset *dataset = calloc(1, sizeof(*dataset));
        struct stat stat_;
        int r = 0;

        if (!dataset)
                return sl_error_set(error, ENOMEM, "no memory for samples");
        if (stat(path, &stat_) < 0)
                return sl_error_set(error, errno, "%s: %s", path, strerrordesc_np(errno));
        if (graph->n_inputs > INPUTS_MAX || (!S_ISDIR(stat_.st_mode) && graph->n_inputs != 1))
                return sl_error_set(error, EINVAL, "%s: the model has %u inputs, which wants a folder with a file for each", path,
                        graph->n_inputs);
        dataset->n_inputs = graph->n_inputs;
        for (uint32_t i = 0; i < graph->n_inputs && r == 0; i++)
                r = S_ISDIR(stat_.st_mode) ? open_in_folder(dataset, path, graph, i, error)
                                           : open_input(dataset, path, graph, i, error);
        if (r < 0)
                return r;
        *ret_dataset = sl_take(dataset);
        return 0;
}

struct sl_dataset *sl_dataset_free(struct sl_dataset *dataset)
{
        if (!dataset)
                return NULL;
        for (uint32_t i = 0; i < dataset->n_inputs; i++)
                array_deinit(&dataset->arrays[i]);
        free(dataset);
        return NULL;
}

uint64_t sl_dataset_count(const struct sl_dataset *dataset)
{
        return dataset->count;
}

void sl_dataset_at(const struct sl_dataset *dataset, uint64_t index, const void **ret_inputs)
{
        for (uint32_t i = 0; i < dataset->n_inputs; i++)
                ret_inputs[i] = dataset->arrays[i].data + index * dataset->sample_bytes[i];
}

static int64_t label_at(const struct array *array, uint64_t index)
{
        int64_t wide;
        int32_t narrow;

        switch (array->dtype) {
        case SL_DTYPE_I64:
                memcpy(&wide, array->data + index * sizeof(wide), sizeof(wide));
                return wide;
        case SL_DTYPE_I32:
                memcpy(&narrow, array->data + index * sizeof(narrow), sizeof(narrow));
                return narrow;
        default:
                return array->data[index];
        }
}

static bool is_of_labels(uint32_t dtype)
{
        return dtype == SL_DTYPE_I64 || dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_U8;
}

static int read_labels(const char *path, const struct array *array, uint64_t samples, int64_t **ret_labels, struct sl_error *error)
{
        uint64_t count;
        int64_t *labels;

        if (!is_of_labels(array->dtype))
                return sl_error_set(
                        error, EINVAL, "%s: is of %s, labels are of int64, int32 or uint8", path, sl_dtype_name(array->dtype));
        count = array->data_bytes / sl_dtype_bytes(array->dtype);
        if (count != samples)
                return sl_error_set(error, EINVAL, "%s: %" PRIu64 " labels for %" PRIu64 " samples", path, count, samples);
        labels = calloc(count + 1, sizeof(*labels));
        if (!labels)
                return sl_error_set(error, ENOMEM, "%s: no memory for %" PRIu64 " labels", path, count);
        for (uint64_t i = 0; i < count; i++)
                labels[i] = label_at(array, i);
        *ret_labels = labels;
        return 0;
}

int sl_labels_read(const char *path, uint64_t samples, int64_t **ret_labels, struct sl_error *error)
{
        struct array array = {0};
        int r = open_array(path, SL_DTYPE_U8, &array, error);

        r = r < 0 ? r : read_labels(path, &array, samples, ret_labels, error);
        array_deinit(&array);
        return r;
}
