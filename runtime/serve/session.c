#include "session.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/quote.h"
#include "doorbell.h"
#include "registry.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* Two tokens of a session: its socket and its pidfd. */
#define SESSION_TOKEN (1ull << 61)
#define PIDFD_TOKEN   (1ull << 60)

/* Connections beyond the clients: readers, administrators, and those that have not said HELLO. */
#define EXTRA_SESSIONS 64u

/* Messages of one session, and bytes faulted in, between two looks at everything else: about 100 us each. */
#define MESSAGES_AT_ONCE 16u
#define POPULATE_BYTES   (512u * 1024u)

/* Refusals of one session that are worth a line each. */
#define REFUSALS_LOGGED 16u

enum session_state { SESSION_FREE, SESSION_NEW, SESSION_CLIENT, SESSION_READER, SESSION_ADMIN, SESSION_LEAVING };

struct sl_session {
        enum session_state state;
        uint32_t number;
        uint64_t id; /* as in the log; never used twice */
        int socket, pidfd;
        struct sl_peer peer;
        struct sl_channel *channel;
        uint32_t populating; /* region */
        uint64_t populated;  /* bytes of it */
        uint32_t refusals;
        bool unread; /* it had more messages than its turn allowed */
};

struct sl_sessions {
        struct sl_sessions_options options;
        struct sl_account *accounts; /* [n_sessions]; refs 0: free */
        bool *slots;                 /* [clients_max]: taken */
        uint64_t next_id;
        uint32_t n_sessions;
        struct sl_session sessions[];
};

int sl_sessions_new(const struct sl_sessions_options *options, struct sl_sessions **ret_sessions)
{
        uint32_t n = options->runtime->clients_max + EXTRA_SESSIONS;
        struct sl_sessions *s = calloc(1, sizeof(*s) + n * sizeof(s->sessions[0]));

        if (!s)
                return -ENOMEM;
        s->options = *options;
        s->n_sessions = n;
        s->next_id = 1;
        s->accounts = calloc(n, sizeof(*s->accounts));
        s->slots = calloc(options->runtime->clients_max, sizeof(*s->slots));
        if (!s->accounts || !s->slots) {
                sl_sessions_free(s);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++)
                s->sessions[i] = (struct sl_session){.number = i, .socket = -1, .pidfd = -1};
        *ret_sessions = s;
        return 0;
}

static void report(struct sl_sessions *s, int level, const char *event, const struct sl_session *session, const char *text)
{
        const struct sl_runtime_options *runtime = s->options.runtime;
        char fields[SL_ERROR_TEXT_BYTES + 256], label[160], cause[SL_ERROR_TEXT_BYTES] = "";

        if (!runtime->log)
                return;
        if (text)
                sl_quote(text, cause, sizeof(cause));
        snprintf(fields, sizeof(fields), "client=%llu uid=%u pid=%d label=%s%s%s", (unsigned long long)session->id,
                session->peer.uid, session->peer.pid,
                sl_quote(session->channel ? session->channel->label : "", label, sizeof(label)), text ? " cause=" : "", cause);
        runtime->log(runtime->context, level, event, fields);
}

/* ---- going ---- */

static void free_session(struct sl_sessions *s, struct sl_session *session)
{
        struct sl_channel *channel = session->channel;

        if (channel) {
                channel->account->arena_bytes -= channel->arena_bytes;
                channel->account->refs--;
                s->slots[channel->slot] = false;
                sl_stats_client_remove(s->options.stats, channel->stats);
                sl_channel_free(channel);
        }
        sl_cleanup_fd(&session->socket);
        sl_cleanup_fd(&session->pidfd);
        *session = (struct sl_session){.number = session->number, .socket = -1, .pidfd = -1};
}

/* With a part of the id: a late event of a session that is gone must not be taken for one of the next that has its number. */
static uint64_t token_of(const struct sl_session *session)
{
        return SESSION_TOKEN | (session->id & 0xffff) << 32 | session->number;
}

static void unwatch(struct sl_sessions *s, const struct sl_session *session)
{
        sl_wait_unwatch(s->options.wait, token_of(session));
        if (session->pidfd >= 0)
                sl_wait_unwatch(s->options.wait, PIDFD_TOKEN | token_of(session));
}

