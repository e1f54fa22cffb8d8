/* SPDX-License-Identifier: Apache-2.0 */
#include "base/relax.h"

#include "base/clock.h"

#define ROUNDS  4
#define RELAXES 64u

/* The fastest of several rounds: the others were interrupted. */
uint32_t sl_relaxes_in(uint32_t ns)
{
        uint64_t best = UINT64_MAX;

        for (int round = 0; round < ROUNDS; round++) {
                uint64_t start = sl_clock_ns();

                for (uint32_t i = 0; i < RELAXES; i++)
                        sl_relax();
                uint64_t took = sl_clock_ns() - start;
                if (took < best)
                        best = took;
        }
        uint64_t n = best ? (uint64_t)ns * RELAXES / best : RELAXES;
        return n < 1 ? 1 : n > RELAXES ? RELAXES : (uint32_t)n;
}
