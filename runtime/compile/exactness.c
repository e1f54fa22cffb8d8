/* SPDX-License-Identifier: Apache-2.0 */
#include "exactness.h"

#include "backend.h"
#include "base/cleanup.h"
#include "op.h"
#include "shape/image_node.h"
#include "shape/window.h"
#include "trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part: enough for two tiles of 4x4 next to each other, edge included. */
#define FILTERS_MAX 16
#define HEIGHT_MAX  8
#define WIDTH_MAX   6

#define LANES 8 /* of a sum */

struct part {
        struct sl_node_desc image; /* the whole node, if it is one over a line */
        struct sl_node_desc node;
        struct sl_window window;
        float *weights, *input; /* as in the node, the filters picked */
        float *taps;            /* the weights again: [filter][tap][channel] */
};

SL_DEFINE_CLEANUP(struct sl_trial *, sl_trial_free)

static struct part *part_free(struct part *part)
{
        if (!part)
                return NULL;
        free(part->weights);
        free(part->input);
        free(part->taps);
        free(part);
        return NULL;
}

SL_DEFINE_CLEANUP(struct part *, part_free)

static bool is_known(const struct sl_node_desc *node, const void *const *constants)
{
        return node->op == SL_OP_CONV && node->n_inputs >= 2 && constants[1] && node->inputs[0].shape.rank == 4 &&
               node->inputs[0].dtype == SL_DTYPE_F32 && node->inputs[1].dtype == SL_DTYPE_F32 &&
               sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) == 1;
}

static int64_t at_most(int64_t number, int64_t limit)
{
        return number < limit ? number : limit;
}

/* No bias and no epilogue: they add the same to both sides and would only make the output's range larger. */
static int describe(const struct sl_node_desc *node, struct part *part)
{
        struct sl_node_desc *small = &part->node;
        uint32_t layout = node->outputs[0].layout;
        int r;

        *small = (struct sl_node_desc){.op = node->op, .n_inputs = 2, .n_outputs = 1, .attrs = node->attrs};
        small->inputs[0] = node->inputs[0];
        small->inputs[0].shape.dims[0] = 1;
        small->inputs[0].shape.dims[2] = at_most(node->inputs[0].shape.dims[2], HEIGHT_MAX);
        small->inputs[0].shape.dims[3] = at_most(node->inputs[0].shape.dims[3], WIDTH_MAX);
        small->inputs[1] = node->inputs[1];
        small->inputs[1].shape.dims[0] = at_most(node->inputs[1].shape.dims[0], FILTERS_MAX);
        r = sl_op_infer(small, NULL);
        small->outputs[0].layout = layout;
        return r < 0 ? r : sl_window_read(small, &part->window, NULL);
}

/* Filters from the whole range, at equal distances. */
static void pick_filters(const struct sl_node_desc *node, const float *weights, struct part *part)
{
        int64_t n = part->node.inputs[1].shape.dims[0], all = node->inputs[1].shape.dims[0];
        uint64_t floats = sl_shape_elements(&node->inputs[1].shape) / (uint64_t)all;

        for (int64_t f = 0; f < n; f++)
                memcpy(part->weights + (uint64_t)f * floats, weights + (uint64_t)(f * all / n) * floats, floats * sizeof(float));
}

/* Channels side by side, as a pixel has them. */
static void turn_filters(struct part *part)
{
        int64_t filters = part->node.inputs[1].shape.dims[0], channels = part->node.inputs[1].shape.dims[1];
        int64_t taps = part->window.kernel[0] * part->window.kernel[1];

        for (int64_t f = 0; f < filters; f++)
                for (int64_t c = 0; c < channels; c++)
                        for (int64_t tap = 0; tap < taps; tap++)
                                part->taps[(f * taps + tap) * channels + c] = part->weights[(f * channels + c) * taps + tap];
}

/* Several sums side by side: one alone would wait for itself at each step. */
static double dot(const float *pixel, int64_t step, const float *weights, int64_t n)
{
        double sums[LANES] = {0}, sum = 0;
        int64_t i = 0;

        for (; step == 1 && i + LANES <= n; i += LANES)
                for (int64_t k = 0; k < LANES; k++)
                        sums[k] += (double)pixel[i + k] * (double)weights[i + k];
        for (; i < n; i++)
                sum += (double)pixel[i * step] * (double)weights[i];
        for (int64_t k = 0; k < LANES; k++)
                sum += sums[k];
        return sum;
}

/* The sum of one output over channels and window; strides of the input as it lies. */
static double exact_sum(const struct part *part, const int64_t strides[4], int64_t filter, int64_t row, int64_t column)
{
        const int64_t *x = part->node.inputs[0].shape.dims, *kernel = part->window.kernel;
        const float *taps = part->taps + filter * kernel[0] * kernel[1] * x[1];
        double sum = 0;

        for (int64_t ky = 0; ky < kernel[0]; ky++) {
                for (int64_t kx = 0; kx < kernel[1]; kx++, taps += x[1]) {
                        int64_t y_in = row * part->window.stride[0] + ky * part->window.dilation[0] - part->window.pad_begin[0];
                        int64_t x_in = column * part->window.stride[1] + kx * part->window.dilation[1] - part->window.pad_begin[1];

                        if (y_in >= 0 && y_in < x[2] && x_in >= 0 && x_in < x[3])
                                sum += dot(part->input + y_in * strides[2] + x_in * strides[3], strides[1], taps, x[1]);
                }
        }
        return sum;
}

static double relative(double worst, double largest)
{
        return largest > 0 ? worst / largest : worst > 0 ? INFINITY : 0;
}

static double compare(const struct part *part, const float *approximate)
{
        const struct sl_tensor *output = &part->node.outputs[0];
        const int64_t *dims = output->shape.dims;
        int64_t in[SL_RANK_MAX], out[SL_RANK_MAX];
        double worst = 0, largest = 0;

        sl_tensor_strides(&part->node.inputs[0], in);
        sl_tensor_strides(output, out);
        for (int64_t i = 0; i < dims[1] * dims[2] * dims[3]; i++) {
                int64_t filter = i / (dims[2] * dims[3]), row = i / dims[3] % dims[2], column = i % dims[3];
                double exact = exact_sum(part, in, filter, row, column);
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
        SL_CLEANUP(sl_cleanup_part_free) struct part *part = calloc(1, sizeof(*part));
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        const void *inputs[SL_NODE_INPUTS_MAX] = {NULL}, *small[SL_NODE_INPUTS_MAX] = {NULL};
        int r;

        if (!part)
                return -ENOMEM;
        node = sl_image_node(node, &part->image);
        if (!is_known(node, constants))
                return -ENOTSUP;
        r = describe(node, part);
        if (r < 0)
                return r;
        part->weights = malloc(sl_tensor_bytes(&part->node.inputs[1]));
        part->input = aligned_alloc(64, (sl_tensor_bytes(&part->node.inputs[0]) + 63) & ~63ull);
        part->taps = malloc(sl_tensor_bytes(&part->node.inputs[1]));
        if (!part->weights || !part->input || !part->taps)
                return -ENOMEM;
        pick_filters(node, constants[1], part);
        turn_filters(part);
        sl_trial_fill(&part->node.inputs[0], 1, part->input);
        small[1] = part->weights;
        inputs[0] = part->input;
        r = sl_trial_new(backend, &part->node, small, &trial, NULL);
        if (r == 0)
                r = sl_trial_run(trial, inputs);
        if (r == 0)
                *ret_error = compare(part, sl_trial_output(trial, 0));
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
