/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights in oneDNN's form: one copy for all batch sizes, and no belief in a form that is not one of these weights.
 */
#include "case.h"

#include "base/error.h"
#include "cpu/base/isa.h"
#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void parse_batch(const char *format, int batch, struct sl_node_desc *ret_node)
{
        char line[256];
        struct test_case test;

        snprintf(line, sizeof(line), format, batch);
        case_parse(line, &test);
        *ret_node = case_cpu_node(&test);
}

static int compile_with(const struct sl_node_desc *node, const struct sl_packed *weights, struct sl_error *error)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_packed packed[SL_NODE_INPUTS_MAX] = {[1] = *weights};
        struct sl_kernel *kernel = NULL;
        int r = sl_backend_cpu.runner->compile(
                NULL, &(struct sl_kernel_source){.node = node, .packed = packed, .constants = constants}, &kernel, error);

        sl_backend_cpu.runner->kernel_free(kernel);
        return r;
}

static const char *const ladders[] = {
        "Conv %dx3x224x224 64x3x7x7 64 pads=3,3,3,3 strides=2,2 tonhwc +relu",
        "Conv %dx64x56x56 64x64x3x3 64 pads=1,1,1,1 nhwc +relu",
        "Conv %dx256x56x56 128x256x1x1 128 strides=2,2 nhwc +residual +relu",
        "Conv %dx2048x7x7 512x2048x1x1 512 nhwc +relu",
        "Conv %dx64x28x28 64x64x4x4 64 strides=4,4 nhwc",
        "Conv %dx32x112x112 32x1x3x3 32 group=32 pads=1,1,1,1 nhwc +clip",
        "Conv %dx128x28x28 128x4x3x3 128 group=32 pads=1,1,1,1 nhwc +relu",
        "Conv %dx1x28x28 6x1x5x5 6 pads=2,2,2,2 nhwc +relu",
        "Gemm %dx2048 1000x2048 1000 transB=1",
        "Gemm %dx84 10x84 10 transB=1",
        "MatMul %dx128x768 768x3072 3072 +gelu",
};

Test(cpu_weights, packed_for_the_largest_batch_serve_every_smaller_one)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(ladders) / sizeof(ladders[0]); i++) {
                struct sl_node_desc node;
                struct sl_packed weights;

                parse_batch(ladders[i], 32, &node);
                cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &node, 1, &weights), 0);
                for (int batch = 1; batch <= 32; batch *= 2) {
                        struct sl_error error = {{0}};

                        parse_batch(ladders[i], batch, &node);
                        cr_expect_eq(compile_with(&node, &weights, &error), 0, "%s, batch %d: %s", ladders[i], batch, error.text);
                }
        }
}

Test(cpu_weights, a_form_of_other_weights_is_refused)
{
        struct sl_node_desc node, other;
        struct sl_packed weights, damaged;
        struct sl_error error = {{0}};

        sl_cpu_use_one_thread();
        parse_batch("Conv %dx64x56x56 64x64x3x3 64 pads=1,1,1,1 nhwc", 1, &node);
        parse_batch("Conv %dx64x56x56 32x64x3x3 32 pads=1,1,1,1 nhwc", 1, &other);
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &node, 1, &weights), 0);
        cr_assert_gt(weights.data_bytes, 0);
        cr_expect_eq(compile_with(&node, &weights, &error), 0, "%s", error.text);
        cr_expect_eq(compile_with(&other, &weights, &error), -ENOTSUP);
        cr_expect(strstr(error.text, "Conv"), "the text names the operator: %s", error.text);

        damaged = weights;
        damaged.data_bytes -= 64;
        cr_expect_eq(compile_with(&node, &damaged, &error), -ENOTSUP);
        damaged = weights;
        damaged.form_bytes--;
        cr_expect_eq(compile_with(&node, &damaged, &error), -ENOTSUP);
        damaged = weights;
        memset(damaged.form, 0xff, damaged.form_bytes);
        cr_expect_eq(compile_with(&node, &damaged, &error), -ENOTSUP);
}

Test(cpu_weights, halves_are_refused_by_a_node_that_does_not_ask_for_them)
{
        struct sl_node_desc plain, f16, bf16;
        struct sl_packed halves, whole, damaged;
        struct sl_error error = {{0}};

        sl_cpu_use_one_thread();
        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        parse_batch("MatMul %dx64 64x96", 1, &plain);
        parse_batch("MatMul %dx64 64x96 weights:f16", 1, &f16);
        parse_batch("MatMul %dx64 64x96 weights:bf16", 1, &bf16);
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &f16, 1, &halves), 0);
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &plain, 1, &whole), 0);
        cr_expect_eq(2 * halves.data_bytes, whole.data_bytes);
        cr_expect_eq(compile_with(&f16, &halves, &error), 0, "%s", error.text);
        cr_expect_eq(compile_with(&plain, &halves, &error), -ENOTSUP);
        cr_expect_eq(compile_with(&bf16, &halves, &error), -ENOTSUP);
        cr_expect_eq(compile_with(&f16, &whole, &error), -ENOTSUP);
        damaged = halves;
        damaged.data_bytes /= 2;
        cr_expect_eq(compile_with(&f16, &damaged, &error), -ENOTSUP);
}

