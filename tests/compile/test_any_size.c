/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of any size: what they make of a request is what the file says for its sizes. The oracle is the file with those sizes told
 * to the importer, evaluated on `ref` without passes; a plan that is compiled for them is beside it. What a model lacks for such a
 * plan is named, and a forged plan harms nobody.
 */
#include "bodies_model.h"
#include "compile.h"
#include "cpu/onednn/primitive.h"
#include "evaluate.h"
#include "format.h"
#include "import.h"
#include "ref/live.h"

#include <criterion/criterion.h>
#include <dnnl.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WIDTH     8
#define WORDS     11
#define BATCH_MAX 33
#define ROWS_MAX  600
#define ROOM      (1 << 20)
#define TIMES     6  /* that one size is asked for with other data each time */
#define STEP      16 /* floats of a line between those */
#define TOLERANCE 1e-4

struct scene {
        struct builder *b;
        char path[40];
        int64_t words[BATCH_MAX * ROWS_MAX + TIMES * STEP];
        float mask[BATCH_MAX * ROWS_MAX + TIMES * STEP];
        const void *inputs[2];
        float wanted[ROOM / sizeof(float)], got[ROOM / sizeof(float)];
        struct sl_error error;
};

/*
 * Words [N, M] and what of them counts, [N, M], as exporters write one layer of attention of two heads: heads are cut by arithmetic
 * on shapes, positions are a range as long as the words.
 */
static void build_layer(struct builder *b)
{
        builder_input(b, "words", SL_DTYPE_I64, DIMS(-1, -2));
        builder_input(b, "mask", SL_DTYPE_F32, DIMS(-1, -2));
        builder_random(b, "table", DIMS(WORDS, WIDTH));
        builder_random(b, "w", DIMS(WIDTH, WIDTH));
        builder_random(b, "bias", DIMS(WIDTH));
        builder_random(b, "scale", DIMS(WIDTH));
        builder_ints(b, "zero", DIMS(), (int64_t[]){0});
        builder_ints(b, "one", DIMS(), (int64_t[]){1});
        builder_ints(b, "first", DIMS(1), (int64_t[]){0});
        builder_ints(b, "heads", DIMS(2), (int64_t[]){2, WIDTH / 2});
        builder_ints(b, "width", DIMS(1), (int64_t[]){WIDTH});
        builder_ints(b, "middle", DIMS(2), (int64_t[]){1, 2});
        builder_floats(b, "tenth", DIMS(), (float[]){0.1f});
        builder_node(b, "Gather", "table,words", "x");
        builder_node(b, "Shape", "words", "shape");
        builder_node(b, "Gather", "shape,one", "length");
        builder_node(b, "Range", "zero,length,one", "numbers");
        builder_attr_int(b, builder_node(b, "Cast", "numbers", "places"), "to", SL_DTYPE_F32);
        builder_node(b, "Mul", "places,tenth", "near");
        builder_node(b, "Sin", "near", "wave");
        builder_ints(b, "last", DIMS(1), (int64_t[]){1});
        builder_node(b, "Unsqueeze", "wave,last", "column");
        builder_node(b, "Add", "x,column", "placed");
        builder_node(b, "MatMul", "placed,w", "product");
        builder_node(b, "Add", "product,bias", "q");
        builder_attr_int(b, builder_node(b, "Concat", "shape,heads", "cut"), "axis", 0);
        builder_node(b, "Reshape", "q,cut", "apart");
        builder_transpose(b, "apart", "rows", DIMS(0, 2, 1, 3));
        builder_transpose(b, "apart", "columns", DIMS(0, 2, 3, 1));
        builder_node(b, "MatMul", "rows,columns", "scores");
        builder_node(b, "Unsqueeze", "mask,middle", "wide_mask");
        builder_node(b, "Add", "scores,wide_mask", "masked");
        builder_attr_int(b, builder_node(b, "Softmax", "masked", "weights"), "axis", -1);
        builder_node(b, "MatMul", "weights,rows", "mixed");
        builder_transpose(b, "mixed", "back", DIMS(0, 2, 1, 3));
        builder_attr_int(b, builder_node(b, "Concat", "shape,width", "whole"), "axis", 0);
        builder_node(b, "Reshape", "back,whole", "joined");
        builder_node(b, "Add", "joined,placed", "sum");
        builder_node(b, "LayerNormalization", "sum,scale,bias", "y");
        builder_output(b, "y");
}

