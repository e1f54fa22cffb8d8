/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks of convolutions, pools and what stands between them, and recurrent ones, as plans of any size: batch, height,
 * width and time come with each run. The oracle is the file with those sizes told to the importer, evaluated on `ref` without
 * passes. Weights are packed once, whatever sizes come; images stay channels last from one convolution to the next.
 */
#include "bodies_model.h"
#include "compile.h"
#include "evaluate.h"
#include "import.h"
#include "plan.h"
#include "ref/live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZES      20
#define AGAIN      4 /* of which each such one is asked for again */
#define ROOM       (8 << 20)
#define VALUES_MAX 24
#define TOLERANCE  1e-3f /* of the largest value: Winograd's share */

struct value {
        char name[16];
        int64_t channels;
        uint32_t grid; /* the same for values of the same height and width */
};

struct scene {
        struct builder *b;
        uint64_t state;
        char path[40];
        struct value values[VALUES_MAX];
        uint32_t n_values, n_grids, n_names;
        float *input, *wanted, *got;
        struct sl_shape wanted_shape;
        struct sl_error error, oracle; /* what the plan, and the file, says of the last sizes */
};

static uint32_t draw(struct scene *s, uint32_t n)
{
        s->state = s->state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(s->state >> 33) % n;
}

static const char *new_name(struct scene *s, char *ret_name)
{
        snprintf(ret_name, 16, "n%u", s->n_names++);
        return ret_name;
}

/* Weights about as large as keep what they make as large as what they are multiplied with. */
static const char *weights(struct scene *s, uint32_t rank, const int64_t *dims, int64_t depth, char *ret_name)
{
        uint64_t n = 1;
        float *data;

        for (uint32_t i = 0; i < rank; i++)
                n *= (uint64_t)dims[i];
        data = builder_alloc(s->b, n * sizeof(*data));
        for (uint64_t i = 0; i < n; i++)
                data[i] = ((float)draw(s, 2001) / 1000 - 1) * 1.7f / sqrtf((float)depth);
        builder_floats(s->b, new_name(s, ret_name), rank, dims, data);
        return ret_name;
}

static void add_value(struct scene *s, const char *name, int64_t channels, uint32_t grid)
{
        struct value *value = &s->values[s->n_values++];

        snprintf(value->name, sizeof(value->name), "%s", name);
        value->channels = channels;
        value->grid = grid;
}

static const struct value *pick(struct scene *s)
{
        uint32_t last = s->n_values < 3 ? s->n_values : 3;

        return &s->values[s->n_values - 1 - draw(s, last)];
}

/* Another of the same grid, and if so wanted of as many channels; itself, if there is none. */
static const struct value *pick_beside(struct scene *s, const struct value *value, bool same_channels)
{
        for (uint32_t i = s->n_values; i-- > 0;)
                if (&s->values[i] != value && s->values[i].grid == value->grid &&
                        (!same_channels || s->values[i].channels == value->channels))
                        return &s->values[i];
        return value;
}

static void put_conv(struct scene *s, const struct value *x)
{
        static const int64_t kernels[] = {1, 3, 3, 5}, widths[] = {8, 16, 24, 40};
        int64_t kernel = kernels[draw(s, 4)], stride = draw(s, 4) == 0 ? 2 : 1, dilation = kernel == 3 && draw(s, 5) == 0 ? 2 : 1;
        int64_t filters = widths[draw(s, 4)], groups = 1, pad = draw(s, 3) ? kernel / 2 * dilation : 0;
        char input[64], y[16], w[16], bias[16];
        bool is_padded = draw(s, 4) == 0, is_same = stride == 1 && (is_padded || pad == kernel / 2 * dilation);
        Onnx__NodeProto *node;

        if (draw(s, 3) == 0) {
                groups = draw(s, 2) || x->channels % 4 ? x->channels : 4;
                filters = groups == x->channels ? x->channels : filters;
        }
        weights(s, 4, (int64_t[]){filters, x->channels / groups, kernel, kernel}, x->channels / groups * kernel * kernel, w);
        snprintf(input, sizeof(input), draw(s, 2) ? "%s,%s,%s" : "%s,%s", x->name, w, weights(s, 1, &filters, filters, bias));
        node = builder_node(s->b, "Conv", input, new_name(s, y));
        builder_attr_ints(s->b, node, "strides", 2, (int64_t[]){stride, stride});
        builder_attr_ints(s->b, node, "dilations", 2, (int64_t[]){dilation, dilation});
        if (is_padded)
                builder_attr_string(s->b, node, "auto_pad", draw(s, 2) ? "SAME_UPPER" : "SAME_LOWER");
        else
                builder_attr_ints(s->b, node, "pads", 4, (int64_t[]){pad, pad, pad, pad});
        builder_attr_int(s->b, node, "group", groups);
        add_value(s, y, filters, is_same ? x->grid : s->n_grids++);
}

