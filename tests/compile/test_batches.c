/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files at random with an open batch: whatever batch size a request has, it gets what the file says for exactly that size. The
 * oracle is the file with that size written into its inputs, which knows no batch: it is evaluated on `ref`, without passes.
 *
 * STARLING_RANDOM_SEED and STARLING_RANDOM_ROUNDS try other files, and as many as you like.
 */
#include "base/clock.h"
#include "base/error.h"
#include "compile.h"
#include "evaluate.h"
#include "import.h"
#include "lower_options.h"
#include "plan.h"
#include "random_graph.h"
#include "ref/live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEED        1
#define ROUNDS      1000000 /* the time ends it before */
#define SECONDS     4
#define SHARE_FILES 200 /* of fewer, on a busy machine, no share is known */
#define BATCH_MAX   4
#define INPUT_BYTES 4096
#define ROOM        (1 << 16)
#define TOLERANCE   1e-4
#define COLUMNS     4 /* of what is built by hand */

/* What the file makes of a batch, if anything. */
struct answer {
        bool valid;
        struct sl_tensor tensor;
        _Alignas(64) uint8_t data[ROOM];
};

struct trial {
        struct random_graph g;
        char path[40];
        struct answer wanted[BATCH_MAX + 1], got;
        _Alignas(64) float inputs[RANDOM_INPUTS_MAX][INPUT_BYTES / sizeof(float)];
        const void *addresses[RANDOM_INPUTS_MAX];
        char fault[512];
};

static uint32_t n_batchable, n_single, n_signatures, n_refused, n_any;

static bool fault(struct trial *t, int64_t batch, const char *what)
{
        snprintf(t->fault, sizeof(t->fault), "batch %d: %s", (int)batch, what);
        return false;
}

static int evaluate(struct trial *t, const struct sl_graph *graph, struct answer *answer)
{
        struct sl_pool pool = {.limit_bytes = 1 << 22};
        struct sl_live output = {0};
        int r = sl_graph_evaluate_open(graph, t->addresses, &pool, &output, NULL);

        if (r < 0 || sl_tensor_bytes(&output.tensor) > ROOM)
                return r < 0 ? r : -E2BIG;
        answer->tensor = output.tensor;
        memcpy(answer->data, output.data, sl_tensor_bytes(&output.tensor));
        sl_live_drop(&pool, &output);
        return 0;
}

static void ask_oracle(struct trial *t, int64_t batch)
{
        struct answer *answer = &t->wanted[batch];
        struct sl_graph *graph = NULL, *special = NULL;
        size_t n_bytes;
        const uint8_t *bytes;

        random_graph_set_batch(&t->g, batch);
        bytes = builder_pack(t->g.b, &n_bytes);
        answer->valid = sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, NULL) == 0 &&
                        sl_graph_specialise(graph, 1, &special, NULL) == 0 && evaluate(t, special, answer) == 0;
        sl_graph_free(special);
        sl_graph_free(graph);
}

static bool elements_agree(const struct answer *wanted, const struct answer *got)
{
        const float *a = (const float *)(const void *)wanted->data, *b = (const float *)(const void *)got->data;

        if (wanted->tensor.dtype != SL_DTYPE_F32)
                return !memcmp(a, b, sl_tensor_bytes(&wanted->tensor));
        for (uint64_t i = 0; i < sl_shape_elements(&wanted->tensor.shape); i++) {
                bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));

                if (!same && !(fabsf(a[i] - b[i]) <= TOLERANCE * (1 + fabsf(a[i]))))
                        return false;
        }
        return true;
}

static bool compare(struct trial *t, int64_t batch)
{
        const struct answer *wanted = &t->wanted[batch], *got = &t->got;
        char text[SL_SHAPE_TEXT_BYTES], wanted_text[SL_SHAPE_TEXT_BYTES];

        /* Where the file is none, a node of it that nobody needs in the end may be at fault. */
        if (!wanted->valid)
                return true;
        if (wanted->tensor.dtype == got->tensor.dtype && sl_shape_equal(&wanted->tensor.shape, &got->tensor.shape) &&
                elements_agree(wanted, got))
                return true;
        snprintf(t->fault, sizeof(t->fault), "batch %d: got %s, first %g, wanted %s, first %g", (int)batch,
                sl_shape_print(&got->tensor.shape, text), (double)*(const float *)(const void *)got->data,
                sl_shape_print(&wanted->tensor.shape, wanted_text), (double)*(const float *)(const void *)wanted->data);
        return false;
}

