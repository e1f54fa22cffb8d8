/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of elements, normalisations and reductions against `ref`.
 */
#include "case.h"

#include "cpu/base/threads.h"
#include "shape/attention.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Heads that share a tensor, masks of every shape, rows and keys that are no multiple of anything. */
static const char *const attentions[] = {
        "RowAttention 1x5x24 1x5x24 1x5x24 group=3 shape=8,8",
        "RowAttention 2x16x96 2x16x96 2x16x96 group=2 shape=16,16 starts=0,32,64 alpha=0.25",
        "RowAttention 1x17x64 1x33x64 1x33x80 group=4 shape=16,20 alpha=0.25",
        "RowAttention 1x128x192 1x128x192 1x128x192 group=1 shape=64,64 starts=0,64,128 alpha=0.125",
        "RowAttention 1x197x64 1x197x64 1x197x64 1x1x1x197 group=1 shape=64,64 alpha=0.125 wide:4",
        "RowAttention 2x9x30 2x19x30 2x19x34 2x1x1x19 group=2 shape=15,17 alpha=0.5",
        "RowAttention 2x9x30 2x19x30 2x19x34 2x1x9x19 group=2 shape=15,17",
        "RowAttention 2x9x30 2x19x30 2x19x34 1x2x9x19 group=2 shape=15,17",
        "RowAttention 2x9x30 2x19x30 2x19x34 9x1 group=2 shape=15,17",
        "RowAttention 2x9x30 2x19x30 2x19x34 19 group=2 shape=15,17",
        "RowAttention 2x9x30 2x19x30 2x19x34 2x1x1x1 group=2 shape=15,17",
        "RowAttention 1x3x7 1x1x7 1x1x1 group=1 shape=7,1",
        "RowAttention 1x1x40 1x70x40 1x70x40 group=1 shape=40,40",
        "RowAttention 1x31x8 1x4700x8 1x4700x8 group=1 shape=8,8 wide:2",
};

static const char *const recurrences[] = {
        "LSTM 5x1x3 1x16x3 1x16x4 hidden_size=4 outputs:3",
        "LSTM 5x2x3 1x16x3 1x16x4 1x32 hidden_size=4 outputs:3",
        "LSTM 4x3x10 1x68x10 1x68x17 1x136 _ 1x3x17 1x3x17 hidden_size=17 outputs:3",
        "LSTM 4x3x10 1x68x10 1x68x17 1x136 _ 1x3x17 1x3x17 hidden_size=17 outputs:3 packed",
        "LSTM 7x2x20 2x64x20 2x64x16 2x128 _ 2x2x16 2x2x16 hidden_size=16 direction=2 outputs:3 packed",
        "LSTM 7x2x20 2x64x20 2x64x16 2x128 _ 2x2x16 2x2x16 hidden_size=16 direction=2 outputs:3",
        "LSTM 6x1x9 1x40x9 1x40x10 1x80 hidden_size=10 direction=1 outputs:2 packed",
        "LSTM 6x1x9 1x40x9 1x40x10 1x80 hidden_size=10 direction=1 packed wide:3",
        "LSTM 20x17x128 1x1024x128 1x1024x256 1x2048 hidden_size=256 outputs:3 packed wide:0.1",
};

Test(cpu_elements, a_recurrence_gives_what_the_reference_gives)
{
        case_check_all(recurrences, sizeof(recurrences) / sizeof(recurrences[0]));
}

Test(cpu_elements, attention)
{
        case_check_all(attentions, sizeof(attentions) / sizeof(attentions[0]));
}

static void run_masked(const struct sl_backend *backend, const char *line, float from_second_on, struct test_kernel *k)
{
        struct test_case test;
        float *mask;

        case_parse(line, &test);
        cr_assert(test_kernel_init(k, backend, &test));
        mask = k->tensors.inputs[SL_ATTENTION_MASK];
        for (uint64_t i = 0; i < sl_shape_elements(&k->node.inputs[SL_ATTENTION_MASK].shape); i++)
                mask[i] = i % 19 ? from_second_on : -FLT_MAX;
        cr_assert_eq(test_kernel_launch(k), 0);
}

