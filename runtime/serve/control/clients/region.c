/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "departed.h"
#include "memory.h"
#include "session_state.h"
#include "stats.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int check_arena_quota(const struct sl_sessions *s, const struct sl_session *session, uint64_t bytes, struct sl_error *error)
{
        uint64_t client = s->options.runtime->client_quota.arena_bytes, user = s->options.runtime->uid_quota.arena_bytes;

        if (bytes > client || session->channel->arena_bytes > client - bytes)
                return sl_error_set(error, EDQUOT, "an arena of %llu bytes and %llu more: the limit of a client is %llu",
                        (unsigned long long)session->channel->arena_bytes, (unsigned long long)bytes, (unsigned long long)client);
        if (bytes > user || session->account->arena_bytes > user - bytes)
                return sl_error_set(error, EDQUOT, "arenas of user %u take %llu bytes and %llu more: the limit of a user is %llu",
                        session->channel->uid, (unsigned long long)session->account->arena_bytes, (unsigned long long)bytes,
                        (unsigned long long)user);
        return 0;
}

/* Of memory_max, counted in pages, one user leaves room for others. What compilers have comes back by itself. */
static int check_share(const struct sl_sessions *s, const struct sl_session *session, uint64_t bytes, struct sl_error *error)
{
        const struct sl_memory *memory = s->options.memory;
        uint64_t used = sl_memory_used(memory) - memory->used[SL_MEMORY_COMPILERS], held = session->account->arena_bytes;
        uint64_t total = memory->limit_bytes / SL_PAGE_BYTES;

        if (total >= UINT32_MAX || bytes > sl_memory_left(memory) ||
                sl_share_grants((uint32_t)total, (uint32_t)((used + bytes) / SL_PAGE_BYTES) - 1,
                        (uint32_t)((held + bytes) / SL_PAGE_BYTES) - 1))
                return 0;
        return sl_error_set(error, EDQUOT,
                "arenas of user %u take %llu bytes; of memory_max %llu, of which %llu are in use, room is kept for others",
                session->channel->uid, (unsigned long long)held, (unsigned long long)memory->limit_bytes, (unsigned long long)used);
}

/* Each region keeps a descriptor (execute/regions.h): arenas may have half of what the process may have, and a user leaves others
 * some. */
static int check_descriptors(const struct sl_sessions *s, const struct sl_session *session, struct sl_error *error)
{
        uint32_t held = session->account->regions, taken = s->options.regions->n_fds;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > UINT32_MAX ||
                sl_share_grants((uint32_t)(limit.rlim_cur / 2), taken, held))
                return 0;
        return sl_error_set(error, EDQUOT,
                "user %u has %u arena regions, each of which keeps a descriptor; of %llu for all, of which %u are in use, some are "
                "kept "
                "for others",
                session->channel->uid, held, (unsigned long long)(limit.rlim_cur / 2), taken);
}

/* Below the quotas of client and user, and promised by the runtime. */
static int take_memory(struct sl_sessions *s, const struct sl_session *session, uint64_t bytes, struct sl_error *error)
{
        int r = check_arena_quota(s, session, bytes, error);

        if (r < 0)
                return r;
        r = check_share(s, session, bytes, error);
        if (r == 0)
                r = check_descriptors(s, session, error);
        if (r == 0)
                r = sl_memory_take(s->options.memory, SL_MEMORY_ARENAS, bytes, error);
        return r < 0 ? sl_error_prefix(error, r, "an arena region of %llu bytes", (unsigned long long)bytes) : 0;
}

static int attach_region(
        struct sl_sessions *s, struct sl_session *session, const struct sl_mapping *mapping, int fd, struct sl_error *error)
{
        struct sl_channel *channel = session->channel;
        struct sl_mapping owned = *mapping;
        struct stat status;
        int index = fstat(fd, &status) < 0 ? -errno : sl_channel_add_region(channel, s->options.regions, mapping, fd);

        if (index < 0) {
                sl_mapping_free(&owned);
                return index == -E2BIG ? sl_error_set(error, E2BIG, "more than %u arena regions", SL_REGIONS_MAX)
                                       : sl_error_set(error, -index, "an arena region: %s", strerror(-index));
        }
        channel->regions[index].identity = status.st_ino;
        sl_counter_set(&channel->stats->arena_bytes, channel->arena_bytes);
        session->account->arena_bytes += mapping->bytes;
        session->account->regions++;
        return index;
}

int sl_region_create(struct sl_sessions *s, struct sl_session *session, uint64_t bytes, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_mapping mapping;
        int r;

        if (bytes == 0 || bytes > UINT64_MAX / 2)
                return sl_error_set(error, EINVAL, "an arena region of %llu bytes", (unsigned long long)bytes);
        bytes = sl_align_up(bytes, SL_PAGE_BYTES);
        r = take_memory(s, session, bytes, error);
        if (r < 0)
                return r;
        r = sl_segment_create("starling-arena", bytes, SL_SEAL_SHARED, &fd, &mapping, error);
        if (r == 0)
                r = attach_region(s, session, &mapping, fd, error);
        if (r < 0)
                sl_memory_give(s->options.memory, SL_MEMORY_ARENAS, bytes);
        else
                *ret_fd = sl_take_fd(&fd);
        return r;
}

int sl_region_check(const struct sl_session *session, uint32_t index, struct sl_error *error)
{
        const struct sl_channel *channel = session->channel;

        if (index < SL_REGIONS_MAX && channel->regions[index].base)
                return 0;
        return sl_error_set(error, ENOENT, "arena region %u is to be released, and there is none", index);
}

void sl_region_drop(struct sl_sessions *s, struct sl_session *session, uint32_t index)
{
        struct sl_channel *channel = session->channel;
        struct sl_region region = channel->regions[index];

        sl_channel_remove_region(channel, index);
        sl_departed_release(s, session, &region);
        session->account->arena_bytes -= region.bytes;
        session->account->regions--;
        sl_counter_set(&channel->stats->arena_bytes, channel->arena_bytes);
}

static int adopt(struct sl_sessions *s, struct sl_session *session, int fd, uint64_t bytes, struct sl_error *error)
{
        struct sl_mapping mapping;
        int r = take_memory(s, session, bytes, error);

        if (r < 0)
                return r;
        r = sl_segment_map(fd, bytes, SL_SEAL_SHARED, 1, &mapping, error);
        if (r == 0)
                r = attach_region(s, session, &mapping, fd, error);
        if (r < 0)
                sl_memory_give(s->options.memory, SL_MEMORY_ARENAS, bytes);
        return r;
}

int sl_region_adopt(struct sl_sessions *s, struct sl_session *session, int fd, struct sl_error *error)
{
        struct sl_departed_region lent;
        struct stat status;
        uint64_t bytes;
        bool was_kept;
        int r = sl_segment_check(fd, SL_SEAL_SHARED, &bytes, error);

        if (r == 0 && (bytes == 0 || bytes % SL_PAGE_BYTES))
                r = sl_error_set(error, EBADMSG, "a region of %llu bytes was handed back", (unsigned long long)bytes);
        if (r < 0)
                return r;
        was_kept = fstat(fd, &status) == 0 && sl_departed_lend(s, status.st_ino, &lent);
        r = adopt(s, session, fd, bytes, error);
        if (was_kept)
                sl_departed_settle(s, &lent, r >= 0);
        return r;
}
