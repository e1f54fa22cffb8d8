/* SPDX-License-Identifier: Apache-2.0 */
#include "team_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SHARE 5  /* waiting for one of so many parts of what it would have used is too long, */
#define LEAST 10 /* unless it is less than one of so many of the time since the last look: a team that rested has wanted little */
#define STALE 10 /* after so many looks that were left out, nobody knows what came when */

/* What a member has waited in the last @passed_ns, where that is too long; else 0. */
static uint64_t too_long(const struct sl_thread_times *before, const struct sl_thread_times *now, uint64_t passed_ns)
{
        uint64_t waited = now->waited_ns - before->waited_ns, ran = now->ran_ns - before->ran_ns;

        return waited * LEAST >= passed_ns && waited * SHARE >= waited + ran ? waited : 0;
}

static uint32_t who_waits(const struct sl_team_watch *watch, const struct sl_thread_times *times, uint32_t size, uint64_t passed_ns)
{
        uint64_t longest = 0;
        uint32_t who = 0;

        for (uint32_t i = 1; i < size; i++) {
                uint64_t waited = i == watch->away ? 0 : too_long(&watch->last[i], &times[i], passed_ns);

                if (waited > longest) {
                        longest = waited;
                        who = i;
                }
        }
        return who;
}

static void send_away(struct sl_team_watch *watch, uint64_t now_ns, uint32_t who)
{
        uint64_t twice = watch->pause_ns * 2;

        watch->pause_ns = !watch->on_trial ? SL_WATCH_PAUSE_NS : twice < SL_WATCH_PAUSE_NS_MAX ? twice : SL_WATCH_PAUSE_NS_MAX;
        watch->away = who;
        watch->on_trial = false;
        watch->back_ns = now_ns + watch->pause_ns;
}

uint32_t sl_team_watch_judge(struct sl_team_watch *watch, uint64_t now_ns, const struct sl_thread_times *times, uint32_t size)
{
        bool stale = now_ns - watch->next_ns > STALE * SL_WATCH_LOOK_NS;
        uint64_t passed_ns = now_ns - watch->next_ns + SL_WATCH_LOOK_NS;
        uint32_t who = stale ? 0 : who_waits(watch, times, size, passed_ns);

        if (watch->away && now_ns >= watch->back_ns) {
                watch->away = 0;
                watch->on_trial = true;
        } else if (!watch->away && who) {
                send_away(watch, now_ns, who);
        } else if (!watch->away && !stale) {
                watch->on_trial = false;
        }
        for (uint32_t i = 1; i < size; i++)
                watch->last[i] = times[i];
        watch->next_ns = now_ns + SL_WATCH_LOOK_NS;
        return watch->away;
}

bool sl_thread_times_read(int tid, struct sl_thread_times *ret_times)
{
        char path[64], text[64];
        unsigned long long ran, waited;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n <= 0)
                return false;
        text[n] = 0;
        if (sscanf(text, "%llu %llu", &ran, &waited) != 2)
                return false;
        *ret_times = (struct sl_thread_times){.ran_ns = ran, .waited_ns = waited};
        return true;
}
