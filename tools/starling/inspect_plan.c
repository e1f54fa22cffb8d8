/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_plan.h"

#include "base/cleanup.h"
#include "base/dtype.h"
#include "base/error.h"
#include "format.h"
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool is_plan_file(const char *path)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char magic[sizeof(SL_PLAN_MAGIC) - 1];

        return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) && !memcmp(magic, SL_PLAN_MAGIC, sizeof(magic));
}

static void shape_text(const struct sl_port *port, char *ret_text, size_t bytes)
{
        size_t used = (size_t)snprintf(ret_text, bytes, "[");

        for (uint32_t i = 0; i < port->shape.rank && used < bytes; i++) {
                const char *comma = i ? "," : "";

                if (i == port->batch_axis)
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%sN", comma);
                else if (port->shape.dims[i] < 0)
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%s?", comma);
                else
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%s%" PRId64, comma, port->shape.dims[i]);
        }
        if (used < bytes)
                snprintf(ret_text + used, bytes - used, "]");
}

static void print_ports(const char *what, const struct sl_port *ports, uint32_t n)
{
        char shape[160];

        for (uint32_t i = 0; i < n; i++) {
                shape_text(&ports[i], shape, sizeof(shape));
                printf("%-10s%s %s %s\n", i ? "" : what, ports[i].name, sl_dtype_name(ports[i].dtype), shape);
        }
}

static void print_text(const struct sl_plan_info *info)
{
        printf("plan of   %s, %s\n", info->name[0] ? info->name : "a graph without a name", info->backend);
        print_ports("inputs", info->inputs, info->n_inputs);
        print_ports("optional", info->inputs + info->n_inputs, info->n_optionals);
        print_ports("outputs", info->outputs, info->n_outputs);
        printf("weights   %" PRIu64 " bytes, %" PRIu64 " of its base\n", info->weights_bytes, info->shared_bytes);
        for (uint32_t i = 0; i < info->n_batches; i++)
                printf("%-10s%u: a workspace of %" PRIu64 " bytes\n", i ? "" : "batch", info->batches[i], info->workspace_bytes[i]);
        if (info->n_lanes)
                printf("merged    %u lanes: %u of %u common nodes are one for all, %" PRIu64
                       " bytes of constants are laid together, %" PRIu64 " bytes are its members'\n",
                        info->n_lanes, info->n_merged, info->n_common, info->stacked_bytes, info->member_bytes);
}

static json_t *ports_json(const struct sl_port *ports, uint32_t n)
{
        json_t *array = json_array();
        char shape[160];

        for (uint32_t i = 0; i < n; i++) {
                shape_text(&ports[i], shape, sizeof(shape));
                json_array_append_new(array,
                        json_pack("{s:s, s:s, s:s}", "name", ports[i].name, "type", sl_dtype_name(ports[i].dtype), "shape", shape));
        }
        return array;
}

static json_t *merged_json(const struct sl_plan_info *info)
{
        if (!info->n_lanes)
                return json_null();
        return json_pack("{s:i, s:i, s:i, s:I, s:I}", "lanes", (int)info->n_lanes, "common_nodes", (int)info->n_common,
                "merged_nodes", (int)info->n_merged, "stacked_bytes", (json_int_t)info->stacked_bytes, "member_bytes",
                (json_int_t)info->member_bytes);
}

static void print_json(const struct sl_plan_info *info)
{
        json_t *batches = json_array(), *object;

        for (uint32_t i = 0; i < info->n_batches; i++)
                json_array_append_new(batches, json_pack("{s:i, s:I}", "batch", (int)info->batches[i], "workspace_bytes",
                                                       (json_int_t)info->workspace_bytes[i]));
        object = json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "plan", info->name, "backend", info->backend, "inputs",
                ports_json(info->inputs, info->n_inputs), "optional", ports_json(info->inputs + info->n_inputs, info->n_optionals),
                "outputs", ports_json(info->outputs, info->n_outputs), "weights_bytes", (json_int_t)info->weights_bytes,
                "shared_bytes", (json_int_t)info->shared_bytes, "batches", batches, "merged", merged_json(info));
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}

int inspect_plan(const char *path, bool json, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        SL_CLEANUP(sl_plan_info_deinit) struct sl_plan_info info = {0};
        int r = fd < 0 ? sl_error_set(error, errno, "%s", strerror(errno)) : sl_plan_read_info(fd, &info, error);

        if (r == 0)
                (json ? print_json : print_text)(&info);
        return r;
}
