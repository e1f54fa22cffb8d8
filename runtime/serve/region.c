#include "session_state.h"

#include "base/cleanup.h"
#include "base/error.h"

/* Bytes faulted in between two looks at everything else: about 100 us. */
#define POPULATE_BYTES (512u * 1024u)

static int check_arena_quota(const struct sl_sessions *s, const struct sl_channel *channel, uint64_t bytes, struct sl_error *error)
{
        uint64_t client = s->options.runtime->client_quota.arena_bytes, user = s->options.runtime->uid_quota.arena_bytes;

        if (bytes > client || channel->arena_bytes > client - bytes)
                return sl_error_set(error, EDQUOT, "an arena of %llu bytes and %llu more: the limit of a client is %llu",
                        (unsigned long long)channel->arena_bytes, (unsigned long long)bytes, (unsigned long long)client);
        if (bytes > user || channel->account->arena_bytes > user - bytes)
                return sl_error_set(error, EDQUOT, "arenas of user %u take %llu bytes and %llu more: the limit of a user is %llu",
                        channel->uid, (unsigned long long)channel->account->arena_bytes, (unsigned long long)bytes,
                        (unsigned long long)user);
        return 0;
}

static int attach_region(struct sl_channel *channel, const struct sl_mapping *mapping, struct sl_error *error)
{
        struct sl_mapping owned = *mapping;
        int index = sl_channel_add_region(channel, mapping);

        if (index < 0) {
                sl_mapping_free(&owned);
                return sl_error_set(error, -index, "more than %u arena regions", SL_REGIONS_MAX);
        }
        channel->account->arena_bytes += mapping->bytes;
        return index;
}

int sl_region_create(struct sl_sessions *s, struct sl_channel *channel, uint64_t bytes, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_mapping mapping;
        int r;

        if (bytes == 0 || bytes > UINT64_MAX / 2)
                return sl_error_set(error, EINVAL, "an arena region of %llu bytes", (unsigned long long)bytes);
        bytes = sl_align_up(bytes, SL_PAGE_BYTES);
        r = check_arena_quota(s, channel, bytes, error);
        if (r == 0)
                r = sl_segment_create("starling-arena", bytes, SL_SEAL_SHARED, &fd, &mapping, error);
        if (r == 0)
                r = attach_region(channel, &mapping, error);
        if (r >= 0)
                *ret_fd = sl_take_fd(&fd);
        return r;
}

int sl_region_adopt(struct sl_sessions *s, struct sl_channel *channel, int fd, struct sl_error *error)
{
        struct sl_mapping mapping;
        uint64_t bytes;
        int r = sl_segment_check(fd, SL_SEAL_SHARED, &bytes, error);

        if (r == 0 && (bytes == 0 || bytes % SL_PAGE_BYTES))
                r = sl_error_set(error, EBADMSG, "a region of %llu bytes was handed back", (unsigned long long)bytes);
        if (r == 0)
                r = check_arena_quota(s, channel, bytes, error);
        if (r == 0)
                r = sl_segment_map(fd, bytes, SL_SEAL_SHARED, 1, &mapping, error);
        return r < 0 ? r : attach_region(channel, &mapping, error);
}

bool sl_region_populate(struct sl_sessions *s)
{
        for (uint32_t i = 0; i < s->n_sessions; i++) {
                struct sl_session *session = &s->sessions[i];
                struct sl_channel *channel = session->channel;

                if (session->state != SESSION_CLIENT || session->populating == atomic_load(&channel->n_regions))
                        continue;
                const struct sl_region *region = &channel->regions[session->populating];
                uint64_t left = region->bytes - session->populated;
                struct sl_mapping mapping = {.base = region->base, .bytes = region->bytes};

                uint64_t piece = left < POPULATE_BYTES ? left : POPULATE_BYTES;
                int r = sl_mapping_populate(&mapping, session->populated, piece);
                session->populated += piece;
                if (r < 0 || session->populated == region->bytes) {
                        session->populating++;
                        session->populated = 0;
                }
                return true;
        }
        return false;
}
