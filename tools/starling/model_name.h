/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model file is called: REPOSITORY/NAME/VERSION/model.onnx is NAME, and ANY/NAME.onnx too. Any thread.
 */
#pragma once

#include <stddef.h>

/* Cut to what fits. */
void model_name_of(const char *path, char *ret_name, size_t bytes);