/* Away with the first key by the least float there is, and with the others by @rest. */
static void check_masked(const char *line, float rest)
{
        struct test_kernel cpu, ref;
        const float *got, *want;

        sl_cpu_use_one_thread();
        run_masked(&sl_backend_cpu, line, rest, &cpu);
        run_masked(&sl_backend_ref, line, rest, &ref);
        got = cpu.tensors.outputs[0];
        want = ref.tensors.outputs[0];
        for (uint64_t i = 0; i < sl_shape_elements(&cpu.node.outputs[0].shape); i++)
                cr_assert(fabsf(got[i] - want[i]) < 1e-6f, "%s, %g: %g instead of %g", line, (double)rest, (double)got[i],
                        (double)want[i]);
        test_kernel_deinit(&cpu);
        test_kernel_deinit(&ref);
}

Test(cpu_elements, keys_that_are_all_masked_away_weigh_alike_and_infinities_nothing)
{
        const char *lines[] = {"RowAttention 2x9x30 2x19x30 2x19x34 2x1x1x19 group=2 shape=15,17",
                "RowAttention 2x9x30 2x19x30 2x19x34 2x1x9x19 group=2 shape=15,17"};

        for (int i = 0; i < 2; i++) {
                check_masked(lines[i], -FLT_MAX);
                check_masked(lines[i], -INFINITY);
                check_masked(lines[i], 0.0f);
        }
}

/* The mask is -infinity but for the last key of every other row of it. */
static void run_guarded(const struct sl_backend *backend, const char *line, struct test_kernel *k)
{
        struct test_case test;
        float *mask;

        case_parse(line, &test);
        cr_assert(test_kernel_init(k, backend, &test));
        mask = k->tensors.inputs[SL_ATTENTION_MASK];
        for (uint64_t i = 0; i < sl_shape_elements(&k->node.inputs[SL_ATTENTION_MASK].shape); i++)
                mask[i] = i % 38 == 18 ? 0.0f : -INFINITY;
        cr_assert_eq(test_kernel_launch(k), 0);
}

Test(cpu_elements, weights_of_a_row_without_keys_are_0_where_that_is_said_and_not_numbers_elsewhere)
{
        const char *lines[] = {"RowAttention 2x9x30 2x19x30 2x19x34 2x1x1x19 group=2 shape=15,17%s",
                "RowAttention 2x9x30 2x19x30 2x19x34 2x1x9x19 group=2 shape=15,17%s"};

        sl_cpu_use_one_thread();
        for (int i = 0; i < 4; i++) {
                struct test_kernel cpu, ref;
                uint64_t n_nan = 0, n_zero = 0, n;
                char line[128];

                snprintf(line, sizeof(line), lines[i / 2], i % 2 ? " starling.guard=1" : "");
                run_guarded(&sl_backend_cpu, line, &cpu);
                run_guarded(&sl_backend_ref, line, &ref);
                n = sl_shape_elements(&cpu.node.outputs[0].shape);
                for (uint64_t e = 0; e < n; e++) {
                        float got = ((float *)cpu.tensors.outputs[0])[e], want = ((float *)ref.tensors.outputs[0])[e];

                        n_nan += isnan(want);
                        n_zero += want == 0;
                        cr_assert(isnan(want) ? isnan(got) : fabsf(got - want) < 1e-6f, "%s: %g instead of %g", line, (double)got,
                                (double)want);
                }
                cr_expect_eq(i % 2 ? n_zero : n_nan, n / 2, "%s", line);
                test_kernel_deinit(&cpu);
                test_kernel_deinit(&ref);
        }
}

