/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the backend "cuda" chooses among the candidates of nodes and the algorithms of products, by the clock of a device that is
 * not there: which those are is known, so that nothing here depends on real time.
 */
#include "base/error.h"
#include "cuda/chooser.h"
#include "cuda/libraries.h"
#include "cuda/planning.h"
#include "cuda/recipe.h"
#include "cuda/session_device.h"
#include "fake_libraries.h"
#include "host/kernels.h"
#include "network.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 2
#define MOST  4096

static struct fake_cuda_kernel kernels[SL_OWN_KERNEL_COUNT + FAKE_LIBRARY_KERNELS];
static struct sl_cuda_driver driver;
static struct sl_cuda_device gpu;
static struct network net;
static struct sl_plan *plan;
static CUdeviceptr lent;
static uint64_t lent_bytes; /* at most so far */
static uint32_t n_breaths;
static bool has_no_room;

static void setup(void)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        memcpy(kernels, host_kernels, sizeof(host_kernels));
        memcpy(kernels + SL_OWN_KERNEL_COUNT, fake_library_kernels, sizeof(fake_library_kernels));
        options.kernels = kernels;
        options.n_kernels = SL_OWN_KERNEL_COUNT + FAKE_LIBRARY_KERNELS;
        fake_cuda_begin(&options, &driver);
        fake_libraries_begin(&driver);
        sl_cuda_libraries_use(&fake_cudnn, &fake_cublaslt);
        sl_cuda_planning_use(&fake_cudnn);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &gpu, &error), 0, "%s", error.text);
        network_init(&net);
}

static void teardown(void)
{
        if (lent)
                driver.mem_free(lent);
        lent = 0;
        sl_plan_free(plan);
        network_deinit(&net);
        sl_cuda_planning_use(NULL);
        sl_cuda_device_close(&gpu);
        cr_expect_eq(fake_libraries_held(), 0, "%u things of the libraries are left", fake_libraries_held());
        cr_expect_eq(fake_cuda_held(), 0, "%u things of the driver are left", fake_cuda_held());
}

TestSuite(choosing, .init = setup, .fini = teardown);

/* ---- what is computed ---- */

static void open_plan(uint32_t output)
{
        struct sl_error error = {""};
        int fd;

        network_output(&net, output);
        network_finish(&net);
        fd = network_plan_fd(&net, "cuda", BATCH);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
}

/* A convolution with its epilogue, and one that is the same. */
static void open_convolutions(void)
{
        uint32_t value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8, 6, 6));

        value = network_apply(&net, SL_OP_RELU, network_conv(&net, value, 8, 8, 3, 1, 1));
        open_plan(network_apply(&net, SL_OP_RELU, network_conv(&net, value, 8, 8, 3, 1, 1)));
}

/* Of bytes, with so many filters over 64 channels: multiples of 4 are products of int8. */
#define FILTERS 62
static uint32_t convolve_bytes(int64_t filters)
{
        const struct sl_tensor tensor = {.dtype = SL_DTYPE_I8, .shape = {4, {filters, 64, 3, 3}}};
        uint32_t x = network_input(&net, SL_DTYPE_U8, DIMS(SL_DIM_BATCH, 64, 3, 3)), weights;
        int8_t *data = sl_graph_alloc(net.graph, sl_tensor_bytes(&tensor));

        cr_assert_not_null(data);
        memset(data, 1, sl_tensor_bytes(&tensor));
        cr_assert_eq(sl_graph_add_constant(net.graph, "bytes", &tensor, data, &weights), 0);
        return network_node(&net, SL_OP_QUANTIZED_CONV, VALUES(x, weights, network_scales(&net, DIMS(filters))),
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {3, 3}}, {SL_ATTR_PADS, 4, {1, 1, 1, 1}}, {SL_ATTR_TO, 0, {SL_DTYPE_F32}}));
}

