/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors that a served model takes and gives, as admission and accumulator want them: a plan's port with its size.
 */
#pragma once

#include "plan.h"

/* Of one request, whatever its model's limit is. */
#define SL_SERVED_SAMPLES_MAX (1u << 30)

struct sl_served_port {
        struct sl_port port;
        uint64_t sample_bytes; /* of one sample; of the whole tensor when it has no batch axis; at least, in a signature */
};

/* Return: 0; -EOVERFLOW: over 1 TiB, or the bytes of SL_SERVED_SAMPLES_MAX samples are no number. */
int sl_served_port_init(struct sl_served_port *ret_port, const struct sl_port *port);

/* From a sample to the next; 0: the tensor has no batch. */
static inline uint64_t sl_served_port_stride(const struct sl_served_port *port)
{
        return port->port.batch_axis == SL_PORT_NO_BATCH ? 0 : port->sample_bytes;
}

/* Bytes of @samples samples, SL_SERVED_SAMPLES_MAX at most, so that this cannot overflow. */
static inline uint64_t sl_served_port_bytes(const struct sl_served_port *port, uint32_t samples)
{
        return port->port.batch_axis == SL_PORT_NO_BATCH ? port->sample_bytes : port->sample_bytes * samples;
}
