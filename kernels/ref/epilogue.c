/* SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

#include <math.h>

static double sigmoid(double x)
{
        return 1 / (1 + exp(-x));
}

double sl_ref_activate(const struct sl_epilogue *epilogue, double x)
{
        double a = (double)epilogue->act_a, b = (double)epilogue->act_b;

        switch (epilogue->activation) {
        case SL_ACT_RELU:
                return x < 0 ? 0 : x;
        case SL_ACT_CLIP:
                x = x < a ? a : x;
                return x > b ? b : x;
        case SL_ACT_SIGMOID:
                return sigmoid(x);
        case SL_ACT_TANH:
                return tanh(x);
        case SL_ACT_LEAKY_RELU:
                return x < 0 ? a * x : x;
        case SL_ACT_GELU_ERF:
                return 0.5 * x * (1 + erf(x * M_SQRT1_2));
        case SL_ACT_HARD_SWISH:
                return x * fmax(0, fmin(1, x / 6 + 0.5));
        case SL_ACT_SWISH:
                return x * sigmoid(a * x);
        case SL_ACT_ELU:
                return x < 0 ? a * expm1(x) : x;
        default:
                return x;
        }
}
