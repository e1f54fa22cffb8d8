/* SPDX-License-Identifier: Apache-2.0 */
/* What is built next is decided by dice that all networks throw alike; their weights and own nodes follow from their numbers. */
#include "random_lanes.h"

#include <criterion/criterion.h>
#include <string.h>

#define VALUES_MAX 24

struct dice {
        uint64_t state;
};

/* One network while it is built. */
struct growth {
        struct network *net;
        struct dice dice;
        uint32_t lane, n_values;
        uint32_t values[VALUES_MAX];
};

static uint32_t roll(struct growth *g, uint32_t sides)
{
        g->dice.state = g->dice.state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(g->dice.state >> 33) % sides;
}

static const struct sl_shape *shape_of(const struct growth *g, uint32_t value)
{
        return &g->net->graph->values[value].tensor.shape;
}

static uint32_t unary(struct growth *g, uint32_t x)
{
        static const uint32_t ops[] = {SL_OP_RELU, SL_OP_SIGMOID, SL_OP_TANH, SL_OP_ABS, SL_OP_GELU, SL_OP_HARD_SWISH, SL_OP_NEG};

        return network_apply(g->net, ops[roll(g, 7)], x);
}

/* The one node that differs from network to network. */
static uint32_t own(struct growth *g, uint32_t x)
{
        static const uint32_t ops[] = {SL_OP_SIN, SL_OP_COS, SL_OP_TANH};

        for (uint32_t i = 0; i <= g->lane % 2; i++)
                x = network_apply(g->net, ops[g->lane % 3], x);
        return x;
}

/* By a constant of one element, of the last dimension or of the channels. */
static uint32_t scaled(struct growth *g, uint32_t x)
{
        const struct sl_shape *shape = shape_of(g, x);
        int64_t last = shape->dims[shape->rank - 1], channels = shape->rank == 4 ? shape->dims[1] : 0;
        uint32_t by = roll(g, 3), op = roll(g, 2) ? SL_OP_MUL : SL_OP_ADD;

        if (by == 0)
                return network_node(g->net, op, VALUES(x, network_weights(g->net, DIMS(1))), 0, NULL);
        if (by == 1 && channels)
                return network_node(g->net, op, VALUES(network_weights(g->net, DIMS(channels, 1, 1)), x), 0, NULL);
        return network_node(g->net, op, VALUES(x, network_weights(g->net, DIMS(last))), 0, NULL);
}

static uint32_t softmax(struct growth *g, uint32_t x)
{
        int64_t axis = 1 + roll(g, shape_of(g, x)->rank - 1);

        return network_node(g->net, SL_OP_SOFTMAX, 1, &x, ATTRS({SL_ATTR_AXIS, 0, {axis}}));
}

static uint32_t layer_norm(struct growth *g, uint32_t x)
{
        const struct sl_shape *shape = shape_of(g, x);
        int64_t last = shape->dims[shape->rank - 1];
        uint32_t scale = network_scales(g->net, DIMS(last)), shift = network_weights(g->net, DIMS(last));

        if (last < 2)
                return x;
        return network_node(g->net, SL_OP_LAYER_NORM, VALUES(x, scale, shift), 0, NULL);
}

/* Another value of the same shape, if there is one. */
static uint32_t partner_of(struct growth *g, uint32_t x)
{
        uint32_t from = roll(g, g->n_values);

        for (uint32_t i = 0; i < g->n_values; i++) {
                uint32_t other = g->values[(from + i) % g->n_values];

                if (other != x && sl_shape_equal(shape_of(g, other), shape_of(g, x)))
                        return other;
        }
        return SL_VALUE_NONE;
}

static uint32_t pair(struct growth *g, uint32_t x)
{
        static const uint32_t ops[] = {SL_OP_ADD, SL_OP_MUL, SL_OP_SUB};
        uint32_t other = partner_of(g, x), op = ops[roll(g, 3)];
        int64_t axis = 1 + roll(g, shape_of(g, x)->rank - 1);

        if (other == SL_VALUE_NONE)
                return x;
        if (roll(g, 2))
                return network_node(g->net, op, VALUES(x, other), 0, NULL);
        return network_node(g->net, SL_OP_CONCAT, VALUES(x, other), ATTRS({SL_ATTR_AXIS, 0, {axis}}));
}

/* A part along some axis, or both parts the other way round. */
static uint32_t part(struct growth *g, uint32_t x)
{
        int64_t axis = 1 + roll(g, shape_of(g, x)->rank - 1), size = shape_of(g, x)->dims[axis], cut = 1 + roll(g, 2);
        uint32_t a, b, both = roll(g, 2);

        if (size <= cut)
                return x;
        a = network_node(g->net, SL_OP_SLICE, 1, &x,
                ATTRS({SL_ATTR_STARTS, 1, {0}}, {SL_ATTR_ENDS, 1, {cut}}, {SL_ATTR_AXES, 1, {axis}}, {SL_ATTR_STEPS, 1, {1}}));
        b = network_node(g->net, SL_OP_SLICE, 1, &x,
                ATTRS({SL_ATTR_STARTS, 1, {cut}}, {SL_ATTR_ENDS, 1, {size}}, {SL_ATTR_AXES, 1, {axis}}, {SL_ATTR_STEPS, 1, {1}}));
        return both ? network_node(g->net, SL_OP_CONCAT, VALUES(b, a), ATTRS({SL_ATTR_AXIS, 0, {axis}})) : b;
}

