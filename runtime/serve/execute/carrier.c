/* SPDX-License-Identifier: Apache-2.0 */
#include "carrier.h"

#include "base/assert.h"
#include "block.h"

#include <errno.h>
#include <stddef.h>

int sl_carrier_seat(struct sl_carrier *carrier, struct sl_executor *executor)
{
        for (uint32_t i = 0; i < SL_CARRIER_LANES_MAX; i++)
                if (!carrier->lanes[i]) {
                        carrier->lanes[i] = executor;
                        carrier->n_lanes++;
                        return (int)i;
                }
        return -ENOSPC;
}

void sl_carrier_leave(struct sl_carrier *carrier, const struct sl_executor *executor)
{
        for (uint32_t i = 0; i < SL_CARRIER_LANES_MAX; i++)
                if (carrier->lanes[i] == executor) {
                        carrier->lanes[i] = NULL;
                        carrier->n_lanes--;
                }
}

struct sl_carrier *sl_carrier_free(struct sl_carrier *carrier)
{
        if (carrier)
                carrier->class->stop(carrier);
        return NULL;
}

bool sl_carrier_knows(struct sl_carrier *carrier, uint32_t lane)
{
        uint64_t before = carrier->known;

        carrier->known |= UINT64_C(1) << lane;
        return before == 0;
}

bool sl_carrier_forgets(struct sl_carrier *carrier, uint32_t lane)
{
        carrier->known &= ~(UINT64_C(1) << lane);
        if (sl_blocks_lanes(carrier->blocks) & ~carrier->known)
                sl_carrier_put_blocks_away(carrier);
        return carrier->known == 0;
}

void sl_carrier_fill(struct sl_carrier *carrier, uint32_t lane)
{
        const struct sl_executor *executor = carrier->lanes[lane];
        uint32_t newest = (executor->oldest + executor->n_given - 1) % SL_EXECUTOR_JOBS_MAX;

        SL_ASSERT(!(carrier->filled >> lane & 1));
        carrier->filled |= UINT64_C(1) << lane;
        carrier->filled_pieces += executor->slots[newest].job->n_pieces;
        carrier->is_full |= carrier->filled_pieces > SL_CARRIER_PIECES_MAX - SL_JOB_PIECES_MAX;
}

bool sl_carrier_send(struct sl_carrier *carrier, uint32_t priority, bool is_light, struct sl_wait *from)
{
        const struct sl_carrier_launch launch = {
                .lanes = carrier->filled, .blocks = carrier->blocks, .backwards = carrier->backwards, .is_light = is_light};
        uint32_t last = (carrier->oldest + carrier->n_launches) % SL_EXECUTOR_JOBS_MAX;

        carrier->is_full = false;
        carrier->filled = 0;
        carrier->filled_ns = 0;
        carrier->filled_pieces = 0;
        if (!launch.lanes)
                return false;
        SL_ASSERT(carrier->n_launches < SL_EXECUTOR_JOBS_MAX);
        carrier->launches[last].unanswered = (uint32_t)__builtin_popcountll(launch.lanes);
        carrier->launches[last].priority = priority;
        carrier->launches[last].blocks = launch.blocks;
        carrier->n_launches++;
        carrier->class->launch(carrier, &launch, from);
        return true;
}

bool sl_carrier_poll(
        struct sl_carrier *carrier, struct sl_executor **ret_lane, struct sl_job **ret_job, struct sl_prediction *ret_prediction)
{
        struct sl_executor *lane;

        if (!carrier->class->poll || !carrier->class->poll(carrier, ret_prediction))
                return false;
        lane = carrier->lanes[ret_prediction->lane];
        ret_prediction->slot = (uint8_t)lane->oldest;
        *ret_lane = lane;
        *ret_job = lane->slots[lane->oldest].job;
        return true;
}

bool sl_carrier_answered(struct sl_carrier *carrier, uint32_t *ret_priority)
{
        SL_ASSERT(carrier->n_launches && carrier->launches[carrier->oldest].unanswered);
        *ret_priority = carrier->launches[carrier->oldest].priority;
        if (--carrier->launches[carrier->oldest].unanswered)
                return false;
        carrier->oldest = (carrier->oldest + 1) % SL_EXECUTOR_JOBS_MAX;
        carrier->n_launches--;
        return true;
}

void sl_carrier_put_blocks(struct sl_carrier *carrier, struct sl_block *blocks)
{
        SL_ASSERT(!carrier->blocks && !carrier->leaving);
        carrier->blocks = blocks;
        if (sl_blocks_lanes(blocks) & ~carrier->known)
                sl_carrier_put_blocks_away(carrier);
}

void sl_carrier_put_blocks_away(struct sl_carrier *carrier)
{
        if (!carrier->blocks)
                return;
        carrier->leaving = carrier->blocks;
        carrier->blocks = NULL;
}

static bool is_named(const struct sl_carrier *carrier, const struct sl_block *blocks)
{
        for (uint32_t i = 0; i < carrier->n_launches; i++)
                if (carrier->launches[(carrier->oldest + i) % SL_EXECUTOR_JOBS_MAX].blocks == blocks)
                        return true;
        return false;
}

struct sl_block *sl_carrier_take_blocks(struct sl_carrier *carrier)
{
        struct sl_block *left = carrier->leaving;

        if (!left || is_named(carrier, left))
                return NULL;
        carrier->leaving = NULL;
        return left;
}

uint32_t sl_carrier_jobs(const struct sl_carrier *carrier, const struct sl_executor *lane)
{
        uint32_t own = sl_executor_jobs(lane);

        if (carrier->is_full)
                return SL_EXECUTOR_JOBS_MAX;
        return own > carrier->n_launches ? own : carrier->n_launches;
}

uint32_t sl_carrier_jobs_max(const struct sl_carrier *carrier)
{
        return carrier->n_launches ? SL_EXECUTOR_JOBS_MAX : 1;
}
