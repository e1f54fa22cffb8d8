/* SPDX-License-Identifier: Apache-2.0 */
#include "segment_staging.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "boxes.h"
#include "combine.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static const struct sl_served_port *staged_port(const struct sl_assembly *assembly, uint32_t member, uint32_t output)
{
        return assembly->staged ? &assembly->staged[member * assembly->member_outputs + output] : &assembly->outputs[output];
}

static uint64_t output_bytes(const struct sl_assembly *assembly, uint32_t member, uint32_t output, uint32_t samples)
{
        return sl_align_up(sl_served_port_bytes(staged_port(assembly, member, output), samples), SL_LINE_BYTES);
}

static uint64_t member_bytes(const struct sl_assembly *assembly, uint32_t member, uint32_t samples)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < assembly->member_outputs; i++)
                bytes += output_bytes(assembly, member, i, samples);
        return bytes;
}

/* Of all members before this one. */
static uint64_t members_bytes(const struct sl_assembly *assembly, uint32_t member, uint32_t samples)
{
        uint64_t bytes = 0;

        if (!assembly->staged)
                return member_bytes(assembly, 0, samples) * member;
        for (uint32_t m = 0; m < member; m++)
                bytes += member_bytes(assembly, m, samples);
        return bytes;
}

static uint64_t scratch_offset(const struct sl_assembly *assembly, uint32_t samples)
{
        return members_bytes(assembly, assembly->n_members, samples) +
               sl_align_up(assembly->stacked_bytes * samples, SL_LINE_BYTES);
}

uint64_t sl_segment_staging_bytes(const struct sl_assembly *assembly, uint32_t samples)
{
        uint64_t bytes = assembly->direct ? 0 : scratch_offset(assembly, samples) + assembly->scratch_bytes;

        return assembly->is_partial ? bytes + samples * (sizeof(uint64_t) + 1) : bytes;
}

void sl_segment_staging_places(const struct sl_assembly *assembly, const struct sl_place *staging, uint32_t samples,
        uint32_t member, uint32_t first, struct sl_place *ret_outputs)
{
        struct sl_place place = *staging;

        place.offset += members_bytes(assembly, member, samples);
        for (uint32_t i = 0; i < assembly->member_outputs; i++) {
                ret_outputs[i] = place;
                ret_outputs[i].stride = sl_served_port_stride(staged_port(assembly, member, i));
                ret_outputs[i].offset += ret_outputs[i].stride * first;
                place.offset += output_bytes(assembly, member, i, samples);
        }
}

void sl_segment_staging_inputs(const struct sl_assembly *assembly, const struct sl_place *staging, uint32_t samples, uint32_t first,
        uint32_t n_inputs, struct sl_place *ret_inputs)
{
        if (assembly->stacked_bytes) {
                ret_inputs[0] = *staging;
                ret_inputs[0].stride = assembly->stacked_bytes;
                ret_inputs[0].offset += members_bytes(assembly, assembly->n_members, samples) + assembly->stacked_bytes * first;
                return;
        }
        for (uint32_t i = 0; i < n_inputs; i += assembly->member_outputs)
                sl_segment_staging_places(assembly, staging, samples, i / assembly->member_outputs, first, ret_inputs + i);
}

/* Of the segment's sample @sample; NULL: nobody wants it. */
static void *output_at(const struct sl_staged_segment *s, uint32_t output, uint32_t sample)
{
        struct sl_place place = s->outputs[output];

        if (place.region == SL_NO_REGION)
                return NULL;
        place.offset += place.stride * (s->start + (uint64_t)sample);
        return sl_regions_at(s->regions, &place);
}

/* Some samples of a segment, and the members whose predictions count. */
struct rows {
        uint32_t first, samples;
        uint64_t members; /* a bit for each */
};

static uint64_t all_members(const struct sl_assembly *assembly)
{
        return assembly->n_members < 64 ? (UINT64_C(1) << assembly->n_members) - 1 : UINT64_MAX;
}

static size_t classes_of(const struct sl_served_port *port)
{
        const struct sl_shape *shape = &port->port.shape;
        bool has_classes = shape->rank > (port->port.batch_axis == SL_PORT_NO_BATCH ? 0 : 1);

        return has_classes ? (size_t)shape->dims[shape->rank - 1] : 1;
}

