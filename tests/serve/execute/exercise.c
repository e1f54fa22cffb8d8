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

struct exercise *exercise_new(uint32_t n_members, enum sl_rule rule, uint32_t classes)
{
        struct exercise *e = calloc(1, sizeof(*e));

        describe(&e->assembly, n_members, rule, classes);
        e->first_output = calloc((size_t)EXERCISE_SAMPLES * classes, sizeof(float));
        for (uint32_t i = 0; i < e->assembly.n_outputs; i++)
                e->outputs[i] = e->first_output;
        e->work = (struct sl_work){.assembly = &e->assembly, .inputs = e->inputs, .outputs = e->outputs};
        cr_assert_eq(sl_accumulator_new(EXERCISE_SEGMENTS, 1 << 20, &e->accumulator), 0);
        return e;
}

void exercise_free(struct exercise *e)
{
        sl_accumulator_free(e->accumulator);
        free(e->first_output);
        free(e);
}

struct sl_segment *exercise_segment(struct exercise *e, uint32_t start, uint32_t samples, uint32_t *ret_id)
{
        int id = sl_accumulator_open(e->accumulator, &e->work, start, samples);

        cr_assert_geq(id, 0);
        *ret_id = (uint32_t)id;
        return sl_accumulator_segment(e->accumulator, *ret_id);
}
