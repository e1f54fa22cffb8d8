/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that a random file is made of: each maker adds one that makes sense with the values there are, or several, or none. */
#include "import.h"
#include "random_graph.h"

#include <stdio.h>
#include <string.h>

#define NONE     UINT32_MAX
#define RANK_MAX RANDOM_RANK_MAX

static const struct sl_shape *shape_of(const struct random_graph *g, uint32_t value)
{
        return &g->values[value].tensor.shape;
}

static uint32_t rank_of(const struct random_graph *g, uint32_t value)
{
        return shape_of(g, value)->rank;
}

/* A value of that type, the latest ones more often; NONE when there is none. */
static uint32_t pick(struct random_graph *g, uint32_t dtype)
{
        for (uint32_t tries = 0; tries < 24; tries++) {
                uint32_t newest = random_graph_below(g, g->n_values) + 1, value = g->n_values - 1 - random_graph_below(g, newest);

                if (g->values[value].tensor.dtype == dtype)
                        return value;
        }
        return NONE;
}

/* One that has a dimension at least. */
static uint32_t pick_tensor(struct random_graph *g)
{
        for (uint32_t tries = 0; tries < 8; tries++) {
                uint32_t value = pick(g, SL_DTYPE_F32);

                if (value != NONE && rank_of(g, value))
                        return value;
        }
        return NONE;
}

static void new_name(struct random_graph *g, char prefix, char name[8])
{
        snprintf(name, 8, "%c%u", prefix, (unsigned)(g->b->graph.n_node + g->b->graph.n_initializer) % 10000u);
}

/* The first one less often: along it most operators mix the samples. */
static int64_t pick_axis(struct random_graph *g, uint32_t rank)
{
        return rank < 2 || random_graph_below(g, 5) == 0 ? 0 : 1 + (int64_t)random_graph_below(g, rank - 1);
}

static const char *constant_ints(struct random_graph *g, bool scalar, uint32_t n, const int64_t *ints, char name[8])
{
        new_name(g, 'k', name);
        builder_ints(g->b, name, scalar ? 0 : 1, (int64_t[]){n}, ints);
        return name;
}

static Onnx__NodeProto *begin(struct random_graph *g, const char *type, const char *a, const char *b, const char *c)
{
        char inputs[64], output[8];

        new_name(g, 'v', output);
        snprintf(inputs, sizeof(inputs), "%s%s%s%s%s", a, b ? "," : "", b ? b : "", c ? "," : "", c ? c : "");
        return builder_node(g->b, type, inputs, output);
}

/* The node becomes a value if the file is one with it. */
static uint32_t finish(struct random_graph *g, Onnx__NodeProto *node)
{
        struct random_value *made = &g->values[g->n_values];
        struct sl_graph *graph = NULL;
        size_t n_bytes;
        const uint8_t *bytes;

        if (g->n_values == RANDOM_VALUES_MAX)
                return NONE;
        snprintf(made->name, sizeof(made->name), "%s", node->output[0]);
        made->tensor = (struct sl_tensor){.dtype = SL_DTYPE_F32};
        random_graph_declare(g, g->n_values);
        bytes = builder_pack(g->b, &n_bytes);
        if (sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, NULL) < 0) {
                g->b->graph.n_node--;
                return NONE;
        }
        made->tensor = graph->values[graph->outputs[0]].tensor;
        sl_graph_free(graph);
        if (made->tensor.shape.rank > RANK_MAX || sl_tensor_bytes(&made->tensor) > 1 << 14) {
                g->b->graph.n_node--;
                return NONE;
        }
        return g->n_values++;
}

static const char *name_of(const struct random_graph *g, uint32_t value)
{
        return g->values[value].name;
}

static uint32_t apply(struct random_graph *g, const char *type, uint32_t a)
{
        return a == NONE ? NONE : finish(g, begin(g, type, name_of(g, a), NULL, NULL));
}

