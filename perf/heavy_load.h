/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something that computes while round trips are measured: a child process that keeps a heavy model of the runtime busy, or, where
 * that cannot be had, one that computes by itself. One thread.
 */
#pragma once

#include "pair.h"

#include <stdint.h>

struct sl_server;

struct sl_heavy_load {
        struct sl_pair pair;
        char note[240]; /* what computes, and where */
};

/*
 * Loads the heavy model into @server and has a child on @cpus[1] keep two requests of one sample in flight; returns when the first
 * is done. When the model cannot be served, the child multiplies matrices on its CPU instead, and the note says so.
 * Return: 0, -errno.
 */
int sl_heavy_load_start(struct sl_heavy_load *load, const struct sl_server *server, const int cpus[2], int worker_cpu);

/* Requests (or products of matrices) done until now. */
uint64_t sl_heavy_load_done(const struct sl_heavy_load *load);

/* True when requests are done by the runtime, false for the matrices. */
int sl_heavy_load_is_served(const struct sl_heavy_load *load);

int sl_heavy_load_stop(struct sl_heavy_load *load);
