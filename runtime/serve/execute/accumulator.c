/* SPDX-License-Identifier: Apache-2.0 */
#include "accumulator.h"

#include "assembly.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "combine.h"
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define NONE UINT32_MAX

struct sl_accumulator {
        unsigned char *staging;
        uint64_t staging_bytes;
        struct sl_arena *arena;
        uint32_t n_segments;
        uint32_t free; /* list through next_free */
        struct sl_segment *segments;
};

int sl_accumulator_new(uint32_t segments, uint64_t staging_bytes, struct sl_accumulator **ret_accumulator)
{
        struct sl_accumulator *a = calloc(1, sizeof(*a));

        if (!a)
                return -ENOMEM;
        a->staging_bytes = sl_align_up(staging_bytes, SL_PAGE_BYTES);
        a->staging = mmap(NULL, a->staging_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (a->staging == MAP_FAILED)
                a->staging = NULL;
        a->segments = calloc(segments, sizeof(*a->segments));
        if (!a->staging || !a->segments || sl_arena_new(a->staging_bytes, &a->arena) < 0) {
                sl_accumulator_free(a);
                return -ENOMEM;
        }
        a->n_segments = segments;
        for (uint32_t i = 0; i < segments; i++)
                a->segments[i].next_free = i + 1 < segments ? i + 1 : NONE;
        *ret_accumulator = a;
        return 0;
}

struct sl_accumulator *sl_accumulator_free(struct sl_accumulator *a)
{
        if (!a)
                return NULL;
        if (a->staging)
                munmap(a->staging, a->staging_bytes);
        sl_arena_free(a->arena);
        free(a->segments);
        free(a);
        return NULL;
}

struct sl_segment *sl_accumulator_segment(struct sl_accumulator *a, uint32_t segment)
{
        return &a->segments[segment];
}

/* Bytes of one member's predictions, each output on lines of its own. */
static uint64_t member_bytes(const struct sl_assembly *assembly, uint32_t samples)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < assembly->member_outputs; i++)
                bytes += sl_align_up(sl_served_port_bytes(&assembly->outputs[i], samples), SL_LINE_BYTES);
        return bytes;
}

uint64_t sl_accumulator_staging_bytes(const struct sl_assembly *assembly, uint32_t samples)
{
        return assembly->direct ? 0 : member_bytes(assembly, samples) * assembly->n_members;
}

int sl_accumulator_open(struct sl_accumulator *a, struct sl_work *work, uint32_t start, uint32_t samples)
{
        const struct sl_assembly *assembly = work->assembly;
        uint32_t id = a->free;
        uint64_t offset = 0;

        if (id == NONE)
                return -EAGAIN;
        struct sl_segment *segment = &a->segments[id];
        uint64_t bytes = sl_accumulator_staging_bytes(assembly, samples);
        if (bytes && sl_arena_take(a->arena, bytes, &offset) < 0)
                return -ENOMEM;

        a->free = segment->next_free;
        segment->work = work;
        segment->start = start;
        segment->samples = samples;
        segment->staging = bytes ? a->staging + offset : NULL;
        segment->staging_offset = offset;
        segment->messages_left = assembly->n_members;
        /* Relaxed: the job that names this segment is published by a mailbox (B1). */
        atomic_store_explicit(&segment->missing, assembly->n_members, memory_order_relaxed);
        atomic_store_explicit(&segment->failures, 0, memory_order_relaxed);
        return (int)id;
}

void sl_accumulator_close(struct sl_accumulator *a, uint32_t id)
{
        struct sl_segment *segment = &a->segments[id];

        if (segment->staging)
                sl_arena_give(a->arena, segment->staging_offset);
        segment->work = NULL;
        segment->next_free = a->free;
        a->free = id;
}

/* Output @output of the request, from this segment's first sample on. */
static void *client_place(const struct sl_segment *segment, uint32_t output)
{
        const struct sl_assembly *assembly = segment->work->assembly;
        unsigned char *base = segment->work->outputs[output];

        return base + (size_t)segment->start * assembly->outputs[output].sample_bytes;
}

static void *staged_place(const struct sl_segment *segment, uint32_t member, uint32_t output)
{
        const struct sl_assembly *assembly = segment->work->assembly;
        uint64_t offset = member_bytes(assembly, segment->samples) * member;

        for (uint32_t i = 0; i < output; i++)
                offset += sl_align_up(sl_served_port_bytes(&assembly->outputs[i], segment->samples), SL_LINE_BYTES);
        return segment->staging + offset;
}

void *sl_accumulator_place(const struct sl_segment *segment, uint32_t member, uint32_t output)
{
        if (segment->staging)
                return staged_place(segment, member, output);
        return client_place(segment, member * segment->work->assembly->member_outputs + output);
}

static void combine_output(const struct sl_segment *segment, uint32_t output)
{
        const struct sl_assembly *assembly = segment->work->assembly;
        const struct sl_served_port *port = &assembly->outputs[output];
        const struct sl_shape *shape = &port->port.shape;
        const float *predictions[SL_MEMBERS_MAX];
        size_t elements = sl_served_port_bytes(port, segment->samples) / sizeof(float);
        bool has_classes = shape->rank > (port->port.batch_axis == SL_PORT_NO_BATCH ? 0 : 1);
        size_t classes = has_classes ? (size_t)shape->dims[shape->rank - 1] : 1;

        for (uint32_t m = 0; m < assembly->n_members; m++)
                predictions[m] = staged_place(segment, m, output);
        sl_combine(&(struct sl_combination){
                .rule = assembly->rule,
                .n_members = assembly->n_members,
                .weights = assembly->weights,
                .predictions = predictions,
                .samples = elements / classes,
                .classes = classes,
                .output = client_place(segment, output),
        });
}

static void combine(const struct sl_segment *segment)
{
        for (uint32_t i = 0; i < segment->work->assembly->n_outputs; i++)
                combine_output(segment, i);
}

int sl_accumulator_deliver(struct sl_segment *segment, int status)
{
        const struct sl_work *work = segment->work;

        if (status < 0)
                atomic_fetch_add_explicit(&segment->failures, 1, memory_order_relaxed);
        if (atomic_fetch_sub_explicit(&segment->missing, 1, memory_order_acq_rel) != 1) /* P1, P2 */
                return 0;
        if (atomic_load_explicit(&segment->failures, memory_order_relaxed) || sl_work_verdict(work))
                return 1;
        if (work->deadline_ns && sl_clock_ns() >= work->deadline_ns)
                return -ETIME;
        if (segment->staging)
                combine(segment);
        return 1;
}