static uint32_t apply2(struct random_graph *g, const char *type, uint32_t a, uint32_t b)
{
        return a == NONE || b == NONE ? NONE : finish(g, begin(g, type, name_of(g, a), name_of(g, b), NULL));
}

static uint32_t apply_ints(struct random_graph *g, const char *type, uint32_t a, bool scalar, uint32_t n, const int64_t *ints)
{
        char name[8];

        return a == NONE ? NONE : finish(g, begin(g, type, name_of(g, a), constant_ints(g, scalar, n, ints, name), NULL));
}

static uint32_t apply_axis(struct random_graph *g, const char *type, uint32_t a, int64_t axis)
{
        Onnx__NodeProto *node;

        if (a == NONE)
                return NONE;
        node = begin(g, type, name_of(g, a), NULL, NULL);
        builder_attr_int(g->b, node, "axis", axis);
        return finish(g, node);
}

static uint32_t cast(struct random_graph *g, uint32_t a, int64_t to)
{
        Onnx__NodeProto *node;

        if (a == NONE)
                return NONE;
        node = begin(g, "Cast", name_of(g, a), NULL, NULL);
        builder_attr_int(g->b, node, "to", to);
        return finish(g, node);
}

/* One dimension of some tensor as an integer, a scalar or a vector. */
static uint32_t dimension(struct random_graph *g, bool scalar)
{
        uint32_t x = random_graph_below(g, 2) ? random_graph_below(g, g->n_inputs) : pick_tensor(g);
        int64_t axis;

        if (x == NONE || !rank_of(g, x))
                return NONE;
        axis = random_graph_below(g, 3) ? 0 : random_graph_below(g, rank_of(g, x));
        return apply_ints(g, "Gather", apply(g, "Shape", x), scalar, 1, &axis);
}

/* Arithmetic on one dimension. */
static uint32_t number(struct random_graph *g, bool scalar)
{
        static const char *const types[] = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Mod"};
        uint32_t value = dimension(g, scalar);
        int64_t k = 1 + random_graph_below(g, 4);

        if (value == NONE || random_graph_below(g, 2))
                return value;
        return apply_ints(g, types[random_graph_below(g, 7)], value, scalar, 1, &k);
}

static uint32_t join_ints(struct random_graph *g, uint32_t a, uint32_t b, const char *constant, bool first)
{
        const char *other = constant ? constant : b == NONE ? NULL : name_of(g, b);
        Onnx__NodeProto *node;

        if (a == NONE || !other)
                return NONE;
        node = begin(g, "Concat", first ? other : name_of(g, a), first ? name_of(g, a) : other, NULL);
        builder_attr_int(g->b, node, "axis", 0);
        return finish(g, node);
}

/* "The batch, and the rest", and less likely lists. */
static uint32_t target_shape(struct random_graph *g, uint32_t like)
{
        char name[8];
        int64_t ints[2];
        uint32_t n = 1 + random_graph_below(g, 2);

        if (random_graph_below(g, 3) == 0)
                return apply(g, "Shape", random_graph_below(g, 2) ? random_graph_below(g, g->n_inputs) : pick(g, SL_DTYPE_F32));
        for (uint32_t i = 0; i < n; i++)
                ints[i] = random_graph_below(g, 3) ? -1 : (int64_t)random_graph_below(g, 4);
        if (like != NONE && rank_of(g, like) > 1 && random_graph_below(g, 2))
                ints[0] = shape_of(g, like)->dims[rank_of(g, like) - 1];
        return join_ints(g, number(g, false), NONE, constant_ints(g, false, n, ints, name), random_graph_below(g, 4) == 0);
}

