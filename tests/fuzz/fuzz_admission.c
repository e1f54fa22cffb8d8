/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission against any entry and any descriptors: what is admitted lies, whole, in the regions that it names, and is what the
 * ensemble serves. Nothing of the tensors is touched, so the regions are bare addresses, as large as they come.
 *
 *     input: ensemble | regions | repair | entry (64 bytes) | descriptors (64 bytes each)
 *
 * Bits of `repair` put right what chance would hardly find, so that the checks behind are reached too, or wrong by one.
 */
#include "admission.h"

#include <stdlib.h>
#include <string.h>

#define REGIONS   4u
#define ENSEMBLES 4u
#define NOW_NS    1000000u

enum {
        REPAIR_ENTRY = 1 << 0,
        REPAIR_SHAPE = 1 << 1,
        REPAIR_BYTES = 1 << 2,
        REPAIR_REGION = 1 << 3,
        REPAIR_OFFSET = 1 << 4,
        SPOIL_SHAPE = 1 << 5, /* by one, behind the repair */
        SPOIL_BYTES = 1 << 6,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sl_region regions[REGIONS] = {
        {.base = (unsigned char *)(1ull << 40), .bytes = 4096, .live = 1},
        {.base = (unsigned char *)(1ull << 41), .bytes = 1ull << 20, .number = 7, .live = 1},
        {.base = (unsigned char *)(1ull << 42), .bytes = 1ull << 40, .number = 3, .live = 1},
        {.base = (unsigned char *)(1ull << 46), .bytes = 1ull << 45, .number = 0, .live = 1},
};

static void check(bool holds)
{
        if (!holds)
                abort();
}

static struct sl_served_port port(enum sl_dtype dtype, uint32_t batch_axis, uint32_t rank, const int64_t *dims)
{
        struct sl_port plain = {.dtype = dtype, .batch_axis = batch_axis, .shape = {.rank = rank}};
        struct sl_served_port served;

        memcpy(plain.shape.dims, dims, rank * sizeof(*dims));
        if (batch_axis != SL_PORT_NO_BATCH)
                plain.shape.dims[batch_axis] = SL_DIM_BATCH;
        check(sl_served_port_init(&served, &plain) == 0);
        return served;
}

/*
 * Small and ordinary; several inputs of several types, one without a batch; no batch at all, and gigantic samples; inputs and an
 * output of any size.
 */
static struct sl_ensemble ensemble_of(uint32_t choice)
{
        static struct sl_served_port inputs[3], outputs[2];
        struct sl_ensemble e = {.batchable = choice < 2,
                .segment_samples = 128,
                .samples_max = 1u << 20,
                .inputs = inputs,
                .assembly.outputs = outputs};

        if (choice == 0) {
                e.inputs[e.n_inputs++] = port(SL_DTYPE_F32, 0, 2, (int64_t[]){0, 4});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_F32, 0, 2, (int64_t[]){0, 10});
        } else if (choice == 1) {
                e.inputs[e.n_inputs++] = port(SL_DTYPE_I64, 0, 2, (int64_t[]){0, 7});
                e.inputs[e.n_inputs++] = port(SL_DTYPE_F32, 1, 3, (int64_t[]){5, 0, 3});
                e.inputs[e.n_inputs++] = port(SL_DTYPE_U8, SL_PORT_NO_BATCH, 1, (int64_t[]){13});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_F64, 0, 4, (int64_t[]){0, 3, 1, 2});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_BOOL, 0, 1, (int64_t[]){0});
        } else if (choice == 3) {
                const int64_t open = SL_DIM_UNKNOWN;

                e.segment_samples = e.samples_max = 1;
                e.assembly.open_inputs = e.assembly.open_outputs = true;
                e.inputs[e.n_inputs++] = port(SL_DTYPE_F32, SL_PORT_NO_BATCH, 4, (int64_t[]){open, 3, open, open});
                e.inputs[e.n_inputs++] = port(SL_DTYPE_I64, SL_PORT_NO_BATCH, 1, &open);
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_F32, SL_PORT_NO_BATCH, 2, (int64_t[]){open, 10});
        } else {
                e.segment_samples = e.samples_max = 1;
                e.inputs[e.n_inputs++] = port(SL_DTYPE_F32, SL_PORT_NO_BATCH, 2, (int64_t[]){1 << 18, 1 << 18});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_F32, SL_PORT_NO_BATCH, 0, (int64_t[]){0});
        }
        return e;
}

static void repair_entry(struct sl_entry *entry, const struct sl_ensemble *e)
{
        entry->flags = 0;
        entry->reserved0 = 0;
        entry->session = 0;
        memset(entry->reserved1, 0, sizeof(entry->reserved1));
        entry->reserved2 = 0;
        entry->priority %= SL_CLASSES;
        entry->n_inputs = (uint16_t)e->n_inputs;
        entry->n_outputs = (uint16_t)e->assembly.n_outputs;
        entry->samples = entry->samples % e->samples_max + 1;
        if (entry->deadline_ns)
                entry->deadline_ns |= 1ull << 40;
}

