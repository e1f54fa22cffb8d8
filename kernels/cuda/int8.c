/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/int8.h"

#include "base/bytes.h"
#include "cuda/quantized.h"
#include "op.h"

#include <errno.h>

#define MULTIPLE  4         /* that cuBLASLt wants of the sizes of matrices of int8 */
#define DEPTH_MAX (1 << 16) /* 2^14 each: sums stay below 2^31 */

static bool is_signed(const struct sl_node_desc *node)
{
        return node->inputs[0].dtype == SL_DTYPE_I8;
}

static bool are_bytes(const struct sl_node_desc *node)
{
        return (is_signed(node) || node->inputs[0].dtype == SL_DTYPE_U8) && node->inputs[1].dtype == SL_DTYPE_I8 &&
               sl_cuda_own_int8_zero(node) >= -128 && sl_cuda_own_int8_zero(node) <= 127;
}

static int64_t taps(const struct sl_cudnn_convolution *c)
{
        return c->kernel[0] * c->kernel[1];
}

static bool has_padding(const struct sl_cudnn_convolution *c)
{
        return c->pad_begin[0] || c->pad_begin[1] || c->pad_end[0] || c->pad_end[1];
}

/* As the node has it. */
static bool read_convolution(const struct sl_node_desc *node, struct sl_cudnn_convolution *c)
{
        if (!sl_cuda_quantized_convolution(node, c))
                return false;
        c->type = CUDNN_DATA_INT8;
        return c->groups == 1 && c->channels % MULTIPLE == 0 && c->filters % MULTIPLE == 0 && c->channels * taps(c) <= DEPTH_MAX;
}

/* Has the image to have its padding, as that is not 0? */
static bool is_widened(const struct sl_node_desc *node, const struct sl_cudnn_convolution *c)
{
        return sl_cuda_own_int8_zero(node) != 0 && has_padding(c);
}

bool sl_cuda_int8_convolution(const struct sl_node_desc *node, struct sl_cudnn_convolution *ret_convolution)
{
        struct sl_cudnn_convolution c;

        if (node->op != SL_OP_QUANTIZED_CONV || !are_bytes(node) || !read_convolution(node, &c))
                return false;
        if (is_widened(node, &c)) {
                c.height += c.pad_begin[0] + c.pad_end[0];
                c.width += c.pad_begin[1] + c.pad_end[1];
                c.pad_begin[0] = c.pad_begin[1] = c.pad_end[0] = c.pad_end[1] = 0;
        }
        *ret_convolution = c;
        return true;
}

bool sl_cuda_int8_is_pointwise(const struct sl_node_desc *node)
{
        struct sl_cudnn_convolution c;

        return node->op == SL_OP_QUANTIZED_CONV && read_convolution(node, &c) && taps(&c) == 1 && c.stride[0] == 1 &&
               c.stride[1] == 1 && !has_padding(&c);
}

/* Rows by the weights as they lie in the plan: a row of them for each column of the result. */
static struct sl_cuda_product product_of(int64_t rows, int64_t depth, int64_t columns)
{
        return (struct sl_cuda_product){.type = SL_DTYPE_I8,
                .out_type = SL_DTYPE_I32,
                .rows = rows,
                .depth = depth,
                .columns = columns,
                .batch = 1,
                .right_turned = true,
                .left_row = depth,
                .right_row = depth,
                .out_row = columns,
                .alpha = 1};
}

static bool read_rows(const struct sl_node_desc *node, struct sl_cuda_product *ret_product)
{
        int64_t results = (int64_t)sl_shape_elements(&node->outputs[0].shape);
        struct sl_cudnn_convolution c;

        if (node->op != SL_OP_QUANTIZED_CONV || !are_bytes(node) || !read_convolution(node, &c) || results < 1 ||
                results > INT32_MAX)
                return false;
        *ret_product = product_of(results / c.filters, c.channels * taps(&c), c.filters);
        return true;
}

static bool read_product(const struct sl_node_desc *node, struct sl_cuda_product *ret_product)
{
        struct sl_cuda_product p;

        if (node->op != SL_OP_QUANTIZED_MATMUL || !are_bytes(node) || !sl_cuda_quantized_product(node, &p) || p.depth % MULTIPLE ||
                p.columns % MULTIPLE || p.depth < 1 || p.depth > DEPTH_MAX)
                return false;
        *ret_product = product_of(p.rows, p.depth, p.columns);
        return true;
}