static uint32_t convolve(struct growth *g, uint32_t x)
{
        int64_t from = shape_of(g, x)->dims[1], group = roll(g, 3) ? 1 : from, to = group * (1 + roll(g, 4 / (uint32_t)group + 1));

        return network_conv(g->net, x, from, to, roll(g, 2) ? 3 : 1, 1 + roll(g, 2), group);
}

static uint32_t pool(struct growth *g, uint32_t x)
{
        uint32_t op = roll(g, 2) ? SL_OP_MAX_POOL : SL_OP_AVERAGE_POOL;

        if (shape_of(g, x)->dims[2] < 3 || shape_of(g, x)->dims[3] < 3)
                return network_apply(g->net, SL_OP_GLOBAL_AVERAGE_POOL, x);
        return network_node(g->net, op, 1, &x,
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {2, 2}}, {SL_ATTR_STRIDES, 2, {1, 1}}, {SL_ATTR_PADS, 4, {0, 0, 0, 0}}));
}

static uint32_t instance_norm(struct growth *g, uint32_t x)
{
        int64_t channels = shape_of(g, x)->dims[1];
        uint32_t scale = network_scales(g->net, DIMS(channels)), shift = network_weights(g->net, DIMS(channels));

        return network_node(g->net, SL_OP_INSTANCE_NORM, VALUES(x, scale, shift), 0, NULL);
}

static uint32_t shuffle(struct growth *g, uint32_t x)
{
        const struct sl_shape shape = *shape_of(g, x);

        if (shape.dims[1] % 2)
                return x;
        x = network_node(
                g->net, SL_OP_RESHAPE, 1, &x, ATTRS({SL_ATTR_SHAPE, 5, {0, 2, shape.dims[1] / 2, shape.dims[2], shape.dims[3]}}));
        x = network_node(g->net, SL_OP_TRANSPOSE, 1, &x, ATTRS({SL_ATTR_PERM, 5, {0, 2, 1, 3, 4}}));
        return network_node(
                g->net, SL_OP_RESHAPE, 1, &x, ATTRS({SL_ATTR_SHAPE, 4, {0, shape.dims[1], shape.dims[2], shape.dims[3]}}));
}

static uint32_t pad(struct growth *g, uint32_t x)
{
        return network_node(g->net, SL_OP_PAD, 1, &x, ATTRS({SL_ATTR_PADS, 8, {0, roll(g, 2), 1, 0, 0, 0, 0, 1}}));
}

static uint32_t flatten(struct growth *g, uint32_t x)
{
        return network_node(g->net, SL_OP_FLATTEN, 1, &x, ATTRS({SL_ATTR_AXIS, 0, {1}}));
}

static uint32_t image(struct growth *g, uint32_t x)
{
        switch (roll(g, 10)) {
        case 0:
        case 1:
        case 2:
                return convolve(g, x);
        case 3:
                return network_batch_norm(g->net, x, shape_of(g, x)->dims[1]);
        case 4:
                return pool(g, x);
        case 5:
                return instance_norm(g, x);
        case 6:
                return shuffle(g, x);
        case 7:
                return pad(g, x);
        case 8:
                return network_node(g->net, SL_OP_TRANSPOSE, 1, &x, ATTRS({SL_ATTR_PERM, 4, {0, 2, 3, 1}}));
        default:
                return flatten(g, x);
        }
}

static uint32_t multiply(struct growth *g, uint32_t x)
{
        const struct sl_shape *shape = shape_of(g, x);
        int64_t from = shape->dims[shape->rank - 1], to = 1 + roll(g, 6);
        uint32_t bias = roll(g, 2), weights;

        if (shape->rank == 2 && roll(g, 2)) {
                weights = network_weights(g->net, DIMS(to, from));
                return network_node(g->net, SL_OP_GEMM, VALUES(x, weights, network_weights(g->net, DIMS(to))),
                        ATTRS({SL_ATTR_TRANS_B, 0, {1}}));
        }
        weights = network_weights(g->net, DIMS(from, to));
        x = network_node(g->net, SL_OP_MATMUL, VALUES(x, weights), 0, NULL);
        return bias ? network_node(g->net, SL_OP_ADD, VALUES(x, network_weights(g->net, DIMS(to))), 0, NULL) : x;
}

