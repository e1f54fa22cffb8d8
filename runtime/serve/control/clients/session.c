/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fields.h"
#include "departed.h"
#include "doorbell.h"
#include "draft.h"
#include "hello.h"
#include "memory.h"
#include "reaper.h"
#include "region.h"
#include "registry.h"
#include "session_state.h"
#include "stats.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Two tokens of a session: its socket and its pidfd. */
#define SESSION_TOKEN (1ull << 61)
#define PIDFD_TOKEN   (1ull << 60)

/* Connections beyond the clients: readers, administrators, and those that have not said HELLO. */
#define EXTRA_SESSIONS 64u

/* Messages of one session between two looks at everything else: about 100 us. */
#define MESSAGES_AT_ONCE 16u

/* Refusals of one session that are worth a line each. */
#define REFUSALS_LOGGED 16u

uint32_t sl_sessions_max(const struct sl_runtime_options *runtime)
{
        return runtime->clients_max + EXTRA_SESSIONS;
}

int sl_sessions_new(const struct sl_sessions_options *options, struct sl_sessions **ret_sessions)
{
        uint32_t n = sl_sessions_max(options->runtime);
        struct sl_sessions *s = calloc(1, sizeof(*s) + n * sizeof(s->sessions[0]));

        if (!s)
                return -ENOMEM;
        s->options = *options;
        s->n_sessions = n;
        s->next_id = 1;
        s->options.memory->reclaim = sl_departed_reclaim;
        s->options.memory->reclaim_context = s;
        s->slots = calloc(options->runtime->clients_max, sizeof(*s->slots));
        s->numbers = calloc(options->runtime->clients_max, sizeof(*s->numbers));
        if (!s->slots || !s->numbers) {
                sl_sessions_free(s);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++)
                s->sessions[i] = (struct sl_session){.number = i, .socket = -1, .pidfd = -1, .region_fd = -1};
        *ret_sessions = s;
        return 0;
}

static void report(struct sl_sessions *s, int level, const char *event, const struct sl_session *session, const char *text)
{
        struct sl_fields fields = {0};

        sl_fields_add_number(&fields, "client", (long long)session->id);
        sl_fields_add_number(&fields, "uid", session->peer.uid);
        sl_fields_add_number(&fields, "pid", session->peer.pid);
        sl_fields_add(&fields, "label", session->label);
        if (text)
                sl_fields_add(&fields, "cause", text);
        sl_account_log(s->options.accounts, session->account, level, event, fields.text);
}

/* Who only reads the catalogue comes and goes with each command: info for an operator who debugs. */
static int level_of(const struct sl_session *session)
{
        return session->state == SESSION_READER ? 3 : 2;
}

/* ---- going ---- */

/* Where fds may lie unread the kernel releases them with the socket, and whoever made them says how long that takes. */
static void release_socket(struct sl_sessions *s, int socket, bool is_passing)
{
        if (socket >= 0 && is_passing)
                sl_reaper_end(s->options.reaper, socket);
        else if (socket >= 0)
                close(socket);
}

static void free_session(struct sl_sessions *s, struct sl_session *session)
{
        struct sl_channel *channel = session->channel;

        if (channel) {
                session->account->regions -= sl_channel_count_regions(channel);
                if (!s->ending)
                        sl_departed_keep(s, session);
                sl_memory_give(s->options.memory, SL_MEMORY_CHANNELS, sl_channel_bytes(&channel->shape));
                session->account->arena_bytes -= channel->arena_bytes;
                if (--session->account->clients == 0)
                        s->numbers[session->account->user.number] = false;
                s->n_clients--;
                s->slots[channel->slot] = false;
                sl_stats_client_remove(s->options.stats, channel->stats);
                sl_channel_free(channel);
        }
        release_socket(s, session->socket, session->is_passing);
        sl_cleanup_fd(&session->pidfd);
        sl_peer_deinit(&session->peer);
        sl_draft_free(session->draft);
        if (session->state == SESSION_READER) {
                session->account->readers--;
                s->n_readers--;
        }
        sl_account_release(session->account);
        s->n_connected--;
        if (session->region_fd >= 0)
                sl_reaper_close(s->options.reaper, session->region_fd);
        *session = (struct sl_session){.number = session->number, .socket = -1, .pidfd = -1, .region_fd = -1};
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
        report(s, text ? 1 : level_of(session), event, session, text);
        unwatch(s, session);
        if (session->state != SESSION_CLIENT) {
                free_session(s, session);
                return;
        }
        session->state = SESSION_LEAVING;
        release_socket(s, session->socket, session->is_passing);
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

static struct sl_session *find_admin(struct sl_sessions *s, uint64_t id)
{
        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].state == SESSION_ADMIN && s->sessions[i].id == id)
                        return &s->sessions[i];
        return NULL;
}