static void scene_begin(struct scene *s, void (*build)(struct builder *b))
{
        size_t n_bytes;
        const uint8_t *bytes;
        int fd;

        memset(s, 0, sizeof(*s));
        s->b = builder_new(17);
        build(s->b);
        bytes = builder_pack(s->b, &n_bytes);
        strcpy(s->path, "/tmp/starling-any-size-XXXXXX");
        fd = mkstemp(s->path);
        cr_assert_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        close(fd);
        for (int i = 0; i < BATCH_MAX * ROWS_MAX + TIMES * STEP; i++) {
                s->words[i] = i * 7 % (2 * WORDS) - WORDS;
                s->mask[i] = i % 5 ? 0.0f : -2.0f;
        }
        s->inputs[0] = s->words;
        s->inputs[1] = s->mask;
}

static void scene_end(struct scene *s)
{
        unlink(s->path);
        builder_free(s->b);
        free(s);
}

static void set_sizes(struct sl_lower_options *options, int64_t batch, int64_t rows)
{
        cr_assert_eq(sl_dim_sizes_add(&options->shapes, "N", 1, batch), 0);
        cr_assert_eq(sl_dim_sizes_add(&options->shapes, "M", 1, rows), 0);
}

/* Return: 0; what the compiler says, with text. */
static int compile(struct scene *s, const struct sl_lower_options *options, struct sl_plan **ret_plan)
{
        int fd = memfd_create("plan", MFD_CLOEXEC), r = sl_compile_here(s->path, options, -1, fd, &s->error);

        if (r == 0)
                cr_assert_eq(sl_plan_open(fd, ret_plan, &s->error), 0, "%s", s->error.text);
        close(fd);
        return r;
}

static struct sl_plan *compile_any(struct scene *s)
{
        struct sl_lower_options options;
        struct sl_plan *plan = NULL;

        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        cr_assert_eq(compile(s, &options, &plan), 0, "%s", s->error.text);
        return plan;
}

static int run(struct sl_instance *instance, struct scene *s, int64_t batch, int64_t rows, struct sl_open_output *made)
{
        const struct sl_shape shapes[2] = {{.rank = 2, .dims = {batch, rows}}, {.rank = 2, .dims = {batch, rows}}};
        void *output = s->got;

        s->error.text[0] = 0;
        sl_instance_give(instance, shapes);
        return sl_instance_run_open(instance, 1, s->inputs, &output, made, &s->error);
}

static void ask_oracle(struct scene *s, int64_t batch, int64_t rows, struct sl_tensor *ret_tensor)
{
        struct sl_pool pool = {.limit_bytes = 1 << 28};
        struct sl_graph *graph, *special;
        struct sl_lower_options options;
        struct sl_live output = {0};
        size_t n_bytes;
        const uint8_t *bytes = builder_pack(s->b, &n_bytes);

        sl_lower_options_init(&options);
        set_sizes(&options, batch, rows);
        cr_assert_eq(sl_import_onnx_bytes_bound(bytes, n_bytes, NULL, &options.shapes, &graph, &s->error), 0, "%s", s->error.text);
        cr_assert_eq(sl_graph_specialise(graph, 1, &special, &s->error), 0, "%s", s->error.text);
        cr_assert_eq(sl_graph_evaluate_open(special, s->inputs, &pool, &output, &s->error), 0, "%s", s->error.text);
        *ret_tensor = output.tensor;
        memcpy(s->wanted, output.data, sl_tensor_bytes(&output.tensor));
        sl_live_drop(&pool, &output);
        sl_graph_free(special);
        sl_graph_free(graph);
}

static void expect_wanted(const struct scene *s, const struct sl_tensor *tensor, int64_t batch, int64_t rows)
{
        for (uint64_t i = 0; i < sl_shape_elements(&tensor->shape); i++)
                cr_assert(fabsf(s->got[i] - s->wanted[i]) <= TOLERANCE, "[%lld, %lld]: element %llu is %g instead of %g",
                        (long long)batch, (long long)rows, (unsigned long long)i, (double)s->got[i], (double)s->wanted[i]);
}