/* The end of the lease: the dispatcher ends what is in flight, and says when nothing of the client is in use any more. */
static void leave(struct sl_sessions *s, struct sl_session *session, const char *event, const char *text)
{
        if (session->state == SESSION_LEAVING)
                return;
        report(s, text ? 1 : 2, event, session, text);
        unwatch(s, session);
        if (session->state != SESSION_CLIENT) {
                free_session(s, session);
                return;
        }
        session->state = SESSION_LEAVING;
        sl_cleanup_fd(&session->socket);
        session->socket = -1;
        sl_dispatcher_command(
                s->options.dispatcher, &(struct sl_command){.kind = SL_COMMAND_REMOVE_CHANNEL, .pointer = session->channel});
}

static struct sl_session *session_of(struct sl_sessions *s, const struct sl_channel *channel)
{
        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].channel == channel)
                        return &s->sessions[i];
        return NULL;
}

void sl_sessions_event(struct sl_sessions *s, const struct sl_event *event)
{
        struct sl_session *session = session_of(s, event->pointer);

        if (!session)
                return;
        if (event->kind == SL_EVENT_CHANNEL_BROKEN)
                leave(s, session, "client-ejected", event->text);
        else if (event->kind == SL_EVENT_CHANNEL_GONE)
                free_session(s, session);
}

/* ---- answering ---- */

static int send_message(struct sl_session *session, struct sl_message *message, const int *fds, uint32_t n_fds)
{
        message->magic = SL_WIRE_MAGIC;
        return sl_message_send(session->socket, message, fds, n_fds);
}

static void send_refusal(struct sl_session *session, enum sl_message_type type, int status, const char *text)
{
        struct sl_message message = {.type = type, .status = status};

        snprintf(message.text, sizeof(message.text), "%s", text);
        send_message(session, &message, NULL, 0);
}

static void refuse(struct sl_sessions *s, struct sl_session *session, enum sl_message_type type, int status, const char *text)
{
        if (session->refusals++ < REFUSALS_LOGGED)
                report(s, 1, "request-refused", session, text);
        send_refusal(session, type, status, text);
}

void sl_sessions_answer(struct sl_sessions *s, uint64_t asker, int status, const char *text)
{
        for (uint32_t i = 0; i < s->n_sessions; i++) {
                struct sl_message message = {.type = SL_MESSAGE_DONE, .status = status};

                if (s->sessions[i].state != SESSION_ADMIN || s->sessions[i].id != asker)
                        continue;
                snprintf(message.text, sizeof(message.text), "%s", text);
                send_message(&s->sessions[i], &message, NULL, 0);
        }
}

/* ---- regions ---- */

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

/* Return: the index, and a fd for the client. */
static int create_region(struct sl_sessions *s, struct sl_channel *channel, uint64_t bytes, int *ret_fd, struct sl_error *error)
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

/* A region that the client had under an earlier runtime. Return: its index. */
static int adopt_region(struct sl_sessions *s, struct sl_channel *channel, int fd, struct sl_error *error)
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

static bool populate(struct sl_sessions *s)
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

/* ---- HELLO ---- */

static int take_slot(struct sl_sessions *s, struct sl_error *error)
{
        for (uint32_t i = 0; i < s->options.runtime->clients_max; i++)
                if (!s->slots[i]) {
                        s->slots[i] = true;
                        return (int)i;
                }
        return sl_error_set(error, EDQUOT, "%u clients are attached, clients_max is %u", s->options.runtime->clients_max,
                s->options.runtime->clients_max);
}

static struct sl_account *take_account(struct sl_sessions *s, uid_t uid)
{
        struct sl_account *spare = NULL;

        for (uint32_t i = 0; i < s->n_sessions; i++) {
                struct sl_account *account = &s->accounts[i];

                if (account->refs && account->uid == uid) {
                        account->refs++;
                        return account;
                }
                if (!account->refs && !spare)
                        spare = account;
        }
        *spare = (struct sl_account){.uid = uid, .refs = 1};
        return spare;
}

