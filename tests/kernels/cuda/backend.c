/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "cuda" from a graph to what it computes, on a GPU that is not there: what it makes agrees with ref, what cannot be is
 * refused, and nothing is left. Nothing here has seen a GPU.
 */
#include "backend.h"
#include "base/error.h"
#include "cuda/libraries.h"
#include "cuda/planning.h"
#include "cuda/record.h"
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
static float x[MOST], y[MOST], wanted[MOST];
static const void *inputs[] = {x};
static void *outputs[] = {y};

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
        network_deinit(&net);
        sl_cuda_planning_use(NULL);
        sl_cuda_device_close(&gpu);
        cr_expect_eq(fake_libraries_held(), 0, "%u things of the libraries are left", fake_libraries_held());
        cr_expect_eq(fake_cuda_held(), 0, "%u things of the driver are left", fake_cuda_held());
}

TestSuite(cuda_backend, .init = setup, .fini = teardown);

static uint32_t perceptron(void)
{
        uint32_t value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 32));

        value = network_node(
                &net, SL_OP_MATMUL, VALUES(value, network_weights(&net, DIMS(32, 48)), network_weights(&net, DIMS(48))), 0, NULL);
        value = network_apply(&net, SL_OP_RELU, value);
        value = network_node(&net, SL_OP_MATMUL, VALUES(value, network_weights(&net, DIMS(48, 10))), 0, NULL);
        return network_apply(&net, SL_OP_SIGMOID, value);
}

static uint32_t convolutions(void)
{
        uint32_t value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, 8, 8)), first;

        value = first = network_apply(&net, SL_OP_RELU, network_conv(&net, value, 3, 8, 3, 1, 1));
        value = network_conv(&net, value, 8, 8, 3, 1, 8);
        value = network_node(&net, SL_OP_ADD, VALUES(value, first), 0, NULL);
        value = network_apply(&net, SL_OP_SIGMOID, value);
        return network_conv(&net, value, 8, 6, 1, 2, 2);
}

static void build(uint32_t output)
{
        network_output(&net, output);
        network_finish(&net);
        for (int i = 0; i < MOST; i++)
                x[i] = network_random(&net);
}

