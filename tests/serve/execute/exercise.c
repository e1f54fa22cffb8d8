/* SPDX-License-Identifier: Apache-2.0 */
#include "exercise.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void describe(struct sl_assembly *assembly, uint32_t n_members, enum sl_rule rule, uint32_t classes)
{
        const struct sl_port port = {.name = "y", .dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {SL_DIM_BATCH, classes}}};

        assembly->rule = rule;
        assembly->direct = rule == SL_RULE_NONE;
        assembly->n_members = n_members;
        assembly->member_outputs = 1;
        assembly->n_outputs = assembly->direct ? n_members : 1;
        for (uint32_t i = 0; i < assembly->n_outputs; i++)
                cr_assert_eq(sl_served_port_init(&assembly->outputs[i], &port), 0);
}

struct sl_place exercise_place(struct exercise *e, void *memory, uint64_t bytes, uint64_t stride)
{
        int number = sl_regions_add(e->regions, memory, bytes, -1);

        cr_assert_geq(number, 0);
        return (struct sl_place){.region = (uint32_t)number, .stride = stride};
}

struct exercise *exercise_new(uint32_t n_members, enum sl_rule rule, uint32_t classes)
{
        struct exercise *e = calloc(1, sizeof(*e));
        size_t bytes = (size_t)EXERCISE_SAMPLES * classes * sizeof(float);

        e->assembly.outputs = e->ports;
        describe(&e->assembly, n_members, rule, classes);
        cr_assert_eq(sl_regions_new(EXERCISE_REGIONS, &e->regions), 0);
        cr_assert_eq(sl_accumulator_new(e->regions, EXERCISE_SEGMENTS, 1 << 20, &e->accumulator), 0);
        e->first_output = calloc(1, bytes);
        for (uint32_t i = 0; i < e->assembly.n_outputs; i++)
                e->outputs[i] = exercise_place(e, e->first_output, bytes, classes * sizeof(float));
        e->work = (struct sl_work){.assembly = &e->assembly, .inputs = e->inputs, .outputs = e->outputs, .segments = SL_NO_SEGMENT};
        e->job = calloc(1, sl_job_bytes(2, 1));
        e->job->n_inputs = 0;
        e->job->n_outputs = 1;
        return e;
}

void exercise_free(struct exercise *e)
{
        sl_accumulator_free(e->accumulator);
        sl_regions_free(e->regions);
        free(e->first_output);
        free(e->job);
        free(e);
}

float *exercise_output(struct exercise *e, uint32_t segment, uint32_t member, uint32_t first)
{
        const struct sl_segment *s = sl_accumulator_segment(e->accumulator, segment);
        struct sl_place place;
        struct sl_job *job = calloc(1, sl_job_bytes(0, 1));

        job->n_outputs = 1;
        sl_accumulator_add_piece(e->accumulator, job, segment, member, first, s->samples - first);
        place = *sl_job_outputs(job, 0);
        free(job);
        return sl_regions_at(e->regions, &place);
}

struct sl_segment *exercise_segment(struct exercise *e, uint32_t start, uint32_t samples, uint32_t *ret_id)
{
        int id = sl_accumulator_open(e->accumulator, &e->work, start, samples);

        cr_assert_geq(id, 0);
        *ret_id = (uint32_t)id;
        return sl_accumulator_segment(e->accumulator, *ret_id);
}