/* Where output @output of each member begins. */
static void find_staged(const struct sl_staged_segment *s, uint32_t output, struct sl_place *ret_staged)
{
        const struct sl_assembly *assembly = s->assembly;
        uint64_t offset = 0;

        for (uint32_t i = 0; i < output; i++)
                offset += output_bytes(assembly, 0, i, s->samples);
        for (uint32_t m = 0; m < assembly->n_members; m++) {
                ret_staged[m] = s->staging;
                ret_staged[m].offset += members_bytes(assembly, m, s->samples) + offset;
        }
}

/* @staged: of find_staged(). */
static void combine_rows(const struct sl_staged_segment *s, uint32_t output, const struct sl_place *staged, const struct rows *rows,
        float *ret_output)
{
        const struct sl_assembly *assembly = s->assembly;
        const struct sl_served_port *port = &assembly->outputs[output];
        const float *predictions[SL_MEMBERS_MAX], *class_weights[SL_MEMBERS_MAX];
        size_t elements = sl_served_port_bytes(port, rows->samples) / sizeof(float), classes = classes_of(port);
        float weights[SL_MEMBERS_MAX];
        uint32_t n = 0;

        for (uint32_t m = 0; m < assembly->n_members; m++) {
                if (!(rows->members >> m & 1))
                        continue;
                predictions[n] = (const float *)sl_regions_at(s->regions, &staged[m]) +
                                 sl_served_port_stride(port) / sizeof(float) * rows->first;
                weights[n] = assembly->weights[m];
                class_weights[n] = assembly->class_weights ? assembly->class_weights + m * classes : NULL;
                n++;
        }
        sl_combine(&(struct sl_combination){
                .rule = assembly->rule,
                .n_members = n,
                .weights = weights,
                .class_weights = assembly->class_weights ? class_weights : NULL,
                .is_part = n < assembly->n_members,
                .predictions = predictions,
                .samples = elements / classes,
                .classes = classes,
                .output = ret_output,
        });
}

static void combine_outputs(const struct sl_staged_segment *s, const struct rows *rows)
{
        struct sl_place staged[SL_MEMBERS_MAX];

        for (uint32_t i = 0; i < s->assembly->n_outputs; i++) {
                float *output = output_at(s, i, rows->first);

                if (!output)
                        continue;
                find_staged(s, i, staged);
                combine_rows(s, i, staged, rows, output);
        }
}

/* ---- boxes ---- */

/* Of member @member, the output that is boxes, scores, ... of sample @sample. NULL: it has none. */
static const void *box_part(const struct sl_staged_segment *s, uint32_t member, enum sl_box_output part, uint32_t sample)
{
        const struct sl_assembly *assembly = s->assembly;
        uint32_t output = assembly->box_outputs[part];
        struct sl_place place = s->staging;

        if (output == SL_NO_OUTPUT)
                return NULL;
        place.offset += members_bytes(assembly, member, s->samples);
        for (uint32_t i = 0; i < output; i++)
                place.offset += output_bytes(assembly, member, i, s->samples);
        place.offset += sl_served_port_stride(staged_port(assembly, member, output)) * sample;
        return sl_regions_at(s->regions, &place);
}

static void *box_result(const struct sl_staged_segment *s, enum sl_box_output part, uint32_t sample)
{
        uint32_t output = s->assembly->box_outputs[part];

        return output == SL_NO_OUTPUT ? NULL : output_at(s, output, sample);
}

static uint32_t box_dtype(const struct sl_assembly *assembly, enum sl_box_output part)
{
        uint32_t output = assembly->box_outputs[part];

        return output == SL_NO_OUTPUT ? 0 : assembly->outputs[output].port.dtype;
}

static uint32_t box_places(const struct sl_served_port *boxes)
{
        return (uint32_t)(boxes->sample_bytes / (4 * sizeof(float)));
}

