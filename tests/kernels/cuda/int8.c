/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bytes on the backend "cuda": what ref makes of them, to the bit, on a GPU that is not there. Those whose channels are
 * multiples of 4 are products of int8, by cuDNN and as rows of cuBLASLt, others of float32.
 */
#include "base/error.h"
#include "cuda/planning.h"
#include "fake_ground.h"
#include "fake_libraries.h"
#include "network.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 2
#define MOST  65536

struct layer {
        uint32_t x_type; /* uint8 or int8 */
        int64_t x_zero, channels, filters, height, width;
        int64_t kernel[2], stride[2], pads[4], dilation[2], groups;
        bool product, turned, bias, relu;
        uint32_t to; /* 0: float32 */
};

static struct network net;
static uint8_t x[MOST];
static float y[MOST], wanted[MOST]; /* or bytes */

static int64_t random_below(int64_t n)
{
        return (int64_t)((network_random(&net) + 1) / 2 * (float)n) % n;
}

static int64_t random_of(const int64_t *values, int64_t n)
{
        return values[random_below(n)];
}

static uint32_t add_constant(uint32_t dtype, uint32_t rank, const int64_t *dims, int64_t reach)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = rank}};
        uint64_t elements;
        uint32_t value;
        void *data;

        memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
        elements = sl_shape_elements(&tensor.shape);
        data = sl_graph_alloc(net.graph, sl_tensor_bytes(&tensor));
        for (uint64_t i = 0; i < elements; i++) {
                int64_t number = random_below(2 * reach) - reach;

                if (dtype == SL_DTYPE_I8)
                        ((int8_t *)data)[i] = (int8_t)number;
                else
                        ((int32_t *)data)[i] = (int32_t)number;
        }
        cr_assert_eq(sl_graph_add_constant(net.graph, "constant", &tensor, data, &value), 0);
        return value;
}

/* The node that was added last: what it is rounded to, and a Relu. */
static void finish_node(const struct layer *l)
{
        struct sl_node *node = &net.graph->nodes[net.graph->n_nodes - 1];
        struct sl_error error = {""};

        (void)sl_attrs_set_int(&node->attrs, SL_ATTR_TO, l->to ? l->to : SL_DTYPE_F32);
        (void)sl_attrs_set_int(&node->attrs, SL_ATTR_Y_ZERO, l->to == SL_DTYPE_U8 ? 100 : -20);
        (void)sl_attrs_set_float(&node->attrs, SL_ATTR_Y_SCALE, 777);
        node->epilogue.activation = l->relu ? SL_ACT_RELU : SL_ACT_NONE;
        cr_assert_eq(sl_graph_infer_node(net.graph, net.graph->n_nodes - 1, &error), 0, "%s", error.text);
}

static uint32_t add_convolution(const struct layer *l)
{
        uint32_t in = network_input(&net, l->x_type, DIMS(SL_DIM_BATCH, l->channels, l->height, l->width));
        uint32_t w = add_constant(SL_DTYPE_I8, DIMS(l->filters, l->channels / l->groups, l->kernel[0], l->kernel[1]), 128);
        uint32_t scale = network_scales(&net, DIMS(l->filters)), bias = add_constant(SL_DTYPE_I32, DIMS(l->filters), 1000);

        return network_node(&net, SL_OP_QUANTIZED_CONV, l->bias ? 4 : 3, (const uint32_t[]){in, w, scale, bias},
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {l->kernel[0], l->kernel[1]}}, {SL_ATTR_STRIDES, 2, {l->stride[0], l->stride[1]}},
                        {SL_ATTR_PADS, 4, {l->pads[0], l->pads[1], l->pads[2], l->pads[3]}},
                        {SL_ATTR_DILATIONS, 2, {l->dilation[0], l->dilation[1]}}, {SL_ATTR_GROUP, 0, {l->groups}},
                        {SL_ATTR_X_ZERO, 0, {l->x_zero}}));
}

static uint32_t add_product(const struct layer *l)
{
        uint32_t in = network_input(&net, l->x_type, DIMS(SL_DIM_BATCH, l->height, l->channels));
        uint32_t w = l->turned ? add_constant(SL_DTYPE_I8, DIMS(l->filters, l->channels), 128)
                               : add_constant(SL_DTYPE_I8, DIMS(l->channels, l->filters), 128);
        uint32_t scale = network_scales(&net, DIMS(l->filters)), bias = add_constant(SL_DTYPE_I32, DIMS(l->filters), 1000);

        return network_node(&net, SL_OP_QUANTIZED_MATMUL, l->bias ? 4 : 3, (const uint32_t[]){in, w, scale, bias},
                ATTRS({SL_ATTR_TRANS_B, 0, {l->turned}}, {SL_ATTR_X_ZERO, 0, {l->x_zero}}));
}

/* The bytes of its results. */
static uint64_t run_plan(const char *backend, const struct sl_instance_ground *ground, float *results)
{
        struct sl_error error = {""};
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct sl_shape shape;
        uint64_t bytes;
        int fd = network_plan_fd(&net, backend, BATCH);

        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        cr_assert_eq(sl_instance_new_on(plan, BATCH, ground, &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, BATCH, (const void *[]){x}, (void *[]){results}), 0);
        shape = sl_plan_info(plan)->outputs[0].shape;
        shape.dims[0] = BATCH;
        bytes = sl_shape_elements(&shape) * sl_dtype_bytes(sl_plan_info(plan)->outputs[0].dtype);
        sl_instance_free(instance);
        sl_plan_free(plan);
        cr_assert_leq(bytes, sizeof(y));
        return bytes;
}

