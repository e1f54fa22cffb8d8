/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a prober asks of the runtimes that are watched: do they live, are they ready. Functions without state.
 *
 *     lives     its process is there, in whatever state
 *     is ready  it lives, its start is over and it is not stopping, no model of it has failed, and each that serves has a worker
 *
 * A model that is loaded later, beside others that serve, does not count before it serves or fails: so one more model takes
 * nobody's runtime away. A reload that fails leaves the model as it was, and counts as little.
 */
#pragma once

#include "text.h"
#include "watch.h"

#include <stdbool.h>

/*
 * Of @n runtimes that were just looked at, a line each into @out, "NAME: lives"; what is wrong in further lines, as far as it goes.
 * Return: whether all do.
 */
bool health_lives(struct text *out, const struct watch *watches, uint32_t n);
bool health_is_ready(struct text *out, const struct watch *watches, uint32_t n);
