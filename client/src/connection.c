/* SPDX-License-Identifier: Apache-2.0 */
#include "connection.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define ANSWER_NS    (5 * SL_NS_PER_SECOND) /* a runtime that listens answers well within */
#define RETRY_NS     (1 * SL_NS_PER_MS)
#define RETRY_MAX_NS (20 * SL_NS_PER_MS)

void sl_connection_empty(struct sl_connection *ret_connection)
{
        memset(ret_connection, 0, sizeof(*ret_connection));
        ret_connection->socket = ret_connection->doorbell = ret_connection->completion = -1;
}

void sl_connection_close(struct sl_connection *connection)
{
        sl_cleanup_fd(&connection->socket);
        sl_cleanup_fd(&connection->doorbell);
        sl_cleanup_fd(&connection->completion);
        sl_mapping_free(&connection->catalogue);
        sl_mapping_free(&connection->request);
        sl_mapping_free(&connection->response);
        sl_connection_empty(connection);
}

void sl_connection_bye(const struct sl_connection *connection)
{
        const struct sl_message bye = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_BYE};

        if (connection->role == SL_ROLE_CLIENT && connection->socket >= 0)
                (void)send(connection->socket, &bye, SL_MESSAGE_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void sl_connection_break(struct sl_connection *connection)
{
        atomic_store(&connection->gone, true);
        if (connection->socket >= 0)
                shutdown(connection->socket, SHUT_RDWR);
}

bool sl_connection_check(struct sl_connection *connection)
{
        char byte;

        if (atomic_load_explicit(&connection->gone, memory_order_acquire))
                return true;

        ssize_t n = recv(connection->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return false;
        atomic_store(&connection->gone, true);
        return true;
}

/* ---- dialling ---- */

static int address_of(const char *runtime, struct sockaddr_un *ret_address, struct sl_error *error)
{
        int r = 0;

        memset(ret_address, 0, sizeof(*ret_address));
        ret_address->sun_family = AF_UNIX;
        if (!strchr(runtime, '/'))
                r = sl_socket_find(runtime, ret_address->sun_path, sizeof(ret_address->sun_path));
        else if (strlen(runtime) < sizeof(ret_address->sun_path))
                memcpy(ret_address->sun_path, runtime, strlen(runtime) + 1);
        else
                r = -ENAMETOOLONG;
        if (r == -ENAMETOOLONG)
                return sl_error_set(error, ENAMETOOLONG, "runtime \"%s\": its socket's path is longer than %zu bytes", runtime,
                        sizeof(ret_address->sun_path) - 1);
        if (r < 0)
                return sl_error_set(error, -r, "\"%s\" is no name of a runtime", runtime);
        return 0;
}

static void set_timeouts(int socket, uint64_t timeout_ns)
{
        struct timeval limit = {
                .tv_sec = (time_t)(timeout_ns / SL_NS_PER_SECOND),
                .tv_usec = (suseconds_t)(timeout_ns % SL_NS_PER_SECOND / SL_NS_PER_US),
        };

        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

static uint64_t answer_limit_ns(uint64_t timeout_ns)
{
        uint64_t day_ns = 86400 * SL_NS_PER_SECOND;

        if (timeout_ns < ANSWER_NS)
                return ANSWER_NS;
        return timeout_ns < day_ns ? timeout_ns : day_ns;
}

static int dial_once(const struct sockaddr_un *address, uint64_t timeout_ns, int *ret_socket)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        set_timeouts(fd, answer_limit_ns(timeout_ns));
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                return errno == EAGAIN ? -ETIMEDOUT : -errno;
        *ret_socket = sl_take_fd(&fd);
        return 0;
}

/*
 * A socket that is not there, or that a dead runtime left behind, may become one that listens; so may one whose folder its owner
 * has not opened yet. So may one that takes the connection and ends it without an answer: after a kill the kernel keeps what
 * io_uring held open for a moment longer than the process. An EACCES that the runtime answers is its last word.
 */
static bool may_come(int result, bool connected)
{
        return result == -ENOENT || result == -ECONNREFUSED || result == -EINTR || result == -EPIPE ||
               (result == -EACCES && !connected);
}

static void pause_ns(uint64_t duration_ns)
{
        struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)duration_ns};

        nanosleep(&pause, NULL);
}

/* What whoever finds no runtime does next. A socket's path does not say its name. */
static void advise(const struct sl_attachment *want, int result, char *ret_text, size_t bytes)
{
        bool is_named = strcmp(want->runtime, SL_SOCKET_NAME) != 0;

        ret_text[0] = 0;
        if ((result == -ENOENT || result == -ECONNREFUSED) && !strchr(want->runtime, '/'))
                snprintf(ret_text, bytes, "; to start it: starling serve MODELS%s%s", is_named ? " --name " : "",
                        is_named ? want->runtime : "");
}

