/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN plans for a GPU that is not there. Where there is no cuDNN the tests skip and say so. */
#include "base/error.h"
#include "cuda/cudnn/plan.h"
#include "op.h"
#include "zoo_shapes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct sl_cudnn library;
static struct sl_cudnn_planner *planner;

static bool start(const struct sl_cuda_figures *figures)
{
        struct sl_error error = {""};
        int r = sl_cudnn_open(NULL, &library, &error);

        if (r == -ENOENT) {
                fprintf(stderr, "skipped: %s\n", error.text);
                return false;
        }
        cr_assert_eq(r, 0, "%s", error.text);
        cr_assert_eq(sl_cudnn_planner_new(&library, figures, &planner, &error), 0, "%s", error.text);
        return true;
}

static void end(void)
{
        planner = sl_cudnn_planner_free(planner);
        sl_cudnn_close(&library);
}

struct tally {
        uint32_t planned, refused, tensor_cores, whole;
        uint64_t workspace_max;
};

/* A plan, its workspace, and the same again out of its text. */
static void check_plan(const char *network, const struct sl_cudnn_convolution *convolution, bool tf32, struct tally *tally)
{
        struct sl_error error = {""};
        struct sl_cudnn_plan plan;
        uint64_t workspace_bytes = 1;
        int r = sl_cudnn_plan_make(planner, convolution, tf32, &plan, &error);

        if (r == -ENOTSUP) {
                fprintf(stderr, "%s, type %d: %s\n", network, (int)convolution->type, error.text);
                tally->refused++;
                return;
        }
        cr_assert_eq(r, 0, "%s: %s", network, error.text);
        cr_assert_eq(sl_cudnn_plan_load(planner, plan.text, plan.text_bytes, &workspace_bytes, &error), 0, "%s: %s", network,
                error.text);
        cr_assert_eq(workspace_bytes, plan.workspace_bytes);
        cr_assert_lt(plan.workspace_bytes, 1ull << 32, "%s wants %llu bytes", network, (unsigned long long)plan.workspace_bytes);
        cr_assert_not(convolution->type == CUDNN_DATA_FLOAT && plan.tensor_cores && !tf32);
        tally->planned++;
        tally->tensor_cores += plan.tensor_cores;
        tally->whole += plan.whole;
        if (plan.workspace_bytes > tally->workspace_max)
                tally->workspace_max = plan.workspace_bytes;
        sl_cudnn_plan_deinit(&plan);
}

/* Of cuDNN: others are computed as float32, products by cuBLASLt. */
static bool is_of_int8(const struct sl_cudnn_convolution *convolution)
{
        return convolution->groups == 1 && convolution->channels % 4 == 0 && convolution->filters % 4 == 0;
}

static void check_zoo(cudnnDataType_t type, bool residual, int64_t batch, struct tally *tally)
{
        static const struct {
                const char *network;
                int64_t v[15];
        } convolutions[] = {
#define X(name, ...) {name, {__VA_ARGS__}},
                ZOO_CONVOLUTIONS(X)
#undef X
        };
        static const struct {
                const char *network;
                int64_t v[3];
        } products[] = {
#define X(name, ...) {name, {__VA_ARGS__}},
                ZOO_PRODUCTS(X)
#undef X
        };

        for (size_t i = 0; i < sizeof(convolutions) / sizeof(convolutions[0]); i++) {
                const int64_t *v = convolutions[i].v;
                struct sl_cudnn_convolution convolution = {type, batch, v[0], v[1], v[2], v[3], v[14], {v[4], v[5]}, {v[6], v[7]},
                        {v[8], v[9]}, {v[10], v[11]}, {v[12], v[13]}, .has_bias = true, .has_residual = residual, .has_relu = true};

                if (type == CUDNN_DATA_INT8)
                        convolution = sl_cudnn_bare(&convolution);
                if (type == CUDNN_DATA_INT8 && !is_of_int8(&convolution))
                        continue;
                check_plan(convolutions[i].network, &convolution, false, tally);
        }
        for (size_t i = 0; i < sizeof(products) / sizeof(products[0]) && type != CUDNN_DATA_INT8; i++) {
                const int64_t *v = products[i].v;
                const struct sl_cudnn_convolution product = sl_cudnn_product(type, batch * v[0], v[1], v[2]);

                check_plan(products[i].network, &product, false, tally);
        }
        fprintf(stderr,
                "type %d, batch %lld: %u planned (%u with their epilogue, %u on tensor cores), %u refused, workspace at most %llu "
                "bytes\n",
                (int)type, (long long)batch, tally->planned, tally->whole, tally->tensor_cores, tally->refused,
                (unsigned long long)tally->workspace_max);
}

