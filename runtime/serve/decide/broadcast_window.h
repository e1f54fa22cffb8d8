/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a segment is that is cut just now, and how many samples may be out at a time, of the members of an ensemble: so much
 * that no worker runs dry, and no more, so that whoever comes next in turn has little before it. Plain values.
 */
#pragma once

#include "service_time.h"

#include <stdint.h>

struct sl_broadcast_members {
        uint32_t slice_samples; /* that fit the slice of every member */
        uint32_t workers;       /* of the member that has most */
};

/* Of no member. */
static inline struct sl_broadcast_members sl_broadcast_members_none(void)
{
        return (struct sl_broadcast_members){.slice_samples = SL_SLICE_SAMPLES_MAX};
}

static inline void sl_broadcast_members_add(struct sl_broadcast_members *members, uint32_t slice_samples, uint32_t workers)
{
        members->slice_samples = slice_samples < members->slice_samples ? slice_samples : members->slice_samples;
        members->workers = workers > members->workers ? workers : members->workers;
}

/* The largest segment that is cut; @segment_samples: as configured. */
static inline uint32_t sl_broadcast_segment_samples(const struct sl_broadcast_members *members, uint32_t segment_samples)
{
        return members->slice_samples < segment_samples ? members->slice_samples : segment_samples;
}

/*
 * A slice for every worker of the member that has most and one more that waits, so that whoever is more urgent, or comes next in
 * turn, has no more than that before it. However fast the members are, two full segments for each.
 */
static inline uint64_t sl_broadcast_window_samples(const struct sl_broadcast_members *members, uint32_t segment_samples)
{
        uint64_t slice = members->slice_samples, most = 2ull * segment_samples;

        return (members->workers + 1ull) * (slice < most ? slice : most);
}
