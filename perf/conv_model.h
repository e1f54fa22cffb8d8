/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network of one's own size, written where a model repository expects it: so many 3x3 convolutions over so many channels of a
 * square image, each with a ReLU. All share one weight, so that the file stays small. Input "image" and output "features" are
 * float32 [N,channels,side,side].
 */
#pragma once

#include <stdint.h>

struct sl_conv_model {
        uint32_t channels, side, layers;
};

/* It keeps a core as busy as a ResNet does: 3.7 GFLOP a sample, as ResNet-18 has at 224x224; the file takes 2.4 MB. */
#define SL_CONV_MODEL_HEAVY ((struct sl_conv_model){.channels = 256, .side = 14, .layers = 16})

/* Some tens of microseconds a sample: 2.4 MFLOP. */
#define SL_CONV_MODEL_SMALL ((struct sl_conv_model){.channels = 16, .side = 16, .layers = 2})

/* Writes @repository/NAME/1/model.onnx. Return: 0, -errno. */
int sl_conv_model_write(const struct sl_conv_model *model, const char *repository, const char *name);