Test(plans, of_the_zoo_in_float_thirty_two_are_found_and_load_again)
{
        struct tally tally = {0};

        if (!start(&sl_cuda_figures_h200))
                return;
        check_zoo(CUDNN_DATA_FLOAT, false, 8, &tally);
        cr_assert_eq(tally.refused, 0);
        cr_assert_eq(tally.whole, tally.planned);
        end();
}

Test(plans, of_the_zoo_in_bfloat_sixteen_are_found_and_load_again)
{
        struct tally tally = {0};

        if (!start(&sl_cuda_figures_h100))
                return;
        check_zoo(CUDNN_DATA_BFLOAT16, true, 1, &tally);
        cr_assert_eq(tally.refused, 0);
        cr_assert_eq(tally.whole, tally.planned);
        end();
}

Test(plans, of_the_zoo_in_int_eight_are_found_and_load_again)
{
        struct tally tally = {0};

        if (!start(&sl_cuda_figures_h200))
                return;
        check_zoo(CUDNN_DATA_INT8, false, 8, &tally);
        cr_assert_gt(tally.planned, 200);
        cr_assert_eq(tally.refused, 0);
        end();
}

static struct sl_cudnn_convolution small(void)
{
        return (struct sl_cudnn_convolution){.type = CUDNN_DATA_FLOAT,
                .batch = 1,
                .channels = 64,
                .height = 14,
                .width = 14,
                .filters = 64,
                .groups = 1,
                .kernel = {3, 3},
                .stride = {1, 1},
                .dilation = {1, 1},
                .pad_begin = {1, 1},
                .pad_end = {1, 1}};
}

