/* SPDX-License-Identifier: Apache-2.0 */
#include "accumulator.h"

#include "arena.h"
#include "assembly.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "job.h"
#include "probe.h"
#include "segment.h"
#include "segment_staging.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 *     (A1) free list  =  records used before that are not open, each once, then those never used, in order
 *     (A2) a record is open, in its work's list and no other  <=>  its work is not NULL
 *     (A3) staging of open records: inside of the region, and of no two the same byte
 *     (A4) missing <= unanswered <= samples x members: a sender counts before the dispatcher hears of it
 */
struct sl_accumulator {
        struct sl_regions *regions;
        struct sl_mapping staging, verdicts;
        int verdicts_fd;
        uint32_t staging_region;
        bool has_region;
        struct sl_arena *arena;
        uint32_t n_segments, n_used; /* [0, n_used) were open some time */
        uint32_t free;               /* list through next */
        struct sl_segment *segments;
};

static void walk_free(const struct sl_accumulator *a)
{
        uint32_t id = a->free, n_open = 0, n_free = 0;

        for (uint32_t i = 0; i < a->n_used; i++)
                n_open += a->segments[i].work != NULL;
        for (; id < a->n_used; id = a->segments[id].next, n_free++)
                SL_ASSERT(a->segments[id].work == NULL && n_free < a->n_used);
        SL_ASSERT(n_open + n_free == a->n_used); /* A1 */
        SL_ASSERT(id == (a->n_used < a->n_segments ? a->n_used : SL_NO_SEGMENT));
}

static void walk_work(const struct sl_accumulator *a, const struct sl_work *work)
{
        uint32_t previous = SL_NO_SEGMENT, n = 0;

        for (uint32_t id = work->segments; id != SL_NO_SEGMENT; previous = id, id = a->segments[id].next, n++) {
                SL_ASSERT(id < a->n_used && n < a->n_used);
                SL_ASSERT(a->segments[id].work == work && a->segments[id].previous == previous); /* A2 */
        }
}

static void walk_counts(const struct sl_segment *segment)
{
        SL_ASSERT(atomic_load_explicit(&segment->missing, memory_order_relaxed) <= segment->unanswered); /* A4 */
        SL_ASSERT(segment->unanswered <= segment->samples * segment->work->assembly->n_members);
}

/* The staging of an open record, against all others. */
static void walk_staging(const struct sl_accumulator *a, uint32_t id)
{
        const struct sl_segment *segment = &a->segments[id];
        uint64_t start = segment->staging.offset, end = start + segment->staging_bytes;

        SL_ASSERT(end <= a->staging.bytes);
        for (uint32_t i = 0; i < a->n_used && segment->staging_bytes; i++) {
                const struct sl_segment *other = &a->segments[i];

                if (i == id || !other->work || !other->staging_bytes)
                        continue;
                SL_ASSERT(other->staging.offset >= end || other->staging.offset + other->staging_bytes <= start); /* A3 */
        }
}

void sl_accumulator_walk(const struct sl_accumulator *a, uint32_t id)
{
        walk_free(a);
        walk_work(a, a->segments[id].work);
        walk_counts(&a->segments[id]);
        walk_staging(a, id);
}

static int make_staging(struct sl_accumulator *a, uint64_t bytes)
{
        int fd, r = sl_segment_create("starling-staging", bytes, SL_SEAL_SHARED, &fd, &a->staging, NULL);

        if (r == 0) {
                close(fd); /* nobody else maps it: those who compute in other processes have a staging of their own */
                r = sl_arena_new(a->staging.bytes, &a->arena);
        }
        if (r == 0)
                r = sl_regions_add(a->regions, a->staging.base, a->staging.bytes, -1);
        if (r < 0)
                return r;
        a->staging_region = (uint32_t)r;
        a->has_region = true;
        return 0;
}

/* Of each segment one word, apart from all else: those who compute may read them and nothing more. */
static int make_verdicts(struct sl_accumulator *a, uint32_t segments)
{
        return sl_segment_create(
                "starling-verdicts", segments * sizeof(int32_t), SL_SEAL_SHARED, &a->verdicts_fd, &a->verdicts, NULL);
}

static int make_segments(struct sl_accumulator *a, uint32_t segments)
{
        a->segments = calloc(segments, sizeof(*a->segments));
        if (!a->segments)
                return -ENOMEM;
        a->n_segments = segments;
        for (uint32_t i = 0; i < segments; i++)
                a->segments[i].next = i + 1 < segments ? i + 1 : SL_NO_SEGMENT;
        return 0;
}