/* The same of float32, without a bias: to cuDNN it is that of the bytes. */
static uint32_t convolve_floats(void)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 64, 3, 3));

        return network_node(&net, SL_OP_CONV, VALUES(x, network_weights(&net, DIMS(FILTERS, 64, 3, 3))),
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {3, 3}}, {SL_ATTR_PADS, 4, {1, 1, 1, 1}}));
}

/* Of two heads of 32 in bfloat16: queries, keys and values lie in one row. */
static void open_attention(void)
{
        uint32_t x = network_input(&net, SL_DTYPE_BF16, DIMS(SL_DIM_BATCH, 5, 192));

        open_plan(network_node(&net, SL_OP_ROW_ATTENTION, VALUES(x, x, x),
                ATTRS({SL_ATTR_GROUP, 0, {2}}, {SL_ATTR_SHAPE, 2, {32, 32}}, {SL_ATTR_STARTS, 3, {0, 64, 128}})));
}

static void open_product(void)
{
        uint32_t value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 32));

        open_plan(network_node(&net, SL_OP_MATMUL, VALUES(value, network_weights(&net, DIMS(32, 16))), 0, NULL));
}

/* ---- who chooses ---- */

static int lend(void *context, uint64_t bytes, CUdeviceptr *ret_address)
{
        (void)context;
        if (lent)
                driver.mem_free(lent);
        lent = 0;
        if (has_no_room || driver.mem_alloc(&lent, bytes) != CUDA_SUCCESS)
                return -ENOMEM;
        *ret_address = lent;
        lent_bytes = bytes > lent_bytes ? bytes : lent_bytes;
        return 0;
}

static void breathe(void *context)
{
        (void)context;
        n_breaths++;
}

static struct sl_cuda_chooser_options asked(bool times, bool compiles)
{
        struct sl_cuda_libraries libraries = {.cudnn.version = 91900, .cublaslt.version = 130100};
        struct sl_cuda_chooser_options options = {
                .plan = {1, 2}, .times = times, .compiles = compiles, .bound_ns = UINT64_MAX, .room = lend, .breathe = breathe};

        sl_cuda_chooser_identify(&gpu, &libraries, 0, &options.identity);
        return options;
}

static struct sl_cuda_chooser *new_chooser(const struct sl_cuda_chooser_options *options)
{
        struct sl_cuda_chooser *chooser;

        cr_assert_eq(sl_cuda_chooser_new(options, &chooser), 0);
        return chooser;
}