/* Returns how many launches were of int8. */
static uint32_t expect_ref(const struct layer *l, uint64_t state)
{
        static const struct sl_instance_ground host = {.device = NULL};
        const struct sl_instance_ground *ground = fake_ground();
        uint32_t before = fake_libraries.n_int8;
        uint64_t n;

        network_init(&net);
        net.state = state;
        network_output(&net, l->product ? add_product(l) : add_convolution(l));
        finish_node(l);
        network_finish(&net);
        for (uint32_t i = 0; i < MOST; i++)
                x[i] = (uint8_t)random_below(256);
        n = run_plan("ref", &host, wanted);
        memset(y, 0, sizeof(y));
        run_plan("cuda", ground, y);
        for (uint64_t i = 0; i < n; i++)
                cr_assert_eq(((uint8_t *)y)[i], ((uint8_t *)wanted)[i], "state %llu: byte %llu of the results is another",
                        (unsigned long long)state, (unsigned long long)i);
        network_deinit(&net);
        return fake_libraries.n_int8 - before;
}

/* Zero points at which padding is 0 as int8, and others. */
static int64_t random_zero(uint32_t x_type)
{
        return x_type == SL_DTYPE_U8 ? random_of((const int64_t[]){0, 128, 255, 77}, 4)
                                     : random_of((const int64_t[]){0, -128, 5}, 3);
}

static uint32_t random_to(void)
{
        return (uint32_t)random_of((const int64_t[]){0, SL_DTYPE_U8, SL_DTYPE_I8}, 3);
}

static struct layer random_convolution(void)
{
        struct layer l = {.x_type = random_below(2) ? SL_DTYPE_U8 : SL_DTYPE_I8,
                .channels = 4 * (1 + random_below(5)),
                .filters = 4 * (1 + random_below(5)),
                .height = 3 + random_below(6),
                .width = 3 + random_below(6),
                .groups = 1,
                .bias = random_below(2),
                .relu = random_below(2),
                .to = random_to()};

        l.x_zero = random_zero(l.x_type);
        for (int i = 0; i < 2; i++) {
                l.kernel[i] = 1 + random_below(3);
                l.stride[i] = 1 + random_below(2);
                l.dilation[i] = l.kernel[i] == 2 ? 1 + random_below(2) : 1;
                l.pads[i] = random_below(2);
                l.pads[2 + i] = random_below(3);
        }
        return l;
}

static void use_cudnn(bool lacks_all)
{
        (void)fake_ground();
        fake_libraries.lacks_all = lacks_all;
        sl_cuda_planning_use(&fake_cudnn); /* which forgets its plans */
}

static void check_convolutions(uint32_t rounds, uint64_t seed, bool pointwise)
{
        for (uint64_t i = 0; i < rounds; i++) {
                struct layer l;

                net.state = 1000 * seed + i;
                l = random_convolution();
                for (int k = 0; k < 2 && pointwise; k++)
                        l.kernel[k] = l.stride[k] = l.dilation[k] = 1, l.pads[k] = l.pads[2 + k] = 0;
                cr_expect_eq(expect_ref(&l, 1000 * seed + 500 + i), 1);
        }
}

Test(cuda_int8, convolutions_are_those_of_ref)
{
        use_cudnn(false);
        check_convolutions(60, 1, false);
}

/* im2col, with cuBLASLt behind it. */
Test(cuda_int8, convolutions_that_cudnn_does_not_have_are_those_of_ref)
{
        use_cudnn(true);
        check_convolutions(60, 2, false);
}

Test(cuda_int8, pointwise_convolutions_are_those_of_ref)
{
        use_cudnn(false);
        check_convolutions(20, 3, true);
}

/* The product of rows is the first candidate there. */
Test(cuda_int8, pointwise_convolutions_are_cudnns_where_cublaslt_has_no_product)
{
        static const struct layer layer = {SL_DTYPE_U8, 77, 64, 64, 3, 3, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, .bias = true};

        use_cudnn(false);
        fake_libraries.lacks_products = true;
        cr_expect_eq(expect_ref(&layer, 600), 1);
}

Test(cuda_int8, products_are_those_of_ref)
{
        net.state = 3000;
        use_cudnn(false);
        for (uint64_t i = 0; i < 40; i++) {
                struct layer l = {.x_type = random_below(2) ? SL_DTYPE_U8 : SL_DTYPE_I8,
                        .channels = 4 * (1 + random_below(20)),
                        .filters = 4 * (1 + random_below(20)),
                        .height = 1 + random_below(5),
                        .product = true,
                        .turned = random_below(2),
                        .bias = random_below(2),
                        .relu = random_below(2),
                        .to = random_to()};

                l.x_zero = random_zero(l.x_type);
                cr_expect_eq(expect_ref(&l, 400 + i), 1);
                net.state = 3001 + i;
        }
}

/* Three channels, six filters, groups, and a matrix of odd sizes. */
Test(cuda_int8, of_other_sizes_are_products_of_floats)
{
        static const struct layer layers[] = {
                {SL_DTYPE_U8, 77, 3, 8, 6, 6, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, .bias = true},
                {SL_DTYPE_I8, 5, 8, 6, 6, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, .bias = true},
                {SL_DTYPE_U8, 128, 8, 8, 6, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8, .bias = false},
                {SL_DTYPE_U8, 77, 13, 8, 3, 0, .product = true, .bias = true},
                {SL_DTYPE_I8, -3, 12, 7, 3, 0, .product = true, .turned = true},
        };

        use_cudnn(false);
        for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
                cr_expect_eq(expect_ref(&layers[i], 500 + i), 0);
}