int sl_accumulator_new(
        struct sl_regions *regions, uint32_t segments, uint64_t staging_bytes, struct sl_accumulator **ret_accumulator)
{
        struct sl_accumulator *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return -ENOMEM;
        a->regions = regions;
        a->verdicts_fd = -1;
        r = make_segments(a, segments);
        if (r == 0)
                r = make_verdicts(a, segments);
        if (r == 0)
                r = make_staging(a, sl_align_up(staging_bytes, SL_PAGE_BYTES));
        if (r < 0) {
                sl_accumulator_free(a);
                return r;
        }
        *ret_accumulator = a;
        return 0;
}

struct sl_accumulator *sl_accumulator_free(struct sl_accumulator *a)
{
        if (!a)
                return NULL;
        if (a->has_region)
                sl_regions_remove(a->regions, a->staging_region);
        sl_mapping_free(&a->staging);
        sl_mapping_free(&a->verdicts);
        sl_cleanup_fd(&a->verdicts_fd);
        sl_arena_free(a->arena);
        free(a->segments);
        free(a);
        return NULL;
}

struct sl_segment *sl_accumulator_segment(struct sl_accumulator *a, uint32_t segment)
{
        return &a->segments[segment];
}

uint64_t sl_accumulator_staging_bytes(const struct sl_assembly *assembly, uint32_t samples)
{
        return sl_segment_staging_bytes(assembly, samples);
}

static void link_segment(struct sl_accumulator *a, struct sl_work *work, uint32_t id)
{
        a->segments[id].next = work->segments;
        a->segments[id].previous = SL_NO_SEGMENT;
        if (work->segments != SL_NO_SEGMENT)
                a->segments[work->segments].previous = id;
        work->segments = id;
}

static void unlink_segment(struct sl_accumulator *a, uint32_t id)
{
        struct sl_segment *segment = &a->segments[id];

        if (segment->next != SL_NO_SEGMENT)
                a->segments[segment->next].previous = segment->previous;
        if (segment->previous != SL_NO_SEGMENT)
                a->segments[segment->previous].next = segment->next;
        else
                segment->work->segments = segment->next;
}

static _Atomic int32_t *verdict_of(const struct sl_accumulator *a, uint32_t id)
{
        return (_Atomic int32_t *)a->verdicts.base + id;
}

static uint32_t first_members(const struct sl_assembly *assembly)
{
        return assembly->is_partial ? assembly->n_first : assembly->n_members;
}

static void begin_part(struct sl_accumulator *a, uint32_t id)
{
        const struct sl_staged_segment staged = sl_accumulator_staged(a, id);
        struct sl_segment *segment = &a->segments[id];

        segment->asked = staged.assembly->n_first;
        segment->predictions = segment->expected;
        segment->open = 0;
        segment->lacks = 0;
        segment->used = (struct sl_members_used){0};
        sl_segment_begin(&staged);
}

int sl_accumulator_open(struct sl_accumulator *a, struct sl_work *work, uint32_t start, uint32_t samples)
{
        const struct sl_assembly *assembly = work->assembly;
        uint32_t id = a->free;
        uint64_t offset = 0;

        if (id == SL_NO_SEGMENT)
                return -EAGAIN;
        struct sl_segment *segment = &a->segments[id];
        uint64_t bytes = sl_accumulator_staging_bytes(assembly, samples);
        if (bytes && sl_arena_take(a->arena, bytes, &offset) < 0)
                return -ENOMEM;

        a->free = segment->next;
        if (id == a->n_used)
                a->n_used++;
        segment->work = work;
        segment->start = start;
        segment->samples = samples;
        segment->staging = (struct sl_place){.offset = offset, .region = a->staging_region};
        segment->staging_bytes = bytes;
        segment->gpu = 0;
        segment->is_stacked = false;
        segment->expected = segment->unanswered = samples * first_members(assembly);
        /* Relaxed: the job that names this segment is published by a mailbox (B1). */
        atomic_store_explicit(&segment->missing, segment->expected, memory_order_relaxed);
        atomic_store_explicit(&segment->failures, 0, memory_order_relaxed);
        atomic_store_explicit(&segment->combined, 0, memory_order_relaxed);
        atomic_store_explicit(&segment->unstaged, 0, memory_order_relaxed);
        atomic_store_explicit(verdict_of(a, id), 0, memory_order_relaxed);
        link_segment(a, work, id);
        if (assembly->is_partial)
                begin_part(a, id);
        SL_WALK(sl_accumulator_walk(a, id));
        return (int)id;
}

