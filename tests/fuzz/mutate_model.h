/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed ONNX files that mean something else than the one at hand. The same seed gives the same change. */
#pragma once

#include "onnx/onnx.pb-c.h"

#include <stddef.h>
#include <stdint.h>

/* Changes a few operators, names, attributes, tensors or inputs. */
void mutate_model(uint64_t seed, Onnx__ModelProto *model);

/* The same for a packed file of at most @nodes nodes; returns its new length, 0 if it is no file. */
size_t mutate_model_bytes(uint64_t seed, uint32_t nodes, uint8_t *bytes, size_t n_bytes, size_t capacity);
