/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that draw. The elements of a sample lie one behind the other; each four of them, or two where a number wants more than 32
 * bits, are one block of Philox under the key of the node, the request and the sample.
 */
#include "draw.h"

#include "base/split_mix.h"
#include "element.h"
#include "kernels.h"
#include "philox.h"

#include <string.h>

#define TAU 6.283185307179586476925286766559

/* What the numbers of a key are made of, so that a seed in a file and one of an option that look alike are two. */
enum source { SOURCE_NODE = 1, SOURCE_MODEL, SOURCE_REQUEST };

int sl_ref_sample_keys(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct sl_draws none = {.keys = NULL}, *draws = binding->draws ? binding->draws : &none;
        uint64_t *out = binding->outputs[0], launch = (uint64_t)draws->launches++ << SL_DRAW_INDEX_BITS;

        for (int64_t i = 0; i < node->outputs[0].shape.dims[0] && sl_pace_on(binding->pace, 1); i++) {
                out[SL_DRAW_KEY_WORDS * i] = draws->keys ? draws->keys[i].origin : 0;
                out[SL_DRAW_KEY_WORDS * i + 1] = (draws->keys ? draws->keys[i].index : (uint32_t)i) | launch;
        }
        return 0;
}

static uint64_t mix(enum source source, uint64_t number, uint64_t stream)
{
        uint64_t state = number + (uint64_t)source * SL_SPLIT_MIX_STEP;

        state = sl_split_mix_scramble(state) + stream;
        return sl_split_mix_next(&state);
}

/* The file's seed goes before the model's, and that before the request. Nodes with one seed draw the same numbers, others never. */
static uint64_t key_of(const struct sl_node_desc *node, uint64_t origin)
{
        const struct sl_attr *seed = sl_attrs_find(&node->attrs, SL_ATTR_SEED);
        uint64_t stream = (uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_STREAM, 0), bits = 0;
        int64_t model = sl_attrs_int(&node->attrs, SL_ATTR_RANDOM_SEED, 0);

        if (seed) {
                double number = sl_attrs_float(&node->attrs, SL_ATTR_SEED, 0);

                memcpy(&bits, &number, sizeof(bits));
                return mix(SOURCE_NODE, bits, 0);
        }
        return model ? mix(SOURCE_MODEL, (uint64_t)model, stream) : mix(SOURCE_REQUEST, origin, stream);
}

/* Elements of a block, and how many the samples have. */
struct draw {
        const struct sl_node_desc *node;
        const uint64_t *keys;
        int64_t samples, elements, of_sample;
        uint32_t lanes; /* elements of a block */
        void *out;
        uint32_t dtype;
        double a, b;    /* mean and scale; low and the width */
        const void *in; /* of Bernoulli: probabilities */
        uint32_t in_dtype;
};

static struct draw draw_of(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t last = node->n_inputs - 1;
        struct draw draw = {.node = node,
                .keys = binding->inputs[last],
                .samples = node->inputs[last].shape.dims[0],
                .elements = (int64_t)sl_shape_elements(&node->outputs[0].shape),
                .out = binding->outputs[0],
                .dtype = node->outputs[0].dtype};

        draw.of_sample = draw.elements / draw.samples + (draw.elements % draw.samples != 0);
        draw.lanes = draw.dtype == SL_DTYPE_F64 ? 2 : 4;
        return draw;
}

/* [0, 1), of as many bits as the element has. */
static double unit(const struct draw *draw, const struct sl_philox *block, uint32_t lane)
{
        if (draw->lanes == 4)
                return (double)(block->words[lane] >> 8) * 0x1p-24;
        return (double)(((uint64_t)block->words[2 * lane] << 32 | block->words[2 * lane + 1]) >> 11) * 0x1p-53;
}

/* Sources: G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958. */
static double normal(const struct draw *draw, const struct sl_philox *block, uint32_t lane)
{
        uint32_t first = lane & ~1u;
        double radius, angle;

        if (draw->lanes == 4) {
                radius = ((double)block->words[first] + 1) * 0x1p-32;
                angle = TAU * 0x1p-32 * (double)block->words[first + 1];
        } else {
                radius = unit(draw, block, 0) + 0x1p-53;
                angle = TAU * unit(draw, block, 1);
        }
        radius = sqrt(-2 * log(radius));
        return radius * (lane & 1 ? sin(angle) : cos(angle));
}

static void put_uniform(const struct draw *draw, const struct sl_philox *block, uint32_t lane, int64_t at)
{
        sl_ref_store(draw->out, at, draw->dtype, draw->a + draw->b * unit(draw, block, lane));
}

static void put_normal(const struct draw *draw, const struct sl_philox *block, uint32_t lane, int64_t at)
{
        sl_ref_store(draw->out, at, draw->dtype, draw->a + draw->b * normal(draw, block, lane));
}

