/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "doorbell.h"
#include "memory.h"
#include "region.h"
#include "session_state.h"
#include "stats.h"

#include <string.h>
#include <sys/eventfd.h>

/* So many of the connections beyond the clients may be readers': administrators and those who come find room beside them. */
#define READERS_MAX 32u

static int take_slot(struct sl_sessions *s, const struct sl_account *account, struct sl_error *error)
{
        uint32_t max = s->options.runtime->clients_max;

        if (s->n_clients < max && !sl_share_grants(max, s->n_clients, account->clients))
                return sl_error_set(error, EDQUOT,
                        "user %u has %u clients, which is its share while %u are free, clients_max is %u", account->user.uid,
                        account->clients, max - s->n_clients, max);
        for (uint32_t i = 0; i < max; i++)
                if (!s->slots[i]) {
                        s->slots[i] = true;
                        return (int)i;
                }
        return sl_error_set(error, EDQUOT, "%u clients are attached, clients_max is %u", max, max);
}

/* There are no more users with clients than clients. */
static void count_client(struct sl_sessions *s, struct sl_account *account)
{
        s->n_clients++;
        if (account->clients++)
                return;
        account->user.number = 0;
        while (s->numbers[account->user.number])
                account->user.number++;
        s->numbers[account->user.number] = true;
}

/* The memory of a channel is promised as long as there is one. */
static int new_channel(struct sl_sessions *s, const struct sl_channel_shape *shape, struct sl_channel **ret_channel,
        int *ret_request_fd, int *ret_response_fd, struct sl_error *error)
{
        uint64_t bytes = sl_channel_bytes(shape);
        int r = sl_memory_take(s->options.memory, SL_MEMORY_CHANNELS, bytes, error);

        if (r < 0)
                return sl_error_prefix(error, r, "a channel");
        r = sl_channel_new(shape, ret_channel, ret_request_fd, ret_response_fd, error);
        if (r < 0)
                sl_memory_give(s->options.memory, SL_MEMORY_CHANNELS, bytes);
        return r;
}

static void show_client(struct sl_sessions *s, struct sl_channel *channel)
{
        struct sl_client_stats shown = {
                .id = channel->id,
                .uid = channel->uid,
                .pid = (uint32_t)channel->pid,
                .attached_ns = sl_clock_ns(),
                .n_queues = channel->shape.n_queues,
                .depth = channel->shape.depth,
        };

        memcpy(shown.label, channel->label, sizeof(shown.label));
        sl_stats_client_add(s->options.stats, &shown, &channel->stats);
}

static int make_channel(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, int *ret_request_fd,
        int *ret_response_fd, struct sl_error *error)
{
        struct sl_channel *channel;
        int slot = take_slot(s, session->account, error);
        int r;

        if (slot < 0)
                return slot;
        r = new_channel(s, &hello->hello.shape, &channel, ret_request_fd, ret_response_fd, error);
        if (r < 0) {
                s->slots[slot] = false;
                return r;
        }
        sl_channel_identify(channel, session->id);
        channel->slot = (uint32_t)slot;
        channel->uid = session->peer.uid;
        channel->pid = session->peer.pid;
        channel->user = &session->account->user;
        count_client(s, session->account);
        memcpy(channel->label, session->label, sizeof(channel->label));
        session->channel = channel;
        channel->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        channel->completion_fd = sl_completion_bell_new();
        if (channel->doorbell_fd < 0 || channel->completion_fd < 0)
                return sl_error_set(error, errno, "no doorbell: %s", strerror(errno));
        show_client(s, channel);
        return 0;
}

struct welcome {
        struct sl_message message;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds;
        bool owns_region; /* the last fd was made here and is closed after it was sent */
};

/* From here on the client may pass fds, as many as it has announced. */
static int expect_regions(struct sl_session *session, uint32_t n, struct sl_error *error)
{
        if (n > SL_REGIONS_MAX)
                return sl_error_set(error, EBADMSG, "%u regions to be handed back, %u at most", n, SL_REGIONS_MAX);
        session->regions_due = n;
        session->is_passing = true;
        sl_socket_set_passing(session->socket, true);
        return 0;
}

static int add_regions(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, struct welcome *welcome,
        struct sl_error *error)
{
        int r;

        if (hello->hello.n_kept_regions)
                return expect_regions(session, hello->hello.n_kept_regions, error);
        if (!hello->hello.arena_bytes)
                return 0;
        r = sl_region_create(s, session, hello->hello.arena_bytes, &welcome->fds[welcome->n_fds], error);
        if (r < 0)
                return r;
        welcome->n_fds++;
        welcome->owns_region = true;
        return 0;
}