/* Rows by themselves transposed, as an attention has them. */
static uint32_t attend(struct growth *g, uint32_t x)
{
        uint32_t turned = network_node(g->net, SL_OP_TRANSPOSE, 1, &x, ATTRS({SL_ATTR_PERM, 3, {0, 2, 1}}));

        return network_node(g->net, SL_OP_MATMUL, VALUES(x, turned), 0, NULL);
}

static uint32_t reduce(struct growth *g, uint32_t x)
{
        int64_t axis = 1 + roll(g, shape_of(g, x)->rank - 1), keeps = shape_of(g, x)->rank < 3 || roll(g, 2);

        return network_node(g->net, roll(g, 2) ? SL_OP_REDUCE_MEAN : SL_OP_REDUCE_MAX, 1, &x,
                ATTRS({SL_ATTR_AXES, 1, {axis}}, {SL_ATTR_KEEPDIMS, 0, {keeps}}));
}

static uint32_t rows(struct growth *g, uint32_t x)
{
        switch (roll(g, 6)) {
        case 0:
        case 1:
                return multiply(g, x);
        case 2:
                return layer_norm(g, x);
        case 3:
                return shape_of(g, x)->rank == 3 ? attend(g, x) : multiply(g, x);
        case 4:
                return reduce(g, x);
        default:
                return shape_of(g, x)->rank == 3 ? flatten(g, x)
                                                 : network_node(g->net, SL_OP_UNSQUEEZE, 1, &x, ATTRS({SL_ATTR_AXES, 1, {1}}));
        }
}

/* An operator that nobody merges. */
static uint32_t island(struct growth *g, uint32_t x)
{
        return network_node(g->net, SL_OP_TRILU, 1, &x, 0, NULL);
}

static uint32_t grow(struct growth *g)
{
        uint32_t x = g->values[roll(g, 3) ? g->n_values - 1 : roll(g, g->n_values)];

        switch (roll(g, 12)) {
        case 0:
                return unary(g, x);
        case 1:
                return scaled(g, x);
        case 2:
                return roll(g, 4) ? unary(g, x) : own(g, x);
        case 3:
                return softmax(g, x);
        case 4:
                return pair(g, x);
        case 5:
                return part(g, x);
        case 6:
                return roll(g, 3) ? unary(g, x) : island(g, x);
        default:
                return shape_of(g, x)->rank == 4 ? image(g, x) : shape_of(g, x)->rank < 4 ? rows(g, x) : unary(g, x);
        }
}

static uint32_t first_value(struct growth *g)
{
        int64_t size = 2 + roll(g, 4);

        switch (roll(g, 3)) {
        case 0:
                return network_input(g->net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 2 * size));
        case 1:
                return network_input(g->net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, size));
        default:
                return network_input(g->net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 1 + roll(g, 4), 3 + size, 4));
        }
}

/* Nodes that nobody reads are outputs; one network's head may be wider than another's. */
static void finish(struct growth *g)
{
        uint32_t x = g->values[g->n_values - 1];

        if (roll(g, 3) == 0)
                x = own(g, x);
        if (shape_of(g, x)->rank == 4)
                x = flatten(g, x);
        if (roll(g, 2))
                x = network_node(g->net, SL_OP_MATMUL,
                        VALUES(x, network_weights(g->net, DIMS(shape_of(g, x)->dims[shape_of(g, x)->rank - 1], 2 + g->lane % 3))),
                        0, NULL);
        x = network_apply(g->net, SL_OP_IDENTITY, x);
        network_output(g->net, x);
        if (roll(g, 3) == 0 && g->values[g->n_values / 2] != g->values[0])
                network_output(g->net, network_apply(g->net, SL_OP_TANH, g->values[g->n_values / 2]));
        network_finish(g->net);
}

static void build(struct growth *g, uint64_t seed)
{
        uint32_t steps;

        network_init(g->net);
        g->net->state += (seed * RANDOM_LANES_MAX + g->lane + 1) * 0x9e3779b97f4a7c15u;
        g->dice.state = seed * 0x9e3779b97f4a7c15u + 12345;
        roll(g, 2);
        steps = 2 + roll(g, 10);
        g->values[g->n_values++] = first_value(g);
        if (roll(g, 4) == 0)
                g->values[g->n_values++] = network_input(g->net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, 4));
        for (uint32_t i = 0; i < steps; i++)
                g->values[g->n_values++] = grow(g);
        finish(g);
}

void random_lanes_init(struct random_lanes *lanes, uint64_t seed, uint32_t n)
{
        cr_assert_leq(n, RANDOM_LANES_MAX);
        memset(lanes, 0, sizeof(*lanes));
        lanes->n = n;
        for (uint32_t i = 0; i < n; i++) {
                struct growth growth = {.net = &lanes->nets[i], .lane = i};

                build(&growth, seed);
        }
}

void random_lanes_deinit(struct random_lanes *lanes)
{
        for (uint32_t i = 0; i < lanes->n; i++)
                network_deinit(&lanes->nets[i]);
}
