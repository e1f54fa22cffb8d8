/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query's needs as people write them: "accuracy=0.98,least=0.9,latency_ms=5,cost=3,samples=4,closest", each of them once at most.
 * Pure.
 */
#pragma once

#include "choice.h"

#define SL_NEEDS_TEXT_BYTES 512u

struct sl_error;

/* @ret_samples: of a request; 1 where the text does not say. Return: 0; -EINVAL with text: the word, its value and the limit. */
int sl_needs_parse(const char *text, struct sl_needs *ret_needs, uint32_t *ret_samples, struct sl_error *error);
