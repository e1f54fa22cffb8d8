/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of how nodes are cut: found for an equal node, for no other one, and as long as there is room. */
#include "backend.h"
#include "kernel_source.h"
#include "known_splits.h"
#include "op.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct sl_node_desc product = {.op = SL_OP_MATMUL,
        .n_inputs = 2,
        .n_outputs = 1,
        .inputs = {{.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {4, 8}}},
                {.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {8, 16}}}},
        .outputs = {{.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {4, 16}}}}};

static uint64_t key_of(const struct sl_node_desc *node, const struct sl_packed *packed, const void *const *constants)
{
        return sl_known_splits_key(
                &sl_backend_ref, &(struct sl_kernel_source){.node = node, .packed = packed, .constants = constants});
}

Test(known_splits, a_node_is_equal_whatever_its_weights_hold)
{
        const float a = 1, b = 2;
        const void *one[] = {NULL, &a}, *other[] = {NULL, &b}, *computed[] = {NULL, NULL};

        cr_expect_eq(key_of(&product, NULL, one), key_of(&product, NULL, other));
        cr_expect_neq(key_of(&product, NULL, one), key_of(&product, NULL, computed));
}

Test(known_splits, shape_form_times_and_backend_tell_nodes_apart)
{
        struct sl_packed packed[SL_NODE_INPUTS_MAX] = {{0}};
        struct sl_part_times times = {.members = 2, .seconds = {1, 1, 1}};
        const struct sl_kernel_source source = {.node = &product}, timed = {.node = &product, .times = &times};
        struct sl_node_desc larger = product;
        uint64_t plain = key_of(&product, NULL, NULL);

        larger.inputs[0].shape.dims[0] = larger.outputs[0].shape.dims[0] = 8;
        packed[1] = (struct sl_packed){.data_bytes = 512, .form_bytes = 1, .form = {7}};
        cr_expect_neq(key_of(&larger, NULL, NULL), plain);
        cr_expect_neq(key_of(&product, packed, NULL), plain);
        cr_expect_neq(sl_known_splits_key(&sl_backend_ref, &timed), plain);
        cr_expect_neq(sl_known_splits_key(&sl_backend_cpu, &source), plain);
}

Test(known_splits, the_last_ones_are_kept)
{
        static struct sl_known_splits known;
        struct sl_provision provision = {0}, found;

        cr_assert(!sl_known_splits_find(&known, 0, &found), "nothing was put");
        for (uint32_t i = 0; i <= SL_KNOWN_SPLITS; i++) {
                provision.splits[0] = (struct sl_split){SL_AXIS_ROWS, (uint8_t)i, 0, 0};
                provision.seconds.whole = i;
                sl_known_splits_put(&known, i, &provision);
        }
        cr_assert(!sl_known_splits_find(&known, 0, &found), "the first one made room");
        cr_assert(sl_known_splits_find(&known, SL_KNOWN_SPLITS - 1, &found));
        cr_assert_eq(found.splits[0].axis, SL_AXIS_ROWS);
        cr_assert_eq(found.splits[0].members, (uint8_t)(SL_KNOWN_SPLITS - 1));
        cr_assert_eq(found.seconds.whole, SL_KNOWN_SPLITS - 1);
}
