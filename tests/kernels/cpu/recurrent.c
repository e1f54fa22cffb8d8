/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers against the reference: directions, layouts, states, peepholes, lengths. */
#include "case.h"
#include "cpu/base/isa.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static const char *const layers[] = {
        "LSTM 5x3x7 1x80x7 1x80x20 outputs:3",
        "LSTM 5x1x16 2x64x16 2x64x16 2x128 direction=2 outputs:3",
        "LSTM 4x3x5 1x20x5 1x20x5 1x40 _ 1x3x5 1x3x5 1x15 direction=1 outputs:3",
        "LSTM 4x2x24 2x256x24 2x256x64 2x512 direction=2 outputs:3",
        "LSTM 4x2x24 2x256x24 2x256x64 2x512 _ 2x2x64 2x2x64 direction=2 outputs:3 packed",
        "LSTM 5x1x8 1x384x8 1x384x96 1x768 outputs:1 packed",
        "LSTM 3x4x5 2x24x5 2x24x6 2x48 _ 3x2x6 3x2x6 2x18 direction=2 layout=1 outputs:3",
        "LSTM 6x2x5 1x24x5 1x24x6 1x48 clip=0.2 outputs:2",
        "LSTM 6x2x5 1x24x5 1x24x6 activations=2,0,1",
        "GRU 5x3x7 1x60x7 1x60x20 1x120 outputs:2",
        "GRU 5x3x7 1x60x7 1x60x20 1x120 linear_before_reset=1 direction=1 outputs:2",
        "GRU 3x5x7 2x33x7 2x33x11 2x66 _ 3x2x11 linear_before_reset=1 direction=2 layout=1 outputs:2",
        "GRU 5x1x7 1x33x7 1x33x11 _ _ 1x1x11 outputs:2",
        "RNN 5x3x7 2x20x7 2x20x20 2x40 direction=2 outputs:2",
        "RNN 3x5x7 1x20x7 1x20x20 layout=1 outputs:2",
        "GRU 5x3x7 1x60x7 1x60x20 1x120 outputs:2 packed",
        "GRU 5x2x9 1x288x9 1x288x96 1x576 _ 1x2x96 outputs:2 packed",
        "GRU 5x2x9 2x288x9 2x288x96 2x576 linear_before_reset=1 direction=2 outputs:2 packed",
        "GRU 3x4x7 2x192x7 2x192x64 2x384 _ 3x2x64 direction=2 layout=1 outputs:2 packed",
        "RNN 5x3x7 2x64x7 2x64x64 2x128 direction=2 outputs:2 packed",
        "LSTM 4x3x5 1x256x5 1x256x64 1x512 _ 1x3x64 1x3x64 1x192 direction=1 outputs:3 packed",
};

Test(cpu_recurrent, layers_compute_what_the_reference_computes)
{
        if (!sl_cpu_has_avx2())
                cr_skip_test("without AVX2 recurrent layers are for ref");
        case_check_all(layers, sizeof(layers) / sizeof(layers[0]));
}

static const char *const halves[] = {
        "LSTM 5x1x64 1x256x64 1x256x64 1x512 hidden_size=64 outputs:3 weights:f16 packed",
        "LSTM 4x2x24 2x256x24 2x256x64 2x512 _ 2x2x64 2x2x64 direction=2 outputs:3 weights:bf16 packed",
        "LSTM 3x1x40 1x80x40 1x80x20 outputs:1 weights:f16 packed",
        "LSTM 4x3x40 1x256x40 1x256x64 1x512 _ 1x3x64 1x3x64 1x192 outputs:3 weights:f16 packed",
        "GRU 5x2x40 1x192x40 1x192x64 1x384 outputs:2 weights:f16 packed",
        "GRU 4x1x40 2x192x40 2x192x64 2x384 linear_before_reset=1 direction=2 outputs:2 weights:bf16 packed",
        "RNN 5x3x40 1x64x40 1x64x64 1x128 outputs:2 weights:f16 packed",
};

Test(cpu_recurrent, weights_in_halves_give_what_the_reference_gives_of_the_same_numbers)
{
        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        case_check_all(halves, sizeof(halves) / sizeof(halves[0]));
}

static void run_with_lengths(const char *line, const struct sl_backend *backend, const int32_t lengths[3], struct test_kernel *k)
{
        struct test_case test;

        case_parse(line, &test);
        cr_assert(test_kernel_init(k, backend, &test));
        memcpy(k->tensors.inputs[4], lengths, 3 * sizeof(*lengths));
}

static void compare_lengths(const char *line)
{
        static const int32_t lengths[3] = {5, 0, 2};
        struct test_kernel ref, cpu;

        run_with_lengths(line, &sl_backend_ref, lengths, &ref);
        run_with_lengths(line, &sl_backend_cpu, lengths, &cpu);
        cr_assert_eq(test_kernel_launch(&ref), 0);
        cr_assert_eq(test_kernel_launch(&cpu), 0);
        for (uint32_t o = 0; o < ref.node.n_outputs; o++) {
                const float *want = ref.tensors.outputs[o], *got = cpu.tensors.outputs[o];

                for (uint64_t i = 0; i < sl_shape_elements(&ref.node.outputs[o].shape); i++)
                        cr_assert_float_eq((double)got[i], (double)want[i], 1e-5, "%s: output %u, element %d", line, o, (int)i);
        }
        test_kernel_deinit(&ref);
        test_kernel_deinit(&cpu);
}

Test(cpu_recurrent, each_sample_ends_and_turns_at_its_own_length)
{
        if (!sl_cpu_has_avx2())
                cr_skip_test("without AVX2 recurrent layers are for ref");
        compare_lengths("LSTM 5x3x7 2x40x7 2x40x10 2x80 3:int32 direction=2 outputs:3");
        compare_lengths("GRU 5x3x7 2x30x7 2x30x10 2x60 3:int32 direction=2 outputs:2");
        compare_lengths("RNN 3x5x7 2x10x7 2x10x10 2x20 3:int32 direction=2 layout=1 outputs:2");
}

Test(cpu_recurrent, a_length_beyond_the_steps_is_refused)
{
        static const int32_t long_one[3] = {5, 6, 2}, negative[3] = {5, -1, 2};
        struct test_kernel cpu;

        if (!sl_cpu_has_avx2())
                cr_skip_test("without AVX2 recurrent layers are for ref");
        run_with_lengths("LSTM 5x3x7 1x40x7 1x40x10 _ 3:int32", &sl_backend_cpu, long_one, &cpu);
        cr_assert_eq(test_kernel_launch(&cpu), -ERANGE);
        test_kernel_deinit(&cpu);
        run_with_lengths("LSTM 5x3x7 1x40x7 1x40x10 _ 3:int32", &sl_backend_cpu, negative, &cpu);
        cr_assert_eq(test_kernel_launch(&cpu), -ERANGE);
        test_kernel_deinit(&cpu);
}