static const char *const functions[] = {
        "Relu 3x5x7",
        "Relu 2x3x5x7 nhwc",
        "Relu scalar",
        "Relu 0x4",
        "LeakyRelu 3x57",
        "LeakyRelu 3x57 alpha=0.3",
        "Elu 3x57",
        "Elu 3x57 alpha=0.5",
        "Sigmoid 3x57",
        "Sigmoid 2x3x4x5 nhwc",
        "HardSigmoid 3x57",
        "HardSigmoid 3x57 alpha=0.7 beta=0.4",
        "HardSwish 3x57",
        "Tanh 3x57",
        "Softplus 3x57",
        "Gelu 3x57",
        "Gelu 3x57 approximate=1",
        "PRelu 3x57 57",
        "PRelu 2x3x4x5 3x1x1 nhwc",
        "Erf 3x57",
        "Exp 3x57",
        "Log 3x57 positive",
        "Sqrt 3x57 positive",
        "Reciprocal 3x57 positive",
        "Neg 3x57",
        "Abs 3x57",
        "Floor 3x57",
        "Ceil 3x57",
        "Round 3x57",
        "Sign 3x57",
        "Sin 3x57",
        "Cos 3x57",
        "Selu 3x57",
        "Selu 3x57 alpha=0.5 gamma=2",
        "Celu 3x57",
        "Celu 3x57 alpha=0.25",
        "Mish 3x57",
        "Mish 3x57 wide:30",
        "ThresholdedRelu 3x57",
        "ThresholdedRelu 3x57 alpha=0.25",
        "Softsign 3x57",
        "Shrink 3x57",
        "Shrink 3x57 lambd=0.25 bias=0.125",
        "Not 3x57:bool",
        "Clip 3x57 min=-0.5 max=0.25",
        "Clip 3x57 min=0",
        "Clip 3x57 max=0.5",
        "Clip 3x57:int64 min=-3 wide:9",
        "Clip 3x57:int64 max=3 wide:9",
        "Clip 3x57:int64 min=4 max=-4 wide:9",
        "Clip 3x57:int32 min=-3 max=3 wide:9",
        "Clip 3x57:int8 max=3 wide:9",
        "Clip 3x57:uint8 min=3 max=90",
        "Cast 3x57 to=1",
        "Cast 3x57 to=10",
        "Cast 3x57 to=10 wide:90000",
        "Cast 3x57:float16 to=1",
        "Cast 3x57 to=11",
        "Cast 3x57 to=9",
        "Cast 3x57 to=6",
        "Cast 3x57 to=7",
        "Cast 3x57 to=2",
        "Cast 3x57:float64 to=1",
        "Cast 3x57:int64 to=1",
        "Cast 3x57:int64 to=6",
        "Cast 3x57:int64 to=9 below:2",
        "Cast 3x57:int32 to=7",
        "Cast 3x57:int32 to=1",
        "Cast 3x57:uint8 to=1",
        "Cast 3x57:bool to=1",
        "Cast 3x57:bool to=7",
        "Cast 2x3x4x5:uint8 to=1 nhwc",
        "LeakyRelu 3x57 wide:30",
        "Elu 3x57 wide:30",
        "Sigmoid 3x57 wide:30",
        "HardSigmoid 3x57 wide:30",
        "HardSwish 3x57 wide:30",
        "Tanh 3x57 wide:30",
        "Softplus 3x57 wide:30",
        "Gelu 3x57 wide:30",
        "Erf 3x57 wide:30",
        "Exp 3x57 wide:30",
        "Floor 3x57 wide:30",
        "Round 3x57 wide:30",
        "Sin 3x57 wide:30",
        "Gelu 3x57 wide:30 approximate=1",
        "Softplus 3x57 wide:300",
        "Sigmoid 3x57 wide:300",
        "Tanh 3x57 wide:300",
        "Exp 3x57 wide:80",
        "Log 3x57 wide:1e6 positive",
        "Log 3x57",
        "Sqrt 3x57",
        "Cast 3x57 to=3 wide:300",
        "Cast 3x57 to=2 wide:600",
        "Cast 3x57 to=6 wide:1e10",
        "Cast 3x57:float64 to=7 wide:1e20",
};

Test(cpu_elements, a_function_gives_what_the_reference_gives)
{
        case_check_all(functions, sizeof(functions) / sizeof(functions[0]));
}

static const char *const functions_of_any[] = {"Relu", "LeakyRelu", "HardSigmoid", "HardSwish", "Clip", "Neg", "Abs", "Floor",
        "Ceil", "Round", "Sign", "Sqrt", "Reciprocal", "Exp", "Sigmoid", "Softsign", "ThresholdedRelu", "Tanh", "Erf", "Sin", "Cos",
        "Log", "Elu", "Gelu", "BitwiseNot", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Selu",
        "Celu", "Mish", "Shrink"};

