/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of ai.onnx.ml. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_trees;        /* starling.Trees */
extern const struct sl_cpu_loop sl_cpu_class_scores; /* starling.ClassScores */
extern const struct sl_cpu_loop sl_cpu_distance;     /* starling.SquaredDistance */
