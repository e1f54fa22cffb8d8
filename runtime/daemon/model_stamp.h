/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number that changes when anything does that decides how a name is served: an option of its configuration, the model file, or a
 * file beside it, as external data are. The number of workers is none of it: they come and go while the model serves. Files are
 * known by what the file system says of them: inode, size and time of the last change, which notices a change and is no claim
 * against forgers. Their folder is known by its path without links, however the repository was named. Nothing is opened. Any
 * thread.
 */
#pragma once

#include "model_config.h"

#include <stdint.h>

struct sl_folder_names;

/*
 * @path: a model file, with a '/'; NULL: an ensemble. Of its folder the first 4096 files are looked at, four levels deep, but for
 * other .onnx files beside it; where the folder is not the model's own, @beside says what it has, and those count whose names
 * begin as the model's does, without .onnx. NULL: it is its own.
 */
uint64_t sl_model_stamp(const struct sl_model_config *config, const char *path, const struct sl_folder_names *beside);