static struct sl_plan *compile_as(struct trial *t, int64_t bound, uint32_t any_size, struct sl_error *error)
{
        struct sl_lower_options options;
        struct sl_plan *plan = NULL;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.batch_max = BATCH_MAX;
        options.any_size = any_size;
        if (bound)
                cr_assert_eq(sl_dim_sizes_add(&options.shapes, "N", 1, bound), 0);
        if (sl_compile_here(t->path, &options, -1, fd, error) == 0)
                cr_assert_eq(sl_plan_open(fd, &plan, error), 0, "%s", error->text);
        close(fd);
        return plan;
}

static struct sl_plan *compile(struct trial *t, int64_t bound, struct sl_error *error)
{
        return compile_as(t, bound, SL_ANY_SIZE_OFF, error);
}

static uint64_t sample_bytes(const struct sl_port *port)
{
        struct sl_tensor sample = {.dtype = port->dtype, .shape = port->shape};

        if (port->batch_axis == 0)
                sample.shape.dims[0] = 1;
        return sl_tensor_bytes(&sample);
}

/* One run of @batch samples from the @first one on. */
static int run_step(struct trial *t, const struct sl_plan_info *info, struct sl_instance *instance, uint32_t first, uint32_t batch)
{
        bool open = sl_port_is_open(&info->outputs[0]);
        const void *inputs[RANDOM_INPUTS_MAX];
        void *output = t->got.data + (open ? 0 : first * sample_bytes(&info->outputs[0]));
        struct sl_open_output made = {.capacity_bytes = ROOM};
        int r;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                inputs[i] = (const uint8_t *)t->addresses[i] + first * sample_bytes(&info->inputs[i]);
        r = sl_instance_run_open(instance, batch, inputs, &output, &made, NULL);
        if (open)
                t->got.tensor.shape = made.shape;
        return r;
}

/* In steps of the ladder, as a worker does. */
static bool run(struct trial *t, const struct sl_plan *plan, uint32_t batch)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        const struct sl_port *port = &info->outputs[0];
        uint32_t samples = info->batchable ? batch : 1;
        struct sl_instance *instance;
        int r = 0;

        cr_assert_eq(sl_instance_new(plan, info->batchable ? BATCH_MAX : 1, &instance, NULL), 0);
        t->got.tensor = (struct sl_tensor){.dtype = port->dtype, .shape = port->shape};
        if (port->batch_axis == 0)
                t->got.tensor.shape.dims[0] = samples;
        for (uint32_t first = 0, step; first < samples && r == 0; first += step) {
                step = sl_instance_step(instance, samples - first);
                r = run_step(t, info, instance, first, step);
        }
        sl_instance_free(instance);
        if (r < 0 && t->wanted[batch].valid)
                return fault(t, batch, strerror(-r));
        return r < 0 || compare(t, batch);
}

/* The request's size is told to the compiler. */
static bool check_bound(struct trial *t, uint32_t batch)
{
        struct sl_error error = {""};
        struct sl_plan *plan = compile(t, batch, &error);
        bool right;

        if (!plan)
                return !t->wanted[batch].valid || fault(t, batch, error.text);
        right = run(t, plan, batch);
        sl_plan_free(plan);
        return right;
}

static bool check_plan(struct trial *t, const struct sl_plan *plan)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        bool right = true;

        n_batchable += info->batchable;
        n_single += !info->batchable && !info->n_symbols;
        n_signatures += info->n_symbols != 0;
        if (info->batchable)
                for (uint32_t batch = 1; batch <= BATCH_MAX && right; batch++)
                        right = run(t, plan, batch);
        else if (!info->n_symbols)
                right = run(t, plan, 1);
        return right;
}

static bool run_any(struct trial *t, const struct sl_plan *plan, struct sl_instance *instance, int64_t batch)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        struct sl_open_output made = {.capacity_bytes = ROOM, .shape = info->outputs[0].shape};
        struct sl_shape shapes[RANDOM_INPUTS_MAX];
        struct sl_error error = {""};
        void *output = t->got.data;
        int r;

        for (uint32_t i = 0; i < info->n_inputs; i++) {
                shapes[i] = info->inputs[i].shape;
                shapes[i].dims[0] = batch;
        }
        sl_instance_give(instance, shapes);
        r = sl_instance_run_open(instance, 1, t->addresses, &output, &made, &error);
        /* An index out of range that nothing but its shape comes of is no fault of a plan in which that is folded away. */
        if (!t->wanted[batch].valid || r == -ERANGE)
                return true;
        t->got.tensor = (struct sl_tensor){.dtype = info->outputs[0].dtype, .shape = made.shape};
        return r == 0 ? compare(t, batch) : fault(t, batch, error.text);
}