bool sl_cuda_int8_fits(const struct sl_node_desc *node)
{
        struct sl_cudnn_convolution convolution;
        struct sl_cuda_product product;

        return sl_cuda_int8_convolution(node, &convolution) || read_product(node, &product);
}

uint64_t sl_cuda_int8_totals_at(const struct sl_tensor *weights)
{
        return sl_align_up(sl_shape_elements(&weights->shape), 16);
}

/* ---- its steps ---- */

typedef int (*own_part)(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);

static int add_signed(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, own_part part, int64_t bytes,
        struct sl_cuda_place *ret_factors)
{
        struct sl_cuda_place places[] = {{.kind = SL_CUDA_INPUT}, {.kind = SL_CUDA_SCRATCH}};

        places[1].bytes = sl_cuda_recipe_keep(recipe, (uint64_t)bytes);
        *ret_factors = places[1];
        return sl_cuda_recipe_planned(recipe, node, part, places, 1, 1);
}

static int add_convolution(
        struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, uint64_t workspace_bytes, const struct sl_cuda_place *sums)
{
        struct sl_cuda_place factors = {.kind = SL_CUDA_INPUT};
        struct sl_cudnn_convolution c, plain;
        struct sl_cuda_step *step;
        int r = 0;

        if (!sl_cuda_int8_convolution(node, &c) || !read_convolution(node, &plain))
                return -ENOTSUP;
        if (!is_signed(node) || is_widened(node, &plain))
                r = add_signed(recipe, node, sl_cuda_own_plan_int8_image, c.batch * c.height * c.width * c.channels, &factors);
        if (r < 0)
                return r;
        step = sl_cuda_recipe_add(recipe, SL_CUDA_CONVOLVE, SL_CUDA_PLACES);
        if (!step)
                return -ENOMEM;
        step->convolution = c;
        step->places[SL_CUDNN_X - 1] = factors;
        step->places[SL_CUDNN_W - 1] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = 1};
        step->places[SL_CUDNN_Y - 1] = *sums;
        if (workspace_bytes > recipe->workspace_bytes)
                recipe->workspace_bytes = workspace_bytes;
        return 0;
}

/* @in_place: the rows are x as it is. */
static int add_product(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_product *product,
        bool in_place, const struct sl_cuda_place *sums)
{
        struct sl_cuda_place factors = {.kind = SL_CUDA_INPUT};
        struct sl_cuda_step *step;
        int r = in_place ? 0 : add_signed(recipe, node, sl_cuda_own_plan_int8_rows, product->rows * product->depth, &factors);

        if (r < 0)
                return r;
        step = sl_cuda_recipe_multiply(recipe, product);
        if (!step)
                return -ENOMEM;
        step->places[SL_CUDA_LEFT] = factors;
        step->places[SL_CUDA_RIGHT] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = 1};
        step->places[SL_CUDA_OUT] = *sums;
        return 0;
}

int sl_cuda_int8_make(
        struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, enum sl_cuda_way way, uint64_t workspace_bytes)
{
        const struct sl_cuda_place totals = {.kind = SL_CUDA_INPUT, .index = 1, .bytes = sl_cuda_int8_totals_at(&node->inputs[1])};
        struct sl_cuda_place sums = {.kind = SL_CUDA_SCRATCH};
        struct sl_cuda_product product;
        int r = -ENOTSUP;

        sums.bytes = sl_cuda_recipe_keep(recipe, sl_shape_elements(&node->outputs[0].shape) * sizeof(int32_t));
        if (way == SL_CUDA_WAY_INT8_CONVOLUTION)
                r = add_convolution(recipe, node, workspace_bytes, &sums);
        else if (way == SL_CUDA_WAY_INT8_ROWS && read_rows(node, &product))
                r = add_product(recipe, node, &product, is_signed(node) && sl_cuda_int8_is_pointwise(node), &sums);
        else if (way == SL_CUDA_WAY_INT8_PRODUCT && read_product(node, &product))
                r = add_product(recipe, node, &product, is_signed(node), &sums);
        return r < 0 ? r : sl_cuda_quantized_settle(recipe, node, &sums, &totals);
}