static struct sl_plan *open_plan(const char *backend)
{
        struct sl_error error = {""};
        struct sl_plan *plan;
        int fd = network_plan_fd(&net, backend, BATCH);

        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static uint64_t output_elements(const struct sl_plan *plan)
{
        struct sl_shape shape = sl_plan_info(plan)->outputs[0].shape;

        shape.dims[0] = BATCH;
        return sl_shape_elements(&shape);
}

static void compute_wanted(void)
{
        struct sl_plan *plan = open_plan("ref");
        struct sl_instance *instance;
        void *there[] = {wanted};

        cr_assert_eq(sl_instance_new(plan, BATCH, &instance, NULL), 0);
        cr_assert_eq(sl_instance_run(instance, BATCH, inputs, there), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

static void expect_ref(void)
{
        struct sl_device device = {.cuda = &gpu};
        struct sl_instance_ground ground = {.device = &device};
        struct sl_plan *plan = open_plan("cuda");
        struct sl_error error = {""};
        struct sl_instance *instance;
        int r;

        compute_wanted();
        cr_assert_eq(sl_instance_new_on(plan, BATCH, &ground, &instance, &error), 0, "%s", error.text);
        for (int run = 0; run < 2; run++) {
                memset(y, 0, sizeof(y));
                r = sl_instance_start(instance, BATCH, inputs, outputs);
                while (r == -EINPROGRESS) {
                        fake_cuda_step();
                        r = sl_instance_poll(instance);
                }
                cr_assert_eq(r, 0, "%d", r);
                for (uint64_t i = 0; i < output_elements(plan); i++)
                        cr_assert_lt(fabsf(y[i] - wanted[i]), 1e-4f, "element %d: %f, wanted %f", (int)i, y[i], wanted[i]);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(cuda_backend, computes_a_perceptron_as_ref_does)
{
        build(perceptron());
        expect_ref();
}

/* Of two inputs' shapes, whose samples come first. */
static void expect_product(uint32_t rank, const int64_t *x_dims, uint32_t w_rank, const int64_t *w_dims)
{
        uint32_t value = network_input(&net, SL_DTYPE_F32, rank, x_dims), w = network_weights(&net, w_rank, w_dims);

        build(network_apply(&net, SL_OP_RELU, network_node(&net, SL_OP_MATMUL, VALUES(value, w), 0, NULL)));
        expect_ref();
}

Test(cuda_backend, computes_a_stack_by_one_that_repeats_as_ref_does)
{
        expect_product(DIMS(SL_DIM_BATCH, 3, 4, 5), DIMS(1, 3, 5, 6));
}

Test(cuda_backend, computes_stacks_that_both_repeat_as_ref_does)
{
        expect_product(DIMS(SL_DIM_BATCH, 1, 4, 5), DIMS(3, 5, 6));
}

Test(cuda_backend, computes_convolutions_as_ref_does)
{
        build(convolutions());
        expect_ref();
}

Test(cuda_backend, computes_epilogues_itself_where_cudnn_has_none)
{
        fake_libraries.lacks_epilogues = true;
        build(convolutions());
        expect_ref();
}

Test(cuda_backend, that_loses_its_device_says_so_for_ever)
{
        struct sl_device device = {.cuda = &gpu};
        struct sl_instance_ground ground = {.device = &device};
        struct sl_instance *instance;
        struct sl_plan *plan;

        build(perceptron());
        plan = open_plan("cuda");
        cr_assert_eq(sl_instance_new_on(plan, BATCH, &ground, &instance, NULL), 0);
        fake_cuda_lose(CUDA_ERROR_ILLEGAL_ADDRESS);
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), -EIO);
        fake_cuda_lose(CUDA_SUCCESS);
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), -EIO);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

static void expect_said(uint32_t output, bool *refuses, const char *words)
{
        struct sl_error said = {""};
        struct sl_device device = {.cuda = &gpu, .said = &said};
        struct sl_instance_ground ground = {.device = &device};
        struct sl_instance *instance;
        struct sl_plan *plan;

        build(output);
        plan = open_plan("cuda");
        cr_assert_eq(sl_instance_new_on(plan, BATCH, &ground, &instance, NULL), 0);
        *refuses = true;
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), -EINVAL);
        cr_expect_str_eq(said.text, words);
        *refuses = false;
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(cuda_backend, tells_what_cublaslt_says_that_launches_nothing)
{
        expect_said(perceptron(), &fake_libraries.multiplies_nothing, "cuBLASLt says 14");
}

Test(cuda_backend, tells_what_cudnn_says_that_launches_nothing)
{
        expect_said(convolutions(), &fake_libraries.convolves_nothing, "cuDNN says 5000, fake words");
}

Test(cuda_backend, without_memory_makes_no_instance_and_leaves_nothing)
{
        struct sl_device device = {.cuda = &gpu};
        struct sl_instance_ground ground = {.device = &device};
        struct sl_instance *instance;
        struct sl_error error;
        struct sl_plan *plan;
        int r = -ENOMEM;

        build(perceptron());
        plan = open_plan("cuda");
        for (uint32_t nth = 1; r == -ENOMEM && nth < 16; nth++) {
                uint32_t held = fake_cuda_held();

                error = (struct sl_error){""};
                fake_cuda_fail(FAKE_CUDA_mem_alloc, nth, CUDA_ERROR_OUT_OF_MEMORY);
                r = sl_instance_new_on(plan, BATCH, &ground, &instance, &error);
                cr_assert(r == 0 || r == -ENOMEM, "%d: %s", r, error.text);
                cr_expect(r == 0 || strstr(error.text, "has no room for"), "%s", error.text);
                cr_expect(r == 0 || fake_cuda_held() == held);
        }
        cr_assert_eq(r, 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

static int read_damaged(const void *data, uint64_t bytes)
{
        struct sl_cuda_record back;
        struct sl_error error;
        void *copy = malloc(bytes + 1); /* at the end of its memory, so that a sanitizer sees who reads behind it */
        int r;

        memcpy(copy, data, bytes);
        r = sl_cuda_record_read(&(struct sl_blob){copy, bytes}, &back, &error);
        if (r == 0) {
                cr_expect(back.n && back.n <= SL_CUDA_CANDIDATES_MAX);
                for (uint32_t i = 0; i < back.n; i++) {
                        const struct sl_cuda_candidate *c = &back.candidates[i];

                        cr_expect(c->way && c->way < SL_CUDA_WAY_COUNT);
                        cr_expect(!c->text || (c->text > (char *)copy && c->text + c->text_bytes <= (char *)copy + bytes &&
                                                      strlen(c->text) + 1 == c->text_bytes));
                }
        }
        free(copy);
        return r;
}

/* Each bit of a record in turn, and each length of it. */
static void damage_record(enum sl_cuda_way whole, enum sl_cuda_way last)
{
        const struct sl_cuda_record record = {.n = 3,
                .candidates = {{.way = whole, .engine = 7, .workspace_bytes = 4096, .text = "plan", .text_bytes = 5},
                        {.way = whole, .engine = 8, .text = "another", .text_bytes = 8},
                        {.way = last, .engine = -1, .notes = SL_CUDA_TENSOR_CORES, .text = "bare", .text_bytes = 5}}};
        struct sl_cuda_record back;
        struct sl_error error;
        uint64_t bytes;
        uint8_t *data;

        cr_assert_eq(sl_cuda_record_write(&record, (void **)&data, &bytes), 0);
        cr_assert_eq(sl_cuda_record_read(&(struct sl_blob){data, bytes}, &back, &error), 0);
        cr_assert_eq(back.n, 3);
        for (uint32_t i = 0; i < 3; i++) {
                cr_expect_eq(back.candidates[i].way, record.candidates[i].way);
                cr_expect_eq(back.candidates[i].engine, record.candidates[i].engine);
                cr_expect_eq(back.candidates[i].notes, record.candidates[i].notes);
                cr_expect_str_eq(back.candidates[i].text, record.candidates[i].text);
        }
        for (uint64_t cut = 0; cut < bytes; cut++)
                cr_expect_eq(read_damaged(data, cut), -EBADMSG);
        for (uint64_t bit = 0; bit < bytes * 8; bit++) {
                data[bit / 8] ^= (uint8_t)(1u << bit % 8);
                cr_expect(read_damaged(data, bytes) == -EBADMSG || bit >= 128, "bit %d", (int)bit);
                data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(data);
}

Test(cuda_record, that_is_damaged_is_refused_or_read_and_never_followed)
{
        damage_record(SL_CUDA_WAY_CONVOLUTION, SL_CUDA_WAY_BARE);
}

Test(cuda_record, of_bytes_that_is_damaged_is_no_other)
{
        damage_record(SL_CUDA_WAY_BYTES_CONVOLUTION, SL_CUDA_WAY_BYTES_CONVOLUTION);
}

/* What cuDNN has beside what it has not. */
Test(cuda_record, of_int8_that_is_damaged_is_refused_or_read)
{
        const struct sl_cuda_record record = {.n = 2,
                .candidates = {{.way = SL_CUDA_WAY_INT8_ROWS},
                        {.way = SL_CUDA_WAY_INT8_CONVOLUTION, .engine = 28, .text = "plan", .text_bytes = 5}}};
        struct sl_cuda_record back;
        uint64_t bytes;
        uint8_t *data;

        cr_assert_eq(sl_cuda_record_write(&record, (void **)&data, &bytes), 0);
        cr_assert_eq(sl_cuda_record_read(&(struct sl_blob){data, bytes}, &back, NULL), 0);
        cr_expect_null(back.candidates[0].text);
        cr_expect_str_eq(back.candidates[1].text, "plan");
        for (uint64_t bit = 0; bit < bytes * 8; bit++) {
                data[bit / 8] ^= (uint8_t)(1u << bit % 8);
                cr_expect(read_damaged(data, bytes) == -EBADMSG || bit >= 128, "bit %d", (int)bit);
                data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(data);
}

/* Whatever a record says of a node. */
Test(cuda_record, of_fused_attention_is_of_attention_alone)
{
        const struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {2, {4, 4}}};
        const struct sl_node_desc node = {.op = SL_OP_RELU, .n_inputs = 1, .n_outputs = 1, .inputs = {tensor}, .outputs = {tensor}};
        struct sl_cuda_recipe recipe;

        cr_assert_eq(sl_cuda_recipe_make(&node, SL_CUDA_WAY_OWN, 0, false, &recipe), 0);
        sl_cuda_recipe_deinit(&recipe);
        cr_expect_eq(sl_cuda_recipe_make(&node, SL_CUDA_WAY_FUSED_ATTENTION, 0, false, &recipe), -ENOTSUP);
}

/* Several products would be computed as one. */
Test(cuda_record, of_several_has_convolutions_and_attention_alone)
{
        const struct sl_cuda_record record = {.n = 2, .candidates = {{.way = SL_CUDA_WAY_PRODUCT}, {.way = SL_CUDA_WAY_PRODUCT}}};
        struct sl_cuda_record back;
        uint64_t bytes;
        void *data;

        cr_assert_eq(sl_cuda_record_write(&record, &data, &bytes), 0);
        cr_expect_eq(sl_cuda_record_read(&(struct sl_blob){data, bytes}, &back, NULL), -EBADMSG);
        free(data);
}
