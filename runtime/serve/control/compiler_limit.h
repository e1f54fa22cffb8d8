/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct sl_memory;
struct sl_runtime_options;

/* As configured, else the default. */
uint64_t sl_compiler_limit_configured(const struct sl_runtime_options *runtime);

/*
 * Memory that a compilation may take which begins now (memory_bytes of sl_compile_options). It is promised all of it; where less is
 * left than is configured it gets less: a quarter stays for clients that come meanwhile, and others may compile beside it.
 */
uint64_t sl_compiler_limit(const struct sl_runtime_options *runtime, const struct sl_memory *memory);
