/* SPDX-License-Identifier: Apache-2.0 */
#include "departed.h"

#include "base/cleanup.h"
#include "memory.h"
#include "session_state.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>

#define DEPARTED_MAX 64u

struct sl_departed {
        struct sl_departed *next; /* that left later */
        int pidfd;
        uint32_t n_regions;
        struct sl_region regions[];
};

static bool has_ended(int pidfd)
{
        struct pollfd process = {.fd = pidfd, .events = POLLIN};

        return pidfd < 0 || poll(&process, 1, 0) != 0;
}

/* Whoever has it open still finds zeros there. */
static void empty(const struct sl_region *region)
{
        (void)madvise(region->base, region->bytes, MADV_REMOVE);
        munmap(region->base, region->bytes);
}

static void drop(struct sl_sessions *s, struct sl_departed **link)
{
        struct sl_departed *departed = *link;

        for (uint32_t i = 0; i < departed->n_regions; i++) {
                empty(&departed->regions[i]);
                sl_memory_give(s->options.memory, SL_MEMORY_DEPARTED, departed->regions[i].bytes);
        }
        *link = departed->next;
        s->n_departed--;
        sl_cleanup_fd(&departed->pidfd);
        free(departed);
}

static bool is_used_by_others(const struct sl_sessions *s, const struct sl_session *session, uint64_t identity)
{
        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (&s->sessions[i] != session && sl_session_has_region(&s->sessions[i], identity))
                        return true;
        return false;
}

/* NULL: its regions are not kept. */
static struct sl_departed *departed_new(struct sl_session *session, uint32_t n_regions)
{
        struct sl_departed *departed;

        if (session->bye || has_ended(session->pidfd))
                return NULL;
        departed = calloc(1, sizeof(*departed) + n_regions * sizeof(departed->regions[0]));
        if (departed)
                departed->pidfd = sl_take_fd(&session->pidfd);
        return departed;
}

static void append(struct sl_sessions *s, struct sl_departed *departed)
{
        struct sl_departed **link = &s->departed;

        while (*link)
                link = &(*link)->next;
        *link = departed;
        if (++s->n_departed > DEPARTED_MAX)
                drop(s, &s->departed);
}

void sl_departed_keep(struct sl_sessions *s, struct sl_session *session)
{
        struct sl_channel *channel = session->channel;
        uint32_t n = atomic_load_explicit(&channel->n_regions, memory_order_relaxed);
        struct sl_departed *departed = n ? departed_new(session, n) : NULL;

        sl_channel_forget_regions(channel);
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_region *region = &channel->regions[i];

                if (!region->base)
                        continue;
                if (departed && !is_used_by_others(s, session, region->identity)) {
                        departed->regions[departed->n_regions++] = *region;
                        sl_memory_move(s->options.memory, SL_MEMORY_ARENAS, SL_MEMORY_DEPARTED, region->bytes);
                } else {
                        sl_departed_release(s, session, region);
                }
        }
        if (departed)
                append(s, departed);
}

void sl_departed_release(struct sl_sessions *s, const struct sl_session *session, const struct sl_region *region)
{
        sl_memory_give(s->options.memory, SL_MEMORY_ARENAS, region->bytes);
        if (is_used_by_others(s, session, region->identity))
                munmap(region->base, region->bytes);
        else
                empty(region);
}

bool sl_departed_lend(struct sl_sessions *s, uint64_t identity, struct sl_departed_region *ret_lent)
{
        for (struct sl_departed *departed = s->departed; departed; departed = departed->next)
                for (uint32_t i = 0; i < departed->n_regions; i++) {
                        struct sl_region *region = &departed->regions[i];

                        if (region->identity != identity)
                                continue;
                        *ret_lent = (struct sl_departed_region){.from = departed, .region = *region};
                        sl_memory_give(s->options.memory, SL_MEMORY_DEPARTED, region->bytes);
                        *region = departed->regions[--departed->n_regions];
                        return true;
                }
        return false;
}

static bool is_listed(const struct sl_sessions *s, const struct sl_departed *departed)
{
        const struct sl_departed *at = s->departed;

        while (at && at != departed)
                at = at->next;
        return at;
}

/* Where it was may be what has made room for it. */
static void put_back(struct sl_sessions *s, const struct sl_departed_region *lent)
{
        bool has_room = sl_memory_take(s->options.memory, SL_MEMORY_DEPARTED, lent->region.bytes, NULL) == 0;

        if (has_room && is_listed(s, lent->from)) {
                lent->from->regions[lent->from->n_regions++] = lent->region;
                return;
        }
        if (has_room)
                sl_memory_give(s->options.memory, SL_MEMORY_DEPARTED, lent->region.bytes);
        empty(&lent->region);
}

void sl_departed_settle(struct sl_sessions *s, const struct sl_departed_region *lent, bool taken)
{
        if (taken)
                munmap(lent->region.base, lent->region.bytes);
        else
                put_back(s, lent);
}

void sl_departed_look(struct sl_sessions *s)
{
        struct sl_departed **link = &s->departed;

        while (*link)
                if ((*link)->n_regions == 0 || has_ended((*link)->pidfd))
                        drop(s, link);
                else
                        link = &(*link)->next;
}

void sl_departed_reclaim(void *context, uint64_t bytes)
{
        struct sl_sessions *s = context;
        uint64_t before = s->options.memory->used[SL_MEMORY_DEPARTED];

        while (s->departed && before - s->options.memory->used[SL_MEMORY_DEPARTED] < bytes)
                drop(s, &s->departed);
}

void sl_departed_free(struct sl_sessions *s)
{
        while (s->departed) {
                struct sl_departed *departed = s->departed;

                for (uint32_t i = 0; i < departed->n_regions; i++)
                        munmap(departed->regions[i].base, departed->regions[i].bytes);
                s->departed = departed->next;
                sl_cleanup_fd(&departed->pidfd);
                free(departed);
        }
}