#define ROOM_BYTES (1u << 20)

/* Packed from the address @shift bytes behind an aligned one. Return: bytes; 0 when that algorithm keeps them plain. */
static uint64_t repack_shifted(const struct sl_node_desc *node, uint32_t shift, uint8_t *ret_data)
{
        static _Alignas(64) uint8_t plain[ROOM_BYTES];
        struct sl_packed packed;

        cr_assert_lt(sl_tensor_bytes(&node->inputs[1]) + shift, sizeof(plain));
        for (uint32_t i = 0; i < sl_tensor_bytes(&node->inputs[1]) / sizeof(float); i++)
                memcpy(plain + shift + i * sizeof(float), &(float){(float)(i % 251) / 251.0f - 0.5f}, sizeof(float));
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, node, 1, &packed), 0);
        cr_assert_leq(packed.data_bytes, ROOM_BYTES);
        memset(ret_data, 0, ROOM_BYTES);
        if (packed.data_bytes)
                cr_assert_eq(sl_backend_cpu.planner->repack(NULL, node, 1, &packed, plain + shift, ret_data), 0);
        return packed.data_bytes;
}

static void expect_equal_from_anywhere(struct sl_node_desc *node, uint32_t algorithm, const char *line)
{
        static _Alignas(64) uint8_t aligned[ROOM_BYTES], shifted[ROOM_BYTES];
        uint64_t bytes;

        cr_assert_eq(sl_attrs_set_int(&node->attrs, SL_ATTR_ALGORITHM, algorithm), 0);
        bytes = repack_shifted(node, 0, aligned);
        for (uint32_t shift = 1; shift < 8; shift += 2) {
                cr_expect_eq(repack_shifted(node, shift, shifted), bytes);
                cr_expect(!memcmp(aligned, shifted, ROOM_BYTES), "%s, algorithm %u, %u bytes on", line, algorithm, shift);
        }
}

static const char *const shapes[] = {
        "Conv %dx16x14x14 40x16x3x3 40 pads=1,1,1,1 nhwc",
        "Conv %dx16x14x14 32x16x1x1 32 nhwc",
        "Conv %dx16x14x14 40x16x5x5 40 pads=2,2,2,2 nhwc",
        "Conv %dx32x14x14 32x8x3x3 32 group=4 pads=1,1,1,1 nhwc",
        "MatMul %dx64 64x96",
};

Test(cpu_weights, are_packed_alike_from_any_address)
{
        const struct sl_target target = {0};

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
                uint32_t algorithms[SL_ALGORITHM_COUNT], n;
                double seconds[SL_ALGORITHM_COUNT];
                struct sl_node_desc node;

                parse_batch(shapes[i], 1, &node);
                n = sl_backend_cpu.planner->algorithms(&target, &node, algorithms, seconds);
                cr_expect_gt(n, 0, "%s", shapes[i]);
                for (uint32_t k = 0; k < n; k++)
                        expect_equal_from_anywhere(&node, algorithms[k], shapes[i]);
        }
}

static const char *const declined[] = {
        "Conv 1x3x8x8:float64 4x3x3x3:float64",
        "MatMul 3x4:float64 4x2:float64",
        "Pad 3x4:float64 pads=1,1,1,1 value=1",
        "ReduceL2 2x3:int32 axes=1",
        "AveragePool 2x8x12x12 kernel_shape=3,3 strides=2,2 ceil_mode=1 count_include_pad=1",
        "MatMul 2x4x16 16x8 nhwc",
        "ArgMax 2x3x4x5 axis=1 nhwc",
};

Test(cpu_weights, what_no_kernel_fits_is_declined_and_does_not_compile)
{
        struct sl_packed none = {0};

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(declined) / sizeof(declined[0]); i++) {
                struct sl_error error = {{0}};
                struct test_case test;
                struct sl_node_desc node;

                case_parse(declined[i], &test);
                node = case_cpu_node(&test);
                cr_expect_not(sl_backend_cpu.planner->supports(NULL, &node), "%s", declined[i]);
                cr_expect_eq(compile_with(&node, &none, &error), -ENOTSUP, "%s", declined[i]);
                cr_expect(strstr(error.text, sl_op_name(node.op)), "%s: %s", declined[i], error.text);
        }
}
