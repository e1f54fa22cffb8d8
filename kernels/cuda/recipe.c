/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/recipe.h"

#include "base/bytes.h"
#include "cuda/attention.h"
#include "cuda/int8.h"
#include "cuda/quantized.h"
#include "cuda/recurrent.h"
#include "op.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGNMENT 256

/* What cuBLASLt may use: the algorithms of large products that split sums want more. */
#define WORKSPACE_BYTES       (4ull << 20)
#define LARGE_WORKSPACE_BYTES (32ull << 20)
#define LARGE_PRODUCT         (1ll << 30) /* multiply-adds */

static bool lies_last(const struct sl_tensor *tensor)
{
        return tensor->layout == SL_LAYOUT_CHANNELS_LAST;
}

static bool all_plain(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        return node->outputs[0].layout == SL_LAYOUT_PLAIN;
}

static bool same_types(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && node->inputs[i].dtype != node->inputs[0].dtype)
                        return false;
        return node->outputs[0].dtype == node->inputs[0].dtype;
}

static bool is_convolution(const struct sl_node_desc *node)
{
        struct sl_cudnn_convolution convolution;
        uint32_t last = node->n_inputs - 1;

        if (node->op != SL_OP_CONV || !same_types(node) || !lies_last(&node->inputs[0]) || !lies_last(&node->outputs[0]))
                return false;
        return (!node->epilogue.has_residual || lies_last(&node->inputs[last])) && sl_cudnn_convolution_read(node, &convolution);
}

static enum sl_cuda_way way_of_bytes(const struct sl_node_desc *node)
{
        bool conv = node->op == SL_OP_QUANTIZED_CONV;

        if (sl_cuda_int8_fits(node))
                return conv ? SL_CUDA_WAY_INT8_CONVOLUTION : SL_CUDA_WAY_INT8_PRODUCT;
        return conv ? SL_CUDA_WAY_BYTES_CONVOLUTION : SL_CUDA_WAY_BYTES_PRODUCT;
}

enum sl_cuda_way sl_cuda_way_of(const struct sl_node_desc *node)
{
        struct sl_cuda_product_node product;

        if (is_convolution(node))
                return SL_CUDA_WAY_CONVOLUTION;
        if ((node->op == SL_OP_MATMUL || node->op == SL_OP_GEMM) && all_plain(node) && same_types(node) &&
                sl_cuda_product_read(node, &product))
                return SL_CUDA_WAY_PRODUCT;
        if (node->op == SL_OP_ROW_ATTENTION && sl_cuda_own_supports(node))
                return SL_CUDA_WAY_FUSED_ATTENTION;
        if (node->op == SL_OP_ROW_ATTENTION && all_plain(node) && sl_cuda_attention_fits(node))
                return SL_CUDA_WAY_ATTENTION;
        if (sl_cuda_quantized_fits(node))
                return way_of_bytes(node);
        return sl_cuda_recurrent_fits(node) ? SL_CUDA_WAY_RECURRENT : SL_CUDA_WAY_OWN;
}

bool sl_cuda_asked_read(const struct sl_node_desc *node, enum sl_cuda_way way, bool tf32, struct sl_cuda_asked *ret_asked)
{
        ret_asked->tf32 = tf32 || way == SL_CUDA_WAY_BYTES_CONVOLUTION;
        switch (way) {
        case SL_CUDA_WAY_CONVOLUTION:
        case SL_CUDA_WAY_BARE:
                return sl_cudnn_convolution_read(node, &ret_asked->convolution);
        case SL_CUDA_WAY_BYTES_CONVOLUTION:
                return sl_cuda_quantized_convolution(node, &ret_asked->convolution);
        case SL_CUDA_WAY_INT8_CONVOLUTION:
                return sl_cuda_int8_convolution(node, &ret_asked->convolution);
        default:
                return false;
        }
}

/* ---- making one ---- */

static struct sl_cuda_place input(uint32_t index)
{
        return (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = index};
}

static struct sl_cuda_place output(uint32_t index)
{
        return (struct sl_cuda_place){.kind = SL_CUDA_OUTPUT, .index = index};
}

static void want_workspace(struct sl_cuda_recipe *recipe, uint64_t bytes)
{
        if (bytes > recipe->workspace_bytes)
                recipe->workspace_bytes = bytes;
}

struct sl_cuda_step *sl_cuda_recipe_add(struct sl_cuda_recipe *recipe, enum sl_cuda_step_kind kind, uint32_t n_places)
{
        struct sl_cuda_step *step;

        if (recipe->n_steps == recipe->room) {
                uint32_t room = recipe->room ? recipe->room * 2 : 4;
                struct sl_cuda_step *grown = reallocarray(recipe->steps, room, sizeof(*grown));

                if (!grown)
                        return NULL;
                recipe->steps = grown;
                recipe->room = room;
        }
        step = &recipe->steps[recipe->n_steps];
        *step = (struct sl_cuda_step){.kind = kind, .places = calloc(n_places + 1u, sizeof(*step->places))};
        if (!step->places)
                return NULL;
        recipe->n_steps++;
        return step;
}