static void put_transposed(struct scene *s, const struct value *x)
{
        char input[64], y[16], w[16];
        Onnx__NodeProto *node;

        snprintf(input, sizeof(input), "%s,%s", x->name, weights(s, 4, (int64_t[]){x->channels, 8, 2, 2}, x->channels, w));
        node = builder_node(s->b, "ConvTranspose", input, new_name(s, y));
        builder_attr_ints(s->b, node, "strides", 2, (int64_t[]){2, 2});
        add_value(s, y, 8, s->n_grids++);
}

static void put_pool(struct scene *s, const struct value *x)
{
        bool average = draw(s, 2);
        char y[16];
        Onnx__NodeProto *node = builder_node(s->b, average ? "AveragePool" : "MaxPool", x->name, new_name(s, y));
        int64_t stride = 1 + draw(s, 2);

        builder_attr_ints(s->b, node, "kernel_shape", 2, (int64_t[]){3, 3});
        builder_attr_ints(s->b, node, "strides", 2, (int64_t[]){stride, stride});
        if (draw(s, 3))
                builder_attr_ints(s->b, node, "pads", 4, (int64_t[]){1, 1, 1, 1});
        else
                builder_attr_string(s->b, node, "auto_pad", draw(s, 2) ? "SAME_UPPER" : "SAME_LOWER");
        if (average)
                builder_attr_int(s->b, node, "count_include_pad", draw(s, 2));
        add_value(s, y, x->channels, stride == 1 ? x->grid : s->n_grids++);
}

/* Excitation: the mean of each channel weighs it. */
static void put_excitation(struct scene *s, const struct value *x)
{
        char mean[16], weight[16], inputs[40], y[16];

        builder_node(s->b, "GlobalAveragePool", x->name, new_name(s, mean));
        builder_node(s->b, "Sigmoid", mean, new_name(s, weight));
        snprintf(inputs, sizeof(inputs), "%s,%s", x->name, weight);
        builder_node(s->b, "Mul", inputs, new_name(s, y));
        add_value(s, y, x->channels, x->grid);
}

static void put_function(struct scene *s, const struct value *x)
{
        static const char *const functions[] = {"Relu", "Sigmoid", "HardSwish", "Elu", "Tanh"};
        char y[16];

        builder_node(s->b, functions[draw(s, 5)], x->name, new_name(s, y));
        add_value(s, y, x->channels, x->grid);
}

static void put_scale(struct scene *s, const struct value *x)
{
        char inputs[40], w[16], y[16];
        const int64_t dims[] = {x->channels, 1, 1};

        snprintf(inputs, sizeof(inputs), "%s,%s", x->name, weights(s, 3, dims, 1, w));
        builder_node(s->b, "Mul", inputs, new_name(s, y));
        add_value(s, y, x->channels, x->grid);
}

static void put_pair(struct scene *s, const struct value *x)
{
        bool sums = draw(s, 2);
        const struct value *other = pick_beside(s, x, sums);
        char inputs[40], y[16];
        Onnx__NodeProto *node;

        snprintf(inputs, sizeof(inputs), "%s,%s", x->name, other->name);
        node = builder_node(s->b, sums ? "Add" : "Concat", inputs, new_name(s, y));
        if (!sums)
                builder_attr_int(s->b, node, "axis", 1);
        add_value(s, y, x->channels + (sums ? 0 : other->channels), x->grid);
}

static void put_resize(struct scene *s, const struct value *x)
{
        char inputs[40], scales[16], y[16];
        Onnx__NodeProto *node;

        builder_floats(s->b, new_name(s, scales), 1, (int64_t[]){4}, (float[]){1, 1, 2, 2});
        snprintf(inputs, sizeof(inputs), "%s,,%s", x->name, scales);
        node = builder_node(s->b, "Resize", inputs, new_name(s, y));
        builder_attr_string(s->b, node, "mode", draw(s, 2) ? "nearest" : "linear");
        add_value(s, y, x->channels, s->n_grids++);
}

