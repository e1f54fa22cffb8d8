/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/quantized.h"

#include "op.h"

#include <errno.h>
#include <stdlib.h>

bool sl_cuda_quantized_product(const struct sl_node_desc *node, struct sl_cuda_product *ret_product)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        bool turned = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        int64_t depth = w->dims[turned], columns = w->dims[!turned], rows = depth ? (int64_t)sl_shape_elements(x) / depth : 0;

        if (node->inputs[0].layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN || rows < 1 || columns < 1 ||
                rows > INT32_MAX || rows * columns > INT32_MAX)
                return false;
        *ret_product = (struct sl_cuda_product){.type = SL_DTYPE_F32,
                .out_type = SL_DTYPE_F32,
                .rows = rows,
                .depth = depth,
                .columns = columns,
                .batch = 1,
                .right_turned = turned,
                .left_row = depth,
                .right_row = w->dims[1],
                .out_row = columns,
                .alpha = 1,
                .beta = 1,
                .tf32 = true};
        return true;
}

bool sl_cuda_quantized_convolution(const struct sl_node_desc *node, struct sl_cudnn_convolution *ret_convolution)
{
        struct sl_node_desc *floats;
        bool fits;

        if (node->op != SL_OP_QUANTIZED_CONV || node->inputs[0].layout != SL_LAYOUT_CHANNELS_LAST ||
                node->outputs[0].layout != SL_LAYOUT_CHANNELS_LAST)
                return false;
        floats = calloc(1, sizeof(*floats));
        if (!floats)
                return false;
        floats->op = SL_OP_CONV;
        floats->n_inputs = 2;
        floats->n_outputs = 1;
        floats->attrs = node->attrs;
        floats->inputs[0] = node->inputs[0];
        floats->inputs[1] = node->inputs[1];
        floats->outputs[0] = node->outputs[0];
        floats->inputs[0].dtype = floats->inputs[1].dtype = floats->outputs[0].dtype = SL_DTYPE_F32;
        fits = sl_cudnn_convolution_read(floats, ret_convolution);
        free(floats);
        return fits;
}

/* The residual lies as the result does. */
static bool rest_fits(const struct sl_node_desc *node)
{
        struct sl_own_plan plan;

        if (sl_cuda_own_plan_settle(node, &plan) < 0)
                return false;
        sl_cuda_own_plan_deinit(&plan);
        return true;
}

bool sl_cuda_quantized_fits(const struct sl_node_desc *node)
{
        struct sl_cudnn_convolution convolution;
        struct sl_cuda_product product;

        if (node->op != SL_OP_QUANTIZED_CONV && node->op != SL_OP_QUANTIZED_MATMUL)
                return false;
        return rest_fits(node) && (node->op == SL_OP_QUANTIZED_CONV ? sl_cuda_quantized_convolution(node, &convolution)
                                                                    : sl_cuda_quantized_product(node, &product));
}

static uint64_t float_bytes(const struct sl_tensor *tensor)
{
        return sl_shape_elements(&tensor->shape) * sizeof(float);
}

static int add_product(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_place *factors,
        const struct sl_cuda_place *sums)
{
        struct sl_cuda_product product;
        struct sl_cuda_step *step;

        if (!sl_cuda_quantized_product(node, &product))
                return -ENOTSUP;
        step = sl_cuda_recipe_multiply(recipe, &product);
        if (!step)
                return -ENOMEM;
        step->places[SL_CUDA_LEFT] = *factors;
        step->places[SL_CUDA_RIGHT] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = 1};
        step->places[SL_CUDA_OUT] = *sums;
        return 0;
}

static int add_convolution(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, uint64_t workspace_bytes,
        const struct sl_cuda_place *factors, const struct sl_cuda_place *sums)
{
        struct sl_cuda_step *step = sl_cuda_recipe_add(recipe, SL_CUDA_CONVOLVE, SL_CUDA_PLACES);

        if (!step)
                return -ENOMEM;
        if (!sl_cuda_quantized_convolution(node, &step->convolution))
                return -ENOTSUP;
        step->places[SL_CUDNN_X - 1] = *factors;
        step->places[SL_CUDNN_W - 1] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = 1};
        step->places[SL_CUDNN_Y - 1] = *sums;
        if (workspace_bytes > recipe->workspace_bytes)
                recipe->workspace_bytes = workspace_bytes;
        return 0;
}

int sl_cuda_quantized_settle(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_place *sums,
        const struct sl_cuda_place *totals)
{
        struct sl_cuda_place places[SL_NODE_INPUTS_MAX + 3] = {{0}};
        uint32_t n = node->n_inputs;

        for (uint32_t i = 0; i < n; i++)
                places[i] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = i};
        places[n++] = *sums;
        if (totals)
                places[n++] = *totals;
        places[n] = (struct sl_cuda_place){.kind = SL_CUDA_OUTPUT};
        return sl_cuda_recipe_planned(recipe, node, totals ? sl_cuda_own_plan_int8_settle : sl_cuda_own_plan_settle, places, n, 1);
}

int sl_cuda_quantized_make(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, uint64_t workspace_bytes)
{
        struct sl_cuda_place factors = {.kind = SL_CUDA_SCRATCH}, sums = {.kind = SL_CUDA_SCRATCH};
        struct sl_cuda_place shift[] = {{.kind = SL_CUDA_INPUT}, factors};
        int r;

        if (!sl_cuda_quantized_fits(node))
                return -ENOTSUP;
        shift[1].bytes = factors.bytes = sl_cuda_recipe_keep(recipe, float_bytes(&node->inputs[0]));
        sums.bytes = sl_cuda_recipe_keep(recipe, float_bytes(&node->outputs[0]));
        r = sl_cuda_recipe_planned(recipe, node, sl_cuda_own_plan_shift, shift, 1, 1);
        if (r == 0 && node->op == SL_OP_QUANTIZED_CONV)
                r = add_convolution(recipe, node, workspace_bytes, &factors, &sums);
        else if (r == 0)
                r = add_product(recipe, node, &factors, &sums);
        return r < 0 ? r : sl_cuda_quantized_settle(recipe, node, &sums, NULL);
}