void sl_accumulator_close(struct sl_accumulator *a, uint32_t id)
{
        struct sl_segment *segment = &a->segments[id];

        SL_WALK(sl_accumulator_walk(a, id));
        if (segment->staging_bytes)
                sl_arena_give(a->arena, segment->staging.offset);
        unlink_segment(a, id);
        segment->work = NULL;
        segment->next = a->free;
        a->free = id;
}

void sl_accumulator_give_up(struct sl_accumulator *a, const struct sl_work *work, int32_t verdict)
{
        for (uint32_t id = work->segments; id != SL_NO_SEGMENT; id = a->segments[id].next)
                atomic_store_explicit(verdict_of(a, id), verdict, memory_order_release); /* V1 */
}

int sl_accumulator_verdicts_fd(const struct sl_accumulator *a)
{
        return a->verdicts_fd;
}

uint64_t sl_accumulator_verdicts_bytes(const struct sl_accumulator *a)
{
        return a->verdicts.bytes;
}

const _Atomic int32_t *sl_accumulator_verdict(const struct sl_accumulator *a, uint32_t id)
{
        return verdict_of(a, id);
}

static struct sl_place skip_samples(struct sl_place place, uint32_t samples)
{
        place.offset += place.stride * samples;
        return place;
}

static void place_outputs(const struct sl_segment *segment, uint32_t member, uint32_t first, uint32_t n, struct sl_place *outputs)
{
        const struct sl_work *work = segment->work;

        if (segment->staging_bytes && member < work->assembly->n_members) {
                sl_segment_staging_places(work->assembly, &segment->staging, segment->samples, member, first, outputs);
                return;
        }
        uint32_t own = work->assembly->is_stacked ? 0 : member * work->assembly->member_outputs;

        for (uint32_t i = 0; i < n; i++)
                outputs[i] = skip_samples(work->outputs[own + i], segment->start + first);
}

void sl_accumulator_add_piece(
        struct sl_accumulator *a, struct sl_job *job, uint32_t id, uint32_t member, uint32_t first, uint32_t samples)
{
        const struct sl_segment *segment = &a->segments[id];
        uint32_t piece = job->n_pieces++;
        struct sl_place *inputs = sl_job_inputs(job, piece), *outputs = sl_job_outputs(job, piece);

        job->pieces[piece] = (struct sl_piece){.segment = id,
                .member = member,
                .first = first,
                .samples = samples,
                .start = segment->start + first,
                .origin = segment->work->origin,
                .deadline_ns = segment->work->deadline_ns};
        if (segment->is_stacked)
                sl_segment_staging_inputs(
                        segment->work->assembly, &segment->staging, segment->samples, first, job->n_inputs, inputs);
        for (uint32_t i = 0; i < job->n_inputs && !segment->is_stacked; i++)
                inputs[i] = skip_samples(segment->work->inputs[i], segment->start + first);
        place_outputs(segment, member, first, job->n_outputs, outputs);
}

struct sl_place sl_accumulator_result(const struct sl_accumulator *a, const struct sl_piece *piece, uint32_t output)
{
        const struct sl_segment *segment = &a->segments[piece->segment];

        return skip_samples(segment->work->outputs[output], segment->start + piece->first);
}

/* Relaxed: P1 of the same piece follows. */
void sl_accumulator_note_combined(struct sl_accumulator *a, const struct sl_piece *piece)
{
        struct sl_segment *segment = &a->segments[piece->segment];

        atomic_fetch_add_explicit(&segment->unstaged, piece->samples, memory_order_relaxed);
        if (piece->member == 0)
                atomic_fetch_add_explicit(&segment->combined, piece->samples, memory_order_relaxed);
}

struct sl_staged_segment sl_accumulator_staged(const struct sl_accumulator *a, uint32_t id)
{
        const struct sl_segment *segment = &a->segments[id];

        return (struct sl_staged_segment){
                .assembly = segment->work->assembly,
                .regions = a->regions,
                .staging = segment->staging,
                .outputs = segment->work->outputs,
                .start = segment->start,
                .samples = segment->samples,
        };
}

static void combine_here(const struct sl_accumulator *a, const struct sl_segment *segment)
{
        const struct sl_staged_segment staged = sl_accumulator_staged(a, (uint32_t)(segment - a->segments));

        sl_segment_combine(&staged);
}

