/* SPDX-License-Identifier: Apache-2.0 */
#include "flight.h"

#include "base/assert.h"

#include <errno.h>

int sl_flight_init(struct sl_flight *flight, uint32_t n_slots)
{
        *flight = (struct sl_flight){.n_slots = n_slots};
        return n_slots && n_slots <= SL_FLIGHT_SLOTS_MAX ? 0 : -EINVAL;
}

int sl_flight_begin(struct sl_flight *flight)
{
        for (uint32_t i = 0; i < flight->n_slots; i++)
                if (!(flight->busy & 1u << i)) {
                        flight->busy |= 1u << i;
                        flight->numbers[i] = ++flight->launches;
                        return (int)i;
                }
        return -EAGAIN;
}

void sl_flight_end(struct sl_flight *flight, uint32_t slot)
{
        SL_ASSERT(flight->busy & 1u << slot);
        flight->busy &= ~(1u << slot);
}

int sl_flight_next(const struct sl_flight *flight, int slot)
{
        uint64_t after = slot < 0 ? 0 : flight->numbers[slot], least = UINT64_MAX;
        int next = -1;

        for (uint32_t i = 0; i < flight->n_slots; i++)
                if (flight->busy & 1u << i && flight->numbers[i] > after && flight->numbers[i] < least) {
                        least = flight->numbers[i];
                        next = (int)i;
                }
        return next;
}
