/* SPDX-License-Identifier: Apache-2.0 */
#include "batcher.h"
#include "exercise.h"

#include <criterion/criterion.h>
#include <string.h>

/* A model without a batch: x float32 [4] and, of its second input, indices int64 [3]. */
static struct sl_plan_info two_inputs(struct sl_port ports[3])
{
        struct sl_plan_info info = {
                .n_inputs = 2, .n_outputs = 1, .inputs = ports, .outputs = ports + 2, .n_batches = 1, .batches = {1}};

        info.inputs[0] = (struct sl_port){.name = "x", .dtype = SL_DTYPE_F32, .shape = {1, {4}}, .batch_axis = SL_PORT_NO_BATCH};
        info.inputs[1] = (struct sl_port){
                .name = "at", .dtype = SL_DTYPE_I64, .shape = {1, {3}}, .batch_axis = SL_PORT_NO_BATCH, .indexes = 1};
        info.outputs[0] = (struct sl_port){.name = "y", .dtype = SL_DTYPE_F32, .shape = {1, {4}}, .batch_axis = SL_PORT_NO_BATCH};
        return info;
}

/* A client may change its memory at any time: what is used as an index is first copied to where it cannot. */
Test(batcher, indices_are_copied_before_they_are_used_and_dense_floats_are_read_in_place)
{
        struct exercise *e = exercise_new(1, SL_RULE_NONE, 10);
        struct sl_port ports[3];
        const struct sl_plan_info info = two_inputs(ports);
        float x[4] = {1, 2, 3, 4};
        int64_t at[3] = {2, 0, 1};
        const int64_t wanted[3] = {2, 0, 1};
        struct sl_batcher *batcher;
        struct sl_batch batch;

        cr_assert_eq(sl_batcher_new(&info, 1, e->regions, &batcher), 0);
        e->inputs[0] = exercise_place(e, x, sizeof(x), 0);
        e->inputs[1] = exercise_place(e, at, sizeof(at), 0);
        e->job->n_inputs = 2;
        uint32_t id;
        exercise_segment(e, 0, 1, &id);
        sl_accumulator_add_piece(e->accumulator, e->job, id, 0, 0, 1);
        sl_batcher_begin(batcher, e->job, &(uint32_t){0}, 1);
        cr_assert(sl_batcher_next(batcher, NULL, &batch));
        memset(at, 0x7f, sizeof(at));
        cr_expect_eq(batch.inputs[0], (const void *)x);
        cr_expect_arr_eq(batch.inputs[1], wanted, sizeof(wanted));
        cr_expect_not(sl_batcher_next(batcher, NULL, &batch));
        sl_batcher_free(batcher);
        exercise_free(e);
}
