/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

static struct sl_tensor tensor_of(const struct sl_port *port, uint32_t batch)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = batch;
        /* An output that is data-dependent is not written while runs are timed; an input is 1 where a request says its size. */
        for (uint32_t i = 0; i < tensor.shape.rank; i++)
                if (tensor.shape.dims[i] == SL_DIM_UNKNOWN)
                        tensor.shape.dims[i] = 1;
        return tensor;
}

static uint64_t aligned_bytes(const struct sl_tensor *tensor)
{
        return (sl_tensor_bytes(tensor) + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
}

static void *port_new(const struct sl_port *port, uint32_t batch, uint64_t *state)
{
        const struct sl_tensor tensor = tensor_of(port, batch);
        uint64_t n = sl_shape_elements(&tensor.shape);
        void *data = aligned_alloc(ALIGNMENT, aligned_bytes(&tensor));

        if (!data)
                return NULL;
        memset(data, 0, aligned_bytes(&tensor));
        for (uint64_t i = 0; i < n && tensor.dtype == SL_DTYPE_F32; i++) {
                *state = *state * 6364136223846793005u + 1442695040888963407u;
                ((float *)data)[i] = (float)(*state >> 40) / (float)(1 << 23) - 1.0f;
        }
        for (uint64_t i = 0; i < n && !sl_dtype_is_float(tensor.dtype); i++)
                ((uint8_t *)data)[i * sl_dtype_bytes(tensor.dtype)] = 1;
        return data;
}

int sl_sample_ports_init(struct sl_sample_ports *ports, const struct sl_plan_info *info, uint32_t batch)
{
        uint64_t state = 1;

        *ports = (struct sl_sample_ports){.n_inputs = info->n_inputs,
                .n_outputs = info->n_outputs,
                .inputs = calloc((size_t)info->n_inputs + 1, sizeof(*ports->inputs)),
                .outputs = calloc((size_t)info->n_outputs + 1, sizeof(*ports->outputs)),
                .open = calloc((size_t)info->n_outputs + 1, sizeof(*ports->open))};
        if (!ports->inputs || !ports->outputs || !ports->open)
                return -ENOMEM;
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                ports->inputs[i] = port_new(&info->inputs[i], batch, &state);
                if (!ports->inputs[i])
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                ports->outputs[i] = port_new(&info->outputs[i], batch, &state);
                if (!ports->outputs[i])
                        return -ENOMEM;
        }
        return 0;
}

uint64_t sl_sample_ports_bytes(const struct sl_plan_info *info, uint32_t batch)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++) {
                const struct sl_tensor tensor = tensor_of(&info->inputs[i], batch);

                bytes += aligned_bytes(&tensor);
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                const struct sl_tensor tensor = tensor_of(&info->outputs[i], batch);

                bytes += aligned_bytes(&tensor);
        }
        return bytes;
}

void sl_sample_ports_deinit(struct sl_sample_ports *ports)
{
        for (uint32_t i = 0; i < ports->n_inputs && ports->inputs; i++)
                free(ports->inputs[i]);
        for (uint32_t i = 0; i < ports->n_outputs && ports->outputs; i++)
                free(ports->outputs[i]);
        free(ports->inputs);
        free(ports->outputs);
        free(ports->open);
        *ports = (struct sl_sample_ports){0};
}

int sl_sample_ports_run(const struct sl_sample_ports *ports, struct sl_instance *instance, uint32_t batch)
{
        int r;

        memset(ports->open, 0, ports->n_outputs * sizeof(*ports->open));
        r = sl_instance_run_open(
                instance, batch, (const void *const *)ports->inputs, (void *const *)ports->outputs, ports->open, NULL);
        return r == -EMSGSIZE ? 0 : r; /* open outputs have no room: all is computed but not written */
}
