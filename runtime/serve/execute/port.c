/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <errno.h>

int sl_served_port_init(struct sl_served_port *ret_port, const struct sl_port *port)
{
        struct sl_tensor sample = {.dtype = port->dtype, .shape = port->shape};

        if (port->batch_axis != SL_PORT_NO_BATCH)
                sample.shape.dims[port->batch_axis] = 1;
        for (uint32_t i = 0; i < sample.shape.rank; i++)
                if (sample.shape.dims[i] == SL_DIM_UNKNOWN)
                        sample.shape.dims[i] = 1;
        uint64_t bytes = sl_tensor_bytes(&sample);
        if (bytes == UINT64_MAX || bytes > UINT64_MAX >> 24 ||
                (port->batch_axis != SL_PORT_NO_BATCH && bytes > UINT64_MAX / SL_SERVED_SAMPLES_MAX))
                return -EOVERFLOW;
        *ret_port = (struct sl_served_port){.port = *port, .sample_bytes = bytes};
        return 0;
}
