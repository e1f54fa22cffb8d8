/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors, attributes and the operator table.
 */
#include "node_bench.h"

#include <string.h>

Test(tensor, elements_are_the_product_and_one_for_a_scalar)
{
        cr_assert_eq(sl_shape_elements(&SHAPE(2, 3, 4)), 24);
        cr_assert_eq(sl_shape_elements(&SCALAR), 1);
        cr_assert_eq(sl_shape_elements(&SHAPE(2, 0)), 0);
}

Test(tensor, elements_of_what_is_unknown_or_too_many_are_the_maximum)
{
        cr_assert_eq(sl_shape_elements(&SHAPE(N, 3)), UINT64_MAX);
        cr_assert_eq(sl_shape_elements(&SHAPE(0, U)), UINT64_MAX);
        cr_assert_eq(sl_shape_elements(&SHAPE(1ll << 40, 1ll << 40)), UINT64_MAX);
        cr_assert_eq(sl_shape_elements(&SHAPE(1ll << 40, 1ll << 40, 0)), 0);
}

Test(tensor, bytes_do_not_overflow)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F64, .shape = SHAPE(1ll << 31, 1ll << 31)};

        cr_assert_eq(sl_tensor_bytes(&tensor), UINT64_MAX);
        tensor.shape = SHAPE(3, 5);
        cr_assert_eq(sl_tensor_bytes(&tensor), 120);
}

Test(tensor, text_says_batch_and_unknown)
{
        char text[SL_SHAPE_TEXT_BYTES];

        cr_assert_str_eq(sl_shape_print(&SHAPE(N, 3, U, 224), text), "[N,3,?,224]");
        cr_assert_str_eq(sl_shape_print(&SCALAR, text), "[]");
        sl_shape_print(&SHAPE(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX), text);
        cr_assert_eq(strlen(text), 2 + 8 * 19 + 7);
}

Test(tensor, strides_follow_the_layout)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = SHAPE(2, 3, 4, 5)};
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(&tensor, strides);
        cr_assert_arr_eq(strides, ((int64_t[]){60, 20, 5, 1}), 4 * sizeof(int64_t));
        tensor.layout = SL_LAYOUT_CHANNELS_LAST;
        sl_tensor_strides(&tensor, strides);
        cr_assert_arr_eq(strides, ((int64_t[]){60, 1, 15, 3}), 4 * sizeof(int64_t));
}

Test(attributes, are_set_replaced_found_and_removed)
{
        struct sl_attrs attrs = {.count = 0};

        cr_assert_eq(sl_attrs_set_int(&attrs, SL_ATTR_AXIS, 3), 0);
        cr_assert_eq(sl_attrs_set_float(&attrs, SL_ATTR_ALPHA, 0.5), 0);
        cr_assert_eq(sl_attrs_set_ints(&attrs, SL_ATTR_AXIS, (int64_t[]){7, 8}, 2), 0);
        cr_assert_eq(attrs.count, 2);
        cr_assert_eq(sl_attrs_ints(&attrs, SL_ATTR_AXIS, 1, -1), 8);
        cr_assert_eq(sl_attrs_ints(&attrs, SL_ATTR_AXIS, 2, -1), -1);
        sl_attrs_remove(&attrs, SL_ATTR_AXIS);
        cr_assert_null(sl_attrs_find(&attrs, SL_ATTR_AXIS));
        cr_assert_eq(sl_attrs_float(&attrs, SL_ATTR_ALPHA, 0), 0.5);
}

Test(attributes, of_another_type_give_the_fallback)
{
        struct sl_attrs attrs = {.count = 0};

        cr_assert_eq(sl_attrs_set_float(&attrs, SL_ATTR_AXIS, 2), 0);
        cr_assert_eq(sl_attrs_int(&attrs, SL_ATTR_AXIS, -9), -9);
}