static void fuse_sample(const struct sl_staged_segment *s, uint32_t sample, uint64_t members, void *scratch)
{
        const struct sl_assembly *assembly = s->assembly;
        uint32_t boxes = assembly->box_outputs[SL_BOX_BOXES];
        struct sl_box_list lists[SL_MEMBERS_MAX];
        uint32_t n = 0;

        for (uint32_t m = 0; m < assembly->n_members; m++) {
                if (!(members >> m & 1))
                        continue;
                lists[n++] = (struct sl_box_list){
                        .boxes = box_part(s, m, SL_BOX_BOXES, sample),
                        .scores = box_part(s, m, SL_BOX_SCORES, sample),
                        .labels = box_part(s, m, SL_BOX_LABELS, sample),
                        .count = box_part(s, m, SL_BOX_COUNT, sample),
                        .places = box_places(staged_port(assembly, m, boxes)),
                        .weight = assembly->weights[m],
                };
        }
        sl_fuse_boxes(&(struct sl_box_fusion){
                .rule = assembly->rule,
                .overlap = assembly->combining->overlap,
                .score_min = assembly->combining->score_min,
                .sigma = assembly->combining->sigma,
                .n_lists = n,
                .lists = lists,
                .label_dtype = box_dtype(assembly, SL_BOX_LABELS),
                .count_dtype = box_dtype(assembly, SL_BOX_COUNT),
                .scratch = scratch,
                .places = box_places(&assembly->outputs[boxes]),
                .boxes = box_result(s, SL_BOX_BOXES, sample),
                .scores = box_result(s, SL_BOX_SCORES, sample),
                .labels = box_result(s, SL_BOX_LABELS, sample),
                .count = box_result(s, SL_BOX_COUNT, sample),
        });
}

static void *scratch_at(const struct sl_staged_segment *s)
{
        struct sl_place scratch = s->staging;

        scratch.offset += scratch_offset(s->assembly, s->samples);
        return sl_regions_at(s->regions, &scratch);
}

static void fuse_boxes(const struct sl_staged_segment *s, const struct rows *rows)
{
        for (uint32_t i = 0; i < rows->samples; i++)
                fuse_sample(s, rows->first + i, rows->members, scratch_at(s));
}

/* ---- stacking ---- */

/* Of one member's output, into rows of all of them side by side. */
static void stack_output(const struct sl_staged_segment *s, const struct sl_place *from, uint64_t bytes, unsigned char *to)
{
        const unsigned char *sample = sl_regions_at(s->regions, from);

        for (uint32_t i = 0; i < s->samples; i++, sample += bytes, to += s->assembly->stacked_bytes)
                memcpy(to, sample, bytes);
}

static void stack(const struct sl_staged_segment *s)
{
        const struct sl_assembly *assembly = s->assembly;
        struct sl_place places[SL_MODEL_TENSORS_MAX], row = s->staging;

        if (!assembly->stacked_bytes)
                return;
        row.offset += members_bytes(assembly, assembly->n_members, s->samples);
        for (uint32_t m = 0; m < assembly->n_members; m++) {
                sl_segment_staging_places(assembly, &s->staging, s->samples, m, 0, places);
                for (uint32_t i = 0; i < assembly->member_outputs; i++) {
                        uint64_t bytes = staged_port(assembly, m, i)->sample_bytes;

                        stack_output(s, &places[i], bytes, sl_regions_at(s->regions, &row));
                        row.offset += bytes;
                }
        }
}

static void combine(const struct sl_staged_segment *s, const struct rows *rows)
{
        if (s->assembly->is_stacked)
                stack(s);
        else if (sl_rule_is_of_boxes(s->assembly->rule))
                fuse_boxes(s, rows);
        else
                combine_outputs(s, rows);
}

void sl_segment_combine(const struct sl_staged_segment *s)
{
        combine(s, &(struct rows){.samples = s->samples, .members = all_members(s->assembly)});
}

/* ---- where members may be missing ---- */

static _Atomic uint64_t *answered_at(const struct sl_staged_segment *s)
{
        return (_Atomic uint64_t *)((unsigned char *)scratch_at(s) + s->assembly->scratch_bytes);
}

static unsigned char *settled_at(const struct sl_staged_segment *s)
{
        return (unsigned char *)(answered_at(s) + s->samples);
}

void sl_segment_begin(const struct sl_staged_segment *s)
{
        memset((void *)answered_at(s), 0, s->samples * (sizeof(uint64_t) + 1));
}