static void put_truth(const struct draw *draw, const struct sl_philox *block, uint32_t lane, int64_t at)
{
        double truth = unit(draw, block, lane) < sl_ref_load(draw->in, at, draw->in_dtype);

        sl_ref_store(draw->out, at, draw->dtype, truth);
}

static void draw_sample(const struct draw *draw, int64_t sample,
        void (*put)(const struct draw *draw, const struct sl_philox *block, uint32_t lane, int64_t at), struct sl_pace *pace)
{
        const uint64_t *own = draw->keys + SL_DRAW_KEY_WORDS * sample;
        uint64_t key = key_of(draw->node, own[0]);
        int64_t first = sample * draw->of_sample,
                n = draw->elements - first < draw->of_sample ? draw->elements - first : draw->of_sample;

        for (int64_t i = 0; i < n && sl_pace_on(pace, draw->lanes); i += draw->lanes) {
                struct sl_philox block = sl_philox_of(key, (uint64_t)(i / draw->lanes), own[1]);

                for (uint32_t lane = 0; lane < draw->lanes && i + lane < n; lane++)
                        put(draw, &block, lane, first + i + lane);
        }
}

static int draw_all(const struct draw *draw,
        void (*put)(const struct draw *draw, const struct sl_philox *block, uint32_t lane, int64_t at), struct sl_pace *pace)
{
        for (int64_t sample = 0; sample < draw->samples && sample * draw->of_sample < draw->elements; sample++)
                draw_sample(draw, sample, put, pace);
        return 0;
}

int sl_ref_random(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        bool is_normal = node->op == SL_OP_RANDOM_NORMAL || node->op == SL_OP_RANDOM_NORMAL_LIKE;
        struct draw draw = draw_of(node, binding);

        draw.a = is_normal ? sl_attrs_float(&node->attrs, SL_ATTR_MEAN, 0) : sl_attrs_float(&node->attrs, SL_ATTR_LOW, 0);
        draw.b =
                is_normal ? sl_attrs_float(&node->attrs, SL_ATTR_SCALE, 1) : sl_attrs_float(&node->attrs, SL_ATTR_HIGH, 1) - draw.a;
        return draw_all(&draw, is_normal ? put_normal : put_uniform, binding->pace);
}

int sl_ref_bernoulli(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct draw draw = draw_of(node, binding);

        draw.in = binding->inputs[0];
        draw.in_dtype = node->inputs[0].dtype;
        draw.lanes = 2;
        return draw_all(&draw, put_truth, binding->pace);
}

size_t sl_ref_scratch_multinomial(const struct sl_node_desc *node)
{
        return (size_t)node->inputs[0].shape.dims[1] * sizeof(double);
}

/* What is not finite has no share, as it is in ONNX Runtime. */
static void add_up_shares(const struct sl_node_desc *node, const void *in, int64_t row, double *sums, struct sl_pace *pace)
{
        int64_t classes = node->inputs[0].shape.dims[1];
        uint32_t dtype = node->inputs[0].dtype;
        double largest = -INFINITY, sum = 0;

        for (int64_t i = 0; i < classes && sl_pace_on(pace, 1); i++) {
                double logit = sl_ref_load(in, row * classes + i, dtype);

                largest = isfinite(logit) && logit > largest ? logit : largest;
        }
        for (int64_t i = 0; i < classes && sl_pace_on(pace, 1); i++) {
                double logit = sl_ref_load(in, row * classes + i, dtype);

                sum += isfinite(logit) ? exp(logit - largest) : 0;
                sums[i] = sum;
        }
}

/* The first class whose sum is above @share; without any share the last. */
static int64_t class_of(const double *sums, int64_t classes, double share)
{
        int64_t low = 0, high = classes - 1;

        while (low < high) {
                int64_t middle = low + (high - low) / 2;

                if (sums[middle] > share)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

int sl_ref_multinomial(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct draw draw = draw_of(node, binding);
        int64_t rows = node->outputs[0].shape.dims[0], n = node->outputs[0].shape.dims[1], classes = node->inputs[0].shape.dims[1];
        double *sums = binding->scratch;

        draw.lanes = 2;
        for (int64_t row = 0; row < rows && n; row++) {
                int64_t first = row * n, sample = first / draw.of_sample;
                const uint64_t *own = draw.keys + SL_DRAW_KEY_WORDS * sample;
                uint64_t key = key_of(node, own[0]);

                add_up_shares(node, binding->inputs[0], row, sums, binding->pace);
                for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                        int64_t at = first + i - sample * draw.of_sample;
                        struct sl_philox block = sl_philox_of(key, (uint64_t)at / 2, own[1]);
                        double share = unit(&draw, &block, (uint32_t)(at & 1)) * sums[classes - 1];

                        sl_ref_store_bits(draw.out, first + i, draw.dtype, (uint64_t)class_of(sums, classes, share));
                }
        }
        return 0;
}
