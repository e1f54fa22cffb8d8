/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the copies at both ends of a graph read and write: an input's copy reads the pool's slot, an output's writes the slot of
 * the launch. What differs from the launch before is set anew, and nothing is captured again. Pure; one thread.
 */
#pragma once

#include <stdint.h>

#define SL_GRAPH_PORTS_MAX 64 /* inputs, and outputs */

struct sl_graph_ports {
        uint32_t n;
        uint64_t at[SL_GRAPH_PORTS_MAX]; /* as the graph has them now */
};

/* Which ports, by bits, are at another address in @wanted; nothing has changed. */
uint64_t sl_graph_ports_differ(const struct sl_graph_ports *ports, const uint64_t *wanted);
