/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * What compiling a model takes at least, about (memory_bytes of sl_compile_options), by the bytes of its files, which *ret_files
 * is: its own, and those that may be its external data. Filters in other forms, merges and tuning take more. Nothing is opened; any
 * thread.
 */
uint64_t sl_compile_need(const char *model_path, uint64_t *ret_files);