void sl_sessions_answer(struct sl_sessions *s, uint64_t asker, int status, const char *text)
{
        struct sl_message message = {.type = SL_MESSAGE_DONE, .status = status};
        struct sl_session *session = find_admin(s, asker);

        if (!session)
                return;
        snprintf(message.text, sizeof(message.text), "%s", text);
        send_message(session, &message, NULL, 0);
}

void sl_sessions_refuse(struct sl_sessions *s, uint64_t asker, int status, const char *text)
{
        struct sl_session *session = find_admin(s, asker);

        if (session)
                refuse(s, session, SL_MESSAGE_DONE, status, text);
}

static void handle_hello(struct sl_sessions *s, struct sl_session *session, const struct sl_message *hello)
{
        struct sl_error error;
        int r = sl_hello_admit(s, session, hello, &error);

        if (r < 0) {
                send_refusal(session, SL_MESSAGE_WELCOME, r, error.text);
                leave(s, session, "attach-refused", error.text);
                return;
        }
        report(s, level_of(session), "client-attached", session, NULL);
}

/* ---- what may follow ---- */

/* One less that is due; after the last one nobody may pass fds any more. */
static int adopt_region(struct sl_sessions *s, struct sl_session *session, int fd, struct sl_error *error)
{
        if (--session->regions_due == 0)
                sl_socket_set_passing(session->socket, false);
        return sl_region_adopt(s, session, fd, error);
}

