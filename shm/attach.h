/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attach socket: SOCK_SEQPACKET under $XDG_RUNTIME_DIR or /run/starling. One packet is one message; fds travel beside it
 * (SCM_RIGHTS). The connection is the client's lease: its end of file is the end of everything that the runtime holds for it, and
 * the other way round. Requests never travel here.
 *
 *     client                                       runtime
 *     HELLO {versions, features, role, shape} -->  check the peer (SO_PEERCRED) and quotas
 *                                             <--  WELCOME {version, features, id, shape} + request, response, catalogue fds,
 *                                                  doorbell and completion bell, arena regions
 *     REGION {bytes}                          -->
 *                                             <--  REGION {index, bytes} + fd
 *     REGION {} + fd                          -->  a region of an earlier runtime: as many as HELLO announced, and no other
 *                                                  message carries fds; the answer comes when no session before has it
 *                                             <--  REGION {index, bytes}
 *     RELEASE {index}                         -->  a region that it wants no more, when no request in flight names it; its index is
 *                                                  free for a later one
 *                                             <--  REGION {index, bytes 0}
 *     BYE                                     -->  it leaves and will not hand its regions back; there is no answer
 *     OPEN model                              -->  a model that is loaded on request: somebody wants to open it
 *                                             <--  DONE {status, text}, at once; the catalogue says what comes of it
 *     LOAD | UNLOAD | RELOAD model            -->  administrator's role only
 *                                             <--  DONE {status, text}
 *     ALLOT {batch} model, device             -->  a worker of the allocation that the next APPLY asks for
 *                                             <--  DONE {status, text}
 *     APPLY                                   -->  the workers that were allotted, or those of the configuration where none were
 *                                             <--  DONE {status, text}, when they serve and the others have left
 *
 * Every answer carries status: 0, or -errno with one line of text. A refused HELLO is answered and the socket closed.
 * Messages are plain structs in host byte order: both ends are one machine. A packet has SL_MESSAGE_BYTES, and behind them the name
 * of a model where there is one. Those bytes are the same in all versions, so that two which do not know each other can say so.
 * Any thread; no state.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>
#include <sys/types.h>

struct sl_error;

#define SL_SOCKET_NAME     "starling" /* default runtime name: the socket is <dir>/NAME.sock */
#define SL_MESSAGE_FDS_MAX 24u
#define SL_MESSAGE_TEXT    480u

enum sl_message_type {
        SL_MESSAGE_HELLO = 1,
        SL_MESSAGE_WELCOME,
        SL_MESSAGE_REGION,
        SL_MESSAGE_LOAD,
        SL_MESSAGE_UNLOAD,
        SL_MESSAGE_RELOAD,
        SL_MESSAGE_DONE,
        SL_MESSAGE_BYE,
        SL_MESSAGE_ALLOT,
        SL_MESSAGE_APPLY,
        SL_MESSAGE_RELEASE,
        SL_MESSAGE_OPEN,
};

enum sl_role {
        SL_ROLE_READER = 1, /* catalogue and stats only: no queue pairs, no arena */
        SL_ROLE_CLIENT = 2, /* submits requests */
        SL_ROLE_ADMIN = 3,  /* loads and unloads; no queue pairs */
};

enum {
        SL_FEATURE_COMPLETION_FD = 1 << 0,
        SL_FEATURE_TASKS = 1 << 1,      /* the page of tasks ends the catalogue's memfd (task_page.h) */
        SL_FEATURE_BACKGROUND = 1 << 2, /* the runtime takes requests of class SL_BACKGROUND */
        SL_FEATURES = SL_FEATURE_COMPLETION_FD | SL_FEATURE_TASKS | SL_FEATURE_BACKGROUND,
};