static void run_compiled(struct scene *s, int64_t batch, int64_t rows)
{
        struct sl_instance *instance;
        struct sl_lower_options options;
        struct sl_plan *plan = NULL;
        void *output = s->got;

        sl_lower_options_init(&options);
        set_sizes(&options, batch, rows);
        cr_assert_eq(compile(s, &options, &plan), 0, "%s", s->error.text);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        cr_assert_eq(sl_instance_run(instance, 1, s->inputs, &output), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

/* Nothing, one, powers of two and what lies beside them, and others at random; twice, so that kernels are there. */
static void try_sizes(void (*build)(struct builder *b))
{
        static const int64_t batches[] = {0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33};
        static const int64_t lengths[] = {1, 0, 2, 3, 4, 5, 8, 9, 16, 17, 31, 64, 65, 127, 128, 129, 256, 257, 511, 512, 513, 600};
        struct scene *s = malloc(sizeof(*s));
        uint64_t state = 3;

        scene_begin(s, build);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(*lengths); i++) {
                int64_t rows = lengths[i % (sizeof(lengths) / sizeof(*lengths))];
                struct sl_open_output made = {.capacity_bytes = ROOM};
                struct sl_tensor tensor;

                state = state * 6364136223846793005u + 1442695040888963407u;
                int64_t batch = batches[(state >> 33) % (sizeof(batches) / sizeof(*batches))];

                if (rows > 64 && batch > 4) /* what the oracle has time for */
                        batch = batch % 4 + 1;
                ask_oracle(s, batch, rows, &tensor);
                cr_assert_eq(run(instance, s, batch, rows, &made), 0, "[%lld, %lld]: %s", (long long)batch, (long long)rows,
                        s->error.text);
                cr_assert(sl_shape_equal(&made.shape, &tensor.shape), "[%lld, %lld]", (long long)batch, (long long)rows);
                expect_wanted(s, &tensor, batch, rows);
                run_compiled(s, batch, rows);
                expect_wanted(s, &tensor, batch, rows);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

Test(any_size, one_plan_makes_what_the_file_says_for_each_size)
{
        try_sizes(build_layer);
}

static void expect_asked(struct scene *s, struct sl_instance *instance, int64_t batch, int64_t rows)
{
        struct sl_open_output made = {.capacity_bytes = ROOM};
        struct sl_tensor tensor;

        ask_oracle(s, batch, rows, &tensor);
        cr_assert_eq(run(instance, s, batch, rows, &made), 0, "[%lld, %lld]: %s", (long long)batch, (long long)rows, s->error.text);
        cr_assert(sl_shape_equal(&made.shape, &tensor.shape), "[%lld, %lld]", (long long)batch, (long long)rows);
        expect_wanted(s, &tensor, batch, rows);
}

/* Other data at other places each time, sizes in turns. Nodes have their kernels at once: the second run of a size is captured. */
static void try_again_and_again(void (*build)(struct builder *b))
{
        static const int64_t sizes[][2] = {{1, 1}, {2, 5}, {1, 64}, {3, 0}, {0, 4}, {4, 33}, {1, 257}};
        const size_t n = sizeof(sizes) / sizeof(*sizes);
        struct scene *s = malloc(sizeof(*s));

        scene_begin(s, build);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        sl_instance_meet(instance, true);
        for (int i = 0; i < TIMES; i++)
                for (size_t k = 0; k < n; k++) {
                        s->inputs[0] = s->words + i * STEP;
                        s->inputs[1] = s->mask + i * STEP;
                        expect_asked(s, instance, sizes[k][0], sizes[k][1]);
                        cr_assert_eq(sl_instance_replays(instance), i == 0 ? 0 : i == 1 ? k + 1 : n);
                }
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

Test(any_size, sizes_that_come_again_make_what_their_own_data_say)
{
        try_again_and_again(build_layer);
}

static Onnx__NodeProto *contrib_node(struct builder *b, const char *type, const char *inputs, const char *outputs)
{
        Onnx__NodeProto *node = builder_node(b, type, inputs, outputs);

        node->domain = (char *)"com.microsoft";
        return node;
}

static void build_embedding(struct builder *b)
{
        builder_random(b, "table", DIMS(WORDS, WIDTH));
        builder_random(b, "positions", DIMS(ROWS_MAX, WIDTH));
        builder_random(b, "scale", DIMS(WIDTH));
        builder_random(b, "bias", DIMS(WIDTH));
        builder_random(b, "w", DIMS(WIDTH, 3 * WIDTH));
        builder_random(b, "three", DIMS(3 * WIDTH));
        contrib_node(b, "EmbedLayerNormalization", "words,,table,positions,,scale,bias", "x");
}

/* A decoder's layer as optimizers write it: each word sees those before it and a past that is as long, which the second input
 * fills. */
static void build_decoder(struct builder *b)
{
        Onnx__NodeProto *node;

        builder_input(b, "words", SL_DTYPE_I64, DIMS(-1, -2));
        builder_input(b, "mask", SL_DTYPE_F32, DIMS(-1, -2));
        build_embedding(b);
        builder_ints(b, "around", DIMS(3), (int64_t[]){0, 2, 4});
        builder_ints(b, "times", DIMS(5), (int64_t[]){2, 1, 2, 1, WIDTH / 2});
        builder_node(b, "Unsqueeze", "mask,around", "thin");
        builder_node(b, "Expand", "thin,times", "past");
        node = contrib_node(b, "Attention", "x,w,three,,past", "seen");
        builder_attr_int(b, node, "num_heads", 2);
        builder_attr_int(b, node, "unidirectional", 1);
        contrib_node(b, "SkipLayerNormalization", "seen,x,scale,bias", "sum");
        contrib_node(b, "BiasGelu", "sum,bias", "y");
        builder_output(b, "y");
}

/* A quarter of what a run may have, which is little here: those used longest ago make room. */
Test(any_size, sizes_that_come_again_are_kept_within_bounds)
{
        struct scene *s = malloc(sizeof(*s));
        struct sl_lower_options options;
        struct sl_instance *instance;
        struct sl_plan *plan = NULL;

        scene_begin(s, build_layer);
        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        options.dynamic_bytes_max = 2 << 20;
        cr_assert_eq(compile(s, &options, &plan), 0, "%s", s->error.text);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        sl_instance_meet(instance, true);
        for (int64_t rows = 1; rows <= 32; rows++)
                for (int i = 0; i < 3; i++)
                        expect_asked(s, instance, 1, rows);
        cr_expect_gt(sl_instance_replays(instance), 0u);
        cr_expect_lt(sl_instance_replays(instance), 32u);
        expect_asked(s, instance, 1, 32);
        expect_asked(s, instance, 1, 1);
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

/* Two products for which code is generated, of each size anew. */
static void build_products(struct builder *b)
{
        builder_input(b, "words", SL_DTYPE_I64, DIMS(-1, -2));
        builder_input(b, "mask", SL_DTYPE_F32, DIMS(-1, -2));
        builder_random(b, "table", DIMS(WORDS, WIDTH));
        builder_ints(b, "last", DIMS(1), (int64_t[]){2});
        builder_node(b, "Gather", "table,words", "x");
        builder_transpose(b, "x", "turned", DIMS(0, 2, 1));
        builder_node(b, "MatMul", "x,turned", "alike");
        builder_node(b, "MatMul", "alike,x", "mixed");
        builder_node(b, "Unsqueeze", "mask,last", "thin");
        builder_node(b, "Add", "mixed,thin", "y");
        builder_output(b, "y");
}

/* Each takes two primitives, of which a quarter of 2 MiB has room for four. */
Test(any_size, kernels_count_as_memory_of_the_sizes_that_hold_them)
{
        struct scene *s = malloc(sizeof(*s));
        struct sl_lower_options options;
        struct sl_instance *instance;
        struct sl_plan *plan = NULL;

        scene_begin(s, build_products);
        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        options.dynamic_bytes_max = 2 << 20;
        cr_assert_eq(compile(s, &options, &plan), 0, "%s", s->error.text);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        sl_instance_meet(instance, true);
        for (int64_t rows = 1; rows <= 32; rows++)
                for (int i = 0; i < 3; i++)
                        cr_assert_eq(run(instance, s, 1, rows, &(struct sl_open_output){.capacity_bytes = ROOM}), 0);
        cr_expect_gt(sl_instance_replays(instance), 0u);
        cr_expect_leq(sl_instance_replays(instance), (512u << 10) / (2 * SL_PRIMITIVE_BYTES));
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

/* Without that it keeps 1,024, of sizes that nobody may ask for again. */
Test(any_size, one_dnn_keeps_few_primitives_where_such_a_plan_runs)
{
        struct scene *s = malloc(sizeof(*s));
        struct sl_instance *instance;
        struct sl_plan *plan;
        int before, kept;

        scene_begin(s, build_products);
        plan = compile_any(s);
        cr_assert_eq(dnnl_get_primitive_cache_capacity(&before), dnnl_success);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0, "%s", s->error.text);
        cr_assert_eq(dnnl_get_primitive_cache_capacity(&kept), dnnl_success);
        cr_expect_gt(before, 256);
        cr_expect_eq(kept, 256);
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

Test(any_size, so_does_one_of_operators_that_optimizers_write)
{
        try_sizes(build_decoder);
}

Test(any_size, sizes_that_come_again_do_so_with_those)
{
        try_again_and_again(build_decoder);
}

Test(any_size, its_ports_say_by_which_names_they_are_open)
{
        struct scene *s = malloc(sizeof(*s));

        scene_begin(s, build_layer);
        struct sl_plan *plan = compile_any(s);
        const struct sl_plan_info *info = sl_plan_info(plan);

        cr_expect_eq(info->n_batches, 1u);
        cr_expect(!info->batchable);
        cr_assert_eq(info->n_symbols, 2u);
        for (uint32_t i = 0; i < 2; i++) {
                cr_expect_eq(info->inputs[i].shape.dims[0], SL_DIM_UNKNOWN);
                cr_expect_str_eq(info->symbols[info->inputs[i].symbols[0]], "N");
                cr_expect_str_eq(info->symbols[info->inputs[i].symbols[1]], "M");
        }
        cr_expect(sl_port_is_open(&info->outputs[0]));
        cr_expect_eq(info->outputs[0].shape.rank, 3u);
        sl_plan_free(plan);
        scene_end(s);
}

Test(any_size, an_output_without_room_says_how_much_it_wants_and_one_that_nobody_wants_is_made_for_nobody)
{
        const struct sl_shape shapes[2] = {{.rank = 2, .dims = {2, 3}}, {.rank = 2, .dims = {2, 3}}};
        struct sl_open_output made = {.capacity_bytes = 2 * 3 * WIDTH * sizeof(float) - 1};
        struct scene *s = malloc(sizeof(*s));
        void *nowhere = NULL;

        scene_begin(s, build_layer);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0);
        cr_expect_eq(run(instance, s, 2, 3, &made), -EMSGSIZE);
        cr_expect(sl_shape_equal(&made.shape, &(struct sl_shape){.rank = 3, .dims = {2, 3, WIDTH}}));
        sl_instance_give(instance, shapes);
        made = (struct sl_open_output){.capacity_bytes = 0};
        cr_expect_eq(sl_instance_run_open(instance, 1, s->inputs, &nowhere, &made, &s->error), 0);
        cr_expect(sl_shape_equal(&made.shape, &(struct sl_shape){.rank = 3, .dims = {2, 3, WIDTH}}));
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

Test(any_size, sizes_that_contradict_each_other_and_indices_out_of_range_end_a_run_alone)
{
        const struct sl_shape shapes[2] = {{.rank = 2, .dims = {2, 3}}, {.rank = 2, .dims = {2, 4}}};
        struct sl_open_output made = {.capacity_bytes = ROOM};
        struct scene *s = malloc(sizeof(*s));
        void *output;

        scene_begin(s, build_layer);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        output = s->got;
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0);
        sl_instance_give(instance, shapes);
        cr_expect_eq(sl_instance_run_open(instance, 1, s->inputs, &output, &made, &s->error), -EINVAL);
        s->words[1] = WORDS;
        cr_expect_eq(run(instance, s, 1, 3, &made), -ERANGE);
        s->words[1] = 0;
        cr_expect_eq(run(instance, s, 1, 3, &made), 0, "%s", s->error.text);
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

#define PARTS 3

/* Of 1, 2 and 3 rows, in the scene's inputs one behind the other; outputs likewise. */
struct parts {
        const void *inputs[PARTS][2];
        void *outputs[PARTS][1];
        struct sl_open_output made[PARTS];
        struct sl_instance_part parts[PARTS];
};

static void cut_parts(struct scene *s, int64_t length, uint64_t row_elements, struct parts *ret_parts)
{
        int64_t before = 0;

        for (int i = 0; i < PARTS; i++) {
                ret_parts->inputs[i][0] = s->words + before * length;
                ret_parts->inputs[i][1] = s->mask + before * length;
                ret_parts->outputs[i][0] = s->got + (uint64_t)before * row_elements;
                ret_parts->made[i] = (struct sl_open_output){.capacity_bytes = (uint64_t)(i + 1) * row_elements * sizeof(float)};
                ret_parts->parts[i] = (struct sl_instance_part){.rows = i + 1,
                        .inputs = ret_parts->inputs[i],
                        .outputs = ret_parts->outputs[i],
                        .open = &ret_parts->made[i]};
                before += i + 1;
        }
}

static int run_parts(struct sl_instance *instance, struct scene *s, int64_t length, struct parts *parts)
{
        const struct sl_shape shapes[2] = {{.rank = 2, .dims = {6, length}}, {.rank = 2, .dims = {6, length}}};

        s->error.text[0] = 0;
        sl_instance_give(instance, shapes);
        return sl_instance_run_parts(instance, 1, parts->parts, PARTS, &s->error);
}

Test(any_size, several_requests_of_one_length_are_what_each_is_alone)
{
        struct scene *s = malloc(sizeof(*s));

        scene_begin(s, build_layer);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0);
        for (int64_t length = 1; length < 40; length += 12) {
                struct sl_tensor tensor;
                struct parts parts;

                ask_oracle(s, 6, length, &tensor);
                cut_parts(s, length, (uint64_t)length * WIDTH, &parts);
                cr_assert_eq(run_parts(instance, s, length, &parts), 0, "%s", s->error.text);
                for (int i = 0; i < PARTS; i++) {
                        cr_expect(sl_shape_equal(
                                &parts.made[i].shape, &(struct sl_shape){.rank = 3, .dims = {i + 1, length, WIDTH}}));
                        cr_expect(!parts.parts[i].is_too_small);
                }
                expect_wanted(s, &tensor, 6, length);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

Test(any_size, of_several_requests_one_without_room_is_marked_and_left_alone)
{
        struct scene *s = malloc(sizeof(*s));
        struct parts parts;

        scene_begin(s, build_layer);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0);
        cut_parts(s, 5, 5 * WIDTH, &parts);
        parts.made[1].capacity_bytes--;
        s->got[5 * WIDTH] = 77;
        cr_assert_eq(run_parts(instance, s, 5, &parts), 0, "%s", s->error.text);
        cr_expect(!parts.parts[0].is_too_small && parts.parts[1].is_too_small && !parts.parts[2].is_too_small);
        cr_expect_eq(s->got[5 * WIDTH], 77.0f);
        parts.outputs[1][0] = NULL;
        cr_assert_eq(run_parts(instance, s, 5, &parts), 0, "%s", s->error.text);
        cr_expect(!parts.parts[1].is_too_small);
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

static void build_total(struct builder *b)
{
        builder_input(b, "words", SL_DTYPE_I64, DIMS(-1, -2));
        builder_input(b, "mask", SL_DTYPE_F32, DIMS(-1, -2));
        builder_ints(b, "first", DIMS(1), (int64_t[]){0});
        builder_node(b, "ReduceSum", "mask,first", "y");
        builder_output(b, "y");
}

Test(any_size, several_requests_whose_rows_meet_are_no_batch)
{
        struct scene *s = malloc(sizeof(*s));
        struct parts parts;

        scene_begin(s, build_total);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0);
        cut_parts(s, 5, 5, &parts);
        cr_expect_eq(run_parts(instance, s, 5, &parts), -EIO);
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

static void build_beside(struct builder *b)
{
        builder_input(b, "unread", SL_DTYPE_I64, DIMS(-1, -2));
        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 3));
        builder_node(b, "Neg", "x", "y");
        builder_output(b, "y");
}

/* No step is dynamic, and the copy of the integers is given back nevertheless: AddressSanitizer looks for what is not. */
Test(any_size, an_input_that_nobody_reads_may_be_of_any_size)
{
        const struct sl_shape shapes[2] = {{.rank = 2, .dims = {5, 7}}, {.rank = 2, .dims = {2, 3}}};
        struct sl_open_output made = {.capacity_bytes = ROOM};
        struct scene *s = malloc(sizeof(*s));
        void *output;

        scene_begin(s, build_beside);
        struct sl_plan *plan = compile_any(s);
        struct sl_instance *instance;

        output = s->got;
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &s->error), 0);
        sl_instance_give(instance, shapes);
        cr_assert_eq(sl_instance_run_open(instance, 1, s->inputs, &output, &made, &s->error), 0, "%s", s->error.text);
        for (int i = 0; i < 6; i++)
                cr_expect_eq(s->got[i], -s->mask[i]);
        sl_instance_free(instance);
        sl_plan_free(plan);
        scene_end(s);
}

static void build_count(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2));
        builder_node(b, "NonZero", "x", "places");
        builder_output(b, "places");
}

/* Before opset 18 an odd size is refused, which only import knows. */
static void build_halves(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2));
        builder_attr_int(b, builder_node(b, "Split", "x", "front,back"), "axis", 1);
        builder_node(b, "Mul", "front,back", "y");
        builder_output(b, "y");
}

