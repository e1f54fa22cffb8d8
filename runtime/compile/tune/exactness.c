/* SPDX-License-Identifier: Apache-2.0 */
#include "exactness.h"

#include "backend.h"
#include "base/cleanup.h"
#include "node_run.h"
#include "op.h"
#include "shape/image_node.h"
#include "shape/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part: enough for two tiles of 4x4 next to each other, edge included. */
#define FILTERS_MAX 16
#define HEIGHT_MAX  8
#define WIDTH_MAX   6

#define LANES     32 /* of a sum */
#define FEW_LANES 8  /* at its end */

#ifndef SL_TUNE_CLONES
#error "the build file defines SL_TUNE_CLONES"
#endif

struct timed_node {
        struct sl_node_desc image; /* the whole node, if it is one over a line */
        struct sl_node_desc node;
        struct sl_window window;
        float *weights, *input; /* as in the node, the filters picked */
        float *taps;            /* the weights again: [filter][tap][channel] */
};

SL_DEFINE_CLEANUP(struct sl_node_run *, sl_node_run_free)

static struct timed_node *part_free(struct timed_node *timed_node)
{
        if (!timed_node)
                return NULL;
        free(timed_node->weights);
        free(timed_node->input);
        free(timed_node->taps);
        free(timed_node);
        return NULL;
}

SL_DEFINE_CLEANUP(struct timed_node *, part_free)

static bool is_real(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32 || tensor->dtype == SL_DTYPE_BF16;
}

/* @n numbers, of float32 or bfloat16 at any address. */
static void widen(uint32_t dtype, const char *from, uint64_t n, float *to)
{
        if (dtype == SL_DTYPE_F32)
                memcpy(to, from, n * sizeof(*to));
        for (uint64_t i = 0; i < n && dtype == SL_DTYPE_BF16; i++) {
                uint16_t half;
                uint32_t bits;

                memcpy(&half, from + i * sizeof(half), sizeof(half));
                bits = (uint32_t)half << 16;
                memcpy(&to[i], &bits, sizeof(bits));
        }
}

static bool is_known(const struct sl_node_desc *node, const void *const *constants)
{
        bool one = node->op == SL_OP_LANED_CONV || sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) == 1;

        return one && (node->op == SL_OP_CONV || node->op == SL_OP_LANED_CONV) && node->n_inputs >= 2 && constants[1] &&
               node->inputs[0].shape.rank == 4 && is_real(&node->inputs[0]) && node->inputs[1].dtype == node->inputs[0].dtype;
}

static int64_t at_most(int64_t number, int64_t limit)
{
        return number < limit ? number : limit;
}

/* A lane is computed as a convolution of its own. */
static int take_lane(struct sl_node_desc *node)
{
        if (node->op != SL_OP_LANED_CONV)
                return 0;
        node->op = SL_OP_CONV;
        node->inputs[0].shape.dims[1] = node->inputs[1].shape.dims[1];
        return sl_attrs_set_int(&node->attrs, SL_ATTR_GROUP, 1);
}

/* No bias and no epilogue: they add the same to both sides and would only make the output's range larger. */
static int describe(const struct sl_node_desc *node, struct timed_node *timed_node)
{
        struct sl_node_desc *small = &timed_node->node;
        uint32_t layout = node->outputs[0].layout;
        int r;

        *small = (struct sl_node_desc){.op = node->op, .n_inputs = 2, .n_outputs = 1, .attrs = node->attrs};
        small->inputs[0] = node->inputs[0];
        small->inputs[0].shape.dims[0] = 1;
        small->inputs[0].shape.dims[2] = at_most(node->inputs[0].shape.dims[2], HEIGHT_MAX);
        small->inputs[0].shape.dims[3] = at_most(node->inputs[0].shape.dims[3], WIDTH_MAX);
        small->inputs[1] = node->inputs[1];
        small->inputs[1].shape.dims[0] = at_most(node->inputs[1].shape.dims[0], FILTERS_MAX);
        small->inputs[0].dtype = small->inputs[1].dtype = SL_DTYPE_F32;
        r = take_lane(small);
        r = r < 0 ? r : sl_op_infer(small, NULL);
        small->outputs[0].layout = layout;
        return r < 0 ? r : sl_window_read(small, &timed_node->window, NULL);
}

/* Filters from the whole range, at equal distances. */
static void pick_filters(const struct sl_node_desc *node, const char *weights, struct timed_node *timed_node)
{
        int64_t n = timed_node->node.inputs[1].shape.dims[0], all = node->inputs[1].shape.dims[0];
        uint64_t floats = sl_shape_elements(&node->inputs[1].shape) / (uint64_t)all;
        uint32_t dtype = node->inputs[1].dtype;

        for (int64_t f = 0; f < n; f++)
                widen(dtype, weights + (uint64_t)(f * all / n) * floats * sl_dtype_bytes(dtype), floats,
                        timed_node->weights + (uint64_t)f * floats);
}