/* More than one piece of 16 bits; float64 to its last places. */
Test(cpu_elements, a_function_of_any_type_gives_what_the_reference_gives)
{
        static const char *const forms[] = {"%s 3x577:float64 close:4e-16", "%s 3x577:float64 close:4e-16 wide:700",
                "%s 3x577:float16 close:1e-3", "%s 3x577:bfloat16", "%s 3x57 loose:1e-6", "%s 3x57 loose:1e-6 wide:5",
                "%s 3x57:int64 wide:300", "%s 3x57:int32 wide:300", "%s 3x57:int8 wide:30", "%s 3x57:uint8"};
        uint64_t n_taken = 0;
        char line[128];

        sl_cpu_use_one_thread();
        for (size_t f = 0; f < sizeof(functions_of_any) / sizeof(functions_of_any[0]); f++)
                for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
                        snprintf(line, sizeof(line), forms[k], functions_of_any[f]);
                        if (case_is_taken(line)) {
                                case_check(line);
                                n_taken++;
                        }
                }
        cr_expect_geq(n_taken, 200);
}

static const char *const pairs[] = {
        "Add 3x57 3x57",
        "Add 3x57 57",
        "Add 3x57 3x1",
        "Add 3x57 scalar",
        "Add scalar 3x57",
        "Add 2x3x4x5 1x3x1x1",
        "Add 2x3x4x5 1x3x1x1 nhwc",
        "Add 2x3x4x5 3x1x1 nhwc",
        "Add 2x3x4x5 2x3x4x5 nhwc",
        "Add 2x3x4x5 2x3x1x1 nhwc",
        "Add 2x3x4x5 5",
        "Add 5x1 1x7",
        "Add 4x1x3x1 2x1x5",
        "Add 0x3 3",
        "Sub 3x57 3x57",
        "Sub 57 3x57",
        "Mul 2x16x7x7 2x16x1x1 nhwc",
        "Mul 2x16x7x7 2x16x1x1",
        "Mul 3x57 57",
        "Div 3x57 3x57 positive",
        "Div 3x57 scalar positive",
        "Pow 3x57 3x57 positive",
        "Pow 3x57 scalar positive",
        "Pow 3x57 scalar second:2",
        "Pow 3x57 57 second:2",
        "Pow 3x57 scalar second:3",
        "Min 3x57 57",
        "Min 3x57 57 3x1",
        "Max 3x57 57",
        "Max 1x57 3x57 3x1 scalar",
        "Sum 3x57 3x57 57 3x1",
        "Sum 2x3x4x5 2x3x4x5 2x3x4x5 nhwc",
        "Mean 3x57 57 3x57",
        "Add 3x57:int64 57:int64",
        "Sub 3x57:int64 57:int64",
        "Mul 3x57:int64 57:int64",
        "Add 3x57:int32 57:int32",
        "Sub 3x57:int32 57:int32",
        "Mul 3x57:int32 57:int32",
        "Min 3x57:int64 57:int64",
        "Max 3x57:int32 57:int32",
        "Sum 3x57:int64 57:int64 3x1:int64",
        "Equal 3x57:int64 57:int64 below:2",
        "Equal 3x57:int32 57:int32 below:2",
        "Greater 3x57 57",
        "GreaterOrEqual 3x57:int64 57:int64 below:3",
        "Less 3x57 3x1",
        "LessOrEqual 3x57:int32 scalar:int32 below:3",
        "And 3x57:bool 57:bool",
        "Or 3x57:bool 3x1:bool",
        "Xor 3x57:bool 3x1:bool",
        "Equal 3x57:bool 57:bool",
        "Add 300x4 300x1",
        "Add 300x4 4",
        "Sub 4 300x4",
        "Less 5x300x3 300x1",
        "Max 2x300x4 300x1 4 2x1x4",
        "Max 9x4:bfloat16 9x1:bfloat16 4:bfloat16",
        "Mean 30x4:float64 30x1:float64 4:float64 close:1e-14",
        "Sum 30x4:float16 30x1:float16 close:1e-3",
        "PRelu 30x4:float64 4:float64 close:1e-14",
        "PRelu 30x4:float16 4:float16 close:1e-3",
        "Where 3x57:bool 3x57 3x57",
        "Where 300x4:bool 300x4 300x1",
        "Where 300x1:bool 300x4:int64 4:int64",
        "Where 4:bool 300x4:float16 300x1:float16",
        "Where 57:bool 3x57 scalar",
        "Where 3x1:bool 57:int64 3x57:int64",
        "Where 2x3x4x5:bool 2x3x4x5 1x3x1x1 nhwc",
};