/* One instance for all sizes, with none among them: what it knows of one must not serve another. */
static bool check_any(struct trial *t)
{
        struct sl_error error = {""};
        struct sl_plan *plan = compile_as(t, 0, SL_ANY_SIZE_ONLY, &error);
        struct sl_instance *instance;
        bool right = true;

        n_any += plan != NULL;
        if (!plan)
                return true;
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%s", error.text);
        for (uint32_t round = 0; round < 2; round++)
                for (int64_t batch = 0; batch <= BATCH_MAX && right; batch++)
                        right = run_any(t, plan, instance, batch);
        sl_instance_free(instance);
        sl_plan_free(plan);
        return right;
}

static void write_file(struct trial *t)
{
        size_t n_bytes;
        const uint8_t *bytes;
        FILE *file = fopen(t->path, "w");

        random_graph_set_batch(&t->g, -1);
        bytes = builder_pack(t->g.b, &n_bytes);
        cr_assert(file && fwrite(bytes, 1, n_bytes, file) == n_bytes && fclose(file) == 0);
}

static bool check_output(struct trial *t, uint32_t value)
{
        struct sl_error error = {""};
        struct sl_plan *plan;
        bool right = true;

        random_graph_set_output(&t->g, value);
        for (int64_t batch = 0; batch <= BATCH_MAX; batch++)
                ask_oracle(t, batch);
        write_file(t);
        plan = compile(t, 0, &error);
        n_refused += !plan;
        if (plan)
                right = check_plan(t, plan);
        if (!plan || !sl_plan_info(plan)->batchable)
                for (uint32_t batch = 1; batch < BATCH_MAX && right; batch++)
                        right = check_bound(t, batch);
        sl_plan_free(plan);
        return right && check_any(t);
}

static void fill_inputs(struct trial *t, uint64_t seed)
{
        for (uint32_t i = 0; i < RANDOM_INPUTS_MAX; i++) {
                t->addresses[i] = t->inputs[i];
                for (uint32_t k = 0; k < INPUT_BYTES / sizeof(float); k++)
                        t->inputs[i][k] = (float)((seed * 2654435761u + i * 40503u + k * 2246822519u) >> 7 & 7) - 4;
        }
}

/* The first value that is wrong is the one to look at. */
static void report(struct trial *t, uint64_t seed)
{
        uint32_t value = t->g.n_inputs;

        while (value + 1 < t->g.n_values && check_output(t, value))
                value++;
        check_output(t, value);
        fprintf(stderr, "STARLING_RANDOM_SEED=%llu STARLING_RANDOM_ROUNDS=1: %s\n", (unsigned long long)seed, t->fault);
        random_graph_print(&t->g, stderr);
}

static uint64_t number_from(const char *variable, uint64_t fallback)
{
        const char *text = getenv(variable);

        return text ? strtoull(text, NULL, 10) : fallback;
}

Test(batches, of_any_size_get_what_the_file_says_for_that_size)
{
        uint64_t seed = number_from("STARLING_RANDOM_SEED", SEED), rounds = number_from("STARLING_RANDOM_ROUNDS", ROUNDS), i;
        uint64_t end_ns = sl_clock_ns() + SECONDS * SL_NS_PER_SECOND;
        struct trial *t = calloc(1, sizeof(*t));
        uint32_t n_wrong = 0;

        strcpy(t->path, "/tmp/starling-batches-XXXXXX");
        close(mkstemp(t->path));
        for (i = 0; i < rounds && n_wrong < 5 && (rounds != ROUNDS || sl_clock_ns() < end_ns); i++) {
                random_graph_init(&t->g, seed + i);
                fill_inputs(t, seed + i);
                if (!check_output(t, t->g.n_values - 1)) {
                        report(t, seed + i);
                        n_wrong++;
                }
                random_graph_deinit(&t->g);
        }
        unlink(t->path);
        free(t);
        printf("%llu files: %u batchable, %u for one sample, %u for each size, %u refused; %u of any size\n", (unsigned long long)i,
                n_batchable, n_single, n_signatures, n_refused, n_any);
        cr_expect_eq(n_wrong, 0);
        cr_expect(rounds != ROUNDS ||
                  (n_batchable > (i < SHARE_FILES ? 0 : i / 10) && n_refused <= i / 4 && n_any > (i < SHARE_FILES ? 0 : i / 10)));
}

