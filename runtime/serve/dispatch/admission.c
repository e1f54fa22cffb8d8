/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"

#include "base/bytes.h"
#include "base/dtype.h"

#include <errno.h>

/* What is looked at: private copies, the client's memory, and the ensemble that shall serve it. */
struct look {
        const struct sl_entry *entry;
        const struct sl_descriptor *descriptors;
        const struct sl_region *regions;
        uint32_t n_regions;
        const struct sl_ensemble *ensemble;
        struct sl_refused *refused;
};

static int refuse(const struct look *look, int status, enum sl_reason_code code, uint64_t got, uint64_t limit)
{
        return sl_refuse(&look->refused->reason, status, code, got, limit);
}

/* @tensor counts the inputs, then the outputs. */
static int refuse_tensor(
        const struct look *look, uint32_t tensor, int status, enum sl_reason_code code, uint64_t got, uint64_t limit)
{
        return sl_refuse_tensor(&look->refused->reason, status, code, tensor, look->entry->n_inputs, got, limit);
}

static int check_entry(const struct look *look)
{
        const struct sl_entry *entry = look->entry;
        const struct sl_ensemble *ensemble = look->ensemble;
        uint32_t n = (uint32_t)entry->n_inputs + entry->n_outputs;

        if (entry->flags || entry->reserved0 || entry->reserved1[0] || entry->reserved1[1] || entry->reserved1[2] ||
                entry->reserved2 || entry->priority >= SL_CLASSES)
                return refuse(look, -EINVAL, SL_REASON_FIELDS, entry->priority, SL_CLASSES);
        if (entry->session)
                return refuse(look, -ENOTSUP, SL_REASON_SESSION, entry->session, 0);
        if ((entry->n_inputs != ensemble->n_inputs && !sl_ensemble_is_given(ensemble, entry->n_inputs)) ||
                entry->n_outputs != ensemble->assembly.n_outputs)
                return refuse(look, -EINVAL, SL_REASON_COUNTS, n, ensemble->n_inputs + ensemble->assembly.n_outputs);
        if (entry->samples == 0 && !ensemble->batchable)
                return refuse(look, -EINVAL, SL_REASON_NO_SAMPLES, 0, 1);
        if (!ensemble->batchable && entry->samples != 1)
                return refuse(look, -EINVAL, SL_REASON_NO_BATCH, entry->samples, 1);
        if (entry->samples > ensemble->samples_max)
                return refuse(look, -E2BIG, SL_REASON_SAMPLES, entry->samples, ensemble->samples_max);
        return 0;
}

/* The descriptor says exactly the port's shape with the request's samples. */
static int check_shape(const struct look *look, uint32_t tensor, const struct sl_served_port *port)
{
        const struct sl_descriptor *d = &look->descriptors[tensor];
        const struct sl_shape *shape = &port->port.shape;

        if (d->dtype != port->port.dtype)
                return refuse_tensor(look, tensor, -EINVAL, SL_REASON_TYPE, d->dtype, (uint64_t)port->port.dtype);
        if (d->rank != shape->rank)
                return refuse_tensor(look, tensor, -EINVAL, SL_REASON_RANK, d->rank, shape->rank);
        for (uint32_t i = 0; i < shape->rank; i++) {
                int64_t want = i == port->port.batch_axis ? (int64_t)look->entry->samples : shape->dims[i];

                if ((int64_t)d->dims[i] == want || want == SL_DIM_UNKNOWN)
                        continue;
                refuse_tensor(look, tensor, -EINVAL, SL_REASON_DIMENSION, d->dims[i], (uint64_t)want);
                look->refused->reason.axis = (uint8_t)i;
                return -EINVAL;
        }
        return 0;
}

/* @stride: from a sample to the next. */
static int check_place(const struct look *look, uint32_t tensor, uint64_t stride, struct sl_place *ret_place)
{
        const struct sl_descriptor *d = &look->descriptors[tensor];

        if (d->region >= look->n_regions ||
                !atomic_load_explicit(&look->regions[d->region].live, memory_order_acquire)) /* R2 of channel.h */
                return refuse_tensor(look, tensor, -EFAULT, SL_REASON_REGION, d->region, look->n_regions);
        if (d->offset % SL_LINE_BYTES)
                return refuse_tensor(look, tensor, -EINVAL, SL_REASON_ALIGNMENT, d->offset, SL_LINE_BYTES);
        if (!sl_range_inside(d->offset, d->bytes, look->regions[d->region].bytes))
                return refuse_tensor(look, tensor, -EFAULT, SL_REASON_PLACE, d->bytes, look->regions[d->region].bytes);
        *ret_place = (struct sl_place){.region = look->regions[d->region].number, .offset = d->offset, .stride = stride};
        return 0;
}

