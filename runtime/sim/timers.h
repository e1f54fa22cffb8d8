/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is due at a time, of workers: a heap. Of the same time, what was added first comes first. One thread; nothing is allocated
 * after it is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_sim_timers;

/* Return: 0; -ENOMEM. */
int sl_sim_timers_new(uint32_t most, struct sl_sim_timers **ret_timers);
struct sl_sim_timers *sl_sim_timers_free(struct sl_sim_timers *timers);

/* There is room. */
void sl_sim_timers_add(struct sl_sim_timers *timers, uint64_t at_ns, uint32_t kind, uint32_t worker);

/* UINT64_MAX: there is none. */
uint64_t sl_sim_timers_next_ns(const struct sl_sim_timers *timers);

/* The first one that is due. False: there is none. */
bool sl_sim_timers_take(struct sl_sim_timers *timers, uint64_t now_ns, uint32_t *ret_kind, uint32_t *ret_worker);
