/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ref backend refuses, and what it survives.
 */
#include "node_bench.h"

#include <string.h>

Test(gather, refuses_indices_out_of_bounds)
{
        const int64_t bad[] = {3, -4, INT64_MAX, INT64_MIN};
        int32_t out[2];

        for (int i = 0; i < 4; i++) {
                struct sl_node_desc node = bench_node(SL_OP_GATHER);

                bench_input(&node, SL_DTYPE_I32, SHAPE(3, 2));
                bench_input(&node, SL_DTYPE_I64, SHAPE(1));
                cr_assert_eq(bench_run(&node, INPUTS(((int32_t[]){1, 2, 3, 4, 5, 6}), &bad[i]), (void *[]){out}), -ERANGE);
        }
}

/* A cache of six places for two samples; each gets an update of two. */
static int scatter_at(int64_t mode, int64_t first, int64_t second, float out[12])
{
        struct sl_node_desc node = bench_node(SL_OP_TENSOR_SCATTER);
        const float cache[12] = {0}, update[4] = {1, 2, 3, 4};
        const int64_t at[2] = {first, second};

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 6, 1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 2, 1));
        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, mode);
        return bench_run(&node, INPUTS(cache, update, at), (void *[]){out});
}

Test(tensor_scatter, stays_inside_the_cache)
{
        const int64_t bad[] = {-1, 5, INT64_MAX, INT64_MIN};
        float out[12];

        for (int i = 0; i < 4; i++)
                cr_assert_eq(scatter_at(0, 0, bad[i], out), -ERANGE);
        cr_assert_eq(scatter_at(0, 4, 0, out), 0);
        cr_assert(out[4] == 1 && out[5] == 2 && out[6] == 3 && out[7] == 4);
        cr_assert_eq(scatter_at(1, -1, 0, out), -ERANGE);
        cr_assert_eq(scatter_at(1, 5, INT64_MAX, out), 0);
        cr_assert(out[5] == 1 && out[0] == 2 && out[6 + INT64_MAX % 6] == 3);
}

/* One query, two keys. */
static int attend_to(int64_t filled, float *ret_y)
{
        struct sl_node_desc node = bench_node(SL_OP_ATTENTION);
        const float q = 0, k[2] = {1, 1}, v[2] = {2, 4};

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1, 1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 1));
        for (int i = 0; i < 3; i++)
                bench_input(&node, SL_DTYPE_NONE, SCALAR);
        bench_input(&node, SL_DTYPE_I64, SHAPE(1));
        return bench_run(&node, INPUTS(&q, k, v, NULL, NULL, NULL, &filled), (void *[]){ret_y});
}

Test(attention, counts_the_keys_that_are_there)
{
        const int64_t bad[] = {-1, 3, INT64_MAX, INT64_MIN};
        float y = 0;

        for (int i = 0; i < 4; i++)
                cr_assert_eq(attend_to(bad[i], &y), -ERANGE);
        cr_assert(attend_to(2, &y) == 0 && y == 3);
        cr_assert(attend_to(1, &y) == 0 && y == 2);
        cr_assert(attend_to(0, &y) == 0 && y == 0);
}

static struct sl_node_desc relu(void)
{
        struct sl_node_desc node = bench_node(SL_OP_RELU);
        struct sl_error error;

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 3, 4));
        cr_assert_eq(sl_op_infer(&node, &error), 0);
        return node;
}

Test(support, ends_at_plain_static_tensors_of_known_types)
{
        struct sl_node_desc node = relu();

        cr_assert(sl_backend_ref.planner->supports(NULL, &node));
        node.inputs[0].layout = SL_LAYOUT_CHANNELS_LAST;
        cr_assert_not(sl_backend_ref.planner->supports(NULL, &node));
        node = relu();
        node.inputs[0].shape.dims[0] = SL_DIM_BATCH;
        cr_assert_not(sl_backend_ref.planner->supports(NULL, &node));
        node = relu();
        node.inputs[0].dtype = SL_DTYPE_BOOL;
        cr_assert_not(sl_backend_ref.planner->supports(NULL, &node));
        node = relu();
        node.inputs[0].dtype = 1000;
        cr_assert_not(sl_backend_ref.planner->supports(NULL, &node));
        node = relu();
        node.op = SL_OP_COUNT;
        cr_assert_not(sl_backend_ref.planner->supports(NULL, &node));
}

Test(support, does_not_reach_to_parameters_that_stand_as_inputs)
{
        struct sl_node_desc node = bench_node(SL_OP_CLIP);
        struct sl_error error;

        bench_input(&node, SL_DTYPE_F32, SHAPE(3));
        bench_input(&node, SL_DTYPE_F32, SCALAR);
        cr_assert_eq(sl_op_infer(&node, &error), 0);
        cr_assert_not(sl_backend_ref.planner->supports(NULL, &node));
        sl_attrs_set_float(&node.attrs, SL_ATTR_MIN, 0);
        cr_assert(sl_backend_ref.planner->supports(NULL, &node));
}

static int compile(const struct sl_node_desc *node, struct sl_error *error)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_kernel *kernel = NULL;
        int r = sl_backend_ref.runner->compile(
                NULL, &(struct sl_kernel_source){.node = node, .constants = constants}, &kernel, error);

        cr_assert_eq(!r, kernel != NULL);
        sl_backend_ref.runner->kernel_free(kernel);
        return r;
}

Test(compile, refuses_outputs_that_the_shape_rule_would_not_give)
{
        struct sl_node_desc node = relu();
        struct sl_error error;

        cr_assert_eq(compile(&node, &error), 0);
        node.outputs[0].shape.dims[2] = 5;
        cr_assert_eq(compile(&node, &error), -EINVAL);
        cr_assert_not_null(
                strstr(error.text, "output 0 is float32 [2,3,5], the shape rule says float32 [2,3,4]"), "%s", error.text);
        node = relu();
        node.outputs[0].dtype = SL_DTYPE_F16;
        cr_assert_eq(compile(&node, &error), -EINVAL);
        node = relu();
        node.n_inputs = 0;
        cr_assert_neq(compile(&node, &error), 0);
}

Test(compile, names_the_operator_that_it_lacks)
{
        struct sl_node_desc node = relu();
        struct sl_error error;

        node.inputs[0].dtype = SL_DTYPE_BOOL;
        cr_assert_eq(compile(&node, &error), -ENOTSUP);
        cr_assert_str_eq(error.text, "Relu: the ref backend lacks this type or layout");
}

Test(kernels, take_empty_tensors)
{
        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                struct sl_node_desc node = bench_node(op);
                struct sl_error error;
                char byte = 0;

                bench_input(&node, SL_DTYPE_F32, SHAPE(0, 2, 3));
                if (sl_op_infer(&node, &error) || !sl_backend_ref.planner->supports(NULL, &node) ||
                        sl_shape_elements(&node.outputs[0].shape))
                        continue;
                cr_assert_eq(bench_run(&node, INPUTS(&byte), (void *[]){&byte}), 0, "%s", sl_op_name(op));
        }
}

Test(packing, is_never_asked_for)
{
        struct sl_node_desc node = relu();
        struct sl_packed packed;

        memset(&packed, 0xff, sizeof(packed));
        cr_assert_eq(sl_backend_ref.planner->pack(NULL, &node, 0, &packed), 0);
        cr_assert_eq(packed.data_bytes, 0);
        cr_assert_eq(packed.form_bytes, 0);
        cr_assert_null(sl_backend_ref.runner->kernel_free(NULL));
}