/* Makes the kernels of the plan, and runs it once. */
static void compute(struct sl_cuda_chooser *chooser)
{
        static float x[MOST], y[2][MOST];
        const void *inputs[] = {x, x};
        void *outputs[] = {y[0], y[1]};
        struct sl_device device = {.cuda = &gpu, .chooser = chooser};
        struct sl_instance_ground ground = {.device = &device};
        struct sl_instance *instance;
        struct sl_error error = {""};

        cr_assert_eq(sl_instance_new_on(plan, BATCH, &ground, &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
        sl_instance_free(instance);
}

static struct sl_gpu_choices_facts read_file(const struct sl_cuda_chooser *chooser, void **ret_data, uint64_t *ret_bytes)
{
        struct sl_gpu_choices_facts facts;
        struct sl_error error = {""};

        cr_assert_eq(sl_cuda_chooser_write(chooser, ret_data, ret_bytes), 0);
        cr_assert_eq(sl_gpu_choices_check(*ret_data, *ret_bytes, &facts, &error), 0, "%s", error.text);
        return facts;
}

static int by_key(const void *a, const void *b)
{
        return memcmp(((const struct sl_gpu_choice *)a)->key, ((const struct sl_gpu_choice *)b)->key, 2 * sizeof(uint64_t));
}

static uint32_t read_sorted(const struct sl_cuda_chooser *chooser, void **ret_data, struct sl_gpu_choice ret_choices[8])
{
        uint64_t bytes;
        struct sl_gpu_choices_facts facts = read_file(chooser, ret_data, &bytes);

        cr_assert_leq(facts.n_choices, 8);
        for (uint32_t i = 0; i < facts.n_choices; i++)
                sl_gpu_choices_at(*ret_data, i, &ret_choices[i]);
        qsort(ret_choices, facts.n_choices, sizeof(ret_choices[0]), by_key);
        return facts.n_choices;
}

/* The engine stands at the end of a text of the fake cuDNN. */
static int64_t engine_of(const struct sl_gpu_choice *choice)
{
        return strtoll(strrchr(choice->text, ' '), NULL, 10);
}

/* What was chosen for the only convolution that there is. */
static struct sl_gpu_choice only_choice(const struct sl_cuda_chooser *chooser, void **ret_data)
{
        uint64_t bytes;
        struct sl_gpu_choices_facts facts = read_file(chooser, ret_data, &bytes);
        struct sl_gpu_choice choice, found = {.way = 0};
        uint32_t n = 0;

        for (uint32_t i = 0; i < facts.n_choices; i++) {
                sl_gpu_choices_at(*ret_data, i, &choice);
                n += choice.ns != 0 || facts.n_choices == 1;
                if (choice.ns || facts.n_choices == 1)
                        found = choice;
        }
        cr_assert_geq(n, 1);
        return found;
}

static void expect_engine(bool times, bool compiles, int64_t engine, uint32_t way)
{
        struct sl_cuda_chooser_options options = asked(times, compiles);
        struct sl_cuda_chooser *chooser = new_chooser(&options);
        struct sl_gpu_choice choice;
        void *data;

        open_convolutions();
        compute(chooser);
        cr_assert(sl_cuda_chooser_has_news(chooser));
        choice = only_choice(chooser, &data);
        cr_expect_eq(engine_of(&choice), engine, "engine %d", (int)engine_of(&choice));
        cr_expect_eq(choice.way, way);
        free(data);
        sl_cuda_chooser_free(chooser);
}

Test(choosing, takes_the_fastest_engine_that_is_exact)
{
        expect_engine(true, false, FAKE_ENGINE_FAST, SL_CUDA_WAY_CONVOLUTION);
        cr_expect_eq(fake_libraries.n_compiled, 0);
        cr_expect_gt(n_breaths, 0);
}

Test(choosing, takes_engines_that_are_compiled_at_run_time_where_they_are_asked_for)
{
        expect_engine(true, true, FAKE_ENGINE_COMPILED, SL_CUDA_WAY_CONVOLUTION);
        cr_expect_gt(fake_libraries.n_compiled, 0);
}

Test(choosing, takes_the_bare_convolution_and_own_kernels_where_these_are_faster)
{
        fake_libraries.epilogue_ns = 1000000;
        expect_engine(true, false, FAKE_ENGINE_FIRST, SL_CUDA_WAY_BARE);
}

/* Both convolutions are one shape: they are timed once for each size. */
Test(choosing, times_what_is_the_same_once)
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *chooser = new_chooser(&options);
        struct sl_gpu_choices_facts facts;
        uint64_t bytes;
        void *data;

        open_convolutions();
        compute(chooser);
        facts = read_file(chooser, &data, &bytes);
        cr_expect_eq(facts.n_choices, sl_plan_info(plan)->n_batches);
        cr_expect_eq(facts.n_timed, facts.n_choices);
        cr_expect_eq(facts.n_candidates, 4 * facts.n_choices, "%u", facts.n_candidates);
        free(data);
        sl_cuda_chooser_free(chooser);
}

Test(choosing, takes_the_fastest_algorithm_of_a_product)
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *chooser = new_chooser(&options);
        struct sl_gpu_choice choice;
        void *data;

        open_product();
        compute(chooser);
        choice = only_choice(chooser, &data);
        cr_assert(choice.has_algorithm);
        cr_expect_eq(choice.algorithm[0], FAKE_ALGORITHM_FAST);
        free(data);
        sl_cuda_chooser_free(chooser);
}

