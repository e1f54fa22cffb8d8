/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best allocation that was found for an ensemble, or one model, on this host, in the folder of compiled plans
 * (compile/cache/cache_folder.h): written by `starling optimize`, used by the next start of `starling serve`. Its name is a digest
 * of what is served (names, stamps of model files and configurations, weights, see model_stamp.h) and of the processor; its first
 * line says what it was found with. Functions without state; any thread.
 */
#pragma once

#include "cache_folder.h"
#include "spec.h"

#include <limits.h>

struct sl_allocation;
struct sl_error;

#define SL_ALLOCATION_ORIGIN_BYTES 2048

/* @processor: sl_processor_name(). @specs: all that the repositories have, members of @spec among them. */
void sl_allocation_cache_name(const char *processor, const struct sl_model_spec *specs, uint32_t n,
        const struct sl_model_spec *spec, char ret_name[SL_CACHE_NAME_BYTES]);

/* @directory NULL: the user's default. @origin: one line. Return: 0; -errno with text. */
int sl_allocation_cache_put(const char *directory, const char *name, const struct sl_allocation *allocation, const char *origin,
        struct sl_error *error);

/*
 * What is kept under that name, and what it was found with; @ret_origin may be NULL. Return: 0; -ENOENT without text: nothing;
 * -errno with text: it is not ours alone, or damaged.
 */
int sl_allocation_cache_find(const char *directory, const char *name, struct sl_allocation **ret_allocation,
        char ret_origin[SL_ALLOCATION_ORIGIN_BYTES], struct sl_error *error);

/* There is nothing under that name any more. Return: 1: there was; 0: there was nothing; -errno with text. */
int sl_allocation_cache_remove(const char *directory, const char *name, struct sl_error *error);