static bool has_hung_up(const struct sl_session *session)
{
        struct pollfd socket = {.fd = session->socket, .events = POLLRDHUP};

        return session->state == SESSION_CLIENT && poll(&socket, 1, 0) == 1 && socket.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/*
 * Of a client that has connected anew jobs of its earlier session may be under way, and they write where its next requests will: it
 * gets the region when those have ended. That the session has gone may not have been heard of yet.
 */
static bool is_left_soon(struct sl_sessions *s, const struct sl_session *session, int fd)
{
        bool found = false;
        struct stat status;

        if (fstat(fd, &status) < 0)
                return false;
        for (uint32_t i = 0; i < s->n_sessions; i++) {
                struct sl_session *other = &s->sessions[i];

                if (other == session || !sl_session_has_region(other, status.st_ino))
                        continue;
                if (has_hung_up(other))
                        leave(s, other, "client-detached", NULL);
                found |= other->state == SESSION_LEAVING;
        }
        return found;
}

static void handle_region(struct sl_sessions *s, struct sl_session *session, const struct sl_message *asked, int kept_fd)
{
        struct sl_message message = {.type = SL_MESSAGE_REGION};
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_error error;
        int r = kept_fd >= 0 ? adopt_region(s, session, kept_fd, &error)
                             : sl_region_create(s, session, asked->region.bytes, &fd, &error);

        if (r == -EBADMSG) {
                leave(s, session, "client-ejected", error.text);
                return;
        }
        if (r < 0) {
                refuse(s, session, SL_MESSAGE_REGION, r, error.text);
                return;
        }
        message.region.index = (uint32_t)r;
        message.region.bytes = session->channel->regions[r].bytes;
        send_message(session, &message, &fd, fd >= 0);
}

static void handle_release(struct sl_sessions *s, struct sl_session *session, uint32_t index)
{
        struct sl_error error;
        int r = sl_region_check(session, index, &error);

        if (r < 0) {
                refuse(s, session, SL_MESSAGE_REGION, r, error.text);
                return;
        }
        session->releasing = index + 1;
        sl_dispatcher_command(s->options.dispatcher,
                &(struct sl_command){.kind = SL_COMMAND_RELEASE_REGION, .pointer = session->channel, .index = index});
}

/* Also of a session that leaves meanwhile, which hears nothing of it. */
static void region_released(struct sl_sessions *s, struct sl_session *session, int status)
{
        struct sl_message message = {.type = SL_MESSAGE_REGION};
        char text[80];

        message.region.index = session->releasing - 1;
        session->releasing = 0;
        if (status == 0)
                sl_region_drop(s, session, message.region.index);
        if (session->state == SESSION_LEAVING)
                return;
        snprintf(text, sizeof(text), "arena region %u is named by a request in flight", message.region.index);
        if (status < 0)
                refuse(s, session, SL_MESSAGE_REGION, status, text);
        else
                send_message(session, &message, NULL, 0);
}

static void handle_admin(struct sl_sessions *s, struct sl_session *session, struct sl_message *asked)
{
        struct sl_registry *registry = s->options.registry;
        struct sl_error error;
        int r;

        if (asked->type == SL_MESSAGE_UNLOAD)
                r = sl_registry_unload(registry, asked->model, session->id, &error);
        else
                r = sl_registry_load(registry, asked->model, asked->type == SL_MESSAGE_RELOAD, session->id, &error);
        if (r < 0)
                refuse(s, session, SL_MESSAGE_DONE, r, error.text);
}

/* It is answered at once: the client looks at the catalogue for what comes of it. */
static void handle_open(struct sl_sessions *s, struct sl_session *session, const struct sl_message *asked)
{
        struct sl_message done = {.type = SL_MESSAGE_DONE};
        struct sl_error error;
        int r = sl_registry_open(s->options.registry, asked->model, session->peer.uid, &error);

        if (r < 0)
                refuse(s, session, SL_MESSAGE_DONE, r, error.text);
        else
                send_message(session, &done, NULL, 0);
}

/* An allocation comes worker by worker; what is wrong with one is known at once, and ends the whole. */
static void handle_allot(struct sl_sessions *s, struct sl_session *session, struct sl_message *asked)
{
        struct sl_message done = {.type = SL_MESSAGE_DONE};
        struct sl_error error;
        int r;

        r = sl_draft_allot(&session->draft, sl_registry_worker_cores(s->options.registry), asked->model, asked->text,
                asked->allot.batch, &error);
        if (r == 0) {
                send_message(session, &done, NULL, 0);
                return;
        }
        session->draft = sl_draft_free(session->draft);
        refuse(s, session, SL_MESSAGE_DONE, r, error.text);
}

static void handle_apply(struct sl_sessions *s, struct sl_session *session)
{
        struct sl_error error;
        int r = sl_registry_apply(s->options.registry, sl_take(session->draft), session->id, &error);

        if (r < 0)
                refuse(s, session, SL_MESSAGE_DONE, r, error.text);
}

static bool is_administration(uint32_t type)
{
        return type == SL_MESSAGE_LOAD || type == SL_MESSAGE_UNLOAD || type == SL_MESSAGE_RELOAD || type == SL_MESSAGE_ALLOT ||
               type == SL_MESSAGE_APPLY;
}

/* @fd: taken where the region is not free yet. */
static void handle_kept_region(struct sl_sessions *s, struct sl_session *session, int *fd)
{
        if (is_left_soon(s, session, *fd))
                session->region_fd = sl_take_fd(fd);
        else
                handle_region(s, session, NULL, *fd);
}

static void handle(struct sl_sessions *s, struct sl_session *session, struct sl_message *message, int *fd)
{
        bool admin = is_administration(message->type);

        if (session->state == SESSION_NEW && message->type == SL_MESSAGE_HELLO)
                handle_hello(s, session, message);
        else if (session->state == SESSION_CLIENT && message->type == SL_MESSAGE_REGION && *fd >= 0)
                handle_kept_region(s, session, fd);
        else if (session->state == SESSION_CLIENT && message->type == SL_MESSAGE_REGION)
                handle_region(s, session, message, -1);
        else if (session->state == SESSION_CLIENT && message->type == SL_MESSAGE_RELEASE && *fd < 0)
                handle_release(s, session, message->region.index);
        else if (session->state == SESSION_CLIENT && message->type == SL_MESSAGE_OPEN && *fd < 0)
                handle_open(s, session, message);
        else if (session->state == SESSION_CLIENT && message->type == SL_MESSAGE_BYE)
                session->bye = true;
        else if (session->state == SESSION_ADMIN && message->type == SL_MESSAGE_ALLOT)
                handle_allot(s, session, message);
        else if (session->state == SESSION_ADMIN && message->type == SL_MESSAGE_APPLY)
                handle_apply(s, session);
        else if (session->state == SESSION_ADMIN && admin)
                handle_admin(s, session, message);
        else if (admin && session->state != SESSION_NEW)
                refuse(s, session, SL_MESSAGE_DONE, -EPERM, "only an administrator may load, unload and move models");
        else
                leave(s, session, "client-ejected", "a message that its role does not allow");
}

static void leave_after(struct sl_sessions *s, struct sl_session *session, int result)
{
        if (result == -EPIPE || result == -ECONNRESET)
                leave(s, session, "client-detached", NULL);
        else
                leave(s, session, "client-ejected",
                        result == -E2BIG ? "descriptors that were not asked for" : "a malformed message");
}

/* A region that had to wait comes before what has been sent behind it. */
static int next_message(struct sl_session *session, struct sl_message *ret_message, int *ret_fd)
{
        if (session->region_fd < 0)
                return sl_message_receive_guarded(session->socket, ret_message, session->regions_due ? ret_fd : NULL);
        *ret_message = (struct sl_message){.type = SL_MESSAGE_REGION};
        *ret_fd = sl_take_fd(&session->region_fd);
        return 0;
}

/* Return: false when the session has ended, or nothing more of it may be read now. */
static bool receive_message(struct sl_sessions *s, struct sl_session *session)
{
        struct sl_message message;
        int fd = -1;
        int r = next_message(session, &message, &fd);

        if (r == 0)
                handle(s, session, &message, &fd);
        else if (r != -EAGAIN)
                leave_after(s, session, r);
        if (fd >= 0)
                sl_reaper_close(s->options.reaper, fd);
        return r == 0 && session->region_fd < 0 && !session->releasing && session->state != SESSION_FREE &&
               session->state != SESSION_LEAVING;
}

static void read_turn(struct sl_sessions *s, struct sl_session *session)
{
        uint32_t n = 0;

        while (!session->releasing && n < MESSAGES_AT_ONCE && receive_message(s, session))
                n++;
        session->unread = n == MESSAGES_AT_ONCE;
}

/* Who has waited for a region of the one that has gone. */
static void resume(struct sl_sessions *s)
{
        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].region_fd >= 0 && s->sessions[i].state == SESSION_CLIENT)
                        read_turn(s, &s->sessions[i]);
}