static void expect_engines_of_bytes_and_floats(bool compiles, int64_t of_bytes, int64_t of_floats)
{
        struct sl_cuda_chooser_options options = asked(true, compiles);
        struct sl_cuda_chooser *chooser = new_chooser(&options);
        struct sl_gpu_choice choices[8];
        uint32_t n, n_bytes = 0;
        void *data;

        network_output(&net, convolve_bytes(FILTERS));
        open_plan(convolve_floats());
        compute(chooser);
        n = read_sorted(chooser, &data, choices);
        cr_expect_eq(n, 2 * sl_plan_info(plan)->n_batches);
        for (uint32_t i = 0; i < n; i++) {
                bool bytes = choices[i].way == SL_CUDA_WAY_BYTES_CONVOLUTION;

                n_bytes += bytes;
                cr_expect(bytes || choices[i].way == SL_CUDA_WAY_CONVOLUTION, "way %u", choices[i].way);
                cr_expect_gt(choices[i].ns, 0);
                cr_expect_eq(engine_of(&choices[i]), bytes ? of_bytes : of_floats, "engine %d", (int)engine_of(&choices[i]));
        }
        cr_expect_eq(n_bytes, sl_plan_info(plan)->n_batches);
        free(data);
        sl_cuda_chooser_free(chooser);
}

/* What TF32 leaves as it is may be rounded to it; what is planned for the one is not taken for the other. */
Test(choosing, takes_engines_that_round_to_tf32_for_bytes_alone)
{
        expect_engines_of_bytes_and_floats(false, FAKE_ENGINE_TENSORS, FAKE_ENGINE_FAST);
}

Test(choosing, takes_engines_that_are_compiled_at_run_time_for_bytes_too)
{
        expect_engines_of_bytes_and_floats(true, FAKE_ENGINE_COMPILED, FAKE_ENGINE_COMPILED);
}

/* Filters of bytes lie in the plan as float32. */
Test(choosing, has_room_for_filters_as_they_lie)
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *chooser = new_chooser(&options);

        open_plan(convolve_bytes(FILTERS));
        compute(chooser);
        cr_expect_geq(lent_bytes, FILTERS * 64 * 3 * 3 * sizeof(float));
        sl_cuda_chooser_free(chooser);
}

/* What was chosen for a convolution of int8: nodes' choices have no algorithm, those of a product within have one. */
static void expect_int8_way(bool compiles, uint32_t way, int64_t engine)
{
        struct sl_cuda_chooser_options options = asked(true, compiles);
        struct sl_cuda_chooser *chooser = new_chooser(&options);
        struct sl_gpu_choice choices[8];
        uint32_t n, n_nodes = 0;
        void *data;

        open_plan(convolve_bytes(64));
        compute(chooser);
        n = read_sorted(chooser, &data, choices);
        for (uint32_t i = 0; i < n; i++) {
                if (choices[i].has_algorithm)
                        continue;
                n_nodes++;
                cr_expect_gt(choices[i].ns, 0);
                cr_expect_eq(choices[i].way, way, "way %u", choices[i].way);
                if (choices[i].text)
                        cr_expect_eq(engine_of(&choices[i]), engine, "engine %d", (int)engine_of(&choices[i]));
                else
                        cr_expect_eq(way, SL_CUDA_WAY_INT8_ROWS);
        }
        cr_expect_eq(n_nodes, sl_plan_info(plan)->n_batches);
        free(data);
        sl_cuda_chooser_free(chooser);
}

Test(choosing, takes_rows_for_int8_where_the_product_is_faster)
{
        expect_int8_way(false, SL_CUDA_WAY_INT8_ROWS, 0);
}

