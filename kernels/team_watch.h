/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a member of a team gets its CPU: out of what the kernel counts of each thread, how long it ran and how long it could have
 * run while somebody else did. Who waits for a fifth of the time that it would have used, and for a tenth of all time, is sent away,
 * one at a time, and called back after a while to be looked at again; that while doubles each time that nothing has changed.
 *
 *     all present --somebody waits--> one away for pause_ns --over--> all present: on trial for one look
 *     on trial: somebody waits   -> away, twice as long
 *     on trial: nobody waits     -> all present, and the next one is away for as short as the first
 *
 * Plain state; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_WATCH_MEMBERS_MAX 64

#define SL_WATCH_LOOK_NS      20000000ull
#define SL_WATCH_PAUSE_NS     100000000ull
#define SL_WATCH_PAUSE_NS_MAX 3200000000ull

/* Of a thread, since it began: schedstat's first two numbers. */
struct sl_thread_times {
        uint64_t ran_ns, waited_ns;
};

struct sl_team_watch {
        uint64_t next_ns, back_ns, pause_ns; /* of the next look; until when one is away; how long the next one will be */
        uint32_t away;                       /* the member; 0: none */
        bool on_trial;
        struct sl_thread_times last[SL_WATCH_MEMBERS_MAX];
};

/* Is it time for sl_team_watch_judge()? A few instructions. */
static inline bool sl_team_watch_is_due(const struct sl_team_watch *watch, uint64_t now_ns)
{
        return now_ns >= watch->next_ns;
}

/* What members 1 to @size - 1 have had until now, [0] is not looked at. Returns who is away from now on; 0: nobody. Pure. */
uint32_t sl_team_watch_judge(struct sl_team_watch *watch, uint64_t now_ns, const struct sl_thread_times *times, uint32_t size);

/* Of thread @tid of this process. False: the system does not say. */
bool sl_thread_times_read(int tid, struct sl_thread_times *ret_times);