/* There and back: a node between that wants images as the file says. */
static void put_transpose(struct scene *s, const struct value *x)
{
        char turned[16], soft[16], y[16];

        builder_transpose(s->b, x->name, new_name(s, turned), 4, (int64_t[]){0, 2, 3, 1});
        builder_attr_int(s->b, builder_node(s->b, "Softmax", turned, new_name(s, soft)), "axis", 2);
        builder_transpose(s->b, soft, new_name(s, y), 4, (int64_t[]){0, 3, 1, 2});
        add_value(s, y, x->channels, x->grid);
}

static void put_norm(struct scene *s, const struct value *x)
{
        char inputs[40], scale[16], shift[16], y[16];

        snprintf(inputs, sizeof(inputs), "%s,%s,%s", x->name, weights(s, 1, &x->channels, 1, scale),
                weights(s, 1, &x->channels, 1, shift));
        builder_node(s->b, "InstanceNormalization", inputs, new_name(s, y));
        add_value(s, y, x->channels, x->grid);
}

static void (*const images[])(struct scene *s, const struct value *x) = {put_conv, put_conv, put_conv, put_conv, put_conv, put_pool,
        put_pool, put_function, put_function, put_scale, put_pair, put_pair, put_excitation, put_transposed, put_resize,
        put_transpose, put_norm};

static void build_images(struct scene *s)
{
        static const int64_t channels[] = {1, 3, 8, 16};
        int64_t first = channels[draw(s, 4)];

        builder_input(s->b, "x", SL_DTYPE_F32, DIMS(-1, first, -2, -4));
        s->n_grids = 1;
        add_value(s, "x", first, 0);
        put_conv(s, &s->values[0]);
        for (uint32_t n = 3 + draw(s, 5); n > 0; n--)
                images[draw(s, sizeof(images) / sizeof(*images))](s, pick(s));
        builder_output(s->b, s->values[s->n_values - 1].name);
}

static void put_plain_conv(struct scene *s, const char *x, int64_t channels, int64_t filters, int64_t kernel, int64_t stride,
        bool relu, char *ret_name)
{
        bool is_depthwise = kernel == 3;
        char input[64], w[16], bias[16], y[16];
        int64_t depth = is_depthwise ? 1 : channels;
        Onnx__NodeProto *node;

        weights(s, 4, (int64_t[]){filters, depth, kernel, kernel}, depth * kernel * kernel, w);
        snprintf(input, sizeof(input), draw(s, 2) ? "%s,%s,%s" : "%s,%s", x, w, weights(s, 1, &filters, filters, bias));
        node = builder_node(s->b, "Conv", input, new_name(s, y));
        builder_attr_ints(s->b, node, "strides", 2, (int64_t[]){stride, stride});
        builder_attr_ints(s->b, node, "pads", 4, (int64_t[]){kernel / 2, kernel / 2, kernel / 2, kernel / 2});
        builder_attr_int(s->b, node, "group", is_depthwise ? channels : 1);
        if (relu)
                builder_node(s->b, draw(s, 2) ? "Relu" : "HardSwish", y, new_name(s, ret_name));
        else
                strcpy(ret_name, y);
}

/* What it expands to is more than an L2 cache of 2 MiB holds from about 33 by 33 on, and less at most sizes. */
static void put_bottleneck(struct scene *s, const struct value *x)
{
        int64_t stride = draw(s, 3) ? 1 : 2, inner = 6 * x->channels;
        char expanded[16], filtered[16], y[16], inputs[40], sum[16];

        put_plain_conv(s, x->name, x->channels, inner, 1, 1, true, expanded);
        put_plain_conv(s, expanded, inner, inner, 3, stride, true, filtered);
        if (draw(s, 4)) {
                put_plain_conv(s, filtered, inner, x->channels, 1, 1, false, y);
                inner = x->channels;
        } else {
                strcpy(y, filtered);
        }
        if (stride == 1 && inner == x->channels) {
                snprintf(inputs, sizeof(inputs), "%s,%s", y, x->name);
                builder_node(s->b, "Add", inputs, new_name(s, sum));
                strcpy(y, sum);
        }
        add_value(s, y, inner, stride == 1 ? x->grid : s->n_grids++);
}

