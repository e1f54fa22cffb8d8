/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission against any entry and any descriptors: what is admitted lies, whole, in the regions that it names, and is what the
 * ensemble serves. Nothing of the tensors is touched, so the regions are bare addresses, as large as they come.
 *
 *     input: ensemble | regions | repair | entry (64 bytes) | descriptors (64 bytes each)
 *
 * Bits of `repair` put right what chance would hardly find, so that the checks behind are reached too.
 */
#include "admission.h"

#include <stdlib.h>
#include <string.h>

#define REGIONS   4u
#define ENSEMBLES 3u
#define NOW_NS    1000000u

enum { REPAIR_ENTRY = 1 << 0, REPAIR_SHAPE = 1 << 1, REPAIR_BYTES = 1 << 2, REPAIR_REGION = 1 << 3, REPAIR_OFFSET = 1 << 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sl_region regions[REGIONS] = {
        {.base = (unsigned char *)(1ull << 40), .bytes = 4096},
        {.base = (unsigned char *)(1ull << 41), .bytes = 1ull << 20, .number = 7},
        {.base = (unsigned char *)(1ull << 42), .bytes = 1ull << 40, .number = 3},
        {.base = (unsigned char *)(1ull << 46), .bytes = 1ull << 45, .number = 0},
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

/* Small and ordinary; several inputs of several types, one without a batch; no batch at all, and gigantic samples. */
static struct sl_ensemble ensemble_of(uint32_t choice)
{
        struct sl_ensemble e = {.batchable = choice != 2, .segment_samples = 128, .samples_max = 1u << 20};

        if (choice == 0) {
                e.inputs[e.n_inputs++] = port(SL_DTYPE_F32, 0, 2, (int64_t[]){0, 4});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_F32, 0, 2, (int64_t[]){0, 10});
        } else if (choice == 1) {
                e.inputs[e.n_inputs++] = port(SL_DTYPE_I64, 0, 2, (int64_t[]){0, 7});
                e.inputs[e.n_inputs++] = port(SL_DTYPE_F32, 1, 3, (int64_t[]){5, 0, 3});
                e.inputs[e.n_inputs++] = port(SL_DTYPE_U8, SL_PORT_NO_BATCH, 1, (int64_t[]){13});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_F64, 0, 4, (int64_t[]){0, 3, 1, 2});
                e.assembly.outputs[e.assembly.n_outputs++] = port(SL_DTYPE_BOOL, 0, 1, (int64_t[]){0});
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
        entry->priority %= SL_PRIORITIES;
        entry->n_inputs = (uint16_t)e->n_inputs;
        entry->n_outputs = (uint8_t)e->assembly.n_outputs;
        entry->samples = entry->samples % e->samples_max + 1;
        if (entry->deadline_ns)
                entry->deadline_ns |= 1ull << 40;
}

static void repair_descriptor(struct sl_descriptor *d, const struct sl_served_port *p, uint32_t samples, uint8_t repair)
{
        if (repair & REPAIR_SHAPE) {
                d->dtype = (uint8_t)p->port.dtype;
                d->rank = (uint8_t)p->port.shape.rank;
                for (uint32_t i = 0; i < p->port.shape.rank; i++)
                        d->dims[i] = i == p->port.batch_axis ? samples : (uint32_t)p->port.shape.dims[i];
        }
        if (repair & REPAIR_BYTES)
                d->bytes = sl_served_port_bytes(p, samples);
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
        check(tensor->stride == 0 || tensor->stride == bytes / samples);
}

static void check_admitted(const struct sl_ensemble *e, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        uint32_t n_regions, const struct sl_place *tensors)
{
        check(entry->samples >= 1 && entry->samples <= e->samples_max);
        check(entry->priority < SL_PRIORITIES && entry->session == 0);
        check(!entry->deadline_ns || entry->deadline_ns > NOW_NS);
        for (uint32_t i = 0; i < e->n_inputs; i++)
                check_tensor(&descriptors[i], &tensors[i], sl_served_port_bytes(&e->inputs[i], entry->samples), entry->samples,
                        n_regions);
        for (uint32_t i = 0; i < e->assembly.n_outputs; i++)
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