uint64_t sl_cuda_recipe_keep(struct sl_cuda_recipe *recipe, uint64_t bytes)
{
        uint64_t at = recipe->kept_bytes;

        recipe->kept_bytes += sl_align_up(bytes, ALIGNMENT);
        return at;
}

struct sl_cuda_step *sl_cuda_recipe_multiply(struct sl_cuda_recipe *recipe, const struct sl_cuda_product *product)
{
        struct sl_cuda_step *step = sl_cuda_recipe_add(recipe, SL_CUDA_MULTIPLY, SL_CUDA_PLACES);
        double work = (double)product->rows * (double)product->depth * (double)product->columns * (double)product->batch;

        if (step)
                step->product = *product;
        want_workspace(recipe, work < LARGE_PRODUCT ? WORKSPACE_BYTES : LARGE_WORKSPACE_BYTES);
        return step;
}

/* Of a step whose plan is there, over @n_inputs inputs. */
static void end_own(struct sl_cuda_recipe *recipe, struct sl_cuda_step *step, uint32_t n_inputs, uint32_t n_outputs)
{
        step->n_inputs = n_inputs;
        step->n_outputs = n_outputs;
        want_workspace(recipe, step->own.scratch_bytes);
        recipe->checks = recipe->checks || step->own.checks;
}

int sl_cuda_recipe_own(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_place *places)
{
        struct sl_cuda_step *step = sl_cuda_recipe_add(recipe, SL_CUDA_OWN, node->n_inputs + node->n_outputs);
        int r;

        if (!step)
                return -ENOMEM;
        r = sl_cuda_own_plan(node, &step->own);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < node->n_inputs + node->n_outputs; i++)
                step->places[i] = places ? places[i] : i < node->n_inputs ? input(i) : output(i - node->n_inputs);
        end_own(recipe, step, node->n_inputs, node->n_outputs);
        return 0;
}

int sl_cuda_recipe_planned(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node,
        int (*plan)(const struct sl_node_desc *node, struct sl_own_plan *ret_plan), const struct sl_cuda_place *places,
        uint32_t n_inputs, uint32_t n_outputs)
{
        struct sl_cuda_step *step = sl_cuda_recipe_add(recipe, SL_CUDA_OWN, n_inputs + n_outputs);
        int r;

        if (!step)
                return -ENOMEM;
        r = plan(node, &step->own);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n_inputs + n_outputs; i++)
                step->places[i] = places[i];
        end_own(recipe, step, n_inputs, n_outputs);
        return 0;
}

/* What a library leaves of the epilogue: all of it, or the activation alone. */
static int add_finish(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool all, int bias_axis)
{
        struct sl_cuda_step *step = sl_cuda_recipe_add(recipe, SL_CUDA_OWN, node->n_inputs + 1);
        struct sl_node_desc *rest;
        int r;

        if (!step)
                return -ENOMEM;
        rest = malloc(sizeof(*rest));
        if (!rest)
                return -ENOMEM;
        *rest = *node;
        if (!all)
                rest->epilogue.has_residual = 0;
        r = sl_cuda_own_plan_finish(rest, all ? bias_axis : -1, &step->own);
        free(rest);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                step->places[i] = input(i);
        step->places[node->n_inputs] = output(0);
        end_own(recipe, step, node->n_inputs, 1);
        return 0;
}

static bool has_activation(const struct sl_node_desc *node)
{
        return node->epilogue.activation != SL_ACT_NONE && node->epilogue.activation != SL_ACT_RELU;
}

static int make_convolution(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool whole, uint64_t workspace_bytes)
{
        struct sl_cuda_step *step = sl_cuda_recipe_add(recipe, SL_CUDA_CONVOLVE, SL_CUDA_PLACES);
        struct sl_cudnn_convolution c;

        if (!step)
                return -ENOMEM;
        if (!is_convolution(node) || !sl_cudnn_convolution_read(node, &c))
                return -ENOTSUP;
        step->convolution = whole ? c : sl_cudnn_bare(&c);
        step->places[SL_CUDNN_X - 1] = input(0);
        step->places[SL_CUDNN_W - 1] = input(1);
        if (step->convolution.has_bias)
                step->places[SL_CUDNN_BIAS - 1] = input(2);
        if (step->convolution.has_residual)
                step->places[SL_CUDNN_RESIDUAL - 1] = input(node->n_inputs - 1);
        step->places[SL_CUDNN_Y - 1] = output(0);
        want_workspace(recipe, workspace_bytes);
        if (whole ? !has_activation(node) : sl_cudnn_is_bare(&c) && !has_activation(node))
                return 0;
        return add_finish(recipe, node, !whole, c.has_bias ? 1 : -1);
}