static void build_bottlenecks(struct scene *s)
{
        builder_input(s->b, "x", SL_DTYPE_F32, DIMS(-1, 48, -2, -4));
        s->n_grids = 1;
        add_value(s, "x", 48, 0);
        put_bottleneck(s, &s->values[0]);
        if (s->values[1].channels == 48)
                put_bottleneck(s, &s->values[1]);
        builder_output(s->b, s->values[s->n_values - 1].name);
}

/* Of [time, batch, 6]. */
static void build_recurrent(struct scene *s)
{
        static const struct {
                const char *type;
                int64_t gates;
        } cells[] = {{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
        char x[16] = "x", inputs[64], w[16], r[16], bias[16], y[16];
        int64_t width = 6, hidden = 8;

        builder_input(s->b, "x", SL_DTYPE_F32, DIMS(-1, -2, width));
        builder_ints(s->b, "one", DIMS(1), (int64_t[]){1});
        for (uint32_t depth = 0; depth < 2; depth++) {
                uint32_t cell = draw(s, 3), both = draw(s, 2) ? 2 : 1;
                int64_t gates = cells[cell].gates * hidden;
                Onnx__NodeProto *node;

                weights(s, 3, (int64_t[]){both, gates, width}, width, w);
                weights(s, 3, (int64_t[]){both, gates, hidden}, hidden, r);
                snprintf(inputs, sizeof(inputs), draw(s, 2) ? "%s,%s,%s,%s" : "%s,%s,%s", x, w, r,
                        weights(s, 2, (int64_t[]){both, 2 * gates}, hidden, bias));
                node = builder_node(s->b, cells[cell].type, inputs, new_name(s, y));
                builder_attr_int(s->b, node, "hidden_size", hidden);
                if (both == 2)
                        builder_attr_string(s->b, node, "direction", "bidirectional");
                snprintf(inputs, sizeof(inputs), "%s,one", y);
                builder_attr_int(s->b, builder_node(s->b, "ReduceSum", inputs, new_name(s, x)), "keepdims", 0);
                width = hidden;
        }
        builder_output(s->b, x);
}

static void scene_begin(struct scene *s, uint64_t seed, void (*build)(struct scene *s))
{
        size_t n_bytes;
        const uint8_t *bytes;
        int fd;

        memset(s, 0, sizeof(*s));
        s->state = seed;
        s->b = builder_new(17);
        build(s);
        bytes = builder_pack(s->b, &n_bytes);
        strcpy(s->path, "/tmp/starling-any-image-XXXXXX");
        fd = mkstemp(s->path);
        cr_assert_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        close(fd);
        s->input = malloc(ROOM);
        s->wanted = malloc(ROOM);
        s->got = malloc(ROOM);
        for (uint32_t i = 0; i < ROOM / sizeof(float); i++)
                s->input[i] = (float)(i * 2654435761u >> 20 & 255) / 128 - 1;
}

static void scene_end(struct scene *s)
{
        unlink(s->path);
        builder_free(s->b);
        free(s->input);
        free(s->wanted);
        free(s->got);
}

static struct sl_plan *compile_any(struct scene *s)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_lower_options options;
        struct sl_plan *plan;

        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        cr_assert_eq(sl_compile_here(s->path, &options, -1, fd, &s->error), 0, "%s", s->error.text);
        cr_assert_eq(sl_plan_open(fd, &plan, &s->error), 0, "%s", s->error.text);
        close(fd);
        return plan;
}

/* False: the file has no answer for these sizes. */
static bool ask_oracle(struct scene *s, const int64_t sizes[3])
{
        static const char *const names[] = {"N", "M", "K"};
        struct sl_pool pool = {.limit_bytes = 1 << 30};
        struct sl_graph *graph = NULL, *special = NULL;
        struct sl_lower_options options;
        struct sl_live output = {0};
        const void *input = s->input;
        size_t n_bytes;
        const uint8_t *bytes = builder_pack(s->b, &n_bytes);
        int r;

        s->oracle.text[0] = 0;
        sl_lower_options_init(&options);
        for (uint32_t i = 0; i < 3; i++)
                cr_assert_eq(sl_dim_sizes_add(&options.shapes, names[i], 1, sizes[i]), 0);
        r = sl_import_onnx_bytes_bound(bytes, n_bytes, NULL, &options.shapes, &graph, &s->oracle);
        if (r == 0)
                r = sl_graph_specialise(graph, 1, &special, &s->oracle);
        if (r == 0)
                r = sl_graph_evaluate_open(special, &input, &pool, &output, &s->oracle);
        if (r == 0 && sl_tensor_bytes(&output.tensor) > ROOM)
                r = -EMSGSIZE;
        if (r == 0) {
                s->wanted_shape = output.tensor.shape;
                memcpy(s->wanted, output.data, sl_tensor_bytes(&output.tensor));
        }
        sl_live_drop(&pool, &output);
        sl_graph_free(special);
        sl_graph_free(graph);
        return r == 0;
}

static int run(struct scene *s, const struct sl_plan *plan, struct sl_instance *instance, const int64_t sizes[3],
        struct sl_open_output *ret_made)
{
        struct sl_shape shape = sl_plan_info(plan)->inputs[0].shape;
        const void *input = s->input;
        void *output = s->got;

        for (uint32_t d = 0, open = 0; d < shape.rank; d++)
                if (shape.dims[d] < 0)
                        shape.dims[d] = sizes[open++];
        s->error.text[0] = 0;
        *ret_made = (struct sl_open_output){.capacity_bytes = ROOM};
        sl_instance_give(instance, &shape);
        return sl_instance_run_open(instance, 1, &input, &output, ret_made, &s->error);
}

static void expect_wanted(const struct scene *s, uint64_t seed, const int64_t sizes[3])
{
        float largest = 0;

        for (uint64_t i = 0; i < sl_shape_elements(&s->wanted_shape); i++)
                largest = fmaxf(largest, fabsf(s->wanted[i]));
        for (uint64_t i = 0; i < sl_shape_elements(&s->wanted_shape); i++)
                cr_assert(fabsf(s->got[i] - s->wanted[i]) <= TOLERANCE * largest,
                        "seed %llu, [%lld, %lld, %lld]: element %llu is %g instead of %g", (unsigned long long)seed,
                        (long long)sizes[0], (long long)sizes[1], (long long)sizes[2], (unsigned long long)i, (double)s->got[i],
                        (double)s->wanted[i]);
}

/* Nothing, one, powers of two and what lies behind them. */
static void draw_sizes(struct scene *s, int64_t ret_sizes[3])
{
        static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32, 33};

        ret_sizes[0] = draw(s, 4);
        for (uint32_t i = 1; i < 3; i++)
                ret_sizes[i] = draw(s, 16) ? sizes[draw(s, 12)] : 0;
        if (ret_sizes[1] * ret_sizes[2] > 100) /* what the oracle has time for */
                ret_sizes[0] = 1;
}