Test(plans, are_the_same_text_each_time)
{
        const struct sl_cudnn_convolution convolution = small();
        struct sl_error error = {""};
        struct sl_cudnn_plan a, b;

        if (!start(&sl_cuda_figures_h200))
                return;
        cr_assert_eq(sl_cudnn_plan_make(planner, &convolution, false, &a, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cudnn_plan_make(planner, &convolution, false, &b, &error), 0, "%s", error.text);
        cr_assert_str_eq(a.text, b.text);
        sl_cudnn_plan_deinit(&a);
        sl_cudnn_plan_deinit(&b);
        end();
}

Test(plans, that_are_none_are_refused)
{
        const struct sl_cudnn_convolution convolution = small();
        struct sl_error error = {""};
        struct sl_cudnn_plan plan;
        uint64_t workspace_bytes;

        if (!start(&sl_cuda_figures_h200))
                return;
        cr_assert_eq(sl_cudnn_plan_make(planner, &convolution, false, &plan, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cudnn_plan_load(planner, plan.text, plan.text_bytes - 1, &workspace_bytes, &error), -EBADMSG);
        cr_assert_eq(sl_cudnn_plan_load(planner, "", 0, &workspace_bytes, &error), -EBADMSG);
        plan.text[plan.text_bytes / 2] = 0;
        cr_assert_eq(sl_cudnn_plan_load(planner, plan.text, plan.text_bytes / 2 + 1, &workspace_bytes, &error), -EBADMSG);
        sl_cudnn_plan_deinit(&plan);
        end();
}

Test(plans, round_to_tf_thirty_two_only_where_that_is_asked_for)
{
        const struct sl_cudnn_convolution convolution = small();
        struct sl_error error = {""};
        struct sl_cudnn_plan exact, rounded;

        if (!start(&sl_cuda_figures_h200))
                return;
        cr_assert_eq(sl_cudnn_plan_make(planner, &convolution, false, &exact, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cudnn_plan_make(planner, &convolution, true, &rounded, &error), 0, "%s", error.text);
        cr_assert_not(exact.tensor_cores);
        cr_assert(rounded.tensor_cores);
        sl_cudnn_plan_deinit(&exact);
        sl_cudnn_plan_deinit(&rounded);
        end();
}

Test(plans, of_a_node_are_read_from_it)
{
        const int64_t pads[] = {1, 2, 1, 2}, strides[] = {2, 1};
        struct sl_cudnn_convolution convolution;
        struct sl_node_desc node = {.op = SL_OP_CONV, .n_inputs = 4, .n_outputs = 1};

        node.inputs[0] = (struct sl_tensor){SL_DTYPE_BF16, SL_LAYOUT_CHANNELS_LAST, {4, {2, 8, 9, 11}}};
        node.inputs[1] = (struct sl_tensor){SL_DTYPE_BF16, SL_LAYOUT_PLAIN, {4, {16, 4, 3, 5}}};
        node.inputs[2] = (struct sl_tensor){SL_DTYPE_BF16, SL_LAYOUT_PLAIN, {1, {16}}};
        node.inputs[3] = (struct sl_tensor){SL_DTYPE_BF16, SL_LAYOUT_CHANNELS_LAST, {4, {2, 16, 5, 11}}};
        node.epilogue = (struct sl_epilogue){.activation = SL_ACT_RELU, .has_residual = 1};
        sl_attrs_set_ints(&node.attrs, SL_ATTR_PADS, pads, 4);
        sl_attrs_set_ints(&node.attrs, SL_ATTR_STRIDES, strides, 2);
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 2);
        cr_assert(sl_cudnn_convolution_read(&node, &convolution));
        cr_assert(convolution.has_bias && convolution.has_residual && convolution.has_relu);
        cr_assert_eq(convolution.type, CUDNN_DATA_BFLOAT16);
        cr_assert_eq(convolution.groups, 2);
        cr_assert_eq(convolution.filters, 16);
        cr_assert_eq(convolution.stride[0], 2);
        cr_assert_eq(convolution.pad_begin[1], 2);
        node.n_inputs = 3; /* the residual, and no bias */
        node.epilogue.activation = SL_ACT_SWISH;
        cr_assert(sl_cudnn_convolution_read(&node, &convolution));
        cr_assert(!convolution.has_bias && convolution.has_residual && !convolution.has_relu);
        node.inputs[0].dtype = SL_DTYPE_F64;
        cr_assert_not(sl_cudnn_convolution_read(&node, &convolution));
}

Test(figures, that_would_break_the_text_are_refused)
{
        struct sl_cuda_figures figures = sl_cuda_figures_h200;
        char text[SL_CUDA_FIGURES_TEXT_BYTES];

        cr_assert_eq(sl_cuda_figures_print(&figures, text), 0);
        cr_assert_not_null(strstr(text, "\"multiProcessorCount\":132,"));
        cr_expect(sl_cuda_figures_are_sound(&figures));
        strcpy(figures.name, "a \" b");
        cr_assert_eq(sl_cuda_figures_print(&figures, text), -EINVAL);
        cr_expect_not(sl_cuda_figures_are_sound(&figures));
        memset(figures.name, 'a', sizeof(figures.name));
        cr_expect_not(sl_cuda_figures_are_sound(&figures), "a name without an end");
        figures = sl_cuda_figures_h200;
        figures.cache_bytes = -1;
        cr_expect_not(sl_cuda_figures_are_sound(&figures));
        cr_expect_not(sl_cuda_figures_are_sound(&(struct sl_cuda_figures){0}));
}

Test(library, that_is_no_cudnn_is_named)
{
        struct sl_error error = {""};
        struct sl_cudnn other;

        cr_assert_eq(sl_cudnn_open("/nowhere/libcudnn.so.9", &other, &error), -ENOENT);
        cr_assert_not_null(strstr(error.text, "there is no cuDNN 9: /nowhere/libcudnn.so.9"), "%s", error.text);
        cr_assert_eq(sl_cudnn_open("libm.so.6", &other, &error), -ELIBBAD);
}