/* Channels side by side, as a pixel has them. */
static void turn_filters(struct timed_node *timed_node)
{
        int64_t filters = timed_node->node.inputs[1].shape.dims[0], channels = timed_node->node.inputs[1].shape.dims[1];
        int64_t taps = timed_node->window.kernel[0] * timed_node->window.kernel[1];

        for (int64_t f = 0; f < filters; f++)
                for (int64_t c = 0; c < channels; c++)
                        for (int64_t tap = 0; tap < taps; tap++)
                                timed_node->taps[(f * taps + tap) * channels + c] =
                                        timed_node->weights[(f * channels + c) * taps + tap];
}

static inline void add_products(const float *pixel, const float *weights, double *sums, int64_t n)
{
        for (int64_t k = 0; k < n; k++)
                sums[k] += (double)pixel[k] * (double)weights[k];
}

/* Several sums side by side, in several vectors: one alone would wait for itself at each step. */
static inline double dot(const float *pixel, int64_t step, const float *weights, int64_t n)
{
        double sums[LANES] = {0}, sum = 0;
        int64_t i = 0;

        for (; step == 1 && i + LANES <= n; i += LANES)
                add_products(pixel + i, weights + i, sums, LANES);
        for (; step == 1 && i + FEW_LANES <= n; i += FEW_LANES)
                add_products(pixel + i, weights + i, sums, FEW_LANES);
        for (; i < n; i++)
                sum += (double)pixel[i * step] * (double)weights[i];
        for (int64_t k = 0; k < LANES; k++)
                sum += sums[k];
        return sum;
}

/* The sum of one output over channels and window; strides of the input as it lies. */
SL_TUNE_CLONES static double exact_sum(
        const struct timed_node *timed_node, const int64_t strides[4], int64_t filter, int64_t row, int64_t column)
{
        const int64_t *x = timed_node->node.inputs[0].shape.dims, *kernel = timed_node->window.kernel;
        const float *taps = timed_node->taps + filter * kernel[0] * kernel[1] * x[1];
        double sum = 0;

        for (int64_t ky = 0; ky < kernel[0]; ky++) {
                for (int64_t kx = 0; kx < kernel[1]; kx++, taps += x[1]) {
                        int64_t y_in = row * timed_node->window.stride[0] + ky * timed_node->window.dilation[0] -
                                       timed_node->window.pad_begin[0];
                        int64_t x_in = column * timed_node->window.stride[1] + kx * timed_node->window.dilation[1] -
                                       timed_node->window.pad_begin[1];

                        if (y_in >= 0 && y_in < x[2] && x_in >= 0 && x_in < x[3])
                                sum += dot(timed_node->input + y_in * strides[2] + x_in * strides[3], strides[1], taps, x[1]);
                }
        }
        return sum;
}

static double relative(double worst, double largest)
{
        return largest > 0 ? worst / largest : worst > 0 ? INFINITY : 0;
}

static double compare(const struct timed_node *timed_node, const float *approximate)
{
        const struct sl_tensor *output = &timed_node->node.outputs[0];
        const int64_t *dims = output->shape.dims;
        int64_t in[SL_RANK_MAX], out[SL_RANK_MAX];
        double worst = 0, largest = 0;

        sl_tensor_strides(&timed_node->node.inputs[0], in);
        sl_tensor_strides(output, out);
        for (int64_t i = 0; i < dims[1] * dims[2] * dims[3]; i++) {
                int64_t filter = i / (dims[2] * dims[3]), row = i / dims[3] % dims[2], column = i % dims[3];
                double exact = exact_sum(timed_node, in, filter, row, column);
                double difference = fabs(exact - (double)approximate[filter * out[1] + row * out[2] + column * out[3]]);

                if (!isfinite(difference))
                        return INFINITY;
                worst = fmax(worst, difference);
                largest = fmax(largest, fabs(exact));
        }
        return relative(worst, largest);
}