static void build_sum(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2));
        builder_attr_string(b, builder_node(b, "Einsum", "x,x", "y"), "equation", "ij,kj->ik");
        builder_output(b, "y");
}

/* Its rows are known once a pass has read the list, and then it fits no tensor but an empty one. */
static void build_wide(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2, 3));
        builder_ints(b, "first", DIMS(1), (int64_t[]){0});
        builder_ints(b, "rest", DIMS(1), (int64_t[]){1ll << 51});
        builder_node(b, "Shape", "x", "sizes");
        builder_node(b, "Gather", "sizes,first", "rows");
        builder_attr_int(b, builder_node(b, "Concat", "rows,rest", "list"), "axis", 0);
        builder_node(b, "Reshape", "x,list", "y");
        builder_output(b, "y");
}

/* Of [batch] or of [2 * batch]: only a size tells. */
static void build_lengths(struct builder *b)
{
        builder_input(b, "words", SL_DTYPE_I64, DIMS(-1, -2));
        builder_input(b, "lengths", SL_DTYPE_I32, DIMS(-4));
        build_embedding(b);
        builder_attr_int(b, contrib_node(b, "Attention", "x,w,three,lengths", "y"), "num_heads", 2);
        builder_output(b, "y");
}

static void expect_refused(void (*build)(struct builder *b), const char *text)
{
        struct scene *s = malloc(sizeof(*s));
        struct sl_lower_options options;
        struct sl_plan *plan = NULL;

        scene_begin(s, build);
        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        cr_expect_eq(compile(s, &options, &plan), -ENOTSUP);
        cr_expect(strstr(s->error.text, text), "%s", s->error.text);
        scene_end(s);
}

