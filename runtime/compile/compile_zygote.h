/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote (process/zygote.h) whose children are compiler's processes: libraries are loaded, and a network of a few weights has
 * been compiled in it once, so that oneDNN and the heap are ready. Each child opens its model and locks itself as one that is
 * started does (child/child.c); the zygote never sees a model.
 *
 * One owner thread: the one that starts compilations.
 */
#pragma once

#include "base/cleanup.h"

struct sl_compile_zygote;
struct sl_zygote;

/* @program: as in sl_compile_options. Starts nothing before the first compilation asks. Return: 0, -ENOMEM, -EMFILE, ... */
int sl_compile_zygote_new(const char *program, struct sl_compile_zygote **ret_zygote);

/* Ends it; children go on. NULL is fine. Returns NULL. */
struct sl_compile_zygote *sl_compile_zygote_free(struct sl_compile_zygote *zygote);

struct sl_zygote *sl_compile_zygote_of(const struct sl_compile_zygote *zygote);