Test(attributes, hold_lists_of_floats_as_they_hold_lists_of_integers)
{
        struct sl_attrs attrs = {.count = 0};
        double many[SL_ATTR_INTS_MAX + 1] = {0};

        cr_assert_eq(sl_attrs_set_floats(&attrs, SL_ATTR_SCALES, (double[]){1, 2.5}, 2), 0);
        cr_assert_eq(sl_attrs_floats(&attrs, SL_ATTR_SCALES, 1, -1), 2.5);
        cr_assert_eq(sl_attrs_floats(&attrs, SL_ATTR_SCALES, 2, -1), -1);
        cr_assert_eq(sl_attrs_ints(&attrs, SL_ATTR_SCALES, 0, -1), -1);
        cr_assert_eq(sl_attrs_set_floats(&attrs, SL_ATTR_SIZES, many, SL_ATTR_INTS_MAX + 1), -E2BIG);
}

Test(attributes, refuse_more_than_there_is_room_for)
{
        struct sl_attrs attrs = {.count = 0};
        int64_t many[SL_ATTR_INTS_MAX + 1] = {0};

        cr_assert_eq(sl_attrs_set_ints(&attrs, SL_ATTR_PADS, many, SL_ATTR_INTS_MAX + 1), -E2BIG);
        cr_assert_eq(attrs.count, 0);
        for (uint32_t id = 0; id < SL_NODE_ATTRS_MAX; id++)
                cr_assert_eq(sl_attrs_set_int(&attrs, id, 1), 0);
        cr_assert_eq(sl_attrs_set_int(&attrs, SL_NODE_ATTRS_MAX, 1), -E2BIG);
        cr_assert_eq(sl_attrs_set_int(&attrs, 0, 2), 0, "a present one is replaced even when the node is full");
}

/* ONNX's names have no dot. */
static bool is_internal(uint32_t op)
{
        return strchr(sl_op_name(op), '.') != NULL;
}

Test(operators, are_found_by_their_onnx_name)
{
        for (uint32_t op = 0; op < SL_OP_COUNT; op++)
                if (!is_internal(op))
                        cr_assert_eq(sl_op_find(sl_op_name(op)), (int)op);
        cr_assert_eq(sl_op_find("NoSuchOperator"), -ENOENT);
        cr_assert_eq(sl_op_find(""), -ENOENT);
}

Test(operators, that_are_internal_are_never_found)
{
        for (uint32_t op = 0; op < SL_OP_COUNT; op++)
                if (is_internal(op))
                        cr_assert_eq(sl_op_find(sl_op_name(op)), -ENOENT);
}

Test(operators, out_of_the_table_are_refused)
{
        struct sl_node_desc node = {.op = SL_OP_COUNT, .n_outputs = 1};
        struct sl_error error;

        cr_assert_str_eq(sl_op_name(SL_OP_COUNT), "unknown");
        cr_assert_eq(sl_op_infer(&node, &error), -EINVAL);
        cr_assert_eq(sl_op_infer(&node, NULL), -EINVAL);
}

Test(operators, count_their_multiply_adds)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 8, 10, 10));
        bench_input(&node, SL_DTYPE_F32, SHAPE(16, 4, 3, 3));
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 2);
        bench_expect_shape(&node, 0, SHAPE(2, 16, 8, 8));
        cr_assert_eq(sl_op_multiply_adds(&node), 2ull * 16 * 8 * 8 * 4 * 9);

        node = bench_node(SL_OP_MATMUL);
        bench_input(&node, SL_DTYPE_F32, SHAPE(5, 2, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(3, 7));
        bench_expect_shape(&node, 0, SHAPE(5, 2, 7));
        cr_assert_eq(sl_op_multiply_adds(&node), 5ull * 2 * 7 * 3);

        node = bench_node(SL_OP_RELU);
        bench_input(&node, SL_DTYPE_F32, SHAPE(5));
        bench_expect_shape(&node, 0, SHAPE(5));
        cr_assert_eq(sl_op_multiply_adds(&node), 0);
}