static void begin_by_hand(struct trial *t)
{
        *t = (struct trial){.g = {.b = builder_new(13), .tried = 2, .n_inputs = 1, .n_values = 1}};
        t->g.values[0] = (struct random_value){"x", {.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {2, COLUMNS}}}};
        builder_input(t->g.b, "x", SL_DTYPE_F32, DIMS(-1, COLUMNS));
        strcpy(t->path, "/tmp/starling-batches-XXXXXX");
        close(mkstemp(t->path));
        fill_inputs(t, SEED);
}

/* Whether the model whose output is "y", of @rank, is batchable; what it makes is right in any case. */
static bool end_by_hand(struct trial *t, uint32_t rank)
{
        uint32_t before = n_batchable;

        t->g.values[t->g.n_values++] = (struct random_value){"y", {.dtype = SL_DTYPE_F32, .shape = {.rank = rank}}};
        t->g.nodes = t->g.b->graph.node;
        t->g.n_nodes = t->g.b->graph.n_node;
        cr_assert(check_output(t, 1), "%s", t->fault);
        cr_assert(t->wanted[1].valid && t->wanted[BATCH_MAX].valid);
        unlink(t->path);
        random_graph_deinit(&t->g);
        return n_batchable > before;
}

/* rows [N, 1] = 0, 1, ... and columns [1, 3] = 2, 0, 1: the two indices of what exporters make of x[b, k]. */
static void add_counts(struct builder *b)
{
        builder_ints(b, "zero", DIMS(), (int64_t[]){0});
        builder_ints(b, "one", DIMS(), (int64_t[]){1});
        builder_ints(b, "last", DIMS(1), (int64_t[]){1});
        builder_ints(b, "columns", DIMS(1, 3), (int64_t[]){2, 0, 1});
        builder_node(b, "Shape", "x", "shape");
        builder_node(b, "Gather", "shape,zero", "count");
        builder_node(b, "Range", "zero,count,one", "numbers");
        builder_node(b, "Unsqueeze", "numbers,last", "rows");
}

static bool flat_mask_is_batchable(int64_t columns)
{
        static struct trial t;

        begin_by_hand(&t);
        add_counts(t.g.b);
        builder_ints(t.g.b, "width", DIMS(1), &columns);
        builder_attr_int(t.g.b, builder_node(t.g.b, "Flatten", "x", "flat"), "axis", 2);
        builder_node(t.g.b, "Mul", "rows,width", "begins");
        builder_node(t.g.b, "Add", "columns,begins", "indices");
        builder_node(t.g.b, "Gather", "flat,indices", "y");
        return end_by_hand(&t, 3);
}

Test(batches, a_flat_mask_that_is_read_by_sample_and_column_keeps_samples_apart)
{
        cr_expect(flat_mask_is_batchable(COLUMNS));
        cr_expect(!flat_mask_is_batchable(COLUMNS - 1), "the second sample reads of the first");
        cr_expect(!flat_mask_is_batchable(0), "all read of the first");
}

static bool mask_is_batchable(const char *rows)
{
        static struct trial t;

        begin_by_hand(&t);
        add_counts(t.g.b);
        builder_ints(t.g.b, "pair", DIMS(1), (int64_t[]){2});
        builder_node(t.g.b, "Max", "rows,columns", "both");
        builder_node(t.g.b, "Shape", "both", "room");
        builder_node(t.g.b, "Mul", "rows,zero", "firsts");
        builder_node(t.g.b, "Expand", rows, "all_rows");
        builder_node(t.g.b, "Expand", "columns,room", "all_columns");
        builder_node(t.g.b, "Unsqueeze", "all_rows,pair", "first");
        builder_node(t.g.b, "Unsqueeze", "all_columns,pair", "second");
        builder_attr_int(t.g.b, builder_node(t.g.b, "Concat", "first,second", "indices"), "axis", 2);
        builder_node(t.g.b, "GatherND", "x,indices", "y");
        return end_by_hand(&t, 2);
}