Test(choosing, takes_an_engine_for_int8_where_there_is_no_product)
{
        fake_libraries.lacks_products = true;
        expect_int8_way(false, SL_CUDA_WAY_INT8_CONVOLUTION, FAKE_ENGINE_TENSORS);
}

Test(choosing, takes_engines_that_are_compiled_at_run_time_for_int8_too)
{
        fake_libraries.lacks_products = true;
        expect_int8_way(true, SL_CUDA_WAY_INT8_CONVOLUTION, FAKE_ENGINE_COMPILED);
}

/* The fake device's own kernels take no time. */
Test(choosing, takes_fused_attention_where_products_take_longer)
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *chooser = new_chooser(&options);
        struct sl_gpu_choice choices[8];
        uint32_t n, n_nodes = 0;
        void *data;

        open_attention();
        compute(chooser);
        n = read_sorted(chooser, &data, choices);
        for (uint32_t i = 0; i < n; i++) {
                n_nodes += !choices[i].has_algorithm;
                cr_expect(choices[i].has_algorithm || choices[i].way == SL_CUDA_WAY_FUSED_ATTENTION, "way %u", choices[i].way);
        }
        cr_expect_eq(n_nodes, sl_plan_info(plan)->n_batches);
        cr_expect_gt(n, n_nodes, "the products of the other way were timed, too");
        free(data);
        sl_cuda_chooser_free(chooser);
}

/* ---- the second start ---- */

static void expect_second_start_asks_nothing(void)
{
        struct sl_cuda_chooser_options options = asked(true, true);
        struct sl_cuda_chooser *first = new_chooser(&options), *second = new_chooser(&options);
        uint32_t n_asked, n_compiled, n_timed = fake_cuda_calls(FAKE_CUDA_event_elapsed_time);
        struct sl_error error = {""};
        uint64_t bytes;
        void *data;

        compute(first);
        cr_expect_gt(fake_cuda_calls(FAKE_CUDA_event_elapsed_time), n_timed);
        read_file(first, &data, &bytes);
        n_timed = fake_cuda_calls(FAKE_CUDA_event_elapsed_time);
        n_compiled = fake_libraries.n_compiled;
        n_asked = fake_libraries.n_asked;
        cr_assert_eq(sl_cuda_chooser_read(second, data, bytes, &error), 0, "%s", error.text);
        compute(second);
        cr_expect_eq(fake_cuda_calls(FAKE_CUDA_event_elapsed_time), n_timed);
        cr_expect_eq(fake_libraries.n_compiled, n_compiled);
        cr_expect_leq(
                fake_libraries.n_asked, n_asked + 2, "products ask for descriptors' first algorithm, convolutions for nothing");
        cr_expect_not(sl_cuda_chooser_has_news(second));
        free(data);
        sl_cuda_chooser_free(first);
        sl_cuda_chooser_free(second);
}

Test(choosing, of_convolutions_is_not_done_again_by_who_has_the_file)
{
        open_convolutions();
        expect_second_start_asks_nothing();
}

Test(choosing, of_bytes_is_not_done_again_by_who_has_the_file)
{
        open_plan(convolve_bytes(FILTERS));
        expect_second_start_asks_nothing();
}

Test(choosing, of_rows_of_int8_is_not_done_again_by_who_has_the_file)
{
        open_plan(convolve_bytes(64));
        expect_second_start_asks_nothing();
}

Test(choosing, of_attention_is_not_done_again_by_who_has_the_file)
{
        open_attention();
        expect_second_start_asks_nothing();
}

Test(choosing, of_products_is_not_done_again_by_who_has_the_file)
{
        open_product();
        expect_second_start_asks_nothing();
}

/* ---- what is not timed ---- */