Test(operators, know_their_parameters_from_data)
{
        struct sl_node_desc node = bench_node(SL_OP_RESHAPE);

        cr_assert_eq(sl_op_parameter(SL_OP_SLICE, 4), SL_ATTR_STEPS);
        cr_assert_eq(sl_op_parameter(SL_OP_SLICE, 0), -ENOENT);
        cr_assert_eq(sl_op_parameter(SL_OP_GATHER, 1), -ENOENT);
        bench_input(&node, SL_DTYPE_F32, SHAPE(3));
        bench_input(&node, SL_DTYPE_I64, SHAPE(1));
        cr_assert_not(sl_op_parameters_resolved(&node));
        BENCH_INTS(&node, SL_ATTR_SHAPE, 3);
        cr_assert(sl_op_parameters_resolved(&node));
        sl_attrs_remove(&node.attrs, SL_ATTR_SHAPE);
        node.inputs[1].dtype = SL_DTYPE_NONE;
        cr_assert(sl_op_parameters_resolved(&node));
}

Test(operators, say_how_long_a_range_is)
{
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_I64, &(int64_t){1}, &(int64_t){10}, &(int64_t){3}), 3);
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_I64, &(int64_t){10}, &(int64_t){1}, &(int64_t){-3}), 3);
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_I32, &(int32_t){1}, &(int32_t){1}, &(int32_t){1}), 0);
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_F32, &(float){0}, &(float){1}, &(float){0.3f}), 4);
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_I64, &(int64_t){0}, &(int64_t){1}, &(int64_t){0}), -EINVAL);
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_I64, &(int64_t){INT64_MIN}, &(int64_t){INT64_MAX}, &(int64_t){1}), -EOVERFLOW);
        cr_assert_eq(sl_op_range_elements(SL_DTYPE_BOOL, "", "", ""), -EINVAL);
}

Test(backends, are_found_by_name)
{
        cr_assert_eq(sl_backend_find("ref"), &sl_backend_ref);
        cr_assert_null(sl_backend_find("abacus"));
}

Test(backends, each_says_what_its_plans_depend_on_in_one_line)
{
        const struct sl_backend *backend;
        char key[SL_BACKEND_KEY_BYTES], again[SL_BACKEND_KEY_BYTES];

        for (uint32_t i = 0; (backend = sl_backend_at(i)); i++) {
                cr_expect_lt(strlen(backend->name), SL_BACKEND_NAME_BYTES);
                if (!backend->key)
                        continue;
                if (backend == &sl_backend_cuda && backend->key(&sl_target_typical, again) == -ENOENT)
                        continue; /* there is no module */
                cr_assert_eq(backend->key(&sl_target_typical, again), 0);
                if (backend->planner->traits & SL_PLANNER_ALONE)
                        strcpy(key, again); /* whose device may be elsewhere */
                else
                        cr_assert_eq(backend->key(NULL, key), 0);
                cr_expect_str_eq(key, again, "the compiler and who serves must agree");
                cr_expect_gt(strlen(key), 0);
                cr_expect_null(strchr(key, '\n'));
        }
}

Test(figures, of_a_core_come_back_from_their_text)
{
        struct sl_core_figures core = sl_target_typical.core, back;
        char text[SL_CORE_FIGURES_TEXT_BYTES];

        core.flops = 1.23e11;
        sl_core_figures_print(&core, text);
        cr_assert(sl_core_figures_parse(text, &back), "%s", text);
        cr_expect_arr_eq(&core, &back, sizeof(core));
        cr_assert(sl_core_figures_parse("far=3e10", &back));
        sl_core_figures_print(&back, text);
        cr_expect_str_eq(text, "far=3e+10");
        back = sl_core_figures_complete(&back);
        cr_expect(sl_core_figures_are_sound(&back));
        cr_expect_eq(back.far, 3e10);
        cr_expect_eq(back.flops, sl_target_typical.core.flops);
        cr_assert(sl_core_figures_parse("", &back));
        cr_expect_not(sl_core_figures_are_sound(&back));
}

Test(figures, that_are_none_are_refused)
{
        static const char *const texts[] = {"flops", "flops=", "flops=0", "flops=-1", "flops=nan", "flops=1e19", "flops=1,",
                "speed=1", "flops=1;far=2", "flops=1 far=2", ",flops=1"};
        struct sl_core_figures core;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                cr_expect_not(sl_core_figures_parse(texts[i], &core), "%s", texts[i]);
}