Test(batches, a_mask_that_is_read_by_pairs_of_sample_and_column_keeps_samples_apart)
{
        cr_expect(mask_is_batchable("rows,room"));
        cr_expect(!mask_is_batchable("firsts,room"), "all read of the first");
}

/* For one sample the constant is as large as what comes of it, for several it is not. */
Test(batches, what_is_expanded_beside_a_constant_for_one_sample_keeps_samples_apart)
{
        static struct trial t;

        begin_by_hand(&t);
        builder_ints(t.g.b, "last", DIMS(1), (int64_t[]){2});
        builder_ints(t.g.b, "room", DIMS(3), (int64_t[]){1, 1, 3});
        builder_random(t.g.b, "constant", DIMS(1, COLUMNS, 3));
        builder_node(t.g.b, "Unsqueeze", "x,last", "tall");
        builder_node(t.g.b, "Expand", "tall,room", "wide");
        builder_node(t.g.b, "Add", "wide,constant", "y");
        cr_expect(end_by_hand(&t, 3));
}

/* Three tokens of a sample: columns 2, 0 and 1 as vectors of 8, and the weights that two heads give them. */
static void weigh(struct builder *b)
{
        static const char *const names[] = {"q", "k", "v"};
        char weights[8], product[8], split[8], inputs[32];

        builder_ints(b, "heads", DIMS(4), (const int64_t[]){-1, 3, 2, 4});
        builder_random(b, "wide", DIMS(1, 8));
        builder_node(b, "Unsqueeze", "tokens,pair", "tall");
        builder_node(b, "MatMul", "tall,wide", "embedded");
        for (int i = 0; i < 3; i++) {
                snprintf(weights, sizeof(weights), "w%s", names[i]);
                snprintf(product, sizeof(product), "p%s", names[i]);
                snprintf(split, sizeof(split), "h%s", names[i]);
                builder_random(b, weights, DIMS(8, 8));
                snprintf(inputs, sizeof(inputs), "embedded,%s", weights);
                builder_node(b, "MatMul", inputs, product);
                snprintf(inputs, sizeof(inputs), "%s,heads", product);
                builder_node(b, "Reshape", inputs, split);
                if (i == 1)
                        builder_transpose(b, split, names[i], DIMS(0, 2, 3, 1));
                else
                        builder_transpose(b, split, names[i], DIMS(0, 2, 1, 3));
        }
        builder_node(b, "MatMul", "q,k", "unmasked");
        builder_node(b, "Add", "unmasked,mask", "masked");
        builder_attr_int(b, builder_node(b, "Softmax", "masked", "weights"), "axis", -1);
}

/* A mask [N, 1, 1, 3] of what is positive, gathered by numbers as many as the batch; rows of nothing else have no weights at all.
 */
Test(batches, attention_behind_a_mask_that_is_gathered_gives_each_sample_its_own)
{
        static struct trial t;

        begin_by_hand(&t);
        add_counts(t.g.b);
        builder_ints(t.g.b, "pair", DIMS(1), (int64_t[]){2});
        builder_ints(t.g.b, "between", DIMS(2), (int64_t[]){1, 2});
        builder_ints(t.g.b, "flat_columns", DIMS(3), (int64_t[]){2, 0, 1});
        builder_ints(t.g.b, "merged", DIMS(3), (int64_t[]){-1, 3, 8});
        builder_floats(t.g.b, "none", 0, NULL, (float[]){0});
        builder_floats(t.g.b, "away", 0, NULL, (float[]){-INFINITY});
        builder_attr_int(t.g.b, builder_node(t.g.b, "Gather", "x,flat_columns", "tokens"), "axis", 1);
        builder_node(t.g.b, "Greater", "tokens,none", "positive");
        builder_node(t.g.b, "Gather", "positive,numbers", "own");
        builder_node(t.g.b, "Unsqueeze", "own,between", "seen");
        builder_node(t.g.b, "Where", "seen,none,away", "mask");
        weigh(t.g.b);
        builder_node(t.g.b, "IsNaN", "weights", "strange");
        builder_node(t.g.b, "Where", "strange,none,weights", "guarded");
        builder_node(t.g.b, "MatMul", "guarded,v", "mixed");
        builder_transpose(t.g.b, "mixed", "turned", DIMS(0, 2, 1, 3));
        builder_node(t.g.b, "Reshape", "turned,merged", "y");
        cr_expect(end_by_hand(&t, 3));
}
