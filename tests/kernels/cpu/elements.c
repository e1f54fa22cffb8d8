/*
 * Functions of elements, normalisations and reductions against `ref`.
 */
#include "case.h"

#include "cpu/threads.h"

#include <criterion/criterion.h>

#define CHECK_ALL(lines)                                                                                                           \
        do {                                                                                                                       \
                sl_cpu_use_one_thread();                                                                                           \
                for (size_t i = 0; i < sizeof(lines) / sizeof((lines)[0]); i++)                                                    \
                        case_check((lines)[i]);                                                                                    \
        } while (0)

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
        "Not 3x57:bool",
        "Clip 3x57 min=-0.5 max=0.25",
        "Clip 3x57 min=0",
        "Clip 3x57 max=0.5",
        "Cast 3x57 to=1",
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
};

Test(cpu_elements, a_function_gives_what_the_reference_gives)
{
        CHECK_ALL(functions);
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
        "Where 3x57:bool 3x57 3x57",
        "Where 57:bool 3x57 scalar",
        "Where 3x1:bool 57:int64 3x57:int64",
        "Where 2x3x4x5:bool 2x3x4x5 1x3x1x1 nhwc",
};

Test(cpu_elements, a_pair_of_operands_broadcasts_as_the_reference_does)
{
        CHECK_ALL(pairs);
}

static const char *const statistics[] = {
        "BatchNormalization 2x7x5x3 7 7 7 7 positive",
        "BatchNormalization 2x7x5x3 7 7 7 7 positive nhwc",
        "BatchNormalization 2x7x5x3 7 7 7 7 positive epsilon=0.1",
        "BatchNormalization 4x7 7 7 7 7 positive",
        "LayerNormalization 4x5x96 96 96",
        "LayerNormalization 4x5x96 96",
        "LayerNormalization 4x5x97 97 97 axis=-1 epsilon=1e-12",
        "LayerNormalization 4x5x6 5x6 5x6 axis=1",
        "InstanceNormalization 2x3x9x9 3 3",
        "InstanceNormalization 2x3x17 3 3 epsilon=0.01",
        "LRN 2x16x5x7 axis=5",
        "LRN 2x16x5x7 axis=5 nhwc alpha=0.1 beta=0.5 value=2",
        "LRN 2x6x5x7 axis=3 alpha=0.1",
        "Softmax 4x10",
        "Softmax 2x3x1000",
        "Softmax 4x10 axis=0",
        "Softmax 2x5x4x4 axis=1",
        "Softmax 2x5x4x1 axis=2",
        "LogSoftmax 4x10",
        "LogSoftmax 2x5x4x4 axis=1",
        "ReduceMean 2x3x4x5 axes=2,3",
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
        CHECK_ALL(statistics);
}
