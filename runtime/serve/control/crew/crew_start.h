/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How workers of a crew start: what each may take, where it runs, and as what, a thread or a process. For crew.c.
 */
#pragma once

#include "batch_limit.h"
#include "worker_set.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_crew;
struct sl_error;

/* Of a worker of that batch size. */
struct sl_batch_limit sl_crew_limit_of(const struct sl_crew *crew, uint32_t batch_size);

/* As many as can; the memory of the others goes back. Return: 0; -ENOMEM with the numbers, and none has started; what one that
 * cannot start says. */
int sl_crew_start_some(struct sl_crew *crew, const struct sl_worker_wish *wishes, uint32_t n, const struct sl_crew *replaced,
        bool background, bool tries_inline, struct sl_error *error);

/* Worker @i said @state when it started. Return: -ENOMEM, -EIO with text. */
int sl_crew_explain_failed_start(const struct sl_crew *crew, uint32_t i, int32_t state, struct sl_error *error);