/* A constant that broadcasts with @like, more or less. */
static uint32_t constant_like(struct random_graph *g, uint32_t like, char name[8])
{
        uint32_t rank = random_graph_below(g, rank_of(g, like) + 2), n = 1;
        int64_t dims[RANK_MAX + 1];
        float data[256];

        for (uint32_t i = 0; i < rank; i++) {
                int64_t from_end = rank - i,
                        dim = from_end <= rank_of(g, like) ? shape_of(g, like)->dims[rank_of(g, like) - from_end] : 1;

                dims[i] = random_graph_below(g, 3) == 0 || dim < 1 ? 1
                          : random_graph_below(g, 8)               ? dim
                                                                   : 1 + random_graph_below(g, 3);
                n *= (uint32_t)dims[i];
        }
        if (n > 256 || rank > RANK_MAX)
                return NONE;
        for (uint32_t i = 0; i < n; i++)
                data[i] = (float)random_graph_below(g, 9) - 4;
        new_name(g, 'c', name);
        builder_floats(g->b, name, rank, dims, data);
        return 0;
}

static void make_unary(struct random_graph *g)
{
        static const char *const types[] = {"Relu", "Neg", "Abs", "Squeeze", "Squeeze", "Squeeze", "Identity"};

        apply(g, types[random_graph_below(g, 7)], pick(g, SL_DTYPE_F32));
}

static void make_binary(struct random_graph *g)
{
        static const char *const types[] = {"Add", "Mul", "Sub", "Max", "Min", "MatMul"};
        uint32_t a = pick(g, SL_DTYPE_F32);
        const char *type = types[random_graph_below(g, 6)];
        char name[8];

        if (a == NONE || random_graph_below(g, 2))
                apply2(g, type, a, pick(g, SL_DTYPE_F32));
        else if (constant_like(g, a, name) != NONE)
                finish(g, begin(g, type, random_graph_below(g, 2) ? name : name_of(g, a),
                                  random_graph_below(g, 2) ? name_of(g, a) : name, NULL));
}

static void make_where(struct random_graph *g)
{
        static const char *const types[] = {"Greater", "Equal", "Less"};
        uint32_t a = pick(g, SL_DTYPE_F32), b = pick(g, SL_DTYPE_F32), condition;
        int64_t k = 1 + random_graph_below(g, 3);

        condition = random_graph_below(g, 2)
                            ? apply_ints(g, types[random_graph_below(g, 3)], number(g, random_graph_below(g, 2)), true, 1, &k)
                            : apply2(g, types[random_graph_below(g, 3)], a, pick(g, SL_DTYPE_F32));
        if (condition != NONE && a != NONE && b != NONE)
                finish(g, begin(g, "Where", name_of(g, condition), name_of(g, a), name_of(g, b)));
}

static void make_axes(struct random_graph *g)
{
        static const char *const types[] = {"Squeeze", "Unsqueeze", "ReduceSum"};
        uint32_t x = pick(g, SL_DTYPE_F32), kind = random_graph_below(g, 3);
        int64_t axis;
        Onnx__NodeProto *node;
        char name[8];

        if (x == NONE)
                return;
        axis = pick_axis(g, rank_of(g, x) + 1);
        node = begin(g, types[kind], name_of(g, x), constant_ints(g, false, 1, &axis, name), NULL);
        if (kind == 2)
                builder_attr_int(g->b, node, "keepdims", random_graph_below(g, 2));
        finish(g, node);
}

static void make_reduction(struct random_graph *g)
{
        static const char *const types[] = {"ReduceMax", "ReduceMean", "ReduceMin"};
        uint32_t x = pick_tensor(g);
        Onnx__NodeProto *node;

        if (x == NONE)
                return;
        node = begin(g, types[random_graph_below(g, 3)], name_of(g, x), NULL, NULL);
        builder_attr_int(g->b, node, "keepdims", random_graph_below(g, 2));
        builder_attr_ints(g->b, node, "axes", 1, (int64_t[]){pick_axis(g, rank_of(g, x))});
        finish(g, node);
}

static void make_along(struct random_graph *g)
{
        static const char *const types[] = {"Softmax", "Flatten", "ArgMax", "Softmax"};
        uint32_t x = pick_tensor(g);
        int64_t axis;

        if (x == NONE)
                return;
        axis = pick_axis(g, rank_of(g, x));
        if (random_graph_below(g, 3))
                apply_axis(g, types[random_graph_below(g, 4)], x, axis);
        else
                apply_ints(g, "CumSum", x, true, 1, &axis);
}