static void fill_welcome(
        const struct sl_sessions *s, const struct sl_session *session, const struct sl_message *hello, struct sl_message *m)
{
        const struct sl_channel *channel = session->channel;

        m->welcome.version = SL_WIRE_VERSION;
        m->welcome.features = hello->hello.features & SL_FEATURES;
        m->welcome.client_id = session->id;
        m->welcome.catalogue_bytes = s->options.catalogue_bytes;
        if (!channel)
                return;
        m->welcome.shape = channel->shape;
        m->welcome.arena_limit_bytes = s->options.runtime->client_quota.arena_bytes;
        if (atomic_load_explicit(&channel->n_regions, memory_order_relaxed))
                m->welcome.region_bytes = channel->regions[0].bytes;
}

static int welcome_client(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int request_fd = -1;
        SL_CLEANUP(sl_cleanup_fd) int response_fd = -1;
        struct welcome welcome = {.message = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_WELCOME}, .n_fds = SL_FD_REGIONS};
        int r = make_channel(s, session, hello, &request_fd, &response_fd, error);

        if (r == 0)
                r = add_regions(s, session, hello, &welcome, error);
        if (r < 0)
                return r;
        welcome.fds[SL_FD_CATALOGUE] = s->options.catalogue_fd;
        welcome.fds[SL_FD_REQUEST] = request_fd;
        welcome.fds[SL_FD_RESPONSE] = response_fd;
        welcome.fds[SL_FD_DOORBELL] = session->channel->doorbell_fd;
        welcome.fds[SL_FD_COMPLETION] = session->channel->completion_fd;
        fill_welcome(s, session, hello, &welcome.message);
        sl_dispatcher_command(
                s->options.dispatcher, &(struct sl_command){.kind = SL_COMMAND_ADD_CHANNEL, .pointer = session->channel});
        session->state = SESSION_CLIENT;
        sl_message_send(session->socket, &welcome.message, welcome.fds, welcome.n_fds);
        if (welcome.owns_region)
                close(welcome.fds[welcome.n_fds - 1]);
        return 0;
}

static int count_reader(struct sl_sessions *s, struct sl_account *account, struct sl_error *error)
{
        if (s->n_readers == READERS_MAX)
                return sl_error_set(error, EDQUOT, "%u readers are attached, the limit", READERS_MAX);
        if (!sl_share_grants(READERS_MAX, s->n_readers, account->readers))
                return sl_error_set(error, EDQUOT, "user %u has %u readers, which is its share while %u are free, the limit is %u",
                        account->user.uid, account->readers, READERS_MAX - s->n_readers, READERS_MAX);
        account->readers++;
        s->n_readers++;
        return 0;
}

static int welcome_observer(
        struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, struct sl_error *error)
{
        struct sl_message message = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_WELCOME};

        int r = hello->hello.role == SL_ROLE_READER ? count_reader(s, session->account, error) : 0;

        if (r < 0)
                return r;
        fill_welcome(s, session, hello, &message);
        session->state = hello->hello.role == SL_ROLE_ADMIN ? SESSION_ADMIN : SESSION_READER;
        sl_message_send(session->socket, &message, &s->options.catalogue_fd, 1);
        return 0;
}

static void take_label(struct sl_session *session, const struct sl_message *hello)
{
        memcpy(session->label, hello->hello.label, sizeof(session->label) - 1);
        for (char *c = session->label; *c; c++)
                if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
                        *c = '?';
}

int sl_hello_admit(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, struct sl_error *error)
{
        int r;

        take_label(session, hello);
        if (hello->hello.version_min > SL_WIRE_VERSION || hello->hello.version_max < SL_WIRE_VERSION)
                return sl_error_set(error, EPROTONOSUPPORT, "the client speaks wire versions %u to %u, this runtime %u",
                        hello->hello.version_min, hello->hello.version_max, SL_WIRE_VERSION);
        if (hello->hello.role < SL_ROLE_READER || hello->hello.role > SL_ROLE_ADMIN)
                return sl_error_set(error, EINVAL, "role %u is not known", hello->hello.role);
        r = sl_peer_check(&session->peer, &s->options.runtime->access, hello->hello.role, error);
        if (r < 0)
                return r;
        if (hello->hello.role == SL_ROLE_CLIENT)
                return welcome_client(s, session, hello, error);
        return welcome_observer(s, session, hello, error);
}