static int make_channel(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, int *ret_request_fd,
        int *ret_response_fd, struct sl_error *error)
{
        struct sl_channel *channel;
        int slot = take_slot(s, error);
        int r;

        if (slot < 0)
                return slot;
        r = sl_channel_new(&hello->hello.shape, &channel, ret_request_fd, ret_response_fd, error);
        if (r < 0) {
                s->slots[slot] = false;
                return r;
        }
        channel->id = session->id;
        channel->slot = (uint32_t)slot;
        channel->uid = session->peer.uid;
        channel->pid = session->peer.pid;
        channel->account = take_account(s, session->peer.uid);
        memcpy(channel->label, hello->hello.label, sizeof(channel->label) - 1);
        for (char *c = channel->label; *c; c++)
                if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
                        *c = '?';
        session->channel = channel;
        channel->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        channel->completion_fd = sl_completion_bell_new();
        if (channel->doorbell_fd < 0 || channel->completion_fd < 0)
                return sl_error_set(error, errno, "no doorbell: %s", strerror(errno));
        sl_stats_client_add(s->options.stats, channel->id, channel->uid, (uint32_t)channel->pid, channel->label, &channel->stats);
        return 0;
}

struct welcome {
        struct sl_message message;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds;
        bool owns_region; /* the last fd was made here and is closed after it was sent */
};

static int add_regions(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, const int *fds,
        uint32_t n_fds, struct welcome *welcome, struct sl_error *error)
{
        int r = 0;

        if (hello->hello.n_kept_regions != n_fds || n_fds > SL_KEPT_REGIONS_MAX)
                return sl_error_set(error, EBADMSG, "%u regions announced, %u handed back, %u at most", hello->hello.n_kept_regions,
                        n_fds, SL_KEPT_REGIONS_MAX);
        for (uint32_t i = 0; i < n_fds && r >= 0; i++)
                r = adopt_region(s, session->channel, fds[i], error);
        if (r >= 0 && n_fds == 0 && hello->hello.arena_bytes) {
                r = create_region(s, session->channel, hello->hello.arena_bytes, &welcome->fds[welcome->n_fds], error);
                if (r >= 0) {
                        welcome->n_fds++;
                        welcome->owns_region = true;
                }
        }
        return r < 0 ? r : 0;
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
        m->welcome.n_regions = atomic_load_explicit(&channel->n_regions, memory_order_relaxed);
        for (uint32_t i = 0; i < m->welcome.n_regions; i++)
                m->welcome.region_bytes[i] = channel->regions[i].bytes;
}

static int welcome_client(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, const int *fds,
        uint32_t n_fds, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int request_fd = -1;
        SL_CLEANUP(sl_cleanup_fd) int response_fd = -1;
        struct welcome welcome = {.message = {.type = SL_MESSAGE_WELCOME}, .n_fds = SL_FD_REGIONS};
        int r = make_channel(s, session, hello, &request_fd, &response_fd, error);

        if (r == 0)
                r = add_regions(s, session, hello, fds, n_fds, &welcome, error);
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
        send_message(session, &welcome.message, welcome.fds, welcome.n_fds);
        if (welcome.owns_region)
                close(welcome.fds[welcome.n_fds - 1]);
        return 0;
}

static int welcome_observer(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello)
{
        struct sl_message message = {.type = SL_MESSAGE_WELCOME};

        fill_welcome(s, session, hello, &message);
        session->state = hello->hello.role == SL_ROLE_ADMIN ? SESSION_ADMIN : SESSION_READER;
        send_message(session, &message, &s->options.catalogue_fd, 1);
        return 0;
}

static int admit_hello(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, const int *fds,
        uint32_t n_fds, struct sl_error *error)
{
        int r;

        if (hello->hello.version_min > SL_WIRE_VERSION || hello->hello.version_max < SL_WIRE_VERSION)
                return sl_error_set(error, EPROTONOSUPPORT, "the client speaks wire versions %u to %u, this runtime %u",
                        hello->hello.version_min, hello->hello.version_max, SL_WIRE_VERSION);
        if (hello->hello.role < SL_ROLE_READER || hello->hello.role > SL_ROLE_ADMIN)
                return sl_error_set(error, EINVAL, "role %u is not known", hello->hello.role);
        r = sl_peer_check(&session->peer, &s->options.runtime->access, hello->hello.role, error);
        if (r < 0)
                return r;
        if (hello->hello.role == SL_ROLE_CLIENT)
                return welcome_client(s, session, hello, fds, n_fds, error);
        return welcome_observer(s, session, hello);
}

