/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.MBConv on `cpu`: against `ref`, against the convolutions that it is made of, and what it says to weights that a
 * plan file should not have.
 */
#include "case.h"

#include "base/error.h"
#include "cpu/base/isa.h"
#include "cpu/base/threads.h"
#include "shape/mbconv.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Image, depthwise weights and bias, weights and bias of the one that expands, and of the one that projects. */
static const char *const blocks[] = {
        "MBConv 1x16x12x12 48x1x3x3 48 48x16x1x1 48 24x48x1x1 24 group=48 pads=1,1,1,1 activations=2,2 "
        "activation_beta=1,0.5",
        "MBConv 2x20x9x10 40x1x3x3 40 40x20x1x1 40 20x40x1x1 20 group=40 pads=1,1,1,1 activations=1,1 +residual",
        "MBConv 2x5x13x11 33x1x3x3 _ 33x5x1x1 _ 7x33x1x1 _ group=33 strides=2,2 pads=0,0,1,1 activations=7,0 +relu",
        "MBConv 1x8x17x60 70x1x5x5 70 70x8x1x1 70 40x70x1x1 40 group=70 pads=2,2,2,2 activations=8,8 activation_alpha=1,1.5",
        "MBConv 1x8x16x15 64x1x5x5 64 64x8x1x1 64 40x64x1x1 40 group=64 strides=2,2 pads=2,2,2,2 activations=3,5 "
        "activation_alpha=0,0.25 +residual +hardswish",
        "MBConv 3x3x7x4 16x1x3x3 16 16x3x1x1 16 3x16x1x1 3 group=16 pads=1,1,1,1 +residual +clip",
        "MBConv 1x4x6x80 12x1x3x3 12 12x4x1x1 12 5x12x1x1 5 group=12",
        "MBConv 1x4x3x5 12x1x5x5 12 12x4x1x1 12 5x12x1x1 5 group=12 pads=4,3,2,4 activations=1,1",
        "MBConv 2x6x31x57 50x1x3x3 50 50x6x1x1 50 group=50 pads=1,1,1,1 activations=1,0 +swish",
        "MBConv 2x6x31x57 50x1x5x5 50 50x6x1x1 50 group=50 strides=2,2 pads=1,2,2,1 activations=2,0 +relu",
        "MBConv 1x24x9x15 72x1x5x5 72 72x24x1x1 72 16x72x1x1 16 group=72 pads=2,2,2,2 activations=2,1 activation_beta=1,0",
        "MBConv 1x6x9x9 32x1x3x3 32 32x6x1x1 32 _ _ group=32 pads=1,1,1,1 +residual",
};

Test(cpu_mbconv, blocks_give_what_the_reference_gives)
{
        sl_cpu_use_one_thread();
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
                char line[256];

                snprintf(line, sizeof(line), "%s nhwc packed", blocks[i]);
                case_check(line);
        }
}

/* One launch of a node with constant weights; the caller frees what it makes. */
static float *run_node(const struct sl_node_desc *node, const void *const *plain)
{
        const void *inputs[SL_NODE_INPUTS_MAX], *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_packed packed[SL_NODE_INPUTS_MAX] = {0};
        void *data[SL_NODE_INPUTS_MAX] = {NULL}, *out = aligned_alloc(64, (sl_tensor_bytes(&node->outputs[0]) + 63) / 64 * 64);
        struct sl_kernel *kernel = NULL;
        struct sl_error error = {{0}};
        void *scratch;

        memcpy(inputs, plain, node->n_inputs * sizeof(inputs[0]));
        for (uint32_t i = 1; i < node->n_inputs; i += 2) {
                if (!plain[i] || (node->epilogue.has_residual && i == node->n_inputs - 1))
                        continue;
                cr_assert_eq(sl_backend_cpu.planner->pack(NULL, node, i, &packed[i]), 0);
                data[i] = aligned_alloc(64, (packed[i].data_bytes + 63) / 64 * 64);
                cr_assert_eq(sl_backend_cpu.planner->repack(NULL, node, i, &packed[i], plain[i], data[i]), 0);
                inputs[i] = constants[i] = data[i];
        }
        cr_assert_eq(sl_backend_cpu.runner->compile(NULL,
                             &(struct sl_kernel_source){.node = node, .packed = packed, .constants = constants}, &kernel, &error),
                0, "%s", error.text);
        scratch = aligned_alloc(64, (sl_backend_cpu.runner->scratch_bytes(kernel) + 127) / 64 * 64);
        cr_assert_eq(
                sl_backend_cpu.runner->launch(kernel, &(struct sl_binding){.inputs = inputs, .outputs = &out, .scratch = scratch}),
                0);
        sl_backend_cpu.runner->kernel_free(kernel);
        free(scratch);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                free(data[i]);
        return out;
}

static void expect_bits_of_the_parts(const char *line)
{
        struct test_case test;
        struct test_kernel k;
        const void *image;
        float *made = NULL, *joined;

        case_parse(line, &test);
        cr_assert(test_kernel_init(&k, &sl_backend_cpu, &test));
        joined = run_node(&k.node, (const void *const *)k.tensors.inputs);
        image = k.tensors.inputs[SL_MBCONV_IMAGE];
        for (int part = 0; part < SL_MBCONV_PARTS; part++) {
                uint32_t weights = sl_mbconv_weights(part);
                struct sl_node_desc conv;
                float *out;

                if (!sl_mbconv_has(&k.node, part))
                        continue;
                cr_assert_eq(sl_mbconv_conv(&k.node, part, &conv, NULL), 0);
                sl_attrs_set_int(&conv.attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_BLOCKED);
                out = run_node(&conv, (const void *const[]){image, k.tensors.inputs[weights], k.tensors.inputs[weights + 1],
                                              k.tensors.inputs[k.node.n_inputs - 1]});
                free(made);
                image = made = out;
        }
        cr_expect_arr_eq(joined, made, sl_tensor_bytes(&k.node.outputs[0]), "%s", line);
        free(made);
        free(joined);
        test_kernel_deinit(&k);
}

Test(cpu_mbconv, a_block_has_the_bits_of_the_convolutions_that_it_is_made_of)
{
        sl_cpu_use_one_thread();
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
                char line[256];

                snprintf(line, sizeof(line), "%s nhwc packed", blocks[i]);
                expect_bits_of_the_parts(line);
        }
}

Test(cpu_mbconv, weights_of_any_part_that_do_not_lie_packed_are_refused)
{
        struct test_case test;
        struct test_kernel k;
        char line[256];

        sl_cpu_use_one_thread();
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        snprintf(line, sizeof(line), "%s nhwc packed", blocks[0]);
        case_parse(line, &test);
        cr_assert(test_kernel_init(&k, &sl_backend_cpu, &test));
        for (uint32_t i = 1; i < 7; i += 2) {
                const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
                struct sl_packed whole = k.packed[i];
                struct sl_kernel *kernel = NULL;
                struct sl_error error;

                k.packed[i] = (struct sl_packed){0};
                cr_expect_eq(sl_backend_cpu.runner->compile(NULL,
                                     &(struct sl_kernel_source){.node = &k.node, .packed = k.packed, .constants = constants},
                                     &kernel, &error),
                        -ENOTSUP, "input %u", i);
                k.packed[i] = whole;
                k.packed[i].form[40] ^= 1;
                cr_expect_eq(sl_backend_cpu.runner->compile(NULL,
                                     &(struct sl_kernel_source){.node = &k.node, .packed = k.packed, .constants = constants},
                                     &kernel, &error),
                        -ENOTSUP, "input %u", i);
                k.packed[i] = whole;
        }
        test_kernel_deinit(&k);
}