/*
 * Asked for again, and with other data then. A size that came twice is replayed where each node has its kernel at once; which have
 * one else depends on the times that they take here.
 */
static void try_again(
        struct scene *s, const struct sl_plan *plan, struct sl_instance *instance, uint64_t seed, const int64_t sizes[3])
{
        struct sl_open_output made;

        for (uint32_t i = 0; i < 2; i++)
                cr_assert_eq(run(s, plan, instance, sizes, &made), 0);
        cr_assert(seed % 2 || sl_instance_replays(instance), "seed %llu", (unsigned long long)seed);
        for (uint32_t i = 0; i < ROOM / sizeof(float); i++)
                s->input[i] = -s->input[i];
        cr_assert(ask_oracle(s, sizes));
        memset(s->got, 0xff, sl_tensor_bytes(&(struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = s->wanted_shape}));
        cr_assert_eq(run(s, plan, instance, sizes, &made), 0, "%s", s->error.text);
        cr_assert(sl_shape_equal(&made.shape, &s->wanted_shape), "seed %llu", (unsigned long long)seed);
        expect_wanted(s, seed, sizes);
}

static uint32_t try_network(struct scene *s, uint64_t seed)
{
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;
        uint32_t n_answers = 0;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        sl_instance_meet(instance, seed % 2 == 0);
        for (uint32_t i = 0; i < SIZES; i++) {
                struct sl_open_output made;
                int64_t sizes[3];
                bool valid;
                int r;

                draw_sizes(s, sizes);
                valid = ask_oracle(s, sizes);
                r = run(s, plan, instance, sizes, &made);
                if (!valid) /* a node may be at fault that nobody needs, which the plan does not have */
                        continue;
                cr_assert_eq(r, 0, "seed %llu, [%lld, %lld, %lld]: %s", (unsigned long long)seed, (long long)sizes[0],
                        (long long)sizes[1], (long long)sizes[2], s->error.text);
                cr_assert(sl_shape_equal(&made.shape, &s->wanted_shape), "seed %llu", (unsigned long long)seed);
                expect_wanted(s, seed, sizes);
                n_answers++;
                if (i % AGAIN == 0)
                        try_again(s, plan, instance, seed, sizes);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
        return n_answers;
}

static void try_networks(uint64_t first, uint32_t n, void (*build)(struct scene *s))
{
        const char *seed_text = getenv("STARLING_RANDOM_SEED"), *rounds_text = getenv("STARLING_RANDOM_ROUNDS");
        uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : first;
        uint32_t rounds = rounds_text ? (uint32_t)strtoul(rounds_text, NULL, 10) : n, n_answers = 0;

        for (uint32_t i = 0; i < rounds; i++) {
                struct scene s;

                scene_begin(&s, seed + i, build);
                n_answers += try_network(&s, seed + i);
                scene_end(&s);
        }
        cr_expect_geq(n_answers, rounds * SIZES / 4, "%u answers of %u networks", n_answers, rounds);
}

Test(any_image, networks_of_convolutions_make_what_the_file_says_for_each_size)
{
        try_networks(1, 24, build_images);
}

Test(any_image, inverted_bottlenecks_make_what_the_file_says_whether_they_are_one_kernel_or_three)
{
        try_networks(2000, 8, build_bottlenecks);
}

static uint32_t count_steps(const struct sl_plan *plan, const char *operator_name)
{
        uint32_t n = 0;

        for (uint64_t i = 0; i < sl_plan_steps(plan, 1); i++) {
                struct sl_step_info info;

                cr_assert_eq(sl_plan_step_info(plan, 1, i, &info), 0);
                n += !strcmp(info.operator_name, operator_name);
        }
        return n;
}

Test(any_image, an_inverted_bottleneck_is_one_step_whatever_the_size)
{
        struct sl_plan *plan;
        struct scene s;

        scene_begin(&s, 2000, build_bottlenecks);
        plan = compile_any(&s);
        cr_expect_eq(count_steps(plan, "Conv"), 0u);
        cr_expect_geq(count_steps(plan, "starling.MBConv"), 1u);
        sl_plan_free(plan);
        scene_end(&s);
}

/* From 33 by 33 on it may be one kernel, by what the L2 cache holds; below it is three. */
static void build_added_bottleneck(struct scene *s)
{
        char expanded[16], filtered[16], made[16], inputs[40], y[16];

        builder_input(s->b, "x", SL_DTYPE_F32, DIMS(-1, 16, -2, -4));
        put_plain_conv(s, "x", 16, 96, 1, 1, true, expanded);
        put_plain_conv(s, expanded, 96, 96, 3, 1, true, filtered);
        put_plain_conv(s, filtered, 96, 16, 1, 1, false, made);
        snprintf(inputs, sizeof(inputs), "%s,x", made);
        builder_node(s->b, "Add", inputs, new_name(s, y));
        builder_output(s->b, y);
}

Test(any_image, what_an_inverted_bottleneck_is_added_to_is_part_of_the_step_as_one_kernel_and_as_three)
{
        static const int64_t sizes[][3] = {{1, 5, 7}, {2, 9, 4}, {1, 1, 1}, {1, 80, 96}, {2, 97, 71}};
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct scene s;

        scene_begin(&s, 3000, build_added_bottleneck);
        plan = compile_any(&s);
        cr_expect_eq(count_steps(plan, "Add"), 0u);
        cr_expect_eq(count_steps(plan, "starling.MBConv"), 1u);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s.error), 0, "%s", s.error.text);
        for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
                for (uint32_t again = 0; again < 3; again++) { /* at first on `ref`, where a kernel is not worth it yet */
                        struct sl_open_output made;

                        cr_assert(ask_oracle(&s, sizes[i]));
                        cr_assert_eq(run(&s, plan, instance, sizes[i], &made), 0, "%s", s.error.text);
                        cr_assert(sl_shape_equal(&made.shape, &s.wanted_shape));
                        expect_wanted(&s, 3000, sizes[i]);
                }
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(&s);
}

Test(any_image, recurrent_networks_make_what_the_file_says_for_each_time_and_batch)
{
        try_networks(1000, 8, build_recurrent);
}
