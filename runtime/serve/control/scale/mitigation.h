/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of variants that are interfered with (runtime/planner/scale/condition.h) move to a core on which no worker is: another
 * one starts there, and then the old one leaves; memory for both is promised first. Where there is no such core, or it cannot be
 * had, the worker stays, and queries with a latency pass over its variant where a calm one suits (shm/choice.h).
 *
 *     (calm) --SL_EVENT_SLOWED--> looked at, once a second --none is interfered with any more--> (calm)
 *
 * Only workers move that have a core for themselves. Those without leave it to the system on which core they run, and an
 * allocation that names cores means these. One worker of a name moves at a time, and the next one after a second, then after two,
 * at last after 64. With nothing interfered with nobody looks.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), section 4, "Mitigating performance degradation": to idle
 * resources of the same worker machine. Another machine, the paper's second way, there is none.
 *
 * Control thread only; nothing waits.
 */
#pragma once

#include <stdint.h>

struct sl_mitigation;
struct sl_registry;

/* Return: 0, -ENOMEM. */
int sl_mitigation_new(struct sl_registry *registry, struct sl_mitigation **ret_mitigation);

/* NULL is fine. Returns NULL. */
struct sl_mitigation *sl_mitigation_free(struct sl_mitigation *mitigation);

/* A worker is interfered with. */
void sl_mitigation_hear(struct sl_mitigation *mitigation);

/* Looks, if it is time, and wants what follows from that. Return: when to look again, CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t sl_mitigation_look(struct sl_mitigation *mitigation);
