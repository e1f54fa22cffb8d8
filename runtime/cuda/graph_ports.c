/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_ports.h"

uint64_t sl_graph_ports_differ(const struct sl_graph_ports *ports, const uint64_t *wanted)
{
        uint64_t differ = 0;

        for (uint32_t i = 0; i < ports->n; i++)
                if (ports->at[i] != wanted[i])
                        differ |= 1ull << i;
        return differ;
}