/* Relaxed: P1 follows, and P2 goes before who reads it. */
void sl_segment_note(const struct sl_staged_segment *s, uint32_t member, uint32_t first, uint32_t samples)
{
        _Atomic uint64_t *answered = answered_at(s);
        const unsigned char *settled = settled_at(s);

        SL_ASSERT(first + samples <= s->samples);
        for (uint32_t i = first; i < first + samples; i++)
                if (!settled[i])
                        atomic_fetch_or_explicit(&answered[i], UINT64_C(1) << member, memory_order_relaxed);
}

static uint64_t answered_by(const struct sl_staged_segment *s, uint32_t sample)
{
        return atomic_load_explicit(&answered_at(s)[sample], memory_order_relaxed);
}

/* The first of equals; who says that something is not a number says nothing. Return: SIZE_MAX: nothing. */
static size_t vote_of(const float *row, size_t classes)
{
        size_t best = 0;

        for (size_t i = 0; i < classes; i++) {
                if (row[i] != row[i])
                        return SIZE_MAX;
                if (row[i] > row[best])
                        best = i;
        }
        return best;
}

/* Do as many as it takes have the same largest class? */
static bool agree(const struct sl_staged_segment *s, const struct sl_place *staged, const struct rows *row)
{
        const struct sl_served_port *port = &s->assembly->outputs[0];
        size_t votes[SL_MEMBERS_MAX], classes = classes_of(port);
        uint32_t n = 0;

        for (uint32_t m = 0; m < s->assembly->n_members; m++) {
                const float *predictions = sl_regions_at(s->regions, &staged[m]);
                uint32_t same = 1;

                if (!(row->members >> m & 1))
                        continue;
                votes[n] = vote_of(predictions + sl_served_port_stride(port) / sizeof(float) * row->first, classes);
                for (uint32_t i = 0; i < n; i++)
                        same += votes[i] == votes[n];
                if (votes[n++] != SIZE_MAX && same >= s->assembly->agree)
                        return true;
        }
        return false;
}

/* Is the largest class far enough above the next one? Not if one of them is no number. */
static bool leads(const struct sl_staged_segment *s, const struct sl_place *staged, const struct rows *row)
{
        size_t classes = classes_of(&s->assembly->outputs[0]), best;
        float *result = scratch_at(s), next = -INFINITY;

        combine_rows(s, 0, staged, row, result);
        best = vote_of(result, classes);
        for (size_t i = 0; i < classes && best != SIZE_MAX; i++)
                if (i != best && result[i] > next)
                        next = result[i];
        return best != SIZE_MAX && result[best] - next >= s->assembly->margin;
}

uint32_t sl_segment_settle(const struct sl_staged_segment *s)
{
        unsigned char *settled = settled_at(s);
        struct sl_place staged[SL_MEMBERS_MAX];
        uint32_t open = 0;

        find_staged(s, 0, staged);
        for (uint32_t i = 0; i < s->samples; i++) {
                const struct rows row = {.first = i, .samples = 1, .members = answered_by(s, i)};

                if (!settled[i] && row.members)
                        settled[i] = s->assembly->agree ? agree(s, staged, &row) : leads(s, staged, &row);
                open += !settled[i];
        }
        return open;
}

bool sl_segment_next_open(const struct sl_staged_segment *s, uint32_t at, uint32_t *ret_first, uint32_t *ret_samples)
{
        const unsigned char *settled = settled_at(s);
        uint32_t first = at, end;

        while (first < s->samples && settled[first])
                first++;
        for (end = first; end < s->samples && !settled[end];)
                end++;
        *ret_first = first;
        *ret_samples = end - first;
        return end > first;
}

bool sl_segment_combine_part(const struct sl_staged_segment *s, struct sl_members_used *ret_used)
{
        const unsigned char *settled = settled_at(s);
        struct sl_members_used used = {.all = UINT64_MAX};
        struct rows rows = {0};

        for (uint32_t i = 0; i < s->samples; i++)
                if (!settled[i] && (uint32_t)__builtin_popcountll(answered_by(s, i)) < s->assembly->quorum)
                        return false;
        for (uint32_t i = 0; i < s->samples; i += rows.samples) {
                rows = (struct rows){.first = i, .samples = 1, .members = answered_by(s, i)};
                while (i + rows.samples < s->samples && answered_by(s, i + rows.samples) == rows.members)
                        rows.samples++;
                used.any |= rows.members;
                used.all &= rows.members;
                combine(s, &rows);
        }
        *ret_used = used;
        return true;
}