/* What the descriptor's own dimensions take; UINT64_MAX: more than 64 bits count. */
static uint64_t claimed_bytes(const struct sl_descriptor *d, const struct sl_served_port *p)
{
        uint64_t bytes = sl_dtype_bytes(p->port.dtype);
        bool overflows = false;

        for (uint32_t i = 0; i < p->port.shape.rank; i++)
                overflows |= __builtin_mul_overflow(bytes, (uint64_t)d->dims[i], &bytes);
        return overflows ? UINT64_MAX : bytes;
}

static void repair_descriptor(struct sl_descriptor *d, const struct sl_served_port *p, uint32_t samples, uint8_t repair)
{
        if (repair & REPAIR_SHAPE) {
                d->dtype = (uint8_t)p->port.dtype;
                d->rank = (uint8_t)p->port.shape.rank;
                for (uint32_t i = 0; i < p->port.shape.rank; i++)
                        if (p->port.shape.dims[i] == SL_DIM_UNKNOWN)
                                d->dims[i] = d->dims[i] >> 31 ? d->dims[i] : d->dims[i] % 64; /* small ones, and huge ones */
                        else
                                d->dims[i] = i == p->port.batch_axis ? samples : (uint32_t)p->port.shape.dims[i];
        }
        if (repair & SPOIL_SHAPE)
                d->dims[1]++;
        if (repair & REPAIR_BYTES)
                d->bytes = sl_port_is_open(&p->port) ? claimed_bytes(d, p) : sl_served_port_bytes(p, samples);
        if (repair & SPOIL_BYTES)
                d->bytes++;
        if (repair & REPAIR_REGION)
                d->region %= REGIONS;
        if (repair & REPAIR_OFFSET)
                d->offset &= ~63ull;
}

/* By subtraction, so that the check cannot overflow as the thing checked might. */
static void check_tensor(
        const struct sl_descriptor *d, const struct sl_place *tensor, uint64_t bytes, uint32_t samples, uint32_t n_regions)
{
        check(d->region < n_regions);
        const struct sl_region *region = &regions[d->region];

        check(tensor->region == region->number);
        check(tensor->offset == d->offset && tensor->offset % 64 == 0);
        check(d->bytes >= bytes);
        check(tensor->offset <= region->bytes && d->bytes <= region->bytes - tensor->offset);
        check(!samples || tensor->stride == 0 || tensor->stride == bytes / samples);
}

/* Sizes that the request says are those of its bytes, and the others are the port's. */
static void check_open_input(const struct sl_descriptor *d, const struct sl_served_port *p)
{
        check(d->dtype == p->port.dtype && d->rank == p->port.shape.rank);
        for (uint32_t i = 0; i < d->rank; i++)
                check(p->port.shape.dims[i] == SL_DIM_UNKNOWN || d->dims[i] == (uint64_t)p->port.shape.dims[i]);
        check(claimed_bytes(d, p) == d->bytes && d->bytes != UINT64_MAX);
}

static void check_admitted(const struct sl_ensemble *e, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        uint32_t n_regions, const struct sl_place *tensors)
{
        check(entry->samples <= e->samples_max && (entry->samples || e->batchable)); /* no rows are an answer, too */
        check(entry->priority < SL_CLASSES && entry->session == 0);
        check(!entry->deadline_ns || entry->deadline_ns > NOW_NS);
        for (uint32_t i = 0; i < e->n_inputs; i++) {
                bool open = sl_port_is_open(&e->inputs[i].port);

                if (open)
                        check_open_input(&descriptors[i], &e->inputs[i]);
                check_tensor(&descriptors[i], &tensors[i],
                        open ? descriptors[i].bytes : sl_served_port_bytes(&e->inputs[i], entry->samples), entry->samples,
                        n_regions);
        }
        for (uint32_t i = 0; i < e->assembly.n_outputs; i++)
                if (tensors[e->n_inputs + i].region != SL_NO_REGION) /* else nobody wants it */
                        check_tensor(&descriptors[e->n_inputs + i], &tensors[e->n_inputs + i],
                                sl_served_port_bytes(&e->assembly.outputs[i], entry->samples), entry->samples, n_regions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct sl_descriptor descriptors[SL_TENSORS_MAX];
        struct sl_place tensors[SL_TENSORS_MAX] = {{0}};
        struct sl_refused refused = {0};
        struct sl_entry entry;

        if (size < 3 + sizeof(entry))
                return 0;
        struct sl_ensemble e = ensemble_of(data[0] % ENSEMBLES);
        uint32_t n_regions = data[1] % (REGIONS + 1);
        uint8_t repair = data[2];
        size_t left = size - 3 - sizeof(entry);

        memset(descriptors, 0, sizeof(descriptors));
        memcpy(&entry, data + 3, sizeof(entry));
        memcpy(descriptors, data + 3 + sizeof(entry), left < sizeof(descriptors) ? left : sizeof(descriptors));
        if (repair & REPAIR_ENTRY)
                repair_entry(&entry, &e);
        for (uint32_t i = 0; i < e.n_inputs + e.assembly.n_outputs; i++)
                repair_descriptor(&descriptors[i], i < e.n_inputs ? &e.inputs[i] : &e.assembly.outputs[i - e.n_inputs],
                        entry.samples, repair);
        if (sl_admit(&entry, descriptors, regions, n_regions, &e, NOW_NS, &refused, tensors) == 0)
                check_admitted(&e, &entry, descriptors, n_regions, tensors);
        return 0;
}