/* Of every operator on two elements, and every type that it has a row for: numbers of both signs, 0 and limits among them. */
Test(cpu_elements, a_pair_of_operands_of_any_type_gives_what_the_reference_gives)
{
        static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Mod", "Mod", "Pow", "BitwiseAnd", "BitwiseOr",
                "BitwiseXor", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
        static const char *const types[] = {"int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "float64",
                "float32", "float16", "bfloat16"};
        static const char *const shapes[][2] = {{"3x57", "3x57"}, {"40x3", "3"}, {"3x1", "3x57"}, {"40x70", "40x1"}, {"9", "1"}};
        uint64_t n_taken = 0;

        sl_cpu_use_one_thread();
        for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
                for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
                        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
                                bool is_float = t >= 8;
                                char line[128];

                                snprintf(line, sizeof(line), "%s %s:%s %s:%s%s%s", ops[o], shapes[s][0], types[t], shapes[s][1],
                                        types[t], o == 7 ? " fmod=1" : "", is_float ? " close:1e-3 wide:4" : " wide:9");
                                if (!case_is_taken(line))
                                        continue;
                                case_check(line);
                                n_taken++;
                        }
        cr_expect_geq(n_taken, 800);
}

/* Numbers of which a quotient in double would round up to the next integer, and those that double does not hold. */
Test(cpu_elements, a_quotient_of_integers_is_exact_whatever_its_operands_are)
{
        static const int64_t of_64[] = {0, 1, -1, 2, -2, 3, 7, INT64_MAX, INT64_MIN, INT64_MIN + 1, (1LL << 50) - 1, 1LL << 50,
                -(1LL << 50), -(1LL << 50) - 1, (1LL << 51) + 1, (1LL << 53) - 1, 999999999999999LL, -999999999999998LL, 33554431,
                33554433};
        static const int32_t of_32[] = {
                0, 1, -1, 2, -2, 3, 7, INT32_MAX, INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, 46341, -46341, 65535, -65537};
        static const char *const forms[] = {"Div %zux%zu:%s 1x%zu:%s", "Mod %zux%zu:%s 1x%zu:%s", "Mod %zux%zu:%s 1x%zu:%s fmod=1"};
        const size_t counts[] = {sizeof(of_64) / sizeof(of_64[0]), sizeof(of_32) / sizeof(of_32[0])};

        sl_cpu_use_one_thread();
        for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++)
                for (size_t narrow = 0; narrow < 2; narrow++) {
                        const char *type = narrow ? "int32" : "int64";
                        size_t n = counts[narrow], bytes = narrow ? sizeof(int32_t) : sizeof(int64_t);
                        const char *values = narrow ? (const char *)of_32 : (const char *)of_64;
                        const struct sl_backend *const backends[] = {&sl_backend_cpu, &sl_backend_ref};
                        struct test_kernel kernels[2];
                        struct test_case test;
                        char line[96];

                        snprintf(line, sizeof(line), forms[f], n, n, type, n, type);
                        case_parse(line, &test);
                        for (size_t k = 0; k < 2; k++) {
                                cr_assert(test_kernel_init(&kernels[k], backends[k], &test), "%s", line);
                                for (size_t i = 0; i < n * n; i++)
                                        memcpy((char *)kernels[k].tensors.inputs[0] + i * bytes, values + i / n * bytes, bytes);
                                memcpy(kernels[k].tensors.inputs[1], values, n * bytes);
                                cr_assert_eq(test_kernel_launch(&kernels[k]), 0);
                        }
                        cr_expect_eq(
                                memcmp(kernels[0].tensors.outputs[0], kernels[1].tensors.outputs[0], n * n * bytes), 0, "%s", line);
                        for (size_t k = 0; k < 2; k++)
                                test_kernel_deinit(&kernels[k]);
                }
}