struct sl_message {
        uint64_t magic; /* SL_WIRE_MAGIC */
        uint32_t type;  /* enum sl_message_type */
        int32_t status; /* of an answer: 0 or -errno, with text */
        union {
                struct {
                        uint32_t version_min, version_max;
                        uint64_t features; /* that the client knows */
                        uint32_t role;     /* enum sl_role */
                        struct sl_channel_shape shape;
                        uint64_t arena_bytes;    /* of the first region if none is handed back; 0: none yet */
                        uint32_t n_kept_regions; /* that follow as REGION messages, each with its fd, in the order of their indices
                                                  */
                        char label[32];          /* for the log */
                } hello;
                struct {
                        uint32_t version;
                        uint64_t features; /* known to both */
                        uint64_t client_id;
                        struct sl_channel_shape shape; /* as granted */
                        uint64_t catalogue_bytes;
                        uint64_t arena_limit_bytes; /* quota of all regions */
                        uint32_t dispatcher_of_queue[SL_QUEUES_MAX];
                        uint64_t region_bytes; /* of the first region; 0: none was made */
                } welcome;
                struct {
                        uint64_t bytes; /* asked for, granted; 0 of one that has been released */
                        uint32_t index; /* granted, to be released, released */
                } region;
                struct {
                        uint32_t batch; /* and in text the device */
                } allot;
        };
        char text[SL_MESSAGE_TEXT];      /* NUL-terminated: the cause when status is not 0, or what an admin asked for */
        char model[SL_MODEL_NAME_BYTES]; /* NUL-terminated, and sent as far as it goes; "": none, and nothing is sent of it */
};
#define SL_MESSAGE_BYTES offsetof(struct sl_message, model)
static_assert(SL_MESSAGE_BYTES == 816, "as long as in any version");

/* Fds beside a WELCOME, in this order; regions follow. A reader or admin gets the catalogue alone. */
enum { SL_FD_CATALOGUE, SL_FD_REQUEST, SL_FD_RESPONSE, SL_FD_DOORBELL, SL_FD_COMPLETION, SL_FD_REGIONS };

/*
 * Path of the socket of runtime @name: $STARLING_SOCKET_DIR, else $XDG_RUNTIME_DIR/starling, else /run/starling.
 * -ENAMETOOLONG when it does not fit a socket address, -EINVAL for a name with a slash.
 */
int sl_socket_path(const char *name, char *ret_path, size_t path_bytes);

/*
 * Where a client looks for runtime @name: as sl_socket_path(); but when that comes of $XDG_RUNTIME_DIR and nothing lies there, and
 * the system's runtime of that name is in /run/starling, there. Return: as sl_socket_path().
 */
int sl_socket_find(const char *name, char *ret_path, size_t path_bytes);

/* Sends one message with @n_fds fds (which stay the caller's). Return: 0, -EPIPE, -EAGAIN, -errno. */
int sl_message_send(int socket, const struct sl_message *message, const int *fds, uint32_t n_fds);

/*
 * Receives one message; fds arrive close-on-exec and are the caller's. @flags: MSG_DONTWAIT or 0.
 * Return: 0; -EPIPE end of file; -EAGAIN; -EBADMSG a packet of another size or magic, a name that does not end where the packet
 * does, or more than @fds_max fds (all are closed).
 */
int sl_message_receive(int socket, struct sl_message *ret_message, int *ret_fds, uint32_t fds_max, uint32_t *ret_n_fds, int flags);

/*
 * The same for who does not trust the sender, and never waits. Whoever drops the last reference to a descriptor, by receiving
 * without room for it as well as by close(), waits as long as its maker likes (a TCP socket lingers): the message is looked at
 * first, and stays where it is when more lies beside it than is wanted. @ret_fd: NULL when no fd is wanted; else the one that came
 * or -1, the caller's whatever the result. Return: as sl_message_receive(); -E2BIG fds that are not wanted, or that this process
 * has no room for: the message was not taken.
 */
int sl_message_receive_guarded(int socket, struct sl_message *ret_message, int *ret_fd);

/*
 * Lets the other end pass fds over @socket, or keeps it from doing so (SO_PASSRIGHTS); what a listening socket says holds for its
 * connections from the start. Return: 0; -ENOPROTOOPT kernels before 6.16: everybody may.
 */
int sl_socket_set_passing(int socket, bool passing);
bool sl_socket_is_passing(int socket);
