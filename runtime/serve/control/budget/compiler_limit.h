/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_memory;
struct sl_runtime_options;

/* As configured, else the default. */
uint64_t sl_compiler_limit_configured(const struct sl_runtime_options *runtime);

/*
 * Memory that a compilation may take which begins now (memory_bytes of sl_compile_options). It is promised all of it; where less is
 * left than is configured it gets less: a quarter stays for clients that come meanwhile, and others may compile beside it, unless
 * that is less than what it needs (sl_compile_need(); 0: not known), and all is not.
 */
uint64_t sl_compiler_limit(const struct sl_runtime_options *runtime, const struct sl_memory *memory, uint64_t need);

/* @promised to it and not yet given back, of which @limit was the compiler's own; @need, of its @files, as of sl_compile_need(). */
struct sl_compiler_share {
        uint64_t need, files, limit, promised;
};

/* Puts in front of @error what it takes, what was left, and which key says so. Return: -ENOMEM. */
int sl_compiler_limit_passed(const struct sl_runtime_options *runtime, const struct sl_memory *memory,
        const struct sl_compiler_share *share, struct sl_error *error);