Test(cpu_elements, a_pair_of_operands_broadcasts_as_the_reference_does)
{
        case_check_all(pairs, sizeof(pairs) / sizeof(pairs[0]));
}

static const char *const statistics[] = {
        "BatchNormalization 2x7x5x3 7 7 7 7 positive",
        "BatchNormalization 2x5x4x3 5 5 5 5 positive +relu",
        "BatchNormalization 2x37x4x3 37 37 37 37 positive nhwc +relu",
        "BatchNormalization 2x37x4x3 37 37 37 37 positive nhwc +clip",
        "BatchNormalization 2x7x5x3 7 7 7 7 positive nhwc",
        "BatchNormalization 2x7x5x3 7 7 7 7 positive epsilon=0.1",
        "BatchNormalization 4x7 7 7 7 7 positive",
        "NormalizedConcat 2x37x4x3 2x16x4x3 2x1x4x3 54 54 54 54 axis=1 positive nhwc +relu",
        "NormalizedConcat 2x3x4x3 2x5x4x3 8 8 8 8 axis=1 positive +clip epsilon=0.1",
        "NormalizedConcat 2x5x7 2x0x7 5 5 5 5 axis=1 positive nhwc",
        "LayerNormalization 4x5x96 4x1x96 4x1x96",
        "LayerNormalization 3x2x5x33 3x1x1x33 3x1x1x33",
        "LayerNormalization 3x5x33 3x1x33",
        "LayerNormalization 4x5x96 96 96",
        "LayerNormalization 4x5x96 96",
        "LayerNormalization 4x5x97 97 97 axis=-1 epsilon=1e-12",
        "LayerNormalization 4x5x6 5x6 5x6 axis=1",
        "RMSNormalization 4x5x97 97 epsilon=1e-6",
        "RMSNormalization 4x5x6 5x6 axis=1",
        "InstanceNormalization 2x3x9x9 3 3",
        "GroupNormalization 2x6x9x9 6 6 num_groups=2",
        "GroupNormalization 2x6x9x9 3 3 num_groups=3",
        "GroupNormalization 3x8x17 8 8 num_groups=8 epsilon=0.01",
        "GroupNormalization 3x64 64 64 num_groups=4",
        "GroupNormalization 1x12x1x5 12 12 num_groups=1",
        "InstanceNormalization 2x3x17 3 3 epsilon=0.01",
        "LRN 2x16x5x7 axis=5",
        "LRN 2x16x5x7 axis=5 nhwc alpha=0.1 beta=0.5 value=2",
        "LRN 2x6x5x7 axis=3 alpha=0.1",
        "Softmax 4x10",
        "Softmax 2x3x1000",
        "Softmax 2x3x1000 wide:100",
        "Softmax 2x5x4x4 axis=1 wide:100",
        "LogSoftmax 4x10 wide:100",
        "LogSoftmax 2x5x4x4 axis=1 wide:100",
        "Softmax 4x10 axis=0",
        "Softmax 2x5x4x4 axis=1",
        "Softmax 2x5x4x1 axis=2",
        "LogSoftmax 4x10",
        "LogSoftmax 2x5x4x4 axis=1",
        "ReduceMean 2x3x4x5 axes=2,3",
        "ReduceMean 2x37x4x5 axes=2,3 fromnhwc",
        "ReduceMean 2x37x4x5 axes=-1,2 keepdims=0 fromnhwc",
        "ReduceMax 2x3x7 axes=2 keepdims=0 fromnhwc",
        "ReduceL2 1x1x2x3x4 axes=2,3,4 fromnhwc",
        "ReduceMean 2x3x4x5 axes=-1 keepdims=0",
        "ReduceMean 2x3x4x5 axes=1",
        "ReduceMean 2x30x4x5 axes=0,1 keepdims=0",
        "ReduceMean 2x3x4x5",
        "ReduceMean 2x1x3x5 axes=0,2",
        "ReduceSum 2x3x64x50 axes=2,3",
        "ReduceSum 2x3x4x5 axes=2 keepdims=0",
        "ReduceMax 2x3x4x5 axes=3",
        "ReduceMax 2x3x4x5 axes=1,2",
        "ReduceMin 2x3x4x50 axes=3",
        "ReduceMin 2x3x4x5 axes=1,2",
        "ReduceL1 2x3x4x50 axes=3",
        "ReduceL1 2x3x4x5 axes=1",
        "ReduceL2 2x3x4x50 axes=3",
        "ReduceL2 2x3x4x5 axes=0",
        "ReduceSumSquare 2x3x4x50 axes=3",
        "ReduceSumSquare 2x3x4x5 axes=2",
};

