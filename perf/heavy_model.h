/*
 * A network that keeps a core as busy as a ResNet does, written where a model repository expects it: 16 convolutions, 3x3 over 256
 * channels at 14x14, each with a ReLU: 3.7 GFLOP a sample, as ResNet-18 has at 224x224. All share one weight, so that the file
 * takes 2.4 MB. Input "image" and output "features" are float32 [N,256,14,14].
 */
#pragma once

#include <stdint.h>

#define SL_HEAVY_CHANNELS 256u
#define SL_HEAVY_SIDE     14u
#define SL_HEAVY_LAYERS   16u

/* Writes @repository/NAME/1/model.onnx. Return: 0, -errno. */
int sl_heavy_model_write(const char *repository, const char *name);