void sl_sessions_event(struct sl_sessions *s, const struct sl_event *event)
{
        struct sl_session *session = session_of(s, event->pointer);

        if (!session)
                return;
        if (event->kind == SL_EVENT_CHANNEL_BROKEN) {
                leave(s, session, "client-ejected", event->text);
        } else if (event->kind == SL_EVENT_REGION_RELEASED) {
                region_released(s, session, event->status);
                if (session->state == SESSION_CLIENT)
                        read_turn(s, session);
        } else if (event->kind == SL_EVENT_CHANNEL_GONE) {
                free_session(s, session);
                resume(s);
        }
}

bool sl_sessions_continue(struct sl_sessions *s)
{
        bool more = false;

        sl_departed_look(s);
        for (uint32_t i = 0; i < s->n_sessions; i++)
                if (s->sessions[i].unread) {
                        read_turn(s, &s->sessions[i]);
                        more = true;
                }
        return more;
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

/* Who has connected and said nothing for longest makes room for others; @account: of this user, NULL: of all. */
static struct sl_session *evict_silent(struct sl_sessions *s, const struct sl_account *account)
{
        struct sl_session *oldest = NULL;

        for (uint32_t i = 0; i < s->n_sessions; i++) {
                struct sl_session *session = &s->sessions[i];

                if (session->state == SESSION_NEW && (!account || session->account == account) &&
                        (!oldest || session->id < oldest->id))
                        oldest = session;
        }
        if (oldest)
                leave(s, oldest, "client-ejected", "no hello, and others want to connect");
        return oldest;
}

void sl_sessions_turn_away(struct sl_sessions *s, int fd, int status, const char *text)
{
        struct sl_session session = {.socket = fd, .pidfd = -1};
        struct sl_message hello;

        if (sl_peer_of(fd, &session.peer) == 0)
                session.account = sl_account_take(s->options.accounts, session.peer.uid);
        report(s, 1, "attach-refused", &session, text);
        /* What lies there unread would end the connection as reset, before the answer. */
        sl_message_receive_guarded(fd, &hello, NULL);
        send_refusal(&session, SL_MESSAGE_WELCOME, status, text);
        if (session.account)
                sl_account_release(session.account);
        sl_peer_deinit(&session.peer);
        release_socket(s, fd, sl_socket_is_passing(fd));
}

/* Beyond its share a user gives up a connection of its own that has said nothing. Return: NULL with the cause. */
static struct sl_session *make_room(struct sl_sessions *s, uid_t uid, struct sl_error *error)
{
        const struct sl_account *account = sl_account_find(s->options.accounts, uid);
        uint32_t held = account ? account->connections : 0;
        struct sl_session *session;

        if (sl_share_grants(s->n_sessions, s->n_connected, held))
                return find_free(s);
        session = evict_silent(s, held ? account : NULL);
        if (session)
                return session;
        if (held)
                sl_error_set(error, EDQUOT, "user %u has %u of %u connections, which is its share while %u are free", uid, held,
                        s->n_sessions, s->n_sessions - s->n_connected);
        else
                sl_error_set(error, EDQUOT, "all %u connections are taken, by clients, readers and administrators of other users",
                        s->n_sessions);
        return NULL;
}

void sl_sessions_accept(struct sl_sessions *s, int fd)
{
        struct sl_session *session;
        struct sl_error error;
        struct sl_peer peer;

        if (sl_peer_of(fd, &peer) < 0) {
                release_socket(s, fd, sl_socket_is_passing(fd));
                return;
        }
        session = make_room(s, peer.uid, &error);
        if (!session) {
                sl_peer_deinit(&peer);
                sl_sessions_turn_away(s, fd, -EDQUOT, error.text);
                return;
        }
        session->socket = fd;
        session->is_passing = sl_socket_is_passing(fd);
        session->id = s->next_id++;
        session->state = SESSION_NEW;
        session->peer = peer;
        session->account = sl_account_take(s->options.accounts, peer.uid);
        s->n_connected++;
        if (sl_wait_watch(s->options.wait, fd, token_of(session)) < 0) {
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
        s->ending = true;
        sl_departed_free(s);
        for (uint32_t i = 0; s->slots && s->numbers && i < s->n_sessions; i++)
                if (s->sessions[i].state != SESSION_FREE)
                        free_session(s, &s->sessions[i]);
        free(s->slots);
        free(s->numbers);
        free(s);
        return NULL;
}
