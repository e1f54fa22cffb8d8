/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An honest client that works in a thread of its own, with pauses unless the test waits for it, and checks everything: each request
 * is accepted, completes once, with status 0, and its predictions are right to 1e-5. What others suffer must not show here.
 *
 * The thread never fails the test itself: the first thing that is wrong is kept as a text, and honest_stop() fails.
 */
#pragma once

#include "world.h"

struct honest;

/* Connects to @world, with @model's expected predictions; fails the test when it cannot. */
struct honest *honest_start(const struct world *world, const char *model);

/* The same of a model that is a copy of the network @of. */
struct honest *honest_start_copy(const struct world *world, const char *model, const char *of);

/* Requests that came back right so far. Any thread. */
uint64_t honest_done(const struct honest *honest);

/* Waits for @n more requests. */
void honest_expect_progress(struct honest *honest, uint64_t n);

/* Ends and frees; fails when anything was wrong, or nothing was done: honest_expect_progress() first, as it does not wait. */
void honest_stop(struct honest *honest);