static void handle_hello(
        struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello, const int *fds, uint32_t n_fds)
{
        struct sl_error error;
        int r = admit_hello(s, session, hello, fds, n_fds, &error);

        if (r < 0) {
                send_refusal(session, SL_MESSAGE_WELCOME, r, error.text);
                leave(s, session, "attach-refused", error.text);
                return;
        }
        report(s, 2, "client-attached", session, NULL);
}

/* ---- what may follow ---- */

static void handle_region(
        struct sl_sessions *s, struct sl_session *session, const struct sl_message *asked, const int *fds, uint32_t n_fds)
{
        struct sl_message message = {.type = SL_MESSAGE_REGION};
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_error error;
        int r = n_fds ? adopt_region(s, session->channel, fds[0], &error)
                      : create_region(s, session->channel, asked->region.bytes, &fd, &error);

        if (r < 0) {
                refuse(s, session, SL_MESSAGE_REGION, r, error.text);
                return;
        }
        message.region.index = (uint32_t)r;
        message.region.bytes = session->channel->regions[r].bytes;
        sl_counter_set(&session->channel->stats->arena_bytes, session->channel->arena_bytes);
        send_message(session, &message, &fd, fd >= 0);
}

static void handle_admin(struct sl_sessions *s, struct sl_session *session, struct sl_message *asked)
{
        struct sl_registry *registry = s->options.registry;
        struct sl_error error;
        int r;

        asked->admin.model[sizeof(asked->admin.model) - 1] = 0;
        if (asked->type == SL_MESSAGE_UNLOAD)
                r = sl_registry_unload(registry, asked->admin.model, session->id, &error);
        else
                r = sl_registry_load(registry, asked->admin.model, asked->type == SL_MESSAGE_RELOAD, session->id, &error);
        if (r < 0)
                refuse(s, session, SL_MESSAGE_DONE, r, error.text);
}

static void handle(struct sl_sessions *s, struct sl_session *session, struct sl_message *message, const int *fds, uint32_t n_fds)
{
        bool admin = message->type == SL_MESSAGE_LOAD || message->type == SL_MESSAGE_UNLOAD || message->type == SL_MESSAGE_RELOAD;

        if (session->state == SESSION_NEW && message->type == SL_MESSAGE_HELLO)
                handle_hello(s, session, message, fds, n_fds);
        else if (session->state == SESSION_CLIENT && message->type == SL_MESSAGE_REGION)
                handle_region(s, session, message, fds, n_fds);
        else if (session->state == SESSION_ADMIN && admin)
                handle_admin(s, session, message);
        else if (admin && session->state != SESSION_NEW)
                refuse(s, session, SL_MESSAGE_DONE, -EPERM, "only an administrator may load and unload models");
        else
                leave(s, session, "client-ejected", "a message that its role does not allow");
}

/* Return: false when the session has ended. */
static bool receive(struct sl_sessions *s, struct sl_session *session)
{
        struct sl_message message;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds = 0;
        int r = sl_message_receive(session->socket, &message, fds, SL_MESSAGE_FDS_MAX, &n_fds, MSG_DONTWAIT);

        if (r == -EAGAIN)
                return false;
        if (r < 0) {
                leave(s, session, r == -EPIPE || r == -ECONNRESET ? "client-detached" : "client-ejected",
                        r == -EPIPE || r == -ECONNRESET ? NULL : "a message that makes no sense");
                return false;
        }
        handle(s, session, &message, fds, n_fds);
        for (uint32_t i = 0; i < n_fds; i++)
                close(fds[i]);
        return session->state != SESSION_FREE && session->state != SESSION_LEAVING;
}

