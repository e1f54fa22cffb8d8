/* SPDX-License-Identifier: Apache-2.0 */
#include "resident_ports.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t port_bytes(const struct sl_port *port, uint32_t batch)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = batch;
        return sl_tensor_bytes(&tensor);
}

static int allocate_ports(const struct sl_plan_session *session, uint32_t n_ports, const struct sl_port *ports, uint32_t batch_max,
        void **ret_memory, struct sl_error *error)
{
        const struct sl_device_memory *memory = session->backend->runner->memory;
        int r = 0;

        for (uint32_t i = 0; i < n_ports && r == 0; i++) {
                r = memory->allocate(session->session, port_bytes(&ports[i], batch_max), &ret_memory[i], error);
                if (r < 0)
                        return sl_error_prefix(error, r, "room for \"%s\"", ports[i].name);
        }
        return r;
}

static void release_ports(const struct sl_plan_session *session, uint32_t n_ports, void **memory)
{
        for (uint32_t i = 0; i < n_ports; i++)
                session->backend->runner->memory->release(session->session, memory[i]);
        free(memory);
}

int sl_resident_ports_init(struct sl_resident_ports *ports, struct sl_plan_session *session, const struct sl_plan_info *info,
        uint32_t batch_max, struct sl_error *error)
{
        int r;

        ports->session = session;
        ports->info = info;
        ports->inputs = calloc((size_t)info->n_inputs + 1, sizeof(*ports->inputs));
        ports->outputs = calloc((size_t)info->n_outputs + 1, sizeof(*ports->outputs));
        if (!ports->inputs || !ports->outputs)
                return sl_error_set(error, ENOMEM, "no memory for %u inputs and %u outputs", info->n_inputs, info->n_outputs);
        r = allocate_ports(session, info->n_inputs, info->inputs, batch_max, ports->inputs, error);
        return r == 0 ? allocate_ports(session, info->n_outputs, info->outputs, batch_max, ports->outputs, error) : r;
}

void sl_resident_ports_deinit(struct sl_resident_ports *ports)
{
        if (ports->inputs)
                release_ports(ports->session, ports->info->n_inputs, ports->inputs);
        if (ports->outputs)
                release_ports(ports->session, ports->info->n_outputs, ports->outputs);
        *ports = (struct sl_resident_ports){.session = NULL};
}

int sl_resident_ports_upload(struct sl_resident_ports *ports, uint32_t batch, const void *const *inputs, void *const *outputs)
{
        const struct sl_plan_info *info = ports->info;
        int r = 0;

        ports->batch = batch;
        ports->host_outputs = outputs;
        for (uint32_t i = 0; i < info->n_inputs && (r == 0 || r == -EINPROGRESS); i++)
                r = ports->session->backend->runner->memory->upload(
                        ports->session->session, ports->inputs[i], inputs[i], port_bytes(&info->inputs[i], batch));
        return r;
}

int sl_resident_ports_download(const struct sl_resident_ports *ports)
{
        const struct sl_plan_info *info = ports->info;
        int r = 0;

        for (uint32_t i = 0; i < info->n_outputs && (r == 0 || r == -EINPROGRESS); i++)
                r = ports->session->backend->runner->memory->download(ports->session->session, ports->host_outputs[i],
                        ports->outputs[i], port_bytes(&info->outputs[i], ports->batch));
        return r;
}