static void make_reshape(struct random_graph *g)
{
        uint32_t x = pick(g, SL_DTYPE_F32), n = 1 + random_graph_below(g, 3);
        int64_t ints[3];

        if (x == NONE)
                return;
        for (uint32_t i = 0; i < n; i++)
                ints[i] = random_graph_below(g, 2) ? (int64_t)random_graph_below(g, 5) : -1;
        if (random_graph_below(g, 2))
                apply_ints(g, "Reshape", x, false, n, ints);
        else
                apply2(g, "Reshape", x, target_shape(g, x));
}

static void make_expand(struct random_graph *g)
{
        uint32_t x = pick(g, SL_DTYPE_F32);
        int64_t ints[3];

        for (uint32_t i = 0; i < 3; i++)
                ints[i] = 1 + random_graph_below(g, 3);
        if (random_graph_below(g, 4) == 0)
                apply_ints(g, "Expand", x, false, 1 + random_graph_below(g, 3), ints);
        else if (random_graph_below(g, 3))
                apply2(g, "Expand", x, target_shape(g, x));
        else if (x != NONE && rank_of(g, x) == 1)
                apply2(g, "Tile", x, number(g, false));
        else if (x != NONE)
                apply_ints(g, "Tile", x, false, rank_of(g, x) < 3 ? rank_of(g, x) : 3, ints);
}

static void make_concat(struct random_graph *g)
{
        uint32_t a = pick_tensor(g), b = pick_tensor(g);
        Onnx__NodeProto *node;

        if (a == NONE || b == NONE)
                return;
        node = begin(g, "Concat", name_of(g, a), name_of(g, b), NULL);
        builder_attr_int(g->b, node, "axis", pick_axis(g, rank_of(g, a)));
        finish(g, node);
}

static void make_slice(struct random_graph *g)
{
        uint32_t x = pick_tensor(g), end = number(g, false);
        int64_t start = (int64_t)random_graph_below(g, 3) - 1,
                last = random_graph_below(g, 2) ? INT32_MAX : 1 + random_graph_below(g, 3), axis;
        char starts[8], ends[8], axes[8], inputs[64], output[8];

        if (x == NONE)
                return;
        axis = pick_axis(g, rank_of(g, x));
        constant_ints(g, false, 1, &start, starts);
        constant_ints(g, false, 1, &axis, axes);
        if (end == NONE || random_graph_below(g, 2))
                constant_ints(g, false, 1, &last, ends);
        else
                snprintf(ends, sizeof(ends), "%s", name_of(g, end));
        new_name(g, 'v', output);
        snprintf(inputs, sizeof(inputs), "%s,%s,%s,%s", name_of(g, x), starts, ends, axes);
        finish(g, builder_node(g->b, "Slice", inputs, output));
}

/* As many as ever, from a place on that depends on a size. */
static void make_shifted(struct random_graph *g)
{
        uint32_t x = pick_tensor(g), start = number(g, false), end;
        char axes[8], inputs[64], output[8];
        int64_t axis;

        if (x == NONE || start == NONE)
                return;
        start = apply_ints(g, random_graph_below(g, 2) ? "Div" : "Sub", start, false, 1, (int64_t[]){1 + random_graph_below(g, 3)});
        end = apply_ints(g, "Add", start, false, 1, (int64_t[]){1 + random_graph_below(g, 2)});
        if (end == NONE)
                return;
        axis = pick_axis(g, rank_of(g, x));
        constant_ints(g, false, 1, &axis, axes);
        new_name(g, 'v', output);
        snprintf(inputs, sizeof(inputs), "%s,%s,%s,%s", name_of(g, x), name_of(g, start), name_of(g, end), axes);
        finish(g, builder_node(g->b, "Slice", inputs, output));
}

