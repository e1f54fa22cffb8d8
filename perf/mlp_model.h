/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perceptron that takes about a microsecond a sample, written where a model repository expects it: 64 inputs, 128 hidden values
 * with a ReLU, 10 outputs. Input "features" is float32 [N,64], output "scores" float32 [N,10].
 */
#pragma once

#define SL_MLP_MODEL_NAME    "mlp-64-128-10"
#define SL_MLP_MODEL_INPUTS  64u
#define SL_MLP_MODEL_HIDDEN  128u
#define SL_MLP_MODEL_OUTPUTS 10u

/* Writes @repository/mlp-64-128-10/1/model.onnx, with the same weights each time. Return: 0, -errno. */
int sl_mlp_model_write(const char *repository);