int sl_exactness_sample(
        const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants, double *ret_error)
{
        SL_CLEANUP(sl_cleanup_part_free) struct timed_node *timed_node = calloc(1, sizeof(*timed_node));
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *run = NULL;
        const void *inputs[SL_NODE_INPUTS_MAX] = {NULL}, *small[SL_NODE_INPUTS_MAX] = {NULL};
        int r;

        if (!timed_node)
                return -ENOMEM;
        node = sl_image_node(node, &timed_node->image);
        if (!is_known(node, constants))
                return -ENOTSUP;
        r = describe(node, timed_node);
        if (r < 0)
                return r;
        timed_node->weights = malloc(sl_tensor_bytes(&timed_node->node.inputs[1]));
        timed_node->input = aligned_alloc(64, (sl_tensor_bytes(&timed_node->node.inputs[0]) + 63) & ~63ull);
        timed_node->taps = malloc(sl_tensor_bytes(&timed_node->node.inputs[1]));
        if (!timed_node->weights || !timed_node->input || !timed_node->taps)
                return -ENOMEM;
        pick_filters(node, constants[1], timed_node);
        turn_filters(timed_node);
        sl_node_run_fill(&timed_node->node.inputs[0], 1, timed_node->input);
        small[1] = timed_node->weights;
        inputs[0] = timed_node->input;
        r = sl_node_run_new(backend, &timed_node->node, small, &run, NULL);
        if (r == 0)
                r = sl_node_run_once(run, inputs);
        if (r == 0)
                *ret_error = compare(timed_node, sl_node_run_output(run, 0));
        return r;
}

/* A node of bfloat16 as one of float32, with its numbers. */
struct widened {
        struct sl_node_desc node;
        const void *constants[SL_NODE_INPUTS_MAX], *inputs[SL_NODE_INPUTS_MAX];
        float *floats[SL_NODE_INPUTS_MAX];
};

static struct widened *widened_free(struct widened *widened)
{
        for (uint32_t i = 0; widened && i < SL_NODE_INPUTS_MAX; i++)
                free(widened->floats[i]);
        free(widened);
        return NULL;
}

SL_DEFINE_CLEANUP(struct widened *, widened_free)

static int widen_input(struct widened *widened, uint32_t index, const void **data)
{
        struct sl_tensor *tensor = &widened->node.inputs[index];
        uint64_t n = sl_shape_elements(&tensor->shape);

        if (!*data || tensor->dtype != SL_DTYPE_BF16)
                return 0;
        widened->floats[index] = aligned_alloc(64, (n * sizeof(float) + 63) & ~63ull);
        if (!widened->floats[index])
                return -ENOMEM;
        widen(SL_DTYPE_BF16, *data, n, widened->floats[index]);
        *data = widened->floats[index];
        tensor->dtype = SL_DTYPE_F32;
        return 0;
}

static int widened_new(
        const struct sl_node_desc *node, const void *const *constants, const void *const *inputs, struct widened **ret_widened)
{
        SL_CLEANUP(sl_cleanup_widened_free) struct widened *widened = calloc(1, sizeof(*widened));
        int r = widened ? 0 : -ENOMEM;

        if (r == 0)
                widened->node = *node;
        for (uint32_t i = 0; r == 0 && i < node->n_inputs; i++) {
                widened->constants[i] = constants[i];
                widened->inputs[i] = inputs[i];
                r = widen_input(widened, i, constants[i] ? &widened->constants[i] : &widened->inputs[i]);
        }
        if (r < 0)
                return r;
        widened->node.outputs[0].dtype = SL_DTYPE_F32;
        *ret_widened = widened;
        widened = NULL;
        return 0;
}

static int run_widened(const struct sl_backend *backend, const struct widened *widened, struct sl_node_run **ret_run)
{
        int r = sl_node_run_new(backend, &widened->node, widened->constants, ret_run, NULL);

        return r < 0 ? r : sl_node_run_once(*ret_run, widened->inputs);
}

int sl_exactness_widened(const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants,
        const void *const *inputs, double *ret_error)
{
        SL_CLEANUP(sl_cleanup_widened_free) struct widened *widened = NULL;
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *approximate = NULL;
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *exact = NULL;
        int r = widened_new(node, constants, inputs, &widened);

        if (r == 0)
                r = run_widened(backend, widened, &approximate);
        if (r == 0)
                r = sl_attrs_set_int(&widened->node.attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);
        if (r == 0)
                r = run_widened(backend, widened, &exact);
        if (r == 0)
                *ret_error = sl_exactness_compare(sl_node_run_output(approximate, 0), sl_node_run_output(exact, 0),
                        sl_shape_elements(&node->outputs[0].shape));
        return r;
}

double sl_exactness_compare(const float *approximate, const float *exact, uint64_t n)
{
        double worst = 0, largest = 0;

        for (uint64_t i = 0; i < n; i++) {
                double size = fabs((double)exact[i]), difference = fabs((double)approximate[i] - (double)exact[i]);

                if (!isfinite(difference))
                        return INFINITY;
                worst = difference > worst ? difference : worst;
                largest = size > largest ? size : largest;
        }
        return relative(worst, largest);
}
