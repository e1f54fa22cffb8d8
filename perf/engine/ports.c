/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include "base/cleanup.h"
#include "base/dtype.h"
#include "base/error.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ALIGNMENT 64

/* Room for an output whose shape is data-dependent. */
#define OPEN_BYTES (1u << 20)

static struct sl_shape shape_of(const struct sl_port *port, uint32_t samples)
{
        struct sl_shape shape = port->shape;

        if (port->batch_axis != SL_PORT_NO_BATCH)
                shape.dims[port->batch_axis] = samples;
        return shape;
}

uint64_t sl_port_bytes(const struct sl_port *port)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = shape_of(port, 1)};

        return sl_port_is_open(port) ? OPEN_BYTES : sl_tensor_bytes(&tensor);
}

static int make(const struct sl_port *port, uint32_t samples, void **ret_data, struct sl_error *error)
{
        uint64_t bytes = sl_port_bytes(port), total;

        if (bytes == UINT64_MAX || __builtin_mul_overflow(bytes, samples, &total) || total > SIZE_MAX - ALIGNMENT)
                return sl_error_set(error, ERANGE, "port \"%s\": its size is not known", port->name);
        total = (total + ALIGNMENT) & ~(uint64_t)(ALIGNMENT - 1);
        *ret_data = aligned_alloc(ALIGNMENT, total);
        if (!*ret_data)
                return sl_error_set(error, ENOMEM, "port \"%s\": no memory for %lu bytes", port->name, (unsigned long)total);
        memset(*ret_data, 0, total);
        return 0;
}

int sl_ports_init(struct sl_ports *ports, const struct sl_plan_info *info, uint32_t samples, struct sl_error *error)
{
        int r;

        *ports = (struct sl_ports){.info = info, .samples = samples, .open = calloc(samples, sizeof(*ports->open))};
        r = ports->open ? 0 : sl_error_set(error, ENOMEM, "no memory for the shapes of %u samples", samples);
        for (uint32_t i = 0; r == 0 && i < samples; i++)
                for (uint32_t k = 0; k < info->n_outputs; k++)
                        ports->open[i].outputs[k].capacity_bytes = OPEN_BYTES;
        for (uint32_t i = 0; r == 0 && i < info->n_inputs; i++)
                r = make(&info->inputs[i], samples, &ports->inputs[i], error);
        for (uint32_t i = 0; r == 0 && i < info->n_outputs; i++)
                r = make(&info->outputs[i], samples, &ports->outputs[i], error);
        if (r < 0)
                sl_ports_deinit(ports);
        return r;
}

void sl_ports_deinit(struct sl_ports *ports)
{
        for (uint32_t i = 0; i < SL_PLAN_PORTS_MAX; i++) {
                free(ports->inputs[i]);
                free(ports->outputs[i]);
        }
        free(ports->open);
        *ports = (struct sl_ports){0};
}

static int read_whole(int fd, void *data, uint64_t bytes)
{
        for (uint64_t at = 0; at < bytes;) {
                ssize_t n = read(fd, (char *)data + at, bytes - at);

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                at += (uint64_t)n;
        }
        return 0;
}

static int fill(void *data, uint64_t bytes, const char *path, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        if ((uint64_t)status.st_size != bytes)
                return sl_error_set(
                        error, EINVAL, "\"%s\": %ld bytes, the input takes %lu", path, (long)status.st_size, (unsigned long)bytes);
        int r = read_whole(fd, data, bytes);
        return r == 0 ? 0 : sl_error_set(error, -r, "\"%s\": %s", path, strerror(-r));
}

int sl_ports_read(struct sl_ports *ports, const char *name, const char *path, struct sl_error *error)
{
        for (uint32_t i = 0; i < ports->info->n_inputs; i++) {
                const struct sl_port *port = &ports->info->inputs[i];

                if (!strcmp(port->name, name))
                        return fill(ports->inputs[i], sl_port_bytes(port) * ports->samples, path, error);
        }
        return sl_error_set(error, ENOENT, "the model has no input \"%s\"", name);
}

static int write_file(const char *path, const void *data, uint64_t bytes, struct sl_error *error)
{
        FILE *file = fopen(path, "we");

        if (!file)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        size_t n = fwrite(data, 1, bytes, file);
        if (fclose(file) != 0 || n != bytes)
                return sl_error_set(error, EIO, "\"%s\": not all of %lu bytes were written", path, (unsigned long)bytes);
        return 0;
}

/* The answer of @samples from @first on: one run's. */
static int write_output(const struct sl_ports *ports, uint32_t index, uint32_t first, uint32_t samples, const char *folder,
        struct json_t *list, struct sl_error *error)
{
        const struct sl_port *port = &ports->info->outputs[index];
        bool open = sl_port_is_open(port);
        struct sl_tensor tensor = {
                .dtype = port->dtype, .shape = open ? ports->open[first].outputs[index].shape : shape_of(port, samples)};
        json_t *dims = json_array();
        char path[4096];

        for (uint32_t i = 0; i < tensor.shape.rank; i++)
                json_array_append_new(dims, json_integer(tensor.shape.dims[i]));
        snprintf(path, sizeof(path), "%s/%u.%u.raw", folder, index, first);
        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:o, s:s}", "name", port->name, "sample", (int)first, "dtype",
                                            sl_dtype_name(port->dtype), "shape", dims, "file", path));
        return write_file(path, (const char *)ports->outputs[index] + first * sl_port_bytes(port), sl_tensor_bytes(&tensor), error);
}

int sl_ports_write(const struct sl_ports *ports, const char *folder, struct json_t **ret_list, struct sl_error *error)
{
        uint32_t step = ports->info->batchable ? ports->samples : 1;
        json_t *list = json_array();
        int r = 0;

        for (uint32_t first = 0; first < ports->samples; first += step)
                for (uint32_t i = 0; r == 0 && i < ports->info->n_outputs; i++)
                        r = write_output(ports, i, first, step, folder, list, error);
        if (r == 0)
                *ret_list = list;
        else
                json_decref(list);
        return r;
}