static void expect_first(const struct sl_cuda_chooser_options *options, bool kept)
{
        struct sl_cuda_chooser *chooser = new_chooser(options);
        struct sl_gpu_choices_facts facts;
        struct sl_gpu_choice choice;
        uint64_t bytes;
        void *data;

        open_convolutions();
        compute(chooser);
        facts = read_file(chooser, &data, &bytes);
        cr_expect_eq(facts.n_choices > 0, kept);
        cr_expect_eq(facts.n_timed, 0);
        cr_expect_eq(fake_cuda_calls(FAKE_CUDA_event_elapsed_time), 0);
        if (kept) {
                sl_gpu_choices_at(data, 0, &choice);
                cr_expect_eq(engine_of(&choice), FAKE_ENGINE_FIRST);
        }
        free(data);
        sl_cuda_chooser_free(chooser);
}

Test(choosing, takes_the_first_where_nothing_is_timed)
{
        const struct sl_cuda_chooser_options options = asked(false, false);

        expect_first(&options, false);
}

/* And keeps it, so that the next start does the same. */
Test(choosing, takes_the_first_when_its_time_is_over)
{
        struct sl_cuda_chooser_options options = asked(true, false);

        options.bound_ns = 0;
        expect_first(&options, true);
}

Test(choosing, takes_the_first_where_there_is_no_memory)
{
        const struct sl_cuda_chooser_options options = asked(true, false);

        has_no_room = true;
        expect_first(&options, true);
}

/* Who has the file of one who had no memory, or not enough time, and has both. */
static void expect_timed_after_all(const struct sl_cuda_chooser_options *first_options)
{
        const struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *first = new_chooser(first_options), *second = new_chooser(&options);
        struct sl_error error = {""};
        uint64_t bytes;
        void *data;

        open_convolutions();
        compute(first);
        cr_expect_eq(read_file(first, &data, &bytes).n_timed, 0);
        has_no_room = false;
        cr_assert_eq(sl_cuda_chooser_read(second, data, bytes, &error), 0, "%s", error.text);
        free(data);
        compute(second);
        cr_expect_gt(read_file(second, &data, &bytes).n_timed, 0);
        cr_expect(sl_cuda_chooser_has_news(second));
        free(data);
        sl_cuda_chooser_free(first);
        sl_cuda_chooser_free(second);
}

Test(choosing, that_had_no_time_is_done_by_who_has_more)
{
        struct sl_cuda_chooser_options options = asked(true, false);

        options.bound_ns = 0;
        expect_timed_after_all(&options);
}

Test(choosing, that_had_no_memory_is_done_when_there_is_some)
{
        const struct sl_cuda_chooser_options options = asked(true, false);

        has_no_room = true;
        expect_timed_after_all(&options);
}

/* ---- what cannot be believed ---- */

static void expect_same_choices(const struct sl_cuda_chooser *a, const struct sl_cuda_chooser *b)
{
        struct sl_gpu_choice left[8], right[8];
        void *of_a, *of_b;
        uint32_t n = read_sorted(a, &of_a, left);

        cr_assert_eq(read_sorted(b, &of_b, right), n);
        for (uint32_t i = 0; i < n; i++) {
                cr_expect_eq(left[i].way, right[i].way);
                cr_expect_eq(left[i].ns, right[i].ns);
                cr_expect_eq(left[i].text_bytes, right[i].text_bytes);
                cr_expect(!left[i].text_bytes || !strcmp(left[i].text, right[i].text));
                cr_expect(memcmp(left[i].algorithm, right[i].algorithm, sizeof(left[i].algorithm)) == 0);
        }
        free(of_a);
        free(of_b);
}

static void damage_and_compute(void (*damage)(struct sl_gpu_choice *choice))
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *first = new_chooser(&options), *second = new_chooser(&options);
        struct sl_gpu_choices_facts facts;
        struct sl_gpu_choice choices[8];
        uint64_t bytes, other_bytes;
        void *data, *other;

        compute(first);
        facts = read_file(first, &data, &bytes);
        cr_assert_leq(facts.n_choices, 8);
        for (uint32_t i = 0; i < facts.n_choices; i++) {
                sl_gpu_choices_at(data, i, &choices[i]);
                damage(&choices[i]);
        }
        cr_assert_eq(sl_gpu_choices_write(&facts, choices, &other, &other_bytes), 0);
        cr_assert_eq(sl_cuda_chooser_read(second, other, other_bytes, NULL), 0);
        compute(second);
        cr_expect(sl_cuda_chooser_has_news(second));
        free(other);
        expect_same_choices(first, second);
        free(data);
        sl_cuda_chooser_free(first);
        sl_cuda_chooser_free(second);
}