/* Factor @i of a product, expanded in scratch where it has to be. */
static int place_factor(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_product_node *product,
        uint32_t i, struct sl_cuda_place *ret_place)
{
        struct sl_cuda_place places[] = {input(i), {.kind = SL_CUDA_SCRATCH}};
        struct sl_node_desc *expand;
        int r;

        *ret_place = places[0];
        if (!product->spread[i])
                return 0;
        expand = calloc(1, sizeof(*expand));
        if (!expand)
                return -ENOMEM;
        *expand = (struct sl_node_desc){.op = SL_OP_EXPAND, .n_inputs = 1, .n_outputs = 1, .inputs = {node->inputs[i]}};
        expand->outputs[0] = node->inputs[i];
        expand->outputs[0].shape = sl_cuda_product_spread(node, i);
        places[1].bytes = sl_cuda_recipe_keep(recipe, sl_tensor_bytes(&expand->outputs[0]));
        *ret_place = places[1];
        r = sl_cuda_recipe_own(recipe, expand, places);
        free(expand);
        return r;
}

static int make_product(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool tf32)
{
        struct sl_cuda_product_node product;
        struct sl_cuda_place left, right;
        struct sl_cuda_step *step;
        int r;

        if (sl_cuda_way_of(node) != SL_CUDA_WAY_PRODUCT || !sl_cuda_product_read(node, &product))
                return -ENOTSUP;
        product.product.tf32 = tf32;
        r = place_factor(recipe, node, &product, 0, &left);
        if (r == 0)
                r = place_factor(recipe, node, &product, 1, &right);
        if (r < 0)
                return r;
        step = sl_cuda_recipe_multiply(recipe, &product.product);
        if (!step)
                return -ENOMEM;
        step->places[SL_CUDA_LEFT] = left;
        step->places[SL_CUDA_RIGHT] = right;
        if (product.product.has_bias)
                step->places[SL_CUDA_BIAS] = input(2);
        if (product.product.has_addend)
                step->places[SL_CUDA_ADDEND] = input(product.addend);
        step->places[SL_CUDA_OUT] = output(0);
        if (product.addend == SL_CUDA_BEHIND)
                return add_finish(recipe, node, true, SL_OWN_BIAS_BROADCAST);
        return has_activation(node) ? add_finish(recipe, node, false, -1) : 0;
}

int sl_cuda_recipe_make(const struct sl_node_desc *node, enum sl_cuda_way way, uint64_t workspace_bytes, bool tf32,
        struct sl_cuda_recipe *ret_recipe)
{
        struct sl_cuda_recipe recipe = {.n_steps = 0};
        int r = -ENOTSUP;

        switch (way) {
        case SL_CUDA_WAY_OWN:
                r = sl_cuda_recipe_own(&recipe, node, NULL);
                break;
        case SL_CUDA_WAY_FUSED_ATTENTION:
                r = node->op == SL_OP_ROW_ATTENTION ? sl_cuda_recipe_own(&recipe, node, NULL) : -ENOTSUP;
                break;
        case SL_CUDA_WAY_CONVOLUTION:
        case SL_CUDA_WAY_BARE:
                r = make_convolution(&recipe, node, way == SL_CUDA_WAY_CONVOLUTION, workspace_bytes);
                break;
        case SL_CUDA_WAY_PRODUCT:
                r = make_product(&recipe, node, tf32);
                break;
        case SL_CUDA_WAY_ATTENTION:
                r = sl_cuda_attention_make(&recipe, node, tf32);
                break;
        case SL_CUDA_WAY_RECURRENT:
                r = sl_cuda_recurrent_make(&recipe, node, tf32);
                break;
        case SL_CUDA_WAY_BYTES_CONVOLUTION:
        case SL_CUDA_WAY_BYTES_PRODUCT:
                r = way == sl_cuda_way_of(node) ? sl_cuda_quantized_make(&recipe, node, workspace_bytes) : -ENOTSUP;
                break;
        case SL_CUDA_WAY_INT8_CONVOLUTION:
        case SL_CUDA_WAY_INT8_ROWS:
        case SL_CUDA_WAY_INT8_PRODUCT:
                r = sl_cuda_quantized_fits(node) ? sl_cuda_int8_make(&recipe, node, way, workspace_bytes) : -ENOTSUP;
                break;
        case SL_CUDA_WAY_COUNT:
                break;
        }
        if (r < 0)
                sl_cuda_recipe_deinit(&recipe);
        else
                *ret_recipe = recipe;
        return r;
}

void sl_cuda_recipe_deinit(struct sl_cuda_recipe *recipe)
{
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                sl_cuda_own_plan_deinit(&recipe->steps[i].own);
                free(recipe->steps[i].places);
        }
        free(recipe->steps);
        *recipe = (struct sl_cuda_recipe){.n_steps = 0};
}

uint64_t sl_cuda_recipe_scratch(const struct sl_cuda_recipe *recipe)
{
        uint64_t bytes = recipe->kept_bytes + recipe->workspace_bytes;

        return bytes ? bytes + ALIGNMENT : 0;
}
