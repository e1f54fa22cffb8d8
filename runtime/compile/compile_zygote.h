/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote (process/zygote.h) whose children are compiler's processes: libraries are loaded, and a network of a few weights has
 * been compiled in it once, so that oneDNN and the heap are ready. Each child opens its model and locks itself as one that is
 * started does (child/child.c); the zygote never sees a model.
 *
 * Several threads may start compilations by it, one after the other. A child dies with the thread that started the zygote, so all of
 * them live as long as what they have started.
 */
#pragma once

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct sl_compile_zygote;
struct sl_zygote;

/* @program: as in sl_compile_options. Starts nothing before the first compilation asks. Return: 0, -ENOMEM, -EMFILE, ... */
int sl_compile_zygote_new(const char *program, struct sl_compile_zygote **ret_zygote);

/* Ends it; children go on. NULL is fine. Returns NULL. */
struct sl_compile_zygote *sl_compile_zygote_free(struct sl_compile_zygote *zygote);

/* As of process/zygote.h. Any thread; they take turns. */
int sl_compile_zygote_fork(struct sl_compile_zygote *zygote, char *const *argv, const int *fds, uint32_t n_fds, pid_t *ret_pid);
void sl_compile_zygote_renew(struct sl_compile_zygote *zygote);
void sl_compile_zygote_hear(struct sl_compile_zygote *zygote);

/* While no other thread uses it, and for its fd. */
struct sl_zygote *sl_compile_zygote_of(const struct sl_compile_zygote *zygote);