Test(any_size, nodes_that_want_a_size_or_look_at_data_are_named)
{
        expect_refused(build_count, "node \"places\" (NonZero)");
        expect_refused(build_halves, "equal parts of a dimension that is not known");
        expect_refused(build_lengths, "a mask of one dimension, whose size tells what it is");
        expect_refused(build_sum, "it is read by the sizes of its inputs");
        expect_refused(build_wide, "is larger than 4294967296 bytes (tensor_bytes_max)");
}

static void try_forged(struct scene *s, const uint8_t *bytes, uint64_t n_bytes)
{
        struct sl_open_output made = {.capacity_bytes = ROOM};
        struct sl_instance *instance = NULL;
        struct sl_plan *plan = NULL;

        if (plan_open_bytes(bytes, n_bytes, &plan) < 0)
                return;
        if (sl_plan_info(plan)->n_inputs == 2 && sl_plan_info(plan)->n_outputs == 1 &&
                sl_instance_new(plan, 1, &instance, NULL) == 0)
                (void)run(instance, s, 2, 9, &made);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

/* What opens runs within the tensors that it is given, which are larger than it may say. */
Test(any_size, a_forged_plan_is_refused_or_runs_within_its_tensors)
{
        struct scene *s = malloc(sizeof(*s));
        struct sl_lower_options options;
        uint64_t state = 5, n_bytes, first;
        uint8_t *bytes;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        scene_begin(s, build_layer);
        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        options.dynamic_bytes_max = 1 << 16;
        cr_assert_eq(sl_compile_here(s->path, &options, -1, fd, &s->error), 0, "%s", s->error.text);
        bytes = plan_read(fd, &n_bytes);
        first = ((const struct sl_plan_header *)bytes)->sections[SL_PLAN_SECTION_INFO].offset;
        for (int i = 0; i < 6000; i++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                uint64_t at = first + (state >> 33) % (n_bytes - first);
                uint8_t before = bytes[at];

                bytes[at] = (uint8_t)(i % 2 ? before ^ (1u << (state >> 12 & 7)) : state >> 20 & 7);
                plan_seal(bytes, n_bytes);
                try_forged(s, bytes, n_bytes);
                bytes[at] = before;
        }
        free(bytes);
        close(fd);
        scene_end(s);
}
