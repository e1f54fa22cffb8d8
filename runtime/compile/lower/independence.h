/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether each sample of a batch gets the result that it would get alone. A batcher may only put strangers together when it does.
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_graph;

/*
 * @one, @many: the same graph specialised for 1 sample and for @samples, which lead all inputs and outputs. False also when it
 * cannot be told, so that the worst is a model that is not batched.
 */
bool sl_samples_are_independent(const struct sl_graph *one, const struct sl_graph *many, int64_t samples);