Test(cpu_elements, a_normalisation_or_reduction_gives_what_the_reference_gives)
{
        case_check_all(statistics, sizeof(statistics) / sizeof(statistics[0]));
}

/* Many values around one: a sum that grows value by value loses four digits and more. */
static const char *const means[] = {
        "ReduceMean 1x8x256x256 axes=2,3 fromnhwc positive loose:3e-7",
        "ReduceMean 1x200x256x256 axes=2,3 fromnhwc positive loose:3e-7",
        "ReduceMean 1x3x256x256 axes=2,3 positive loose:3e-7",
        "ReduceMean 65536x5 axes=0 positive loose:3e-7",
        "ReduceMean 65535x3 axes=0 positive loose:3e-7",
        "ReduceSum 1x65536 axes=1 positive loose:3e-7",
        "ReduceSum 1x70001 axes=1 positive loose:3e-7",
        "ReduceL1 65536x5 axes=0 positive loose:3e-7",
        "ReduceL1 2x65536 axes=1 positive loose:3e-7",
        "ReduceL2 65536x5 axes=0 positive loose:3e-7",
        "ReduceL2 2x65536 axes=1 positive loose:3e-7",
        "ReduceSumSquare 65536x5 axes=0 positive loose:3e-7",
        "ReduceSumSquare 2x65536 axes=1 positive loose:3e-7",
        "GlobalAveragePool 1x8x256x256 nhwc positive loose:3e-7",
        "GlobalAveragePool 2x3x256x256 positive loose:3e-7",
        "GlobalAveragePool 2x3x65536 positive loose:3e-7",
        "GlobalAveragePool 1x8x16x64x64 nhwc positive loose:3e-7",
        "AveragePool 1x8x256x256 kernel_shape=256,256 nhwc positive loose:3e-7",
        "AveragePool 1x3x256x256 kernel_shape=256,256 positive loose:3e-7",
        "AveragePool 1x3x65536 kernel_shape=65536 positive loose:3e-7",
        "AveragePool 1x16x256x256 kernel_shape=128,128 strides=64,64 nhwc positive loose:3e-7",
        "InstanceNormalization 1x2x256x256 2 2 positive loose:1e-6",
        "LayerNormalization 2x65536 65536 65536 positive loose:1e-6",
        "LayerNormalization 2x70001 70001 70001 positive loose:1e-6",
};

Test(cpu_elements, a_mean_of_many_values_keeps_its_digits)
{
        case_check_all(means, sizeof(means) / sizeof(means[0]));
}

static const char *const averages[] = {
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=3,2",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=3,2 nhwc",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=3,2 pads=5,4,6,3",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=3,2 pads=5,4,6,3 nhwc",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=3,2 pads=5,4,6,3 count_include_pad=1",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=3,2 pads=5,4,6,3 count_include_pad=1 nhwc",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=7,6 pads=5,4,6,3 ceil_mode=1 count_include_pad=1 nhwc",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=7,6 pads=5,4,6,3 ceil_mode=1 count_include_pad=1",
        "AveragePool 2x5x40x37 kernel_shape=20,17 strides=7,6 ceil_mode=1 nhwc",
        "AveragePool 2x5x40x37 kernel_shape=18,17 dilations=2,2 pads=3,3,3,3 nhwc",
        "AveragePool 2x5x40x37 kernel_shape=18,17 dilations=2,2 pads=3,3,3,3",
        "AveragePool 2x200x700 kernel_shape=300 strides=100 pads=10,20",
        "AveragePool 2x200x700 kernel_shape=300 strides=100 pads=10,20 nhwc",
};

Test(cpu_elements, an_average_of_large_windows_gives_what_the_reference_gives)
{
        case_check_all(averages, sizeof(averages) / sizeof(averages[0]));
}