/* 0, 1, 2, ... up to some number, as floats or as indices. */
static uint32_t range(struct random_graph *g)
{
        uint32_t limit = number(g, true);
        char zero[8], one[8];

        if (limit == NONE)
                return NONE;
        constant_ints(g, true, 1, (int64_t[]){0}, zero);
        constant_ints(g, true, 1, (int64_t[]){1}, one);
        return finish(g, begin(g, "Range", zero, name_of(g, limit), one));
}

static void make_gather(struct random_graph *g)
{
        uint32_t x = pick_tensor(g), indices = random_graph_below(g, 2) ? range(g) : NONE;
        Onnx__NodeProto *node;
        int64_t ints[2];
        char name[8];

        if (x == NONE)
                return;
        for (int i = 0; i < 2; i++)
                ints[i] = (int64_t)random_graph_below(g, 3) - 1;
        if (indices == NONE)
                constant_ints(g, random_graph_below(g, 2), 1 + random_graph_below(g, 2), ints, name);
        node = begin(g, "Gather", name_of(g, x), indices == NONE ? name : name_of(g, indices), NULL);
        builder_attr_int(g->b, node, "axis", pick_axis(g, rank_of(g, x)));
        finish(g, node);
}

/* Numbers of the shape meet the data. */
static void make_factor(struct random_graph *g)
{
        uint32_t kind = random_graph_below(g, 3), value = kind == 0   ? range(g)
                                                          : kind == 1 ? number(g, random_graph_below(g, 2))
                                                                      : apply(g, "Size", pick(g, SL_DTYPE_F32));

        apply2(g, random_graph_below(g, 2) ? "Mul" : "Add", cast(g, value, SL_DTYPE_F32), pick(g, SL_DTYPE_F32));
}

static void make_filled(struct random_graph *g)
{
        uint32_t shape = target_shape(g, NONE);

        if (random_graph_below(g, 2))
                apply(g, "ConstantOfShape", shape);
        else
                cast(g, pick(g, SL_DTYPE_I64), SL_DTYPE_F32);
}

static void make_transpose(struct random_graph *g)
{
        uint32_t x = pick_tensor(g), rank;
        int64_t perm[RANK_MAX];
        Onnx__NodeProto *node;

        if (x == NONE)
                return;
        rank = rank_of(g, x);
        for (uint32_t i = 0; i < rank; i++)
                perm[i] = i;
        for (uint32_t i = rank, least = random_graph_below(g, 3) ? 1 : 0; i-- > least;) {
                uint32_t other = least + random_graph_below(g, i + 1 - least);
                int64_t kept = perm[i];

                perm[i] = perm[other];
                perm[other] = kept;
        }
        node = begin(g, "Transpose", name_of(g, x), NULL, NULL);
        builder_attr_ints(g->b, node, "perm", rank, perm);
        finish(g, node);
}

static void make_one_hot(struct random_graph *g)
{
        uint32_t indices = pick(g, SL_DTYPE_I64), depth = random_graph_below(g, 2) ? number(g, true) : NONE;
        char values[8], constant[8];

        if (indices == NONE)
                return;
        new_name(g, 'c', values);
        builder_floats(g->b, values, DIMS(2), (float[]){-1, 2});
        if (depth == NONE)
                constant_ints(g, true, 1, (int64_t[]){3}, constant);
        finish(g, begin(g, "OneHot", name_of(g, indices), depth == NONE ? constant : name_of(g, depth), values));
}

static struct builder *branch(struct random_graph *g, uint32_t captured)
{
        static const char *const types[] = {"Relu", "Neg", "Identity", "Squeeze", "Abs"};
        struct builder *body = builder_new(13);

        g->bodies[g->n_bodies++] = body;
        builder_node(body, types[random_graph_below(g, 5)], name_of(g, captured), "z");
        builder_output(body, "z");
        return body;
}