static int dial(const struct sl_attachment *want, const struct sockaddr_un *address, int *ret_socket, struct sl_error *error)
{
        int r = dial_once(address, want->timeout_ns, ret_socket);

        char advice[192];

        advise(want, r, advice, sizeof(advice));
        if (r < 0)
                sl_error_set(error, -r, "runtime \"%s\" at %s: %s%s", want->runtime, address->sun_path, strerror(-r), advice);
        return r;
}

/* ---- asking ---- */

struct fd_set_received {
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n;
};

static void close_received(struct fd_set_received *received)
{
        for (uint32_t i = 0; i < received->n; i++)
                sl_cleanup_fd(&received->fds[i]);
        received->n = 0;
}

static int take_received(struct fd_set_received *received, uint32_t index)
{
        int fd = received->fds[index];

        received->fds[index] = -1;
        return fd;
}

/* A refusal's status must be an error that callers can tell from success. */
static int refusal(const struct sl_message *answer, struct sl_error *error)
{
        int code = answer->status < 0 && answer->status >= -4095 ? -answer->status : EPROTO;

        if (code == EPROTONOSUPPORT) /* no version in common */
                code = EPROTO;
        return sl_error_set(error, code, "%s", answer->text[0] ? answer->text : strerror(code));
}

static int receive_answer(
        int socket, uint32_t type, struct sl_message *ret_answer, struct fd_set_received *received, struct sl_error *error)
{
        int r = sl_message_receive(socket, ret_answer, received->fds, SL_MESSAGE_FDS_MAX, &received->n, 0);

        if (r == -EPIPE) /* a connection that was reset says so first, and gives its last message after that */
                r = sl_message_receive(socket, ret_answer, received->fds, SL_MESSAGE_FDS_MAX, &received->n, 0);
        if (r == -EAGAIN)
                return sl_error_set(error, ETIMEDOUT, "the runtime listens, but does not answer");
        if (r == -EPIPE)
                return sl_error_set(error, EPIPE, "the runtime has closed the connection");
        if (r < 0)
                return sl_error_set(error, r == -EBADMSG ? EPROTO : -r, "the runtime's answer: %s", strerror(-r));
        if (ret_answer->status != 0)
                return refusal(ret_answer, error);
        if (ret_answer->type != type)
                return sl_error_set(
                        error, EPROTO, "the runtime answers with a message of type %u, wants %u", ret_answer->type, type);
        return 0;
}

static int send_question(struct sl_connection *connection, const struct sl_message *question, int fd, struct sl_error *error)
{
        int r = sl_message_send(connection->socket, question, &fd, fd >= 0);

        return r < 0 ? sl_error_set(error, r == -EAGAIN ? ETIMEDOUT : -r, "the runtime takes no message: %s", strerror(-r)) : 0;
}

/*
 * A runtime that lives and does not answer in time, as one that is stopped, still owes the answer: whoever asks next gets that. Any
 * other failure but a refusal would have question and answer out of step from here on.
 */
static int await_answer(
        struct sl_connection *connection, uint32_t type, struct sl_message *ret_answer, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(close_received) struct fd_set_received received = {.n = 0};
        int r;

        ret_answer->status = 0;
        r = receive_answer(connection->socket, type, ret_answer, &received, error);
        connection->owes = r == -ETIMEDOUT && ret_answer->status == 0;
        if (r < 0 && ret_answer->status == 0 && !connection->owes)
                sl_connection_break(connection);
        if (r == 0)
                *ret_fd = received.n > 0 ? take_received(&received, 0) : -1;
        return r;
}

int sl_connection_ask(struct sl_connection *connection, const struct sl_message *question, int fd, uint32_t answer_type,
        struct sl_message *ret_answer, int *ret_fd, struct sl_error *error)
{
        int r;

        if (sl_connection_check(connection))
                return sl_error_set(error, EPIPE, "the runtime is gone");
        if (connection->owes) {
                r = await_answer(connection, answer_type, ret_answer, ret_fd, error);
                if (r == 0 || ret_answer->status == 0) /* else what was asked for before was refused, which is not this */
                        return r;
        }
        r = send_question(connection, question, fd, error);
        return r < 0 ? r : await_answer(connection, answer_type, ret_answer, ret_fd, error);
}

/* ---- hello and welcome ---- */

