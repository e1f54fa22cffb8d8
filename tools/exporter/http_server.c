/* SPDX-License-Identifier: Apache-2.0 */
#include "http_server.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES_MAX (16u << 10) /* of a request's head */
#define CONNECTIONS_FREE  8u          /* kept for who comes next */

struct connection {
        int fd; /* -1: none; of libmicrohttpd */
        uint64_t asked_ns;
};

/* An answer that all requests for it have which are met in one turn of the loop. */
struct shared_answer {
        struct MHD_Response *response; /* NULL: nobody has asked yet */
        unsigned status;
};

struct http_server {
        struct MHD_Daemon *daemon;
        struct site *site;
        int listen_fd;    /* after http_server_quiesce() */
        uint32_t answers; /* under way */
        struct connection connections[HTTP_CONNECTIONS_MAX];
        struct shared_answer shared[SITE_PAGES];
};

/* ---- connections ---- */

static void cut_off_oldest(struct http_server *server)
{
        struct connection *oldest = NULL;
        uint32_t n = 0;

        for (uint32_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
                struct connection *connection = &server->connections[i];

                if (connection->fd < 0)
                        continue;
                n++;
                if (!oldest || connection->asked_ns < oldest->asked_ns)
                        oldest = connection;
        }
        if (n <= HTTP_CONNECTIONS_MAX - CONNECTIONS_FREE)
                return;
        shutdown(oldest->fd, SHUT_RDWR); /* its end is met as that of any other */
        oldest->asked_ns = UINT64_MAX;
}

static struct connection *take_connection(struct http_server *server, struct MHD_Connection *from)
{
        for (uint32_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
                if (server->connections[i].fd < 0) {
                        server->connections[i].fd = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
                        server->connections[i].asked_ns = sl_clock_ns();
                        return &server->connections[i];
                }
        return NULL;
}

static void on_connection(
        void *context, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode what)
{
        struct http_server *server = context;

        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
                *socket_context = take_connection(server, connection);
                cut_off_oldest(server);
        } else if (*socket_context) {
                ((struct connection *)*socket_context)->fd = -1;
        }
}

static void touch_connection(struct MHD_Connection *from)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        struct connection *connection = info ? info->socket_context : NULL;

        if (connection && connection->asked_ns != UINT64_MAX)
                connection->asked_ns = sl_clock_ns();
}

/* ---- requests ---- */

static struct MHD_Response *response_of(struct site_answer *answer)
{
        struct MHD_Response *response =
                MHD_create_response_from_buffer(answer->body.used, answer->body.bytes, MHD_RESPMEM_MUST_FREE);

        if (!response)
                return NULL;
        answer->body.bytes = NULL;
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Content-Security-Policy", answer->policy);
        MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        if (answer->allow)
                MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
        return response;
}

/* NULL: no memory. */
static struct MHD_Response *find_response(struct http_server *server, enum site_page page, unsigned *ret_status)
{
        struct shared_answer *shared = &server->shared[page];
        struct site_answer answer;

        if (!shared->response) {
                site_answer(server->site, page, &answer);
                shared->response = response_of(&answer);
                shared->status = answer.status;
                text_deinit(&answer.body);
        }
        *ret_status = shared->status;
        return shared->response;
}

/* Those who are answered still keep theirs. */
static void forget_responses(struct http_server *server)
{
        for (int page = 0; page < SITE_PAGES; page++)
                if (server->shared[page].response) {
                        MHD_destroy_response(server->shared[page].response);
                        server->shared[page].response = NULL;
                }
}

static enum MHD_Result send_answer(
        struct http_server *server, struct MHD_Connection *connection, const char *url, const char *method)
{
        const struct site_request request = {
                .method = method,
                .path = url,
                .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
                .accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
        };
        struct MHD_Response *response;
        unsigned status;

        touch_connection(connection);
        response = find_response(server, site_find(server->site, &request), &status);
        return response ? MHD_queue_response(connection, status, response) : MHD_NO;
}

/*
 * Called with the head of a request, with each part of its body, and when it is whole. What may have no body is answered then, and
 * the connection goes on; all else is refused at its head, and nothing more is read.
 */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
        const char *version, const char *body, size_t *body_bytes, void **request_context)
{
        struct http_server *server = context;
        bool is_head = !*request_context;

        (void)version;
        (void)body;
        if (is_head && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)) {
                *request_context = server;
                return MHD_YES;
        }
        if (*body_bytes && !is_head) {
                *body_bytes = 0;
                return MHD_YES;
        }
        *request_context = &server->answers;
        server->answers++;
        return send_answer(server, connection, url, method);
}

static void on_completed(
        void *context, struct MHD_Connection *connection, void **request_context, enum MHD_RequestTerminationCode code)
{
        struct http_server *server = context;

        (void)connection;
        (void)code;
        if (*request_context == &server->answers)
                server->answers--;
}

/* What strangers send wrong is no matter of the log. */
static void no_log(void *context, const char *format, va_list arguments)
{
        (void)context;
        (void)format;
        (void)arguments;
}

/* ---- the server ---- */

int http_server_start(int listen_fd, struct site *site, struct http_server **ret_server, struct sl_error *error)
{
        struct http_server *server = calloc(1, sizeof(*server));

        if (!server) {
                close(listen_fd);
                return sl_error_set(error, ENOMEM, "no memory");
        }
        server->site = site;
        server->listen_fd = -1;
        for (uint32_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
                server->connections[i].fd = -1;
        server->daemon = MHD_start_daemon(MHD_NO_FLAG, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL,
                MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES_MAX,
                MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
                on_completed, server, MHD_OPTION_END);
        if (!server->daemon) {
                close(listen_fd);
                free(server);
                return sl_error_set(error, EIO, "libmicrohttpd %s does not start", MHD_get_version());
        }
        *ret_server = server;
        return 0;
}

/* The shorter of both; -1: there is none. */
static int64_t shorter_wait(const struct http_server *server, int wait_ms)
{
        MHD_UNSIGNED_LONG_LONG ms;

        if (MHD_get_timeout(server->daemon, &ms) != MHD_YES || ms > INT_MAX)
                return wait_ms;
        return wait_ms >= 0 && wait_ms < (int)ms ? wait_ms : (int64_t)ms;
}

/*
 * With select(), since libmicrohttpd's epoll is told of data and of the other side's end at once by one edge, of which it then
 * takes the data alone. There are few descriptors.
 */
bool http_server_run(struct http_server *server, int fd, int wait_ms)
{
        fd_set readable, writable, broken;
        MHD_socket max = fd;
        struct timeval wait;
        int64_t ms;

        FD_ZERO(&readable);
        FD_ZERO(&writable);
        FD_ZERO(&broken);
        MHD_get_fdset(server->daemon, &readable, &writable, &broken, &max);
        FD_SET(fd, &readable);
        ms = shorter_wait(server, wait_ms);
        wait = (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
        if (select(max + 1, &readable, &writable, &broken, ms < 0 ? NULL : &wait) < 0)
                return false;
        MHD_run_from_select(server->daemon, &readable, &writable, &broken);
        forget_responses(server);
        return FD_ISSET(fd, &readable);
}

void http_server_quiesce(struct http_server *server)
{
        server->listen_fd = MHD_quiesce_daemon(server->daemon);
}

bool http_server_is_answering(const struct http_server *server)
{
        return server->answers > 0;
}

struct http_server *http_server_stop(struct http_server *server)
{
        if (!server)
                return NULL;
        MHD_stop_daemon(server->daemon);
        if (server->listen_fd >= 0)
                close(server->listen_fd);
        free(server);
        return NULL;
}