static void damage_text(struct sl_gpu_choice *choice)
{
        choice->text = "no plan";
        choice->text_bytes = 8;
}

static void damage_way(struct sl_gpu_choice *choice)
{
        choice->way = SL_CUDA_WAY_ATTENTION;
}

static void damage_workspace(struct sl_gpu_choice *choice)
{
        choice->workspace_bytes = 1 << 30;
}

static void damage_algorithm(struct sl_gpu_choice *choice)
{
        memset(choice->algorithm, 0xff, sizeof(choice->algorithm));
}

Test(choosing, that_the_library_does_not_take_is_done_again)
{
        open_convolutions();
        damage_and_compute(damage_text);
}

Test(choosing, of_another_way_is_done_again)
{
        open_convolutions();
        damage_and_compute(damage_way);
}

/* A product's row has no text, and becomes one of cuDNN's. */
static void damage_way_of_rows(struct sl_gpu_choice *choice)
{
        choice->way = choice->has_algorithm ? choice->way : SL_CUDA_WAY_INT8_CONVOLUTION;
}

Test(choosing, of_cudnn_without_a_text_is_done_again)
{
        open_plan(convolve_bytes(64));
        damage_and_compute(damage_way_of_rows);
}

Test(choosing, that_wants_more_scratch_than_there_is_is_done_again)
{
        open_convolutions();
        damage_and_compute(damage_workspace);
}

Test(choosing, of_algorithms_that_are_none_is_done_again)
{
        open_product();
        damage_and_compute(damage_algorithm);
}

Test(choosing, of_another_driver_is_not_believed)
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_cuda_chooser *first = new_chooser(&options), *second;
        struct sl_error error = {""};
        uint64_t bytes;
        void *data;

        open_product();
        compute(first);
        read_file(first, &data, &bytes);
        options.identity.cuda_version = 13010;
        second = new_chooser(&options);
        cr_expect_eq(sl_cuda_chooser_read(second, data, bytes, &error), -ESTALE);
        cr_expect(strstr(error.text, "CUDA version 13000, and this is 13010"), "%s", error.text);
        compute(second);
        cr_expect(sl_cuda_chooser_has_news(second));
        free(data);
        sl_cuda_chooser_free(first);
        sl_cuda_chooser_free(second);
}

/* ---- a device that is lost, to which nothing can be given back ---- */

TestSuite(choosing_lost, .init = setup);

static void lose(void *context)
{
        (void)context;
        fake_cuda_lose(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void expect_lost(const char *words)
{
        struct sl_cuda_chooser_options options = asked(true, false);
        struct sl_device device = {.cuda = &gpu};
        struct sl_instance_ground ground = {.device = &device};
        struct sl_instance *instance;
        struct sl_error error = {""};

        options.breathe = lose;
        device.chooser = new_chooser(&options);
        cr_expect_eq(sl_instance_new_on(plan, BATCH, &ground, &instance, &error), -EIO);
        cr_expect(strstr(error.text, words), "%s", error.text);
        cr_expect_not(sl_cuda_chooser_has_news(device.chooser));
        sl_cuda_chooser_free(device.chooser);
}

Test(choosing_lost, while_candidates_are_timed_is_told)
{
        open_convolutions();
        expect_lost("lost while candidates are timed");
}

Test(choosing_lost, while_products_are_timed_is_told)
{
        open_product();
        expect_lost("lost while products are timed");
}