static void read_turn(struct sl_sessions *s, struct sl_session *session)
{
        uint32_t n = 0;

        while (n < MESSAGES_AT_ONCE && receive(s, session))
                n++;
        session->unread = n == MESSAGES_AT_ONCE;
}

/* Those who have sent more than their turn allowed go on, each with one more turn. Return: true when there were such. */
static bool read_on(struct sl_sessions *s)
{
        bool more = false;

        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].unread) {
                        read_turn(s, &s->sessions[i]);
                        more = true;
                }
        return more;
}

bool sl_sessions_continue(struct sl_sessions *s)
{
        bool more = read_on(s);

        return populate(s) || more;
}

bool sl_sessions_owns(const struct sl_sessions *s, uint64_t token)
{
        return (token & SESSION_TOKEN) && (uint32_t)token < s->n_sessions;
}

void sl_sessions_happened(struct sl_sessions *s, uint64_t token, uint32_t what)
{
        struct sl_session *session = &s->sessions[(uint32_t)token];

        if (session->state == SESSION_FREE || session->state == SESSION_LEAVING || (token & ~PIDFD_TOKEN) != token_of(session))
                return;
        if (token & PIDFD_TOKEN) {
                leave(s, session, "client-died", NULL);
                return;
        }
        read_turn(s, session);
        if ((what & SL_WAIT_HANGUP) && session->state != SESSION_FREE && session->state != SESSION_LEAVING)
                leave(s, session, "client-detached", NULL);
}

static struct sl_session *find_free(struct sl_sessions *s)
{
        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].state == SESSION_FREE)
                        return &s->sessions[i];
        return NULL;
}

/* Who has connected and said nothing for longest makes room for others. */
static struct sl_session *evict_silent(struct sl_sessions *s)
{
        struct sl_session *oldest = NULL;

        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].state == SESSION_NEW && (!oldest || s->sessions[i].id < oldest->id))
                        oldest = &s->sessions[i];
        if (oldest)
                leave(s, oldest, "client-ejected", "no hello, and others want to connect");
        return oldest;
}

void sl_sessions_turn_away(struct sl_sessions *s, int fd, int status, const char *text)
{
        struct sl_session session = {.socket = fd, .pidfd = -1};
        struct sl_message hello;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds = 0;

        sl_peer_of(fd, &session.peer);
        report(s, 1, "attach-refused", &session, text);
        /* What lies there unread would end the connection as reset, before the answer. */
        if (sl_message_receive(fd, &hello, fds, SL_MESSAGE_FDS_MAX, &n_fds, MSG_DONTWAIT) == 0)
                while (n_fds > 0)
                        close(fds[--n_fds]);
        send_refusal(&session, SL_MESSAGE_WELCOME, status, text);
        close(fd);
}

void sl_sessions_accept(struct sl_sessions *s, int fd)
{
        struct sl_session *session = find_free(s);

        if (!session)
                session = evict_silent(s);
        if (!session) {
                sl_sessions_turn_away(s, fd, -EDQUOT, "all connections are taken, by clients, readers and administrators");
                return;
        }
        session->socket = fd;
        session->id = s->next_id++;
        session->state = SESSION_NEW;
        if (sl_peer_of(fd, &session->peer) < 0 || sl_wait_watch(s->options.wait, fd, token_of(session)) < 0) {
                free_session(s, session);
                return;
        }
        session->pidfd = sl_peer_pidfd(fd, &session->peer);
        if (session->pidfd >= 0 && sl_wait_watch(s->options.wait, session->pidfd, PIDFD_TOKEN | token_of(session)) < 0) {
                close(session->pidfd);
                session->pidfd = -1;
        }
        /* A HELLO that came with the connection may have been there before the watch. */
        sl_sessions_happened(s, token_of(session), 0);
}

struct sl_sessions *sl_sessions_free(struct sl_sessions *s)
{
        if (!s)
                return NULL;
        for (uint32_t i = 0; s->accounts && s->slots && i < s->n_sessions; i++)
                if (s->sessions[i].state != SESSION_FREE)
                        free_session(s, &s->sessions[i]);
        free(s->accounts);
        free(s->slots);
        free(s);
        return NULL;
}