/* Return: 0; -EIO: of what was combined elsewhere a part has not come. */
static int combine(const struct sl_accumulator *a, const struct sl_segment *segment)
{
        if (!atomic_load_explicit(&segment->unstaged, memory_order_relaxed))
                combine_here(a, segment);
        else if (atomic_load_explicit(&segment->combined, memory_order_relaxed) != segment->samples)
                return -EIO;
        SL_PROBE(segment_combined, (uint32_t)(segment - a->segments), segment->samples, segment->work->assembly->n_members);
        return 0;
}

uint32_t sl_accumulator_ask(struct sl_accumulator *a, uint32_t id, uint32_t samples)
{
        struct sl_segment *segment = &a->segments[id];

        SL_ASSERT(segment->unanswered == 0 && samples && segment->asked < segment->work->assembly->n_members);
        segment->expected = segment->unanswered = samples;
        segment->predictions += samples;
        segment->open = 0;
        atomic_store_explicit(&segment->missing, samples, memory_order_relaxed); /* B1, as at its opening */
        return segment->asked++;
}

void sl_accumulator_stack(struct sl_accumulator *a, uint32_t id)
{
        struct sl_segment *segment = &a->segments[id];

        SL_ASSERT(segment->unanswered == 0 && segment->work->assembly->is_stacked && !segment->is_stacked);
        segment->is_stacked = true;
        segment->expected = segment->unanswered = segment->samples;
        atomic_store_explicit(&segment->missing, segment->samples, memory_order_relaxed); /* B1, as at its opening */
}

static void combine_part(struct sl_accumulator *a, uint32_t id, int status)
{
        const struct sl_staged_segment staged = sl_accumulator_staged(a, id);
        struct sl_segment *segment = &a->segments[id];

        segment->open = 0;
        segment->lacks = sl_segment_combine_part(&staged, &segment->used) ? 0 : status;
        SL_PROBE(segment_combined, id, segment->samples, (uint32_t)__builtin_popcountll(segment->used.any));
}

void sl_accumulator_end(struct sl_accumulator *a, uint32_t id)
{
        combine_part(a, id, -ETIME);
}

/* All that was asked for is there, or will not be. As sl_accumulator_deliver(). */
static int end_stage(struct sl_accumulator *a, uint32_t id)
{
        struct sl_segment *segment = &a->segments[id];
        const struct sl_assembly *assembly = segment->work->assembly;
        int32_t verdict = atomic_load_explicit(verdict_of(a, id), memory_order_acquire); /* V2 */
        bool bears = assembly->quorum < assembly->n_members;
        bool late = verdict || (segment->work->deadline_ns && sl_clock_ns() >= segment->work->deadline_ns);

        if (verdict && (verdict != -ETIME || !bears))
                return 1;
        if (!bears && atomic_load_explicit(&segment->failures, memory_order_relaxed))
                return 1;
        if (!bears && late)
                return -ETIME;
        if (!late && segment->asked < assembly->n_members) {
                const struct sl_staged_segment staged = sl_accumulator_staged(a, id);

                segment->open = sl_segment_settle(&staged);
                if (segment->open)
                        return 1;
        }
        combine_part(a, id, late ? -ETIME : -EIO);
        return 1;
}

void sl_accumulator_note(struct sl_accumulator *a, const struct sl_piece *piece)
{
        if (!a->segments[piece->segment].work->assembly->is_partial)
                return;
        const struct sl_staged_segment staged = sl_accumulator_staged(a, piece->segment);

        sl_segment_note(&staged, piece->member, piece->first, piece->samples);
}

int sl_accumulator_deliver(struct sl_accumulator *a, uint32_t id, uint32_t samples, int status)
{
        struct sl_segment *segment = &a->segments[id];
        uint64_t deadline_ns = segment->work->deadline_ns;

        if (status < 0)
                atomic_fetch_add_explicit(&segment->failures, 1, memory_order_relaxed);
        if (atomic_fetch_sub_explicit(&segment->missing, samples, memory_order_seq_cst) != samples) /* P1, P2 */
                return 0;
        if (segment->work->assembly->is_partial)
                return end_stage(a, id);
        if (atomic_load_explicit(&segment->failures, memory_order_relaxed) ||
                atomic_load_explicit(verdict_of(a, id), memory_order_acquire) /* V2 */)
                return 1;
        if (deadline_ns && sl_clock_ns() >= deadline_ns)
                return -ETIME;
        return segment->staging_bytes && !segment->is_stacked && combine(a, segment) < 0 ? -EIO : 1;
}

bool sl_accumulator_delivered(const struct sl_accumulator *a, uint32_t id)
{
        return atomic_load_explicit(&a->segments[id].missing, memory_order_seq_cst) == 0; /* P3 */
}
