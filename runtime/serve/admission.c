/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"

#include "base/bytes.h"
#include "base/dtype.h"

#include <errno.h>

static int check_entry(const struct sl_entry *entry, const struct sl_ensemble *ensemble)
{
        if (entry->flags || entry->reserved0 || entry->reserved[0] || entry->reserved[1] || entry->priority >= SL_PRIORITIES)
                return -EINVAL;
        if (entry->session)
                return -ENOTSUP;
        if (entry->n_inputs != ensemble->n_inputs || entry->n_outputs != ensemble->n_outputs)
                return -EINVAL;
        if (entry->samples == 0 || (!ensemble->batchable && entry->samples != 1))
                return -EINVAL;
        return entry->samples > ensemble->samples_max ? -E2BIG : 0;
}

/* The descriptor says exactly the port's shape with the request's samples. Outputs of unknown shape are not served yet. */
static int check_shape(const struct sl_descriptor *d, const struct sl_served_port *port, uint32_t samples)
{
        const struct sl_shape *shape = &port->port.shape;

        if (d->dtype != port->port.dtype || d->rank != shape->rank)
                return -EINVAL;
        for (uint32_t i = 0; i < shape->rank; i++) {
                int64_t want = i == port->port.batch_axis ? (int64_t)samples : shape->dims[i];

                if ((int64_t)d->dims[i] != want)
                        return -EINVAL;
        }
        return 0;
}

static int check_place(const struct sl_descriptor *d, const struct sl_region *regions, uint32_t n_regions, void **ret_place)
{
        if (d->region >= n_regions || d->offset % SL_LINE_BYTES)
                return d->region >= n_regions ? -EFAULT : -EINVAL;
        if (!sl_range_inside(d->offset, d->bytes, regions[d->region].bytes))
                return -EFAULT;
        *ret_place = regions[d->region].base + d->offset;
        return 0;
}

/* The bytes are those of the dimensions, whatever the model says of them. */
static int check_claim(const struct sl_descriptor *d)
{
        uint64_t bytes = sl_dtype_bytes(d->dtype);

        if (!bytes || d->rank > SL_WIRE_RANK_MAX)
                return -EINVAL;
        for (uint32_t i = 0; i < d->rank; i++)
                if (sl_mul_overflows(bytes, d->dims[i], &bytes))
                        return -EINVAL;
        return bytes == d->bytes ? 0 : -EINVAL;
}

int sl_admit_open(const struct sl_entry *entry, const struct sl_descriptor *descriptors, const struct sl_region *regions,
        uint32_t n_regions, const struct sl_ensemble *ensemble, uint64_t now_ns)
{
        uint32_t n = (uint32_t)entry->n_inputs + entry->n_outputs;
        int r = check_entry(entry, ensemble);
        void *place;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                if (i < entry->n_inputs)
                        r = check_claim(&descriptors[i]);
                if (r == 0)
                        r = check_place(&descriptors[i], regions, n_regions, &place);
        }
        return r == 0 && entry->deadline_ns && now_ns >= entry->deadline_ns ? -ETIME : r;
}

int sl_admit(const struct sl_entry *entry, const struct sl_descriptor *descriptors, const struct sl_region *regions,
        uint32_t n_regions, const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_admission *ret_admission,
        void **ret_tensors)
{
        int r = check_entry(entry, ensemble);

        for (uint32_t i = 0; i < ensemble->n_inputs && r == 0; i++) {
                r = check_shape(&descriptors[i], &ensemble->inputs[i], entry->samples);
                if (r == 0 && descriptors[i].bytes != sl_served_port_bytes(&ensemble->inputs[i], entry->samples))
                        r = -EINVAL;
                if (r == 0)
                        r = check_place(&descriptors[i], regions, n_regions, &ret_tensors[i]);
        }
        for (uint32_t i = 0; i < ensemble->n_outputs && r == 0; i++) {
                const struct sl_descriptor *d = &descriptors[ensemble->n_inputs + i];
                uint64_t needed = sl_served_port_bytes(&ensemble->outputs[i], entry->samples);

                r = d->dtype == ensemble->outputs[i].port.dtype ? 0 : -EINVAL;
                if (r == 0 && d->bytes < needed) {
                        ret_admission->bytes_needed = needed;
                        r = -EMSGSIZE;
                }
                if (r == 0)
                        r = check_place(d, regions, n_regions, &ret_tensors[ensemble->n_inputs + i]);
        }
        if (r == 0 && entry->deadline_ns && now_ns >= entry->deadline_ns)
                r = -ETIME;
        if (r < 0)
                return r;
        ret_admission->samples = entry->samples;
        return 0;
}
