/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models out of skeletons (skeleton.py): files whose large initializers have lost their values and say how those lay. The values
 * drawn for them have that mean, deviation and bounds, and depend on the seed and the initializer's name: the same on every
 * machine. Functions without state.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_error;

/*
 * The model of the skeleton at @path, as an ONNX file in memory, the caller's to free(). A file that has all of its values comes
 * back as it is. Return: 0; -EBADMSG it is no such file; -ENOMEM; -errno. The text names the file.
 */
int sl_seeded_model(const char *path, uint64_t seed, void **ret_bytes, size_t *ret_n, struct sl_error *error);