static struct sl_message hello_of(const struct sl_attachment *want)
{
        struct sl_message message = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_HELLO};

        message.hello.version_min = message.hello.version_max = SL_WIRE_VERSION;
        message.hello.features = SL_FEATURES;
        message.hello.role = want->role;
        message.hello.shape = want->shape;
        message.hello.arena_bytes = want->n_kept ? 0 : want->arena_bytes;
        message.hello.n_kept_regions = want->n_kept;
        sl_utf8_fit(want->label, message.hello.label, sizeof(message.hello.label));
        return message;
}

static int check_welcome(const struct sl_message *answer, uint32_t n_fds, const struct sl_attachment *want, struct sl_error *error)
{
        uint32_t fds_min = want->role == SL_ROLE_CLIENT ? SL_FD_COMPLETION : SL_FD_CATALOGUE + 1;

        if (answer->welcome.version != SL_WIRE_VERSION)
                return sl_error_set(error, EPROTO, "the runtime speaks version %u of the wire, this library version %u",
                        answer->welcome.version, SL_WIRE_VERSION);
        if (n_fds < fds_min)
                return sl_error_set(error, EPROTO, "the runtime's welcome brings %u descriptors, wants %u", n_fds, fds_min);
        if (answer->welcome.catalogue_bytes < sizeof(struct sl_catalogue))
                return sl_error_set(error, EPROTO, "the catalogue has %" PRIu64 " bytes, wants %zu",
                        answer->welcome.catalogue_bytes, sizeof(struct sl_catalogue));
        return 0;
}

static int check_header(const struct sl_connection *connection, const void *memory, uint64_t bytes, struct sl_error *error)
{
        const struct sl_channel_header *header = memory;
        const struct sl_channel_shape *shape = &connection->shape;

        if (header->magic != SL_WIRE_MAGIC || header->version != SL_WIRE_VERSION || header->n_queues != shape->n_queues ||
                header->depth != shape->depth || header->tensors != shape->tensors || header->bytes != bytes)
                return sl_error_set(error, EPROTO, "the channel's header does not say what the welcome said");
        return 0;
}

static int check_dispatchers(const struct sl_connection *connection, struct sl_error *error)
{
        for (uint32_t i = 0; i < connection->shape.n_queues; i++)
                if (connection->dispatcher_of_queue[i] >= SL_DISPATCHERS_MAX)
                        return sl_error_set(error, EPROTO, "queue pair %u is bound to dispatcher %u of at most %u", i,
                                connection->dispatcher_of_queue[i], SL_DISPATCHERS_MAX);
        return 0;
}

static int map_channel(struct sl_connection *connection, struct fd_set_received *received, struct sl_error *error)
{
        int r = sl_channel_offsets(&connection->shape, &connection->offsets);

        if (r < 0)
                return sl_error_set(error, EPROTO, "the runtime grants a channel of impossible shape");
        uint64_t request_bytes = connection->offsets.request_bytes, response_bytes = connection->offsets.response_bytes;

        r = sl_segment_map(received->fds[SL_FD_REQUEST], request_bytes, SL_SEAL_SHARED, 1, &connection->request, error);
        if (r == 0)
                r = sl_segment_map(
                        received->fds[SL_FD_RESPONSE], response_bytes, SL_SEAL_RESPONSE, 0, &connection->response, error);
        if (r == 0)
                r = check_header(connection, connection->request.base, request_bytes, error);
        if (r == 0)
                r = check_header(connection, connection->response.base, response_bytes, error);
        if (r == 0)
                r = check_dispatchers(connection, error);
        return r;
}

static int map_catalogue(struct sl_connection *connection, int fd, uint64_t bytes, struct sl_error *error)
{
        int r = sl_segment_map(fd, sl_align_up(bytes, SL_PAGE_BYTES), SL_SEAL_RESPONSE, 0, &connection->catalogue, error);

        if (r < 0)
                return r;

        const struct sl_catalogue *catalogue = connection->catalogue.base;

        if (catalogue->magic != SL_WIRE_MAGIC || catalogue->version != SL_WIRE_VERSION)
                return sl_error_set(error, EPROTO, "the catalogue is not of version %u of the wire", SL_WIRE_VERSION);
        return 0;
}

static void adopt_welcome(struct sl_connection *connection, const struct sl_message *answer)
{
        connection->shape = answer->welcome.shape;
        connection->client_id = answer->welcome.client_id;
        connection->arena_limit_bytes = answer->welcome.arena_limit_bytes;
        memcpy(connection->dispatcher_of_queue, answer->welcome.dispatcher_of_queue, sizeof(connection->dispatcher_of_queue));
}