/* The bytes are those of the dimensions, whatever the model says of them. */
static int check_claim(const struct look *look, uint32_t tensor)
{
        const struct sl_descriptor *d = &look->descriptors[tensor];
        uint64_t bytes = sl_dtype_bytes(d->dtype);
        bool overflows = !bytes || d->rank > SL_WIRE_RANK_MAX;

        for (uint32_t i = 0; !overflows && i < d->rank; i++)
                overflows = sl_mul_overflows(bytes, d->dims[i], &bytes);
        return !overflows && bytes == d->bytes ? 0 : refuse_tensor(look, tensor, -EINVAL, SL_REASON_CLAIM, d->bytes, 0);
}

static int check_deadline(const struct look *look, uint64_t now_ns)
{
        uint64_t deadline_ns = look->entry->deadline_ns;

        return deadline_ns && now_ns >= deadline_ns ? refuse(look, -ETIME, SL_REASON_PASSED, now_ns - deadline_ns, 0) : 0;
}

static bool is_left_out(const struct look *look, uint32_t input)
{
        return sl_input_is_left_out(&look->ensemble->inputs[input].port, &look->descriptors[input]);
}

static int check_input(const struct look *look, uint32_t i, struct sl_place *ret_place)
{
        const struct sl_served_port *port = &look->ensemble->inputs[i];
        uint64_t bytes = sl_served_port_bytes(port, look->entry->samples);
        int r;

        if (is_left_out(look, i)) {
                *ret_place = (struct sl_place){.region = SL_NO_REGION};
                return 0;
        }
        r = check_shape(look, i, port);
        if (r == 0 && sl_port_is_open(&port->port))
                r = check_claim(look, i);
        else if (r == 0 && look->descriptors[i].bytes != bytes)
                r = refuse_tensor(look, i, -EINVAL, SL_REASON_BYTES, look->descriptors[i].bytes, bytes);
        return r < 0 ? r : check_place(look, i, sl_served_port_stride(port), ret_place);
}

/* Where all outputs have known sizes, which the runtime then has room for, or follow those of the inputs. */
static bool is_unwanted(const struct look *look, uint32_t output)
{
        const struct sl_descriptor *d = &look->descriptors[look->entry->n_inputs + output];

        return d->dtype == SL_DTYPE_NONE && !d->bytes &&
               (!look->ensemble->assembly.open_outputs || look->ensemble->assembly.open_inputs);
}

static int check_output(const struct look *look, uint32_t i, struct sl_place *ret_place)
{
        const struct sl_served_port *port = &look->ensemble->assembly.outputs[i];
        const struct sl_descriptor *d = &look->descriptors[look->ensemble->n_inputs + i];
        uint64_t needed = sl_served_port_bytes(port, look->entry->samples);

        if (is_unwanted(look, i)) {
                *ret_place = (struct sl_place){.region = SL_NO_REGION};
                return 0;
        }
        i += look->ensemble->n_inputs;
        if (d->dtype != port->port.dtype)
                return refuse_tensor(look, i, -EINVAL, SL_REASON_TYPE, d->dtype, (uint64_t)port->port.dtype);
        if (d->bytes < needed) {
                look->refused->bytes_needed = needed;
                return refuse_tensor(look, i, -EMSGSIZE, SL_REASON_CAPACITY, d->bytes, needed);
        }
        return check_place(look, i, sl_served_port_stride(port), ret_place);
}

int sl_admit_open(const struct sl_entry *entry, const struct sl_descriptor *descriptors, const struct sl_region *regions,
        uint32_t n_regions, const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_refused *ret_refused)
{
        struct look look = {entry, descriptors, regions, n_regions, ensemble, ret_refused};
        uint32_t n = (uint32_t)entry->n_inputs + entry->n_outputs;
        int r = check_entry(&look);
        struct sl_place place;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                if (i < entry->n_inputs ? is_left_out(&look, i) : is_unwanted(&look, i - entry->n_inputs))
                        continue;
                if (i < entry->n_inputs)
                        r = check_claim(&look, i);
                if (r == 0)
                        r = check_place(&look, i, 0, &place);
        }
        return r < 0 ? r : check_deadline(&look, now_ns);
}

int sl_admit(const struct sl_entry *entry, const struct sl_descriptor *descriptors, const struct sl_region *regions,
        uint32_t n_regions, const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_refused *ret_refused,
        struct sl_place *ret_tensors)
{
        struct look look = {entry, descriptors, regions, n_regions, ensemble, ret_refused};
        int r = check_entry(&look);

        for (uint32_t i = 0; i < ensemble->n_inputs && r == 0; i++)
                r = check_input(&look, i, &ret_tensors[i]);
        for (uint32_t i = 0; i < ensemble->assembly.n_outputs && r == 0; i++)
                r = check_output(&look, i, &ret_tensors[ensemble->n_inputs + i]);
        return r < 0 ? r : check_deadline(&look, now_ns);
}