/* Which way is taken depends on a size, as where exporters write what x.squeeze() does. */
static void make_if(struct random_graph *g)
{
        uint32_t x = pick(g, SL_DTYPE_F32), condition;
        int64_t k = 1 + random_graph_below(g, 3);
        Onnx__NodeProto *node;

        condition = apply_ints(g, random_graph_below(g, 2) ? "Equal" : "Greater", number(g, true), true, 1, &k);
        if (x == NONE || condition == NONE || g->n_bodies + 2 > RANDOM_BODIES_MAX)
                return;
        node = begin(g, "If", name_of(g, condition), NULL, NULL);
        builder_attr_graph(g->b, node, "then_branch", branch(g, x));
        builder_attr_graph(g->b, node, "else_branch", branch(g, x));
        finish(g, node);
}

/* The greatest, as many as some size says. */
static void make_top(struct random_graph *g)
{
        uint32_t x = pick_tensor(g), count = number(g, false);
        Onnx__NodeProto *node;
        char inputs[32], values[8], places[8], outputs[24];

        if (x == NONE || count == NONE)
                return;
        new_name(g, 'v', values);
        new_name(g, 'w', places);
        snprintf(inputs, sizeof(inputs), "%s,%s", name_of(g, x), name_of(g, count));
        snprintf(outputs, sizeof(outputs), "%s,%s", values, places);
        node = builder_node(g->b, "TopK", inputs, outputs);
        builder_attr_int(g->b, node, "axis", pick_axis(g, rank_of(g, x)));
        finish(g, node);
}

/* Before and behind, along the last axis, by sizes. */
static void make_padded(struct random_graph *g)
{
        uint32_t x = pick_tensor(g), amount = number(g, false), pads = amount;
        int64_t zeros[2 * RANK_MAX] = {0};
        char name[8];

        if (x == NONE || amount == NONE)
                return;
        if (rank_of(g, x) > 1)
                pads = join_ints(g, amount, NONE, constant_ints(g, false, rank_of(g, x) - 1, zeros, name), true);
        apply2(g, "Pad", x,
                join_ints(g, pads, NONE, constant_ints(g, false, rank_of(g, x), zeros, name), random_graph_below(g, 2)));
}

static void make_part(struct random_graph *g)
{
        uint32_t x = pick_tensor(g);
        Onnx__NodeProto *node;
        char first[8], second[8], outputs[24];

        if (x == NONE)
                return;
        new_name(g, 'v', first);
        new_name(g, 'w', second);
        snprintf(outputs, sizeof(outputs), "%s,%s", first, second);
        node = builder_node(g->b, "Split", name_of(g, x), outputs);
        builder_attr_int(g->b, node, "axis", pick_axis(g, rank_of(g, x)));
        finish(g, node);
}

static void make_einsum(struct random_graph *g)
{
        static const char *const equations[] = {"i,j->ij", "ij,ij->i", "ij,kj->ik", "ij,jk->ik", "bij,bjk->bik", "bij,bij->bj",
                "ij->ji", "...i,...i->...", "ii->i", "ij,i->ij", "bij,ij->bi"};
        const char *equation = equations[random_graph_below(g, sizeof(equations) / sizeof(*equations))];
        uint32_t a = pick_tensor(g), b = pick_tensor(g);
        Onnx__NodeProto *node;

        if (a == NONE || b == NONE)
                return;
        node = begin(g, "Einsum", name_of(g, a), strchr(equation, ',') ? name_of(g, b) : NULL, NULL);
        builder_attr_string(g->b, node, "equation", equation);
        finish(g, node);
}

static void (*const makers[])(struct random_graph *g) = {make_unary, make_unary, make_binary, make_binary, make_binary, make_where,
        make_axes, make_reduction, make_along, make_reshape, make_reshape, make_expand, make_concat, make_slice, make_shifted,
        make_gather, make_factor, make_filled, make_transpose, make_one_hot, make_if, make_top, make_padded, make_part,
        make_einsum};

void random_graph_step(struct random_graph *g)
{
        makers[random_graph_below(g, sizeof(makers) / sizeof(*makers))](g);
}