/* Kept regions may come back or not; only a region that was not handed in is news. */
static void adopt_fresh(
        struct fd_set_received *received, const struct sl_message *answer, uint32_t n_kept, struct sl_fresh_region *ret_fresh)
{
        *ret_fresh = (struct sl_fresh_region){.fd = -1};
        if (n_kept > 0 || !answer->welcome.region_bytes || received->n <= SL_FD_REGIONS)
                return;
        ret_fresh->fd = take_received(received, SL_FD_REGIONS);
        ret_fresh->bytes = answer->welcome.region_bytes;
}

static int attach(struct sl_connection *connection, const struct sl_attachment *want, struct sl_fresh_region *ret_fresh,
        struct sl_error *error)
{
        SL_CLEANUP(close_received) struct fd_set_received received = {.n = 0};
        struct sl_message message = hello_of(want), answer;
        int r = sl_message_send(connection->socket, &message, NULL, 0);

        if (r < 0 && r != -EPIPE) /* a refusal may lie there although the runtime has closed already */
                return sl_error_set(error, -r, "the runtime takes no hello: %s", strerror(-r));
        r = receive_answer(connection->socket, SL_MESSAGE_WELCOME, &answer, &received, error);
        if (r == 0)
                r = check_welcome(&answer, received.n, want, error);
        if (r == 0)
                r = map_catalogue(connection, received.fds[SL_FD_CATALOGUE], answer.welcome.catalogue_bytes, error);
        connection->has_background = r == 0 && answer.welcome.features & SL_FEATURE_BACKGROUND;
        connection->has_tasks = r == 0 && answer.welcome.features & SL_FEATURE_TASKS;
        if (r < 0 || want->role != SL_ROLE_CLIENT)
                return r;
        adopt_welcome(connection, &answer);
        r = map_channel(connection, &received, error);
        if (r < 0)
                return r;
        connection->doorbell = take_received(&received, SL_FD_DOORBELL);
        if (received.n > SL_FD_COMPLETION && (answer.welcome.features & SL_FEATURE_COMPLETION_FD))
                connection->completion = take_received(&received, SL_FD_COMPLETION);
        adopt_fresh(&received, &answer, want->n_kept, ret_fresh);
        return 0;
}

/* What the hello has announced, in the order of the indices. */
static int hand_back(struct sl_connection *connection, const struct sl_attachment *want, struct sl_error *error)
{
        for (uint32_t i = 0; i < want->n_kept; i++) {
                struct sl_message message = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_REGION}, answer;
                SL_CLEANUP(sl_cleanup_fd) int extra = -1;

                message.region.bytes = want->kept_bytes[i];
                message.region.index = i;

                int r = sl_connection_ask(connection, &message, want->kept_fds[i], SL_MESSAGE_REGION, &answer, &extra, error);

                if (r < 0)
                        return r;
                if (answer.region.index != i)
                        return sl_error_set(error, EPROTO, "region %u came back as region %u", i, answer.region.index);
        }
        return 0;
}

static int open_once(const struct sl_attachment *want, const struct sockaddr_un *address, struct sl_connection *ret_connection,
        struct sl_fresh_region *ret_fresh, bool *ret_connected, struct sl_error *error)
{
        SL_CLEANUP(sl_connection_close) struct sl_connection connection;
        struct sl_fresh_region fresh = {.fd = -1};

        sl_connection_empty(&connection);
        connection.role = want->role;

        int r = dial(want, address, &connection.socket, error);

        *ret_connected = r == 0;
        if (r < 0)
                return r;
        r = attach(&connection, want, &fresh, error);
        if (r == 0)
                r = hand_back(&connection, want, error);
        if (r < 0) {
                sl_cleanup_fd(&fresh.fd);
                return sl_error_prefix(error, r, "runtime \"%s\"", want->runtime);
        }
        /* What an administrator asks for may take minutes; everything else is answered at once or not at all. */
        set_timeouts(connection.socket, want->role == SL_ROLE_ADMIN ? 0 : ANSWER_NS);
        *ret_connection = connection;
        *ret_fresh = fresh;
        sl_connection_empty(&connection);
        return 0;
}

int sl_connection_open(const struct sl_attachment *want, struct sl_connection *ret_connection, struct sl_fresh_region *ret_fresh,
        struct sl_error *error)
{
        struct sockaddr_un address;
        uint64_t start_ns = sl_clock_ns(), retry_ns = RETRY_NS;
        int r = address_of(want->runtime, &address, error);

        if (r < 0)
                return r;
        for (;;) {
                bool connected;

                r = open_once(want, &address, ret_connection, ret_fresh, &connected, error);
                if (r == 0 || !may_come(r, connected) || sl_clock_ns() - start_ns >= want->timeout_ns)
                        return r;
                pause_ns(retry_ns);
                retry_ns = retry_ns * 2 < RETRY_MAX_NS ? retry_ns * 2 : RETRY_MAX_NS;
        }
}
